"""What more signatures cost an export: operations, bytes, time to load.

    python benchmarks/export_sizes.py

The model is a Transformer of the size `mini` with random weights: neither they
nor the vocabulary change how many operations there are. The time is that of the
processor, the median of three.
"""

import pathlib
import random
import statistics
import tempfile
import time

import keras
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import keras_attention as ka

WORDS = "zero one two three four five six seven eight nine".split()
MORE = ["", "per_request", "constraints", "minimum_risk"]


def num_operations(path: pathlib.Path) -> int:
    """The nodes of a SavedModel's graph and of all its functions."""
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    graph = saved.meta_graphs[0].graph_def
    functions = graph.library.function
    return len(graph.node) + sum(len(one.node_def) for one in functions)


def translator(more: str) -> ka.Translator:
    """A translator with the signatures that a choice adds, "" for none."""
    keras.utils.set_random_seed(1)
    random.seed(1)
    lines = [" ".join(random.choices(WORDS, k=5)) for _ in range(1000)]
    vocabulary = ka.data.train_vocabulary(lines, 300)
    tokenizer = ka.data.Tokenizer(vocabulary)
    size = tokenizer.vocabulary_size
    sizes = ka.models.Transformer.sizes["mini"]
    model = ka.models.Transformer(size, size, **sizes)
    model.build()
    return ka.Translator(model, tokenizer, **({more: True} if more else {}))


def main() -> None:
    """Prints a row for each choice."""
    print("| signatures | operations | MB | seconds to load |")
    print("|---|---:|---:|---:|")
    for more in MORE:
        with tempfile.TemporaryDirectory() as folder:
            version = translator(more).export(pathlib.Path(folder) / "model")
            path, seconds = version / "saved_model.pb", []
            for _ in range(3):
                begun = time.process_time()
                tf.saved_model.load(str(version))
                seconds.append(time.process_time() - begun)
            print(
                f"| {more or 'the usual ones'} | {num_operations(path):,} | "
                f"{path.stat().st_size / 1e6:.1f} | "
                f"{statistics.median(seconds):.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
