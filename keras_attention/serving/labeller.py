"""Text in, label out: a classifier with its tokenizer."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_attention import data
from keras_attention.serving import live_model, text_labelling, token_rows


class Labeller(live_model.LiveModel, text_labelling.TextLabelling):
    """A classifier, its tokenizer and its labels, as functions in graph.

    The functions are the SavedModel's signatures. Export with `export`, or
    call the labeller with a list of texts.

    Args:
        model: a built `models.Classifier`.
        tokenizer: a `data.Tokenizer`.
        classes: the labels, in the order of the model's logits.
        max_length: limit of a text in tokens, END included. Of a longer one
            the functions read the first; Python refuses it.
        stored_precision: in which weights of float32 are kept, see
            `Translator`.

    Raises:
        ValueError: If the model is not built, if no text can keep the limit,
            if there is no label, if the precision is another one, or if the
            weights are too large for it.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: data.Tokenizer,
        classes: Sequence[str],
        max_length: int = 128,
        stored_precision: str = "float32",
    ):
        super().__init__(model, stored_precision, name="labeller")
        if max_length < 2 or not classes:
            raise ValueError(
                "Expected max_length >= 2 and one label or more. Received: "
                f"max_length={max_length}, classes={classes}"
            )
        self.tokenizer = tokenizer
        self.classes = tuple(classes)
        self.max_length = max_length
        self._signatures = {
            name: tf.function(
                self._of_names(function),
                input_signature=[
                    tf.TensorSpec([None], tf.string, name=one)
                    for one in self.inputs
                ],
                autograph=False,
            )
            for name, function in (
                ("serving_default", self._label),
                ("with_attention", self._label_with_attention),
                ("num_tokens", self._num_tokens),
            )
        }

    def _of_names(self, function):
        """A function of the inputs' names, as a signature must be."""
        return lambda text: function(text)

    def _tokenize(self, texts):
        """Ids [B, S] of each text, and whether one was too long."""
        ids = [
            self.tokenizer.tokenize(tf.ensure_shape(text, [None]))
            for text in texts
        ]
        too_long = [one.row_lengths() >= self.max_length for one in ids]
        cut = [token_rows.ended(one[:, : self.max_length - 1]) for one in ids]
        return cut, tf.reduce_any(tf.stack(too_long), axis=0)

    def _attend(self, ids):
        """Label, probabilities, and the model's weights."""
        names = ("source_ids", "pair_ids")
        with self._hidden.weights.in_use():
            logits, weights = self.model.attend(
                dict(zip(names, ids, strict=False)), training=False
            )
        labels = tf.gather(tf.constant(self.classes), tf.argmax(logits, -1))
        outputs = {"label": labels, "probabilities": tf.nn.softmax(logits)}
        return outputs, weights

    def _label(self, *texts):
        ids, _ = self._tokenize(texts)
        return self._attend(ids)[0]

    def _label_with_attention(self, *texts):
        ids, too_long = self._tokenize(texts)
        outputs, weights = self._attend(ids)
        return {
            **outputs,
            "truncated": too_long,
            "source_tokens": token_rows.pieces(self.tokenizer, ids[0]),
            "attention": weights,
        }

    def _num_tokens(self, *texts):
        """Of the longest text of each row."""
        lengths = [
            self.tokenizer.tokenize(text).row_lengths() + 1 for text in texts
        ]
        longest = tf.cast(tf.reduce_max(tf.stack(lengths), axis=0), tf.int32)
        limit = tf.fill(tf.shape(longest), self.max_length)
        return {"num_tokens": longest, "limit": limit}


class PairLabeller(text_labelling.PairLabelling, Labeller):
    """A classifier of pairs of texts, as functions in graph.

    Call it with a list of texts, each a pair with a tab between the two. The
    signatures have the two texts as `text` and `text_pair`.

    Args, Raises: as `Labeller`.
    """

    def _of_names(self, function):
        return lambda text, text_pair: function(text, text_pair)

    def _label_with_attention(self, *texts):
        ids, too_long = self._tokenize(texts)
        outputs, (of_pair, of_source) = self._attend(ids)
        return {
            **outputs,
            "truncated": too_long,
            "source_tokens": token_rows.pieces(self.tokenizer, ids[0]),
            "pair_tokens": token_rows.pieces(self.tokenizer, ids[1]),
            "attention": of_pair,
            "attention_pair": of_source,
        }
