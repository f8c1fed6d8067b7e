"""Kanji written stroke by stroke, by a window over the kinds of the strokes.

    python benchmarks/strokes.py FOLDER RUN [--seed 2]

FOLDER has `kanji.rdp200.npz` of https://github.com/hardmaru/sketch-rnn-datasets
(KanjiVG, CC BY-SA 3.0). Three networks learn to write its drawings, as Graves
2013 does handwriting. What they are told differs:

- "nothing".
- "all": the sum of the kinds of the drawing's strokes, at each point.
- "window": the kinds in their order, by `layers.GaussianWindow`.

The text of a drawing is the kinds of its strokes, such as "→ ↓ →↓ →": 20
letters that all drawings share. The characters themselves would be no text to
learn from: each is drawn once, and those held out are not in training at all.

Each epoch ends with a file in RUN, so a stopped program goes on where it was.
At the end it prints a table, and draws two pictures into RUN: `written.png` has
test drawings and what the networks write for the same kinds. `window.png` has
one that was written with a window, and where the window was at each point.

Expected: with the window the likelihood is highest, most strokes have the kind
that is asked for, and the window is at the stroke that is written.
"""

import argparse
import functools
import json
import pathlib
import time

import keras
import numpy as np
import strokes_data
import strokes_network
import strokes_pictures
import tensorflow as tf

from keras_attention import files
from keras_attention.training import checkpoints

LEARNING_RATE = 2e-3
CLIP_NORM = 1.0
# What the pictures are drawn with (section 5.4); the table has 0.
BIAS = 1.0
# A batch. With unknown lengths, TensorFlow traces one graph for all.
SIGNATURE = (
    {
        "points": tf.TensorSpec([None, None, 3], tf.float32),
        "kinds": tf.TensorSpec([None, None], tf.int32),
    },
    tf.TensorSpec([None, None, 3], tf.float32),
    tf.TensorSpec([None, None], tf.float32),
)


def compiled(reads, num_kinds, num_steps, options):
    """A network with its optimizer, both with their first values."""
    keras.utils.set_random_seed(options.seed)
    network = strokes_network.StrokeWriter(num_kinds, reads, options.units)
    network.build()
    rate = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, num_steps)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=CLIP_NORM)
    optimizer.build(network.trainable_variables)
    network.compile(
        optimizer=optimizer,
        loss=strokes_network.NegativeLogLikelihood(),
        jit_compile=False,
    )
    return network


def evaluate(network, batches):
    """Nats a point, and the share of points with the window at their stroke.

    The second is None without a window.
    """
    lost = right = count = 0.0
    for inputs, labels, weights in batches:
        states = network.states(inputs)
        outputs = network.read_out(states)
        logs = strokes_network.log_density(labels, outputs)
        lost -= np.sum(weights * np.array(logs))
        # The stroke of a point: so many have ended before it.
        stroke = np.cumsum(labels[..., 2], axis=1) - labels[..., 2]
        looked = np.argmax(states["weights"], axis=-1)
        right += np.sum(weights * (looked == stroke))
        count += np.sum(weights)
    place = float(right / count) if network.reads == "window" else None
    return float(lost / count), place


def train(network, data, options, path):
    """Trains to the end, or goes on from the file at `path`.

    Args:
        network: What `compiled` gave.
        data: The `Data`.
        options: Those of the command line.
        path: Where each epoch's end is kept.

    Raises:
        ValueError: If the file is of other options or other data.
    """
    names = "seed", "epochs", "units", "batch_size", "drawings", "fewest"
    choices = {name: getattr(options, name) for name in names}
    choices["checksum"] = data.checksum
    parts = {"model": network.weights, "optimizer": network.optimizer.variables}
    first = 0
    if path.exists():
        arrays, meta = checkpoints.load(path)
        if meta["choices"] != choices:
            raise ValueError(
                f"{path} was trained with {meta['choices']}, not with "
                f"{choices}. Choose another folder."
            )
        for name, variables in parts.items():
            checkpoints.arrays_to_variables(arrays, name, variables)
        first = meta["epochs"]
    for epoch in range(first, options.epochs):
        begin = time.time()
        # A seed, as Keras may begin the batches more than once.
        batches = tf.data.Dataset.from_generator(
            functools.partial(data.batches, "train", [options.seed, epoch]),
            output_signature=SIGNATURE,
        ).apply(tf.data.experimental.assert_cardinality(data.num_steps()))
        history = network.fit(batches, verbose=0, shuffle=False).history
        (loss,) = history["loss"]
        arrays = {}
        for name, variables in parts.items():
            arrays |= checkpoints.variables_to_arrays(name, variables)
        meta = {"choices": choices, "epochs": epoch + 1}
        checkpoints.save(path, arrays, meta)
        valid, _ = evaluate(network, data.batches("valid"))
        print(
            f"{network.reads}, epoch {epoch + 1}: {loss:.3f} nats a point, "
            f"validation {valid:.3f}, {time.time() - begin:.0f} s",
            flush=True,
        )


class Data:
    """The drawings, their inventory of kinds and their scale."""

    def __init__(self, options):
        self.splits, self.checksum = strokes_data.read(options.folder)
        self.splits["train"] = self.splits["train"][: options.drawings]
        train = self.splits["train"]
        self.names = strokes_data.inventory(train, options.fewest)
        self.unit = strokes_data.scale(train)
        self.size = options.batch_size

    def batches(self, split, seed=None):
        return strokes_data.batches(
            self.splits[split], self.names, self.unit, self.size, seed
        )

    def num_steps(self):
        return -(-len(self.splits["train"]) // self.size)

    def kinds(self, drawings):
        """Their kinds, as `strokes_network.write` takes them: int [B, S]."""
        return strokes_data.batch(drawings, self.names, self.unit)[0]["kinds"]

    def nats_of_kinds(self):
        """What the kinds of the test drawings cost, by frequency, a point."""
        ids = [
            strokes_data.encode(self.names, strokes_data.kinds(drawing))
            for drawing in self.splits["train"]
        ]
        counts = np.bincount(np.concatenate(ids), minlength=len(self.names))
        logs = np.log((counts + 1) / np.sum(counts + 1))
        tests = self.splits["test"]
        num_points = sum(len(drawing) - 1 for drawing in tests)
        asked = self.kinds(tests)
        return float(-np.sum(logs[asked[asked >= 0]]) / num_points)


def asked_and_written(network, data, seed):
    """The share of the strokes asked for that are written, kind by kind.

    Also the share of the drawings with as many strokes as asked for, which
    only a network with a window knows.
    """
    tests = data.splits["test"]
    asked = data.kinds(tests)
    written = strokes_network.write(network, asked, np.random.default_rng(seed))
    right = count = as_many = 0
    for ids, one in zip(asked, written, strict=True):
        ids = ids[ids >= 0]
        own = strokes_data.kinds(strokes_pictures.as_drawing(one))
        as_many += len(own) == len(ids)
        own = strokes_data.encode(data.names, own)
        right += sum(a == b for a, b in zip(ids, own, strict=False))
        count += len(ids)
    as_many = as_many / len(tests) if network.reads == "window" else None
    return float(right / count), as_many


def measure(network, data, options):
    valid, _ = evaluate(network, data.batches("valid"))
    test, place = evaluate(network, data.batches("test"))
    asked, as_many = asked_and_written(network, data, options.seed)
    return {
        "parameters": network.count_params(),
        "valid": valid,
        "test": test,
        "as asked": asked,
        "as many": as_many,
        "at its stroke": place,
    }


def print_table(scores):
    """As Markdown."""

    def percent(share):
        return "" if share is None else f"{100 * share:.1f} %"

    print(
        "| reads | parameters | validation | test | strokes as asked for "
        "| drawings with as many strokes | window at its stroke |"
    )
    print("|---" * 7 + "|")
    for reads, row in scores.items():
        shares = (row["as asked"], row["as many"], row["at its stroke"])
        cells = (
            reads,
            f"{row['parameters']:,}",
            f"{row['valid']:.3f}",
            f"{row['test']:.3f}",
            *map(percent, shares),
        )
        print(f"| {' | '.join(cells)} |")


def draw(networks, data, options):
    """Both pictures, of test drawings that are neither short nor long."""
    counts = [len(strokes_data.strokes(one)) for one in data.splits["test"]]
    middle = np.median(counts)
    chosen = [
        one
        for one, count in zip(data.splits["test"], counts, strict=True)
        if abs(count - middle) <= 4
    ][: options.columns]
    asked = data.kinds(chosen)
    rows = {"data": chosen}
    for reads, network in networks.items():
        rng = np.random.default_rng(options.seed)
        written = strokes_network.write(network, asked, rng, BIAS)
        rows[reads] = [strokes_pictures.as_drawing(one) for one in written]
        if reads == "window":
            names = [data.names[i] for i in asked[0] if i >= 0]
            path = options.run / "window.png"
            strokes_pictures.draw_window(names, written[0], path)
    strokes_pictures.draw_written(rows, options.run / "written.png")


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", help="where kanji.rdp200.npz is")
    parser.add_argument("run", type=pathlib.Path, help="where files go")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--drawings", type=int, help="as many train; or all")
    parser.add_argument(
        "--fewest", type=int, default=100, help="strokes that make a kind"
    )
    parser.add_argument("--columns", type=int, default=8, help="of a picture")
    return parser.parse_args()


def main():
    options = parse()
    data = Data(options)
    print(
        f"{strokes_data.FILE} {data.checksum[:8]}: "
        f"{' '.join(data.names)}; offsets in units of {data.unit:.2f}; the "
        f"kinds cost {data.nats_of_kinds():.3f} nats a point",
        flush=True,
    )
    networks, scores = {}, {}
    num_steps = options.epochs * data.num_steps()
    with files.lock(options.run):
        for reads in strokes_network.READS:
            network = compiled(reads, len(data.names), num_steps, options)
            train(network, data, options, options.run / f"{reads}.npz")
            networks[reads] = network
            scores[reads] = measure(network, data, options)
        text = json.dumps(scores, indent=1) + "\n"
        files.write_atomically(options.run / "scores.json", text.encode())
        print_table(scores)
        draw(networks, data, options)


if __name__ == "__main__":
    main()
