"""The memory network: the paper's look-ups, sentence by sentence."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models

V, CLASSES, D = 23, 5, 7
END = 3
# Sentences of stories, one of them blank; questions; supporting sentences,
# counted from the end, of which the last row has one that is cut away.
STORIES = [[[5, 7, 11], [13], [6, 5]], [[17, 6]], [[9], [], [9, 8]]]
QUESTIONS = [[4, 19], [9, 5, 22], [6]]
FACTS = np.array([[3, 1, 1], [1, 1, 1], [2, 4, 4]], "float32")
LABELS = np.array([1, 4, 0])


def padded(rows):
    width = max(map(len, rows))
    return np.array([row + [0] * (width - len(row)) for row in rows], "int32")


INPUTS = {
    "story_ids": padded(
        [
            [token for sentence in story for token in [*sentence, END]]
            for story in STORIES
        ]
    ),
    "question_ids": padded([[*question, END] for question in QUESTIONS]),
}


def table(layer):
    return layer.get_weights()[0]


def bag(layer, words):
    return sum((table(layer)[word] for word in words), np.zeros(D))


def look_up(model, story, question, facts=None):
    """The scores of each hop, which sentences were taken, and the answers.

    Sentences are counted from the end, from 1.
    """
    x = bag(model.asked_words, question)
    answer = bag(model.answer_asked_words, question)
    last_first = story[::-1]
    of_hops, taken = [], []
    for hop in range(model.num_hops):
        scores = [
            x @ (bag(model.told_words, words) + table(model.told_times)[age])
            for age, words in enumerate(last_first)
        ]
        place = 1 + int(np.argmax(scores)) if facts is None else int(facts[hop])
        of_hops.append(scores)
        taken.append(place)
        if place <= len(story):
            words = last_first[place - 1]
            x = x + bag(model.found_words, words)
            x = x + table(model.found_times)[place - 1]
            answer = answer + bag(model.answer_found_words, words)
    return of_hops, taken, answer @ table(model.output_projection)


def ranking_loss(model, story, question, facts, label):
    """Equations 6 to 8, each wrong sentence and answer on its own."""
    of_hops, taken, answers = look_up(model, story, question, facts)
    loss = 0
    for scores, right in zip(of_hops, taken, strict=True):
        for place, score in enumerate(scores, 1):
            if right <= len(story) and place != right:
                loss += max(0, model.margin - scores[right - 1] + score)
    for place, score in enumerate(answers):
        if place != label:
            loss += max(0, model.margin - answers[label] + score)
    return loss


def make(randomize, **arguments):
    return randomize(models.MemoryNetwork(V, CLASSES, D, **arguments), 0.5)


@pytest.mark.parametrize("num_hops", [1, 2, 3])
def test_equals_the_equations(num_hops, randomize):
    model = make(randomize, num_hops=num_hops)
    logits, chosen = model.attend(INPUTS)
    for row, (story, question) in enumerate(
        zip(STORIES, QUESTIONS, strict=True)
    ):
        _, taken, answers = look_up(model, story, question)
        np.testing.assert_allclose(logits[row], answers, rtol=1e-4, atol=1e-5)
        (ends,) = np.nonzero(INPUTS["story_ids"][row] == END)
        places = ends[[-place for place in taken]]
        expected = np.eye(INPUTS["story_ids"].shape[1])[places]
        np.testing.assert_array_equal(chosen[row], expected)


@pytest.mark.parametrize("num_hops", [1, 2, 3])
def test_the_loss_is_that_of_equations_6_to_8(num_hops, randomize):
    model = make(randomize, num_hops=num_hops, margin=0.7)
    expected = [
        ranking_loss(model, *row)
        for row in zip(STORIES, QUESTIONS, FACTS, LABELS, strict=True)
    ]
    loss = model.ranking_loss(INPUTS, FACTS, LABELS)
    assert np.all(np.array(expected) > 0.1)
    np.testing.assert_allclose(loss, expected, rtol=1e-4)


def test_hops_beyond_the_facts_repeat_the_last(randomize):
    model = make(randomize, num_hops=3)
    np.testing.assert_allclose(
        model.ranking_loss(INPUTS, FACTS[:, :2], LABELS),
        model.ranking_loss(INPUTS, FACTS, LABELS),
    )


def test_every_weight_is_trained_by_the_objective(randomize):
    model = make(randomize)
    batch = {**INPUTS, "facts": FACTS}, LABELS, np.ones(3, "float32")
    with tf.GradientTape() as tape:
        measured = models.MemoryNetwork.objective(model, batch, True)
        loss = tf.reduce_sum(measured["loss"][0])
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(
        model.trainable_variables, gradients, strict=True
    ):
        assert np.any(tf.convert_to_tensor(gradient)), variable.path
    values, counts = measured["accuracy"]
    right = np.argmax(model(INPUTS), axis=-1) == LABELS
    np.testing.assert_array_equal(values, right)
    np.testing.assert_array_equal(counts, 1)


def test_how_many_parameters_it_has():
    """Five vectors a word, where the paper has 3 |W| in each of two U."""
    model = models.MemoryNetwork(V, CLASSES, D, memory_size=11)
    model.build()
    assert model.count_params() == (5 * V + 2 * 11 + CLASSES) * D


def test_old_sentences_share_a_time(randomize):
    model = make(randomize, memory_size=2)
    other = make(randomize, memory_size=3)
    for name in ("found_times", "told_times"):
        rows = table(getattr(model, name))
        getattr(other, name).set_weights([rows[[0, 1, 1]]])
    for layer, given in zip(other.layers, model.layers, strict=True):
        if "times" not in layer.name:
            layer.set_weights(given.get_weights())
    np.testing.assert_allclose(other(INPUTS), model(INPUTS), atol=1e-6)


@pytest.mark.parametrize(
    "choices, message",
    [
        ({"num_hops": 0}, "at least 1. Received: num_hops=0"),
        ({"memory_size": 0}, "memory_size=0"),
    ],
)
def test_other_choices_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        models.MemoryNetwork(V, CLASSES, D, **choices)
