"""The TensorFlow tutorial's Transformer, its loss and its batches of 64.

    python train_tf_tutorial.py WORKLOAD

"Neural machine translation with a Transformer and Keras": its layers, masked
loss, masked accuracy and learning rate, through `fit`. Sizes are of S, save
that each head is as wide as the model, as there. Batches are of 64 of the
workload's sentences in random order, padded to the longest.

These layers were written for Keras 2. In Keras 3 the padding mask reaches only
the first self-attention of the encoder and of the decoder, which saves the
others that work: a mask belongs to a tensor, and attention takes it off its
inputs. Prints one JSON line.
"""

import argparse
import json
import pathlib
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

LAYERS, WIDTH, INNER, HEADS, DROPOUT = 4, 128, 256, 4, 0.1
BATCH, WARM_UP = 64, 5


def positional_encoding(length, depth):
    exponents = np.arange(depth // 2) / (depth // 2)
    angles = np.arange(length)[:, None] / 10000**exponents
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    return tf.constant(table, tf.float32)


class PositionalEmbedding(keras.layers.Layer):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = keras.layers.Embedding(
            vocabulary_size, WIDTH, mask_zero=True
        )
        self.positions = positional_encoding(2048, WIDTH)

    def compute_mask(self, *args, **kwargs):
        return self.embedding.compute_mask(*args, **kwargs)

    def call(self, ids):
        x = self.embedding(ids) * tf.sqrt(float(WIDTH))
        return x + self.positions[None, : tf.shape(ids)[1]]


class BaseAttention(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.mha = keras.layers.MultiHeadAttention(
            HEADS, key_dim=WIDTH, dropout=DROPOUT
        )
        self.layernorm = keras.layers.LayerNormalization()
        self.add = keras.layers.Add()


class CrossAttention(BaseAttention):
    def call(self, x, context):
        output, self.scores = self.mha(
            query=x, key=context, value=context, return_attention_scores=True
        )
        return self.layernorm(self.add([x, output]))


class GlobalSelfAttention(BaseAttention):
    def call(self, x):
        output = self.mha(query=x, value=x, key=x)
        return self.layernorm(self.add([x, output]))


class CausalSelfAttention(BaseAttention):
    def call(self, x):
        output = self.mha(query=x, value=x, key=x, use_causal_mask=True)
        return self.layernorm(self.add([x, output]))


class FeedForward(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.sequence = keras.Sequential(
            [
                keras.layers.Dense(INNER, activation="relu"),
                keras.layers.Dense(WIDTH),
                keras.layers.Dropout(DROPOUT),
            ]
        )
        self.add = keras.layers.Add()
        self.layernorm = keras.layers.LayerNormalization()

    def call(self, x):
        return self.layernorm(self.add([x, self.sequence(x)]))


class EncoderLayer(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.self_attention = GlobalSelfAttention()
        self.feed_forward = FeedForward()

    def call(self, x):
        return self.feed_forward(self.self_attention(x))


class Encoder(keras.layers.Layer):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = PositionalEmbedding(vocabulary_size)
        self.dropout = keras.layers.Dropout(DROPOUT)
        self.layers = [EncoderLayer() for _ in range(LAYERS)]

    def call(self, ids):
        x = self.dropout(self.embedding(ids))
        for layer in self.layers:
            x = layer(x)
        return x


class DecoderLayer(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.causal_self_attention = CausalSelfAttention()
        self.cross_attention = CrossAttention()
        self.feed_forward = FeedForward()

    def call(self, x, context):
        x = self.causal_self_attention(x)
        x = self.cross_attention(x, context)
        return self.feed_forward(x)


class Decoder(keras.layers.Layer):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = PositionalEmbedding(vocabulary_size)
        self.dropout = keras.layers.Dropout(DROPOUT)
        self.layers = [DecoderLayer() for _ in range(LAYERS)]

    def call(self, ids, context):
        x = self.dropout(self.embedding(ids))
        for layer in self.layers:
            x = layer(x, context)
        return x


class Transformer(keras.Model):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.encoder = Encoder(vocabulary_size)
        self.decoder = Decoder(vocabulary_size)
        self.final_layer = keras.layers.Dense(vocabulary_size)

    def call(self, inputs):
        source, target = inputs
        logits = self.final_layer(self.decoder(target, self.encoder(source)))
        # The mask would scale the loss a second time.
        if hasattr(logits, "_keras_mask"):
            del logits._keras_mask
        return logits


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        return WIDTH**-0.5 * tf.minimum(tf.math.rsqrt(step), step * 4000**-1.5)


def masked_loss(labels, logits):
    losses = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="none"
    )(labels, logits)
    mask = tf.cast(labels != 0, losses.dtype)
    return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)


def masked_accuracy(labels, logits):
    labels = tf.cast(labels, tf.int64)
    mask = labels != 0
    match = (labels == tf.argmax(logits, axis=2)) & mask
    mask = tf.cast(mask, tf.float32)
    return tf.reduce_sum(tf.cast(match, tf.float32)) / tf.reduce_sum(mask)


class Timer(keras.callbacks.Callback):
    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.ends = seconds, []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())
        if len(self.ends) > 2 * WARM_UP:
            elapsed = self.ends[-1] - self.ends[WARM_UP - 1]
            self.model.stop_training = elapsed > self.seconds


def pad(rows):
    longest = max(len(row) for row in rows)
    return np.stack([np.pad(row, (0, longest - len(row))) for row in rows])


def batches_of_sentences(arrays):
    """The workload's sentences in random order, 64 and 64."""
    pairs = []
    for index in range(len(arrays.files) // 2):
        sources, targets = arrays[f"source_{index}"], arrays[f"target_{index}"]
        pairs += [
            (source[source != 0], target[target != 0])
            for source, target in zip(sources, targets, strict=True)
        ]
    order = np.random.default_rng(1).permutation(len(pairs))
    for start in range(0, len(pairs), BATCH):
        chosen = [pairs[i] for i in order[start : start + BATCH]]
        yield tuple(pad(rows) for rows in zip(*chosen, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=40.0)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    arrays = np.load(arguments.workload / "batches.npz")
    pairs = list(batches_of_sentences(arrays))

    def examples():
        for source, target in pairs:
            yield (source, target[:, :-1]), target[:, 1:]

    spec = tf.TensorSpec([None, None], tf.int32)
    batches = tf.data.Dataset.from_generator(
        examples, output_signature=((spec, spec), spec)
    )
    model = Transformer(8000)
    model.compile(
        optimizer=keras.optimizers.Adam(Schedule(), 0.9, 0.98, 1e-9),
        loss=masked_loss,
        metrics=[masked_accuracy],
    )
    # Variables made before `fit`: it then traces its step once.
    model(tuple(ids[:1] for ids in pairs[0]))
    model.optimizer.build(model.trainable_variables)
    timer = Timer(arguments.seconds)
    history = model.fit(
        batches.repeat().prefetch(tf.data.AUTOTUNE),
        steps_per_epoch=10**6,
        verbose=0,
        callbacks=[timer],
    )
    times = np.diff(timer.ends)[WARM_UP - 1 :]
    tokens = [int((target[:, 1:] != 0).sum()) for _, target in pairs]
    count = len(pairs)
    tokens = sum(tokens[(WARM_UP + i) % count] for i in range(len(times)))
    print(
        json.dumps(
            {
                "system": f"tensorflow tutorial, keras {keras.__version__}",
                "size": "S",
                "parameters": model.count_params(),
                "tokens_per_second": tokens / times.sum(),
                "median_step_ms": 1000 * statistics.median(times),
                "steps": len(times),
                "loss": history.history["loss"][-1],
            }
        )
    )


if __name__ == "__main__":
    main()
