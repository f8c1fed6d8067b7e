"""The contract of models with a source: encode once, then step by step."""

import typing

import keras
from keras import ops

from keras_attention.models import paper_model

# XLA in TensorFlow cannot differentiate a loop of unknown length.
LOOPS_COMPILE = keras.backend.backend() != "tensorflow"


class Seq2Seq(paper_model.PaperModel):
    """A model of `p(y_t | y_<t, x)`: abstract.

    Training and forced scores call the model on whole pairs. Search uses
    three methods, so that one search serves all:

    - `encode(source_ids)` -> memory: what stays fixed while a sentence is
      decoded, as a structure of tensors [B, ...] (values, projected keys,
      mask);
    - `initial_state(memory, max_length)` -> state: what a step changes;
      every leaf is [B, ...];
    - `step(token_ids, memory, state)` -> `(logits, state,
      attention_weights)`: one token [B] in; logits float32 [B, V] of the
      next one, and weights [B, S] or [B, H, S] over the source. They sum to 1
      and are 0 at padding, also in a model that has no attention.

    A search takes `prepared_step()`, which is `step` with what no step changes
    computed once. Scores and rewards ask `log_probability(source_ids, labels)`.

    A model that reads and writes in turn, such as a transducer, sums over a
    lattice of both, and its networks also choose a blank: write nothing, read
    on. Where each prefix of a text has an exact probability, so has its next
    token: these are the logits of `call` and `step`, and nothing else is needed
    (see `RNNTransducer`, whose blank has the id END). Otherwise the blank's id
    is V, behind the vocabulary, which stays as it is: the network has V + 1
    outputs, while `call` and `step` give V logits. The model overrides
    `log_probability`, and has an `objective` of its own.

    `call` and `step` share their layers: fed with the same tokens they give
    the same logits.

    A model that learns where to look also has `call_with_attention`, so that
    training can tell it: see `training.objectives.GuidedObjective`.

    The constructor of each paper's model takes `vocabulary_size`, that of the
    target or of both languages; `source_vocabulary_size`, None if it is the
    same; `dropout`, a rate; and Keras's `name` and `dtype`. All arguments have
    names and, but for the first, defaults. `get_config` gives them back. The
    class is registered under `package="keras_attention"`. A model whose `call`
    loops over tokens sets `supports_jit = LOOPS_COMPILE`.

    Call arguments:
        inputs: dict of `source_ids` int [B, S] (tokens, END, padding) and
            `target_ids` int [B, T] (START, tokens, padding).
        training: whether dropout acts.

    Returns:
        logits float32 [B, T, V]: position t is about the token after
        `target_ids[:, t]`. Under mixed precision the last product runs in
        half precision, so that close logits may tie.

    Raises:
        ValueError: If the inputs are no such dict.
    """

    @staticmethod
    def _two_embeddings(vocabulary_size, source_size, embedding_dim, **options):
        """The layers `source_embedding` and `target_embedding`."""
        sizes = {
            "source_embedding": source_size or vocabulary_size,
            "target_embedding": vocabulary_size,
        }
        return [
            keras.layers.Embedding(size, embedding_dim, name=name, **options)
            for name, size in sizes.items()
        ]

    def __call__(self, inputs, *args, **kwargs) -> typing.Any:
        names = {"source_ids", "target_ids"}
        if not isinstance(inputs, dict) or not names <= inputs.keys():
            keys = f" of {list(inputs)}" if isinstance(inputs, dict) else ""
            raise ValueError(
                "A translator takes a dict of `source_ids` and `target_ids`: "
                "START and the tokens before each label. Received: a "
                f"{type(inputs).__name__}{keys}"
            )
        return super().__call__(inputs, *args, **kwargs)

    def encode(self, source_ids, training=None):
        """Reads the source once: [B, S] -> memory."""
        raise NotImplementedError

    def initial_state(self, memory, max_length):
        """The state before the first step, with room for `max_length` steps.

        A model with a cache has no place for further ones, and does not notice
        them: a search must not be longer.
        """
        raise NotImplementedError

    def step(self, token_ids, memory, state):
        """One token: [B] -> (logits [B, V], state, attention weights)."""
        raise NotImplementedError

    def prepared_step(self):
        """`step` for a search: what no step changes is computed here, once."""
        return self.step

    def settling(self, memory, state, num_hypotheses):
        """What a search takes that keeps a common past once for each text.

        Args:
            memory, state: before the first step.
            num_hypotheses: N, as many as the search has for a text.

        Returns:
            `(memory, step, settle)`, see `decoding`. `settle` is None where
            nothing is gained by it, as with one hypothesis. The others are
            then the memory and `prepared_step()`.
        """
        return memory, self.prepared_step(), None

    def call_with_attention(self, inputs, training=None):
        """Like calling the model, and where each step looks.

        Args:
            inputs, training: see the class.

        Returns:
            `(logits, attention_weights)`: float32 [B, T, V], and float32
            [B, T, S] or [B, H, T, S]: the weights that `step` gives.
        """
        raise NotImplementedError(
            f"{type(self).__name__} learns no attention that training can "
            "guide. Call the model itself."
        )

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`: "cross" is what `call_with_attention` gives."""
        if not self.maps:
            return super().call_with_maps(inputs, training)
        logits, attention_weights = self.call_with_attention(inputs, training)
        return logits, self.as_maps(attention_weights)

    def log_probability(self, source_ids, labels, training=False):
        """How probable whole targets are: `log p(y | x)`.

        Args:
            source_ids: int [B, S] (tokens, END, padding).
            labels: int [B, T], the targets (tokens, END, padding).
            training: whether dropout acts.

        Returns:
            float32 [B], 0 for a row of padding alone.
        """
        starts = ops.full_like(labels[:, :1], self.control_ids["start_id"])
        inputs = ops.concatenate([starts, labels], axis=1)[:, :-1]
        logits = self(
            {"source_ids": source_ids, "target_ids": inputs}, training=training
        )
        log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        chosen = ops.take_along_axis(log_probs, labels[..., None], axis=-1)
        # PAD has a log-probability as any id, which is not the target's.
        real = ops.not_equal(labels, self.control_ids["pad_id"])
        return ops.sum(ops.where(real, ops.squeeze(chosen, -1), 0.0), axis=-1)

    def export(
        self,
        filepath,
        format="tf_saved_model",
        verbose=None,
        input_signature=None,
        **options,
    ):
        """Keras's export of `call`: ids in, logits out, in any shape.

        From text to text it is `Translator.export`.

        Args:
            filepath, format, verbose, options: as Keras takes them.
            input_signature: by default ids of any batch size and lengths.
        """
        if input_signature is None:
            input_signature = [
                {
                    name: keras.KerasTensor((None, None), "int32", name=name)
                    for name in ("source_ids", "target_ids")
                }
            ]
        super().export(filepath, format, verbose, input_signature, **options)

    def build(self, input_shape=None):
        """Creates all weights by one call on a tiny batch."""
        # Search, export and summary need weights before any real call. What
        # was loaded has them.
        if not self.built:
            ids = ops.ones((1, 2), dtype="int32")
            self.call({"source_ids": ids, "target_ids": ids})
            self.built = True
