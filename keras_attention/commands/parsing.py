"""The arguments of the command line, verb by verb.

This module imports neither TensorFlow nor Keras: `--help` answers at once.
"""

import itertools
import pathlib
from typing import Literal

import jsonargparse

from keras_attention import __version__
from keras_attention import config as configuration

# Choices that ship with the package: `train --config NAME`.
RECIPES = {
    path.stem: path
    for path in (pathlib.Path(__file__).parents[1] / "recipes").glob("*.yaml")
}
# Those of `translate` that take a value.
TRANSLATE_OPTIONS = (
    "--num_beams",
    "--length_penalty",
    "--n_best",
    "--attention",
)


class ConfigAction(jsonargparse.ActionConfigFile):
    """A file of choices, or the name of a recipe."""

    def __call__(self, parser, config, value, option_string=None):
        if not pathlib.Path(value).is_file():
            if value not in RECIPES:
                raise TypeError(
                    "Expected a YAML file, or one of the recipes "
                    f"{sorted(RECIPES)}. Received: {value}"
                )
            value = str(RECIPES[value])
        super().__call__(parser, config, value, option_string)


def _train_parser(defaults: dict) -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(
        description="Train a model, score it, draw it and export it."
    )
    parser.add_argument(
        "--config",
        action=ConfigAction,
        help="Choices in a YAML file (a language `no` in quotes), or a recipe: "
        + ", ".join(sorted(RECIPES)),
    )
    parser.add_class_arguments(configuration.TrainingConfig, skip={"resume"})
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on where the run in --output was stopped",
    )
    parser.set_defaults(defaults)
    return parser


def _add_search(parser: jsonargparse.ArgumentParser) -> None:
    parser.add_argument(
        "--num_beams",
        type=int | None,
        help="1 for greedy search; by default the model's own number (a "
        "SavedModel takes that or 1)",
    )
    parser.add_argument(
        "--length_penalty",
        type=float | None,
        help="strength of the penalty on length, 0 for none; by default the "
        "run's own (a SavedModel keeps its own)",
    )


def _model_parser(description: str) -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(description=description)
    parser.add_argument("model", help="a SavedModel's folder or a run's")
    _add_search(parser)
    return parser


def _evaluate_parser() -> jsonargparse.ArgumentParser:
    parser = _model_parser("Score a model on a test set.")
    for name, content in (("source", "texts"), ("reference", "translations")):
        parser.add_argument(
            f"--{name}",
            type=str | None,
            help=f"file of {content}, one a line, plain or .gz; by default "
            "the held-out pairs of the run's corpus",
        )
    parser.add_argument(
        "--by_length",
        help="where to draw BLEU by the length of the source in MODEL's "
        "tokens, with 95 % confidence intervals, a .png file; each model's "
        "JSON has the figures as `by_length`",
    )
    parser.add_argument(
        "--beside",
        nargs="+",
        default=[],
        help="other models to score first, each compared with the one "
        "before it, and to draw in the same picture",
    )
    return parser


def _translate_parser() -> jsonargparse.ArgumentParser:
    parser = _model_parser("Translate texts, or the lines of standard input.")
    parser.add_argument(
        "texts", nargs="*", default=[], help="texts to translate"
    )
    parser.add_argument(
        "--n_best",
        type=int | None,
        help="print this many translations of each text, best first",
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="print each translation's score behind a tab",
    )
    parser.add_argument(
        "--attention",
        help="where to draw the attention of the first text, a .png file",
    )
    return parser


def _align_parser() -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(
        description="How well the attention of models that were trained on "
        "`phrases` aligns its test split, beside IBM Model 1."
    )
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument(
        "--picture",
        help="where to draw the attention on a number in words, its true "
        "links framed, a .png file",
    )
    return parser


def _export_parser() -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(
        description="Write a run's model as the next version of a SavedModel."
    )
    parser.add_argument("run", help="a run's folder")
    parser.add_argument(
        "--to", required=True, help="its folder, such as savedmodels/NAME"
    )
    _add_search(parser)
    parser.add_argument(
        "--stored_precision",
        type=Literal["float32", "float16"],
        default="float32",
        help="of the weights in the file: float16 halves its size, and the "
        "model, which still computes in float32, is scored anew",
    )
    return parser


def _bench_parser() -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser()
    parser.add_argument(
        "what",
        choices=["train", "decode", "pipeline", "start"],
        help="training through `fit`, translation by an exported SavedModel, "
        "the input pipeline alone, or the time until something answers",
    )
    parser.add_class_arguments(configuration.BenchmarkConfig)
    return parser


def make_parser(train_defaults: dict | None = None):
    """The parser of all verbs; `train_defaults` replace `train`'s own."""
    parser = jsonargparse.ArgumentParser(
        prog="keras-attention",
        description="Attention models for translation: train, score, "
        "translate, export.",
        version=__version__,
    )
    verbs = parser.add_subcommands(dest="verb")
    verbs.add_subcommand(
        "train",
        _train_parser(train_defaults or {}),
        help="train a model, score it, draw it and export it",
    )
    verbs.add_subcommand(
        "evaluate", _evaluate_parser(), help="score a model on a test set"
    )
    verbs.add_subcommand(
        "translate", _translate_parser(), help="translate texts"
    )
    verbs.add_subcommand(
        "align",
        _align_parser(),
        help="measure how well attention aligns the phrases",
    )
    verbs.add_subcommand(
        "bench", _bench_parser(), help="measure the speed on this machine"
    )
    verbs.add_subcommand("export", _export_parser(), help="write a SavedModel")
    return parser


def reordered(argv: list[str]) -> list[str]:
    """The arguments in an order that the parsers take as they are meant."""
    verb, words = argv[:1], argv[1:]
    if verb == ["train"]:
        words = _config_first(words)
    if verb == ["translate"]:
        words = _options_first(words)
    return [*verb, *words]


def _config_first(words):
    # jsonargparse lets the file overwrite the flags that stand before it.
    configs, others, rest = [], [], iter(words)
    for word in rest:
        if word == "--config":
            configs += [word, *itertools.islice(rest, 1)]
        elif word.startswith("--config="):
            configs.append(word)
        else:
            others.append(word)
    return [*configs, *others]


def _options_first(words):
    # argparse takes no text after `MODEL --scores`.
    options, others, rest = [], [], iter(words)
    for word in rest:
        if word == "--":
            others += ["--", *rest]
        elif not word.startswith("--") or " " in word.partition("=")[0]:
            others.append(word)  # A dash with words is a text.
        else:
            options.append(word)
            if any(name.startswith(word) for name in TRANSLATE_OPTIONS):
                options += [*itertools.islice(rest, 1)]
    return [*options, *others]
