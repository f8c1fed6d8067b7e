"""How time and memory grow: with batch, length, vocabulary and corpus.

    python benchmarks/costs.py train|greedy|beam|corpus [--pairs N N ...]

`train`, `greedy` and `beam` measure the Transformer of size S (README.md) on
random ids; `corpus` the input pipeline, from files of generated pairs to
batches, for corpora of `--pairs`. Each point is a process of its own: memory
is its highest, less that of the same process before the model. The last line
is one JSON object.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import bench
import keras
import numpy as np
import tensorflow as tf

from keras_attention import config, data, devices, models, tasks
from keras_attention.serving import translator
from keras_attention.training import run_directory
from keras_attention.training.trainer import Trainer

LENGTHS = (16, 64, 256, 1024)
VOCABULARIES = (8_000, 32_000, 128_000)
# What varies: (rows, tokens of a row, vocabulary). Vocabularies are compared
# on fewer tokens: the logits of 4,096 by 128,000 would take 2 GB.
POINTS = {
    "train": [
        *((rows, 32, 8_000) for rows in (8, 32, 128, 512)),
        *((4096 // length, length, 8_000) for length in LENGTHS),
        *((32, 32, size) for size in VOCABULARIES),
    ],
    "greedy": [
        *((rows, 32, 8_000) for rows in (1, 8, 32, 128)),
        *((8, length, 8_000) for length in LENGTHS),
        *((32, 32, size) for size in VOCABULARIES),
    ],
}
POINTS["beam"] = POINTS["greedy"]
PAIRS = (10_000, 100_000, 1_000_000)


def random_ids(rows, length, vocabulary):
    shape = (rows, length)
    return np.random.default_rng(1).integers(4, vocabulary, shape, "int32")


def median_seconds(function, least=3, seconds=5.0):
    """The median of at least `least` calls after the first."""
    function()
    times, start = [], time.perf_counter()
    while len(times) < least or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        function()
        times.append(time.perf_counter() - before)
    return float(np.median(times))


def train(rows, length, vocabulary):
    """One training step on a batch of `rows` pairs, in a bare loop."""
    fitted = Trainer(models.Transformer.from_size("tiny", vocabulary))
    fitted.model.build()
    fitted.compile(keras.optimizers.Adam(1e-4))
    ids = random_ids(rows, length, vocabulary)
    weights = np.full(ids.shape, 1 / ids.size, "float32")
    data = ({"source_ids": ids, "target_ids": ids}, ids, weights)
    return median_seconds(lambda: fitted.train_on_batch(*data))


def search(rows, length, vocabulary, num_beams):
    """A function that searches for answers as long as their sources."""
    model = models.Transformer.from_size("tiny", vocabulary)
    model.build()
    live = translator.Translator(
        model,
        data.Tokenizer(data.train_vocabulary(["a b c d e f g"], 300)),
        num_beams=num_beams,
        max_target_factor=1.0,
        max_target_offset=0,
    )
    ids = tf.constant(random_ids(rows, length, vocabulary))
    # Nobody asks for the score of the one text.
    function = tf.function(
        lambda ids: live.graph.search(ids, num_beams, is_scored=False).ids,
        autograph=False,
    )
    return lambda: function(ids).numpy()


def feed(folder, pairs):
    """An epoch's batches, read from files: seconds of each part."""
    generator = np.random.default_rng(1)
    words = [f"{a}{b}" for a, b in itertools.product("bdfgklmnprst", "aeiou")]
    for split, count in (("train", pairs), ("validation", 100)):
        lengths = generator.integers(4, 20, count)
        with (
            open(folder / f"{split}.en", "w") as source,
            open(folder / f"{split}.de", "w") as target,
        ):
            for length in lengths:
                line = generator.integers(0, len(words), length)
                print(*(words[index] for index in line), file=source)
                print(*(words[index] for index in line[::-1]), file=target)
    before = bench.peak_memory_mb()
    start = time.perf_counter()
    task = tasks.get("translation")
    choices = config.resolve(config.make(corpus=folder, vocabulary_size=1000))
    corpus = task.load(choices.data)
    directory = run_directory.at(folder)
    tokenizers = task.tokenizers(choices.vocabulary, directory, corpus)
    vocabulary = time.perf_counter()
    batches = task.pipeline(choices, corpus, tokenizers, replicas=1)
    examples = batches.training(epoch=0)
    prepared = time.perf_counter()
    for _ in examples:
        pass
    return {
        "pairs": pairs,
        "vocabulary_seconds": vocabulary - start,
        "prepare_seconds": prepared - vocabulary,
        "epoch_pairs_per_second": pairs / (time.perf_counter() - prepared),
        "memory_mb": bench.peak_memory_mb() - before,
    }


def measure(what, point):
    """One point, in this process."""
    if what == "corpus":
        with tempfile.TemporaryDirectory() as folder:
            return feed(pathlib.Path(folder), *point)
    rows, length, vocabulary = point
    # As the command line does.
    if what == "train":
        devices.keep_memory()
    if what != "train" or rows * length <= devices.SMALL_BATCH:
        devices.share_cores()
    tf.zeros([1])
    before = bench.peak_memory_mb()
    if what == "train":
        seconds = train(*point)
    else:
        num_beams = 1 if what == "greedy" else 4
        seconds = median_seconds(search(*point, num_beams))
    return {
        "rows": rows,
        "length": length,
        "vocabulary": vocabulary,
        "ms": 1000 * seconds,
        "us_per_token": 1e6 * seconds / (rows * length),
        "memory_mb": bench.peak_memory_mb() - before,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=[*POINTS, "corpus"])
    parser.add_argument("--pairs", type=int, nargs="+", default=PAIRS)
    parser.add_argument("--point", type=int, nargs="+", help="one point only")
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(options.what, options.point)))
        return
    points = POINTS.get(options.what, [(pairs,) for pairs in options.pairs])
    results = []
    for point in dict.fromkeys(points):
        command = [sys.executable, __file__, options.what, "--point"]
        output = subprocess.run(
            [*command, *map(str, point)], check=True, stdout=subprocess.PIPE
        ).stdout
        results.append(json.loads(output.splitlines()[-1]))
        if len(results) == 1:
            print("|", " | ".join(results[0]), "|")
            print("|" + "---|" * len(results[0]))
        print("|", *(f"{v:,.1f} |" for v in results[-1].values()), flush=True)
    print(json.dumps({"costs": options.what, "points": results}))


if __name__ == "__main__":
    main()
