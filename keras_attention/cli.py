"""The command line: `keras-attention VERB`.

This module imports neither TensorFlow nor Keras: `--help` answers at once.
"""

import dataclasses
import itertools
import json
import os
import pathlib
import sys
from collections.abc import Sequence

import jsonargparse

from keras_attention import __version__
from keras_attention import config as configuration

# Those of `translate` that take a value.
TRANSLATE_OPTIONS = ("--num_beams", "--n_best", "--attention")


def _train_parser(defaults: dict) -> jsonargparse.ArgumentParser:
    parser = jsonargparse.ArgumentParser(
        description="Train a model, score it, draw it and export it."
    )
    parser.add_argument(
        "--config",
        action="config",
        help="Choices in a YAML file (a language `no` in quotes).",
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
        "--by_length",
        help="where to draw BLEU by the length "
        "of the source in MODEL's tokens, a .png file",
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
        "bench", _bench_parser(), help="measure the speed on this machine"
    )
    export = jsonargparse.ArgumentParser(
        description="Write a run's model as the next version of a SavedModel."
    )
    export.add_argument("run", help="a run's folder")
    export.add_argument(
        "--to", required=True, help="its folder, such as savedmodels/NAME"
    )
    export.add_argument(
        "--num_beams", type=int | None, help="by default the run's own number"
    )
    verbs.add_subcommand("export", export, help="write a SavedModel")
    return parser


def _choices(kind, arguments):
    """A dataclass of choices, from arguments of the same names."""
    return kind(**{f.name: arguments[f.name] for f in dataclasses.fields(kind)})


def _config(arguments) -> configuration.TrainingConfig:
    return configuration.resolve(
        _choices(configuration.TrainingConfig, arguments)
    )


def train(arguments) -> None:
    """`train`: fit, then the report."""
    config = _config(arguments)
    from keras_attention import checkpoints, reporting, trainer, training

    if config.max_tokens <= trainer.SMALL_BATCH:
        trainer.share_cores()
    trainer.keep_memory()
    if config.replicas and config.replicas > 1:
        trainer.make_logical_devices(config.replicas)

    with checkpoints.lock(config.output):
        run = training.train(config)
        if not run.scores.is_file():
            reporting.finish(run)
            return
    print(
        "All of it was done before. To train on, ask for more epochs; to "
        f"write another version: keras-attention export {run.path} --to FOLDER"
    )


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


def _labels(models: Sequence[str]) -> list[str]:
    """The ends of the paths, as long as it takes to tell them apart."""
    parts = [pathlib.Path(model).parts for model in models]
    for count in range(2, max(map(len, parts)) + 1):
        labels = ["/".join(names[-count:]) for names in parts]
        if len({*labels}) == len({*parts}):
            return labels
    return list(models)


def evaluate(arguments) -> None:
    """`evaluate`: the last line printed is one JSON object, the model's."""
    from keras_attention import evaluation, plotting, reporting, runs, trainer

    trainer.share_cores()
    test_set = _test_set(arguments)
    # As in the report of `train`; of files, a text too long is refused.
    truncate = not arguments.source
    results = {}
    models = (*arguments.beside, arguments.model)
    for model, label in zip(models, _labels(models), strict=True):
        translator = runs.load(model, arguments.num_beams)

        def translate(texts, translator=translator):
            return translator(
                texts, num_beams=arguments.num_beams, truncate=truncate
            )

        translate(test_set[1][:1])  # traces
        result = reporting.evaluate(translate, *test_set)
        rate = round(len(result.sources) / result.seconds, 1)
        scores = {**result.scores, "sentences_per_second": rate}
        if arguments.beside:
            scores = {"model": model, **scores}
        results[label] = result
        print(json.dumps(scores))
    if arguments.by_length:
        # The last translator is MODEL's.
        lengths = translator.num_tokens(test_set[1])
        rows_by_label = {
            label: evaluation.bleu_by_length(
                lengths, result.hypotheses, result.references
            )
            for label, result in results.items()
        }
        plotting.scores_by_length(rows_by_label, path=arguments.by_length)


def _standard_input() -> list[str]:
    data = sys.stdin.buffer.read().decode("utf-8", "replace")
    return data.removesuffix("\n").split("\n") if data else []


def _one_line(text: str) -> str:
    """A translation may hold line ends: those would shift the lines."""
    return " ".join(text.splitlines())


def translate(arguments) -> None:
    """`translate`: lines in, lines out, in the same order."""
    from keras_attention import runs

    texts = [
        os.fsencode(text).decode("utf-8", "replace") for text in arguments.texts
    ] or _standard_input()
    translator = runs.load(arguments.model, arguments.num_beams)
    count = arguments.n_best or 1
    if not 1 <= count <= translator.num_beams:
        raise ValueError(
            f"This model has {translator.num_beams} beams; ask for one to as "
            f"many translations. Received: n_best={count}"
        )
    if arguments.n_best is not None or arguments.scores or arguments.attention:
        if arguments.num_beams not in (None, translator.num_beams):
            raise ValueError(
                f"A SavedModel of {translator.num_beams} beams gives n-best "
                "lists, scores and attention of these. Received: "
                f"num_beams={arguments.num_beams}"
            )
    if arguments.n_best is not None or arguments.scores:
        for hypotheses in translator.n_best(texts):
            missing = [("", float("-inf"))] * count
            for text, score in (hypotheses + missing)[:count]:
                ending = f"\t{score:.4f}" if arguments.scores else ""
                print(_one_line(text) + ending)
    else:
        for text in translator(texts, num_beams=arguments.num_beams):
            print(_one_line(text))
    if arguments.attention:
        from keras_attention import reporting

        if not reporting.draw_attention(translator, texts, arguments.attention):
            raise ValueError(
                "Expected a text that is not blank, to draw its attention. "
                f"Received: {len(texts)} blank texts"
            )


def export(arguments) -> None:
    """`export`: the next version of a SavedModel, with its card."""
    from keras_attention import reporting, runs

    run = runs.RunDirectory(pathlib.Path(arguments.run))
    config = runs.read_config(run)
    if arguments.num_beams is not None:
        config = dataclasses.replace(config, num_beams=arguments.num_beams)
    translator = runs.load_run(run.path, arguments.num_beams)
    scores = reporting.read_scores(run, config)
    if scores is None:
        result = reporting.evaluate_held_out(translator, config)
        scores = reporting.saved_scores(result, config)
    card = reporting.model_card(config, scores, translator.model.count_params())
    print(translator.export(arguments.to, card))


def bench(arguments) -> None:
    """`bench`: the last line printed is one JSON object."""
    from keras_attention import benchmark

    options = _choices(configuration.BenchmarkConfig, arguments)
    result = benchmark.measure(arguments.what, options)
    for name, value in result.items():
        value = f"{value:,.3f}" if isinstance(value, float) else value
        print(f"{name:28} {value}")
    print(json.dumps(result))


def _saved_choices(argv: list[str]) -> dict:
    """With --resume: the choices that the run in --output began with."""
    arguments = make_parser().parse_args(argv)
    if arguments.verb != "train" or not arguments.train.resume:
        return {}
    saved = pathlib.Path(_config(arguments.train).output) / "config.yaml"
    if not saved.is_file():
        return {}
    from keras_attention import runs

    choices = runs.read_config(runs.RunDirectory(saved.parent))
    return {
        name: value
        for name, value in dataclasses.asdict(choices).items()
        if name != "resume"
    }


def _options_first(argv: list[str]) -> list[str]:
    """Of `translate`: argparse takes no text after `MODEL --scores`."""
    if argv[:1] != ["translate"]:
        return argv
    options, others, rest = [], [], iter(argv[1:])
    for word in rest:
        if word == "--":
            others += ["--", *rest]
        elif not word.startswith("--") or " " in word.partition("=")[0]:
            others.append(word)  # A dash with words is a text.
        else:
            options.append(word)
            if any(name.startswith(word) for name in TRANSLATE_OPTIONS):
                options += [*itertools.islice(rest, 1)]
    return ["translate", *options, *others]


def main(argv: list[str] | None = None) -> None:
    """Runs the command line; a mistake in it is one clear line."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    argv = _options_first(sys.argv[1:] if argv is None else argv)
    verbs = {
        "train": train,
        "evaluate": evaluate,
        "translate": translate,
        "export": export,
        "bench": bench,
    }
    verb = "keras-attention"
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        arguments = make_parser(_saved_choices(argv)).parse_args(argv)
        verb = f"keras-attention {arguments.verb}"
        verbs[arguments.verb](arguments[arguments.verb])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"{verb}: {error}")
    except KeyboardInterrupt:
        goes_on = "; it goes on with --resume" if "train" in verb else ""
        sys.exit(f"{verb}: interrupted{goes_on}")
