"""The command line: `keras-attention VERB`.

This module imports neither TensorFlow nor Keras: `--help` answers at once.
"""

import dataclasses
import json
import os
import pathlib
import sys

import jsonargparse

from keras_attention import __version__
from keras_attention import config as configuration


def _train_parser(defaults: dict) -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(
        description="Train a model, score it, draw it and export it."
    )
    parser.add_argument(
        "--config", action="config", help="Choices in a YAML file."
    )
    parser.add_class_arguments(configuration.TrainingConfig, skip={"resume"})
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on where the run in --output was stopped",
    )
    parser.set_defaults(defaults)
    return parser


def _model_parser(description: str) -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(description=description)
    parser.add_argument("model", help="a SavedModel's folder or a run's")
    parser.add_argument(
        "--num_beams",
        type=int | None,
        help="1 for greedy search; by default the model's own number",
    )
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
        "--by_length", help="where to draw BLEU by source length, a .png file"
    )
    parser.add_argument(
        "--beside",
        nargs="+",
        default=[],
        help="other models to score and to draw in the same picture",
    )
    return parser


def _translate_parser() -> jsonargparse.ArgumentParser:
    parser = _model_parser("Translate texts, or the lines of standard input.")
    parser.add_argument("texts", nargs="*", help="texts to translate")
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
    export = jsonargparse.ArgumentParser(
        description="Write a run's model as the next version of a SavedModel."
    )
    export.add_argument("run", help="a run's folder")
    export.add_argument(
        "--to", required=True, help="its folder, such as savedmodels/NAME"
    )
    verbs.add_subcommand("export", export, help="write a SavedModel")
    return parser


def _config(arguments) -> configuration.TrainingConfig:
    values = {
        field.name: arguments[field.name]
        for field in dataclasses.fields(configuration.TrainingConfig)
    }
    return configuration.resolve(configuration.TrainingConfig(**values))


def train(arguments) -> None:
    """`train`: fit, then the report."""
    config = _config(arguments)
    if config.replicas and config.replicas > 1:
        from keras_attention import trainer

        trainer.make_logical_devices(config.replicas)
    from keras_attention import reporting, training

    reporting.finish(training.train(config))


def _read_lines(path: str) -> list[str]:
    from keras_attention import corpora

    return list(corpora.read_lines(pathlib.Path(path)))


def _test_set(arguments) -> tuple[str, list[str], list[str]]:
    """Name, sources and references: files, or what a run's corpus held out."""
    if not arguments.source and not arguments.reference:
        from keras_attention import reporting, runs

        run = runs.RunDirectory(pathlib.Path(arguments.model))
        if run.config.is_file():
            return reporting.held_out(runs.read_config(run))
    if not arguments.source or not arguments.reference:
        raise ValueError(
            "Expected --source and --reference; without both, a run's folder "
            f"as the model. Received: {arguments.model}, "
            f"source={arguments.source}, reference={arguments.reference}"
        )
    sources = _read_lines(arguments.source)
    references = _read_lines(arguments.reference)
    if len(sources) != len(references):
        raise ValueError(
            "Expected as many references as sources. Received: "
            f"{len(sources)} lines in {arguments.source}, "
            f"{len(references)} lines in {arguments.reference}"
        )
    return pathlib.Path(arguments.source).name, sources, references


def evaluate(arguments) -> None:
    """`evaluate`: the last line printed is one JSON object, the model's."""
    test_set = _test_set(arguments)
    from keras_attention import evaluation, plotting, reporting, runs

    rows_by_label = {}
    for model in (*arguments.beside, arguments.model):
        translator = runs.load(model)

        def translate(texts, translator=translator):
            return translator(texts, num_beams=arguments.num_beams)

        translate(test_set[1][:1])  # traces
        result = reporting.evaluate(translate, *test_set)
        rate = round(len(result.sources) / result.seconds, 1)
        scores = {**result.scores, "sentences_per_second": rate}
        if arguments.beside:
            scores = {"model": model, **scores}
        rows_by_label[pathlib.Path(model).name] = evaluation.bleu_by_length(
            result.sources, result.hypotheses, result.references
        )
        print(json.dumps(scores))
    if arguments.by_length:
        plotting.scores_by_length(rows_by_label, path=arguments.by_length)


def _standard_input() -> list[str]:
    data = sys.stdin.buffer.read().decode("utf-8", "replace")
    return data.removesuffix("\n").split("\n") if data else []


def translate(arguments) -> None:
    """`translate`: lines in, lines out, in the same order."""
    from keras_attention import plotting, runs

    texts = arguments.texts or _standard_input()
    translator = runs.load(arguments.model)
    if arguments.n_best or arguments.scores:
        count = arguments.n_best or 1
        if count > translator.num_beams:
            raise ValueError(
                f"This model has {translator.num_beams} beams; ask for at "
                f"most as many translations. Received: n_best={count}"
            )
        for hypotheses in translator.n_best(texts):
            for text, score in hypotheses[:count]:
                print(f"{text}\t{score:.4f}" if arguments.scores else text)
    else:
        for text in translator(texts, num_beams=arguments.num_beams):
            print(text)
    if arguments.attention and texts:
        shown = translator.with_attention(texts[:1])[0]
        plotting.attention_heat_map(
            shown["source_tokens"],
            shown["target_tokens"],
            shown["attention"],
            path=arguments.attention,
        )


def export(arguments) -> None:
    """`export`: the next version of a SavedModel, with its card."""
    from keras_attention import reporting, runs

    run = runs.RunDirectory(pathlib.Path(arguments.run))
    config = runs.read_config(run)
    translator = runs.load_run(run.path)
    result = reporting.evaluate(translator, *reporting.held_out(config))
    card = reporting.model_card(config, result, translator.model.count_params())
    print(translator.export(arguments.to, card))


def _saved_choices(argv: list[str]) -> dict:
    """With --resume: the choices that the run in --output began with."""
    arguments = make_parser().parse_args(argv)
    if arguments.verb != "train" or not arguments.train.resume:
        return {}
    saved = pathlib.Path(_config(arguments.train).output) / "config.yaml"
    if not saved.is_file():
        return {}
    import yaml

    choices = yaml.safe_load(saved.read_text())
    choices.pop("resume")
    return choices


def main(argv: list[str] | None = None) -> None:
    """Runs the command line; a mistake in it is one clear line."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    argv = sys.argv[1:] if argv is None else argv
    arguments = make_parser(_saved_choices(argv)).parse_args(argv)
    verbs = {
        "train": train,
        "evaluate": evaluate,
        "translate": translate,
        "export": export,
    }
    try:
        verbs[arguments.verb](arguments[arguments.verb])
    except (ValueError, FileNotFoundError) as error:
        sys.exit(f"keras-attention {arguments.verb}: {error}")
