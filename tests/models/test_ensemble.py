"""Ensembles: the mean of what their models say, in a search and in scores."""

import numpy as np
import pytest
import tiny

import keras_attention as ka
from keras_attention import decoding, models
from keras_attention.models import ensemble
from keras_attention.serving.translator import Translator
from keras_attention.tokens import END, START

V, SOURCE_V = 23, 19
INPUTS = {
    "source_ids": np.array([[5, 7, 11, 13, END], [17, 6, END, 0, 0]], "int32"),
    "target_ids": np.array([[START, 19, 5, 9], [START, 22, 4, 0]], "int32"),
}
TEXTS = ["one two three", "nine", ""]


def softmax(logits):
    exponentials = np.exp(logits)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def random_models(randomize, *names):
    return [randomize(tiny.create(name, V, SOURCE_V)) for name in names]


def steps_of(model):
    """The logits and the weights of each step along the targets."""
    memory = model.encode(INPUTS["source_ids"])
    state = model.initial_state(memory, 4)
    step, found = model.prepared_step(), []
    for ids in INPUTS["target_ids"].T:
        logits, state, weights = step(ids, memory, state)
        found.append((np.array(logits), np.array(weights)))
    return [np.stack(one, axis=1) for one in zip(*found, strict=True)]


def test_two_models_are_the_average_of_their_probabilities(randomize):
    """The Transformer has heads, and RNNsearch has none."""
    both = random_models(randomize, "transformer", "rnnsearch")
    together = ensemble.Ensemble(both)
    expected = sum(softmax(model(INPUTS)) for model in both)
    found = softmax(together(INPUTS))
    np.testing.assert_allclose(found, expected / 2, atol=1e-6)
    logits, weights = steps_of(together)
    (one, of_heads), (other, of_one) = map(steps_of, both)
    expected = (softmax(one) + softmax(other)) / 2
    np.testing.assert_allclose(np.exp(logits), expected, atol=1e-6)
    expected = (of_heads.mean(axis=2) + of_one) / 2
    np.testing.assert_allclose(weights, expected, atol=1e-6)


def test_step_gives_what_call_gives(randomize):
    together = ensemble.Ensemble(
        random_models(randomize, "luong", "conv_seq2seq")
    )
    logits, weights = steps_of(together)
    real = INPUTS["target_ids"] > 0
    np.testing.assert_allclose(
        logits[real], np.array(together(INPUTS))[real], atol=1e-4
    )
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


def test_small_probabilities_do_not_vanish():
    logits = [np.array([0.0, -300.0]), np.array([0.0, -400.0])]
    found = ensemble.log_mean(logits)
    np.testing.assert_allclose(found, [0, -300 - np.log(2)], rtol=1e-6)


def test_an_ensemble_of_one_model_is_that_model(randomize):
    (model,) = random_models(randomize, "rnnsearch")
    alone = ensemble.Ensemble([model])
    answers = []
    for one in (model, alone):
        memory = one.encode(INPUTS["source_ids"])
        answers.append(
            decoding.beam_search(
                one.prepared_step(),
                memory,
                one.initial_state(memory, 6),
                INPUTS["source_ids"] > 0,
                np.array([6, 6], "int32"),
                num_beams=3,
                n_best=3,
            )
        )
    np.testing.assert_array_equal(answers[0].ids, answers[1].ids)
    np.testing.assert_allclose(answers[0].score, answers[1].score, atol=1e-5)


@pytest.mark.slow
def test_an_ensemble_translates_and_is_exported(
    random_translator, tokenizers, tmp_path
):
    members = [random_translator(name) for name in ("rnnsearch", "luong")]
    together = ensemble.Ensemble([one.model for one in members])
    together.build()
    translator = Translator(together, *tokenizers)
    loaded = ka.load(translator.export(tmp_path / "ensemble"))
    assert loaded(TEXTS) == translator(TEXTS)
    (found,), (expected,) = (
        one.score(["one"], ["eins"]) for one in (loaded, translator)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert isinstance(together, models.Seq2Seq)


def test_vocabularies_of_two_sizes_are_refused():
    both = [tiny.create("rnnsearch", size) for size in (V, V + 1)]
    with pytest.raises(ValueError, match="one vocabulary. These 2 have"):
        ensemble.Ensemble(both)
    with pytest.raises(ValueError, match="These 0 have"):
        ensemble.Ensemble([])
