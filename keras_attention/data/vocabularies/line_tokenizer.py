"""Texts of several lines: a line break is an END."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_attention.data.vocabularies import tokenizer
from keras_attention.tokens import END


class LineTokenizer(tokenizer.Tokenizer):
    """A tokenizer that reads lines: the tokens of each, END between them.

    A model that is trained on such texts goes on from the lines before. In
    texts of one line the ids are those of `Tokenizer`.

    Args: see `Tokenizer`.
    """

    def tokenize(self, text) -> tf.RaggedTensor | tf.Tensor:
        """Ids of texts, without START and without the last END.

        Args:
            text: string [B], or one string [].

        Returns:
            Ids, ragged int32 [B, None]; of one string a tensor, int32 [None].
        """
        text = tf.convert_to_tensor(text, tf.string)
        if text.shape.rank == 0:
            return self.tokenize(text[tf.newaxis])[0]
        lines = tf.strings.split(text, "\n")
        ids = super().tokenize(lines.flat_values)  # [lines, None]
        ended = tf.concat([ids, tf.fill([ids.nrows(), 1], END)], axis=1)
        by_text = tf.RaggedTensor.from_row_splits(ended, lines.row_splits)
        return by_text.merge_dims(1, 2)[:, :-1]

    def sample(
        self, texts: Sequence[str], seed: int, alpha: float = 0.1
    ) -> list[np.ndarray]:
        """Draws a segmentation of each line, see `Tokenizer.sample`."""
        lines = [text.split("\n") for text in texts]
        drawn = iter(super().sample(sum(lines, []), seed, alpha))
        return [
            np.concatenate(
                [np.append(next(drawn), np.int32(END)) for _ in text_lines]
            )[:-1]
            for text_lines in lines
        ]
