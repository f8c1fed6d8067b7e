"""The embedded text: its probabilities and its entropy are true."""

import collections
import math
import re

import numpy as np
import pytest

from keras_attention.data.embedded import sentences
from keras_attention.data.embedded.sentences import grammar


def states():
    """All states that a sentence may pass."""
    found, pending = {grammar.START}, [grammar.START]
    while pending:
        for _, _, after in grammar.arcs(pending.pop()):
            if after is not None and after not in found:
                found.add(after)
                pending.append(after)
    return sorted(found)


STATES = states()
ARCS = {state: grammar.arcs(state) for state in STATES}


@pytest.fixture(scope="module")
def corpus():
    return sentences.generate()


def cross_entropy(texts):
    """Nats a token, by the source's own probabilities."""
    tokens = sum(len(text.split()) + 1 for text in texts)
    return -sum(map(sentences.log_probability, texts)) / tokens


def transitions():
    """Matrix of the chain of states, with one more column for the end."""
    places = {state: i for i, state in enumerate(STATES)}
    matrix = np.zeros((len(STATES), len(STATES)))
    ends = np.zeros(len(STATES))
    for state, row in places.items():
        for probability, _, after in ARCS[state]:
            if after is None:
                ends[row] += probability
            else:
                matrix[row, places[after]] += probability
    return matrix, ends


def test_words_tell_the_state():
    """Deterministic, so that a sentence has one derivation."""
    for state in STATES:
        words = [word for _, word, _ in ARCS[state]]
        assert len(set(words)) == len(words), state


def test_probabilities_sum_to_1_in_every_state():
    for state in STATES:
        total = math.fsum(p for p, _, _ in ARCS[state])
        assert total == pytest.approx(1, abs=1e-12)


def test_the_sentences_probabilities_sum_to_1():
    """The ends' probabilities after 1, 2, ... words, by the matrix."""
    matrix, ends = transitions()
    mass = np.array([state == grammar.START for state in STATES], float)
    total = 0.0
    for _ in range(80):
        total += mass @ ends
        mass = mass @ matrix
    assert total == pytest.approx(1, abs=1e-12)


def test_entropy_and_length_solve_the_equations_of_the_chain():
    """H(s) = arcs' entropy + sum of p(s') H(s'), and so for the length."""
    matrix, _ = transitions()
    arcs = [
        -sum(p * math.log(p) for p, _, _ in ARCS[state]) for state in STATES
    ]
    remaining = np.eye(len(STATES)) - matrix
    start = STATES.index(grammar.START)
    entropy = np.linalg.solve(remaining, arcs)[start]
    length = np.linalg.solve(remaining, np.ones(len(STATES)))[start]
    assert sentences.entropy() == pytest.approx(entropy, rel=1e-12)
    assert sentences.mean_length() == pytest.approx(length, rel=1e-12)
    assert sentences.entropy_rate() == pytest.approx(
        entropy / length, rel=1e-12
    )


def test_short_sentences_by_enumeration():
    """Each string of up to 4 words, with the product along its arcs."""
    found = {}

    def extend(words, probability, state):
        for p, word, after in ARCS[state]:
            if after is None:
                text = " ".join(words)
                assert text not in found
                found[text] = probability * p
            elif len(words) < 4:
                extend([*words, word], probability * p, after)

    extend([], 1.0, grammar.START)
    assert len(found) > 1000
    sample = sorted(found)[::97]
    for text in sample:
        assert sentences.log_probability(text) == pytest.approx(
            math.log(found[text])
        )


def test_a_sentence_by_hand():
    """ "the" (0.4), a man's noun (0.88 / 4 / 2), "talks" (0.4 * 0.2), END."""
    ranks = sum(1 / r for r in range(2, 10))  # Classes of eight words.
    probability = 0.4 * (0.88 * 0.25 * 0.5) * (1 / 2 / ranks)
    probability *= (0.4 * 0.2) * (1 / 3 / ranks) * 0.3
    assert sentences.log_probability("the king talks") == pytest.approx(
        math.log(probability)
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the king",
        "the king talk",
        "the kings that dogs near talks",
        "the king who many dogs chase laugh",
        "the king laughed today",
        "the king laughed and she laughed",
        "the king talks the king talks",
        "the wizard talks",
    ],
)
def test_what_the_source_never_writes_is_impossible(text):
    assert sentences.log_probability(text) == -math.inf


@pytest.mark.parametrize(
    "text",
    [
        "the king laughed yesterday and he talked",
        "the kings who a dog chases laugh and they talk",
        "every small big lamp near these lakes glows now",
    ],
)
def test_agreement_over_any_distance(text):
    assert sentences.log_probability(text) > -math.inf


def test_the_corpus_is_the_same_at_every_call(corpus):
    sizes = {"train": 160_000, "validation": 1_000, "test": 2_000}
    assert {split: len(texts) for split, texts in corpus.items()} == sizes
    small = sentences.generate(train=10, validation=5, test=5)
    assert small["train"] == corpus["train"][:10]
    assert small["train"][:2] == [
        "few daughters talk and they laugh",
        "some cars that warmed some cars annoyed the cats",
    ]
    assert sentences.generate(10, 5, 5, seed=1)["train"] != small["train"]
    seen = set(corpus["train"])
    assert np.mean([text in seen for text in corpus["test"]]) < 0.1


def test_it_is_english_of_a_few_hundred_words(corpus):
    words = sentences.vocabulary()
    assert 200 < len(words) < 400 and words == sorted(set(words))
    assert {word for text in corpus["train"] for word in text.split()} == set(
        words
    )
    assert all(re.fullmatch("[a-z]+", word) for word in words)
    for text in corpus["test"]:
        assert not re.search(r"\ba [aeiou]", text), text


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_the_law_of_large_numbers(split, corpus):
    """Within four standard errors of the entropy rate."""
    texts = corpus[split]
    rate = sentences.entropy_rate()
    surprises = [
        -sentences.log_probability(text) - rate * (len(text.split()) + 1)
        for text in texts
    ]
    error = np.std(surprises) / math.sqrt(len(texts))
    assert abs(np.mean(surprises)) < 4 * error
    assert cross_entropy(texts) == pytest.approx(rate, rel=0.02)


def test_frequencies_are_the_probabilities(corpus):
    """Pearson's test on the arcs out of every state that is passed often."""
    passed = collections.defaultdict(collections.Counter)
    for text in corpus["train"]:
        state = grammar.START
        for word in [*text.split(), grammar.END]:
            passed[state][word] += 1
            state = next(after for _, w, after in ARCS[state] if w == word)
    statistic, freedom = 0.0, 0
    for state, counts in passed.items():
        arcs = ARCS[state]
        if counts.total() * min(p for p, _, _ in arcs) < 5:
            continue
        expected = {word: counts.total() * p for p, word, _ in arcs}
        statistic += sum(
            (counts[word] - count) ** 2 / count
            for word, count in expected.items()
        )
        freedom += len(arcs) - 1
    assert freedom > 1000
    # Of mean n and variance 2 n: within four deviations.
    assert abs(statistic - freedom) < 4 * math.sqrt(2 * freedom)


def best_n_gram_perplexity(order):
    """Of a table of true conditional probabilities: from endless text."""
    matrix, _ = transitions()
    start = np.array([state == grammar.START for state in STATES], float)
    visits = np.linalg.solve((np.eye(len(STATES)) - matrix).T, start)
    # (The words before, the state) -> how often a sentence passes it.
    passed = {
        ((), state): count for state, count in zip(STATES, visits, strict=True)
    }
    for _ in range(order - 1):
        longer = collections.defaultdict(float, {((), grammar.START): 1.0})
        for (context, state), count in passed.items():
            for probability, word, after in ARCS[state]:
                if after is not None:
                    longer[(*context, word), after] += count * probability
        passed = longer
    contexts = collections.defaultdict(float)
    joint = collections.defaultdict(float)
    for (context, state), count in passed.items():
        contexts[context] += count
        for probability, word, _ in ARCS[state]:
            joint[context, word] += count * probability
    nats = -sum(
        count * math.log(count / contexts[context])
        for (context, _), count in joint.items()
    )
    return math.exp(nats / sentences.mean_length())


@pytest.mark.parametrize(
    "order, at_least",
    [(1, 9.0), (2, 1.75), pytest.param(3, 1.5, marks=pytest.mark.slow)],
)
def test_no_table_of_n_grams_reaches_the_source(order, at_least):
    """Even with all the text of the world: agreement spans any distance."""
    least = math.exp(sentences.entropy_rate())
    assert best_n_gram_perplexity(order) > at_least * least
