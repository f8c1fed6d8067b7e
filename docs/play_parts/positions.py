"""Small readers of chapter 13, trained on texts of 24 words."""

import keras
import numpy as np
import tensorflow as tf
from play_parts import halves

import keras_attention as ka

VOCABULARY, BACK, TRAINED_AT = 10, 3, 24
TRIED_AT = (24, 48, 96, 192)
EPOCHS, BATCHES, SEEDS = 10, 100, (1, 2, 3)
KINDS = {
    "sinusoids": lambda: {"added": ka.layers.PositionEncoding()},
    "RoPE": lambda: {"scored": ka.layers.RotaryPositions()},
    "ALiBi": lambda: {"scored": ka.layers.LinearBias()},
    "Shaw": lambda: {"scored": ka.layers.RelativePositions(max_distance=8)},
}
# What the page calls a weight, and the end of its path.
NAMES = {
    "words": "embedding/embeddings",
    "keyTable": "/key_table",
    "valueTable": "/value_table",
    "lookGain": "self_attention_residual/norm/gamma",
    "lookShift": "self_attention_residual/norm/beta",
    "thinkGain": "feed_forward_residual/norm/gamma",
    "thinkShift": "feed_forward_residual/norm/beta",
    "wide": "expand/kernel",
    "wideBias": "expand/bias",
    "narrow": "contract/kernel",
    "narrowBias": "contract/bias",
    "query": "/query_kernel",
    "queryBias": "/query_bias",
    "key": "/key_kernel",
    "keyBias": "/key_bias",
    "value": "/value_kernel",
    "valueBias": "/value_bias",
    "output": "/output_kernel",
    "outputBias": "/output_bias",
    "answers": "dense/kernel",
    "answersBias": "dense/bias",
}


def reader(added=None, scored=None):
    """A causal model of one layer: ids [B, T] -> logits [B, T, 10]."""
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(VOCABULARY, 32, name="embedding")(ids)
    if added is not None:
        x = added(x)
    layer = ka.layers.TransformerEncoderLayer(
        num_heads=2, intermediate_dim=64, norm_first=True, positions=scored
    )
    x, _ = layer(x, use_causal_mask=True)
    x = keras.layers.Dense(VOCABULARY, name="dense")(x)
    return keras.Model(ids, x)


def texts(count, length, seed):
    """Random ids, what stood three places back, and what counts."""
    ids = np.random.default_rng(seed).integers(VOCABULARY, size=(count, length))
    counts = np.broadcast_to(np.arange(length) >= BACK, ids.shape)
    return ids, np.roll(ids, BACK, axis=1), counts.astype("float32")


def trained(added=None, scored=None, seed=1):
    """A reader after the training of chapter 13, its weights in 16 bits."""
    keras.utils.set_random_seed(seed)
    model = reader(added, scored)
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(3e-3, EPOCHS * BATCHES)
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=BATCHES // 2,
        jit_compile=False,
    )
    ids, labels, counts = texts(64 * BATCHES, TRAINED_AT, seed=1)
    model.fit(
        ids,
        labels,
        sample_weight=counts,
        batch_size=64,
        epochs=EPOCHS,
        verbose=0,
    )
    model.set_weights([*map(halves.rounded, model.get_weights())])
    return model


def share(model, length):
    """The share of right words at places that count.

    At lengths beyond those of training, the second half counts.
    """
    ids, labels, _ = texts(100, length, seed=2)
    first = BACK if length == TRAINED_AT else length // 2
    is_right = np.argmax(model(ids), axis=-1) == labels
    return round(float(is_right[:, first:].mean()), 4)


def weights(model) -> dict:
    """The weights by the page's names."""
    found = {}
    for name, end in NAMES.items():
        for weight in model.weights:
            if weight.path.endswith(end):
                found[name] = halves.packed(weight.numpy())
    if len(found) != len(model.weights):
        raise ValueError(f"{len(model.weights)} weights, {len(found)} named.")
    return found


def data() -> dict:
    """What the page is given, after a training of minutes."""
    tf.get_logger().setLevel("ERROR")  # Each model is traced anew.
    ids = texts(1, 60, seed=3)[0]
    kinds = {}
    for kind, make in KINDS.items():
        models = [trained(**make(), seed=seed) for seed in SEEDS]
        kinds[kind] = {
            "shares": [[share(one, n) for n in TRIED_AT] for one in models],
            "weights": weights(models[0]),
            # For the page's tests: logits of the last place of a text.
            "logits": np.array(models[0](ids))[0, -1].round(5).tolist(),
        }
        print(kind, kinds[kind]["shares"])
    return {
        "back": BACK,
        "trainedAt": TRAINED_AT,
        "triedAt": TRIED_AT,
        "seeds": SEEDS,
        "text": ids[0].tolist(),
        "kinds": kinds,
        "origin": {
            "model": "the readers of tutorials/13_where_am_i.py, one layer, "
            "two heads, 32 wide",
            "seed": "1 (the table: 1, 2, 3)",
            "data": "6,400 texts of 24 random words, ten times",
        },
    }
