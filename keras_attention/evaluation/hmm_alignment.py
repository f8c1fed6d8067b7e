"""Alignment by a hidden Markov model: words in order are likelier."""

import collections
from collections.abc import Sequence

import numpy as np

from keras_attention.evaluation import lexicons

# Far below any probability; what divides by it is 0.
SMALLEST = 1e-300


def hmm_alignment(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    iterations: int = 5,
    empty: float = 0.2,
) -> list[list[int]]:
    """Aligns pairs by which tokens stand together, and in which order.

    A hidden Markov model whose states are the source positions (Vogel et al.
    1996; with the empty word, Och and Ney 2003, section 2.1.1):

    ```
    p(f, a | e) = prod_j p(a_j | a_{j-1}) t(f_j | e_{a_j})
    p(i | i')   = (1 - p_0) c(i - i') / sum_i'' c(i'' - i')
    ```

    With probability p_0 the empty word writes f_j, and the position stays where
    it was. The first position is any. Five rounds of IBM Model 1 give the first
    t, and all jumps c begin equal. Expectation maximisation sums over all
    alignments by the forward-backward algorithm. The links are those of the
    likeliest alignment (Viterbi).

    Args:
        pairs: source ids and target ids, also those of the sentences to be
            aligned.
        iterations: how many rounds of expectation maximisation there are.
        empty: p_0.

    Returns:
        For each pair, the source position of each target token, or
        `alignment.NULL`.

    Reference: https://aclanthology.org/C96-2141
    """
    lexicon = lexicons.learn(pairs, iterations=5)
    translation, groups = lexicon.translation, _groups(pairs, lexicon)
    longest = max((size for size, _ in groups), default=1)
    jumps = np.ones(2 * longest - 1)  # by 1 - longest to longest - 1
    for _ in range(iterations):
        expected, jumped = np.zeros(len(translation)), np.zeros(len(jumps))
        for (size, _), (_, couples) in groups.items():
            links, made = _posteriors(
                translation[couples], _window(jumps, size), empty
            )
            expected += np.bincount(
                couples.ravel(), links.ravel(), len(translation)
            )
            _window(jumped, size)[:] += made
        of_word = np.bincount(lexicon.word, expected)[lexicon.word]
        translation = expected / np.maximum(of_word, SMALLEST)
        # A jump that was never made stays possible.
        jumps = jumped + 1e-6 * max(jumped.sum(), 1)
    # A text without tokens leaves nothing but the empty word.
    found = [[lexicons.NULL] * len(target) for _, target in pairs]
    for (size, _), (places, couples) in groups.items():
        best = _likeliest(translation[couples], _window(jumps, size), empty)
        for place, positions in zip(places, best.tolist(), strict=True):
            found[place] = positions
    return found


def _posteriors(emissions, jumps, empty):
    """What each position and each jump expects, over all alignments.

    Args:
        emissions: [B, T, 1 + S], t(f_j | e_i) of pairs of one size, the empty
            word first.
        jumps: [2 S - 1], c of the jumps by 1 - S to S - 1.
        empty: p_0.

    Returns:
        `(links, made)`. `links` [B, T, 1 + S] is the probability that the empty
        word, or the word at a position, wrote f_j. `made` [2 S - 1] is the
        expected number of each jump, summed over the pairs.
    """
    steps, distances = _steps(jumps, empty)
    written, left_out = emissions[..., 1:], emissions[..., :1]
    size, length = written.shape[2], written.shape[1]
    # Forward: p(f_1 ... f_j, position), whose sum is kept at 1.
    positions = np.full(written[:, 0].shape, 1 / size)
    moved, stayed, at, scales = [], [], [], []
    for j in range(length):
        arrive = positions @ steps if j else (1 - empty) * positions
        moved.append(arrive * written[:, j])
        stayed.append(empty * positions * left_out[:, j])
        positions = moved[-1] + stayed[-1]
        scales.append(positions.sum(axis=1, keepdims=True))
        positions = positions / scales[-1]
        at.append(positions)
    # Backward: p(the rest | position).
    links, made = np.zeros(emissions.shape), np.zeros(len(jumps))
    rest = np.ones(written[:, 0].shape)
    for j in reversed(range(length)):
        ahead = rest / scales[j]
        links[:, j, 1:] = moved[j] * ahead
        links[:, j, 0] = (stayed[j] * ahead).sum(axis=1)
        arrive = written[:, j] * ahead
        if j:
            between = (at[j - 1].T @ arrive) * steps
            made += np.bincount(distances.ravel(), between.ravel(), len(jumps))
        rest = arrive @ steps.T + empty * left_out[:, j] * ahead
    return links, made


def _likeliest(emissions, jumps, empty):
    """The likeliest alignment: `_posteriors`' arguments -> int [B, T]."""
    with np.errstate(divide="ignore"):
        steps, emissions = np.log(_steps(jumps, empty)[0]), np.log(emissions)
        stay, first = np.log(empty), np.log(1 - empty)
    written, left_out = emissions[..., 1:], emissions[..., :1]
    here = np.arange(written.shape[2])
    best = np.zeros(written[:, 0].shape)
    came_from, wrote = [], []
    for j in range(written.shape[1]):
        if j:
            ways = best[:, :, None] + steps  # from, to
            sources = ways.argmax(axis=1)
            moved = ways.max(axis=1) + written[:, j]
        else:
            sources, moved = here, first + written[:, j]
        stayed = best + stay + left_out[:, j]
        wrote.append(moved >= stayed)
        came_from.append(np.where(wrote[-1], sources, here))
        best = np.maximum(moved, stayed)
    rows, place = np.arange(len(best)), best.argmax(axis=1)
    links = np.full(written.shape[:2], lexicons.NULL)
    for j in reversed(range(written.shape[1])):
        is_word = wrote[j][rows, place]
        links[is_word, j] = place[is_word]
        place = came_from[j][rows, place]
    return links


def _steps(jumps, empty):
    """(1 - p_0) p(i | i') [S, S], and the index of each jump."""
    size = (len(jumps) + 1) // 2
    places = np.arange(size)
    distances = places[None, :] - places[:, None] + size - 1
    steps = jumps[distances]
    return (1 - empty) * steps / steps.sum(axis=1, keepdims=True), distances


def _window(jumps, size):
    """The jumps that a text of so many tokens has room for: a view."""
    middle = len(jumps) // 2
    return jumps[middle - size + 1 : middle + size]


def _groups(pairs, lexicon):
    """Pairs of one size together: (S, T) -> their places and couples.

    The couples [B, T, 1 + S] are indices of the lexicon.
    """
    places, starts = collections.defaultdict(list), [0]
    for place, (source, target) in enumerate(pairs):
        if len(source) and len(target):
            places[len(source), len(target)].append(place)
        starts.append(starts[-1] + (len(source) + 1) * len(target))
    groups = {}
    for (size, length), found in places.items():
        rows = np.array(starts)[found][:, None]
        rows = rows + np.arange(length * (size + 1))
        couples = lexicon.couple[rows].reshape(-1, length, size + 1)
        groups[size, length] = found, couples
    return groups
