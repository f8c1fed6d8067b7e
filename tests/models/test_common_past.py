"""A beam whose common past is kept once for each text finds the same."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding, models
from keras_attention.decoding import buffers, common_past
from keras_attention.models import ensemble
from keras_attention.tokens import PAD

VOCABULARY, LIMITS = 11, [31, 2, 9, 26, 1]
SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2}
CLASSES = [models.Transformer, models.RoFormer]


def sources():
    rng = np.random.default_rng(0)
    ids = rng.integers(4, VOCABULARY, size=(len(LIMITS), 6)).astype("int32")
    ids[1:2, 3:] = PAD
    return ids


def searched(model, settles, monkeypatch, **options):
    """A beam search in a graph of no known sizes, and what was settled.

    Args:
        model: a translator.
        settles: whether the common past is kept once.
        options: of the search.
    """
    monkeypatch.setattr(common_past, "BLOCK", 2)
    monkeypatch.setattr(buffers, "BLOCK", 3)
    num_settled = tf.Variable(0)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None], tf.int32),
        ],
        autograph=False,
    )
    def search(source_ids, max_lengths):
        memory = model.encode(source_ids)
        state = model.initial_state(memory, tf.reduce_max(max_lengths))
        step, settle = model.prepared_step(), None
        if settles:
            memory, step, of_model = model.settling(memory, state, 3)

            def settle(memory, state, length, *arguments):
                num_settled.assign(length)
                return of_model(memory, state, length, *arguments)

        return decoding.beam_search(
            step,
            memory,
            state,
            source_ids != PAD,
            max_lengths,
            num_beams=3,
            n_best=2,
            settle=settle,
            **options,
        )

    return search(sources(), tf.constant(LIMITS, tf.int32)), int(num_settled)


def built(model_class, seed, randomize):
    model = model_class(
        VOCABULARY, intermediate_dim=16, **SIZES, name=f"seed_{seed}"
    )
    model.build()
    randomize(model, 1.0)  # Beams of sure models soon have one past.
    return model


def assert_equal(found, expected):
    np.testing.assert_array_equal(found.ids, expected.ids)
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model_class", CLASSES)
@pytest.mark.parametrize(
    "options", [{}, {"alpha": 0.6, "beta": 0.2, "no_repeat_ngram_size": 2}]
)
def test_finds_the_same(model_class, options, monkeypatch, randomize):
    model = built(model_class, 1, randomize)
    found, settled = searched(model, True, monkeypatch, **options)
    expected, _ = searched(model, False, monkeypatch, **options)
    assert settled >= 4  # More than once.
    assert_equal(found, expected)


def test_an_ensemble_settles_with_all_its_members(monkeypatch, randomize):
    model = ensemble.Ensemble([built(one, 1, randomize) for one in CLASSES])
    found, settled = searched(model, True, monkeypatch)
    expected, _ = searched(model, False, monkeypatch)
    assert settled >= 4  # More than once.
    assert_equal(found, expected)


def test_an_ensemble_settles_only_if_all_members_do():
    """T5 adds positions to its scores."""
    members = [models.Transformer(VOCABULARY, **SIZES)]
    members.append(models.T5(VOCABULARY, **SIZES))
    for model in members:
        model.build()
    found = []

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def begin(source_ids):
        length = tf.shape(source_ids)[1]
        for model in (*members, ensemble.Ensemble(members)):
            memory = model.encode(source_ids)
            state = model.initial_state(memory, length)
            found.append(model.settling(memory, state, 3)[2] is not None)

    begin.get_concrete_function()
    assert found == [True, False, False]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*a `quantize` method")
def test_an_int8_model_finds_the_same(monkeypatch, randomize):
    model = built(models.Transformer, 1, randomize)
    model.quantize("int8")
    found, settled = searched(model, True, monkeypatch)
    expected, _ = searched(model, False, monkeypatch)
    assert settled >= 4  # More than once.
    assert_equal(found, expected)


@pytest.mark.slow
def test_an_empty_batch(randomize, monkeypatch):
    monkeypatch.setitem(globals(), "LIMITS", [])
    model = built(models.Transformer, 1, randomize)
    found, _ = searched(model, True, monkeypatch)
    assert found.ids.shape[0] == 0
