"""The lines that a model answers to lines, as `translate` writes them.

This module imports neither TensorFlow nor Keras.
"""

from collections.abc import Iterable, Iterator


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


def answer(
    model, lines: list[str], options
) -> tuple[Iterator[list[str]], dict[int, tuple[int, int]]]:
    """Answers lines, and finds those that are too long.

    Args:
        model: from `runs.load`.
        lines: B texts.
        options: `commands.translate.Options`.

    Returns:
        `(groups, too_long)`. A group for each of the B texts: the lines to
        write, `n_best` of them or one. They are empty for a text that is too
        long. And those texts: line, from 1 -> `(num_tokens, limit)`.
    """
    too_long = {} if options.truncate else model.too_long(lines)
    short = [text for line, text in enumerate(lines, 1) if line not in too_long]
    if options.n_best or options.scores:
        hypotheses = model.n_best(short, truncate=options.truncate)
        answers = _best_lines(hypotheses, options)
    else:
        search = {"num_beams": options.num_beams} if options.num_beams else {}
        texts = model(short, truncate=options.truncate, **search)
        answers = ([_one_line(text)] for text in texts)
    # A text that is too long has as many lines as any other.
    nothing = [""] * (options.n_best or 1)
    groups = (
        nothing if line in too_long else next(answers)
        for line in range(1, len(lines) + 1)
    )
    return groups, too_long


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
