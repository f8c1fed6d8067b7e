"""The lines that a model answers to lines, as `predict` writes them.

This module imports neither TensorFlow nor Keras.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# So many lines without an answer are named.
_NAMED = 5


def check(model, options) -> None:
    """Checks that a model can answer as the options ask.

    Args:
        model: from `runs.load`.
        options: `commands.predict.Options`.

    Raises:
        ValueError: If it cannot.
    """
    if model.task != "translation":
        _check_no_search(model, options)
    if options.n_best or options.scores or options.attention:
        _check_own_beams(model, options)


@dataclasses.dataclass(frozen=True)
class Asked:
    """Lines that a model is asked, and what answers them.

    Who asked calls `answer(rows)`: no function of ours stands between a verb
    and the model.

    Attributes:
        model: from `runs.load`.
        answer: a function of rows, the model's own.
        rows: those that it can answer.
        problems: line, from 1 -> what is wrong with it.
        num_lines: the number of all lines.
        options: `commands.predict.Options`.
    """

    model: Any
    answer: Callable[[list], list]
    rows: list
    problems: dict[int, str]
    num_lines: int
    options: Any

    def groups(self, found: list) -> Iterator[list[str]]:
        """The lines to write for each line, in order.

        A line that cannot be answered has as many lines as any other, and they
        are empty.

        Args:
            found: what `answer` has returned.
        """
        count = self.options.n_best or 1
        if _asks_for_scores(self.options):
            written = _best_lines(found, self.options)
        else:
            written = ([_one_line(text)] for text in found)
        return (
            [""] * count if line in self.problems else next(written)
            for line in range(1, self.num_lines + 1)
        )


def asked(model, lines: list[str], options) -> Asked:
    """Which of some lines a model can answer, and how.

    Args:
        model: from `runs.load`.
        lines: B texts, or B rows of texts with tabs between them.
        options: `commands.predict.Options`.
    """
    rows, problems = _rows(model, lines)
    if not options.truncate:
        places = list(rows)
        for row, sizes in model.too_long(list(rows.values())).items():
            num_tokens, limit = sizes
            problems[places[row - 1]] = (
                f"{num_tokens} tokens, and the model takes {limit} (split it "
                "into sentences, or add --truncate)"
            )
    return Asked(
        model,
        _function(model, options),
        [row for line, row in rows.items() if line not in problems],
        problems,
        len(lines),
        options,
    )


def refuse(problems: dict[int, str], num_lines: int) -> None:
    """Ends with an error if there are lines without an answer.

    Args:
        problems: line, from 1 -> what is wrong with it.
        num_lines: the number of all lines.

    Raises:
        ValueError: If there are. The message names the first of them.
    """
    if not problems:
        return
    named = [
        f"line {line}: {problem}"
        for line, problem in itertools.islice(sorted(problems.items()), _NAMED)
    ]
    if len(problems) > _NAMED:
        named.append(f"and {len(problems) - _NAMED} more")
    raise ValueError(
        f"{len(problems)} of {num_lines} lines could not be answered, and "
        f"their answers are empty. {'; '.join(named)}"
    )


def _rows(model, lines) -> tuple[dict, dict[int, str]]:
    """Line -> its row, and line -> what is wrong with it."""
    names = model.kind.inputs
    if len(names) == 1:
        return dict(enumerate(lines, 1)), {}
    rows, problems = {}, {}
    for line, text in enumerate(lines, 1):
        texts = tuple(text.split("\t"))
        if len(texts) == len(names):
            rows[line] = texts
        else:
            problems[line] = (
                f"{len(texts) - 1} tabs, and a line is {' TAB '.join(names)}"
                if text.strip()
                else "blank"
            )
    return rows, problems


def _function(model, options) -> Callable[[list], list]:
    """What of a model answers rows as the options ask."""
    if _asks_for_scores(options):
        return functools.partial(model.n_best, truncate=options.truncate)
    search = {"num_beams": options.num_beams} if options.num_beams else {}
    return functools.partial(model, truncate=options.truncate, **search)


def _asks_for_scores(options) -> bool:
    """Whether the answers are hypotheses with their scores."""
    return bool(options.n_best or options.scores)


def _one_line(text: str) -> str:
    """The answer without line ends, which would shift the lines."""
    return " ".join(text.splitlines())


def _best_lines(
    hypotheses: Iterable[list[tuple[str, float]]], options
) -> Iterator[list[str]]:
    """The lines to print for each text: its best translations."""
    count = options.n_best or 1
    missing = [("", float("-inf"))] * count
    return (
        [
            _one_line(text) + (f"\t{score:.4f}" if options.scores else "")
            for text, score in (of_text + missing)[:count]
        ]
        for of_text in hypotheses
    )


def _check_no_search(model, options) -> None:
    names = ("num_beams", "length_penalty", "n_best", "scores", "attention")
    values = {name: getattr(options, name) for name in names}
    # 0 is a choice, None and False are none.
    asked = [
        f"--{n}" for n, v in values.items() if v is not None and v is not False
    ]
    if asked:
        task = model.task.replace("_", " ")
        raise ValueError(
            f"{' and '.join(asked)} works with translation models only; this "
            f"model does {task}."
        )


def _check_own_beams(translator, options) -> None:
    if options.num_beams not in (None, translator.num_beams):
        raise ValueError(
            "n-best lists and scores are those of the SavedModel's own "
            f"{translator.num_beams} beams: leave --num_beams out, or give the "
            f"folder of the run. Received: num_beams={options.num_beams}"
        )
    if (options.n_best or 1) > translator.num_beams:
        raise ValueError(
            f"This model finds {translator.num_beams} translations at most, "
            f"one a beam. Received: n_best={options.n_best}"
        )
