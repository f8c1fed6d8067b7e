"""What a training consists of."""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import keras

from keras_attention import config as configuration
from keras_attention import devices
from keras_attention.training import (
    initial_weights,
    lora,
    optimizers,
    run_directory,
    schedules,
)
from keras_attention.training.across_workers import AcrossWorkers
from keras_attention.training.team import Team
from keras_attention.training.trainer import Trainer


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of a training.

    Args:
        config: every choice.
        task: what is learned, see `tasks.Task`.
        directory: the run's folder.
        corpus: the splits, as text.
        tokenizers: between texts and ids.
        pipeline: the batches of each epoch.
        model: what is trained.
        trainer: fits the model, exactly over replicas.
        validate: a function of an epoch and its logs, which may add scores
            to the logs.
        team: the workers that train it.
    """

    config: configuration.TrainingConfig
    task: Any
    directory: run_directory.RunDirectory
    corpus: Any
    tokenizers: tuple
    pipeline: Any
    model: keras.Model
    trainer: Trainer
    validate: Callable[[int, dict], None]
    team: Team

    def __repr__(self) -> str:
        architecture = self.config.architecture
        return (
            f"<Parts: {self.directory.path}, {self.config.task}, "
            f"{architecture.model} {architecture.size}, "
            f"{self.model.count_params():,} parameters>"
        )


def make_optimizer(
    choices: configuration.Optimizer, num_steps: int
) -> keras.optimizers.Optimizer:
    """Adam as in Vaswani et al. 2017 (5.3), or SGD, with the chosen schedule.

    Args:
        choices: the group `optimizer` of a configuration.
        num_steps: the number of updates in all.
    """
    rate = choices.learning_rate
    if choices.schedule == "cosine":
        # A short run would be over before it is warm.
        warmup = min(choices.warmup_steps, max(1, num_steps // 2))
        # Behind the warm-up, the cosine needs one step at least.
        rate = schedules.Cosine(rate, warmup, max(num_steps, warmup + 1))
    elif choices.schedule == "inverse_sqrt":
        rate = schedules.InverseSquareRoot(rate, choices.warmup_steps)
    if choices.optimizer == "sgd":
        return keras.optimizers.SGD(rate)
    return optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)


def _num_steps(limits: configuration.Training, batches: int) -> int:
    """The updates of all epochs, or fewer where `steps` says so."""
    epochs, steps = limits.epochs, limits.steps
    numbers = [steps] if steps else []
    numbers += [epochs * batches] if epochs else []
    return min(numbers, default=sys.maxsize)


def _check_positions(model, max_length):
    """Raises `ValueError` if a table of positions ends before the examples."""
    # On a GPU, TensorFlow reads zeros behind a table's end, without a word.
    num_positions = getattr(model, "max_length", None)
    if num_positions is not None and max_length > num_positions:
        raise ValueError(
            f"The model has {num_positions} learned positions, and examples "
            f"may have {max_length} tokens. Give --max_length={num_positions} "
            "or less, or more positions in --model_arguments."
        )


def _make_trainer(config, task, model, num_steps, team) -> Trainer:
    """The trainer of a model, whose optimizer has all its weights."""
    choices = config.optimizer
    options = {
        "clip_norm": choices.clip_norm,
        "micro_batches": choices.micro_batches,
        "objective": task.objective(config, model),
    }
    if team.size > 1:
        trainer = AcrossWorkers(model, team.strategy, **options)
    else:
        trainer = Trainer(model, **options)
    optimizer = make_optimizer(choices, num_steps)
    # XLA would compile each shape of a batch anew, and batches of a token
    # budget have many.
    trainer.compile(optimizer, jit_compile=False)
    # A checkpoint gives the optimizer its state before the first step.
    optimizer.build(model.trainable_variables)
    return trainer


def build(
    config: configuration.TrainingConfig,
    task,
    directory,
    corpus,
    team: Team | None = None,
) -> Parts:
    """Makes all parts, the model with fresh weights.

    Args:
        config: every choice; `configuration.resolve` has filled it in.
        task: what is learned.
        directory: the run's folder, from `run_directory.start`.
        corpus: what the task has loaded.
        team: the workers, with their strategy. By default they are made by
            the choice of replicas.

    Raises:
        ValueError: If the choices make no model, if no example fits, or if
            examples may be longer than the model's learned positions. If
            several workers have other vocabularies or other examples.
    """
    team = team or Team(devices.make_strategy(config.run.replicas))
    replicas = team.strategy.num_replicas_in_sync
    keras.utils.set_random_seed(config.run.seed)
    with team.leader_first():
        if team.leads:
            tokenizers = task.tokenizers(config.vocabulary, directory, corpus)
        else:
            tokenizers = task.load_tokenizers(directory)
    with team.together():
        pipeline = task.pipeline(config, corpus, tokenizers, replicas)
        paths = directory.vocabularies()
        contents = {path.name: path.read_bytes() for path in paths}
    team.agree(
        "data",
        f"{pipeline.checksums} {contents}",
        "give each of them the same corpus, and the same folder --output",
    )
    num_steps = _num_steps(config.training, pipeline.report.batches)
    # Again, so that the weights do not depend on what was drawn above: a
    # vocabulary is learned by a new run, and read by one that goes on.
    keras.utils.set_random_seed(config.run.seed)
    with team.strategy.scope():
        model = task.create_model(config, tokenizers)
        if config.architecture.weight_range:
            initial_weights.draw(
                model, config.architecture.weight_range, config.run.seed
            )
        _check_positions(model, config.data.max_length)
        if config.architecture.lora_rank:
            lora.enable(model, config.architecture.lora_rank)
        trainer = _make_trainer(config, task, model, num_steps, team)
    # The servable has the model itself. So after an epoch, the servable answers
    # with the weights of that epoch.
    servable = task.servable(config, model, tokenizers)
    return Parts(
        config=config,
        task=task,
        directory=directory,
        corpus=corpus,
        tokenizers=tokenizers,
        pipeline=pipeline,
        model=model,
        trainer=trainer,
        validate=task.validation(config.data, corpus, servable),
        team=team,
    )
