"""The end-to-end memory network: the paper's equations and its one limit."""

import itertools

import keras
import numpy as np
import pytest

from keras_attention import models

V, CLASSES, D = 23, 5, 7
END = 3
# Sentences of stories, one of them blank; questions.
STORIES = [[[5, 7, 11], [13], [6, 5]], [[17, 6]], [[9], [], [9, 8]]]
QUESTIONS = [[4, 19], [9, 5, 22], [6]]
CHOICES = list(
    itertools.product(
        ("adjacent", "layer_wise"),
        ("position", "centred", "bag"),
        ("softmax", "linear", "with empty memories"),
    )
)


def padded(rows):
    width = max(map(len, rows))
    return np.array([row + [0] * (width - len(row)) for row in rows], "int32")


def ids_of(stories, questions):
    """The inputs: sentences with END behind each, and so the question."""
    told = [
        [token for sentence in story for token in [*sentence, END]]
        for story in stories
    ]
    asked = [[*question, END] for question in questions]
    return {"story_ids": padded(told), "question_ids": padded(asked)}


INPUTS = ids_of(STORIES, QUESTIONS)


def bag(words, table, encoding):
    """sum_j l_j * A x_j, component by component."""
    vector = np.zeros(D)
    for j, word in enumerate(words, 1):
        for k in range(1, D + 1):
            share = j / len(words)
            weight = {
                "position": (1 - share) - k / D * (1 - 2 * share),
                "centred": 1
                + 4
                * (k - (D + 1) / 2)
                * (j - (len(words) + 1) / 2)
                / D
                / len(words),
                "bag": 1,
            }[encoding]
            vector[k - 1] += weight * table[word][k - 1]
    return vector


def answer(model, story, question, tying, encoding, hops):
    """Logits, and the weights of each hop, sentence by sentence."""
    tables = [layer.get_weights()[0] for layer in model.embeddings]
    times = [layer.get_weights()[0] for layer in model.times]
    u = bag(question, tables[0 if tying == "adjacent" else 2], encoding)
    of_hops = []
    for hop in range(model.num_hops):
        first = hop if tying == "adjacent" else 0
        m, c = (
            [
                bag(words, tables[place], encoding) + times[place][age]
                for age, words in enumerate(reversed(story))
            ]
            for place in (first, first + 1)
        )
        scores = np.array([u @ memory for memory in m])
        if hops == "with empty memories":
            zeros = np.zeros((model.memory_size - len(story), D))
            scores = np.concatenate([scores, zeros @ u])
        p = (
            scores
            if hops == "linear"
            else np.exp(scores) / np.exp(scores).sum()
        )
        p = p[: len(story)]  # An empty memory is zeros in c, too.
        o = sum(weight * memory for weight, memory in zip(p, c, strict=True))
        if tying == "layer_wise":
            u = u @ model.hop_projection.get_weights()[0]
        u = u + o
        of_hops.append(p[::-1])
    return u @ model.output_projection.get_weights()[0], of_hops


@pytest.mark.parametrize("tying, encoding, hops", CHOICES)
def test_equals_the_equations(tying, encoding, hops, randomize):
    model = models.EndToEndMemoryNetwork(
        V,
        CLASSES,
        D,
        num_hops=3,
        tying=tying,
        sentence_encoding=encoding,
        memory_size=5,
        is_linear=hops == "linear",
        has_empty_memories=hops == "with empty memories",
    )
    logits, weights = randomize(model).attend(INPUTS)
    assert weights.shape == (3, 3, INPUTS["story_ids"].shape[1])
    for row, (story, question) in enumerate(
        zip(STORIES, QUESTIONS, strict=True)
    ):
        expected, of_hops = answer(
            model, story, question, tying, encoding, hops
        )
        np.testing.assert_allclose(logits[row], expected, rtol=1e-4, atol=1e-5)
        is_end = INPUTS["story_ids"][row] == END
        found = weights[row].numpy()
        np.testing.assert_allclose(found[:, is_end], of_hops, atol=1e-5)
        np.testing.assert_array_equal(found[:, ~is_end], 0)


@pytest.mark.parametrize("num_hops", [1, 3])
def test_how_many_parameters_each_tying_has(num_hops):
    """The paper counts no formula; these are its matrices, one by one."""
    memory_size = 11
    for tying, tables, times, more in (
        ("adjacent", num_hops + 1, num_hops + 1, 0),
        ("layer_wise", 3, 2, D * D),
    ):
        model = models.EndToEndMemoryNetwork(
            V, CLASSES, D, num_hops, tying, memory_size=memory_size
        )
        model.build()
        expected = tables * V * D + times * memory_size * D + more + D * CLASSES
        assert model.count_params() == expected


def test_order_in_a_sentence_counts_by_position_alone(randomize):
    turned = ids_of(
        [[words[::-1] for words in story] for story in STORIES], QUESTIONS
    )
    for encoding, changes in (("position", True), ("bag", False)):
        model = randomize(
            models.EndToEndMemoryNetwork(
                V, CLASSES, D, sentence_encoding=encoding
            )
        )
        difference = np.abs(model(turned) - model(INPUTS)).max(axis=-1)
        # The second story is turned alike, the sentences of the first are not.
        assert (difference[:2] > 1e-3).all() == changes
        assert changes or difference.max() < 1e-5


def test_a_full_memory_has_no_empty_ones(randomize):
    """A story of as many sentences as memories, or of more."""
    stories = ids_of([[[5, 7], [6], [8]], [[9, 6], [11]]], QUESTIONS[:2])
    model = randomize(
        models.EndToEndMemoryNetwork(
            V, CLASSES, D, memory_size=2, has_empty_memories=True
        )
    )
    plain = models.EndToEndMemoryNetwork(V, CLASSES, D, memory_size=2)
    plain.build()
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(model(stories), plain(stories), atol=1e-6)
    _, weights = model.attend(stories)
    np.testing.assert_allclose(weights.numpy().sum(axis=-1), 1, atol=1e-6)


def test_sentences_beyond_the_memory_are_forgotten(randomize):
    model = randomize(
        models.EndToEndMemoryNetwork(V, CLASSES, D, memory_size=2)
    )
    short = ids_of([story[-2:] for story in STORIES], QUESTIONS)
    np.testing.assert_allclose(model(INPUTS), model(short), atol=1e-5)
    _, weights = model.attend(INPUTS)
    first = STORIES[0]
    assert not weights.numpy()[0, :, : len(first[0]) + 1].any()


def test_a_story_needs_no_last_end(randomize):
    """And a blank story has one memory: its place in time."""
    model = randomize(models.EndToEndMemoryNetwork(V, CLASSES, D))
    open_end = {
        "story_ids": padded([[5, 7, END, 9], [END]]),
        "question_ids": INPUTS["question_ids"][:2],
    }
    closed = {
        **open_end,
        "story_ids": padded([[5, 7, END, 9, END], [END]]),
    }
    np.testing.assert_allclose(model(open_end), model(closed), atol=1e-6)
    _, weights = model.attend(closed)
    np.testing.assert_allclose(weights[1, :, 0], 1)
    padding = {name: 0 * ids for name, ids in INPUTS.items()}
    assert np.isfinite(model(padding)).all()


def test_noise_makes_sentences_older_in_training(randomize):
    """With noise 1, an empty memory stands behind each sentence."""
    model = randomize(models.EndToEndMemoryNetwork(V, CLASSES, D, noise=1.0))
    quiet = models.EndToEndMemoryNetwork(V, CLASSES, D, noise=0.0)
    quiet.build()
    quiet.set_weights(model.get_weights())
    for table in quiet.times:
        (rows,) = table.get_weights()
        # Sentence 0, 1, 2 from the question has the age 1, 3, 5.
        table.set_weights([rows[np.minimum(2 * np.arange(50) + 1, 49)]])
    noisy, expected = model(INPUTS, training=True), quiet(INPUTS)
    np.testing.assert_allclose(noisy, expected, atol=1e-5)
    np.testing.assert_array_equal(quiet(INPUTS, training=True), expected)
    assert np.abs(model(INPUTS) - expected).max() > 1e-2


def test_a_tenth_of_the_memories_is_empty():
    """The mean age of the first of 40 sentences, over many draws."""
    model = models.EndToEndMemoryNetwork(V, CLASSES, D, memory_size=100)
    ends = np.ones((2000, 40), "float32")
    ages = np.array(model._ages(ends, training=True))
    # 39 sentences are behind it, and each of 40 places has an empty memory
    # with the probability 0.1.
    error = np.sqrt(40 * 0.1 * 0.9 / 2000)
    assert abs(ages[:, 0].mean() - (39 + 4)) < 5 * error
    assert (np.diff(ages, axis=1) <= -1).all() and ages.min() == 0


@pytest.mark.parametrize(
    "choices, message",
    [
        ({"tying": "none"}, "'adjacent' or 'layer_wise'. Received: 'none'"),
        ({"sentence_encoding": "order"}, "'centred' or 'bag'"),
        ({"num_hops": 0}, "at least 1. Received: num_hops=0"),
        ({"memory_size": 0}, "memory_size=0"),
    ],
)
def test_other_choices_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        models.EndToEndMemoryNetwork(V, CLASSES, D, **choices)


def two_links(num_rows, rng, size=8):
    """A permutation as sentences "x pi(x)" in any order: what is pi(pi(x))?"""
    pi = np.argsort(rng.random((num_rows, size)), axis=1)
    order = np.argsort(rng.random((num_rows, size)), axis=1)
    words = [order, np.take_along_axis(pi, order, axis=1)]
    words = [word + END + 1 for word in words]
    story = np.stack([*words, np.full_like(order, END)], axis=2)
    asked = rng.integers(size, size=num_rows)
    rows = np.arange(num_rows)
    inputs = {
        "story_ids": story.reshape(num_rows, -1),
        "question_ids": np.stack([asked + END + 1, 0 * asked + END], axis=1),
    }
    return inputs, pi[rows, pi[rows, asked]]


@pytest.mark.slow
@pytest.mark.parametrize("num_hops, least, most", [(1, 0, 0.3), (3, 0.97, 1)])
def test_two_links_need_more_than_one_hop(num_hops, least, most, rng):
    """One hop finds y = pi(x), and not what follows from y.

    The best guess is then x. It is right if pi(x) = x, once in 8, and else
    once in 7: in 1/8 + 7/8 * 1/7 = 2/8 of all stories.
    """
    keras.utils.set_random_seed(1)
    model = models.EndToEndMemoryNetwork(
        END + 9, 8, 32, num_hops=num_hops, noise=0.0
    )
    model.compile(
        keras.optimizers.Adam(5e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(*two_links(20_000, rng), batch_size=128, epochs=10, verbose=0)
    _, accuracy = model.evaluate(*two_links(4_000, rng), verbose=0)
    assert least <= accuracy <= most
