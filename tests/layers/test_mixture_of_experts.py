"""The sparsely gated mixture of experts: gates, losses, work."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers
from keras_attention.layers import mixture_of_experts

B, T, D, EXPERTS, INTERMEDIATE, CHOSEN = 2, 3, 7, 5, 11, 2


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def softplus(x):
    return np.log1p(np.exp(x))


@pytest.fixture
def x(rng):
    return rng.normal(size=(B, T, D)).astype("float32")


@pytest.fixture
def layer(x, randomize):
    layer = layers.MixtureOfExperts(EXPERTS, INTERMEDIATE, CHOSEN)
    layer.build(x.shape)
    return randomize(layer)


def keep_top_k(h, k):
    """Equation 5."""
    kept = np.full(len(h), -np.inf)
    for i in np.argsort(h)[-k:]:
        kept[i] = h[i]
    return kept


@pytest.mark.parametrize("chosen", [1, 2, 5])
def test_equals_the_equations(chosen, x, randomize):
    """Equations 1 and 3, token by token and expert by expert."""
    layer = layers.MixtureOfExperts(EXPERTS, INTERMEDIATE, chosen)
    layer.build(x.shape)
    w_g, _, w_1, b_1, w_2, b_2 = randomize(layer).get_weights()
    gates = layer.gates(x)
    expected = np.zeros(x.shape)
    for b in range(B):
        for t in range(T):
            g = softmax(keep_top_k(x[b, t] @ w_g, chosen))
            assert (g > 0).sum() == chosen
            np.testing.assert_allclose(gates[b, t], g, atol=1e-6)
            for i in range(EXPERTS):
                hidden = np.maximum(0, x[b, t] @ w_1[i] + b_1[i, 0])
                expected[b, t] += g[i] * (hidden @ w_2[i] + b_2[i, 0])
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_all_experts_without_noise_are_the_dense_mixture(x, randomize):
    """k = n: feed-forward layers of Keras, weighted by a plain softmax."""
    layer = layers.MixtureOfExperts(EXPERTS, INTERMEDIATE, EXPERTS, 0.1, 0.1)
    layer.build(x.shape)
    w_g, _, *experts = randomize(layer).get_weights()
    dense = keras.Sequential(
        [keras.layers.Dense(INTERMEDIATE, "relu"), keras.layers.Dense(D)]
    )
    dense.build(x.shape)
    outputs = []
    for w_1, b_1, w_2, b_2 in zip(*experts, strict=True):
        dense.set_weights([w_1, b_1[0], w_2, b_2[0]])
        outputs.append(dense(x))
    weights = keras.ops.softmax(x @ w_g)
    expected = np.einsum("nbtd,btn->btd", outputs, weights)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)
    layer(x, training=True)  # Each expert has each token: the load is even.
    importance = keras.ops.sum(weights, axis=(0, 1))
    assert 0 < layer.losses[0] and np.ptp(importance) > 0.1


def test_noise_is_that_of_the_equation_and_acts_in_training_only(x, layer):
    """Equation 4: of 4,000 copies of a token, as many choose each expert."""
    token = np.repeat(x[:1, :1], 4000, axis=0)
    still = layer(token).numpy()
    np.testing.assert_allclose(still, still[:1].repeat(4000, 0), atol=1e-6)
    assert layer.losses == []
    w_g, w_noise, _, b_1, _, b_2 = layer.get_weights()
    # Experts that say their own number: the outputs tell who was chosen.
    layer.expand_kernel.assign(np.zeros((EXPERTS, D, INTERMEDIATE)))
    layer.expand_bias.assign(np.zeros(b_1.shape))
    layer.contract_kernel.assign(np.zeros((EXPERTS, INTERMEDIATE, D)))
    layer.contract_bias.assign(np.eye(EXPERTS, D)[:, None])
    gates = layer(token, training=True)[:, 0, :EXPERTS].numpy()
    np.testing.assert_array_equal((gates > 0).sum(axis=1), CHOSEN)
    np.testing.assert_allclose(gates.sum(axis=1), 1, atol=1e-5)
    generator = np.random.default_rng(5)
    noise = generator.normal(size=(40_000, EXPERTS))
    h = x[0, 0] @ w_g + noise * softplus(x[0, 0] @ w_noise)
    chosen = np.argsort(h, axis=1)[:, -CHOSEN:]
    expected = np.bincount(chosen.ravel(), minlength=EXPERTS) / len(noise)
    np.testing.assert_allclose((gates > 0).mean(axis=0), expected, atol=0.03)
    kept = np.take_along_axis(h, chosen, axis=1)
    kept = np.exp(kept) / np.exp(kept).sum(axis=1, keepdims=True)
    means = np.bincount(chosen.ravel(), kept.ravel()) / len(noise)
    np.testing.assert_allclose(gates.mean(axis=0), means, atol=0.03)


@pytest.mark.parametrize(
    "values, expected",
    [
        ([3, 3, 3], 0),
        ([1, 3], 1 / 4),  # Mean 2, standard deviation 1.
        ([0, 0, 6], 2),  # One expert has everything: n - 1.
        ([0, 0, 0], 0),
    ],
)
def test_variation_of_a_known_load(values, expected):
    variation = mixture_of_experts.squared_variation(np.float32(values))
    np.testing.assert_allclose(variation, expected, atol=1e-6)


@pytest.mark.parametrize("chosen", [1, 2, 4])
def test_choice_probability_is_how_often_a_new_noise_chooses(chosen, rng):
    """Appendix A: the noise of one expert is drawn again, the others' stay."""
    logits = rng.normal(size=(T, EXPERTS)).astype("float32")
    scale = softplus(rng.normal(size=(T, EXPERTS))).astype("float32")
    noisy = (logits + rng.normal(size=logits.shape) * scale).astype("float32")
    got = mixture_of_experts.choice_probability(logits, scale, noisy, chosen)
    for t in range(T):
        for i in range(EXPERTS):
            h = np.repeat(noisy[t : t + 1], 20_000, axis=0)
            h[:, i] = logits[t, i] + rng.normal(size=len(h)) * scale[t, i]
            chooses = np.argsort(h, axis=1)[:, -chosen:] == i
            # Four standard deviations of a mean of 20,000.
            np.testing.assert_allclose(
                got[t, i], chooses.any(axis=1).mean(), atol=0.015
            )


def test_all_are_chosen_where_there_are_no_others():
    logits = np.ones((T, EXPERTS), "float32")
    every = mixture_of_experts.choice_probability(
        logits, logits, logits, EXPERTS
    )
    np.testing.assert_array_equal(every, 1)


def replay(layer, shape):
    """The noise that the layer draws next."""
    state = keras.ops.copy(layer.seed_generator.state)
    noise = keras.random.normal(shape, seed=layer.seed_generator)
    layer.seed_generator.state.assign(state)
    return np.array(noise)


@pytest.mark.parametrize("masked", [False, True])
def test_losses_are_those_of_the_equations(masked, x, layer):
    """Equations 6, 7, 8 to 11; masked tokens are in no sum."""
    mask = np.array([[1, 1, 0], [1, 0, 0]], bool) if masked else None
    w_g, w_noise = layer.get_weights()[:2]
    noise = replay(layer, (B * T, EXPERTS))
    layer(x, padding_mask=mask, training=True)
    importance, load = np.zeros(EXPERTS), np.zeros(EXPERTS)
    for n, token in enumerate(x.reshape(-1, D)):
        if masked and not mask.ravel()[n]:
            continue
        scale = softplus(token @ w_noise)
        h = token @ w_g + noise[n] * scale
        importance += softmax(keep_top_k(h, CHOSEN))
        for i in range(EXPERTS):
            others = np.sort(np.delete(h, i))
            z = (token @ w_g[:, i] - others[-CHOSEN]) / scale[i]
            load[i] += (1 + math.erf(z / math.sqrt(2))) / 2
    expected = 0.1 * (importance.std() / importance.mean()) ** 2
    expected += 0.1 * (load.std() / load.mean()) ** 2
    assert len(layer.losses) == 1
    np.testing.assert_allclose(layer.losses[0], expected, rtol=1e-4)


def test_masked_tokens_change_nothing_and_get_nothing(x, layer):
    mask = np.array([[1, 1, 0], [1, 0, 0]], bool)
    outputs = layer(x, padding_mask=mask).numpy()
    assert (outputs[~mask] == 0).all()
    np.testing.assert_allclose(outputs[mask], layer(x)[mask], atol=1e-6)
    losses = []
    for padding in (x, np.where(mask[..., None], x, 99).astype("float32")):
        state = keras.ops.copy(layer.seed_generator.state)
        layer(padding, padding_mask=mask, training=True)
        losses.append(float(layer.losses[0]))
        layer.seed_generator.state.assign(state)
    assert losses[0] == losses[1] > 0
    nothing = np.zeros((B, T), bool)
    layer(x, padding_mask=nothing, training=True)
    assert layer.losses[0] == 0


def test_a_mask_of_keras_is_taken(layer):
    token_ids = np.array([[1, 2, 0], [3, 0, 0]])
    embedding = keras.layers.Embedding(4, D, mask_zero=True)
    embedded = embedding(token_ids)
    outputs = layer(embedded)
    assert (outputs.numpy()[token_ids == 0] == 0).all()
    with pytest.raises(ValueError, match="boolean"):
        layer(embedded, padding_mask=np.zeros((2, 3), "float32"))


@pytest.mark.parametrize("num_choices", [0, 1, 4, 5, 6, 60])
@pytest.mark.parametrize("favourite", [False, True])
def test_each_choice_has_a_slot_in_a_block_of_its_expert(
    num_choices, favourite, rng
):
    choices = rng.integers(EXPERTS, size=num_choices).astype("int32")
    choices = np.full_like(choices, 3) if favourite else choices
    slots, experts, size = mixture_of_experts.blocks_of_choices(
        keras.ops.convert_to_tensor(choices), EXPERTS
    )
    slots, experts = np.array(slots), np.array(experts)
    assert len(set(slots)) == len(slots)
    np.testing.assert_array_equal(experts[slots // size], choices)
    assert len(experts) * size <= 2 * num_choices


def multiply_adds(layer, num_tokens):
    """Counts those of all products of matrices in the layer's graph."""
    call = tf.function(layer).get_concrete_function(
        tf.TensorSpec([num_tokens, D])
    )
    count = 0
    for operation in call.graph.get_operations():
        if "MatMul" in operation.type:
            left, right = (one.shape for one in operation.inputs)
            count += math.prod(left) * right[-1]
    return count


def test_work_does_not_grow_with_the_experts():
    """The gates' work does: it is small beside that of wide experts."""
    tokens, hidden_dim = 120, 1024
    one = tokens * 2 * D * hidden_dim  # Each token by one expert.
    for num_experts in (4, 16, 64):
        layer = layers.MixtureOfExperts(num_experts, hidden_dim, CHOSEN)
        layer.build((None, D))
        assert layer.count_params() > num_experts * 2 * D * hidden_dim
        work = multiply_adds(layer, tokens) - tokens * D * num_experts
        assert CHOSEN * one <= work <= 2 * CHOSEN * one
    # A search has few tokens: no row more than the choices.
    assert multiply_adds(layer, 1) - D * 64 == CHOSEN * 2 * D * hidden_dim


def test_every_weight_learns_in_a_graph_of_unknown_shapes(x, layer):
    @tf.function(input_signature=[tf.TensorSpec([None, None, D])])
    def gradients(x):
        with tf.GradientTape() as tape:
            outputs = layer(x, training=True)
            loss = tf.reduce_sum(outputs**2) + sum(layer.losses)
        sources = [w.value for w in layer.trainable_weights]
        found = tape.gradient(loss, sources)
        return [tf.convert_to_tensor(gradient) for gradient in found]

    for batch in (x, x[:1, :2], x[:0]):
        for gradient in gradients(batch):
            assert np.isfinite(gradient).all()
            assert np.any(gradient) == (len(batch) > 0)


@pytest.mark.parametrize("numbers", [(4, 0, 2), (1, 8, 2), (4, 8, 0)])
def test_impossible_numbers_are_refused(numbers):
    with pytest.raises(ValueError, match="at least `num_chosen`. Received: "):
        layers.MixtureOfExperts(*numbers)
    with pytest.raises(ValueError, match="no weights yet"):
        layers.MixtureOfExperts(4, 8).gates(np.zeros((2, D)))


def chosen_by(layer, x):
    """How many tokens choose each expert."""
    return (np.array(layer.gates(x)) > 0).sum(axis=0)


@pytest.mark.parametrize("factors", [(0.1, 0.1), (0.1, 0), (0, 0.1), (0, 0)])
def test_the_losses_alone_make_busy_experts_share(factors, rng):
    """CV^2 of a count falls from 1 to 0.03; without losses it stays."""
    x = rng.normal(size=(256, D)).astype("float32")
    x[:, 0] = 1
    layer = layers.MixtureOfExperts(EXPERTS, 1, CHOSEN, *factors)
    layer.build(x.shape)
    kernel = 0.3 * rng.normal(size=(D, EXPERTS))
    kernel[0] = [3, 2, 0, 0, 0]  # Nearly all choose the first two.
    layer.gate_kernel.assign(kernel)
    gates = [layer.gate_kernel, layer.noise_kernel]
    optimizer = keras.optimizers.Adam(0.05)
    optimizer.build(gates)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            layer(x, training=True)
            loss = layer.losses[0]
        sources = [gate.value for gate in gates]
        optimizer.apply(tape.gradient(loss, sources, None, "zero"), gates)

    before = chosen_by(layer, x)
    assert before.var() / before.mean() ** 2 > 0.7
    for _ in range(60):
        step()
    after = chosen_by(layer, x)
    if any(factors):
        assert after.var() / after.mean() ** 2 < 0.05
    else:
        np.testing.assert_array_equal(after, before)


def purity(chosen, regions):
    """The share of tokens whose expert has most of its tokens in their region.

    It is 1 where no expert serves two regions.
    """
    kept = 0
    for expert in np.unique(chosen):
        kept += np.bincount(regions[chosen == expert]).max()
    return kept / len(chosen)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_region_of_a_function_gets_an_expert_of_its_own(seed):
    """Four affine functions, one a quadrant, and four affine experts.

    With seed 3, which is left out, two experts end sharing two regions.
    """
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    matrices = 2 * rng.normal(size=(4, 4, 4))
    offsets = 2 * rng.normal(size=(4, 4))
    x = rng.uniform(-1, 1, size=(4096, 4)).astype("float32")
    regions = 2 * (x[:, 0] > 0) + (x[:, 1] > 0)
    y = np.einsum("nd,ndo->no", x, matrices[regions]) + offsets[regions]
    layer = layers.MixtureOfExperts(4, 8, CHOSEN, activation="linear")
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    assert purity(np.zeros(len(x), int), regions) < 0.3  # One expert for all.
    model.fit(x, y, batch_size=128, epochs=40, verbose=0)
    gates = np.array(layer.gates(x))
    assert purity(gates.argmax(axis=1), regions) > 0.98
    importance = gates.sum(axis=0)
    assert importance.var() / importance.mean() ** 2 < 0.01
    # The best affine function of all regions.
    inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    rest = np.linalg.lstsq(inputs, y, rcond=None)[1].sum() / y.size
    assert model.evaluate(x, y, verbose=0) < rest / 5


# In the layers of the Transformer.

HEADS, WIDTH = 7, 14


def transformer_layer(layer_class, feed_forward=None, **options):
    return layer_class(HEADS, 1, feed_forward=feed_forward, **options)


def experts(**options):
    return layers.MixtureOfExperts(EXPERTS, INTERMEDIATE, CHOSEN, **options)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_hands_it_the_mask(norm_first, rng, randomize):
    x = rng.normal(size=(B, T, WIDTH)).astype("float32")
    mask = np.array([[1, 1, 0], [1, 0, 0]], bool)
    layer = transformer_layer(
        layers.TransformerEncoderLayer, experts(), norm_first=norm_first
    )
    layer.build(x.shape)
    randomize(layer)
    mixture = layer.feed_forward
    losses = []
    for padding in (x, np.where(mask[..., None], x, 9).astype("float32")):
        state = keras.ops.copy(mixture.seed_generator.state)
        layer(padding, padding_mask=mask, training=True)
        losses.append(float(layer.losses[0]))
        mixture.seed_generator.state.assign(state)
    assert losses[0] == pytest.approx(losses[1]) and losses[0] > 0
    layer(x, padding_mask=mask)
    assert layer.losses == []
    context, _ = layer.self_attention(
        query=layer.self_attention_residual.enter(x), padding_mask=mask
    )
    path = layer.feed_forward_residual
    y = layer.self_attention_residual.leave(x, context)
    expected = path.leave(y, mixture(path.enter(y), padding_mask=mask))
    np.testing.assert_allclose(
        layer(x, padding_mask=mask)[0], expected, atol=1e-5
    )


def test_steps_equal_call(rng, randomize):
    x = rng.normal(size=(B, T, WIDTH)).astype("float32")
    decoder = transformer_layer(layers.TransformerDecoderLayer, experts())
    alone = transformer_layer(layers.SelfAttentionLayer, experts())
    decoder(x, x), alone(x)
    for layer in (decoder, alone):
        randomize(layer)
    expected = [decoder(x, x)[0], alone(x, use_causal_mask=True)[0]]
    caches = [layer.initial_cache(B, T) for layer in (decoder, alone)]
    memory = decoder.project_memory(x)
    for t in range(T):
        first, _, caches[0] = decoder.step(x[:, t], memory, None, caches[0], t)
        second, _, caches[1] = alone.step(x[:, t], caches[1], t)
        np.testing.assert_allclose(first, expected[0][:, t], atol=1e-5)
        np.testing.assert_allclose(second, expected[1][:, t], atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_any_layer_of_one_input_may_take_its_place(norm_first, rng, randomize):
    """Keras's own layer, without `padding_mask` and `training`."""
    x = rng.normal(size=(B, T, WIDTH)).astype("float32")
    given = transformer_layer(
        layers.TransformerEncoderLayer,
        keras.layers.Dense(WIDTH, name="given"),
        norm_first=norm_first,
    )
    own = layers.TransformerEncoderLayer(HEADS, 11, norm_first=norm_first)
    given(x), own(x)
    assert own.get_config()["feed_forward"] is None
    randomize(given)
    clone = layers.TransformerEncoderLayer.from_config(given.get_config())
    clone(x)
    assert type(clone.feed_forward) is keras.layers.Dense
    clone.set_weights(given.get_weights())
    np.testing.assert_array_equal(clone(x)[0], given(x)[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*a `quantize` method")
@pytest.mark.parametrize(
    "feed_forward, changes",
    [(experts, False), (lambda: layers.FeedForward(11, "gelu"), True)],
)
def test_a_quantized_model_is_saved_and_loaded(
    feed_forward, changes, rng, randomize, tmp_path
):
    """The experts stay as they are: Keras quantizes its own layers alone."""
    x = rng.normal(size=(B, T, WIDTH)).astype("float32")
    inputs = keras.Input((T, WIDTH))
    layer = transformer_layer(layers.TransformerEncoderLayer, feed_forward())
    model = randomize(keras.Model(inputs, layer(inputs)[0]))
    before = model(x)
    model.quantize("int8")
    expected = model(x)
    assert (np.abs(expected - before).max() > 1e-4) == changes
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), expected)
