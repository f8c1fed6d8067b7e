"""Trains as one of several workers, and writes what comes of it.

Usage: python two_workers.py FOLDER REPLICAS, with TF_CONFIG in the environment.
"""

import json
import pathlib
import sys

import keras
import numpy as np
import small_runs
import tensorflow as tf
from tensorflow.python.distribute import collective_all_reduce_strategy

from keras_attention import data, devices, models, workers
from keras_attention.training import trainer
from keras_attention.training.across_workers import AcrossWorkers


def batches():
    """Six batches of uneven rows, some of them without any token."""
    return (
        small_runs.reversing(small_runs.uneven(29))
        .apply(data.batch_by_tokens(66, 4, seed=1))
        .apply(data.to_examples())
    )


def fit(strategy=None):
    """Weights after clipped steps of SGD in micro-batches, and the logs."""
    keras.utils.set_random_seed(1)
    with (strategy or tf.distribute.get_strategy()).scope():
        model = models.Transformer.from_size(
            "tiny",
            small_runs.VOCABULARY,
            num_layers=1,
            hidden_dim=8,
            intermediate_dim=16,
            num_heads=2,
            dropout=0.0,
        )
        model.build()
        optimizer = keras.optimizers.SGD(0.5)
    # Below the norm of the gradient of nearly every batch.
    options = {"clip_norm": 0.05, "micro_batches": 2, "label_smoothing": 0.1}
    options["model"] = model
    if strategy:
        fitted = AcrossWorkers(strategy=strategy, **options)
    else:
        fitted = trainer.Trainer(**options)
    fitted.compile(optimizer, jit_compile=False)
    history = fitted.fit(batches(), verbose=0, shuffle=False).history
    logs = {name: values[-1] for name, values in history.items()}
    measured = fitted.evaluate(batches(), verbose=0, return_dict=True)
    logs |= {f"val_{name}": value for name, value in measured.items()}
    return [v.numpy() for v in model.trainable_variables], logs


def masks(strategy):
    """What dropout leaves of ones in two steps, on each of its replicas."""
    with strategy.scope():
        layer = keras.layers.Dropout(0.5, seed=1)

    @tf.function(autograph=False)
    def step():
        return layer(tf.ones([24]), training=True)

    draws = [strategy.run(step) for _ in range(2)]
    of_replicas = zip(
        *map(strategy.experimental_local_results, draws), strict=True
    )
    return [np.array(steps).tolist() for steps in of_replicas]


def make_several_replicas(count):
    """Lets a worker have several CPUs, as TensorFlow lets it have GPUs."""
    devices.make_logical_devices(count)
    extended = collective_all_reduce_strategy.CollectiveAllReduceExtended
    extended._initialize_local_devices = lambda self, resolver, worker: (
        tuple(f"{worker}/device:CPU:{index}" for index in range(count)),
        "CPU",
    )


if __name__ == "__main__":
    folder, replicas = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    here = workers.from_environment()
    if replicas > 1:
        make_several_replicas(replicas)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    weights, logs = fit(strategy)
    np.savez(folder / f"{here.rank}.npz", *weights)
    (folder / f"{here.rank}.json").write_text(
        json.dumps([logs, masks(strategy)])
    )
