"""Scores of finished runs, mean and standard deviation over their seeds.

    python benchmarks/seeds.py runs/*

Runs that differ in nothing but the seed are one row, named by the choices in
which the rows differ. The scores are those on the held-out pairs that
`keras-attention train` wrote.
"""

import argparse
import json
import pathlib
import statistics
import sys

from keras_attention import config

# Choices that do not change what is trained.
NOT_THE_RECIPE = (
    *("seed", "output", "replicas", "data_note"),
    *("checkpoint_steps", "corpus"),
)
SCORES = {"bleu_lc": "BLEU, lower-cased", "bleu": "BLEU", "chrf": "chrF"}


def read(folder):
    """A run's recipe (the corpus by its name), its seed and its scores."""
    if not (folder / "scores.json").is_file():
        sys.exit(
            "Expected the folders of finished runs, with scores.json. "
            f"Received: {folder}"
        )
    choices = config.read(folder / "config.yaml")
    recipe = {
        name: str(value)
        for name, value in choices.items()
        if name not in NOT_THE_RECIPE
    }
    recipe["corpus"] = pathlib.Path(choices["corpus"]).name
    scores = json.loads((folder / "scores.json").read_text())
    return recipe, choices["seed"], scores


def differing(recipes):
    """Names of the choices in which some of the recipes differ."""
    names = {name for recipe in recipes for name in recipe}
    return [
        name
        for name in sorted(names)
        if len({recipe.get(name) for recipe in recipes}) > 1
    ]


def mean_and_deviation(values):
    """The deviation is that of a sample: n - 1 in the denominator."""
    mean = f"{statistics.mean(values):.2f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values):.2f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    rows, signatures = [], set()  # A row: recipe, scores of each seed.
    for folder in parser.parse_args().runs:
        recipe, seed, scores = read(folder)
        by_seed = next((row[1] for row in rows if row[0] == recipe), None)
        if by_seed is None:
            by_seed = {}
            rows.append((recipe, by_seed))
        if seed in by_seed:
            sys.exit(
                "Expected each seed of a recipe once. Received: seed "
                f"{seed} again in {folder}"
            )
        by_seed[seed] = scores
        signatures |= {
            (SCORES[name], scores[name]["signature"]) for name in SCORES
        }
        signatures.add(
            ("sentences", f"{scores['sentences']} {scores['split']}")
        )
    columns = differing([recipe for recipe, _ in rows]) or ["model"]
    print("|", " | ".join([*columns, "seeds", *SCORES.values()]), "|")
    print("|" + "---|" * (len(columns) + 1 + len(SCORES)))
    for recipe, by_seed in rows:
        cells = [
            *(recipe.get(name, "") for name in columns),
            ", ".join(map(str, sorted(by_seed))),
            *(
                mean_and_deviation([s[name]["score"] for s in by_seed.values()])
                for name in SCORES
            ),
        ]
        print("|", " | ".join(cells), "|")
    for name, signature in sorted(signatures):
        print(f"{name}: {signature}")


if __name__ == "__main__":
    main()
