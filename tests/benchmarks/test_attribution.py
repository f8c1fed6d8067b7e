"""`benchmarks/attribution.py` compares explanations of phrases."""

import functools
import pathlib
import runpy

import keras
import numpy as np
import pytest
import tiny

from keras_attention import data
from keras_attention.data.embedded import phrases
from keras_attention.evaluation import phrase_alignment
from keras_attention.serving.translator import Translator

PROGRAM = pathlib.Path(__file__).parents[2] / "benchmarks/attribution.py"


@pytest.fixture(scope="module")
def program():
    return runpy.run_path(str(PROGRAM))


@pytest.fixture(scope="module")
def pairs():
    lines = phrase_alignment.LINKS.read_text("utf-8").splitlines()[:400]
    rows = [line.split("\t")[:2] for line in lines]
    return [phrases.Pair(*row, "cardinal", None) for row in rows]


@pytest.fixture(scope="module")
def explained(program, pairs):
    """A function of a model's name: phrases, and what is found of them."""
    texts = [text for pair in pairs for text in pair[:2]]
    tokenizer = data.Tokenizer(data.train_vocabulary(texts, 400))
    drawn = (p for p in pairs if "-" in p.source and len(p.source) < 40)
    chosen = [next(drawn), *pairs[:2]]

    @functools.cache
    def explain(name):
        keras.utils.set_random_seed(3)
        model = tiny.create(name, tokenizer.vocabulary_size)
        model.build()
        rng = np.random.default_rng(1)
        return chosen, program["measure"](
            Translator(model, tokenizer), chosen, rng, 2
        )

    return explain


@pytest.fixture(scope="module")
def measured(explained):
    return explained("transformer")


def test_kendalls_tau_counts_pairs_in_the_same_order(program):
    kendall = program["kendall"]
    assert kendall(np.array([1, 2, 3]), np.array([4, 5, 9])) == 1
    assert kendall(np.array([1, 2, 3]), np.array([9, 5, 4])) == -1
    # Two of three pairs, less the third.
    found = kendall(np.array([1, 2, 3]), np.array([5, 4, 9]))
    np.testing.assert_allclose(found, 1 / 3)


def test_each_kind_of_erasure_has_the_greatest_loss_of_its_column(measured):
    _, (table, *_) = measured
    rows = {name: numbers for name, *numbers in table}
    assert list(rows) == [
        "attention, layer 1",
        "attention, last layer",
        "rollout",
        "integrated gradients",
        "erasure, masked",
        "erasure, unknown token",
        "a random token",
        "the true links",
    ]
    for column, name in (1, "erasure, masked"), (2, "erasure, unknown token"):
        most = max(numbers[column] for numbers in rows.values())
        assert rows[name][column] == most
    assert rows["erasure, masked"][3] == 1
    assert rows["a random token"][3] is rows["the true links"][3] is None
    rates = [numbers[0] for numbers in rows.values()]
    assert 0 <= rows["the true links"][0] == min(rates)


def test_the_picture_has_a_panel_for_each_method(program, measured, tmp_path):
    chosen, (_, *rest) = measured
    path = tmp_path / "a.png"
    program["draw"](chosen, *rest, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_model_that_does_not_mask_is_asked_for_unknown_tokens_alone(
    program, explained, tmp_path
):
    chosen, (table, *rest) = explained("rnnsearch")
    rows = {name: numbers for name, *numbers in table}
    assert list(rows) == [
        "attention, last layer",
        "integrated gradients",
        "erasure, unknown token",
        "a random token",
        "the true links",
    ]
    rates, losses, orders = zip(*rows.values(), strict=True)
    # Where two tokens matter alike, tau is a little below 1.
    assert losses[2] == max(losses) and orders[2] > 0.99
    program["draw"](chosen, *rest, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0
