"""`keras-attention translate`."""

import dataclasses
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from keras_attention.commands import arguments
from keras_attention.config.choices import Choices, choice


@dataclasses.dataclass(frozen=True)
class Options(Choices):
    """How to translate, and what to print."""

    num_beams: int | None = choice(
        None,
        "Beams of the search, 1 for greedy search. By default the model's own "
        "number. A SavedModel takes that or 1.",
        at_least=1,
    )
    length_penalty: float | None = choice(
        None,
        "Alpha of the length penalty, 0 for none. By default the run's own. A "
        "SavedModel keeps its own.",
        at_least=0,
    )
    n_best: int | None = choice(
        None,
        "Print this many translations of each text, best first.",
        at_least=1,
    )
    scores: bool = choice(False, "Print each translation's score behind a tab.")
    truncate: bool = choice(
        False,
        "Translate what fits of a text that is too long. By default its line "
        "stays empty, and the command ends with an error.",
    )
    attention: str | None = choice(
        None,
        "Where to draw the attention of the first text, a .png, .svg or .pdf "
        "file.",
        is_path=True,
    )


# Only a `meta` application tells where `--` stood.
app = arguments.make_app("translate", "Translate texts, or lines.").meta


@app.default
def translate(
    model: arguments.Model,
    /,
    *texts: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="Texts to translate. By default the lines of standard input. "
            "A word that begins with two dashes has to stand behind `--`.",
        ),
    ],
    options: Annotated[Options, arguments.group("Options")] = Options(),
) -> None:
    """Lines in, lines out, in the same order."""
    words = _texts(texts)
    arguments.check_model(model)
    arguments.check_picture(options.attention)
    arguments.import_tensorflow()
    from keras_attention.commands import runs

    translator = runs.load(model, *arguments.search(model, options))
    if translator.task != "translation":
        _check_no_search(translator, options)
    if options.n_best or options.scores or options.attention:
        _check_own_beams(translator, options)
    lines = words or _standard_input()
    too_long = {} if options.truncate else translator.too_long(lines)
    short = [text for line, text in enumerate(lines, 1) if line not in too_long]
    if options.n_best or options.scores:
        hypotheses = translator.n_best(short, truncate=options.truncate)
        answers = _best_lines(hypotheses, options)
    else:
        search = {"num_beams": options.num_beams} if options.num_beams else {}
        texts = translator(short, truncate=options.truncate, **search)
        answers = ([_one_line(text)] for text in texts)
    # A text that is too long has as many lines as any other.
    nothing = [""] * (options.n_best or 1)
    for line in range(1, len(lines) + 1):
        print(*(nothing if line in too_long else next(answers)), sep="\n")
    if too_long:
        line, (num_tokens, limit) = next(iter(too_long.items()))
        raise ValueError(
            f"Expected texts of at most {limit} tokens: split the text into "
            "sentences, or add --truncate. The other lines are translated. "
            f"Received: {num_tokens} tokens in line {line}; {len(too_long)} "
            "such lines in all"
        )
    if options.attention:
        _draw_attention(translator, short, options.attention)


def _texts(words: tuple[str, ...]) -> list[str]:
    """The words without `--`. Before it, a mistyped option is an error."""
    end = words.index("--") if "--" in words else len(words)
    for word in words[:end]:
        if word.startswith("--") and " " not in word.partition("=")[0]:
            token = cyclopts.Token(keyword=word)
            collection = app.assemble_argument_collection()
            raise cyclopts.UnknownOptionError(
                token=token, argument_collection=collection
            )
    texts = [*words[:end], *words[end + 1 :]]
    return [os.fsencode(text).decode("utf-8", "replace") for text in texts]


def _standard_input() -> list[str]:
    from keras_attention.data import lines

    return [
        line.decode("utf-8", "replace")
        for line in lines.split_lines(sys.stdin.buffer)
    ]


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


def _draw_attention(translator, texts, path) -> None:
    from keras_attention.tasks import translation

    if not translation.draw_attention(translator, texts, path):
        raise ValueError(
            "Expected a text that is not blank, to draw its attention. "
            f"Received: {len(texts)} blank texts"
        )
