"""How fast each translator trains by the recipe of one table for all of them.

    python benchmarks/ladder.py --corpus FOLDER --steps 50
    python benchmarks/ladder.py --corpus FOLDER --recipes ptb_lstmn

The model of each row trains for so many steps by `multi30k_en_de_ladder`, one
after the other. The table has target tokens a second, END included, and the
minutes that the recipe's epochs take at this speed. Validation is left out. The
second command has other recipes in place of the rows.

Expected: no row takes more than 45 minutes on two cores, and no recipe of the
Penn Treebank more than 60.
"""

import argparse
import tempfile
import time

import keras
import numpy as np

from keras_attention import config, devices, tasks
from keras_attention.models import catalog
from keras_attention.tokens import PAD
from keras_attention.training import parts, run_directory

# Row -> what it has in place of the recipe's choices.
ROWS = {
    name: {}
    for name, entry in catalog.CATALOG.items()
    if entry.task == "translation"
} | {
    "transformer": {"learning_rate": 3e-3, "warmup_steps": 1000},
    "roformer": {"learning_rate": 3e-3, "warmup_steps": 1000},
    "luong": {"learning_rate": 4e-3},
    "luong, in both directions": {
        "model": "luong",
        "learning_rate": 4e-3,
        "model_arguments": {"bidirectional": True},
    },
    "luong, local-p": {
        "model": "luong",
        "learning_rate": 4e-3,
        "model_arguments": {"attention": "local-p"},
    },
    "luong, local-m": {
        "model": "luong",
        "learning_rate": 4e-3,
        "model_arguments": {"attention": "local-m"},
    },
    "bytenet, convolution": {
        "model": "bytenet",
        "model_arguments": {"joined_by": "convolution"},
    },
    # With two layers, none is residual. Three are half as fast as local-m.
    "gnmt": {"model_arguments": {"num_layers": 2}},
    # As many multiplications as in `transformer`, but for the gates.
    "transformer, experts": {
        "model": "transformer",
        "learning_rate": 3e-3,
        "warmup_steps": 1000,
        "model_arguments": {
            "feed_forward": {
                "class_name": "keras_attention>MixtureOfExperts",
                "config": {"num_experts": 8, "intermediate_dim": 128},
            }
        },
    },
    "extended_neural_gpu": {
        "size": "mini",
        "model_arguments": {"filters": 96},
        "dropout": 0.1,
    },
}
# Steps that are not counted: TensorFlow traces in the first.
WARM_UP = 5


class Clock(keras.callbacks.Callback):
    """Keeps the time at which each step ended."""

    def __init__(self):
        super().__init__()
        self.ends = []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())


def num_tokens(batches) -> int:
    """Target tokens of batches."""
    return sum(np.count_nonzero(labels != PAD) for _, labels, _ in batches)


def measure(chosen, options):
    """Parameters, tokens a second and the tokens of all epochs."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = chosen | {"corpus": options.corpus, "output": folder}
        choices = config.resolve(config.make(**chosen))
        task = tasks.get(choices.task)
        directory = run_directory.start(choices)
        run = parts.build(choices, task, directory, task.load(choices.data))
        batches = run.pipeline.training(epoch=0)
        clock = Clock()
        run.trainer.fit(
            batches.take(WARM_UP + options.steps),
            verbose=0,
            shuffle=False,
            callbacks=[clock],
        )
        counted = batches.skip(WARM_UP).take(options.steps)
        seconds = clock.ends[-1] - clock.ends[WARM_UP - 1]
        speed = num_tokens(counted.as_numpy_iterator()) / seconds
        total = num_tokens(batches.as_numpy_iterator())
        return (
            run.model.count_params(),
            speed,
            choices.training.epochs * total,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--steps", type=int, default=50)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    which.add_argument("--recipes", nargs="+")
    options = parser.parse_args()
    if options.recipes:
        rows = {recipe: config.read(recipe) for recipe in options.recipes}
    else:
        ladder = config.read("multi30k_en_de_ladder")
        rows = {
            row: ladder | {"model": row} | ROWS[row] for row in options.rows
        }
    devices.keep_memory()
    print("| row | parameters | tokens/s | minutes |\n|---|---|---|---|")
    for row, chosen in rows.items():
        size, speed, total = measure(chosen, options)
        print(
            f"| {row} | {size / 1e6:.2f} M | {speed:,.0f} "
            f"| {total / speed / 60:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
