import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers
from keras_attention.layers import caches, multi_head_attention

B, T, S, QUERY_DIM, KEY_DIM, VALUE_DIM = 2, 3, 5, 7, 13, 17
HEADS, HEAD_DIM = 3, 11


@pytest.fixture
def arrays(rng):
    shapes = (B, T, QUERY_DIM), (B, S, KEY_DIM), (B, S, VALUE_DIM)
    query, key, value = (rng.normal(size=shape) for shape in shapes)
    return {
        "query": query.astype("float32"),
        "key": key.astype("float32"),
        "value": value.astype("float32"),
    }


@pytest.fixture
def mask_arrays(rng):
    attention_mask = rng.random((B, T, S)) < 0.7
    attention_mask[..., 1] = True
    return {
        "padding_mask": np.arange(S) < np.array([[S], [S - 2]]),
        "attention_mask": attention_mask,
    }


@pytest.fixture
def self_attention(rng, randomize):
    """A layer for query = key = value, and its query."""
    query = rng.normal(size=(B, S, QUERY_DIM)).astype("float32")
    layer = layers.MultiHeadAttention(HEADS, HEAD_DIM)
    layer.build(query.shape)
    return randomize(layer), query


def attend(query, key, value, mask, weights):
    """Section 3.2.2: each head by itself, then Concat(...) W_O."""
    w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = weights
    attention_weights = np.zeros((B, HEADS, T, S))
    contexts = np.zeros((B, T, w_o.shape[1]))
    for b in range(B):
        heads = []
        for h in range(HEADS):
            own = slice(h * HEAD_DIM, (h + 1) * HEAD_DIM)
            q = query[b] @ w_q[:, own] + b_q[own]  # [T, HEAD_DIM]
            k = key[b] @ w_k[:, own] + b_k[own]  # [S, HEAD_DIM]
            v = value[b] @ w_v[:, own] + b_v[own]
            e = np.exp(q @ k.T / np.sqrt(HEAD_DIM)) * mask[b]
            attention_weights[b, h] = e / e.sum(axis=-1, keepdims=True)
            heads.append(attention_weights[b, h] @ v)
        contexts[b] = np.concatenate(heads, axis=-1) @ w_o + b_o
    return contexts, attention_weights


def test_equals_the_equation(arrays, mask_arrays, randomize):
    layer = layers.MultiHeadAttention(HEADS, HEAD_DIM)
    layer(**arrays)
    weights = [0.5 * w for w in randomize(layer).get_weights()]
    layer.set_weights(weights)
    context, attention_weights = layer(**arrays, **mask_arrays)
    mask = mask_arrays["attention_mask"] & mask_arrays["padding_mask"][:, None]
    expected = attend(**arrays, mask=mask, weights=weights)
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    np.testing.assert_allclose(attention_weights, expected[1], atol=1e-5)


def test_dot_product_attention_by_hand():
    # d_k = 4: scores are halved, exp(2 ln 3 / 2) : exp(0) = 3 : 1.
    query = 2 * np.log([[3.0, 1.0, 1.0, 1.0]])
    key = np.eye(4)[:2]  # [S, d_k]
    value = np.array([[8.0], [4.0]])
    context, weights = layers.dot_product_attention(
        *(tf.constant(x, "float32") for x in (query, key, value))
    )
    np.testing.assert_allclose(weights, [[3 / 4, 1 / 4]], rtol=1e-6)
    np.testing.assert_allclose(context, [[7.0]], rtol=1e-6)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("use_causal_mask", [True, False])
def test_equals_keras(rng, randomize, use_bias, use_causal_mask):
    query, key, value = (
        rng.normal(size=(B, length, dim)).astype("float32")
        for length, dim in ((T, QUERY_DIM), (S, KEY_DIM), (S, VALUE_DIM))
    )
    if use_causal_mask:
        query = rng.normal(size=(B, S, QUERY_DIM)).astype("float32")
    attention_mask = rng.random((B, query.shape[1], S)) < 0.7
    attention_mask[..., 0] = True
    layer = layers.MultiHeadAttention(HEADS, HEAD_DIM, use_bias=use_bias)
    layer(query, value, key)
    randomize(layer)
    other = keras.layers.MultiHeadAttention(HEADS, HEAD_DIM, use_bias=use_bias)
    other.build(query.shape, value.shape, key.shape)
    other.set_weights(
        [
            weight.reshape(theirs.shape)
            for weight, theirs in zip(
                layer.get_weights(), other.weights, strict=True
            )
        ]
    )
    masking = {
        "attention_mask": attention_mask,
        "use_causal_mask": use_causal_mask,
    }
    context, weights = layer(query, value, key, **masking)
    expected = other(query, value, key, return_attention_scores=True, **masking)
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)


@pytest.mark.parametrize("use_causal_mask", [True, False])
def test_query_alone_is_query_as_value(self_attention, use_causal_mask):
    layer, query = self_attention
    fused = layer(query, use_causal_mask=use_causal_mask)
    given = layer(query, query, use_causal_mask=use_causal_mask)
    all_given = layer(query, query, query, use_causal_mask=use_causal_mask)
    for i in range(2):
        np.testing.assert_allclose(fused[i], given[i], atol=1e-6)
        np.testing.assert_allclose(fused[i], all_given[i], atol=1e-6)


def test_key_alone_leaves_the_query_as_value(rng, self_attention):
    layer, query = self_attention
    key = rng.normal(size=query.shape).astype("float32")
    for got, want in zip(
        layer(query, key=key), layer(query, query, key), strict=True
    ):
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_causality_by_gradient(self_attention):
    layer, query = self_attention
    query = tf.constant(query)
    with tf.GradientTape() as tape:
        tape.watch(query)
        context, _ = layer(query, use_causal_mask=True)
    jacobian = tape.jacobian(context, query).numpy()  # [B, T, D, B, T, D]
    for t in range(S):
        for s in range(S):
            block = jacobian[0, t, :, 0, s]
            assert block.any() == (s <= t)
    assert not jacobian[0, :, :, 1].any()


def test_causal_mask_joins_the_others(self_attention):
    layer, query = self_attention
    padding_mask = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
    _, weights = layer(query, padding_mask=padding_mask, use_causal_mask=True)
    allowed = np.tri(S, dtype=bool) & padding_mask[:, None]
    allowed = np.broadcast_to(allowed[:, None], weights.shape)
    np.testing.assert_array_equal(weights.numpy() > 0, allowed)


@pytest.mark.parametrize("max_length", [S, S + 2])
def test_steps_with_a_cache_equal_call(self_attention, max_length):
    layer, query = self_attention
    context, weights = layer(query, use_causal_mask=True)
    cache = layer.initial_cache(B, max_length)
    for t in range(S):
        step_context, step_weights, cache = layer.step(
            query[:, t], cache, position=t
        )
        np.testing.assert_allclose(step_context, context[:, t], atol=1e-5)
        np.testing.assert_allclose(
            step_weights[..., :S], weights[:, :, t], atol=1e-5
        )
        assert not step_weights[..., t + 1 :].numpy().any()


@pytest.mark.parametrize("known", [True, False])
def test_steps_in_a_loop_equal_call(self_attention, known):
    """TensorFlow knows how long the cache gets, or it grows."""
    layer, query = self_attention
    kinds = []

    def steps(query, max_length):
        cache = layer.initial_cache(B, S if known else max_length)
        kinds.append(type(cache))

        def one(position, context, cache):
            context, _, cache = layer.step(query[:, position], cache, position)
            return position + 1, context, cache

        _, context, cache = keras.ops.while_loop(
            lambda position, context, cache: position < max_length,
            one,
            (0, tf.zeros_like(query[:, 0]), cache),
        )
        return context, cache

    length = tf.TensorSpec([], "int32")
    spec = tf.TensorSpec(query.shape)
    graph = tf.function(steps, input_signature=[spec, length])
    context, cache = graph(query, S)
    kind = caches.FixedCache if known else caches.GrowingCache
    assert kinds == [kind] and type(cache) is kind
    assert cache.key.shape == (B, HEADS, S, HEAD_DIM)
    expected, _ = layer(query, use_causal_mask=True)
    np.testing.assert_allclose(context, expected[:, -1], atol=1e-5)


def test_a_cache_keeps_its_kind_in_another_graph(self_attention):
    """What a graph forgets of a shape does not change how a step writes."""
    layer, query = self_attention
    spec = tf.TensorSpec([B, HEADS, None, HEAD_DIM])
    cache = layer.initial_cache(B, S)

    @tf.function(input_signature=[tf.TensorSpec([B, QUERY_DIM]), spec, spec])
    def step(query, key, value):
        cache = caches.FixedCache(key=key, value=value)
        return layer.step(query, cache, position=0)

    expected, _, _ = layer.step(query[:, 0], cache, position=0)
    context, _, cache = step(query[:, 0], cache.key, cache.value)
    np.testing.assert_allclose(context, expected, atol=1e-6)
    assert cache.key.shape == (B, HEADS, S, HEAD_DIM)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_steps_in_mixed_precision(self_attention, dtype):
    """Outside of `call` nothing casts the weights unless the layer does."""
    layer, query = self_attention
    context, _ = layer(query, use_causal_mask=True)
    mixed = layers.MultiHeadAttention(HEADS, HEAD_DIM, dtype=f"mixed_{dtype}")
    mixed.build(query.shape)
    mixed.set_weights(layer.get_weights())
    query = tf.cast(query, dtype)
    cache = mixed.initial_cache(B, S)
    for t in range(S):
        step_context, _, cache = mixed.step(query[:, t], cache, position=t)
        assert step_context.dtype == cache[0].dtype == dtype
    np.testing.assert_allclose(
        tf.cast(step_context, "float32"),
        context[:, -1],
        rtol=0.02,
        atol=0.1,
    )


@pytest.mark.parametrize("has_key", [True, False])
def test_projected_once_equals_call(arrays, mask_arrays, has_key):
    query, value = arrays["query"], arrays["value"]
    key = arrays["key"] if has_key else None
    mask = layers.combine_masks(**mask_arrays)
    layer = layers.MultiHeadAttention(HEADS, HEAD_DIM)
    context, weights = layer(query, value, key, **mask_arrays)
    projected = layer.project(value, key)
    for t in range(T):
        step_context, step_weights = layer.attend(
            query[:, t : t + 1], *projected, mask=mask[:, t : t + 1]
        )
        np.testing.assert_allclose(step_context[:, 0], context[:, t], atol=1e-5)
        np.testing.assert_allclose(
            step_weights[:, :, 0], weights[:, :, t], atol=1e-5
        )
        one_context, one_weights = layer.attend_one(
            query[:, t], *projected, mask=mask[:, t]
        )
        np.testing.assert_allclose(one_context, context[:, t], atol=1e-5)
        np.testing.assert_allclose(one_weights, weights[:, :, t], atol=1e-5)


def test_dropout_acts_in_training_only(arrays):
    layer = layers.MultiHeadAttention(HEADS, HEAD_DIM, dropout=0.5)
    still, weights = layer(**arrays)
    np.testing.assert_array_equal(layer(**arrays)[0], still)
    noisy, kept = layer(**arrays, training=True)
    assert not np.allclose(noisy, still)
    # What is returned is the distribution before dropout.
    np.testing.assert_allclose(kept, weights, atol=1e-6)


def test_dropout_on_the_weights_has_the_right_mean():
    layer = layers.MultiHeadAttention(1, 1, dropout=0.5, use_bias=False)
    query = np.ones((997, 1, 1), "float32")
    layer.build(query.shape)
    layer.set_weights([np.ones((1, 1))] * 4)
    context, _ = layer(query, training=True)
    assert set(np.unique(context)) == {0.0, 2.0}
    assert abs(np.mean(context) - 1) < 0.15


@pytest.mark.parametrize("lengths", [(1, 5), (5, 3)])
def test_causal_attention_needs_as_many_keys_as_queries(lengths):
    query, value = (np.ones((2, n, 8), "float32") for n in lengths)
    layer = layers.MultiHeadAttention(2, 4)
    with pytest.raises(ValueError, match=f"{lengths[1]} keys, {lengths[0]} q"):
        layer(query, value, use_causal_mask=True)


def test_the_two_return_shapes_are_computed():
    layer = layers.MultiHeadAttention(HEADS, HEAD_DIM)
    assert layer.compute_output_shape(
        (B, T, QUERY_DIM), (B, S, VALUE_DIM), (B, S, KEY_DIM)
    ) == ((B, T, QUERY_DIM), (B, HEADS, T, S))


@pytest.mark.parametrize(("num_heads", "key_dim"), [(0, 11), (3, 0)])
def test_sizes_must_be_positive(num_heads, key_dim):
    message = f"Received: num_heads={num_heads}, key_dim={key_dim}"
    with pytest.raises(ValueError, match=message):
        multi_head_attention.MultiHeadAttention(num_heads, key_dim)


@pytest.mark.parametrize("num_key_value_heads", [1, 2, 6])
def test_shared_keys_and_values_equal_those_of_keras(
    rng, randomize, num_key_value_heads
):
    query, key, value = (
        rng.normal(size=(B, length, dim)).astype("float32")
        for length, dim in ((T, QUERY_DIM), (S, KEY_DIM), (S, VALUE_DIM))
    )
    attention_mask = rng.random((B, T, S)) < 0.7
    attention_mask[..., 0] = True
    layer = layers.MultiHeadAttention(
        6, HEAD_DIM, num_key_value_heads=num_key_value_heads
    )
    layer(query, value, key)
    randomize(layer)
    other = keras.layers.GroupQueryAttention(HEAD_DIM, 6, num_key_value_heads)
    other.build(query.shape, value.shape, key.shape)
    for name in ("query", "key", "value", "output"):
        theirs = getattr(other, f"_{name}_dense")
        ours = [getattr(layer, f"{name}_{part}") for part in ("kernel", "bias")]
        theirs.set_weights(
            [
                weight.numpy().reshape(their.shape)
                for weight, their in zip(ours, theirs.weights, strict=True)
            ]
        )
    context, weights = layer(query, value, key, attention_mask=attention_mask)
    expected = other(
        query,
        value,
        key,
        attention_mask=attention_mask,
        return_attention_scores=True,
    )
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    assert weights.shape == (B, 6, T, S)
    np.testing.assert_allclose(
        weights, np.reshape(expected[1], weights.shape), atol=1e-5
    )


@pytest.mark.parametrize(
    "positions", [None, layers.RotaryPositions, layers.LinearBias]
)
def test_a_cache_of_shared_heads_is_smaller_and_steps_equal_call(
    rng, randomize, positions
):
    query = rng.normal(size=(B, S, QUERY_DIM)).astype("float32")
    layer = layers.MultiHeadAttention(
        6, 4, positions=positions and positions(), num_key_value_heads=2
    )
    layer.build(query.shape)
    randomize(layer)
    expected, _ = layer(query, use_causal_mask=True)
    cache = layer.initial_cache(B, S)
    assert cache.key.shape == cache.value.shape == (B, 2, S, 4)
    for position in range(S):
        context, weights, cache = layer.step(
            query[:, position], cache, position
        )
        assert weights.shape == (B, 6, S)
        np.testing.assert_allclose(context, expected[:, position], atol=1e-5)


def test_shared_heads_have_fewer_weights():
    layer = layers.MultiHeadAttention(6, HEAD_DIM, num_key_value_heads=2)
    layer.build((B, S, QUERY_DIM))
    kernels = QUERY_DIM * HEAD_DIM * (6 + 2 + 2 + 6)
    assert layer.count_params() == kernels + HEAD_DIM * (6 + 2 + 2) + QUERY_DIM


@pytest.mark.parametrize("num_key_value_heads", [0, 4, 12])
def test_heads_share_keys_evenly(num_key_value_heads):
    with pytest.raises(ValueError, match="must divide `num_heads`"):
        layers.MultiHeadAttention(6, 4, num_key_value_heads=num_key_value_heads)
