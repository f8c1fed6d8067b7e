"""Checks of what learners write and answer at the end of each chapter.

    your_turn.check(3, masked_search)  # "Right", or which rule is broken
    your_turn.quiz(3, a=0.5, b=...)    # right, too large, or no answer yet

Chapter 3's file is `chapter_03.py`. It has four names:

- `right`: the function that the learner writes, as a loop that reads like the
  equation;
- `cases`: tuples of its arguments, the smallest first;
- `mistakes`: {which rule is broken: the function with that mistake};
- `answers`: {letter: number}, all computed. An integer must be met exactly,
  any other number to one part in a hundred.
"""

import copy
import importlib
import math
import textwrap
import traceback

import numpy as np


def check(chapter, function):
    """Prints what `verdict` says."""
    text = f"{function.__name__}: {verdict(chapter, function)}"
    print(textwrap.fill(text, 79))


def verdict(chapter, function):
    """Calls the function that a learner wrote; says which rule it breaks."""
    turn = _turn(chapter)
    results, error = [], None
    try:
        results = _results(function, turn.cases)
    except Exception as raised:  # Whatever a learner's code may raise.
        error = raised
    expected = _results(turn.right, turn.cases)
    if error is None and _all_same(results, expected):
        return "Right."
    # Before the hole is asked for: `x[..., 0]` has dots, too.
    for rule, mistake in turn.mistakes.items() if error is None else ():
        if _all_same(results, _results(mistake, turn.cases)):
            return rule
    if _has_hole(function, results):
        return "Not written yet. Put your code in the place of the dots."
    if error is not None:
        return f"{_place(error, function)} {type(error).__name__}: {error}"
    return _difference(turn.cases, results, expected)


def quiz(chapter, **guesses):
    """Prints for each question whether the guess is right."""
    for letter, answer in _turn(chapter).answers.items():
        print(f"{letter}: {_opinion(guesses.get(letter, ...), answer)}")


def _opinion(guess, answer):
    if guess is ...:
        return "no answer yet"
    if not isinstance(guess, int | float | np.number):
        return f"{guess!r} is not a number"
    tolerance = 0 if isinstance(answer, int) else 0.01
    if math.isclose(guess, answer, rel_tol=tolerance):
        return "right"
    return f"{guess:.6g} is too {'large' if guess > answer else 'small'}"


def _turn(chapter):
    # 3 and "11b": `chapter_03.py` and `chapter_11b.py`.
    return importlib.import_module(f"your_turn.chapter_{chapter:0>2}")


def _results(function, cases):
    with np.errstate(all="ignore"):
        return [function(*copy.deepcopy(inputs)) for inputs in cases]


def _has_hole(function, results):
    """Whether dots still stand in it, or nothing is returned."""
    code = getattr(function, "__code__", None)
    return any(result is None for result in results) or (
        code is not None and Ellipsis in code.co_consts
    )


def _place(error, function):
    lines = [
        frame.line
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.name == function.__name__ and frame.line
    ]
    return f"It stops at `{lines[-1]}` with" if lines else "It stops with"


def _all_same(results, others):
    return all(map(_is_same, results, others))


def _is_same(result, other):
    result, other = _array(result), _array(other)
    if result.shape != other.shape:
        return False
    if {result.dtype.kind, other.dtype.kind} <= set("biuf"):
        return np.allclose(result, other, equal_nan=True)
    return result.tolist() == other.tolist()


def _array(result):
    try:
        return np.asarray(result)
    except ValueError:  # Rows of different lengths.
        return np.asarray(list(map(str, result)))


def _difference(cases, results, expected):
    """In words, for the first case that is wrong."""
    number, result, wanted = next(
        (number, _array(result), _array(wanted))
        for number, (result, wanted) in enumerate(
            zip(results, expected, strict=True), start=1
        )
        if not _is_same(result, wanted)
    )
    start = f"Not right yet. For input {number} of {len(cases)} "
    if result.shape != wanted.shape:
        return (
            f"{start}the result has the shape {result.shape}, and "
            f"{wanted.shape} is right."
        )
    return (
        f"{start}the result is {_shown(result)}, and {_shown(wanted)} is right."
    )


def _shown(array):
    if array.dtype.kind not in "biuf":
        return str(array.tolist())
    return " ".join(np.array2string(array, precision=3, threshold=12).split())
