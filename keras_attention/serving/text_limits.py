"""How long a text and its translation may be."""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Limits:
    """How long texts and their answers may be, in tokens, END included.

    Attributes:
        max_source_length: the most tokens of a text.
        max_target_factor: the most tokens of an answer for each token of its
            text.
        max_target_offset: the tokens that an answer may have beside those.
        max_length: the most tokens of any text or answer.

    Raises:
        ValueError: If no text or no answer can keep them.
    """

    max_source_length: int
    max_target_factor: float
    max_target_offset: int
    max_length: int = tf.int32.max

    def __post_init__(self):
        factor, offset = self.max_target_factor, self.max_target_offset
        if self.max_source_length < 2:
            raise ValueError(
                "Expected max_source_length of at least 2. "
                f"Received: max_source_length={self.max_source_length}"
            )
        if min(factor, offset) < 0 or not (factor or offset):
            raise ValueError(
                "Expected max_target_factor and max_target_offset of at least "
                "0, and one of them above. Received: "
                f"max_target_factor={factor}, max_target_offset={offset}"
            )

    def target_lengths(self, source_lengths):
        """The most tokens of each answer: int [B] -> int32 [B]."""
        lengths = tf.cast(source_lengths, tf.float32)
        lengths = tf.math.ceil(self.max_target_factor * lengths)
        lengths = tf.cast(lengths, tf.int32) + self.max_target_offset
        return tf.minimum(lengths, self.max_length)
