"""Train a run's model on a machine that has JAX, such as one with a GPU.

The package trains on TensorFlow. Its models, its loss and its schedules are
plain Keras, so that another backend can do the same steps, and a GPU can do
them in minutes. Three verbs:

    python benchmarks/on_jax.py prepare RUN BATCHES --config RECIPE --corpus DIR
    KERAS_BACKEND=jax python benchmarks/on_jax.py fit TRAINING BATCHES WEIGHTS
    python benchmarks/on_jax.py finish RUN WEIGHTS

- `prepare` makes the folder RUN as `keras-attention train` does, whose flags it
  takes. It writes BATCHES, the run's own batches of all epochs, and RUN's
  `on_jax.npz`, which is TRAINING: the model and its optimizer, without weights.
  Runs that differ in their models alone have the same BATCHES.
- `fit` trains without TensorFlow, and writes the weights of the best epoch by
  the loss on the validation examples. It needs keras, jax, numpy and this
  repository.
- `finish` puts the weights into RUN. `keras-attention evaluate RUN` and
  `keras-attention export RUN` then take it.

XLA compiles a program for each shape. So `prepare` fills batches up to a few
shapes, by padding that has no part in the loss.

Two things differ from `keras-attention train`. A translator's best epoch is not
chosen by BLEU. The first weights and the dropout are drawn by JAX.
"""

import argparse
import collections
import importlib
import json
import math
import pathlib
import time

import keras
import numpy as np

from keras_attention import files
from keras_attention.tokens import END
from keras_attention.training import checkpoints, losses, metrics

# Lengths are filled up to this, or to a greater power of two.
SHORTEST = 16
# A recurrent kernel must not see a source without any real token.
BLANK = {"source_ids": END.to_bytes(2, "little")}


def pack(sets):
    """The batches of all epochs, as a table of examples and places in it.

    Epochs have the same examples in another order: each is stored once.

    Args:
        sets: name -> batches, such as those of an epoch.

    Returns:
        name -> array. For each side of an example there is a table of ids. For
        each set there are the rows of its batches, one after the other, and
        the shape of each batch.
    """
    table, batches, most_rows = {}, [], collections.Counter()
    for name, dataset in sets.items():
        for inputs, labels, _ in dataset.as_numpy_iterator():
            if not isinstance(inputs, dict):
                inputs = {"target_ids": inputs}
            sides = {**inputs, "labels": labels}
            # First of all, the row that fills up batches.
            table = table or {tuple(BLANK.get(side, b"") for side in sides): 0}
            rows = [
                table.setdefault(tuple(map(_bytes, example)), len(table))
                for example in zip(*sides.values(), strict=True)
            ]
            lengths = tuple(_filled(ids.shape[1]) for ids in sides.values())
            most_rows[lengths] = max(most_rows[lengths], len(rows))
            batches.append((name, lengths, rows))
    arrays = {
        side: _rectangle(texts)
        for side, texts in zip(sides, zip(*table, strict=True), strict=True)
    }
    for name in sets:
        parts = [part[1:] for part in batches if part[0] == name]
        arrays[f"shapes/{name}"] = np.array(
            [(most_rows[lengths], *lengths) for lengths, _ in parts], "int32"
        )
        filled = [
            rows + [0] * (most_rows[lengths] - len(rows))
            for lengths, rows in parts
        ]
        arrays[f"rows/{name}"] = np.concatenate(filled, dtype="int32")
    return arrays


def _filled(length):
    return max(SHORTEST, 2 ** math.ceil(math.log2(length)))


def _bytes(ids):
    """Ids without the padding behind them; PAD is 0."""
    return np.trim_zeros(ids, "b").astype("uint16").tobytes()


def _rectangle(rows):
    """What `_bytes` made of rows, as one table."""
    rows = [np.frombuffer(row, "uint16") for row in rows]
    table = np.zeros((len(rows), _filled(max(map(len, rows)))), "uint16")
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


class Batches(keras.utils.PyDataset):
    """The batches of a set, as `fit` takes them.

    Args:
        arrays: what `pack` returned.
        name: of the set.
    """

    def __init__(self, arrays, name):
        super().__init__()
        self.shapes = arrays[f"shapes/{name}"]
        ends = np.cumsum(self.shapes[:, 0])
        self.rows = np.split(arrays[f"rows/{name}"], ends[:-1])
        self.sides = {
            side: array for side, array in arrays.items() if "/" not in side
        }

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, index):
        inputs = {
            side: table[self.rows[index], :length].astype("int32")
            for (side, table), length in zip(
                self.sides.items(), self.shapes[index, 1:], strict=True
            )
        }
        labels = inputs.pop("labels")
        # A language model has one input.
        return inputs if len(inputs) > 1 else inputs["target_ids"], labels


def _configuration(flags):
    """The choices that `keras-attention train` makes of these flags."""
    from keras_attention import config as configuration
    from keras_attention.commands import train

    _, bound, _ = train.app.parse_args(flags)
    groups = {
        name: bound.arguments.get(name, getattr(configuration.DEFAULTS, name))
        for name in configuration.GROUPS
    }
    config = configuration.resolve(configuration.TrainingConfig(**groups))
    configuration.check_corpus(config.data.corpus)
    limits = config.training
    if limits.average_last or limits.distillation_epochs or limits.steps:
        raise ValueError(
            "Expected a training of whole epochs and one stage, whose best "
            "epoch is kept: average_last 0, distillation_epochs 0, no steps. "
            f"Received: {limits}"
        )
    if config.data.context == "carry" or config.optimizer.schedule in (
        "decay",
        "plateau",
    ):
        raise ValueError(
            "Here no state is carried, and the learning rate is one of steps. "
            "Train by `keras-attention train`, or leave context=carry, "
            "schedule=decay and schedule=plateau out."
        )
    if config.optimizer.guided_alignment:
        raise ValueError(
            "Here a loss sees no attention. Train by `keras-attention train`, "
            "or leave guided_alignment out."
        )
    return configuration.replace(config, replicas=1)


def prepare(arguments, flags):
    """Makes the run's folder, and writes what `fit` needs."""
    from keras_attention import tasks
    from keras_attention.training import parts, run_directory

    config = _configuration([*flags, "--output", arguments.run])
    task = tasks.get(config.task)
    directory = run_directory.start(config)
    built = parts.build(config, task, directory, task.load(config.data))
    sets = {
        f"{epoch:04d}": built.pipeline.training(epoch)
        for epoch in range(config.training.epochs)
    }
    sets["validation"] = built.pipeline.validation()
    checkpoints.save(pathlib.Path(arguments.batches), pack(sets), {})
    optimizer = built.trainer.optimizer.get_config()
    optimizer["global_clipnorm"] = config.optimizer.clip_norm or None
    checkpoints.save(
        directory.path / "on_jax.npz",
        # Such as the spelling of the words.
        checkpoints.variables_to_arrays(
            "fixed", built.model.non_trainable_weights
        ),
        {
            "model": keras.saving.serialize_keras_object(built.model),
            "optimizer_class": type(built.trainer.optimizer).__name__,
            "optimizer": optimizer,
            "label_smoothing": config.optimizer.label_smoothing,
            "seed": config.run.seed,
            "epochs": config.training.epochs,
        },
    )
    print(f"{built.model.count_params():,} parameters; {built.pipeline.report}")


def fit(arguments):
    """Trains, and writes the weights of the best epoch."""
    started = time.monotonic()
    fixed, choices = checkpoints.load(pathlib.Path(arguments.training))
    arrays, _ = checkpoints.load(pathlib.Path(arguments.batches))
    keras.utils.set_random_seed(choices["seed"])
    model = _made(choices["model"])
    model.build()
    # On a GPU, Keras gives an LSTM without a mask to cuDNN. The LSTM
    # encoder-decoder then grew worse from epoch to epoch. The cause is not
    # known, see docs/experiments/every_translator.md.
    for layer in model.layers:
        if isinstance(layer, keras.layers.LSTM):
            layer.use_cudnn = False
    checkpoints.arrays_to_variables(fixed, "fixed", model.non_trainable_weights)
    if arguments.begin:
        begin, _ = checkpoints.load(pathlib.Path(arguments.begin))
        checkpoints.arrays_to_variables(begin, "model", model.trainable_weights)
    smoothing = choices["label_smoothing"]
    model.compile(
        _optimizer(choices["optimizer_class"], choices["optimizer"]),
        loss=losses.TokenCrossEntropy(smoothing),
        metrics=[metrics.TokenLoss(smoothing), metrics.Perplexity()],
    )
    history = []
    for epoch in range(choices["epochs"]):
        fitted = model.fit(
            Batches(arrays, f"{epoch:04d}"), shuffle=False, verbose=0
        )
        logs = {name: values[0] for name, values in fitted.history.items()}
        measured = model.evaluate(
            Batches(arrays, "validation"), verbose=0, return_dict=True
        )
        logs |= {f"val_{name}": value for name, value in measured.items()}
        # Keras's own mean is one of batches, this one is of tokens.
        for prefix in ("", "val_"):
            logs[f"{prefix}loss"] = logs.pop(f"{prefix}token_loss")
        history.append({name: float(value) for name, value in logs.items()})
        minutes = (time.monotonic() - started) / 60
        print(
            f"epoch {epoch + 1}, {minutes:.2f} minutes: "
            f"loss {logs['loss']:.4f}, validation loss "
            f"{logs['val_loss']:.4f}, perplexity {logs['val_perplexity']:.3f}",
            flush=True,
        )
        _keep_best(arguments.weights, model, history)
        if arguments.minutes and minutes > arguments.minutes:
            print(f"stopped: {arguments.minutes} minutes are over")
            break


def _made(serialized):
    """An object of this package. Its module registers its class."""
    importlib.import_module(serialized["module"])
    return keras.saving.deserialize_keras_object(serialized)


def _optimizer(kind, choices):
    """Keras's, of that name: the package's own Adam is TensorFlow's."""
    rate = choices["learning_rate"]
    if isinstance(rate, dict):
        rate = _made(rate)
    optimizer = getattr(keras.optimizers, kind)
    return optimizer.from_config({**choices, "learning_rate": rate})


def _keep_best(path, model, history):
    """Writes the weights if no earlier epoch had so low a validation loss."""
    path = pathlib.Path(path)
    validation = [logs["val_loss"] for logs in history]
    meta = {"history": history, "epoch": int(np.nanargmin(validation))}
    if meta["epoch"] == len(history) - 1:
        arrays = checkpoints.variables_to_arrays(
            "model", model.trainable_variables
        )
    else:
        arrays, _ = checkpoints.load(path)
    checkpoints.save(path, arrays, meta)


def finish(arguments):
    """Puts the weights into the run's folder."""
    from keras_attention import runs
    from keras_attention.training import restore

    directory, config, task = runs.read_run(arguments.run)
    arrays, meta = checkpoints.load(pathlib.Path(arguments.weights))
    arrays = {name: array.astype("float32") for name, array in arrays.items()}
    logs = meta["history"][meta["epoch"]]
    content = {"epoch": meta["epoch"], **logs}
    checkpoints.save(directory.weights, arrays, content)
    history = json.dumps(meta["history"], indent=1)
    files.write_atomically(directory.history, history.encode())
    restore.load_run(directory, config, task)  # Refuses another model's.
    print(f"epoch {meta['epoch'] + 1} of {len(meta['history'])}: {logs}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("prepare", help="and the flags of a training")
    verb.add_argument("run")
    verb.add_argument("batches")
    verb = verbs.add_parser("fit")
    for name in ("training", "batches", "weights"):
        verb.add_argument(name)
    verb.add_argument("--begin", help="weights, in place of random ones")
    verb.add_argument(
        "--minutes", type=float, help="the last epoch begins then"
    )
    verb = verbs.add_parser("finish")
    verb.add_argument("run")
    verb.add_argument("weights")
    arguments, flags = parser.parse_known_args()
    if arguments.verb == "prepare":
        prepare(arguments, flags)
    elif flags:
        parser.error(f"Received: {' '.join(flags)}")
    else:
        {"fit": fit, "finish": finish}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
