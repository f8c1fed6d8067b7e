"""`keras-attention export`."""

import dataclasses
import pathlib
from typing import Annotated, Literal

from keras_attention import config as configuration
from keras_attention.commands import arguments
from keras_attention.config import search
from keras_attention.config.choices import choice


@dataclasses.dataclass(frozen=True)
class Options(search.Search):
    """What to export."""

    format: Literal["saved_model", "ctranslate2"] = choice(
        "saved_model",
        "ctranslate2 writes the files of a Transformer for the package "
        "CTranslate2. It searches by its own choices.",
    )
    stored_precision: Literal["float32", "float16"] = choice(
        "float32",
        "The precision of the weights in the file. float16 halves its size. "
        "The model still computes in float32, and is scored anew.",
    )
    corpus: str | None = choice(
        None, "Where the run's corpus is now, if it has moved.", is_path=True
    )


app = arguments.make_app(
    "export", "Write a run's model as the next version of a SavedModel."
)


@app.default
def export(
    run: Annotated[str, arguments.described("A run's folder.")],
    /,
    *,
    to: Annotated[
        str,
        arguments.described(
            "The folder of the SavedModel, such as savedmodels/NAME."
        ),
    ],
    options: Annotated[Options, arguments.group("Options")] = Options(),
) -> None:
    """Writes the next version, with its card, and prints its path."""
    arguments.check_run(run)
    if options.format == "ctranslate2":
        print(_export_ctranslate2(run, to, options))
        return
    from keras_attention.serving import destination
    from keras_attention.training import run_directory

    directory = run_directory.at(run)
    corpus = options.corpus
    if corpus is None and (
        options.stored_precision != "float32" or not directory.scores.is_file()
    ):
        # Its held-out examples are scored.
        corpus = run_directory.read_config(directory).data.corpus
    destination.check(to)
    configuration.check_corpus(corpus)
    arguments.import_tensorflow()
    from keras_attention import runs
    from keras_attention.commands import scoring
    from keras_attention.training import report, restore

    directory, config, task = runs.read_run(run, **search.given(options))
    precision = options.stored_precision
    servable = restore.load_run(directory, config, task, precision)
    scores = report.read_scores(directory, config.search)
    if scores is None or precision != "float32":
        corpus = task.load(scoring.with_corpus(config, options.corpus).data)
        evaluation = task.evaluate(
            servable, task.held_out(corpus), truncate=True
        )
        scores = report.saved_scores(evaluation, config.search)
    print(servable.export(to, task.card(config, scores, servable)))


def _export_ctranslate2(run, to, options):
    from keras_attention.published import ctranslate2_folder
    from keras_attention.training import run_directory

    if options.stored_precision != "float32":
        raise ValueError(
            "CTranslate2 chooses its precision when it loads, by compute_type. "
            "Leave stored_precision out."
        )
    ignored = [*search.given(options), *(["corpus"] if options.corpus else [])]
    if ignored:
        raise ValueError(
            "CTranslate2 searches by its own choices, and nothing is scored. "
            f"Leave {' and '.join(ignored)} out."
        )
    model = run_directory.read_config(run_directory.at(run)).architecture.model
    if model not in ctranslate2_folder.MODELS:
        raise ValueError(
            "--format ctranslate2 is for "
            f"{' and '.join(ctranslate2_folder.MODELS)}. Leave it out for "
            f"{model}."
        )
    ctranslate2_folder.check_folder(pathlib.Path(to).expanduser())
    arguments.import_tensorflow()
    from keras_attention import runs

    return runs.load(run).export_ctranslate2(to)
