"""`keras-attention translate`."""

import dataclasses
import os
import sys
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from keras_attention.commands import answers, arguments
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
    output: str | None = choice(
        None,
        "With --input, the folder of the translations: a file for each shard. "
        "The command goes on with what is missing in it.",
        is_path=True,
    )
    shards: int | None = choice(
        None,
        "With --input, the number of shards. By default one for each 1,000 "
        "lines.",
        at_least=1,
    )
    workers: int = choice(
        1,
        "With --input, the number of processes, which share the cores.",
        at_least=1,
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
    input: Annotated[
        list[str],
        Parameter(
            consume_multiple=True,
            help="Files of lines to translate into --output, plain or "
            "compressed, one after the other. MODEL stands before this option.",
        ),
    ] = (),
    options: Annotated[Options, arguments.group("Options")] = Options(),
) -> None:
    """Lines in, lines out, in the same order."""
    words = _texts(texts)
    arguments.check_model(model)
    arguments.check_picture(options.attention)
    if input or options.output or options.shards or options.workers > 1:
        _check_files(words, input, options)
        from keras_attention.commands import translate_files

        translate_files.translate(model, input, options)
        return
    arguments.import_tensorflow()
    from keras_attention import runs

    translator = runs.load(model, *arguments.search(model, options))
    answers.check(translator, options)
    lines = words or _standard_input()
    short, too_long = answers.short_lines(translator, lines, options)
    ask = answers.method(translator, options)
    for group in answers.groups(ask(short), len(lines), too_long, options):
        print(*group, sep="\n")
    answers.refuse(too_long)
    if options.attention:
        _draw_attention(translator, lines, options)


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
    from keras_attention.data.readers import lines

    return [
        line.decode("utf-8", "replace")
        for line in lines.split_lines(sys.stdin.buffer)
    ]


def _check_files(words, input, options) -> None:
    """That lines of files go to a folder, and nothing else is asked for."""
    from keras_attention import files

    for path in input:
        arguments.find_file("input", path)
    others = {"texts": words, "attention": options.attention}
    given = [name for name, value in others.items() if value]
    if not input or not options.output or given:
        raise ValueError(
            "Expected --input with --output, without texts and without "
            "--attention; --shards and --workers belong to them. Received: "
            f"input={list(input)}, output={options.output}"
            + "".join(f", {name}={others[name]!r}" for name in given)
        )
    files.check_folder(options.output)


def _draw_attention(translator, texts, options) -> None:
    from keras_attention.tasks import translation

    if not translation.draw_attention(translator, texts, options.attention):
        raise ValueError(
            "Expected a text that is not blank, to draw its attention. "
            f"Received: {len(texts)} blank texts"
        )
