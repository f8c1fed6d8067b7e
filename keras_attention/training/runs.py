"""Run directories: what a training leaves behind, and how to load it."""

import dataclasses
import json
import pathlib

import keras
import yaml

from keras_attention import config as configuration
from keras_attention import data, devices, files, models
from keras_attention.serving import savedmodel, text_to_text, translator
from keras_attention.training import checkpoints

SIZES = ("mini", "tiny", "base", "big")
# Choices that may change when a run is resumed.
FREE_ON_RESUME = (
    *("resume", "output", "epochs", "steps", "patience"),
    *("checkpoint_steps", "num_beams", "length_penalty", "data_note"),
)


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """Names of the files in a run's folder.

    Args:
        path: the folder.
    """

    path: pathlib.Path

    @property
    def config(self) -> pathlib.Path:
        """Every choice of the run."""
        return self.path / "config.yaml"

    @property
    def checkpoint(self) -> pathlib.Path:
        """All state of the training, to go on from."""
        return self.path / "checkpoint.npz"

    @property
    def weights(self) -> pathlib.Path:
        """The weights that were selected."""
        return self.path / "weights.npz"

    @property
    def scores(self) -> pathlib.Path:
        """Scores on the held-out pairs: the last thing that a run writes."""
        return self.path / "scores.json"

    @property
    def teacher(self) -> "RunDirectory":
        """The run before self-distillation, in the same folder."""
        return RunDirectory(self.path / "teacher")

    @property
    def history(self) -> pathlib.Path:
        """The logs of each epoch."""
        return self.path / "history.json"

    def epoch_weights(self, epoch: int) -> pathlib.Path:
        """Weights after an epoch, kept to be averaged."""
        return self.path / f"weights-epoch-{epoch:04d}.npz"

    def vocabulary(self, side: str) -> pathlib.Path:
        """SentencePiece model: side "joint", "source" or "target"."""
        return self.path / f"vocabulary.{side}.model"


def write_config(run: RunDirectory, config: configuration.TrainingConfig):
    """Writes `config.yaml`, whole or not at all."""
    values = yaml.safe_dump(dataclasses.asdict(config), sort_keys=False)
    files.write_atomically(run.config, values.encode())


def read_config(run: RunDirectory) -> configuration.TrainingConfig:
    """Reads `config.yaml`.

    Errors: `ValueError` if the folder holds no run, or a file of that name
    that is something else.
    """
    if not run.config.is_file():
        raise ValueError(
            "Expected a run's folder (with config.yaml) or a SavedModel's "
            f"(with numeric versions). Received: {run.path}"
        )
    try:
        values = yaml.safe_load(run.config.read_text())
        return configuration.TrainingConfig(**values)
    except (yaml.YAMLError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(
            "Expected the choices of a run, as `keras-attention train` "
            f"writes them. Received: {run.config}: {error}"
        ) from error


def check_resumable(saved, config, free=FREE_ON_RESUME) -> None:
    """Refuses to go on with choices that would make it another run.

    Args:
        saved, config: the choices the run began with, and those to go on
            with.
        free: names of the choices that may differ.

    Errors: `ValueError` that names the first such choice.
    """
    for field in dataclasses.fields(config):
        old, new = getattr(saved, field.name), getattr(config, field.name)
        if field.name not in free and old != new:
            raise ValueError(
                f"Expected {field.name}={old!r}, as the run began: leave it "
                "out (of a --config too) to go on, or start another run with "
                f"another --output. Received: {field.name}={new!r}"
            )


def _check_nothing_is_lost(run: RunDirectory, resume: bool) -> None:
    """Without a checkpoint: refuses to write over what a run has made.

    The weights and logs of a first epoch are written before the checkpoint:
    a run that was stopped in between has these, and may start anew.
    """
    if run.config.is_file():
        read_config(run)
    made = [run.weights, run.teacher.weights]
    if len(read_history(run)) > 1 or (
        not resume and any(path.is_file() for path in made)
    ):
        raise _without_checkpoint(run)


def _without_checkpoint(run: RunDirectory) -> ValueError:
    return ValueError(
        "Expected a new folder for a new run: this one holds a run without "
        f"its {run.checkpoint.name}, which cannot go on. Choose another "
        f"--output. Received: {run.path}"
    )


def start(config: configuration.TrainingConfig) -> RunDirectory:
    """Makes the run's folder, or checks that it can be resumed.

    A run that was stopped before its first checkpoint starts anew.

    Errors: `ValueError` if the folder holds a run already and `resume` is
    not set, if a choice differs from those the run began with, if a run's
    checkpoint is gone, or if there is a `config.yaml` of something else.
    """
    run = RunDirectory(pathlib.Path(config.output))
    run.path.mkdir(parents=True, exist_ok=True)
    files.remove_temporaries(run.path)
    if run.scores.is_file() and not run.checkpoint.is_file():
        raise _without_checkpoint(run)
    begun = (run.checkpoint, run.teacher.checkpoint)
    if not any(path.is_file() for path in begun):
        _check_nothing_is_lost(run, config.resume)
        # Nothing was trained: what a first try has left may be wrong.
        for vocabulary in run.path.glob("vocabulary.*.model"):
            vocabulary.unlink()
        write_config(run, config)
    else:
        if not config.resume:
            raise ValueError(
                "Expected a new folder for a new run: add --resume to go on "
                "with this one, or choose another --output. "
                f"Received: {run.path}"
            )
        check_resumable(read_config(run), config)
    return run


def read_history(run: RunDirectory) -> list[dict]:
    """The logs of each epoch, those before a distillation first."""
    paths = [run.teacher.history, run.history]
    return [
        logs
        for path in paths
        if path.is_file()
        for logs in json.loads(path.read_text())
    ]


def copy_vocabulary(source: RunDirectory, run: RunDirectory) -> None:
    """Gives a run the vocabularies of another."""
    for path in source.path.glob("vocabulary.*.model"):
        files.write_atomically(run.path / path.name, path.read_bytes())


def create_model(
    config: configuration.TrainingConfig, source_size: int, target_size: int
) -> keras.Model:
    """Builds the model that a configuration names, with fresh weights.

    Errors: `ValueError` for a size that the model does not have, and for
    `model_arguments` that it does not take.
    """
    module = getattr(models, config.model)
    make = getattr(module, config.size, None) if config.size in SIZES else None
    if make is None:
        sizes = [size for size in SIZES if hasattr(module, size)]
        raise ValueError(
            f"`size` of {config.model} must be one of {sizes}. "
            f"Received: size={config.size!r}"
        )
    arguments = dict(config.model_arguments)
    if config.dropout is not None:
        arguments.setdefault("dropout", config.dropout)
    policy = "mixed_bfloat16" if config.precision == "bfloat16" else "float32"
    try:
        model = make(
            target_size,
            None if config.joint_vocabulary else source_size,
            dtype=policy,
            name=config.model,
            **arguments,
        )
        model.build()
    except TypeError as error:
        raise ValueError(
            f"Expected model_arguments that {config.model} takes, but for its "
            f"vocabularies, name and dtype. Received: "
            f"model_arguments={config.model_arguments}: {error}"
        ) from error
    return model


def load_tokenizers(run: RunDirectory) -> tuple[data.Tokenizer, ...]:
    """Source and target tokenizer; one and the same if joint.

    Errors: `ValueError` if a vocabulary is damaged.
    """

    def load_one(side):
        path = run.vocabulary(side)
        try:
            return data.Tokenizer(path.read_bytes(), side)
        except ValueError as error:
            raise ValueError(
                "Expected a vocabulary that `keras-attention train` wrote. "
                f"Received: {path}: {error}"
            ) from error

    if run.vocabulary("joint").is_file():
        joint = load_one("joint")
        return joint, joint
    return load_one("source"), load_one("target")


def make_translator(
    config, model, tokenizers, stored_precision: str = "float32"
) -> translator.Translator:
    """The translator that a configuration asks for.

    Args:
        config, model, tokenizers: of a run.
        stored_precision: in which it keeps the weights.
    """
    return translator.Translator(
        model,
        *tokenizers,
        num_beams=config.num_beams,
        length_penalty=config.length_penalty,
        max_source_length=config.max_length,
        stored_precision=stored_precision,
    )


def with_search(
    config: configuration.TrainingConfig,
    num_beams: int | None = None,
    length_penalty: float | None = None,
) -> configuration.TrainingConfig:
    """A run's choices with another search; None leaves it as it is."""
    search = {"num_beams": num_beams, "length_penalty": length_penalty}
    given = {name: value for name, value in search.items() if value is not None}
    return dataclasses.replace(config, **given)


def load_run(
    path,
    num_beams: int | None = None,
    length_penalty: float | None = None,
    stored_precision: str = "float32",
) -> translator.Translator:
    """The translator of a run's selected weights; it computes in float32.

    Args:
        path: the run's folder.
        num_beams, length_penalty: of the search, if not those that the run
            was configured with.
        stored_precision: in which it keeps them, "float32" or "float16".

    Errors: `ValueError` if the folder holds no finished run, and for another
    precision.
    """
    run = RunDirectory(pathlib.Path(path))
    config = with_search(read_config(run), num_beams, length_penalty)
    config = dataclasses.replace(config, precision="float32")
    if not run.weights.is_file():
        raise ValueError(
            "Expected a run that has finished an epoch at least (with "
            f"weights.npz): go on with --resume. Received: {run.path}"
        )
    tokenizers = load_tokenizers(run)
    sizes = [tokenizer.vocabulary_size for tokenizer in tokenizers]
    model = create_model(config, *sizes)
    arrays, _ = checkpoints.load(run.weights)
    checkpoints.arrays_to_variables(arrays, "model", model.trainable_variables)
    return make_translator(config, model, tokenizers, stored_precision)


def load(
    path, num_beams: int | None = None, length_penalty: float | None = None
) -> text_to_text.TextToText:
    """Loads a translator: a SavedModel's folder or a run's.

    Args:
        path: `savedmodels/NAME`, one of its versions, or a run's folder.
        num_beams, length_penalty: of a run's search, if not those that it
            was configured with; a SavedModel's are its own.

    Returns:
        A function of a list of texts, see `text_to_text.TextToText`.

    Errors: `ValueError` if there is neither, a file is damaged, or a
    SavedModel is to have another search.

    On two cores, TensorFlow is asked to compute each operation on one of
    them, see `devices.share_cores`.
    """
    devices.share_cores()
    path = pathlib.Path(path)
    if (path / "config.yaml").is_file():
        return load_run(path, num_beams, length_penalty)
    loaded = savedmodel.load(path)
    if num_beams not in (None, loaded.num_beams) or length_penalty is not None:
        raise ValueError(
            "A SavedModel has the beams and the length penalty that it was "
            f"exported with, this one {loaded.num_beams} beams: leave both out "
            "(a call takes num_beams=1, greedy search), or give the folder of "
            f"a run. Received: num_beams={num_beams}, "
            f"length_penalty={length_penalty}, {path}"
        )
    return loaded
