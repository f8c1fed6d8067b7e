"""KerasHub's Transformer layers, tied embeddings, through `fit`.

    python train_keras_hub.py WORKLOAD

Size S in float32 on the workload's own batches. Its loss is Keras's sparse
cross-entropy, without label smoothing, which Keras offers for dense targets
only. Prints one JSON line.
"""

import argparse
import json
import pathlib
import statistics
import time

import keras
import keras_hub
import numpy as np
import tensorflow as tf

LAYERS, WIDTH, INNER, HEADS, DROPOUT = 4, 128, 256, 4, 0.3
WARM_UP = 5


def make_model(vocabulary_size):
    source = keras.Input((None,), dtype="int32", name="source_ids")
    target = keras.Input((None,), dtype="int32", name="target_ids")
    embedding = keras.layers.ReversibleEmbedding(
        vocabulary_size, WIDTH, mask_zero=True
    )
    positions = keras_hub.layers.SinePositionEncoding()
    dropout = keras.layers.Dropout(DROPOUT)

    def embed(ids):
        x = embedding(ids) * WIDTH**0.5
        return dropout(x + positions(x))

    sizes = {
        "intermediate_dim": INNER,
        "num_heads": HEADS,
        "dropout": DROPOUT,
        "normalize_first": True,
    }
    memory_mask = keras.ops.not_equal(source, 0)
    x = embed(source)
    for _ in range(LAYERS):
        x = keras_hub.layers.TransformerEncoder(**sizes)(
            x, padding_mask=memory_mask
        )
    memory = keras.layers.LayerNormalization()(x)
    x = embed(target)
    for _ in range(LAYERS):
        x = keras_hub.layers.TransformerDecoder(**sizes)(
            x, memory, encoder_padding_mask=memory_mask
        )
    x = keras.layers.LayerNormalization()(x)
    return keras.Model([source, target], embedding(x, reverse=True))


class Timer(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.ends = seconds, []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())
        if len(self.ends) > 2 * WARM_UP:
            elapsed = self.ends[-1] - self.ends[WARM_UP - 1]
            self.model.stop_training = elapsed > self.seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=40.0)
    arguments = parser.parse_args()
    arrays = np.load(arguments.workload / "batches.npz")
    count = len(arrays.files) // 2
    pairs = [
        (arrays[f"source_{i}"], arrays[f"target_{i}"]) for i in range(count)
    ]

    def examples():
        for source, target in pairs:
            inputs = {"source_ids": source, "target_ids": target[:, :-1]}
            labels = target[:, 1:]
            yield inputs, labels, (labels != 0).astype("float32")

    ids = tf.TensorSpec([None, None], tf.int32)
    batches = tf.data.Dataset.from_generator(
        examples,
        output_signature=(
            {"source_ids": ids, "target_ids": ids},
            ids,
            tf.TensorSpec([None, None], tf.float32),
        ),
    )
    model = make_model(8000)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3, 0.9, 0.98, 1e-9),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    timer = Timer(arguments.seconds)
    model.fit(
        batches.repeat().prefetch(2),
        steps_per_epoch=10**6,
        verbose=0,
        callbacks=[timer],
    )
    times = np.diff(timer.ends)[WARM_UP - 1 :]
    tokens = [int((target[:, 1:] != 0).sum()) for _, target in pairs]
    tokens = sum(tokens[(WARM_UP + i) % count] for i in range(len(times)))
    print(
        json.dumps(
            {
                "system": f"keras_hub {keras_hub.__version__}",
                "size": "S",
                "parameters": model.count_params(),
                "tokens_per_second": tokens / times.sum(),
                "median_step_ms": 1000 * statistics.median(times),
                "steps": len(times),
            }
        )
    )


if __name__ == "__main__":
    main()
