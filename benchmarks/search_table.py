"""One table: what each choice of a search does to a run's translations.

    python benchmarks/search_table.py RUN --source val.en --reference val.de

A row is one search: BLEU, chrF, the share of repeated words and the seconds of
the processor for all texts, which other programs change little. A word is
repeated if it ends three words that stood in the same translation before. The
searches are the same at each call; `--only NAMES` takes some of them. Choose by
validation files, never by the test set.
"""

import argparse
import dataclasses
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence

from keras_attention import evaluation, runs
from keras_attention.data import corpora
from keras_attention.tasks import translation

SIZE = 3  # Words of an n-gram that is counted as repeated.
SAMPLES = {"temperature": 1.0, "num_beams": 16}


@dataclasses.dataclass(frozen=True)
class Way:
    """How texts are translated.

    Attributes:
        choices: of the search, see `config.Search`.
        ask: `ask(translator, texts)` -> translations.
    """

    choices: Mapping
    ask: Callable = lambda translate, texts: translate(texts, truncate=True)


def by_minimum_risk(translate, texts) -> list[str]:
    """The translations that are most like the others, cut texts included."""
    return translation.by_minimum_risk(translate, texts, truncate=True)


WAYS = {
    "greedy": Way({"num_beams": 1}),
    "beam 4": Way({"num_beams": 4}),
    "beam 4, no length penalty": Way({"num_beams": 4, "length_penalty": 0}),
    "beam 4, coverage penalty 0.2": Way(
        {"num_beams": 4, "coverage_penalty": 0.2}
    ),
    "beam 4, no 3 tokens twice": Way(
        {"num_beams": 4, "no_repeat_ngram_size": 3}
    ),
    "beam 4, at least 10 tokens": Way({"num_beams": 4, "min_length": 10}),
    "beam 4 in 2 groups": Way({"num_beams": 4, "num_groups": 2}),
    "sampling": Way(SAMPLES | {"num_beams": 1}),
    "sampling, top-k 10": Way(SAMPLES | {"num_beams": 1, "top_k": 10}),
    "sampling, top-p 0.9": Way(SAMPLES | {"num_beams": 1, "top_p": 0.9}),
    "sampling, min-p 0.1": Way(SAMPLES | {"num_beams": 1, "min_p": 0.1}),
    "minimum risk of 16 beams": Way({"num_beams": 16}, by_minimum_risk),
    "minimum risk of 16 samples": Way(SAMPLES, by_minimum_risk),
    "minimum risk of 16 samples, min-p 0.1": Way(
        SAMPLES | {"min_p": 0.1}, by_minimum_risk
    ),
}


def repetition(texts: Sequence[str], size: int = SIZE) -> float:
    """The share of words, in percent, that end n words that stood before.

    Args:
        texts: translations; words have spaces between them.
        size: n.
    """
    num_words = num_repeated = 0
    for text in texts:
        words = text.split()
        starts = range(len(words) - size + 1)
        grams = [tuple(words[start : start + size]) for start in starts]
        num_words += len(words)
        num_repeated += len(grams) - len({*grams})
    return 100 * num_repeated / max(num_words, 1)


def measure(run: str, way: Way, sources, references, language) -> dict:
    """The figures of one way, by the names of the table's columns."""
    translate = runs.load(run, **way.choices)
    # TensorFlow compiles in the first call.
    way.ask(translate, sources[:2])
    begun = time.process_time()
    found = way.ask(translate, sources)
    seconds = time.process_time() - begun
    scores = evaluation.corpus_scores(found, references, language)
    return {
        "BLEU": scores["bleu"]["score"],
        "chrF": scores["chrf"]["score"],
        "repeated words (%)": repetition(found),
        "CPU seconds": seconds,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table in Markdown, a row after each search."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", help="the folder of a run of a translator")
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--reference", required=True, type=pathlib.Path)
    parser.add_argument("--language", help="of the references, such as zh")
    parser.add_argument("--rows", type=int, help="only the first N texts")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=[*WAYS])
    options = parser.parse_args(argv)
    sources, references = (
        list(corpora.read_lines(path))[: options.rows]
        for path in (options.source, options.reference)
    )
    if len(sources) != len(references):
        parser.error(f"{len(sources)} texts, {len(references)} references")
    print(f"{len(sources)} texts")
    is_first = True
    for name in options.only:
        row = measure(
            options.run, WAYS[name], sources, references, options.language
        )
        if is_first:
            print(f"| search | {' | '.join(row)} |")
            print("|---|" + "---:|" * len(row))
            is_first = False
        cells = " | ".join(f"{value:.2f}" for value in row.values())
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
