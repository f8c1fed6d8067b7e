"""What the pages of `docs/play/` compute, and what numpy does."""

import json
import math

import numpy as np
import play_pages
import pytest
from play_equations import all_paths, rope, softmax, told_network


@pytest.mark.slow
@pytest.mark.parametrize(
    "choices",
    [
        {"temperature": 1.0, "scale": True, "causal": True, "padding": True},
        {"temperature": 0.1, "scale": True, "causal": True, "padding": True},
        {"temperature": 5.0, "scale": False, "causal": False, "padding": True},
        {"temperature": 1.0, "scale": True, "causal": False, "padding": False},
    ],
)
def test_weights_are_those_of_numpy(opened, choices):
    page = opened("temperature")
    data = play_pages.kept_data("temperature")
    for number, head in enumerate(data["heads"]):
        found = page.evaluate(
            f"weightsOf(data.heads[{number}], {json.dumps(choices)})"
        )
        query, key = np.array(head["query"]), np.array(head["key"])
        scores = query @ key.T / choices["temperature"]
        if choices["scale"]:
            scores /= math.sqrt(query.shape[1])
        t, s = np.indices(scores.shape)
        if choices["causal"]:
            scores[s > t] = -np.inf
        if choices["padding"]:
            scores[s >= len(key) - data["numPads"]] = -np.inf
        np.testing.assert_allclose(found, softmax(scores), atol=1e-5)


@pytest.mark.slow
def test_positions_are_those_of_numpy(opened):
    page = opened("positions")
    query, key = np.random.default_rng(5).normal(size=(2, 16))
    found = page.evaluate(
        f"dot(turned({query.tolist()}, 40), turned({key.tolist()}, 17))"
    )
    expected = np.sum(rope(query, 40) * rope(key, 17).conj()).real
    np.testing.assert_allclose(found, expected, atol=1e-5)
    angles = 23 / 10000 ** (np.arange(0, 32, 2) / 32)
    for kind, width in (("sinusoids", 32), ("RoPE", 16)):
        angles = 23 / 10000 ** (np.arange(0, width, 2) / width)
        np.testing.assert_allclose(
            page.evaluate(f'similarity("{kind}", 23)'),
            np.cos(angles).mean(),
            atol=1e-5,
        )
    assert page.evaluate("[slope(0), slope(1)]") == [2**-4, 2**-8]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sinusoids", "RoPE", "ALiBi", "Shaw"])
def test_a_reader_writes_what_keras_did(opened, kind):
    page = opened("positions")
    expected = play_pages.kept_data("positions")["kinds"][kind]["logits"]
    found = page.evaluate(f'read("{kind}", data.text).logits.at(-1)')
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.slow
def test_hops_answer_what_the_model_answered(opened):
    page = opened("hops")
    data = play_pages.kept_data("hops")
    for number, story in enumerate(data["stories"]):
        found = page.evaluate(
            f"answered(data.stories[{number}].sentences, "
            f"data.stories[{number}].question).logits.at(-1)"
        )
        # The package's model, when the page was made.
        np.testing.assert_allclose(found, story["logits"], atol=2e-5)
        shorter = story["sentences"][1:]
        found = page.evaluate(
            f"answered({json.dumps(shorter)}, "
            f"data.stories[{number}].question).logits.at(-1)"
        )
        expected = told_network(data, shorter, story["question"])
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_the_forward_sum_is_that_of_all_paths(opened):
    page = opened("lattice")
    generator = np.random.default_rng(6)
    token, blank = np.log(generator.uniform(0.1, 0.9, size=(2, 4, 4)))
    token = token[:, :3]
    small = json.dumps({"token": token.tolist(), "blank": blank.tolist()})
    for passing in ([], [(2, 1)], [(1, 1), (2, 3)], [(3, 0)], [(2, 0), (1, 2)]):
        total, number = all_paths(token, blank, passing)
        nodes = json.dumps(passing)
        found = page.evaluate(f"Math.exp(forward({small}, {nodes}).total)")
        np.testing.assert_allclose(found, total, atol=1e-12, rtol=1e-5)
        assert page.evaluate(f"countPaths({small}, {nodes})") == number
        beta = page.evaluate(f"Math.exp(backward({small}, {nodes})[0][0])")
        np.testing.assert_allclose(beta, total, atol=1e-12, rtol=1e-5)
    for place, word in enumerate(play_pages.kept_data("lattice")["words"]):
        for time, lattice in enumerate(word["lattices"]):
            found = page.evaluate(
                f"forward(data.words[{place}].lattices[{time}]).total"
            )
            # The package's own, when the page was made.
            np.testing.assert_allclose(found, lattice["total"], atol=1e-4)
