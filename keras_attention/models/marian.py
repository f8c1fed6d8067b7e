"""Marian: the Transformer of the OPUS-MT translators."""

import dataclasses

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import transformer


@keras.saving.register_keras_serializable(package="keras_attention")
class Marian(transformer.Transformer):
    """The Transformer as Marian trains it (Junczys-Dowmunt et al. 2018).

    It differs from the paper's Transformer (Vaswani et al. 2017) in small
    things:

    - of the positions, all sines stand before all cosines;
    - the feed-forward networks have SiLU ("swish") in place of ReLU;
    - each token has a bias in its logit, `output_bias`;
    - the epsilon of a normalisation is 1e-5.

    `ka.models.from_pretrained` reads the weights that OPUS-MT publishes
    (Tiedemann & Thottingal 2020).

    Args: see `Transformer`. Each sublayer is normalised behind its sum, unless
        `norm_first` is True.

    Raises:
        ValueError: As `Transformer` does.

    References: https://arxiv.org/abs/1804.00344,
    https://aclanthology.org/2020.eamt-1.61
    """

    # OPUS-MT's are of the size "base".
    sizes = {
        name: {**arguments, "norm_first": name in ("mini", "tiny")}
        for name, arguments in transformer.Transformer.sizes.items()
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        norm_first=False,
        activation="silu",
        epsilon=1e-5,
        **kwargs,
    ):
        super().__init__(
            vocabulary_size,
            source_vocabulary_size,
            norm_first=norm_first,
            activation=activation,
            epsilon=epsilon,
            **kwargs,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(vocabulary_size,), initializer="zeros"
        )

    def _word_positions(self):
        return layers.PositionEncoding(
            "halves", dtype=self.dtype_policy, name="position_encoding"
        )

    def _logits(self, x, kernel=None):
        logits = super()._logits(x, kernel)
        if isinstance(logits, layers.LogitFactors):
            bias = ops.cast(self.output_bias, self.compute_dtype)
            return dataclasses.replace(logits, bias=bias)
        return logits + ops.cast(self.output_bias, "float32")
