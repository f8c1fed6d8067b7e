"""Writes what every system is measured on: batches, weights, sources.

    python benchmarks/workload.py FOLDER --size S --corpus CORPUS

`CORPUS` is a folder of line-aligned files (the figures in README.md are of
Multi30k, English to German) or `phrases`.

FOLDER then holds

- `batches.npz`: the first 200 batches that `bench.py train` sees, of at most
  4,096 target tokens: `source_0` [B, S], `target_0` [B, T],
  ... from START to END;
- `weights.npz`, `sizes.json`: the Transformer with random weights that
  `bench.py decode` exports, its table of positions among them;
- `sources.json`: the validation sources as ids, END included, by length;
- `answers.json`: what greedy search and a beam of 4 make of the first 64.
"""

import argparse
import json
import pathlib

import bench
import numpy as np
import tensorflow as tf

from keras_attention import layers
from keras_attention.tokens import END, PAD


def write_batches(options, folder):
    workload = bench.build(options, folder / "run")
    arrays = {}
    batches = workload.pipeline.training(epoch=0).take(200)
    for index, (inputs, labels, _) in enumerate(batches):
        start = inputs["target_ids"][:, :1]
        arrays[f"source_{index}"] = inputs["source_ids"].numpy()
        arrays[f"target_{index}"] = tf.concat([start, labels], 1).numpy()
    np.savez_compressed(folder / "batches.npz", **arrays)


def write_model(options, folder):
    translator, texts = bench.random_translator(options, folder / "decoder")
    model = translator.model
    weights = {
        variable.path.partition("/")[2]: variable.numpy()
        for variable in model.trainable_variables
    }
    weights["positions"] = layers.sinusoidal_positions(
        np.arange(512), model.config["hidden_dim"]
    )
    np.savez(folder / "weights.npz", **weights)
    (folder / "sizes.json").write_text(json.dumps(model.config))
    ids = translator.graph.source_tokenizer.tokenize(
        tf.constant(texts)
    ).to_list()
    ids = sorted([[*row, END] for row in ids], key=len)
    (folder / "sources.json").write_text(json.dumps(ids))
    source_ids = tf.ragged.constant(ids[:64], dtype=tf.int32).to_tensor(PAD)
    answers = {}
    for num_beams in (1, 4):
        result = translator.graph.search(source_ids, num_beams)
        answers[num_beams] = result.ids[:, 0].numpy().tolist()
    (folder / "answers.json").write_text(json.dumps(answers))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", default="S", choices=["S", "B", "R"])
    parser.add_argument("--corpus", default="phrases")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    options = parser.parse_args()
    choices = bench.Options(
        size=options.size,
        corpus=options.corpus,
        source=options.source,
        target=options.target,
        num_beams=4,
    )
    options.folder.mkdir(parents=True)
    write_batches(choices, options.folder)
    if options.size != "R":
        write_model(choices, options.folder)


if __name__ == "__main__":
    main()
