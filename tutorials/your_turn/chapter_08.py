"""Chapter 8: one of BLEU's four shares."""


def right(words, reference, n):
    left, known, total = _runs(reference, n), 0, 0
    for run in _runs(words, n):
        total += 1
        if run in left:
            left.remove(run)
            known += 1
    return known / total


def _runs(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _without_limit(words, reference, n):
    known = [run in _runs(reference, n) for run in _runs(words, n)]
    return sum(known) / len(known)


def _recall(words, reference, n):
    return right(reference, words, n)


def _different_runs(words, reference, n):
    runs = set(_runs(words, n))
    return len(runs & set(_runs(reference, n))) / len(runs)


def _per_word(words, reference, n):
    return right(words, reference, n) * len(_runs(words, n)) / len(words)


cases = [
    ("the cat".split(), "the dog".split(), 1),
    ("the cat the mat the".split(), "the cat sat on the mat".split(), 1),
    ("the cat sat at the cat".split(), "the cat sat on the mat".split(), 2),
    ("on the mat the cat sat on the mat".split(), "on the mat the".split(), 3),
]
mistakes = {
    "A run may count at most as often as the reference has it. You count it "
    "each time.": _without_limit,
    "You divide by the runs of the reference. BLEU divides by those of the "
    "translation.": _recall,
    "You count different runs. Each time that a run stands in the translation "
    "counts.": _different_runs,
    "You divide by the number of words. Divide by the number of runs.": (
        _per_word
    ),
    "This is the share of unknown runs.": (lambda *inputs: 1 - right(*inputs)),
    "This is a number of runs. Divide it by the number of all runs.": (
        lambda words, reference, n: (
            right(words, reference, n) * len(_runs(words, n))
        )
    ),
}

_right, _all = [5, 1], [6, 2]
answers = {
    "a": right("the the the the".split(), "the cat".split(), 1),
    "b": sum(_right) / sum(_all),
    "c": len(_runs(list("abcdefghij"), 4)),
}
