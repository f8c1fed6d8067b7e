"""Four ways to align words, on links that people have made.

    python benchmarks/word_alignment.py GOLD BITEXT --source ja --target en

GOLD names two files, plain or compressed: GOLD.src-tgt has `text |||
translation` in each line, and GOLD.gold its links, as `keras-attention evaluate
--alignments` reads them. BITEXT is a folder of line-aligned files, such as
`train.ja` and `train.en`. IBM Model 1, a hidden Markov model and two
translators learn from its first `--pairs` pairs and from the texts of GOLD. No
one sees the links of GOLD before they are scored. The translators differ in one
choice: the attention of the second one is guided by the hidden Markov model's
links (Chen et al. 2016). `--guides` chooses other translators: "none", "hmm",
or the links of another aligner. This is a file with a line for each of the
pairs, those of GOLD last.

It prints a row for each of them, with its alignment error rate (Och and Ney
2003) in percent, and for the translators the greatest BLEU on validation pairs.

Reference: https://arxiv.org/abs/1607.01628
"""

import argparse
import itertools
import pathlib
import tempfile

import keras_attention as ka
from keras_attention import runs
from keras_attention.data import corpora
from keras_attention.evaluation import gold_alignment
from keras_attention.training import run_directory

# So many validation pairs decide which epoch is kept.
NUM_VALIDATION = 200
ENDINGS = ("", ".gz", ".bz2", ".xz", ".zst")


def read(stem, ending):
    """The lines of the file of GOLD with this ending."""
    paths = [pathlib.Path(f"{stem}.{ending}{more}") for more in ENDINGS]
    for path in paths:
        if path.is_file():
            return path, list(corpora.read_lines(path))
    raise ValueError(f"There is no file {paths[0]}, plain or compressed.")


def read_gold(stem):
    """Pairs of texts and their links. Spaces are single ones."""
    path, rows = read(stem, "src-tgt")
    pairs = [
        tuple(" ".join(gold_alignment.words(text)) for text in row.split("|||"))
        for row in rows
    ]
    if not all(len(pair) == 2 for pair in pairs):
        raise ValueError(f"{path}: write text ||| translation in each line.")
    path, _ = read(stem, "gold")
    return pairs, gold_alignment.read_links(path, pairs)


def write_corpus(folder, languages, splits):
    """Line-aligned files, which `keras-attention train` reads."""
    for split, pairs in splits.items():
        sides = zip(*pairs, strict=True)
        for language, texts in zip(languages, sides, strict=True):
            path = folder / f"{split}.{language}"
            path.write_text("".join(f"{text}\n" for text in texts), "utf-8")


def pairs_of(corpus, split, limit):
    """The first pairs of a split that have two texts."""
    sides = (corpus.texts(split, side) for side in ("source", "target"))
    pairs = (pair for pair in zip(*sides, strict=True) if all(pair))
    return list(itertools.islice(pairs, limit))


def train(folder, arguments, output, **choices):
    """A trained translator, and its best BLEU on the validation pairs."""
    config = ka.config.make(
        corpus=str(folder),
        output=str(folder / output),
        source=arguments.source,
        target=arguments.target,
        model=arguments.model,
        size=arguments.size,
        epochs=arguments.epochs,
        seed=arguments.seed,
        vocabulary_size=arguments.vocabulary_size,
        joint_vocabulary=False,
        max_tokens=1024,
        validation_sentences=NUM_VALIDATION,
        **choices,
    )
    directory = runs.train(config).directory
    history = run_directory.read_history(directory)
    return ka.load(directory.path), max(logs["val_bleu"] for logs in history)


def rows_of(arguments, folder):
    """(what aligns, error rate, BLEU or None) of each row."""
    gold_pairs, gold = read_gold(arguments.gold)
    languages = arguments.source, arguments.target
    corpus = corpora.load(arguments.bitext, *languages)
    bitext = pairs_of(corpus, "train", arguments.pairs)
    validation = pairs_of(corpus, "validation", NUM_VALIDATION)
    splits = {"train": bitext + gold_pairs, "validation": validation}
    write_corpus(folder, languages, splits)
    counts = gold_alignment.of_counts(gold_pairs, gold, bitext)
    rows = [
        ("IBM Model 1", counts["aer_ibm_model_1"], None),
        ("hidden Markov model", counts["aer_hmm"], None),
    ]
    for number, guide in enumerate(arguments.guides):
        name, choices = arguments.model, {}
        if guide != "none":
            name += f", guided by {pathlib.Path(guide).name}"
            choices["guided_alignment"] = guide
            choices["guided_alignment_weight"] = arguments.weight
        output = f"run_{number}"
        translator, bleu = train(folder, arguments, output, **choices)
        found = gold_alignment.attention_links(translator, gold_pairs, True)
        rows.append((name, gold_alignment.error_rate(found, gold), bleu))
    return rows, counts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("gold", help="such as align_gold/jaen")
    parser.add_argument("bitext", help="such as small_parallel_enja")
    parser.add_argument("--source", default="ja")
    parser.add_argument("--target", default="en")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--model", default="rnnsearch")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--vocabulary_size", type=int, default=4000)
    parser.add_argument("--weight", type=float, default=1.0)
    parser.add_argument("--guides", nargs="+", default=["none", "hmm"])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, counts = rows_of(arguments, pathlib.Path(folder))
    print("| | alignment error rate | validation BLEU |")
    print("|---|---|---|")
    for name, rate, bleu in rows:
        print(
            f"| {name} | {rate:.1f} | {'' if bleu is None else f'{bleu:.1f}'} |"
        )
    print(
        f"Seed {arguments.seed}. All learned from {counts['counted_pairs']:,} "
        f"pairs. The set has {counts['sure_links']:,} sure and "
        f"{counts['possible_links']:,} possible links. One true link for each "
        f"target word would have {counts['aer_best']:.1f}."
    )


if __name__ == "__main__":
    main()
