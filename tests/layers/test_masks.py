import keras
import numpy as np
import pytest
import tensorflow as tf

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
    with pytest.raises(ValueError, match=f"`{name}` of rank .*Received: sha"):
        masks.combine_masks(**{name: np.ones(shape, bool)})


def test_combined_mask_broadcasts_over_an_axis_of_one(rng):
    padding = rng.random((2, 5)) < 0.5
    attention = rng.random((1, 3, 5)) < 0.5
    np.testing.assert_array_equal(
        masks.combine_masks(padding, attention), padding[:, None] & attention
    )
