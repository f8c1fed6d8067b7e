"""The command line: `keras-attention VERB`.

This module imports neither TensorFlow nor Keras: `--help` answers at once.
"""

import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Sequence

from keras_attention import config as configuration
from keras_attention.commands import parsing


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
    from keras_attention import devices, files
    from keras_attention.training import loop, report

    if config.max_tokens <= devices.SMALL_BATCH:
        devices.share_cores()
    devices.keep_memory()
    if config.replicas and config.replicas > 1:
        devices.make_logical_devices(config.replicas)

    run = loop.train(config)
    with files.lock(run.path):
        if not run.scores.is_file():
            report.finish(run)
            return
    more = (
        ""
        if config.distillation_epochs
        else "train on, ask for more epochs; to "
    )
    print(
        f"All of it was done before. To {more}write another version: "
        f"keras-attention export {run.path} --to FOLDER"
    )


def _read_lines(path: str) -> list[str]:
    from keras_attention.data import corpora

    return list(corpora.read_lines(pathlib.Path(path)))


def _test_set(arguments) -> tuple[str, list[str], list[str]]:
    """Name, sources and references: files, or what a run's corpus held out."""
    if not arguments.source and not arguments.reference:
        from keras_attention.training import report, runs

        run = runs.RunDirectory(pathlib.Path(arguments.model))
        if run.config.is_file():
            return report.held_out(runs.read_config(run))
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


def _differences(name, baseline, result) -> dict:
    """What a model has over the one before it, in one entry."""
    from keras_attention import evaluation

    return {
        "compared_with": {
            "model": name,
            **{
                bleu: evaluation.paired_bootstrap(
                    baseline.hypotheses,
                    result.hypotheses,
                    result.references,
                    lowercase=bleu == "bleu_lc",
                )
                for bleu in ("bleu", "bleu_lc")
            },
        }
    }


def _load(model, arguments):
    """A translator with the search that is asked for.

    A SavedModel is asked for another number of beams by each call.
    """
    from keras_attention.training import runs

    num_beams = arguments.num_beams
    if not runs.RunDirectory(pathlib.Path(model)).config.is_file():
        num_beams = None
    return runs.load(model, num_beams, arguments.length_penalty)


def evaluate(arguments) -> None:
    """`evaluate`: the last line printed is one JSON object, the model's."""
    from keras_attention import devices, evaluation, plotting
    from keras_attention.training import report

    devices.share_cores()
    test_set = _test_set(arguments)
    # As in the report of `train`; of files, a text too long is refused.
    truncate = not arguments.source
    if arguments.by_length:
        lengths = _load(arguments.model, arguments).num_tokens(test_set[1])
    results, rows = [], {}
    models = (*arguments.beside, arguments.model)
    for model, label in zip(models, _labels(models), strict=True):
        translator = _load(model, arguments)
        options = {"num_beams": arguments.num_beams, "truncate": truncate}
        translator(test_set[1][:1], **options)  # traces
        result = report.evaluate(translator, *test_set, **options)
        rate = round(len(result.sources) / result.seconds, 1)
        scores = {**result.scores, "sentences_per_second": rate}
        if arguments.beside:
            scores = {"model": model, **scores}
        if results:
            scores |= _differences(*results[-1], result)
        results.append((label, result))
        if arguments.by_length:
            scores["by_length"] = rows[label] = evaluation.bleu_by_length(
                lengths,
                result.hypotheses,
                result.references,
                num_samples=1000,
            )
        print(json.dumps(scores))
    if arguments.by_length:
        plotting.scores_by_length(rows, path=arguments.by_length)


def _standard_input() -> list[str]:
    data = sys.stdin.buffer.read().decode("utf-8", "replace")
    return data.removesuffix("\n").split("\n") if data else []


def _one_line(text: str) -> str:
    """A translation may hold line ends: those would shift the lines."""
    return " ".join(text.splitlines())


def translate(arguments) -> None:
    """`translate`: lines in, lines out, in the same order."""
    texts = [
        os.fsencode(text).decode("utf-8", "replace") for text in arguments.texts
    ] or _standard_input()
    translator = _load(arguments.model, arguments)
    count = 1 if arguments.n_best is None else arguments.n_best
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
        from keras_attention.training import report

        if not report.draw_attention(translator, texts, arguments.attention):
            raise ValueError(
                "Expected a text that is not blank, to draw its attention. "
                f"Received: {len(texts)} blank texts"
            )


def align(arguments) -> None:
    """`align`: a line of JSON for each model, IBM Model 1 last."""
    from keras_attention.evaluation import phrase_alignment
    from keras_attention.training import runs

    names = list(dict.fromkeys(arguments.runs))
    configs = []
    for name in names:
        run = runs.RunDirectory(pathlib.Path(name))
        if not run.config.is_file():
            raise ValueError(f"Expected the folders of runs. Received: {name}")
        configs.append(runs.read_config(run))
    kinds = {(c.corpus, c.source, c.target) for c in configs}
    if len(kinds) > 1 or configs[0].corpus != "phrases":
        raise ValueError(
            "Expected runs on the corpus phrases, of one pair of languages. "
            f"Received: {sorted(kinds)}"
        )
    translators = {
        label: runs.load(name)
        for label, name in zip(_labels(names), names, strict=True)
    }
    for row in phrase_alignment.measure(
        translators, configs[0].source, configs[0].target, arguments.picture
    ):
        print(json.dumps(row))


def export(arguments) -> None:
    """`export`: the next version of a SavedModel, with its card."""
    from keras_attention.training import report, runs

    run = runs.RunDirectory(pathlib.Path(arguments.run))
    search = arguments.num_beams, arguments.length_penalty
    config = runs.with_search(runs.read_config(run), *search)
    precision = arguments.stored_precision
    translator = runs.load_run(run.path, *search, stored_precision=precision)
    scores = report.read_scores(run, config)
    if scores is None or precision != "float32":
        result = report.evaluate_held_out(translator, config)
        scores = report.saved_scores(result, config)
    card = report.model_card(config, scores, translator)
    print(translator.export(arguments.to, card))


def bench(arguments) -> None:
    """`bench`: the last line printed is one JSON object."""
    from keras_attention.commands import benchmark

    options = _choices(configuration.BenchmarkConfig, arguments)
    result = benchmark.measure(arguments.what, options)
    for name, value in result.items():
        value = f"{value:,.3f}" if isinstance(value, float) else value
        print(f"{name:28} {value}")
    print(json.dumps(result))


def _saved_choices(argv: list[str]) -> dict:
    """With --resume: the choices that the run in --output began with."""
    arguments = parsing.make_parser().parse_args(argv)
    if arguments.verb != "train" or not arguments.train.resume:
        return {}
    saved = pathlib.Path(_config(arguments.train).output) / "config.yaml"
    if not saved.is_file():
        return {}
    from keras_attention.training import runs

    choices = runs.read_config(runs.RunDirectory(saved.parent))
    return {
        name: value
        for name, value in dataclasses.asdict(choices).items()
        if name != "resume"
    }


def main(argv: list[str] | None = None) -> None:
    """Runs the command line; a mistake in it is one clear line."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    argv = parsing.reordered(sys.argv[1:] if argv is None else argv)
    verbs = {
        "train": train,
        "evaluate": evaluate,
        "translate": translate,
        "export": export,
        "align": align,
        "bench": bench,
    }
    verb = "keras-attention"
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        arguments = parsing.make_parser(_saved_choices(argv)).parse_args(argv)
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
