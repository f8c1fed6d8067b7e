"""One table: how a run's translations keep a URL, by what stands in for it.

    python benchmarks/placeholders_table.py RUN --source val.en

One word of each text, drawn from those of five or more small letters, is made
a URL. A row is one form of the stand-in, and counts the texts by the first way
that keeps the URL (`serving.placeholders`): the model copies it, a beam search
is forced to write it, or the parts around it are translated. The last column
counts those of the third way where the search wrote digits behind the stand-in.
"""

import argparse
import pathlib
import random
import re
from collections.abc import Sequence

from keras_attention import runs
from keras_attention.data import corpora
from keras_attention.serving import placeholders

STAND_INS = ("{}", "X{}", '"{}"')
COLUMNS = ("stand-in", "copied", "forced", "in pieces", "more digits")


def with_urls(texts: Sequence[str], rng: random.Random) -> list[str]:
    """The texts that have such a word, with a URL in its place."""
    found = []
    for text in texts:
        words = text.split()
        small = [word.isalpha() and word.islower() for word in words]
        long = [len(word) >= 5 for word in words]
        places = [n for n in range(len(words)) if small[n] and long[n]]
        if places:
            place = rng.choice(places)
            words[place] = f"https://x.org/p?id={rng.randrange(999)}"
            found.append(" ".join(words))
    return found


def measure(translate, texts: Sequence[str], stand_in: str) -> list[int]:
    """How many texts each way has kept, and how many got more digits."""
    rows = [placeholders.mask(text, ["url"], stand_in) for text in texts]
    answers = translate([row.text for row in rows])
    pairs = zip(rows, answers, strict=True)
    rows = [row for row, answer in pairs if row.restored(answer) is None]
    forced = translate.constrained(
        [row.text for row in rows], terms=[[*row.kept] for row in rows]
    )
    failed = [
        [*row.kept, answer]
        for row, (answer, _) in zip(rows, forced, strict=True)
        if row.restored(answer) is None
    ]
    longer = [re.search(re.escape(name) + r"\d", text) for name, text in failed]
    copied, num_failed = len(texts) - len(rows), len(failed)
    return [copied, len(rows) - num_failed, num_failed, sum(map(bool, longer))]


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table in Markdown, a row after each form."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", help="the folder of a run of a translator")
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    lines = list(corpora.read_lines(options.source))
    texts = with_urls(lines, random.Random(options.seed))[: options.rows]
    translate = runs.load(options.run, constraints=True, num_beams=4)
    print(f"{len(texts)} texts\n| {' | '.join(COLUMNS)} |")
    print("|---|" + "---:|" * (len(COLUMNS) - 1))
    for stand_in in STAND_INS:
        row = [f"`{stand_in}`", *measure(translate, texts, stand_in)]
        print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
