"""How long a sum may be: exact answers by the bits of its numbers.

    python benchmarks/addition.py runs/addition_terms_sum_extended_neural_gpu

reads finished runs on the corpus "addition", one for each seed, and prints a
row for each: of 500 sums of 10, 20 and 40 bits, how many are right in every
bit, by greedy search.
"""

import argparse

import keras_attention as ka
import keras_attention.data.embedded.addition
from keras_attention import config

SPLITS = ("test", "test_20", "test_40")


def exact(translator, pairs):
    """The share of answers without a mistake, in percent."""
    sources, targets = zip(*pairs, strict=True)
    answers = translator(list(sources), num_beams=1)
    right = sum(a == t for a, t in zip(answers, targets, strict=True))
    return 100 * right / len(pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="folders of finished runs")
    splits = ka.data.embedded.addition.generate()
    print("| seed | 10 bits | 20 bits | 40 bits |")
    print("|---|---|---|---|")
    for run in parser.parse_args().runs:
        seed = config.read(f"{run}/config.yaml")["seed"]
        translator = ka.load(run)
        shares = [f"{exact(translator, splits[s]):.1f} %" for s in SPLITS]
        print(f"| {seed} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
