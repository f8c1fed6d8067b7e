"""RoFormer: the Transformer whose attention knows distances by rotation."""

import keras

from keras_attention import layers
from keras_attention.models import transformer


@keras.saving.register_keras_serializable(package="keras_attention")
class RoFormer(transformer.Transformer):
    """The Transformer with rotary positions (Su et al. 2021).

    Nothing is added to the words. Instead each self-attention, in encoder and
    decoder, rotates its queries and keys by angles that grow with their
    places (equation 16). A score then depends on the places only by the
    distance between two tokens:

    `q_m . k_n  ->  (R_m W_q x_m) . (R_n W_k x_n)`

    See `RotaryPositions` for R. All else is as in `Transformer`: the
    arguments, the sizes, the number of weights and the deviations.

    The attention from target to source is not rotated. The paper speaks of
    self-attention alone (section 4.1.2). Places in two sentences have no
    distance.

    Args: see `Transformer`; `hidden_dim / num_heads` must be even.

    Raises:
        ValueError: As `Transformer` does, and, when the model is built, if
            the width of a head is odd.

    Reference: https://arxiv.org/abs/2104.09864
    """

    def _word_positions(self):
        return None

    def _attention_positions(self):
        return layers.RotaryPositions(
            dtype=self.dtype_policy, name="rotary_positions"
        )
