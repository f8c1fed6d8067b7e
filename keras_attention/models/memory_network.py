"""The memory network: hard look-ups, trained on the supporting sentences."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import classifier
from keras_attention.tokens import END, PAD


class MarginRanking:
    """Ranks supporting sentences and the answer first (equations 6 to 8).

    ```
    loss = sum_k sum_{i != f_k} max(0, gamma - s_O([x, m_f1 ... m_f(k-1)], m_fk)
                                       + s_O([x, m_f1 ... m_f(k-1)], m_i))
         + sum_{w != r} max(0, gamma - s_R([x, m_f1 ... m_fK], r)
                               + s_R([x, m_f1 ... m_fK], w))
    ```

    The terms of a sentence that the story does not have are left out.

    Call arguments:
        model: a `MemoryNetwork`.
        batch: `(inputs, labels, weights)`. The inputs also hold `facts`, float
            [B, F]: which sentences support the answer, in the order of the
            hops. 1 is the last one of the story, and 0 is none. Hops beyond
            them repeat the last.
        training: changes nothing, as there is no dropout.

    Returns:
        A dict of `names` to values and counts, float32 [B]. The accuracy is
        that of `call`, which finds its sentences itself.
    """

    names = ("loss", "accuracy")

    def __call__(self, model, batch, training):
        inputs, labels, weights = batch
        asked = {name: inputs[name] for name in model.text_names}
        counts = ops.cast(weights > 0, "float32")
        loss = model.ranking_loss(asked, inputs["facts"], labels)
        answers = ops.argmax(model(asked, training=training), axis=-1)
        is_right = ops.equal(answers, ops.cast(labels, answers.dtype))
        return {
            "loss": (loss, counts),
            "accuracy": (ops.cast(is_right, "float32"), counts),
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class MemoryNetwork(classifier.Classifier):
    """Looks sentences up, one after the other (Weston et al. 2014, section 3).

    ```
    o_1 = argmax_i s_O(x, m_i)                               equation 2
    o_2 = argmax_i s_O([x, m_o1], m_i)                       equation 3
    r   = argmax_w s_R([x, m_o1, m_o2], w)                   equation 4
    s(x, y) = Phi_x(x)^T U^T U Phi_y(y)                      equation 5
    ```

    A look-up has no gradient. So training is told which sentences support the
    answer, and ranks them first: `MarginRanking`.

    Phi are bags of words. A word has a vector of its own in the question, in a
    sentence that was found, and in one that may be found. s_O and s_R have
    different U.

    | paper | here |
    |---|---|
    | x; m_i | `question_ids`; the sentences of `story_ids`, END behind each |
    | k look-ups, 2 in the paper | `num_hops` |
    | U of s_O for x, m_o1, m_i | `asked_words`, `found_words`, `told_words` |
    | U of s_R for x, m_o1 | `answer_asked_words`, `answer_found_words` |
    | U of s_R for w | `output_projection`, without bias |
    | n; gamma | `embedding_dim`; `margin` |

    Deviations: the loss sums over all wrong sentences and answers, where the
    paper draws one. When a sentence was written is a vector that is added to
    it, as in Sukhbaatar et al. 2015, where the paper compares the times of two
    sentences (section 3.4). An answer of several words is one class.

    Call arguments:
        inputs: {"story_ids": int [B, S], "question_ids": int [B, Q]}, both
            padded at the end.

    Args:
        vocabulary_size: words, or other tokens.
        num_classes: answers.
        embedding_dim: width.
        num_hops: sentences that are looked up.
        memory_size: vectors of time. Older sentences share the last one.
        margin: by how much a right sentence or answer must be ahead.

    Raises:
        ValueError: If there is no hop or no vector of time.

    References: https://arxiv.org/abs/1410.3916 (Weston et al. 2014),
    https://arxiv.org/abs/1503.08895 (Sukhbaatar et al. 2015)
    """

    sizes = {
        # 32 wide: for the embedded corpus `stories`.
        "mini": {"embedding_dim": 32},
        # 50 wide: for a thousand questions.
        "tiny": {"embedding_dim": 50},
        # 100 wide: the default.
        "base": {},
    }
    maps = {"hops": ("hops", "source")}

    text_names = ("story_ids", "question_ids")
    objective = MarginRanking()

    def __init__(
        self,
        vocabulary_size,
        num_classes=2,
        embedding_dim=100,
        num_hops=2,
        memory_size=50,
        margin=0.1,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_hops < 1 or memory_size < 1:
            raise ValueError(
                "`num_hops` and `memory_size` must be at least 1. Received: "
                f"num_hops={num_hops}, memory_size={memory_size}"
            )
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "embedding_dim": embedding_dim,
            "num_hops": num_hops,
            "memory_size": memory_size,
            "margin": margin,
        }
        self.num_hops, self.margin = num_hops, margin
        self.memory_size = memory_size
        policy = {"dtype": self.dtype_policy}

        def normal():
            return keras.initializers.RandomNormal(stddev=0.1)

        def table(size, name):
            return keras.layers.Embedding(
                size, embedding_dim, normal(), name=name, **policy
            )

        self.asked_words = table(vocabulary_size, "asked_words")
        self.found_words = table(vocabulary_size, "found_words")
        self.told_words = table(vocabulary_size, "told_words")
        self.found_times = table(memory_size, "found_times")
        self.told_times = table(memory_size, "told_times")
        self.answer_asked_words = table(vocabulary_size, "answer_asked_words")
        self.answer_found_words = table(vocabulary_size, "answer_found_words")
        self.output_projection = keras.layers.Dense(
            num_classes,
            use_bias=False,
            kernel_initializer=normal(),
            name="output_projection",
            **policy,
        )

    def _look_up(self, inputs, facts=None):
        """Scores and choices of each hop, and those of the answers.

        Args:
            inputs: see the class.
            facts: float [B, F], the sentences that are chosen; by default
                those of the greatest score.

        Returns:
            `(scores, chosen, is_end, logits)`: float32 [B, K, S], twice, bool
            [B, S], at each sentence's last token, and float32 [B, C].
        """
        story_ids, question_ids = inputs["story_ids"], inputs["question_ids"]
        is_end = layers.sentence_ends(story_ids, END)  # [B, S]
        numbers = layers.sentence_numbers(is_end)
        count = ops.sum(ops.cast(is_end, "int32"), axis=1, keepdims=True)
        ages = ops.maximum(count - numbers - 1, 0)  # 0 is the last sentence.
        times = ops.minimum(ages, self.memory_size - 1)
        together = ops.cast(layers.same_sentence(is_end), "float32")

        def sentences(table):
            return layers.weighted_sum(together, _of_words(table, story_ids))

        def question(table):
            return ops.sum(_of_words(table, question_ids), axis=1)

        told = sentences(self.told_words) + self.told_times(times)
        found = sentences(self.found_words) + self.found_times(times)
        places = ops.arange(ops.shape(story_ids)[1], dtype="int32")[None]
        x = question(self.asked_words)  # [B, D]
        of_hops, chosen = [], []
        for hop in range(self.num_hops):
            # The query's row first: by a column, oneDNN corrupts TensorFlow
            # 2.21's memory now and then.
            scores = ops.matmul(x[:, None], ops.swapaxes(told, 1, 2))[:, 0]
            scores = ops.where(is_end, ops.cast(scores, "float32"), -1e9)
            if facts is None:
                best = ops.cast(ops.argmax(scores, axis=-1), "int32")
                is_chosen = ops.equal(places, best[:, None])
            else:
                last = ops.shape(facts)[1] - 1
                fact = ops.take(facts, ops.minimum(hop, last), axis=1)  # [B]
                is_chosen = ops.equal(
                    ages + 1, ops.cast(fact, "int32")[:, None]
                )
            is_chosen = ops.cast(ops.logical_and(is_chosen, is_end), "float32")
            x = x + layers.weighted_sum(is_chosen[:, None], found)[:, 0]
            of_hops.append(scores)
            chosen.append(is_chosen)
        chosen = ops.stack(chosen, axis=1)  # [B, K, S]
        evidence = sentences(self.answer_found_words)
        evidence = layers.weighted_sum(chosen, evidence)  # [B, K, D]
        answer = question(self.answer_asked_words) + ops.sum(evidence, axis=1)
        logits = ops.cast(self.output_projection(answer), "float32")
        return ops.stack(of_hops, axis=1), chosen, is_end, logits

    def attend(self, inputs, training=None):
        """Scores s_R [B, C], and 1 where each hop looked [B, K, S].

        A sentence stands at its last token.
        """
        _, chosen, _, logits = self._look_up(inputs)
        return logits, chosen

    def ranking_loss(self, inputs, facts, labels):
        """The loss of each story [B], see `MarginRanking`.

        Args:
            inputs: as for a call.
            facts: float [B, F].
            labels: int [B].
        """
        scores, right, is_end, logits = self._look_up(inputs, facts)
        has_fact = ops.any(right > 0, axis=-1, keepdims=True)
        is_wrong = ops.logical_and(is_end[:, None], right == 0)
        of_sentences = self._violations(
            scores, right, ops.logical_and(is_wrong, has_fact)
        )
        right = ops.one_hot(labels, logits.shape[-1])
        of_answers = self._violations(logits, right, right == 0)
        return ops.sum(of_sentences, axis=-1) + of_answers

    def _violations(self, scores, right, is_wrong):
        """sum_i max(0, gamma - score of the right one + score i): [...]."""
        best = ops.sum(scores * right, axis=-1, keepdims=True)
        excess = ops.relu(self.margin - best + scores)
        return ops.sum(ops.where(is_wrong, excess, 0.0), axis=-1)

    def get_config(self):
        return {**super().get_config(), **self.config}


def _of_words(table, token_ids):
    """The vectors of words, and 0 for END and padding: [B, S, D]."""
    is_word = ops.logical_and(token_ids != PAD, token_ids != END)
    x = table(token_ids)
    return x * ops.cast(is_word[:, :, None], x.dtype)
