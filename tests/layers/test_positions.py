"""Layers of positions in multi-head attention: equations, shifts, the cache."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, S, QUERY_DIM, VALUE_DIM = 2, 3, 5, 7, 13
HEADS, HEAD_DIM = 3, 4
POSITIONS = {
    "rotary": lambda **kw: layers.RotaryPositions(**kw),
    "relative": lambda **kw: layers.RelativePositions(2, **kw),
    "bucketed": lambda **kw: layers.BucketedBias(8, 5, **kw),
    "bucketed_one_way": lambda **kw: layers.BucketedBias(
        4, 3, bidirectional=False, **kw
    ),
    "linear": lambda **kw: layers.LinearBias(**kw),
}
each_kind = pytest.mark.parametrize("kind", POSITIONS)


def new_attention(kind, **arguments):
    return layers.MultiHeadAttention(
        HEADS, HEAD_DIM, positions=POSITIONS[kind](), **arguments
    )


@pytest.fixture
def x(rng):
    return rng.normal(size=(B, S, QUERY_DIM)).astype("float32")


def turned(vector, position, base=10000.0):
    """Su et al. 2021: pairs are complex numbers, multiplied by e^(i m t)."""
    result = np.zeros(len(vector))
    for i in range(len(vector) // 2):
        angle = position * base ** (-2 * i / len(vector))
        pair = complex(vector[2 * i], vector[2 * i + 1])
        pair *= complex(math.cos(angle), math.sin(angle))
        result[2 * i : 2 * i + 2] = pair.real, pair.imag
    return result


def bucket(distance, num_buckets, max_distance, bidirectional):
    """Raffel et al. 2020, 2.1, as in the authors' code."""
    result = 0
    if bidirectional:
        num_buckets //= 2
        result = num_buckets if distance > 0 else 0
        far = abs(distance)
    else:
        far = max(-distance, 0)
    exact = num_buckets // 2
    if far < exact:
        return result + far
    growth = math.log(far / exact) / math.log(max_distance / exact)
    wide = exact + int(growth * (num_buckets - exact))
    return result + min(wide, num_buckets - 1)


def scores_and_added(kind, layer, q, k, h):
    """By query t and key s: the score, and what is added to the value."""
    scores = np.zeros((len(q), len(k)))
    added = np.zeros((len(q), len(k), HEAD_DIM))
    for t in range(len(q)):
        for s in range(len(k)):
            distance = s - t
            if kind == "rotary":
                score = turned(q[t], t) @ turned(k[s], s)
                scores[t, s] = score / math.sqrt(HEAD_DIM)
                continue
            key, bias = k[s], 0.0
            if kind == "relative":
                row = min(max(distance, -2), 2) + 2
                key = key + layer.key_table.numpy()[row]
                added[t, s] = layer.value_table.numpy()[row]
            elif kind == "bucketed":
                bias = layer.bias_table.numpy()[bucket(distance, 8, 5, True), h]
            elif kind == "bucketed_one_way":
                row = bucket(distance, 4, 3, False)
                bias = layer.bias_table.numpy()[row, h]
            else:
                # Three heads: two of a power of two, one in between.
                bias = -abs(distance) * (1 / 16, 1 / 256, 1 / 4)[h]
            scores[t, s] = q[t] @ key / math.sqrt(HEAD_DIM) + bias
    return scores, added


@each_kind
def test_equals_the_equation(kind, x, rng, randomize):
    value = rng.normal(size=(B, S, VALUE_DIM)).astype("float32")
    query = x[:, :T]
    mask = np.arange(S) < np.array([[S], [S - 2]])
    layer = new_attention(kind)
    layer(query=query, value=value)
    randomize(layer)
    context, weights = layer(query=query, value=value, padding_mask=mask)
    w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o = (
        getattr(layer, f"{name}_{part}").numpy()
        for name in ("query", "key", "value", "output")
        for part in ("kernel", "bias")
    )
    for b in range(B):
        heads = []
        for h in range(HEADS):
            own = slice(h * HEAD_DIM, (h + 1) * HEAD_DIM)
            scores, added = scores_and_added(
                kind,
                layer.positions,
                query[b] @ w_q[:, own] + b_q[own],
                value[b] @ w_k[:, own] + b_k[own],
                h,
            )
            e = np.exp(scores) * mask[b]
            expected = e / e.sum(axis=-1, keepdims=True)
            np.testing.assert_allclose(weights[b, h], expected, atol=1e-5)
            heads.append(expected @ (value[b] @ w_v[:, own] + b_v[own]))
            heads[-1] += np.einsum("ts,tsd->td", expected, added)
        joined = np.concatenate(heads, axis=-1) @ w_o + b_o
        np.testing.assert_allclose(context[b], joined, atol=1e-4)


def attend_at(layer, x, shift):
    """Self-attention of tokens that stand `shift` places further on."""
    heads = [
        layer._split_heads(layer._linear(x, kernel, bias))
        for kernel, bias in (
            (layer.query_kernel, layer.query_bias),
            (layer.key_kernel, layer.key_bias),
            (layer.value_kernel, layer.value_bias),
        )
    ]
    places = shift + keras.ops.arange(x.shape[1])
    return layer.positions.attend(
        query=layer.positions.rotate(heads[0], places),
        key=layer.positions.rotate(heads[1], places),
        value=heads[2],
        query_positions=places,
        key_positions=places,
    )


@each_kind
@pytest.mark.parametrize("shift", [1, 29, 500])
def test_a_shift_of_all_changes_nothing(kind, shift, x, randomize):
    layer = new_attention(kind)
    layer(x)
    randomize(layer)
    for got, want in zip(
        attend_at(layer, x, shift), attend_at(layer, x, 0), strict=True
    ):
        # At 500 the angle itself has an error of 3e-5 in float32.
        tolerance = 1e-5 if shift < 100 else 1e-4
        np.testing.assert_allclose(got, want, atol=tolerance)


@each_kind
def test_order_matters_as_it_does_not_without_positions(kind, x, randomize):
    def moves(layer):
        layer(x)
        randomize(layer)
        there = layer(x[:, ::-1])[0].numpy()[:, ::-1]
        return np.abs(there - layer(x)[0]).max()

    assert moves(layers.MultiHeadAttention(HEADS, HEAD_DIM)) < 1e-5
    if kind != "linear":  # It is as far back as it is forth.
        assert moves(new_attention(kind)) > 1e-3
    first = new_attention(kind)(x)[0].numpy()
    assert np.abs(first[:, 0] - new_attention(kind)(x)[0][:, 0]).max() > 0


@each_kind
@pytest.mark.parametrize("max_length", [S, S + 2])
def test_steps_with_a_cache_equal_call(kind, max_length, x, randomize):
    layer = new_attention(kind)
    layer(x)
    randomize(layer)
    context, weights = layer(x, use_causal_mask=True)
    cache = layer.initial_cache(B, max_length)
    for t in range(S):
        one, one_weights, cache = layer.step(x[:, t], cache, position=t)
        np.testing.assert_allclose(one, context[:, t], atol=1e-5)
        np.testing.assert_allclose(
            one_weights[..., :S], weights[:, :, t], atol=1e-5
        )


@each_kind
def test_steps_with_a_growing_cache_equal_call(kind, x, randomize):
    layer = new_attention(kind)
    layer(x)
    randomize(layer)

    @tf.function(input_signature=[tf.TensorSpec([], "int32")])
    def steps(max_length):
        def one(position, context, cache):
            context, _, cache = layer.step(
                tf.gather(x, position, axis=1), cache, position
            )
            return position + 1, context, cache

        return keras.ops.while_loop(
            lambda position, context, cache: position < max_length,
            one,
            (0, tf.zeros_like(x[:, 0]), layer.initial_cache(B, max_length)),
        )[1]

    expected = layer(x, use_causal_mask=True)[0][:, -1]
    np.testing.assert_allclose(steps(tf.constant(S)), expected, atol=1e-5)


@each_kind
@pytest.mark.fast_for("rotary")
def test_projected_memory_equals_call(kind, x, randomize):
    layer = new_attention(kind)
    layer.build(x.shape)
    randomize(layer)
    expected, _ = layer(query=x[:, :T], value=x)
    key, value = layer.project(x)
    context, _ = layer.attend(query=x[:, :T], key=key, value=value)
    np.testing.assert_allclose(context, expected, atol=1e-5)
    for t in range(T):
        one, _ = layer.attend_one(
            query=x[:, t], key=key, value=value, position=t
        )
        np.testing.assert_allclose(one, expected[:, t], atol=1e-5)
    with pytest.raises(ValueError, match="Received: position=None"):
        layer.attend_one(query=x[:, 0], key=key, value=value)


@each_kind
def test_config_and_file_round_trip(kind, x, randomize, save_and_load):
    layer = new_attention(kind, name="its_name")
    outputs = layer(keras.Input((None, QUERY_DIM)))
    clone = layers.MultiHeadAttention.from_config(layer.get_config())
    assert clone.get_config() == layer.get_config()
    assert type(clone.positions) is type(layer.positions)
    assert clone.positions is not layer.positions
    clone(x)
    randomize(layer)
    clone.set_weights(layer.get_weights())
    np.testing.assert_array_equal(clone(x)[0], layer(x)[0])
    inputs = outputs[0]._keras_history.operation.input
    model, loaded = save_and_load(inputs, outputs)
    for got, want in zip(loaded(x), model(x), strict=True):
        np.testing.assert_array_equal(got, want)


@each_kind
def test_every_weight_has_a_gradient(kind, x, randomize):
    layer = new_attention(kind)
    layer(x)
    randomize(layer)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x)[0] ** 2)
    own = layer.positions.trainable_weights
    assert len(own) == {"relative": 2, "rotary": 0, "linear": 0}.get(kind, 1)
    for gradient in tape.gradient(loss, [weight.value for weight in own]):
        assert np.any(tf.convert_to_tensor(gradient))


def test_rotary_equals_keras_hub(rng):
    """Theirs pairs feature i with i + d / 2, the paper's with i + 1."""
    keras_hub = pytest.importorskip("keras_hub")
    heads = rng.normal(size=(B, HEADS, 37, 14)).astype("float32")
    order = [*range(0, 14, 2), *range(1, 14, 2)]
    theirs = keras_hub.layers.RotaryEmbedding(sequence_axis=2)(
        heads[..., order]
    )
    ours = layers.RotaryPositions().rotate(heads, np.arange(37))
    np.testing.assert_allclose(ours.numpy()[..., order], theirs, atol=1e-5)


@pytest.mark.parametrize("num_heads", [1, 4, 6, 12])
def test_alibi_equals_keras_hub(rng, num_heads):
    """Under a causal mask: their bias differs by a constant for each row."""
    keras_hub = pytest.importorskip("keras_hub")
    scores = rng.normal(size=(B, num_heads, S, S)).astype("float32")
    query = np.zeros((B, num_heads, S, HEAD_DIM), "float32")
    bias = layers.LinearBias().bias(query, np.arange(S), np.arange(S))
    ours = scores + bias
    theirs = keras_hub.layers.AlibiBias()(scores)
    mask = np.tri(S, dtype=bool)
    np.testing.assert_allclose(
        layers.masked_softmax(ours, mask),
        layers.masked_softmax(theirs, mask),
        atol=1e-6,
    )


def test_alibi_slopes_are_the_papers():
    """Section 3 has those of 8 heads."""
    assert layers.alibi_slopes(8) == [1 / 2**i for i in range(1, 9)]
    sixteen = layers.alibi_slopes(16)
    np.testing.assert_allclose(sixteen[:2], [2**-0.5, 0.5])


@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_equal_keras_hub(bidirectional):
    t5 = pytest.importorskip("keras_hub.src.models.t5.t5_multi_head_attention")
    apart = np.arange(-300, 301, dtype="int32")
    ours = layers.BucketedBias(32, 128, bidirectional).buckets(apart)
    theirs = t5.T5MultiHeadAttention._relative_position_bucket(
        apart, bidirectional, 32, 128
    )
    np.testing.assert_array_equal(ours, theirs)
    assert {*ours.numpy()} == {*range(32)} - {16 if bidirectional else 32}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: layers.RotaryPositions(base=1), "Received: base=1"),
        (lambda: layers.RelativePositions(0), "Received: max_distance=0"),
        (lambda: layers.BucketedBias(3), "Received: num_buckets=3"),
        (lambda: layers.BucketedBias(32, 8), "max_distance=8"),
        (lambda: layers.LearnedPositions(0), "Received: max_length=0"),
        (
            lambda: layers.MultiHeadAttention(
                2, 5, positions=layers.RotaryPositions()
            )(np.zeros((1, 2, 3))),
            "Received: key_dim=5",
        ),
    ],
)
def test_wrong_arguments_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_layer_without_a_source_takes_positions():
    x = np.random.default_rng(1).normal(size=(2, 5, 14)).astype("float32")
    layer = layers.SelfAttentionLayer(7, 11, positions=layers.RotaryPositions())
    outputs = np.array(layer(x, use_causal_mask=True)[0])
    plain = layers.SelfAttentionLayer(7, 11)
    plain.build(x.shape)
    plain.set_weights(layer.get_weights())
    # Only the first position sees nothing but itself.
    different = np.abs(plain(x, use_causal_mask=True)[0] - outputs).max(axis=2)
    assert (different[:, 0] < 1e-6).all() and (different[:, 1:] > 1e-4).all()
    cache = layer.initial_cache(batch_size=2, max_length=5)
    for place in range(5):
        output, _, cache = layer.step(x[:, place], cache, place)
        np.testing.assert_allclose(output, outputs[:, place], atol=1e-5)


TOKENS, BACK, LENGTH = 10, 3, 24


def copies(count, length, seed):
    """Random ids [B, T], those three places back, and which of these exist."""
    ids = np.random.default_rng(seed).integers(TOKENS, size=(count, length))
    counts = np.broadcast_to(np.arange(length) >= BACK, ids.shape)
    return ids, np.roll(ids, BACK, axis=1), counts.astype("float32")


def right(model, length):
    """The share of right copies; of longer texts, in their second half."""
    ids, labels, _ = copies(100, length, seed=2)
    first = BACK if length == LENGTH else length // 2
    found = np.argmax(model(ids), axis=-1)
    return np.mean((found == labels)[:, first:])


# The argument that takes the positions, the positions, and between which bounds
# the share of right copies is at twice the length of training.
EXTRAPOLATION = {
    # New places: a blind guess is right in 0.1.
    "learned": ("added", lambda: layers.LearnedPositions(2 * LENGTH), 0, 0.3),
    "sinusoids": ("added", layers.PositionEncoding, 0, 0.5),
    # Known distances.
    "relative": ("positions", lambda: layers.RelativePositions(8), 0.97, 1),
    "rotary": ("positions", layers.RotaryPositions, 0.97, 1),
    # Known distances, but for the last bucket.
    "bucketed": (
        "positions",
        lambda: layers.BucketedBias(16, 32, bidirectional=False),
        0.8,
        1,
    ),
}


def trained_to_copy(added=None, positions=None):
    """One causal layer after training at `LENGTH`, as in chapter 13."""
    keras.utils.set_random_seed(1)
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(TOKENS, 32)(inputs)
    x = x if added is None else added(x)
    layer = layers.TransformerEncoderLayer(
        num_heads=2, intermediate_dim=64, norm_first=True, positions=positions
    )
    x, _ = layer(x, use_causal_mask=True)
    model = keras.Model(inputs, keras.layers.Dense(TOKENS)(x))
    epochs, batches, batch_size = 10, 100, 64
    schedule = keras.optimizers.schedules.CosineDecay(3e-3, epochs * batches)
    model.compile(
        keras.optimizers.Adam(schedule),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    ids, labels, counts = copies(batch_size * batches, LENGTH, seed=1)
    model.fit(
        ids,
        labels,
        sample_weight=counts,
        batch_size=batch_size,
        epochs=epochs,
        verbose=0,
    )
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXTRAPOLATION)
def test_what_knows_distances_alone_copies_in_longer_texts(kind):
    argument, positions, least, most = EXTRAPOLATION[kind]
    model = trained_to_copy(**{argument: positions()})
    assert right(model, LENGTH) > 0.97
    assert least <= right(model, 2 * LENGTH) <= most


@pytest.mark.slow
def test_without_positions_a_copy_is_a_guess_from_a_bag():
    """Any token before has the same chance: the most frequent is best."""
    ids, _, _ = copies(100, LENGTH, seed=2)
    best = np.mean(
        [
            np.bincount(text[:place]).max() / place
            for text in ids
            for place in range(BACK, LENGTH)
        ]
    )
    # Three standard deviations of 2,100 guesses.
    assert abs(right(trained_to_copy(), LENGTH) - best) < 0.03


@pytest.mark.slow
def test_a_bias_that_falls_with_the_distance_is_as_bad_in_longer_texts():
    """It cannot prefer the third word back to the second."""
    model = trained_to_copy(positions=layers.LinearBias())
    shares = [right(model, length) for length in (LENGTH, 2 * LENGTH)]
    assert max(shares) < 0.5
    assert abs(shares[0] - shares[1]) < 0.1


def test_added_context_needs_the_width_of_a_head():
    weights = np.full((B, HEADS, T, S), 1 / S, "float32")
    with pytest.raises(ValueError, match="has no weights yet. Call or build"):
        layers.RelativePositions(2).added_context(
            weights, np.arange(T), np.arange(S)
        )
