"""Sampling against its distribution."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.tokens import END, PAD, START, UNK

CONTROL = (PAD, UNK, START)


def same_rows(num_rows, logits):
    """A search argument dict: `num_rows` times one distribution."""

    def step(token_ids, memory, state):
        rows = tf.shape(token_ids)[0]
        return (
            tf.repeat(memory["logits"][:1], rows, axis=0),
            state,
            tf.ones((rows, 2)) / 2,
        )

    return {
        "step": step,
        "memory": {"logits": tf.constant(np.float32(logits))[None]},
        "state": {},
        "source_mask": tf.ones((num_rows, 2), "bool"),
        "max_lengths": tf.fill([num_rows], 2),
    }


def check_first_tokens(expected, num_rows=20_000, seed=7, **kwargs):
    """Frequencies within 5 standard deviations of the expectation."""
    result = decoding.sampling_search(seed=seed, **kwargs)
    counts = np.bincount(result.ids[:, 0, 0].numpy(), minlength=len(expected))
    deviation = np.sqrt(num_rows * expected * (1 - expected))
    assert (counts[expected == 0] == 0).all()
    assert (np.abs(counts - num_rows * expected) <= 5 * deviation + 1e-6).all()
    return result


LOGITS = np.array([0.3, -1.0, 1.5, 0.0, 2.0, -3.0, 1.0])


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_first_tokens_follow_the_softmax(temperature):
    result = check_first_tokens(
        softmax(LOGITS / temperature),
        temperature=temperature,
        **same_rows(20_000, LOGITS),
    )
    # What is reported is the model's own log-probability all the same.
    first = result.ids[:, 0, 0].numpy()
    log_probs = np.log(softmax(LOGITS))
    expected = log_probs[first] + np.where(first == END, 0, log_probs[END])
    np.testing.assert_allclose(
        result.log_probability[:, 0], expected, rtol=1e-4
    )


def truncated(probabilities, top_k=None, top_p=None, min_p=0.0):
    """Which tokens stay: in order of probability, one after the other."""
    kept, total = [], 0.0
    for token in np.argsort(-probabilities):
        if probabilities[token] < min_p * max(probabilities):
            break
        if top_k is not None and len(kept) == top_k:
            break
        if top_p is not None and total >= top_p:
            break
        kept.append(token)
        total += probabilities[token]
    return sorted(kept)


TRUNCATIONS = [
    {},
    {"top_k": 1},
    {"top_k": 3},
    {"top_k": 100},
    {"top_p": 1e-6},
    {"top_p": 0.5},
    {"top_p": 0.9},
    {"top_p": 1.0},
    {"top_k": 2, "top_p": 0.9},
    {"top_k": 5, "top_p": 0.6},
    {"min_p": 0.05},
    {"min_p": 0.3},
    {"min_p": 1.0},
    {"min_p": 0.1, "top_p": 0.7},
]
FAST = [
    {"min_p": 0.3},
    {"top_k": 3},
    {"top_p": 0.5},
    {"top_k": 5, "top_p": 0.6},
]
assert all(one in TRUNCATIONS for one in FAST)


@pytest.mark.parametrize("kwargs", TRUNCATIONS, ids=str)
def test_truncation_keeps_the_most_probable(kwargs):
    rng = np.random.default_rng(5)
    logits = rng.normal(scale=2.0, size=(40, 11))
    probabilities = np.stack([softmax(row) for row in logits])
    log_probs = np.log(probabilities).astype("float32")
    result = decoding.truncate_distribution(
        tf.constant(log_probs), **kwargs
    ).numpy()
    for row in range(40):
        kept = truncated(probabilities[row], **kwargs)
        assert np.flatnonzero(result[row] > -1e8).tolist() == kept
        np.testing.assert_array_equal(result[row, kept], log_probs[row, kept])


@pytest.mark.parametrize(
    "kwargs",
    [
        pytest.param(one, marks=() if one in FAST else pytest.mark.slow)
        for one in TRUNCATIONS[1:]
    ],
    ids=str,
)
def test_first_tokens_follow_the_truncated_softmax(kwargs):
    temperature = 1.5
    probabilities = softmax(LOGITS / temperature)
    kept = truncated(probabilities, **kwargs)
    expected = np.zeros_like(probabilities)
    expected[kept] = probabilities[kept] / probabilities[kept].sum()
    check_first_tokens(
        expected, temperature=temperature, **kwargs, **same_rows(20_000, LOGITS)
    )


def test_a_seed_gives_the_tokens(draw_chain):
    chain = draw_chain(0, [8] * 20, vocabulary_size=7)
    first, again, other = (
        decoding.sampling_search(**chain.arguments(), seed=seed)
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first.ids, again.ids)
    assert (first.ids != other.ids).numpy().any()


def test_positions_and_rows_draw_apart():
    # 50 rows of one distribution: neither all alike nor constant in time.
    arguments = same_rows(50, np.where(np.arange(7) == END, -20.0, 0.0))
    arguments["max_lengths"] = tf.fill([50], 20)
    result = decoding.sampling_search(**arguments, seed=0)
    ids = result.ids[:, 0, :-1].numpy().tolist()
    assert len({tuple(row) for row in ids}) == 50
    assert min(len(set(row)) for row in ids) > 2


def test_a_sampled_row_does_not_depend_on_those_after_it():
    flat = np.zeros(7)
    results = []
    for num_rows, limit in ((1, 9), (3, 40)):
        arguments = same_rows(num_rows, flat)
        arguments["max_lengths"] = tf.constant([9, limit, limit][:num_rows])
        result = decoding.sampling_search(**arguments, seed=3)
        results.append(result.ids[0, 0, :9].numpy().tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "temperature", [1e-320, 1e-45, 1e-9, 1e9, 1e300, float("inf")]
)
def test_no_temperature_lifts_a_ban(draw_chain, temperature):
    chain = draw_chain(3, [5] * 50, vocabulary_size=7)
    result = decoding.sampling_search(
        **chain.arguments(),
        seed=1,
        temperature=temperature,
        forbidden_ids=CONTROL,
    )
    ids, lengths = result.ids[:, 0].numpy(), result.lengths[:, 0].numpy()
    assert (lengths > 0).all()
    for row, length in zip(ids, lengths, strict=True):
        assert not set(row[:length]) & set(CONTROL)
        assert row[length - 1] == END
    if temperature < 1:  # The limit is greedy search.
        greedy = decoding.greedy_search(
            **chain.arguments(), forbidden_ids=CONTROL
        )
        np.testing.assert_array_equal(result.ids, greedy.ids)


def test_sampled_hypotheses_are_scored_like_forced_ones(
    draw_chain, check_hypothesis
):
    chain = draw_chain(1, [6, 2, 9], vocabulary_size=6)
    result = decoding.sampling_search(
        **chain.arguments(), seed=3, temperature=2.0
    )
    for row, length in enumerate(result.lengths[:, 0].numpy()):
        ids = result.ids[row, 0, :length].numpy().tolist()
        assert ids.count(END) == 1
        check_hypothesis(result, row, 0, chain, ids)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"temperature": float("-inf")}, "temperature=-inf"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"top_k": 0}, "top_k=0"),
        ({"top_p": 0.0}, "top_p=0.0"),
        ({"top_p": 1.1}, "top_p=1.1"),
        ({"top_p": float("nan")}, "top_p=nan"),
        ({"min_p": 0.0}, "min_p=0.0"),
        ({"num_samples": 0}, "0"),
    ],
)
def test_settings_out_of_range_are_refused(draw_chain, kwargs, message):
    chain = draw_chain(0, [3])
    with pytest.raises(ValueError, match=f"Received: {message}"):
        decoding.sampling_search(**chain.arguments(), seed=0, **kwargs)


def test_samples_follow_the_distribution_of_all_answers(
    draw_chain, check_hypothesis
):
    """Each answer comes as often as enumeration says, the best ones first."""
    num_samples = 20_000
    chain = draw_chain(2, [3, 1], vocabulary_size=5)
    # So few numbers need little memory.
    rng = np.random.default_rng(4)
    result = decoding.sampling_search(
        **chain.arguments(),
        num_samples=num_samples,
        uniforms=rng.random((2 * num_samples, 3), dtype="float32"),
    )
    log_p = result.log_probability[0].numpy()
    assert (np.diff(log_p) <= 0).all() and log_p[0] > log_p[-1]
    rows = result.ids[0].numpy().tolist()
    answers = [tuple(row[: row.index(END) + 1]) for row in rows]
    check_hypothesis(result, 0, 0, chain, answers[0])
    at_limit = 0.0
    for ids in chain.all_hypotheses(0):
        # At the limit END is no choice: it costs log p and draws nothing.
        log_p, _ = chain.follow(0, ids if len(ids) < 3 else ids[:-1])
        share = np.exp(log_p)
        at_limit += share
        deviation = np.sqrt(num_samples * share * (1 - share))
        count = answers.count(ids)
        assert abs(count - num_samples * share) <= 5 * deviation + 1e-6
    assert at_limit == pytest.approx(1, rel=1e-6)
    assert not (result.ids[1].numpy() - [END, 0, 0]).any()


def test_numbers_of_its_own_make_a_row_independent(draw_chain):
    chain = draw_chain(6, [9, 3, 9], vocabulary_size=7)
    rng = np.random.default_rng(0)
    uniforms = rng.random((3, 2, 9), dtype="float32")
    choices = {"num_samples": 2, "temperature": 2.0}
    together = decoding.sampling_search(
        **chain.arguments(), uniforms=uniforms.reshape(6, 9), **choices
    )
    for row in range(3):
        alone = decoding.sampling_search(
            **chain.row(row).arguments(), uniforms=uniforms[row], **choices
        )
        length = alone.ids.shape[2]
        np.testing.assert_array_equal(
            together.ids[row, :, :length], alone.ids[0]
        )


def test_sampling_may_not_forbid_the_end(draw_chain):
    with pytest.raises(ValueError, match="cannot be forbidden"):
        decoding.sampling_search(
            **draw_chain(0, [1, 2]).arguments(), seed=0, forbidden_ids=(END,)
        )
