"""Whether the choices of a training go together."""

import pathlib

from keras_attention import suggestions
from keras_attention.config import beginnings
from keras_attention.config.groups import Data, TrainingConfig
from keras_attention.models import catalog

# The corpora that are embedded in the package.
EMBEDDED = tuple(
    dict.fromkeys(
        [entry.corpus for entry in catalog.CATALOG.values()]
        + [corpus for corpus, _ in catalog.OTHER_TASKS.values()]
    )
)


def is_folder(corpus: str) -> bool:
    """Whether the name of a corpus means files of the user."""
    return corpus not in EMBEDDED and not corpus.startswith("tfds:")


def check_languages(given: Data, filled: Data) -> None:
    """Refuses one language twice, unless it was named twice.

    It is then an autoencoder. Else the default of the other side met it.

    Args:
        given: the choices that were made.
        filled: these and the defaults.

    Raises:
        ValueError: If one side alone was named, and the other has the same
            language by default.
    """
    language = filled.source
    if (
        language is not None
        and language == filled.target
        and None in (given.source, given.target)
    ):
        raise ValueError(
            f"--source and --target are both {language!r}. A translator needs "
            "two languages. An autoencoder, which writes each text again, "
            f"needs both flags: --source={language} --target={language}."
        )


def check_together(config: TrainingConfig) -> None:
    """Checks that choices fit each other.

    Raises:
        ValueError: If they do not.
    """
    model, task = config.architecture.model, config.task
    _check_learns(model, config.architecture.learns)
    _check_distillation(config)
    if config.vocabulary.target_vocabulary_type and task != "translation":
        raise ValueError(
            "target_vocabulary_type is for translators only. Leave it out for "
            f"{model}."
        )
    _check_lora(config)
    _check_context(config)
    _check_guidance(config)
    if config.data.columns and task == "translation":
        raise ValueError(
            f"--columns is for tables with labels. Leave it out for {model}. "
            "The header of a table of pairs names the columns: source and "
            "target, or the codes of the two languages."
        )
    if config.data.columns and (
        task in ("language_modelling", "image_classification")
        or config.data.corpus is None
        or not is_folder(config.data.corpus)
    ):
        raise ValueError(
            "--columns needs --corpus with your own labelled tables, and a "
            "--model that classifies texts."
        )
    optimizer = config.optimizer
    if optimizer.schedule == "plateau" and task != "language_modelling":
        raise ValueError(
            "schedule=plateau compares the perplexities of a language model. "
            f"Choose another schedule for {model}."
        )
    if optimizer.optimizer == "sgd" and optimizer.learning_rate is None:
        raise ValueError(
            "optimizer=sgd needs a learning_rate, such as 30 for a language "
            "model with clip_norm=0.15. The default is Adam's, and far too "
            "small for sgd."
        )


def _check_learns(model: str, learns: str | None) -> None:
    """Checks that a model learns a task, None for its own.

    Raises:
        ValueError: If it does not.
    """
    learners = {}  # Task -> models.
    others = catalog.OTHER_TASKS.items()
    for name, entry in catalog.CATALOG.items():
        more = [task for task, (_, able) in others if name in able]
        for task in [entry.task, *more]:
            learners.setdefault(task, []).append(name)
    if learns is None or model in learners.get(learns, ()):
        return
    if learns in learners:
        raise ValueError(
            f"{model} does not learn {learns}. Leave --learns out, or choose "
            f"another --model: {', '.join(learners[learns])}."
        )
    told = [f"{task} ({', '.join(able)})" for task, able in learners.items()]
    raise ValueError(
        f"No model learns {learns}{suggestions.closest(learns, learners)}. "
        f"Leave --learns out: {model} then learns {catalog.entry(model).task}. "
        f"Or choose a task, and a --model that learns it: {'; '.join(told)}."
    )


def _check_distillation(config: TrainingConfig) -> None:
    """Checks that translations are learned, if there are any.

    Raises:
        ValueError: If the model is no translator, or if nobody learns what the
            teachers translate.
    """
    training = config.training
    if training.distillation_epochs and config.task != "translation":
        raise ValueError(
            "distillation_epochs is for translators only. Leave it out for "
            f"{config.architecture.model}."
        )
    teachers = training.distillation_teachers
    if teachers is not None and not beginnings.folders(teachers):
        raise ValueError(
            "distillation_teachers names no run. Give the folders of finished "
            "runs, with commas between them, or leave it out. "
            f"Received: {teachers!r}"
        )
    if teachers and not training.distillation_epochs:
        raise ValueError(
            "distillation_teachers translate for the epochs of a distillation. "
            "Give distillation_epochs, too, or leave out the teachers."
        )


def _check_lora(config: TrainingConfig) -> None:
    """Checks that there are weights to change.

    Raises:
        ValueError: If there are none.
    """
    if config.architecture.lora_rank and not config.run.init:
        raise ValueError(
            "lora_rank keeps the weights that a training begins with, and "
            "changes attention alone. Name them: --init RUN."
        )


def _check_guidance(config: TrainingConfig) -> None:
    """Checks who tells the model where to look.

    Raises:
        ValueError: If the model or other choices cannot have it.
    """
    model = config.architecture.model
    if config.optimizer.guided_alignment is None:
        if config.optimizer.guided_alignment_weight != 1:
            raise ValueError(
                "guided_alignment_weight counts beside guided_alignment only. "
                "Give guided_alignment, or leave out the weight."
            )
        return
    if config.task != "translation" or model not in catalog.GUIDED:
        raise ValueError(
            f"guided_alignment is for {', '.join(catalog.GUIDED)}, which learn "
            f"where to look. Leave it out for {model}."
        )
    if config.training.distillation_epochs:
        raise ValueError(
            "distillation_epochs adds pairs whose links nobody knows. Leave "
            "out guided_alignment or distillation_epochs."
        )


def check_links(links: str | None) -> None:
    """Refuses a file of links that is not there.

    Args:
        links: the choice `guided_alignment`.

    Raises:
        ValueError: If it is a path without a file.
    """
    if links not in (None, "hmm") and not pathlib.Path(links).is_file():
        raise ValueError(
            f"There is no file {links}. Give guided_alignment a file with the "
            "links of each training pair, or hmm."
        )


def _check_context(config: TrainingConfig) -> None:
    """Checks what a language model sees before a word.

    Raises:
        ValueError: If the model or other choices cannot have it.
    """
    model, context = config.architecture.model, config.data.context
    if context != "line" and config.task != "language_modelling":
        raise ValueError(
            f"context={context} is for language models only. Leave it out for "
            f"{model}."
        )
    if context != "carry":
        return
    if model not in catalog.CARRIED:
        raise ValueError(
            f"context=carry needs a recurrent state, which {model} does not "
            f"have. Choose --model {' or '.join(catalog.CARRIED)}, or "
            "context=stream."
        )
    if (config.run.replicas or 1) > 1:
        raise ValueError(
            "context=carry trains on one replica, where the state is. Give "
            f"--replicas=1. Received: replicas={config.run.replicas}"
        )
    if config.vocabulary.subword_sampling:
        raise ValueError(
            "context=carry reads the same tokens in each epoch. Leave "
            "subword_sampling out."
        )
