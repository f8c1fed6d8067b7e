"""Lines that a model is asked, and the lines that `predict` writes for them.

This module imports neither TensorFlow nor Keras.
"""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from keras_attention import suggestions
from keras_attention.commands import arguments
from keras_attention.config import search

# So many lines without an answer are named.
_NAMED = 5
# Options that ask the search with the model's own beams, each in its way.
_WAYS = (
    ("n_best", "scores", "attention"),
    ("mbr",),
    ("prefix", "terms"),
    ("keep",),
)
# Ways that give one translation, whatever text it is of.
_OF_SENTENCES = (None, "--mbr", "--keep")


@dataclasses.dataclass(frozen=True)
class AskedLines:
    """Lines that a model is asked: some it can answer, the others are bad.

    A command calls `ask(rows)` itself, so that no function of ours stands
    between the command and the model.

    Attributes:
        model: from `runs.load`.
        ask: a function of rows, the model's own.
        rows: those that the model can answer, in order.
        problems: line, from 1 -> what is wrong with it.
        num_lines: the number of all lines.
        options: `commands.predict.Options`.
    """

    model: Any
    ask: Callable[[list], list]
    rows: list
    problems: dict[int, str]
    num_lines: int
    options: Any

    def written(self, found: list) -> Iterator[list[str]]:
        """The lines to write for each line, in order.

        A bad line has as many lines as any other, and they are empty.

        Args:
            found: what `ask` has returned.
        """
        count = self.options.n_best or 1
        groups = (_group(one, count, self.options.scores) for one in found)
        return (
            [""] * count if line in self.problems else next(groups)
            for line in range(1, self.num_lines + 1)
        )


def of(model, lines: list[str], options) -> AskedLines:
    """Which of some lines a model can answer, and how.

    Args:
        model: from `runs.load`.
        lines: B texts, or B rows of texts or numbers, see
            `data.readers.lines.row`.
        options: `commands.predict.Options`.

    Raises:
        ValueError: If the model cannot answer as the options ask.
    """
    _check(model, options)
    rows, problems = _rows(model.kind, lines)
    if not options.truncate:
        places = list(rows)
        for row, sizes in _too_long(model, [*rows.values()], options).items():
            num_tokens, limit = sizes
            problems[places[row - 1]] = (
                f"{num_tokens} tokens, and the model takes {limit} (split it "
                "into sentences, or add --truncate)"
            )
    function, choices = model, {"truncate": options.truncate}
    if options.n_best or options.scores:
        function = model.n_best
    elif options.mbr:
        # It imports TensorFlow, which the model needs, too.
        from keras_attention.tasks import translation

        function = functools.partial(translation.by_minimum_risk, model)
    elif options.is_constrained:
        function = functools.partial(_constrained, model, options)
    elif options.kept:
        from keras_attention.serving import placeholders

        choices |= {"patterns": options.kept, "stand_in": options.stand_in}
        if options.num_beams and options.num_beams != model.num_beams:
            choices["num_beams"] = options.num_beams
        function = functools.partial(placeholders.keep, model)
    elif options.num_beams and options.num_beams != model.num_beams:
        # A run has been loaded with them, and may draw with one beam.
        choices["num_beams"] = options.num_beams
    ask = functools.partial(function, **choices)
    if options.split_sentences:
        from keras_attention.serving import placeholders, sentences

        find = functools.partial(placeholders.find, patterns=options.kept)
        ask = functools.partial(sentences.by_sentences, ask, find=find)
    return AskedLines(
        model,
        ask,
        [row for line, row in rows.items() if line not in problems],
        problems,
        len(lines),
        options,
    )


def signatures(options) -> set[str] | None:
    """The signatures of a SavedModel that `of` and `--attention` ask.

    Args:
        options: `commands.predict.Options`.

    Returns:
        None if all of them may be asked.
    """
    if options.kept:
        return None
    from_list = options.n_best or options.scores or options.mbr
    names = {"n_best"} if from_list else set()
    if options.is_constrained:
        names = {"constrained"}
    # Which is greedy depends on the model.
    names = names or {"serving_default"} | (
        {"greedy"} if options.num_beams else set()
    )
    return names | ({"with_attention"} if options.attention else set())


def name_mistyped(
    patterns: list[str], texts: Callable[[], Iterable[str]]
) -> None:
    """Says which patterns find nothing and are close to a pattern's name.

    Args:
        patterns: `commands.predict.Options.kept`.
        texts: gives all texts. It is called for such patterns only.
    """
    if not patterns:
        return
    from keras_attention.serving import placeholders

    for pattern in patterns:
        meant = suggestions.closest(pattern, placeholders.PATTERNS)
        if pattern in placeholders.PATTERNS or not meant:
            continue
        if not any(placeholders.find(text, [pattern]) for text in texts()):
            print(f"{pattern} finds nothing{meant}.", file=sys.stderr)


def refuse(problems: dict[int, str], num_lines: int) -> None:
    """Ends with an error if there are bad lines.

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


def _rows(kind, lines) -> tuple[dict, dict[int, str]]:
    """Line -> its row, and line -> what is wrong with it."""
    names, is_one = kind.inputs, len(kind.inputs) == 1
    if is_one and not kind.numbers:
        return dict(enumerate(lines, 1)), {}
    # It imports TensorFlow, which the model needs, too.
    from keras_attention.data.readers import lines as readers

    rows, problems = {}, {}
    for line, text in enumerate(lines, 1):
        try:
            row = readers.row(text, names, kind.numbers)
            rows[line] = row[0] if is_one else row
        except ValueError as error:
            problems[line] = str(error) if text.strip() else "blank"
    return rows, problems


def _too_long(model, rows: list, options) -> dict[int, tuple[int, int]]:
    """As `TextModel.too_long`, for the parts that the model will read."""
    if not options.split_sentences and not options.kept:
        return model.too_long(rows)
    from keras_attention.serving import placeholders, sentences

    parts = [(row, text) for row, text in enumerate(rows, 1)]
    if options.split_sentences:
        parts = [
            (row, part)
            for row, text in parts
            for part in sentences.split(
                text, placeholders.find(text, options.kept)
            )[1::2]
        ]
    texts = [part for _, part in parts]
    if options.kept:
        texts = [
            placeholders.mask(part, options.kept, options.stand_in).text
            for part in texts
        ]
    found = model.too_long(texts)
    return {parts[place - 1][0]: sizes for place, sizes in found.items()}


def _group(found, count: int, with_scores: bool) -> list[str]:
    """The lines to write for one line: its answer, or its best translations."""
    if isinstance(found, str):
        found = [(found, 0.0)]
    best = (found + [("", float("-inf"))] * count)[:count]
    return [
        # Line ends would shift the lines.
        " ".join(text.splitlines()) + (f"\t{score:.4f}" if with_scores else "")
        for text, score in best
    ]


def _constrained(model, options, rows, truncate: bool) -> list[str]:
    """Translations that begin with the prefix and hold the terms."""
    terms = [term.strip() for term in (options.terms or "").split(";")]
    found = model.constrained(
        rows,
        prefixes=[options.prefix or ""] * len(rows),
        terms=[terms] * len(rows),
        truncate=truncate,
    )
    return [text for text, _ in found]


def _check(model, options) -> None:
    """Checks that a model can answer as the options ask.

    Raises:
        ValueError: If it cannot.
    """
    names = (*search.NAMES, *itertools.chain(*_WAYS), "split_sentences")
    values = {name: getattr(options, name) for name in names}
    # 0 is a choice, None and False are none.
    asked = [n for n, v in values.items() if v is not None and v is not False]
    wrong = [name for name in asked if not search.is_of(name, model.task)]
    arguments.refuse_for_task(wrong, model.task)
    ways = [[name for name in way if name in asked] for way in _WAYS]
    first, *others = [f"--{way[0]}" for way in ways if way] or [None]
    if others:
        raise ValueError(
            f"{first} and {others[0]} find translations in two ways, which do "
            "not go together. Leave one of them out."
        )
    if options.split_sentences and first not in _OF_SENTENCES:
        raise ValueError(
            f"{first} is of a whole text, and --split_sentences translates "
            "each sentence for itself. Leave one of them out."
        )
    if first in (None, "--keep"):
        return  # The model's call says which beams it has.
    if options.num_beams and options.num_beams != model.num_beams:
        raise ValueError(
            "n-best lists, scores, attention, prefixes and terms are those of "
            f"the SavedModel's own {model.num_beams} beams, not of "
            f"{options.num_beams}. Leave --num_beams out, or give the folder "
            "of the run."
        )
    if (options.n_best or 1) > model.num_beams:
        raise ValueError(
            f"--n_best={options.n_best} is too many: this model finds "
            f"{model.num_beams} translations, one a beam."
        )
