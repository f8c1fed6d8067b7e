"""The loop over epochs, from a configuration to the weights that are kept.

A run may be killed at any moment and resumed. On a CPU with one replica, it
then ends with the same weights, bit for bit, as a run that was left alone. For
this, every batch is a function of seed, epoch and step, and the checkpoint
holds all state. The logs of an epoch that was broken off are exact too.

With several replicas, TensorFlow now and then rounds a gradient in another way,
in runs that were left alone as in others. The logs' sums are rounded once more
where a run goes on.

Several workers run this loop side by side on the same batches, and hold the
same weights and logs. The leader alone writes, see `training.team`.
"""

import contextlib
import dataclasses

import keras
import numpy as np

from keras_attention import config as configuration
from keras_attention import devices, files
from keras_attention.config import beginnings
from keras_attention.data.readers import counted_pairs
from keras_attention.training import (
    callbacks,
    epoch_files,
    initial_weights,
    precision,
    run_directory,
    schedules,
)
from keras_attention.training.parts import Parts, build
from keras_attention.training.progress import (
    Progress,
    load,
    restore_metrics,
    save,
)
from keras_attention.training.stages import remaining
from keras_attention.training.team import Team


def train(
    config: configuration.TrainingConfig, task, resume: bool = False
) -> Parts:
    """Trains what a configuration says, and keeps the selected weights.

    Args:
        config: every choice; `configuration.resolve` has filled it in.
        task: what is learned, see `tasks.Task`.
        resume: whether to go on with the run in the folder `output`.

    Returns:
        The parts. Their folder has config.yaml, the vocabulary, weights.npz,
        checkpoint.npz, history.json and TensorBoard's logs. A stage before the
        last has a folder of its own in it, such as `teacher`.

    Where the environment variable TF_CONFIG names several workers, each of them
    calls this with the same configuration. They share the folder.

    Raises:
        ValueError: If the folder holds another run, if another process trains
            in it, if the corpus cannot be read, or if the configuration
            cannot be trained. If several workers do not share their choices,
            their data or the folder. If the weights of `init` do not fit.
        ConnectionError: If another worker does not come, is lost, or has
            failed.
    """
    # A run that goes on elsewhere, with other devices, would not be the same.
    replicas = devices.num_replicas(config.run.replicas)
    config = configuration.replace(config, replicas=replicas)
    with Team.at_work(), contextlib.ExitStack() as locks:
        team = Team(devices.make_strategy(replicas))
        config = precision.decided(config, resume, team.size)
        _start(config, resume, team, locks)
        with team.together():
            corpus = task.load(config.data)
            stages = task.stages(config)
        for stage in remaining(stages):
            # The folder of the last stage keeps the choices of the run.
            choices = config if stage is stages[-1] else stage.config
            parts = _enter(stage, choices, task, corpus, team)
            progress = begin(parts, stage.begin_from)
            # Only now: `begin` refuses another corpus, and changes nothing. The
            # run too keeps its choices: it may have come back for more epochs.
            kept = {parts.directory: choices, stages[-1].directory: config}
            with team.together():
                if team.leads:
                    for directory, chosen in kept.items():
                        run_directory.write_config(directory, chosen)
            fit(parts, progress)
    return dataclasses.replace(parts, config=config)


def _enter(stage, choices, task, corpus, team) -> Parts:
    """The parts of a stage, whose folder the leader makes."""
    directory = stage.directory
    with team.leader_first():
        if team.leads:
            run_directory.start(choices, resume=True)
            # A run that goes on has its vocabulary.
            if stage.begin_from and not directory.checkpoint.is_file():
                initial_weights.take_vocabulary(
                    stage.begin_from, directory, choices.vocabulary
                )
        corpus = stage.corpus(corpus)
    return build(stage.config, task, directory, corpus, team)


def _start(config, resume, team, locks) -> None:
    """Lets the leader make or check the run's folder, and lock it."""
    # A corpus and a folder may have another path on each machine.
    # What all of them shall read is compared later, by its content.
    teachers = beginnings.folders(config.training.distillation_teachers)
    named = configuration.replace(
        config,
        output=None,
        corpus="",
        init=None,
        distillation_teachers=f"{len(teachers)} of them",
    )
    team.agree(
        "choices",
        f"{configuration.text(named)}\nresume: {resume}",
        "start each of them with the same command",
    )
    with team.leader_first():
        directory = run_directory.at(config.run.output)
        if team.leads:
            # Other trainings are kept out until `locks` ends.
            locks.enter_context(files.lock(directory.path))
            run_directory.start(config, resume)
        elif not directory.is_run:
            raise ValueError(
                "The first worker has made the run, but it is not in "
                f"{directory.path}. Give --output in a folder that all workers "
                "share."
            )


def begin(parts: Parts, begin_from: str | None = None) -> Progress:
    """The progress with which a training goes on, or begins.

    Args:
        parts: of the training.
        begin_from: a run or weights to begin with, if there is no checkpoint.

    Raises:
        ValueError: If the corpus is another one than the checkpoint's. If
            several workers do not begin at the same step.
    """
    print(f"{parts.model.count_params():,} parameters; {parts.pipeline.report}")
    with parts.team.together():
        if parts.directory.checkpoint.is_file():
            progress, checksum = load(parts), None
        else:
            progress = Progress(corpus=parts.pipeline.checksums)
            checksum = begin_from and initial_weights.take(
                parts.model, begin_from
            )
    parts.team.agree(
        "first step and first weights",
        f"step {progress.step} of epoch {progress.epoch}, {checksum}",
        "they read them from --output and --init, which they share",
    )
    return progress


def fit(parts: Parts, progress: Progress) -> None:
    """Trains until all epochs or steps are done.

    Args:
        parts: of the training.
        progress: how far it has come. `fit` changes and saves it.
    """
    config, trainer = parts.config, parts.trainer

    def save_step(done):
        progress.step = done
        save(parts, progress)

    # An epoch that has begun is ended and validated, whatever the limits.
    while progress.step or not _is_finished(parts, progress):
        # The old scores describe weights that are about to change.
        if parts.team.leads:
            parts.directory.scores.unlink(missing_ok=True)
        batches = _batches_left(parts, progress)
        if batches.cardinality() == 0:
            # The run stopped after its last batch, before validation.
            restore_metrics(parts, progress)
        else:
            _set_rate(parts, progress)
            print(_heading(parts, progress), flush=True)
            with counted_pairs.clear_errors():
                trainer.fit(
                    batches,
                    shuffle=False,
                    verbose=callbacks.verbosity(),
                    callbacks=[
                        keras.callbacks.LambdaCallback(
                            on_epoch_begin=lambda *_: restore_metrics(
                                parts, progress
                            )
                        ),
                        callbacks.EverySteps(
                            config.run.checkpoint_steps,
                            save_step,
                            progress.step,
                        ),
                    ],
                )
        progress.history.append(_validated(parts, progress))
        epoch_files.keep_weights(parts, progress)
        progress.epoch += 1
        progress.step = 0
        if parts.team.leads:
            epoch_files.write_logs(parts, progress)
        save(parts, progress)
        if parts.team.leads:
            epoch_files.remove_old_weights(parts, progress)
    if config.training.average_last:
        with parts.team.leader_first():
            if parts.team.leads:
                epoch_files.average_last(parts, progress)


def _set_rate(parts, progress) -> None:
    """Gives the optimizer the rate of the epoch, if the schedule has one."""
    # The history decides: a run that goes on has the same rate.
    rate = schedules.rate_of_epoch(parts.config.optimizer, progress.history)
    if rate is not None:
        parts.trainer.optimizer.learning_rate = rate


def _heading(parts, progress) -> str:
    """Which epoch runs; for Keras each one is the first of one."""
    epochs = parts.config.training.epochs
    return f"Epoch {progress.epoch + 1}" + (f"/{epochs}" if epochs else "")


def _updates(parts) -> int:
    """The number of steps that the optimizer has made."""
    # It counts over all epochs, and a checkpoint has its count.
    return int(parts.trainer.optimizer.iterations.numpy())


def _batches_left(parts, progress):
    """The batches that are left of the current epoch."""
    steps = parts.config.training.steps
    left = max(0, steps - _updates(parts)) if steps else None
    return parts.pipeline.training(progress.epoch, progress.step, left)


def _is_finished(parts, progress) -> bool:
    """Whether the limits allow no further epoch."""
    limits = parts.config.training
    # Without an epoch, a run would have no weights to keep.
    return progress.best_epoch is not None and (
        (limits.epochs is not None and progress.epoch >= limits.epochs)
        or (limits.steps is not None and _updates(parts) >= limits.steps)
    )


def _validated(parts, progress) -> dict:
    """The logs of an epoch, on training and validation examples."""
    # First: `evaluate` counts with the same metrics, and resets them.
    logs = {
        name: float(value)
        for name, value in parts.trainer.get_metrics_result().items()
    }
    measured = parts.trainer.evaluate(
        parts.pipeline.validation(), verbose=0, return_dict=True
    )
    logs |= {f"val_{name}": value for name, value in measured.items()}
    # No later epoch would rank above one whose loss is NaN.
    for name in ("loss", "val_loss"):
        if not np.isfinite(logs[name]):
            raise ValueError(
                f"The {name} of epoch {progress.epoch + 1} is {logs[name]}. "
                "Start another run with a lower learning_rate or with "
                "clip_norm."
            )
    parts.validate(progress.epoch, logs)
    return logs
