"""The contract of models that label a text, or a pair of texts."""

import typing

import keras
from keras import ops

from keras_attention.models import paper_model


class Classifier(paper_model.PaperModel):
    """A model of `p(label | text)`: abstract; each paper's model is final.

    A subclass gives `attend(inputs, training=None)` -> `(logits,
    attention_weights)`. A call returns the logits alone.

    Attributes:
        text_names: the names of the inputs, one for each text.

    Call arguments:
        inputs: a tensor for each of `text_names`, such as {"source_ids": int
            [B, S]}: the tokens of a text and END, then padding, which changes
            nothing.
        training: whether dropout acts.

    Returns:
        logits float32 [B, C]. `attend` also returns float32 weights, whose
        last axis is the tokens of a text. Outside of training, each row of
        weights sums to 1 over the real ones, if there is one.

    Raises:
        ValueError: If the input is no dict of these integer tensors.
    """

    text_names = ("source_ids",)

    def __call__(self, inputs, *args, **kwargs) -> typing.Any:
        names = self.text_names
        tensors = inputs if isinstance(inputs, dict) else {}
        if set(tensors) != set(names) or not all(
            len(ids.shape) == 2
            and "int" in keras.backend.standardize_dtype(ids.dtype)
            for ids in tensors.values()
        ):
            found = sorted(tensors) or type(inputs).__name__
            raise ValueError(
                "This classifier takes a dict of integer tensors (batch, "
                f"length): {', '.join(names)}. Received: {found}"
            )
        return super().__call__(inputs, *args, **kwargs)

    def attend(self, inputs, training=None):
        """Logits [B, C], and the weights of the tokens behind them."""
        raise NotImplementedError

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`: the weights are those of `attend`, in its order."""
        logits, weights = self.attend(inputs, training=training)
        weights = weights if isinstance(weights, tuple) else (weights,)
        return logits, self.as_maps(*weights)

    def call(self, inputs, training=None):
        logits, _ = self.attend(inputs, training=training)
        return logits  # [B, C]

    def build(self, input_shape=None):
        """Creates all weights by one call on a tiny batch."""
        if not self.built:
            ids = ops.ones((1, 2), dtype="int32")
            self.call({name: ids for name in self.text_names})
            self.built = True
