"""The report of a finished run: scores, pictures, a card, the SavedModel."""

import dataclasses
import json
import pathlib
import shlex

import rich.console
import rich.markup
import rich.table

from keras_attention import config as configuration
from keras_attention import files, plotting
from keras_attention.training import restore, run_directory
from keras_attention.training.parts import Parts


def saved_scores(evaluation, search: configuration.Search) -> dict:
    """The content of `scores.json`: scores, and what they are of.

    These are the split, its first rows, and a search if there is one.
    """
    choices = dataclasses.asdict(search)
    return {
        "split": evaluation.test_set.name,
        # A task without a search has None for each of its choices.
        **{name: value for name, value in choices.items() if value is not None},
        **evaluation.scores,
        "examples": evaluation.test_set.examples,
    }


def read_scores(
    directory: run_directory.RunDirectory, search: configuration.Search
) -> dict | None:
    """The scores of a run, or None if there are none of this search."""
    if not directory.scores.is_file():
        return None
    scores = json.loads(directory.scores.read_text())
    choices = dataclasses.asdict(search)
    # One more signature leaves all answers as they are.
    for name in ("constraints", "minimum_risk", "per_request"):
        del choices[name]
    # A model without a search has scores of one, where version 0.1.0 wrote it.
    same = all(value in (None, scores.get(n)) for n, value in choices.items())
    return scores if same else None


def finish(parts: Parts) -> dict:
    """Scores a run's selected weights, draws, exports and prints.

    Args:
        parts: of a finished training.

    Returns:
        The scores on the held-out examples.
    """
    task, config, directory = parts.task, parts.config, parts.directory
    # Anew: what trained may have other precision, and several replicas.
    servable = restore.load_run(directory, config, task)
    # A text over the limit is no reason to have no scores. It is cut, and the
    # last line below says how many were.
    evaluation = task.evaluate(
        servable, task.held_out(parts.corpus), truncate=True
    )
    pictures = task.draw(directory.path, servable, evaluation)
    pictures["learning_curve"] = draw_learning_curve(task, config)
    scores = saved_scores(evaluation, config.search)
    card = task.card(config, scores, servable)
    version = servable.export(directory.path / "savedmodel", card)
    # Behind all other files: a run with scores has nothing left to do.
    content = json.dumps(scores, indent=1)
    files.write_atomically(directory.scores, content.encode())
    _print_samples(task, servable, evaluation)
    for name, path in pictures.items():
        print(f"{name.replace('_', ' ')}: {path}")
    print(f"SavedModel: {version}")
    print(f"use it: {command(servable, version.parent)}")
    cut = evaluation.scores.get("truncated", 0)
    limit = config.data.max_length
    note = f"; {cut:,} of them were cut to {limit} tokens" if cut else ""
    print(f"{evaluation.test_set.name}: {task.summary(evaluation)}{note}")
    return evaluation.scores


def command(servable, folder: pathlib.Path) -> str:
    """The command that answers with an exported model, as one may copy it."""
    verb = "translate" if servable.task == "translation" else "predict"
    answer = f"keras-attention {verb} {shlex.quote(str(folder))}"
    names = [name.upper() for name in servable.kind.inputs]
    if len(names) == 1:
        return f'{answer} "{names[0]}"'
    # Every shell writes a tab in this way.
    row = r"\t".join(names)
    return f"printf '{row}\\n' | {answer}"


def draw_learning_curve(task, config) -> pathlib.Path:
    """Draws the logs of all stages, one behind the other."""
    *_, last = folders = [stage.directory for stage in task.stages(config)]
    path = last.path / "learning_curve.png"
    epochs = [
        logs
        for folder in folders
        for logs in run_directory.read_history(folder)
    ]
    names = sorted({name for logs in epochs for name in logs})
    # A stage may measure what another one does not.
    plotting.learning_curve(
        {name: [logs.get(name) for logs in epochs] for name in names},
        path=path,
    )
    return path


def _print_samples(task, servable, evaluation) -> None:
    console = rich.console.Console(highlight=False)
    name = evaluation.test_set.name
    table = rich.table.Table(title=f"{name}: {task.headings[1]}s")
    for column in task.headings:
        table.add_column(column)
    for row in task.samples(servable, evaluation):
        # rich would read what a text has in brackets as a colour.
        table.add_row(*(rich.markup.escape(cell) for cell in row))
    console.print(table)
