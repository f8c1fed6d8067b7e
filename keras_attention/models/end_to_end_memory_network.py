"""The end-to-end memory network: a story is asked several times."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import classifier
from keras_attention.tokens import END, PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class EndToEndMemoryNetwork(classifier.Classifier):
    """Hops of soft attention over sentences (Sukhbaatar et al. 2015).

    ```
    m_i     = sum_j l_j * A x_ij + T_A(i)                    section 4.1
    c_i     = sum_j l_j * C x_ij + T_C(i)                    section 4.1
    u^1     = sum_j l_j * B q_j
    p_i^k   = softmax_i((u^k)^T m_i^k)                       equation 1
    o^k     = sum_i p_i^k c_i^k                              equation 2
    u^{k+1} = u^k + o^k                                      equation 4
    u^{k+1} = H u^k + o^k                if layer_wise, section 2.2
    y       = W u^{K+1}                                      equation 3
    l_kj    = (1 - j/J) - (k/d) (1 - 2j/J)                   section 4.1
    ```

    Sentence i is counted backwards: 1 is the last one before the question.
    `*` is the product of each component. In a sentence of J words, word j
    has the weight l_kj in component k of d, where `sentence_encoding` is
    "position". Where it is "bag", all weights are 1. "centred" is about twice
    "position", and its mean over the words, or over the components, is 1:

    ```
    l_kj    = 1 + 4 (j - (J+1)/2) (k - (d+1)/2) / (J d)      authors' program
    ```

    | paper | here |
    |---|---|
    | x_i, the sentences of a story | `story_ids`, with END behind each |
    | q, the question | `question_ids` |
    | adjacent: A^{k+1} = C^k, B = A^1 | `embeddings`: A^1, C^1 ... C^K |
    | layer-wise: A^k = A, C^k = C | `embeddings`: A, C, B |
    | T_A^k, T_C^k, tied like A^k and C^k | `times` |
    | H, W | `hop_projection`, `output_projection`, without bias |
    | K, d | `num_hops`, `embedding_dim` |
    | 50 most recent sentences | `memory_size` |
    | null symbols that pad stories to one size | `has_empty_memories` |
    | RN, random noise | `noise` |
    | LS, linear start | `is_linear` |

    Empty memories are zeros. With `has_empty_memories`, the softmax of a hop is
    over `memory_size` memories, the empty ones included (section 4.2). So a hop
    may leave u^k nearly as it is, and its weights of sentences sum to less
    than 1.

    With random noise, empty memories stand between sentences in training.
    As in the authors' program, they move sentences away from the question,
    and hold no weight. With `is_linear`, the hops have no softmax:
    p_i^k = (u^k)^T m_i^k. A training with linear start is two: the first is
    linear, and the second begins with its weights.

    Deviations: without `has_empty_memories`, the softmax is over sentences
    alone. "centred" takes J from each sentence, where the authors' program
    has one J for all. W has weights of its own in both tyings, where the paper
    has W^T = C^K for `adjacent`, as an answer may be several words here. Each
    place between two sentences, or behind the last, has an empty memory with
    the probability `noise`. The authors' program draws how many there are
    from 0 to a tenth of the sentences.

    Call arguments:
        inputs: {"story_ids": int [B, S], "question_ids": int [B, Q]}, both
            padded at the end. The last token of a story ends a sentence, too.

    Args:
        vocabulary_size: words, or other tokens.
        num_classes: answers.
        embedding_dim: width.
        num_hops: how often the story is asked.
        tying: which hops share embeddings, "adjacent" or "layer_wise".
        sentence_encoding: "position", "centred" or "bag".
        memory_size: sentences that are remembered. Older ones have weight 0.
        noise: probability of an empty memory, in training.
        is_linear: whether the softmax of the hops is left out.
        has_empty_memories: whether the softmax is over all `memory_size`
            memories, those without a sentence too.

    Raises:
        ValueError: If tying or encoding is another one, or if there is no hop
            or no memory.

    Reference: https://arxiv.org/abs/1503.08895 (Sukhbaatar et al. 2015)
    """

    sizes = {
        # 64 wide: for the embedded corpus `stories`.
        "mini": {"embedding_dim": 64},
        # The paper's width for one task of bAbI: a thousand questions.
        "tiny": {"embedding_dim": 20},
        # The paper's width for all tasks of bAbI together (section 4.2).
        "base": {},
    }
    maps = {"hops": ("hops", "source")}

    text_names = ("story_ids", "question_ids")

    def __init__(
        self,
        vocabulary_size,
        num_classes=2,
        embedding_dim=50,
        num_hops=3,
        tying="adjacent",
        sentence_encoding="position",
        memory_size=50,
        noise=0.1,
        is_linear=False,
        has_empty_memories=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check(tying, sentence_encoding, num_hops, memory_size)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "embedding_dim": embedding_dim,
            "num_hops": num_hops,
            "tying": tying,
            "sentence_encoding": sentence_encoding,
            "memory_size": memory_size,
            "noise": noise,
            "is_linear": is_linear,
            "has_empty_memories": has_empty_memories,
        }
        self.embedding_dim = embedding_dim
        self.num_hops = num_hops
        self.is_adjacent = tying == "adjacent"
        self.sentence_encoding = sentence_encoding
        self.memory_size, self.noise = memory_size, noise
        self.is_linear = is_linear
        self.has_empty_memories = has_empty_memories
        self.seeds = keras.random.SeedGenerator()
        policy = {"dtype": self.dtype_policy}

        num_memories = num_hops + 1 if self.is_adjacent else 2
        self.times = [
            _table(memory_size, embedding_dim, f"time_{index}", policy)
            for index in range(num_memories)
        ]
        num_memories += not self.is_adjacent
        self.embeddings = [
            _table(vocabulary_size, embedding_dim, f"embedding_{index}", policy)
            for index in range(num_memories)
        ]
        self.hop_projection = None
        if not self.is_adjacent:
            self.hop_projection = _matrix(
                embedding_dim, "hop_projection", policy
            )
        self.output_projection = _matrix(
            num_classes, "output_projection", policy
        )

    def _weighted(self, embedding, token_ids, places, sizes):
        """l_j * A x_j of each word: [B, S, D], 0 for other tokens.

        Args:
            places, sizes: float32 [B, S]: j and J; J is 0 for no word.
        """
        weights = ops.cast(sizes > 0, "float32")[..., None]
        J, d = ops.maximum(sizes, 1)[..., None], self.embedding_dim
        j, k = places[..., None], ops.arange(1, d + 1, dtype="float32")
        if self.sentence_encoding == "position":
            weights = weights * ((1 - j / J) - k / d * (1 - 2 * j / J))
        elif self.sentence_encoding == "centred":
            products = (j - (J + 1) / 2) * (k - (d + 1) / 2)  # [B, S, D]
            weights = weights * (1 + 4 * products / (J * d))
        x = embedding(token_ids)
        return x * ops.cast(weights, x.dtype)

    def _question(self, embedding, question_ids):
        """u^1: [B, D]."""
        is_word = _words(question_ids)
        places = ops.cumsum(is_word, axis=1)
        sizes = ops.sum(is_word, axis=1, keepdims=True) * is_word
        x = self._weighted(embedding, question_ids, places, sizes)
        return ops.sum(x, axis=1)

    def _ages(self, ends, training):
        """How many memories are behind the sentence that ends here: [B, S].

        Args:
            ends: float32 [B, S], 1 where a sentence ends.
        """
        if training and self.noise:
            drawn = keras.random.uniform(ops.shape(ends), seed=self.seeds)
            empty = ends * ops.cast(drawn < self.noise, "float32")
        else:
            empty = ops.zeros_like(ends)
        up_to = ops.cumsum(ends + empty, axis=1)
        return up_to[:, -1:] - up_to + empty

    def _memories(self, story_ids, training):
        """m and c of each hop, for the M most recent sentences.

        Memory 0 is the last sentence.

        Returns:
            `(memories, at_ends)`: a tensor [B, M, D] for each of `times`, and
            float32 [B, M, S], 1 where a memory's sentence ends.
        """
        is_word = _words(story_ids)
        is_end = layers.sentence_ends(story_ids, END)
        ends = ops.cast(is_end, "float32")
        behind = ops.sum(ops.cast(is_end, "int32"), axis=1, keepdims=True)
        behind = behind - layers.sentence_numbers(is_end) - 1  # [B, S]
        # No story has more sentences than tokens.
        memory = ops.arange(self.memory_size)[: ops.shape(story_ids)[1]]
        tokens = ops.equal(behind[:, None], memory[:, None])
        tokens = ops.cast(tokens, "float32")  # [B, M, S]
        at_ends = tokens * ends[:, None]

        def of_tokens(numbers):
            """What each token's sentence has: [B, M] -> [B, S]."""
            return ops.matmul(numbers[:, None], tokens)[:, 0]

        up_to = ops.cumsum(is_word, axis=1)
        sizes = ops.sum(tokens * is_word[:, None], axis=2)  # [B, M]
        before = ops.sum(at_ends * up_to[:, None], axis=2) - sizes
        places = up_to - of_tokens(before)
        sizes = of_tokens(sizes) * is_word
        ages = ops.sum(at_ends * self._ages(ends, training)[:, None], axis=2)
        ages = ops.minimum(ops.cast(ages, "int32"), self.memory_size - 1)
        memories = [
            layers.weighted_sum(
                tokens, self._weighted(embedding, story_ids, places, sizes)
            )
            + time(ages)
            for embedding, time in zip(
                self.embeddings, self.times, strict=False
            )
        ]
        return memories, at_ends

    def attend(self, inputs, training=None):
        """Logits [B, C], and p of each hop [B, K, S].

        The weight of a sentence stands at its last token, and all others are
        0. With `is_linear` or `has_empty_memories`, they do not sum to 1.
        """
        memories, at_ends = self._memories(inputs["story_ids"], training)
        mask = ops.any(at_ends > 0, axis=2)  # [B, M]
        asking = self.embeddings[0 if self.is_adjacent else -1]
        u = self._question(asking, inputs["question_ids"])
        of_hops = []
        for hop in range(self.num_hops):
            place = hop if self.is_adjacent else 0
            m, c = memories[place], memories[place + 1]
            scores = _products(u, m)
            if self.is_linear:
                p = ops.where(mask, ops.cast(scores, "float32"), 0.0)
            else:
                p = self._softmax(scores, mask)
            o = layers.weighted_sum(p[:, None], c)[:, 0]
            u = o + (u if self.is_adjacent else self.hop_projection(u))
            of_hops.append(p)
        logits = ops.cast(self.output_projection(u), "float32")
        p = ops.stack(of_hops, axis=1)  # [B, K, M]
        return logits, layers.weighted_sum(p, at_ends)

    def _softmax(self, scores, mask):
        """p: float32 [B, M], from scores and a mask of this shape."""
        if not self.has_empty_memories:
            return layers.masked_softmax(scores, mask)
        full = ops.sum(ops.cast(mask, "float32"), axis=1, keepdims=True)
        empty = self.memory_size - full
        # A zero has the score 0. Together they weigh exp(log(empty)).
        of_empty = ops.log(ops.maximum(empty, 1.0))
        p = layers.masked_softmax(
            ops.concatenate([ops.cast(scores, "float32"), of_empty], axis=1),
            ops.concatenate([mask, empty > 0], axis=1),
        )
        return p[:, :-1]

    def get_config(self):
        return {**super().get_config(), **self.config}


def _words(token_ids):
    """1 for words, 0 for END and padding: float32 [B, S]."""
    is_word = ops.logical_and(token_ids != PAD, token_ids != END)
    return ops.cast(is_word, "float32")


def _products(u, memories):
    """u . m_i for each memory: [B, D], [B, S, D] -> [B, S]."""
    # The query's row first, as attention has it. By a column, oneDNN corrupts
    # TensorFlow 2.21's memory now and then.
    keys = ops.swapaxes(memories, 1, 2)
    return ops.matmul(u[:, None], keys)[:, 0]


def _table(size, width, name, policy):
    return keras.layers.Embedding(
        size,
        width,
        keras.initializers.RandomNormal(stddev=0.1),
        name=name,
        **policy,
    )


def _matrix(units, name, policy):
    return keras.layers.Dense(
        units,
        use_bias=False,
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.1),
        name=name,
        **policy,
    )


def _check(tying, sentence_encoding, num_hops, memory_size):
    if tying not in ("adjacent", "layer_wise"):
        raise ValueError(
            f"`tying` must be 'adjacent' or 'layer_wise'. Received: {tying!r}"
        )
    if sentence_encoding not in ("position", "centred", "bag"):
        raise ValueError(
            "`sentence_encoding` must be 'position', 'centred' or 'bag'. "
            f"Received: {sentence_encoding!r}"
        )
    if num_hops < 1 or memory_size < 1:
        raise ValueError(
            "`num_hops` and `memory_size` must be at least 1. Received: "
            f"num_hops={num_hops}, memory_size={memory_size}"
        )
