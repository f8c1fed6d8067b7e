"""Files of layers with quantized parts."""

import keras
import numpy as np
import pytest
from keras import quantizers

from keras_attention import layers

B, T, D = 2, 5, 14
LAYERS = {
    "feed_forward": lambda: layers.FeedForward(11),
    "maxout": lambda: layers.Maxout(11),
    "encoder": lambda: layers.TransformerEncoderLayer(7, 11),
    "self_attention": lambda: layers.SelfAttentionLayer(7, 11),
    "wrapped": lambda: layers.OutputsOnly(
        layers.TransformerEncoderLayer(7, 11)
    ),
}
# Layers of Keras quantize what they get too, if nothing else is said.
WEIGHTS_ALONE = quantizers.Int8QuantizationConfig(
    weight_quantizer=quantizers.AbsMaxQuantizer(axis=0),
    activation_quantizer=None,
)

pytestmark = [
    pytest.mark.usefixtures("without_garbage_search"),
    pytest.mark.filterwarnings("ignore:.*a `quantize` method"),
]


def functional(layer):
    inputs = keras.Input((T, D))
    outputs = layer(inputs)
    return keras.Model(
        inputs, outputs[0] if isinstance(outputs, tuple) else outputs
    )


@pytest.mark.parametrize(
    "mode, choices",
    [("int8", None), ("int4", None), (None, WEIGHTS_ALONE)],
    ids=["int8", "int4", "weights alone"],
)
@pytest.mark.fast_for("int8", "feed_forward")
@pytest.mark.parametrize("name", LAYERS)
def test_a_quantized_layer_is_saved_and_loaded(
    name, mode, choices, rng, randomize, tmp_path
):
    model = randomize(functional(LAYERS[name]()))
    x = rng.normal(size=(B, T, D)).astype("float32")
    before = model(x)
    model.quantize(mode, config=choices)
    expected = model(x)
    assert np.abs(expected - before).max() > 1e-4
    for _ in range(2):  # Also what was loaded can be saved.
        model.save(tmp_path / "model.keras")
        model = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(model(x), expected)


def test_a_mode_that_needs_data_is_refused():
    layer = layers.FeedForward(11)
    layer.build((None, T, D))
    layer.expand._dtype_policy = keras.dtype_policies.GPTQDTypePolicy(
        "gptq/4/-1", "float32"
    )
    with pytest.raises(ValueError, match="parts in gptq cannot be saved"):
        keras.saving.serialize_keras_object(layer)
