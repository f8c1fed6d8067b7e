"""A training run: corpus, vocabulary, model and fit meet here.

A run that is killed at any moment and resumed ends with the same weights,
bit for bit on a CPU, as one that was left alone: every batch is a function
of seed, epoch and step, and the checkpoint holds all state there is. (The
logs of an epoch that was broken off are as exact with one replica; with
several, their sums are rounded once more.)
"""

import contextlib
import dataclasses
import json
import sys

import keras
import numpy as np
import tensorflow as tf

from keras_attention import config as configuration
from keras_attention import devices, files
from keras_attention.data import corpora, pipeline
from keras_attention.training import (
    callbacks,
    checkpoints,
    distillation,
    optimizers,
    runs,
    schedules,
    trainer,
)

# By which the best epoch is found, from its index and logs. BLEU is 0 while
# no four words in a row are right: then the loss decides.
RANKS = {
    "bleu": lambda index, logs: (logs["val_bleu"], -logs["val_loss"]),
    "loss": lambda index, logs: (-logs["val_loss"],),
    "last": lambda index, logs: (index,),
}


@dataclasses.dataclass
class Progress:
    """How far a run has come: saved with every checkpoint.

    Args:
        epoch: the epoch that runs, from 0.
        step: batches of it that are done.
        history: the logs of each finished epoch.
        best_epoch: the epoch whose weights are kept, from 0.
        corpus: checksums of training and validation pairs as ids.
    """

    epoch: int = 0
    step: int = 0
    history: list = dataclasses.field(default_factory=list)
    best_epoch: int | None = None
    corpus: list | None = None


def make_optimizer(
    config: configuration.TrainingConfig, num_steps: int
) -> keras.optimizers.Optimizer:
    """Adam with the paper's betas, and the schedule of the configuration."""
    warmup = min(config.warmup_steps, max(1, num_steps // 2))
    peak = config.learning_rate
    if config.schedule == "cosine":
        rate = schedules.Cosine(peak, warmup, max(num_steps, warmup + 1))
    elif config.schedule == "inverse_sqrt":
        rate = schedules.InverseSquareRoot(peak, config.warmup_steps)
    else:
        rate = peak
    return optimizers.Adam(
        rate,
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        use_ema=config.ema > 0,
        ema_momentum=config.ema or 0.99,
    )


class Run:
    """One training run: its parts, and the loop over epochs.

    Args:
        config: every choice; `output` must be set. With `distillation_epochs`
            it is the run from its teacher's weights on, which `train` makes.

    Errors: see `train`.
    """

    def __init__(self, config: configuration.TrainingConfig):
        strategy = devices.make_strategy(config.replicas)
        replicas = strategy.num_replicas_in_sync
        config = dataclasses.replace(config, replicas=replicas)
        self.directory = runs.start(config)
        asked = config
        corpus = corpora.load(config.corpus, config.source, config.target)
        if asked.distillation_epochs:
            teacher = self.directory.teacher
            config = distillation.student_config(config)
            corpus = distillation.with_translations(corpus, teacher)
            runs.copy_vocabulary(teacher, self.directory)
        self.config = config
        keras.utils.set_random_seed(config.seed)
        train = corpus.splits["train"]
        tokenizers = pipeline.prepare_vocabulary(self.directory, config, train)
        self.pipeline = pipeline.Pipeline(config, corpus, tokenizers, replicas)
        batches = self.pipeline.report.batches
        num_steps = min(
            config.steps or sys.maxsize,
            config.epochs * batches if config.epochs else sys.maxsize,
        )
        keras.utils.set_random_seed(config.seed)
        with strategy.scope():
            sizes = [tokenizer.vocabulary_size for tokenizer in tokenizers]
            self.model = runs.create_model(config, *sizes)
            self.trainer = trainer.Trainer(
                self.model,
                config.label_smoothing,
                config.clip_norm,
                config.micro_batches,
            )
            self.trainer.compile(
                optimizer=make_optimizer(config, num_steps), jit_compile=False
            )
            self.trainer.optimizer.build(self.model.trainable_variables)
        translate = runs.make_translator(config, self.model, tokenizers)
        pairs = corpus.splits["validation"].take(config.validation_sentences)
        self.scores = callbacks.TranslationScores(
            lambda sources: translate(sources, num_beams=1, truncate=True),
            list(pipeline.texts(pairs, "source")),
            list(pipeline.texts(pairs, "target")),
        )
        self.progress = Progress(corpus=self.pipeline.checksums)
        self._restored_metrics = None
        if config.resume and self.directory.checkpoint.is_file():
            self._restore()
            runs.write_config(self.directory, asked)
        elif asked.distillation_epochs:
            arrays, _ = checkpoints.load(teacher.weights)
            variables = self.model.trainable_variables
            checkpoints.arrays_to_variables(arrays, "model", variables)

    def _variables(self) -> dict:
        metrics = [
            variable
            for metric in self.trainer.metrics
            for variable in metric.variables
        ]
        return {
            "model": self.model.variables,
            "optimizer": self.trainer.optimizer.variables,
            "metrics": metrics,
        }

    def save(self) -> None:
        """Writes all state to the checkpoint."""
        arrays = {}
        for prefix, variables in self._variables().items():
            arrays |= checkpoints.variables_to_arrays(prefix, variables)
        meta = dataclasses.asdict(self.progress)
        checkpoints.save(self.directory.checkpoint, arrays, meta)

    def _restore(self) -> None:
        arrays, meta = checkpoints.load(self.directory.checkpoint)
        if meta["corpus"] != self.progress.corpus:
            raise ValueError(
                "Expected the pairs that the run began with: put them back, or "
                "start another run with another --output. "
                f"Received: {self.config.corpus} with other content"
            )
        for prefix, variables in self._variables().items():
            checkpoints.arrays_to_variables(arrays, prefix, variables)
        self.progress = Progress(**meta)
        if self.progress.step:
            self._restored_metrics = {
                name: array
                for name, array in arrays.items()
                if name.startswith("metrics/")
            }

    def _restore_metrics(self) -> None:
        """After `fit` has reset them: the part of the epoch that is done."""
        if self._restored_metrics is not None:
            checkpoints.arrays_to_variables(
                self._restored_metrics, "metrics", self._variables()["metrics"]
            )
        self._restored_metrics = None

    def fit(self) -> None:
        """Trains until all epochs or steps are done or patience ends."""
        # With a step done, the epoch is still to be validated.
        while self.progress.step or not self._is_finished():
            self.directory.scores.unlink(missing_ok=True)
            logs = self._fit_epoch()
            with self._averaged_weights():
                self._validate(logs)
                self.progress.history.append(logs)
                self._keep_weights()
            self.progress.epoch += 1
            self.progress.step = 0
            self._write_logs(logs)
            self.save()
            self._remove_old_weights()
        if self.config.average_last:
            self._average_last()

    def _fit_epoch(self) -> dict:
        """The rest of the epoch that the progress names."""
        progress, config = self.progress, self.config

        def save(done):
            progress.step = done
            self.save()

        left = config.steps and max(0, config.steps - self._updates())
        batches = self.pipeline.training(progress.epoch, progress.step, left)
        if batches.cardinality() == 0:
            self._restore_metrics()
        else:
            self.trainer.fit(
                batches,
                initial_epoch=progress.epoch,
                epochs=max(config.epochs or 0, progress.epoch + 1),
                shuffle=False,
                verbose="auto",
                callbacks=[
                    keras.callbacks.LambdaCallback(
                        on_epoch_begin=lambda *_: self._restore_metrics(),
                        on_epoch_end=lambda *_: self._stop_fit(),
                    ),
                    callbacks.EverySteps(
                        config.checkpoint_steps, save, progress.step
                    ),
                ],
            )
        logs = {
            name: float(value)
            for name, value in self.trainer.get_metrics_result().items()
        }
        if not np.isfinite(logs["loss"]):
            raise ValueError(
                "Expected a loss that is finite: start another run with a "
                "lower learning_rate or with clip_norm. Received: "
                f"loss={logs['loss']} in epoch {progress.epoch + 1}"
            )
        return logs

    def _updates(self) -> int:
        """Optimizer steps in all."""
        return int(self.trainer.optimizer.iterations.numpy())

    def _stop_fit(self) -> None:
        """One `fit` for each epoch: the batches are those of one epoch."""
        self.trainer.stop_training = True

    @contextlib.contextmanager
    def _averaged_weights(self):
        """Puts the moving average in the weights' place for a while."""
        if not self.config.ema:
            yield
            return
        # Not `keras.callbacks.SwapEMAWeights`: it adds and subtracts, and the
        # weights do not come back to the last bit.
        variables = self.model.trainable_variables
        averages = self.trainer.optimizer._model_variables_moving_average
        trained = [keras.ops.convert_to_numpy(one) for one in variables]
        for variable, average in zip(variables, averages, strict=True):
            variable.assign(keras.ops.convert_to_numpy(average))
        try:
            yield
        finally:
            for variable, value in zip(variables, trained, strict=True):
                variable.assign(value)

    def _validate(self, logs: dict) -> None:
        measured = self.trainer.evaluate(
            self.pipeline.validation(), verbose=0, return_dict=True
        )
        logs |= {f"val_{name}": value for name, value in measured.items()}
        self.scores.on_epoch_end(self.progress.epoch, logs)

    def _keep_weights(self) -> None:
        """Writes the selected weights if this epoch is the best so far."""
        progress, config = self.progress, self.config
        arrays = checkpoints.variables_to_arrays(
            "model", self.model.trainable_variables
        )
        rank = RANKS[config.select]
        values = [rank(*entry) for entry in enumerate(progress.history)]
        if values[-1] > max(values[:-1], default=()):
            progress.best_epoch = progress.epoch
            meta = {"epoch": progress.epoch, **progress.history[-1]}
            checkpoints.save(self.directory.weights, arrays, meta)
        if config.average_last:
            epoch = progress.epoch
            path = self.directory.epoch_weights(epoch)
            checkpoints.save(path, arrays, {"epoch": epoch})

    def _remove_old_weights(self) -> None:
        """Those that no average needs, once a checkpoint is past them."""
        for epoch in range(self.progress.epoch - self.config.average_last):
            self.directory.epoch_weights(epoch).unlink(missing_ok=True)

    def _is_finished(self) -> bool:
        """Whether the limits or the patience allow no further epoch."""
        progress, config = self.progress, self.config
        if progress.best_epoch is None:
            return False
        waited = progress.epoch - 1 - progress.best_epoch
        return (
            (config.epochs is not None and progress.epoch >= config.epochs)
            or (config.steps is not None and self._updates() >= config.steps)
            or (config.patience > 0 and waited >= config.patience)
        )

    def _average_last(self) -> None:
        """The mean of the last epochs' weights becomes the selected ones."""
        last = self.progress.epoch
        paths = [
            self.directory.epoch_weights(epoch)
            for epoch in range(max(0, last - self.config.average_last), last)
        ]
        loaded = [checkpoints.load(path)[0] for path in paths]
        mean = {
            name: np.mean([arrays[name] for arrays in loaded], axis=0)
            for name in loaded[0]
        }
        meta = {"averaged_epochs": len(paths)}
        checkpoints.save(self.directory.weights, mean, meta)

    def _write_logs(self, logs: dict) -> None:
        """history.json, and scalars for TensorBoard."""
        history = json.dumps(self.progress.history, indent=1)
        files.write_atomically(self.directory.history, history.encode())
        folder = str(self.directory.path / "tensorboard")
        with tf.summary.create_file_writer(folder).as_default():
            for name, value in logs.items():
                tf.summary.scalar(name, value, step=self.progress.epoch)


def _fit(run: Run) -> None:
    print(f"{run.model.count_params():,} parameters; {run.pipeline.report}")
    run.fit()


def _train_teacher(config) -> None:
    """Starts a run: its teacher's training and translations."""
    run = runs.start(config)
    teacher_config = distillation.teacher_config(config)
    if run.checkpoint.is_file():
        return
    teacher = Run(teacher_config)
    runs.write_config(run, config)
    _fit(teacher)
    corpus = corpora.load(config.corpus, config.source, config.target)
    distillation.translate(run.teacher, corpus)


def train(config: configuration.TrainingConfig) -> runs.RunDirectory:
    """Trains what a configuration says, and keeps the selected weights.

    Args:
        config: every choice; `config.resolve` fills in what is None.

    Returns:
        The run's folder, with config.yaml, the vocabulary, weights.npz,
        checkpoint.npz, history.json and TensorBoard's logs; with
        `distillation_epochs` also teacher, the run before the distillation.

    Errors: `ValueError` for a folder that holds another run or that another
    process trains in, a corpus that cannot be read, or a configuration that
    cannot be trained.
    """
    config = configuration.resolve(config)
    with files.lock(config.output):
        if config.distillation_epochs:
            strategy = devices.make_strategy(config.replicas)
            replicas = strategy.num_replicas_in_sync
            config = dataclasses.replace(config, replicas=replicas)
            _train_teacher(config)
            config = dataclasses.replace(config, resume=True)
        run = Run(config)
        _fit(run)
    return run.directory
