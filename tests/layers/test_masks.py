import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers
from keras_attention.layers import masks


def test_padding_mask_is_true_at_tokens():
    token_ids = np.array([[5, 7, 3], [4, 3, 0]])
    np.testing.assert_array_equal(
        masks.padding_mask(token_ids),
        [[True, True, True], [True, True, False]],
    )


def test_padding_mask_with_another_padding_id():
    np.testing.assert_array_equal(
        masks.padding_mask(np.array([[0, 2, 1]]), padding_id=1),
        [[True, True, False]],
    )


def test_causal_mask_sees_itself_and_the_past():
    np.testing.assert_array_equal(
        masks.causal_mask(3),
        [[[True, False, False], [True, True, False], [True, True, True]]],
    )


def test_causal_mask_of_a_length_known_at_run_time():
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def mask_like(x):
        return masks.causal_mask(keras.ops.shape(x)[1])

    for length in (2, 5):
        np.testing.assert_array_equal(
            mask_like(tf.zeros((3, length))),
            np.tri(length, dtype=bool)[None],
        )


@pytest.mark.parametrize("has_padding", [True, False])
@pytest.mark.parametrize("has_attention", [True, False])
def test_combined_masks_allow_what_both_allow(rng, has_padding, has_attention):
    padding = rng.random((2, 5)) < 0.5
    attention = rng.random((2, 3, 5)) < 0.5
    combined = masks.combine_masks(
        padding if has_padding else None, attention if has_attention else None
    )
    if not (has_padding or has_attention):
        assert combined is None
        return
    combined = np.broadcast_to(combined, (2, 3, 5))
    for b in range(2):
        for t in range(3):
            for s in range(5):
                allowed = (padding[b, s] or not has_padding) and (
                    attention[b, t, s] or not has_attention
                )
                assert combined[b, t, s] == allowed


def test_an_attention_mask_may_be_that_of_all_rows(rng):
    attention = rng.random((2, 5)) < 0.5
    np.testing.assert_array_equal(
        masks.combine_masks(None, attention), attention[None]
    )


@pytest.mark.parametrize(
    "name, shape",
    [
        ("padding_mask", (5,)),
        ("padding_mask", (2, 3, 5)),
        ("attention_mask", (5,)),
        ("attention_mask", (2, 1, 3, 5)),
    ],
)
def test_a_mask_of_another_rank_is_refused(name, shape):
    with pytest.raises(ValueError, match=f"`{name}` must have rank"):
        masks.combine_masks(**{name: np.ones(shape, bool)})


def test_combined_mask_broadcasts_over_an_axis_of_one(rng):
    padding = rng.random((2, 5)) < 0.5
    attention = rng.random((1, 3, 5)) < 0.5
    np.testing.assert_array_equal(
        masks.combine_masks(padding, attention), padding[:, None] & attention
    )


B, T, S, D = 2, 3, 5, 14
ADDED = {
    "padding_mask": np.where(np.arange(S) < 2, 0.0, -np.inf) * np.ones((B, 1)),
    "attention_mask": np.where(np.tri(T, S) > 0, 0.0, -np.inf),
}
ATTENTIONS = {
    "additive": lambda: layers.AdditiveAttention(11),
    "multiplicative": lambda: layers.MultiplicativeAttention(),
    "local": lambda: layers.LocalAttention(half_width=2),
    "gaussian_window": lambda: layers.GaussianWindow(3),
    "monotonic": lambda: layers.MonotonicAttention(11),
    "diagonal": lambda: layers.DiagonalAttention(),
    "structured": lambda: layers.StructuredAttention(),
    "multi_head": lambda: layers.MultiHeadAttention(2, 7),
}


@pytest.mark.parametrize("is_symbolic", [False, True])
@pytest.mark.parametrize("mask", ADDED)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_mask_that_is_added_to_scores_is_refused(
    name, mask, is_symbolic, rng
):
    """PyTorch adds 0 and -inf, which as truth values mean no and yes."""
    layer = ATTENTIONS[name]()
    query, value = (
        rng.normal(size=(B, n, D)).astype("float32") for n in (T, S)
    )
    inputs = {"query": query, "value": value, mask: ADDED[mask]}
    if is_symbolic:
        inputs = {
            key: keras.Input(batch_shape=array.shape, dtype="float32")
            for key, array in inputs.items()
        }
    with pytest.raises(ValueError, match="`mask == 0`. Received: a mask of fl"):
        layer(**inputs)
    layer(query=query, value=value, **{mask: ADDED[mask] == 0})


def test_layers_of_the_transformer_refuse_it_too(rng):
    x = rng.normal(size=(B, S, D)).astype("float32")
    mask = ADDED["padding_mask"].astype("float32")
    encoder = layers.TransformerEncoderLayer(7, 11)
    decoder = layers.TransformerDecoderLayer(7, 11)
    for inputs, padding in (
        (x, mask),
        (keras.Input((S, D)), keras.Input((S,))),
    ):
        with pytest.raises(ValueError, match="Received: a mask of float32"):
            encoder(inputs, padding_mask=padding)
        with pytest.raises(ValueError, match="Received: a mask of float32"):
            decoder(inputs, inputs, memory_mask=padding)


def test_whole_numbers_are_truth_values(rng):
    """Masks of other packages are often 0 and 1; any number but 0 attends."""
    x = rng.normal(size=(B, S, D)).astype("float32")
    mask = np.array([[1, 1, 0, 0, 0], [2, 7, 1, 0, 0]])
    layer = layers.MultiplicativeAttention("dot")
    for got, expected in zip(
        layer(query=x, value=x, padding_mask=mask),
        layer(query=x, value=x, padding_mask=mask > 0),
        strict=True,
    ):
        np.testing.assert_array_equal(got, expected)
