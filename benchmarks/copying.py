"""How long a text may be: exact copies by its letters.

    python benchmarks/copying.py runs/copying_text_copy_neural_turing_machine

reads finished runs on the corpus "copying", one for each seed, and prints a
row for each: of 500 texts of 10, 20 and 40 letters, how many are copied without
a mistake, by greedy search.
"""

import argparse

import keras_attention as ka
import keras_attention.data.embedded.copying
from keras_attention import config

SPLITS = ("test_10", "test", "test_40")


def exact(translator, pairs):
    """The share of answers without a mistake, in percent."""
    sources, targets = zip(*pairs, strict=True)
    answers = translator(list(sources), num_beams=1)
    right = sum(a == t for a, t in zip(answers, targets, strict=True))
    return 100 * right / len(pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="folders of finished runs")
    splits = ka.data.embedded.copying.generate()
    print("| seed | 10 letters | 20 letters | 40 letters |")
    print("|---|---|---|---|")
    for run in parser.parse_args().runs:
        seed = config.read(f"{run}/config.yaml")["seed"]
        translator = ka.load(run)
        shares = [f"{exact(translator, splits[s]):.1f} %" for s in SPLITS]
        print(f"| {seed} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
