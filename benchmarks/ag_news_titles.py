"""Titles of news: the summariser of Paulus et al. 2017 beside the first words.

    python benchmarks/ag_news_titles.py write FOLDER corpus
    python benchmarks/ag_news_titles.py train corpus runs --arm pointer
    python benchmarks/ag_news_titles.py score corpus runs

FOLDER holds `test.csv` of AG News, plain or as .gz: class, title, text. The
package does not have it. `write` cleans the pairs, leaves capitals out, and
draws a split by a fixed seed: 500 pairs for validation, 500 to test, the others
to train.

`train` trains one of four arms, with or without a pointer, and with or without
a second training by a reward of ROUGE-L. An arm with a reward begins with the
weights of the arm without, which is trained first if it is not there. Without a
pointer, text and title have a vocabulary each. The model is `tiny`.

`score` prints a table of ROUGE on the 500 pairs, of the arms that are in
`runs`. Each is searched with 4 beams, once freely and once so that no three
tokens come twice. The first row is the baseline: the first words of the text,
as many as a title of the training set has on average. Make choices with
`--split validation`. It needs the extra `rouge`.
"""

import argparse
import csv
import gzip
import html
import io
import pathlib
import random
import re
import statistics
import time

import keras_attention as ka
from keras_attention import evaluation
from keras_attention.data import corpora

HELD_OUT = {"validation": 500, "test": 500}
SIDES = ("text", "title")
# What all arms have.
CHOICES = {
    "model": "intra_attention_summarizer",
    "size": "tiny",
    "source": "text",
    "target": "title",
    "vocabulary_size": 4000,
    "max_length": 96,
    "max_tokens": 1024,
    "epochs": 20,
    "validation_sentences": 200,
    "data_note": "AG News, for non-commercial use.",
}
# The second training, of an arm of this name without the reward.
REWARD = {
    "model_arguments": {"reward_weight": 0.9984},
    "learning_rate": 1e-4,
    "epochs": 4,
}
ARMS = {
    "no_pointer": {"joint_vocabulary": False},
    "pointer": {},
    "no_pointer_reward": {"joint_vocabulary": False, **REWARD},
    "pointer_reward": REWARD,
}
NUM_BEAMS = 4
# Where the news was written, and by whom: "LONDON (Reuters) - ".
DATELINE = re.compile(
    r"^(?:[\w.&]+|[A-Z][A-Z.,' -]*(?:, [A-Z][\w.]+)?)?"
    r"(?: ?\([^()]{2,30}\))? --? "
)
AGENCY = re.compile(r" \([^()]*\)$")


def clean(text):
    """A text as people read it: without line breaks, entities and tags."""
    text = text.replace("\\", " ")
    # Most entities have a space in place of their "&".
    text = re.sub(r" ?#(\d+);", r"&#\1;", text)
    text = re.sub(r"[ &]?\b(amp|gt|lt|nbsp|quot);", r"&\1;", text)
    text = html.unescape(text)
    text = re.sub(r"<[^<>]*>", " ", text)
    return " ".join(text.split())


def read(folder):
    """The pairs of text and title. Blank ones are left out, and equal texts.

    Raises:
        ValueError: If the file is not there.
    """
    path = pathlib.Path(folder).expanduser() / "test.csv"
    packed = path.with_name("test.csv.gz")
    if path.is_file():
        content = path.read_bytes()
    elif packed.is_file():
        content = gzip.decompress(packed.read_bytes())
    else:
        raise ValueError(
            f"{folder} has no test.csv of AG News, plain or as .gz."
        )
    pairs = {}
    for _, title, text in csv.reader(io.StringIO(content.decode("utf-8"))):
        # ROUGE sees no capitals, and small data are better without.
        text = DATELINE.sub("", clean(text)).lower()
        title = AGENCY.sub("", clean(title)).lower()
        if text and title:
            pairs.setdefault(text, title)
    return list(pairs.items())


def split(pairs, held_out, seed=1):
    """The pairs of each split, drawn by a seed."""
    pairs = list(pairs)
    random.Random(seed).shuffle(pairs)
    splits = {}
    for name, size in held_out.items():
        splits[name], pairs = pairs[:size], pairs[size:]
    return {**splits, "train": pairs}


def write(folder, corpus):
    """Writes aligned files: train.text, train.title and so on."""
    corpus = pathlib.Path(corpus)
    corpus.mkdir(parents=True, exist_ok=True)
    for name, pairs in split(read(folder), HELD_OUT).items():
        for side, texts in zip(SIDES, zip(*pairs, strict=True), strict=True):
            path = corpus / f"{name}.{side}"
            path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
        print(f"{name}: {len(pairs):,} pairs")


def train(corpus, runs, arm, seed=1, **more):
    """Trains an arm, and before it the one that it begins with.

    Args:
        corpus, runs: folders.
        arm: one of `ARMS`.
        seed: of the training.
        more: choices in place of those above.
    """
    runs = pathlib.Path(runs)
    choices = CHOICES | ARMS[arm] | more
    if arm.endswith("_reward"):
        first = arm.removesuffix("_reward")
        init = runs / f"{first}_{seed}"
        if not (init / "weights.npz").is_file():
            train(corpus, runs, first, seed, **more)
        rewarded = more.get("model_arguments", {}) | REWARD["model_arguments"]
        choices |= {"init": str(init), "model_arguments": rewarded}
    output = runs / f"{arm}_{seed}"
    start = time.monotonic()
    ka.train(
        ka.config.make(
            corpus=str(corpus), output=str(output), seed=seed, **choices
        )
    )
    print(f"{arm}: {(time.monotonic() - start) / 60:.1f} minutes", flush=True)


def lines(corpus, name, side):
    """The texts of a split."""
    return list(corpora.read_lines(pathlib.Path(corpus) / f"{name}.{side}"))


def first_words(texts, count):
    """The baseline: the first words of each text."""
    return [" ".join(text.split()[:count]) for text in texts]


def repeats(text, size=3):
    """Whether a text has the same words in a row twice."""
    words = text.split()
    grams = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
    return len(set(grams)) < len(grams)


def row(name, answers, titles):
    """A row of the table: scores, and how long and repetitive answers are."""
    scores = evaluation.rouge_scores(answers, titles)
    cells = [f"{score['score']:.1f}" for score in scores.values()]
    length = statistics.mean(len(answer.split()) for answer in answers)
    share = statistics.mean(map(repeats, answers))
    cells += [f"{length:.1f}", f"{100 * share:.1f} %"]
    return f"| {name} | {' | '.join(cells)} |"


def score(corpus, runs, name="test"):
    """Prints the table of a split."""
    texts, titles = (lines(corpus, name, side) for side in SIDES)
    lengths = [len(title.split()) for title in lines(corpus, "train", "title")]
    count = round(statistics.mean(lengths))
    print("| | ROUGE-1 | ROUGE-2 | ROUGE-L | words | three words twice |")
    print("|---|---|---|---|---|---|")
    baseline = first_words(texts, count)
    print(row(f"first {count} words", baseline, titles), flush=True)
    for run in sorted(pathlib.Path(runs).glob("*/weights.npz")):
        for size in (0, 3):
            translate = ka.load(
                run.parent, num_beams=NUM_BEAMS, no_repeat_ngram_size=size
            )
            answers = translate(texts, truncate=True)
            arm = run.parent.name + (", no three twice" if size else "")
            print(row(arm, answers, titles), flush=True)
    (signature,) = {
        one["signature"]
        for one in evaluation.rouge_scores(["a"], ["a"]).values()
    }
    print(signature)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    for function, names in (
        (write, ("folder", "corpus")),
        (train, ("corpus", "runs")),
        (score, ("corpus", "runs")),
    ):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        for name in names:
            command.add_argument(name)
    command = commands.choices["train"]
    command.add_argument("--arm", choices=ARMS, required=True)
    command.add_argument("--seed", type=int, default=1)
    command = commands.choices["score"]
    command.add_argument(
        "--split", dest="name", choices=HELD_OUT, default="test"
    )
    options = vars(parser.parse_args())
    options.pop("function")(**options)


if __name__ == "__main__":
    main()
