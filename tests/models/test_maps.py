"""Where each layer and head looks: every model of the catalogue."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention import layers
from keras_attention.models import catalog, ensemble

V = 23
SOURCE_IDS = np.array([[5, 3, 11, 13, 3], [17, 6, 3, 0, 0]], "int32")
TARGET_IDS = np.array([[2, 19, 5, 9, 4, 6], [2, 22, 4, 8, 7, 9]], "int32")
PAIR_IDS = np.array([[19, 5, 3], [22, 3, 0]], "int32")
# Columns of these sum to less, or to more, than 1.
NO_DISTRIBUTION = {("rnn_transducer", "lattice")}
NOWHERE = {"bytenet", "extended_neural_gpu", "diagonal_neural_gpu"}
NOWHERE |= {"rnn_encoder_decoder", "lstm_encoder_decoder"}
NOWHERE |= {"rnn_language_model", "char_cnn_language_model"}
LENGTHS = {"source": 5, "pair": 3, "target": 6, "input": 6, "slots": 13}
LENGTHS |= {"hops": 2, "places": 8}


def model_and_inputs(name, randomize):
    """A model with random weights, and what it reads."""
    model = tiny.create(name, V)
    if name == "vision_transformer":
        pixels = np.random.default_rng(0).normal(size=(2, 14, 2, 1))
        model(pixels)
        return model, {"image": np.float32(pixels)}
    model = randomize(model)
    if name in tiny.names("translation"):
        return model, {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}
    if name in tiny.names("language_modelling"):
        return model, TARGET_IDS
    texts = dict(zip(model.text_names, (SOURCE_IDS, PAIR_IDS), strict=False))
    return model, texts


def steps_of(name, model, inputs, monkeypatch):
    """What the cached steps give: name -> [layer or head, T, ...] each."""
    looks = {"cross": [], "reads": [], "target_writes": [], "decoder": []}
    stack = getattr(model, "decoder_layers", getattr(model, "stack", ()))
    for layer in stack:
        attention = getattr(layer, "self_attention", None)
        if attention is None:
            continue

        def step(step=attention.step, **arguments):
            context, weights, cache = step(**arguments)
            looks["decoder"].append(weights)  # [B, H, room]
            return context, weights, cache

        monkeypatch.setattr(attention, "step", step)
    length = TARGET_IDS.shape[1]
    if isinstance(inputs, dict):
        memory = model.encode(inputs["source_ids"])
        state = model.initial_state(memory, length)
    else:
        state = model.initial_state(2, length)
    for t in range(length):
        token_ids = TARGET_IDS[:, t]
        if name == "lstmn":
            x = model.embedding(token_ids)
            _, state, weights = model._advance(x, state)
            looks["decoder"].append(weights)
        elif isinstance(inputs, dict):
            _, state, weights = model.step(token_ids, memory, state)
            looks["cross"].append(weights)
        else:
            _, state = model.step(token_ids, state)
        if name == "neural_turing_machine":
            looks["reads"].append(state["read_weights"])
            looks["target_writes"].append(state["write_weights"])
    return {key: np.stack(one, 1) for key, one in looks.items() if one}


@pytest.mark.fast_for("transformer", "luong", "rnn_transducer", "t5", "gnmt")
@pytest.mark.parametrize("name", catalog.CATALOG)
def test_every_layer_and_head(name, randomize, monkeypatch):
    model, inputs = model_and_inputs(name, randomize)
    outputs, maps = model.call_with_maps(inputs)
    np.testing.assert_allclose(outputs, model(inputs), atol=1e-5)
    assert maps.keys() == model.maps.keys()
    assert (not maps) == (name in NOWHERE)
    real = {"source": SOURCE_IDS != 0, "pair": PAIR_IDS != 0}
    for key, weights in maps.items():
        weights, (rows, columns) = np.array(weights), model.maps[key]
        assert weights.dtype == "float32"
        assert weights.shape[0] == 2 and weights.ndim == 5
        lengths = LENGTHS | ({"hops": 1} if name == "bag_of_vectors" else {})
        assert weights.shape[3:] == (lengths[rows], lengths[columns])
        assert weights.min() >= 0 and weights.max() <= 1 + 1e-6
        # Not the rows of padding, nor the first of nothing but itself.
        shown = weights[0]
        if (name, key) not in NO_DISTRIBUTION and name != "lstmn":
            if (name, key) == ("intra_attention_summarizer", "decoder"):
                assert not shown[:, :, 0].any()
                shown = shown[:, :, 1:]
            np.testing.assert_allclose(shown.sum(-1), 1, atol=1e-5)
        if columns in real:
            hidden = ~real[columns][1]
            assert not weights[1][..., hidden].any()
        if (rows, columns) == ("target", "input"):
            assert not np.triu(weights, 1).any()
    if name in tiny.names("translation", "language_modelling"):
        steps = steps_of(name, model, inputs, monkeypatch)
        compare_with_steps(name, steps, maps)


def compare_with_steps(name, steps, maps):
    """The maps that the cached steps have, too."""
    for key in steps.keys() & maps.keys():
        ours, theirs = np.array(maps[key]), steps[key]
        if key == "decoder" and name != "lstmn":
            # All layers of each step: [B, T * L, H, room].
            num_layers = ours.shape[1]
            room = theirs.shape[-1]
            theirs = theirs.reshape(2, -1, num_layers, ours.shape[2], room)
            theirs = theirs.transpose(0, 2, 3, 1, 4)[..., : ours.shape[-1]]
        elif theirs.ndim == 3:
            theirs = theirs[:, None, None]
        elif name == "conv_seq2seq":
            theirs = theirs.transpose(0, 2, 1, 3)[:, :, None]
        else:  # The last layer's heads.
            theirs = theirs.transpose(0, 2, 1, 3)[:, None]
            ours = ours[:, -1:]
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_head_by_the_equation(randomize):
    """softmax(Q K^T / sqrt(d_k)) of the first layer's third head."""
    model = randomize(tiny.create("transformer", V, norm_first=False))
    _, maps = model.call_with_maps(
        {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}
    )
    table = model.target_embedding.embeddings.numpy()
    width = table.shape[1]
    for ids, key in ((SOURCE_IDS, "encoder"), (TARGET_IDS, "decoder")):
        layer = getattr(model, f"{key}_layers")[0].self_attention
        query_kernel, key_kernel = (
            one.numpy() for one in (layer.query_kernel, layer.key_kernel)
        )
        head = slice(2 * layer.key_dim, 3 * layer.key_dim)
        x = []
        for t, token in enumerate(ids[0]):
            angles = [t / 10000 ** (2 * (i // 2) / width) for i in range(width)]
            x.append(
                [
                    math.sqrt(width) * table[token, i]
                    + (math.cos if i % 2 else math.sin)(angles[i])
                    for i in range(width)
                ]
            )
        queries = (np.array(x) @ query_kernel + layer.query_bias)[:, head]
        keys = (np.array(x) @ key_kernel + layer.key_bias)[:, head]
        for t, query in enumerate(queries):
            last = len(keys) if key == "encoder" else t + 1
            scores = [query @ k / math.sqrt(layer.key_dim) for k in keys[:last]]
            weights = np.exp(scores) / np.sum(np.exp(scores))
            row = maps[key][0, 0, 2, t]
            np.testing.assert_allclose(row[:last], weights, atol=1e-5)
            assert not np.any(row[last:])


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("name", ["transformer", "roformer"])
def test_experts_by_the_equation(name, norm_first, randomize, monkeypatch):
    """The softmax over the k greatest of x W_g, where x goes to the experts."""
    experts = layers.MixtureOfExperts(5, 3, num_chosen=2)
    model = tiny.create(name, V, norm_first=norm_first, feed_forward=experts)
    model = randomize(model)
    inputs = {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}
    read = {"encoder": [], "decoder": []}
    for side, found in read.items():
        for layer in getattr(model, f"{side}_layers"):
            call = layer.feed_forward.call

            @functools.wraps(call)
            def record(x, *rest, found=found, call=call, **others):
                found.append(np.array(x))
                return call(x, *rest, **others)

            monkeypatch.setattr(layer.feed_forward, "call", record)
    logits, maps = model.call_with_maps(inputs)
    np.testing.assert_allclose(logits, model(inputs), atol=1e-5)
    assert maps.keys() == model.maps.keys()
    assert model.maps["encoder_experts"] == ("source", "experts")
    assert model.maps["decoder_experts"] == ("target", "experts")
    for side, ids in (("encoder", SOURCE_IDS), ("decoder", TARGET_IDS)):
        gates = np.array(maps[f"{side}_experts"])
        assert gates.shape == (2, 2, 1, ids.shape[1], 5)
        used = set()
        for index, layer in enumerate(getattr(model, f"{side}_layers")):
            kernel = np.array(layer.feed_forward.gate_kernel)
            for row, t in np.ndindex(*ids.shape):
                scores = read[side][index][row, t] @ kernel
                chosen = np.argsort(scores)[-2:]
                expected = np.zeros(5)
                expected[chosen] = np.exp(scores[chosen])
                expected /= expected.sum()
                np.testing.assert_allclose(
                    gates[row, index, 0, t], expected, atol=1e-5
                )
                used |= {*chosen}
        assert len(used) > 2


def test_no_experts_no_gates():
    """The maps of the class stay as they were."""
    experts = layers.MixtureOfExperts(5, 3)
    tiny.create("transformer", V, feed_forward=experts)
    assert {*tiny.create("transformer", V).maps} == {
        *("encoder", "decoder", "cross")
    }


def test_a_lattice_by_the_equation(randomize):
    """alpha, divided by the probability of the tokens before."""
    model = randomize(tiny.create("rnn_transducer", V))
    inputs = {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}
    _, maps = model.call_with_maps(inputs)
    memory = model.encode(SOURCE_IDS)
    state = model.initial_state(memory)
    prediction, _ = model._predict(TARGET_IDS, state["prediction"])
    p = np.exp(model._log_probabilities(memory["features"], prediction))
    for row, length in enumerate((5, 3)):
        written = np.eye(1, length)[0]  # START is written at step 0.
        for t in range(TARGET_IDS.shape[1]):
            alpha, arrived = [], 0.0
            for s in range(length):
                arrived += written[s]
                alpha.append(arrived)
                arrived *= p[row, t, s, 3]  # The blank.
            lattice = maps["lattice"][row, 0, 0, t]
            np.testing.assert_allclose(lattice[:length], alpha, rtol=1e-3)
            assert not np.any(lattice[length:])
            if t + 1 < TARGET_IDS.shape[1]:
                token = TARGET_IDS[row, t + 1]
                written = np.array(alpha) * p[row, t, :length, token]
                written /= written.sum()


def test_where_a_turing_machine_writes_the_source(randomize):
    model = randomize(tiny.create("neural_turing_machine", V))
    inputs = {"source_ids": SOURCE_IDS[:1], "target_ids": TARGET_IDS[:1]}
    _, maps = model.call_with_maps(inputs)
    state = model._start(SOURCE_IDS[:1])
    for place, token in enumerate(SOURCE_IDS[0]):
        state = model._advance(model.source_embedding(token[None]), state)
        np.testing.assert_allclose(
            maps["source_writes"][0, 0, 0, place],
            state["write_weights"][0],
            atol=1e-5,
        )


def test_an_ensemble_has_the_maps_of_its_members(randomize):
    members = [
        randomize(tiny.create(name, V)) for name in ("transformer", "rnnsearch")
    ]
    both = ensemble.Ensemble(members)
    inputs = {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}
    logits, maps = both.call_with_maps(inputs)
    np.testing.assert_allclose(logits, both(inputs), atol=1e-5)
    assert {*both.maps} == {"encoder_0", "decoder_0", "cross_0", "cross_1"}
    assert both.maps["cross_1"] == ("target", "source")
    for index, model in enumerate(members):
        for name, weights in model.call_with_maps(inputs)[1].items():
            np.testing.assert_array_equal(maps[f"{name}_{index}"], weights)


@pytest.mark.parametrize("name", ["lstmn", "transformer", "rnn_transducer"])
def test_in_a_graph_that_knows_no_lengths(name, randomize):
    model, inputs = model_and_inputs(name, randomize)
    specs = tf.nest.map_structure(
        lambda one: tf.TensorSpec([None, None], tf.int32), inputs
    )
    graph = tf.function(model.call_with_maps, input_signature=[specs])
    tf.nest.map_structure(
        lambda ours, theirs: np.testing.assert_allclose(
            ours, theirs, atol=1e-5
        ),
        graph(inputs),
        model.call_with_maps(inputs),
    )
