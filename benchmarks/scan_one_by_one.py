"""Train on SCAN as Lake and Baroni 2018 do: one command a step.

    python benchmarks/scan_one_by_one.py FOLDER SPLIT [--own_share 0] [--seed 2]

`keras-attention train` takes batches, and its decoder reads the right outputs.
This program trains the paper's overall best network by the paper's description:
an encoder and a decoder of two LSTMs of 200 cells, without attention, and a
dropout of 0.5. Adam has a learning rate of 0.001, and gradients are clipped to
a norm of 5. There are 100,000 steps of one command each, drawn with
replacement. In `--own_share` of them, the decoder reads its own outputs, and
the loss ends where it writes the end.

The paper does not say all. Here, dropout is on the embeddings and between the
LSTMs. The loss of a command is its sum, divided by the right answer's length.
An LSTM has one bias for each gate. Weights are drawn as PyTorch draws them.

It needs JAX. It prints a line after each tenth of the steps: the loss, and how
many test commands have every action right by greedy search, in percent.

Reference: https://arxiv.org/abs/1711.00350
"""

import argparse
import time

import jax
import numpy as np
from jax import numpy as jnp

from keras_attention.data.readers import scan

UNITS = 200
DROPOUT = 0.5
LEARNING_RATE = 1e-3
CLIP_NORM = 5.0
PADDING, START, END = range(3)
# Lengths are filled up to the next of these, END included.
SOURCE_LENGTH = 10
TARGET_LENGTHS = (4, 9, 17, 25, 33, 49)


class Tokens:
    """The words of a side, as ids after the three signs."""

    def __init__(self, texts):
        words = sorted({word for text in texts for word in text.split()})
        self.ids = {word: 3 + place for place, word in enumerate(words)}
        self.size = 3 + len(words)

    def encode(self, text, length):
        ids = [*(self.ids[word] for word in text.split()), END]
        return ids + [PADDING] * (length - len(ids))


def initial_weights(source_size, target_size, rng):
    """Those of PyTorch: N(0, 1) for embeddings, else U(-1, 1) / sqrt(units)."""

    def uniform(*shape):
        drawn = rng.uniform(-1, 1, shape) / np.sqrt(UNITS)
        return jnp.array(drawn, jnp.float32)

    def normal(size):
        return jnp.array(rng.normal(size=(size, UNITS)), jnp.float32)

    weights = {
        "source": normal(source_size),
        "target": normal(target_size),
        "output": uniform(UNITS, target_size),
        "output_bias": uniform(target_size),
    }
    for name in ("encoder_0", "encoder_1", "decoder_0", "decoder_1"):
        weights[name] = uniform(2 * UNITS, 4 * UNITS)
        weights[f"{name}_bias"] = uniform(4 * UNITS)
    return weights


def lstm(weights, name, x, state):
    """One step of an LSTM; its state is (output, memory)."""
    output, memory = state
    x = jnp.concatenate([x, output])
    i, f, g, o = jnp.split(x @ weights[name] + weights[f"{name}_bias"], 4)
    memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


def drop(x, key):
    """Dropout, where there is a key."""
    if key is None:
        return x
    kept = jax.random.bernoulli(key, 1 - DROPOUT, x.shape)
    return jnp.where(kept, x / (1 - DROPOUT), 0.0)


def two_lstms(weights, side, x, state, key):
    """One step of a side: the state of both of its LSTMs."""
    keys = (None, None) if key is None else jax.random.split(key)
    lower = lstm(weights, f"{side}_0", drop(x, keys[0]), state[0])
    upper = lstm(weights, f"{side}_1", drop(lower[0], keys[1]), state[1])
    return lower, upper


def keys_of(key, number):
    return None if key is None else jax.random.split(key, number)


def encode(weights, source, key=None):
    """The encoder's state after `source` [S]."""

    def step(state, x):
        word, word_key = x
        x = weights["source"][word]
        after = two_lstms(weights, "encoder", x, state, word_key)
        state = jax.tree.map(
            lambda new, old: jnp.where(word != PADDING, new, old), after, state
        )
        return state, None

    zeros = jnp.zeros(UNITS)
    state = ((zeros, zeros), (zeros, zeros))
    return jax.lax.scan(step, state, (source, keys_of(key, SOURCE_LENGTH)))[0]


def decode(weights, word, state, key=None):
    """Logits of the word after `word`, and the decoder's next state."""
    x = weights["target"][word]
    state = two_lstms(weights, "decoder", x, state, key)
    return state[1][0] @ weights["output"] + weights["output_bias"], state


def loss(weights, source, target, own, key=None):
    """Sum of the cross-entropies of `target` [T], divided by its length.

    With `own`, the decoder reads its own outputs. Without a key, there is no
    dropout.
    """
    source_key, target_key = (
        (None, None) if key is None else jax.random.split(key)
    )
    state = encode(weights, source, source_key)

    def step(carry, x):
        state, word, alive = carry
        right, word_key = x
        logits, state = decode(weights, word, state, word_key)
        best = jnp.argmax(logits)
        lost = -jax.nn.log_softmax(logits)[right]
        lost = lost * (right != PADDING) * alive
        alive = jnp.where(own & (best == END), 0.0, alive)
        return (state, jnp.where(own, best, right), alive), lost

    keys = keys_of(target_key, len(target))
    _, lost = jax.lax.scan(step, (state, START, 1.0), (target, keys))
    return lost.sum() / (target != PADDING).sum()


@jax.jit
def update(weights, mean, square, step, source, target, own, key):
    """One step of Adam (Kingma and Ba 2015, algorithm 1)."""
    value, gradients = jax.value_and_grad(loss)(
        weights, source, target, own, key
    )
    norm = jnp.sqrt(sum((g**2).sum() for g in jax.tree.leaves(gradients)))
    scale = jnp.minimum(1, CLIP_NORM / (norm + 1e-6))
    gradients = jax.tree.map(lambda g: g * scale, gradients)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    square = jax.tree.map(
        lambda v, g: 0.999 * v + 0.001 * g * g, square, gradients
    )

    def next_weight(weight, m, v):
        m, v = m / (1 - 0.9**step), v / (1 - 0.999**step)
        return weight - LEARNING_RATE * m / (jnp.sqrt(v) + 1e-8)

    return jax.tree.map(next_weight, weights, mean, square), mean, square, value


@jax.jit
def answers(weights, sources):
    """Greedy outputs [N, 49] of `sources` [N, S]."""

    def answer(source):
        def step(carry, _):
            state, word = carry
            logits, state = decode(weights, word, state)
            best = jnp.argmax(logits)
            return (state, best), best

        carry = (encode(weights, source), START)
        return jax.lax.scan(step, carry, length=TARGET_LENGTHS[-1])[1]

    return jax.vmap(answer)(sources)


def exact_match(weights, sources, targets):
    """How many have every action and the end right, in percent."""
    outputs = np.array(answers(weights, jnp.array(sources)))
    targets = np.array(targets)
    right = np.all((outputs == targets) | (targets == PADDING), axis=1)
    return 100 * right.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="SCAN's published files.")
    parser.add_argument("split", help="Such as addprim_turn_left.")
    parser.add_argument(
        "--own_share",
        type=float,
        default=0.5,
        help="The share of steps in which the decoder reads its own outputs.",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="It draws the weights, the commands, the dropout, and the steps "
        "that read the network's own outputs.",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=100_000,
        help="The number of training steps. Each has one command.",
    )
    arguments = parser.parse_args()
    files = scan.find_files(arguments.folder)[arguments.split]
    train, test = scan.read(files["train"]), scan.read(files["test"])
    commands, actions = (
        Tokens(side) for side in zip(*train + test, strict=True)
    )
    sources = [commands.encode(text, SOURCE_LENGTH) for text, _ in test]
    targets = [actions.encode(text, TARGET_LENGTHS[-1]) for _, text in test]

    rng = np.random.default_rng(arguments.seed)
    weights = initial_weights(commands.size, actions.size, rng)
    mean = square = jax.tree.map(jnp.zeros_like, weights)
    key = jax.random.key(arguments.seed)
    begin, losses = time.time(), []
    for step in range(1, arguments.steps + 1):
        command, text = train[rng.integers(len(train))]
        key, step_key = jax.random.split(key)
        length = next(n for n in TARGET_LENGTHS if n > len(text.split()))
        weights, mean, square, value = update(
            weights,
            mean,
            square,
            float(step),
            jnp.array(commands.encode(command, SOURCE_LENGTH)),
            jnp.array(actions.encode(text, length)),
            bool(rng.random() < arguments.own_share),
            step_key,
        )
        losses.append(value)
        if step % max(arguments.steps // 10, 1) == 0:
            right = exact_match(weights, sources, targets)
            print(
                f"{step} steps, {(time.time() - begin) / 60:.0f} minutes: "
                f"loss {np.mean(losses):.4f}, test {right:.1f} %",
                flush=True,
            )
            losses = []


if __name__ == "__main__":
    main()
