"""Markov chains to search in, and slow searches in plain Python."""

import functools
import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention import decoding
from keras_attention.tokens import END, START


def log_softmax(logits):
    """In double precision."""
    shifted = np.float64(logits) - np.max(logits, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def writes_again(ids, size):
    """Whether the last n-gram of a hypothesis has stood there before."""
    earlier = [ids[end - size : end] for end in range(size, len(ids))]
    return size > 0 and ids[-size:] in earlier


class MarkovChain:
    """The next token depends on the last two: a state that must follow.

    Args:
        logits: [B, V, V, V]: row, token before last, last token, next one.
        weights: [B, V, V, H, S], where each step looks, by head.
        source_mask: [B, S].
        max_lengths: [B].
    """

    def __init__(self, logits, weights, source_mask, max_lengths):
        self.logits = np.float32(logits)
        self.weights = np.float32(weights)
        self.source_mask = np.array(source_mask)
        self.max_lengths = np.array(max_lengths, "int32")
        self.log_probs = log_softmax(self.logits)
        self.followed = {}

    @staticmethod
    def step(token_ids, memory, state):
        """What `models.Seq2Seq.step` is to a search."""
        rows = tf.range(tf.size(token_ids))
        index = tf.stack([rows, state["before"], token_ids], axis=1)
        return (
            tf.gather_nd(memory["logits"], index),
            {"before": token_ids},
            tf.gather_nd(memory["weights"], index),
        )

    def arguments(self):
        """What every search takes."""
        return {
            "step": self.step,
            "memory": {
                "logits": tf.constant(self.logits),
                "weights": tf.constant(self.weights),
            },
            "state": {"before": tf.fill([len(self.logits)], START)},
            "source_mask": tf.constant(self.source_mask),
            "max_lengths": tf.constant(self.max_lengths),
        }

    def row(self, row):
        """The chain of one row alone."""
        one = slice(row, row + 1)
        return MarkovChain(
            self.logits[one],
            self.weights[one],
            self.source_mask[one],
            self.max_lengths[one],
        )

    @staticmethod
    def language_model_step(token_ids, state):
        """What `models.LanguageModel.step` is to a search."""
        logits, state_after, _ = MarkovChain.step(token_ids, state, state)
        return logits, {**state, **state_after}

    def language_model_arguments(self):
        """What every search takes of a model without a source."""
        arguments = self.arguments()
        return {
            **arguments,
            "step": decoding.without_source(self.language_model_step),
            "memory": (),
            "state": {**arguments["memory"], **arguments["state"]},
            "source_mask": None,
        }

    def follow(self, row, ids, num_given=0):
        """`(log p, weights [L, S])`; log p of what follows the prefix."""
        if (row, *ids) not in self.followed:
            self.followed[row, *ids] = self._follow(row, ids)
        log_probs, weights = self.followed[row, *ids]
        return sum(log_probs[num_given:]), weights

    def _follow(self, row, ids):
        path = [START, START, *ids]
        steps = list(zip(path, path[1:], path[2:], strict=False))
        log_probs = [self.log_probs[row][step] for step in steps]
        weights = [self.weights[row][step[:2]].mean(axis=0) for step in steps]
        return log_probs, np.array(weights)

    def score(self, row, ids, alpha=0.0, beta=0.0, num_given=0):
        """Wu et al. 2016, equation 14."""
        log_prob, weights = self.follow(row, ids, num_given)
        score = log_prob / ((5 + len(ids) - num_given) / 6) ** alpha
        if beta:
            for total, real in zip(
                weights.sum(axis=0), self.source_mask[row], strict=True
            ):
                score += beta * math.log(min(total, 1)) if real else 0
        return score

    def all_hypotheses(
        self, row, alpha=0.0, beta=0.0, forbidden=(), prefix=(), size=0
    ):
        """Every hypothesis within the limit, best first.

        With a `size`, those that write no n-gram of this size again.
        """
        words = set(range(self.logits.shape[-1])) - {END} - set(forbidden)
        hypotheses = [
            (*prefix, *ids, END)
            for length in range(self.max_lengths[row] - len(prefix))
            for ids in itertools.product(sorted(words), repeat=length)
        ]
        hypotheses = [
            ids
            for ids in hypotheses
            if not any(
                writes_again(ids[:end], size)
                for end in range(len(prefix) + 1, len(ids) + 1)
            )
        ]
        return self._best_first(row, hypotheses, alpha, beta, prefix)

    def _best_first(self, row, hypotheses, alpha, beta, prefix):
        return sorted(
            hypotheses,
            key=lambda ids: -self.score(row, ids, alpha, beta, len(prefix)),
        )

    def beam(self, row, num_beams, alpha=0.0, beta=0.0, prefix=(), size=0):
        """Beam search that never stops early: finished hypotheses.

        With a `size`, no hypothesis writes an n-gram of this size again.
        """
        live, finished = [tuple(prefix)], []
        for position in range(len(prefix), self.max_lengths[row]):
            at_limit = position + 1 == self.max_lengths[row]
            words = [END] if at_limit else range(self.logits.shape[-1])
            candidates = [
                (*ids, word)
                for ids in live
                for word in words
                if not writes_again((*ids, word), size)
            ]
            candidates.sort(key=lambda ids: -self.follow(row, ids)[0])
            best = candidates[: num_beams - len(finished)]
            finished += [ids for ids in best if ids[-1] == END]
            live = [ids for ids in best if ids[-1] != END]
        return self._best_first(row, finished, alpha, beta, prefix)


def without_terms(*arguments, max_lengths, **options):
    """A constrained search whose rows have no terms."""
    return decoding.constrained_beam_search(
        *arguments,
        max_lengths=max_lengths,
        term_ids=tf.zeros([tf.size(max_lengths), 1, 1], tf.int32),
        num_beams=3,
        n_best=2,
        **options,
    )


SEARCHES = {
    "greedy": decoding.greedy_search,
    "sampling": functools.partial(decoding.sampling_search, seed=0),
    "beam": functools.partial(decoding.beam_search, num_beams=3, n_best=2),
    "diverse": functools.partial(
        decoding.diverse_beam_search, num_beams=4, num_groups=2
    ),
    "constrained": without_terms,
}


@pytest.fixture(params=SEARCHES)
def search(request):
    """Each search that chooses its tokens."""
    return SEARCHES[request.param]


@pytest.fixture
def draw_chain():
    """A function that draws a chain for each of `limits`."""

    def draw(seed, limits, vocabulary_size=4, source_length=3, heads=2):
        rng = np.random.default_rng(seed)
        size, rows = vocabulary_size, len(limits)
        real = rng.integers(1, source_length + 1, rows)
        mask = np.arange(source_length) < real[:, None]
        weights = rng.random((rows, size, size, heads, source_length))
        weights *= mask[:, None, None, None]
        weights /= weights.sum(axis=-1, keepdims=True)
        logits = rng.normal(scale=2.0, size=(rows, size, size, size))
        return MarkovChain(logits, weights, mask, limits)

    return draw


@pytest.fixture
def drawn_graph():
    """A function of {last: {next: probability}}: a chain of one row."""

    def build(graph, vocabulary_size, limit):
        size = vocabulary_size
        probabilities = np.full((size, size), 1e-6)
        for last, row in graph.items():
            for token, probability in row.items():
                probabilities[last, token] = probability
        logits = np.log(probabilities)[None, None].repeat(size, axis=1)
        weights = np.ones((1, size, size, 1, 2)) / 2
        return MarkovChain(logits, weights, [[True, True]], [limit])

    return build


@pytest.fixture
def check_hypothesis():
    """A function that compares a result's row with plain Python."""

    def check(result, row, rank, chain, ids, alpha=0.0, beta=0.0, num_given=0):
        log_prob, weights = chain.follow(row, ids, num_given)
        # Arrays, as TensorFlow takes long for an index.
        found = type(result)(*(one.numpy()[row, rank] for one in result))
        length = found.lengths
        assert found.ids[:length].tolist() == list(ids)
        assert not found.ids[length:].any()
        np.testing.assert_allclose(
            [found.log_probability, found.score],
            [log_prob, chain.score(row, ids, alpha, beta, num_given)],
            rtol=1e-5,
            atol=1e-6,
        )
        seen = found.attention_weights
        np.testing.assert_allclose(seen[:length], weights, atol=1e-6)
        assert not seen[length:].any()

    return check


# With the tiny sizes of the others, its answers are trivial.
OWN_SIZES = {
    "bytenet": {"hidden_dim": 6},
    "bytenet_convolution": {"hidden_dim": 9, "joined_by": "convolution"},
    "intra_attention_summarizer": {"units": 13},
}


@pytest.fixture(
    scope="module",
    params=[*tiny.names("translation"), "bytenet_convolution"],
)
def model(request):
    """An untrained model of each paper, with opinions."""
    keras.utils.set_random_seed(0)
    name = request.param
    paper = name.removesuffix("_convolution")
    model = tiny.create(paper, 31, **OWN_SIZES.get(name, {}))
    model.build()
    rng = np.random.default_rng(3)
    # Large embeddings: the next token must depend on the last one.
    model.set_weights(
        [
            rng.normal(scale=3 if "embedding" in w.path else 0.5, size=w.shape)
            for w in model.weights
        ]
    )
    return model
