"""The tables and the picture of translators trained by one recipe.

    python benchmarks/ladder_scores.py runs/ladder_* --source test.en \\
        --reference test.de --picture ladder.png

translates the test set with each run, by the run's own search. The first table
has all scores, best lower-cased BLEU first. The second has cased BLEU by the
tokens of the source, END included, where ten sources or more are as long. A run
goes by the name of its folder. "±" is half of a 95 % interval, by 1,000 samples
of the bootstrap.
"""

import argparse
import pathlib

import keras_attention as ka
from keras_attention import evaluation, plotting, tasks

# Sources of more tokens than this are long.
LONG = 20
# Bounds of the second table.
EDGES = (5, 10, 15, 20, 30, 40)
FEWEST = 10


def measure(run, test_set, lengths):
    """Scores of one run: of all sources, of long ones, and by length."""
    translator = ka.load(run)
    answers = translator(test_set.sources)
    language = test_set.target_language
    pairs = list(zip(lengths, answers, test_set.references, strict=True))

    def by_length(chosen, edges):
        return evaluation.bleu_by_length(
            *zip(*chosen, strict=True),
            edges=edges,
            num_samples=1000,
            target_language=language,
        )

    (long,) = by_length([pair for pair in pairs if pair[0] > LONG], (LONG,))
    return {
        **evaluation.corpus_scores(answers, test_set.references, language),
        "parameters": translator.model.count_params(),
        "long": long,
        "by_length": [
            row for row in by_length(pairs, EDGES) if row["sentences"] >= FEWEST
        ],
    }


def print_table(head, rows):
    """As Markdown."""
    for cells in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(cells)} |")
    print()


def with_interval(row):
    return f"{row['bleu']:.1f} ± {row['interval']:.1f}"


def print_scores(measured):
    names = ("bleu_lc", "bleu", "chrf")
    count = next(iter(measured.values()))["long"]["sentences"]
    head = ["NAME", "parameters", "BLEU, lower-cased", "BLEU", "chrF"]
    rows = [
        [
            f"`{run}`",
            f"{scores['parameters'] / 1e6:.2f} M",
            *(f"{scores[name]['score']:.2f}" for name in names),
            with_interval(scores["long"]),
        ]
        for run, scores in measured.items()
    ]
    print_table([*head, f"BLEU of {count} over {LONG} tokens"], rows)


def print_by_length(measured):
    bins = next(iter(measured.values()))["by_length"]
    head = [f"{row['low']}–{row['high'] or ''}" for row in bins]
    rows = [["sources", *(str(row["sentences"]) for row in bins)]]
    for run, scores in measured.items():
        rows.append([f"`{run}`", *map(with_interval, scores["by_length"])])
    print_table(["tokens of the source", *head], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="folders of finished runs")
    parser.add_argument("--source", required=True, help="file of the test set")
    parser.add_argument("--reference", required=True, help="its translations")
    parser.add_argument("--picture", help="file to draw BLEU by length into")
    arguments = parser.parse_args()
    runs = {pathlib.Path(run).name: run for run in arguments.runs}
    if len(runs) < len(arguments.runs):
        parser.error(f"Expected different names. Received: {arguments.runs}")
    test_set = tasks.get("translation").read_test_set(
        pathlib.Path(arguments.source), pathlib.Path(arguments.reference)
    )
    # Runs of one recipe have one vocabulary.
    lengths = ka.load(arguments.runs[0]).num_tokens(test_set.sources)
    measured = {
        name: measure(run, test_set, lengths) for name, run in runs.items()
    }
    measured = dict(
        sorted(measured.items(), key=lambda item: -item[1]["bleu_lc"]["score"])
    )
    print_scores(measured)
    print_by_length(measured)
    if arguments.picture:
        plotting.scores_by_length(
            {name: scores["by_length"] for name, scores in measured.items()},
            path=arguments.picture,
        )


if __name__ == "__main__":
    main()
