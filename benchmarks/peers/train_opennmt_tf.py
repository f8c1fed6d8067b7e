"""OpenNMT-tf's own Transformer, loss, optimizer and training loop.

    python train_opennmt_tf.py WORKLOAD

Size S in float32 on the workload's own ids, with one embedding matrix for
source, target and output. Its trainer adds each step's gradients to variables
of their own before the optimizer reads them, and counts words. Prints one
JSON line.
"""

import argparse
import json
import pathlib
import statistics
import tempfile
import time

import numpy as np
import opennmt
import tensorflow as tf
from opennmt.models import EmbeddingsSharingLevel, Transformer
from opennmt.optimizers import make_optimizer
from opennmt.training import Trainer

VOCABULARY_SIZE, WARM_UP = 8000, 5


def make_model():
    # Dropout as in the paper: on each sublayer's output alone.
    model = Transformer(
        num_layers=4,
        num_units=128,
        num_heads=4,
        ffn_inner_dim=256,
        dropout=0.3,
        attention_dropout=0.0,
        ffn_dropout=0.0,
        share_embeddings=EmbeddingsSharingLevel.ALL,
        pre_norm=True,
        output_layer_bias=False,
    )
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        # The last id is OpenNMT-tf's own, for what is not in the file.
        file.writelines(f"token{i}\n" for i in range(VOCABULARY_SIZE - 1))
        file.flush()
        model.initialize(
            {"source_vocabulary": file.name, "target_vocabulary": file.name},
            {"label_smoothing": 0.1, "average_loss_in_time": True},
        )
    return model


def make_dataset(model, pairs):
    """The batches, as the inputters make them of tokens."""
    spec = tf.TensorSpec([None, None], tf.int32)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(pairs), output_signature=(spec, spec)
    )

    def features(inputter, ids):
        return inputter.make_features(
            features={
                "ids": ids,
                "length": tf.math.count_nonzero(ids, 1, dtype=tf.int32),
                # Read only where the trainer counts unknown words.
                "tokens": tf.strings.as_string(ids),
            }
        )

    return dataset.repeat().map(
        lambda source, target: (
            features(model.features_inputter, source),
            features(model.labels_inputter, target),
        )
    )


class TimedTrainer(Trainer):
    """Notes when each step ends, and its loss; stops in time."""

    def __init__(self, model, optimizer, seconds):
        super().__init__(model, optimizer)
        self.seconds, self.ends, self.losses = seconds, [], []

    def _steps(self, dataset, accum_steps=1):
        for loss in super()._steps(dataset, accum_steps):
            yield loss
            self.ends.append(time.perf_counter())
            self.losses.append(loss)
            elapsed = self.ends[-1] - self.ends[:WARM_UP][-1]
            if len(self.ends) > 2 * WARM_UP and elapsed > self.seconds:
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=pathlib.Path)
    parser.add_argument("--size", default="S", choices=["S"])
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.random.set_seed(1)
    arrays = np.load(arguments.workload / "batches.npz")
    count = len(arrays.files) // 2
    pairs = [
        (arrays[f"source_{i}"], arrays[f"target_{i}"]) for i in range(count)
    ]
    model = make_model()
    optimizer = make_optimizer(
        "Adam", 1e-3, beta_1=0.9, beta_2=0.98, epsilon=1e-9
    )
    trainer = TimedTrainer(model, optimizer, arguments.seconds)
    trainer(make_dataset(model, pairs).prefetch(2))
    times = np.diff(trainer.ends)[WARM_UP - 1 :]
    tokens = [int((target[:, 1:] != 0).sum()) for _, target in pairs]
    tokens = sum(tokens[(WARM_UP + i) % count] for i in range(len(times)))
    print(
        json.dumps(
            {
                "system": f"opennmt-tf {opennmt.__version__}",
                "size": arguments.size,
                "precision": "float32",
                "parameters": model.count_params(),
                "tokens_per_second": tokens / times.sum(),
                "median_step_ms": 1000 * statistics.median(times),
                "steps": len(times),
                "loss": trainer.losses[-1],
            }
        )
    )


if __name__ == "__main__":
    main()
