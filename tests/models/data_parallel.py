"""Trains on Keras's JAX backend as one of several processes.

Usage: python data_parallel.py MODEL RANK COUNT ADDRESS WEIGHTS
"""

import os
import sys

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
import jax  # noqa: E402

name, rank, count, address, weights = sys.argv[1:]
RANK, COUNT = int(rank), int(count)
if COUNT > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, COUNT, RANK)

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_attention import models  # noqa: E402
from keras_attention.training import losses  # noqa: E402

VOCABULARY, BATCHES = 31, 6
MODELS = {
    "transformer": lambda: models.Transformer.from_size(
        "tiny",
        VOCABULARY,
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=16,
        num_heads=2,
        dropout=0.0,
    ),
    "rnnsearch": lambda: models.RNNSearch.from_size(
        "tiny", VOCABULARY, embedding_dim=8, units=8, readout_dim=8, dropout=0.0
    ),
}


def batches():
    """This process's rows of batches to reverse, and weights that sum to 1."""
    generator = np.random.default_rng(0)
    for _ in range(BATCHES):
        ids = generator.integers(4, VOCABULARY, (8, 7)).astype("int32")
        labels = ids[:, ::-1]
        starts = np.full((8, 1), 2, "int32")
        inputs = np.concatenate([starts, labels[:, :-1]], axis=1)
        weights = np.full(labels.shape, 1 / labels.size, "float32")
        batch = {"source_ids": ids, "target_ids": inputs}, labels, weights
        yield keras.tree.map_structure(lambda one: one[RANK::COUNT], batch)


keras.distribution.set_distribution(
    keras.distribution.DataParallel(auto_shard_dataset=False)
)
keras.utils.set_random_seed(1)
model = MODELS[name]()
model.build()
before = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
model.compile(keras.optimizers.SGD(0.5), loss=losses.TokenCrossEntropy())
model.fit(batches(), steps_per_epoch=BATCHES, shuffle=False, verbose=0)
after = [
    np.asarray(variable.value.addressable_data(0))
    for variable in model.trainable_variables
]
moved = max(np.abs(a - b).max() for a, b in zip(before, after, strict=True))
np.savez(weights, *after, moved=moved)
