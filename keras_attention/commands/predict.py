"""`keras-attention predict`."""

import dataclasses
import os
import sys
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from keras_attention.commands import arguments, asked_lines
from keras_attention.config import search
from keras_attention.config.choices import choice


@dataclasses.dataclass(frozen=True)
class Options(search.Search):
    """How to answer, and what to print."""

    n_best: int | None = choice(
        None,
        "For translators, how many translations of each text to print, best "
        "first.",
        at_least=1,
    )
    scores: bool = choice(
        False, "For translators, print each translation's score behind a tab."
    )
    mbr: bool = choice(
        False,
        "For translators, print the translation that is most like all others "
        "by chrF (minimum Bayes risk), of as many as the search has beams or "
        "draws samples. Add --temperature for samples.",
    )
    prefix: str | None = choice(
        None, "For translators, a text that each translation begins with."
    )
    terms: str | None = choice(
        None,
        "For translators, what each translation must hold: texts, with "
        "semicolons between them. If no hypothesis of the beam holds all, the "
        "translation is empty. More beams find more.",
    )
    split_sentences: bool = choice(
        False,
        "For translators, translate each sentence of a text for itself. The "
        "spaces between them stay.",
    )
    keep: str | None = choice(
        None,
        "For translators, what comes out as it went in: url, email, tag, "
        "field, number, or regular expressions, with semicolons between them. "
        "It is copied, forced by the search, or translated around. A regular "
        "expression here may hold no semicolon, nor begin or end with a space.",
    )
    stand_in: str = choice(
        "{}",
        "With --keep, what the model reads in place of what is kept. {} is a "
        "number.",
    )
    truncate: bool = choice(
        False,
        "Answer what fits of a text that is too long. By default its answer "
        "is empty, and the command ends with an error.",
    )
    attention: str | None = choice(
        None,
        "For translators, where to draw the attention of the first text: a "
        ".png, .svg or .pdf file, or a .gif, which has a picture for each "
        "token that is written.",
        is_path=True,
    )
    output: str | None = choice(
        None,
        "With --input, the folder of the answers: a file for each 1,000 lines. "
        "If some are there already, the command adds the others.",
        is_path=True,
    )
    workers: int = choice(
        1,
        "With --input, the number of processes, on Ray (the extra `ray`).",
        at_least=1,
    )
    ray_address: str | None = choice(
        None,
        "With --input, the address of a cluster of Ray whose machines do the "
        "work, such as auto. MODEL and --output must have the same path on all "
        "of these machines. By default, the workers run on this machine.",
    )

    @property
    def is_constrained(self) -> bool:
        """Whether a prefix or terms are given."""
        return bool(self.prefix or self.terms)

    @property
    def kept(self) -> list[str]:
        """The patterns of what is kept."""
        patterns = map(str.strip, (self.keep or "").split(";"))
        return [pattern for pattern in patterns if pattern]


Texts = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="Texts to answer. By default the lines of standard input. Where "
        "the model takes several texts, such as a premise and a hypothesis, a "
        "tab stands between them, or the line is a JSON object with their "
        "names. A picture is a JSON list of rows of numbers. A word that "
        "begins with two dashes must come after `--`.",
    ),
]
Input = Annotated[
    list[str],
    Parameter(
        consume_multiple=True,
        help="Files of lines to answer into --output, plain or compressed, one "
        "after the other. Put MODEL before this option.",
    ),
]
Ensemble = Annotated[
    list[str],
    Parameter(
        consume_multiple=True,
        help="For translators, other runs of the same vocabulary. Each token "
        "is chosen by the mean of the probabilities that MODEL, a run, and "
        "these give it. Put MODEL and the texts before this option.",
    ),
]
Choice = Annotated[Options, arguments.group("Options")]
DEFAULTS = Options()

# Only a `meta` application tells where `--` stood.
app = arguments.make_app("predict", "Answer texts, or lines.").meta


@app.default
def predict(
    model: arguments.Model,
    /,
    *texts: Texts,
    input: Input = (),
    ensemble: Ensemble = (),
    options: Choice = DEFAULTS,
) -> None:
    """Lines in, lines out, in the same order."""
    asked = read(app, model, texts, input, options, ensemble)
    if asked:
        write(asked, asked.ask(asked.rows))


def read(
    command: cyclopts.App, model: str, texts, input, options, ensemble=()
) -> asked_lines.AskedLines | None:
    """The texts or lines that a command was called with, and whom it asks.

    Returns:
        None if they were lines of files: then all is done.
    """
    words = _texts(command, texts)
    arguments.check_model(model)
    arguments.check_picture(options.attention, may_move=True)
    arguments.check_ensemble(model, ensemble)
    if options.stand_in != DEFAULTS.stand_in and not options.kept:
        raise ValueError(
            "--stand_in goes with --keep. Add --keep, or leave --stand_in out."
        )
    if _wants_constraints(model, options):
        options = dataclasses.replace(options, constraints=True)
    if input or options.output or options.ray_address or options.workers > 1:
        if ensemble:
            raise ValueError(
                "--ensemble answers texts and standard input. Leave it out, "
                "or leave out --input, --output, --workers and --ray_address."
            )
        _check_files(words, input, options)
        from keras_attention.commands import many_lines

        many_lines.write_parts(model, input, options)
        return None
    arguments.import_tensorflow()
    loaded = arguments.load(
        model,
        options,
        ensemble,
        asked_lines.signatures(options),
        # Whoever types texts waits for them; a stream may be long.
        is_brief=bool(words),
    )
    return asked_lines.of(loaded, words or _standard_input(), options)


def _wants_constraints(model: str, options: Options) -> bool:
    """Whether a run is loaded with the search that must write terms.

    An export has the signature for it, or does not.
    """
    if not (options.is_constrained or options.kept):
        return False
    if not arguments.is_run(model):
        return False
    from keras_attention import config as configuration
    from keras_attention.training import run_directory

    config = run_directory.read_config(run_directory.at(model))
    if config.task != "translation":
        # `asked_lines` refuses what was typed, and nobody typed constraints.
        return False
    search = configuration.replace(config, **options.given).search
    return options.is_constrained or not search.samples


def write(asked: asked_lines.AskedLines, found: list) -> None:
    """Prints the answers, and names the lines that have none."""
    for group in asked.written(found):
        print(*group, sep="\n")
    asked_lines.name_mistyped(asked.options.kept, lambda: asked.rows)
    if asked.options.attention:
        _draw_attention(asked)
    asked_lines.refuse(asked.problems, asked.num_lines)


def _texts(command: cyclopts.App, words: tuple[str, ...]) -> list[str]:
    """The words without `--`. Before it, a mistyped option is an error."""
    end = words.index("--") if "--" in words else len(words)
    for word in words[:end]:
        if word.startswith("--") and " " not in word.partition("=")[0]:
            token = cyclopts.Token(keyword=word)
            collection = command.assemble_argument_collection()
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
    """Checks that lines of files go to a folder, and nothing else does."""
    from keras_attention import files

    for path in input:
        arguments.find_file("input", path)
    if not input or not options.output or words or options.attention:
        raise ValueError(
            "To answer files, give both --input and --output, and neither "
            "texts nor --attention. --workers and --ray_address need --input "
            "and --output."
        )
    files.check_folder(options.output)


def _draw_attention(asked: asked_lines.AskedLines) -> None:
    from keras_attention.tasks import translation

    path = asked.options.attention
    if not translation.draw_attention(asked.model, asked.rows, path):
        raise ValueError(
            "--attention needs a text that is not blank and that the model "
            "has answered."
        )
