"""Hops that find the two words of a text that decide its label, or do not.

    python benchmarks/planted_letters.py --picture found.png

A text is 28 to 38 numbers and two letters, a capital and a small one. Its label
names the two. A model with two hops is trained twice, with seed 1: with the
penalty of Lin et al. 2017 from the start, and with it in the last five of
eight epochs alone. The bias of all forget gates begins at -6, so a state tells
mainly of its own word. Prints how many of 1,000 other texts are right, and how
often the hops are greatest at the two letters.
"""

import argparse
import string

import keras
import numpy as np

import keras_attention as ka
from keras_attention import plotting
from keras_attention.tokens import END, PAD

CAPITALS, SMALL = string.ascii_uppercase[:16], string.ascii_lowercase[:16]
LETTERS = CAPITALS + SMALL
NUMBERS = 30
# Digits come before letters.
WORDS = sorted([*map(str, range(NUMBERS)), *LETTERS])
FEWEST, MOST = 28, 38
# Epochs without the penalty, or with it, and epochs with it.
FIRST, LAST = 3, 5


def draw(generator, count):
    """Texts, each a list of words, and labels from 0 to 255."""
    texts, labels = [], []
    for _ in range(count):
        length = generator.integers(FEWEST, MOST + 1)
        words = [str(n) for n in generator.integers(0, NUMBERS, length)]
        pair = [generator.integers(16), generator.integers(16)]
        for letter in (CAPITALS[pair[0]], SMALL[pair[1]]):
            words.insert(generator.integers(len(words) + 1), letter)
        texts.append(words)
        labels.append(16 * pair[0] + pair[1])
    return texts, np.array(labels)


def to_ids(texts):
    """Ids of words, END behind the last: [B, MOST + 3]."""
    ids = np.full((len(texts), MOST + 3), PAD, "int32")
    for row, words in enumerate(texts):
        numbers = [END + 1 + WORDS.index(word) for word in words]
        ids[row, : len(words) + 1] = [*numbers, END]
    return ids


def fit(model, inputs, labels, epochs):
    """Trains as chapter 11 does: the rate falls along a cosine."""
    steps = epochs * -(-len(labels) // 64)
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(
                0.0, steps, warmup_target=2e-3, warmup_steps=steps // 10
            ),
            beta_2=0.98,
            epsilon=1e-9,
            global_clipnorm=1.0,
        ),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    model.fit(inputs, labels, 64, epochs, verbose=0)


def train(penalty, ids, labels):
    """A model whose first epochs have this penalty, and whose last have 1."""
    keras.utils.set_random_seed(1)
    model = ka.models.SelfAttentiveEmbedding.from_size(
        "mini", END + 1 + len(WORDS), num_classes=16 * 16, penalty=penalty
    )
    model.build()
    for lstm in (
        model.recurrence.forward_layer,
        model.recurrence.backward_layer,
    ):
        kernel, recurrent_kernel, bias = lstm.get_weights()
        bias[lstm.units : 2 * lstm.units] = -6  # That of the forget gates.
        lstm.set_weights([kernel, recurrent_kernel, bias])
    fit(model, {"source_ids": ids}, labels, FIRST)
    model.penalty = 1.0
    # Compiles anew, so that the penalty counts. The rate starts anew, too.
    fit(model, {"source_ids": ids}, labels, LAST)
    return model


def measure(model, ids, labels):
    """Weights of the hops, and shares: right, both letters found, none."""
    inputs = {"source_ids": ids}
    logits = model.predict(inputs, batch_size=500, verbose=0)
    weights = keras.ops.convert_to_numpy(model.attend(inputs)[1])
    best = np.argmax(weights, axis=2)  # [B, 2]
    is_letter = ids >= END + 1 + NUMBERS
    on_letters = np.take_along_axis(is_letter, best, axis=1)
    both = on_letters.all(axis=1) & (best[:, 0] != best[:, 1])
    none = ~on_letters.any(axis=1)
    return weights, (logits.argmax(axis=1) == labels, both, none)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=16_000)
    parser.add_argument("--picture", help="file to draw one text's hops into")
    arguments = parser.parse_args()
    generator = np.random.default_rng(3)
    texts, labels = draw(generator, arguments.texts)
    test_texts, test_labels = draw(generator, 1_000)
    ids, test_ids = to_ids(texts), to_ids(test_texts)
    print("| penalty | right | both letters found | none found |")
    print("|---|---|---|---|")
    hops = {}
    for name, penalty in (("from the start", 1.0), ("late", 0.0)):
        model = train(penalty, ids, labels)
        hops[name], shares = measure(model, test_ids, test_labels)
        shares = [f"{100 * np.mean(share):.1f} %" for share in shares]
        print(f"| {name} | {' | '.join(shares)} |", flush=True)
    if arguments.picture:
        row = int(np.argmin([len(words) for words in test_texts]))
        tokens = [*test_texts[row], "[END]"]
        plotting.attention_heat_map(
            tokens,
            ["hop 1", "hop 2"],
            np.stack([each[row, :, : len(tokens)] for each in hops.values()]),
            path=arguments.picture,
            links=[
                (token, hop)
                for token, word in enumerate(tokens)
                for hop in range(2)
                if word in LETTERS
            ],
            names=[f"the penalty {name}" for name in hops],
            axis_names=("text", "hops"),
        )


if __name__ == "__main__":
    main()
