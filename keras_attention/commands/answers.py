"""The lines that a model answers to lines, as `translate` writes them.

This module imports neither TensorFlow nor Keras.
"""

import functools
from collections.abc import Callable, Iterable, Iterator


def check(model, options) -> None:
    """That a model can answer as the options ask.

    Args:
        model: from `runs.load`.
        options: `commands.translate.Options`.

    Raises:
        ValueError: If it cannot.
    """
    if model.task != "translation":
        _check_no_search(model, options)
    if options.n_best or options.scores or options.attention:
        _check_own_beams(model, options)


def short_lines(
    model, lines: list[str], options
) -> tuple[list[str], dict[int, tuple[int, int]]]:
    """The lines that a model takes, and those that are too long.

    Args:
        model: from `runs.load`.
        lines: B texts.
        options: `commands.translate.Options`.

    Returns:
        `(short, too_long)`: rows, and line, from 1 -> `(num_tokens, limit)`.
    """
    from keras_attention.data.readers import lines as readers

    rows = readers.rows(lines, len(model.kind.inputs))
    too_long = {} if options.truncate else model.too_long(rows)
    short = [row for line, row in enumerate(rows, 1) if line not in too_long]
    return short, too_long


def method(model, options) -> Callable:
    """A function of texts: the model's own, with what the options ask for.

    Args:
        model: from `runs.load`.
        options: `commands.translate.Options`.
    """
    if options.n_best or options.scores:
        return functools.partial(model.n_best, truncate=options.truncate)
    search = {"num_beams": options.num_beams} if options.num_beams else {}
    return functools.partial(model, truncate=options.truncate, **search)


def groups(
    found: Iterable, num_lines: int, too_long, options
) -> Iterator[list[str]]:
    """The lines to write for each of the texts.

    Args:
        found: what `method` gave for the short lines.
        num_lines: B, the number of all lines.
        too_long: from `short_lines`. Such a line has as many lines as any
            other, and they are empty.
        options: `commands.translate.Options`.
    """
    if options.n_best or options.scores:
        answers = _best_lines(found, options)
    else:
        answers = ([_one_line(text)] for text in found)
    nothing = [""] * (options.n_best or 1)
    return (
        nothing if line in too_long else next(answers)
        for line in range(1, num_lines + 1)
    )


def refuse(too_long: dict[int, tuple[int, int]]) -> None:
    """Ends with an error if there are lines that are too long.

    Raises:
        ValueError: If there are. The message names the first.
    """
    if too_long:
        line, (num_tokens, limit) = next(iter(too_long.items()))
        raise ValueError(
            f"Expected texts of at most {limit} tokens: split the text into "
            "sentences, or add --truncate. The other lines are translated. "
            f"Received: {num_tokens} tokens in line {line}; {len(too_long)} "
            "such lines in all"
        )


def _one_line(text: str) -> str:
    """The translation without line ends, which would shift the lines."""
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
    asked = [n for n, v in values.items() if v is not None and v is not False]
    if asked:
        raise ValueError(
            f"Expected the options of a model of {model.task}: translators "
            f"alone have these. Received: {', '.join(asked)}"
        )


def _check_own_beams(translator, options) -> None:
    if options.num_beams not in (None, translator.num_beams):
        raise ValueError(
            f"Expected num_beams={translator.num_beams}: n-best lists and "
            "scores are those of the SavedModel's own beams. Received: "
            f"num_beams={options.num_beams}"
        )
    if (options.n_best or 1) > translator.num_beams:
        raise ValueError(
            f"Expected n_best of at most {translator.num_beams}, the beams of "
            f"this model. Received: n_best={options.n_best}"
        )
