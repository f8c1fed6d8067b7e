"""How fast each translator trains by the recipe of one table for all of them.

    python benchmarks/ladder.py --corpus FOLDER --steps 50

Each model trains for so many steps by `multi30k_en_de_ladder`, one after the
other. The table has target tokens a second, END included, and the minutes that
the recipe's epochs take at this speed. Validation is left out.

Expected: no model but ByteNet takes more than 45 minutes on two cores.
"""

import argparse
import tempfile
import time

import numpy as np

from keras_attention import config, devices, tasks
from keras_attention.models import catalog
from keras_attention.tokens import PAD
from keras_attention.training import parts, run_directory

# What the table's rows have in place of the recipe's choices.
CHOICES = {
    "transformer": {"learning_rate": 3e-3, "warmup_steps": 1000},
    "roformer": {"learning_rate": 3e-3, "warmup_steps": 1000},
    "luong": {"learning_rate": 4e-3},
    "extended_neural_gpu": {"dropout": 0.1},
}
# Steps that are not counted: TensorFlow traces in the first.
WARM_UP = 5


def num_tokens(batches) -> int:
    """Target tokens of batches."""
    return sum(np.count_nonzero(labels != PAD) for _, labels, _ in batches)


def measure(name, options):
    """Parameters, tokens a second and the tokens of all epochs."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = config.read("multi30k_en_de_ladder") | CHOICES.get(name, {})
        chosen |= {"model": name, "corpus": options.corpus, "output": folder}
        choices = config.resolve(config.make(**chosen))
        task = tasks.get(choices.task)
        directory = run_directory.start(choices)
        run = parts.build(choices, task, directory, task.load(choices.data))
        batches = run.pipeline.training(epoch=0)
        run.trainer.fit(batches.take(WARM_UP), verbose=0, shuffle=False)
        counted = batches.skip(WARM_UP).take(options.steps)
        start = time.perf_counter()
        run.trainer.fit(counted, verbose=0, shuffle=False)
        seconds = time.perf_counter() - start
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
    options = parser.parse_args()
    devices.keep_memory()
    print("| model | parameters | tokens/s | minutes |\n|---|---|---|---|")
    for name, entry in catalog.CATALOG.items():
        if entry.task == "translation":
            size, speed, total = measure(name, options)
            print(
                f"| `{name}` | {size / 1e6:.2f} M | {speed:,.0f} "
                f"| {total / speed / 60:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
