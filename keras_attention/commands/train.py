"""`keras-attention train`."""

import pathlib
import shlex
from typing import Annotated

from cyclopts import Parameter, Token

from keras_attention import config as configuration
from keras_attention.commands import arguments
from keras_attention.config import beginnings, checks
from keras_attention.models import catalog


def _fill(collection, choices: dict, origin: str) -> None:
    """Gives the choices to the flags that were not used."""
    for name, value in choices.items():
        argument = collection[f"--{name}"]
        if not argument.tokens:
            kind = "value" if isinstance(value, str) else "implicit_value"
            argument.append(Token(keyword=name, source=origin, **{kind: value}))


def _choices_given(collection) -> configuration.TrainingConfig:
    """The choices of flags and file so far."""
    given = (a for a in collection if a.tokens and a.keys)
    return configuration.make(**{a.keys[-1]: a.convert() for a in given})


def _said(collection, name: str) -> str | None:
    """The text of a choice so far. To convert it would settle its value."""
    tokens = collection[f"--{name}"].tokens
    return tokens[-1].value if tokens else None


def _names_another_corpus(collection, choices: dict) -> bool:
    corpus, name = _said(collection, "corpus"), configuration.corpus_name
    if not corpus or "corpus" not in choices:
        return False
    return name(corpus) != name(choices["corpus"])


def choices_below_flags(app, commands, collection) -> None:
    """A flag wins over the file, and the file over a run that is there."""
    file = _said(collection, "config")
    if file is not None:
        choices = configuration.read(file)
        # What a file says of its data does not hold for other data.
        if _names_another_corpus(collection, choices):
            choices.pop("data_note", None)
        _fill(collection, choices, file)
    if init := _said(collection, "init"):
        model = _said(collection, "model")
        _fill(collection, configuration.handed_on(init, model), init)
    if collection["--resume"].convert() is True:
        output = configuration.output(_choices_given(collection))
        saved = pathlib.Path(output) / "config.yaml"
        if saved.is_file():
            _fill(collection, configuration.read(saved), str(saved))


app = arguments.make_app(
    "train",
    "Train a model, score it, draw it and export it.",
    config=choices_below_flags,
)


Architecture = Annotated[
    configuration.Architecture, arguments.group("Architecture")
]
Data = Annotated[configuration.Data, arguments.group("Data")]
Vocabulary = Annotated[configuration.Vocabulary, arguments.group("Vocabulary")]
Optimizer = Annotated[configuration.Optimizer, arguments.group("Optimizer")]
Training = Annotated[configuration.Training, arguments.group("Training")]
Search = Annotated[configuration.Search, arguments.group("Search")]
Run = Annotated[configuration.Run, arguments.group("Run")]


@app.default
def train(
    *,
    config: Annotated[
        str | None,
        Parameter(
            help="A YAML file, or a recipe. Flags win over both. The recipes: "
            f"{', '.join(sorted(configuration.RECIPES))}."
        ),
    ] = None,
    resume: Annotated[
        bool,
        Parameter(help="Begin the run in --output, or go on with it."),
    ] = False,
    list_models: Annotated[
        bool, Parameter(name="--list", help="Print the models, and stop.")
    ] = False,
    architecture: Architecture = configuration.DEFAULTS.architecture,
    data: Data = configuration.DEFAULTS.data,
    vocabulary: Vocabulary = configuration.DEFAULTS.vocabulary,
    optimizer: Optimizer = configuration.DEFAULTS.optimizer,
    training: Training = configuration.DEFAULTS.training,
    search: Search = configuration.DEFAULTS.search,
    run: Run = configuration.DEFAULTS.run,
) -> None:
    """Fits a model, then reports on it."""
    if list_models:
        print(_models())
        return
    choices = configuration.TrainingConfig(
        architecture, data, vocabulary, optimizer, training, search, run
    )
    configuration.check_corpus(data.corpus)
    checks.check_links(optimizer.guided_alignment)
    choices = configuration.resolve(choices)
    if not resume:
        beginnings.check_teachers(choices.training.distillation_teachers)
    if choices.run.init and not resume:
        beginnings.weights_of(choices.run.init)
    from keras_attention import files, workers

    team = workers.from_environment()
    if team.leads:
        files.check_folder(choices.run.output)
    arguments.import_tensorflow()
    from keras_attention import devices, tasks
    from keras_attention.training import loop, report

    if choices.data.max_tokens <= devices.SMALL_BATCH:
        devices.share_cores()
    devices.keep_memory()
    if team.count == 1 and choices.run.replicas and choices.run.replicas > 1:
        devices.make_logical_devices(choices.run.replicas)
    parts = loop.train(choices, tasks.get(choices.task), resume)
    # The others wait: if the leader fails, all of them have to start again.
    with parts.team.at_work(), parts.team.leader_first():
        if parts.team.leads:
            with files.lock(parts.directory.path):
                if parts.directory.scores.is_file():
                    print(_nothing_to_do(choices, parts.directory))
                else:
                    report.finish(parts)


def _models() -> str:
    """The catalogue: each model's task, sizes and paper."""
    return "\n".join(
        f"{name}: {entry.task}; {', '.join(entry.sizes)}\n"
        f"    {entry.paper}, {entry.year}"
        for name, entry in catalog.CATALOG.items()
    )


def _nothing_to_do(choices, directory) -> str:
    more = (
        ""
        if choices.training.distillation_epochs
        else " To train longer, give a larger --epochs or --steps."
    )
    folder = shlex.quote(str(directory.path))
    return (
        f"This run is finished.{more} To export another version: "
        f"keras-attention export {folder} --to FOLDER"
    )
