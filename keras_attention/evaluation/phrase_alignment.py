"""How well attention aligns the phrases, whose true alignment is known."""

import collections
import pathlib
from collections.abc import Mapping, Sequence

from keras_attention import plotting
from keras_attention.data.embedded import phrases
from keras_attention.evaluation import alignment, hmm_alignment

HMM, MODEL_1 = "hidden Markov model", "IBM Model 1"
# `tutorials/phrase_links.py` writes it.
LINKS = pathlib.Path(phrases.__file__).with_name("phrases_test_links.tsv")


def measure(
    translators: Mapping,
    source: str = "en",
    target: str = "de",
    picture: str | pathlib.Path | None = None,
) -> list[dict]:
    """The alignment error rate of each model on the test split of `phrases`.

    The models write the right translations. Each target token is linked to the
    source token that it looks at most, END left out. Two models have no
    attention: `rnn_encoder_decoder` looks at END alone and links nothing, and
    `lstm_encoder_decoder` links all tokens to the first one.

    Two models of counts stand beside them: the hidden Markov model, which also
    knows the order of the words, and IBM Model 1. They are trained on the
    tokens of the training and the test split. They may link a token to nothing,
    whereas a model that attends always links.

    Args:
        translators: at least one `Translator` by its name, each trained on
            `phrases`.
        source, target: the corpus's languages, `en` and `de`.
        picture: where to draw one phrase with its true links in frames. It has
            a panel for each model with the tokens of the first model.

    Returns:
        A row for each model, IBM Model 1 last: `model`, `aer` (percent),
        `best`, `by_category` (`aer` for each kind of phrase) and `sentences`.
        `best` is the `aer` of one true link for each token: no model can be
        much better. It differs between vocabularies, as their tokens differ.

    Raises:
        ValueError: If the languages are others, if the installed libraries
            write other phrases, or if a phrase is too long for a model.
    """
    if {source, target} != {"en", "de"}:
        raise ValueError(
            "The true links of the phrases are known from English to German "
            f"and back, not from {source!r} to {target!r}."
        )
    splits = phrases.generate(source, target)
    pairs = splits["test"]
    said = _links(pairs, source)
    texts = [pair.source for pair in pairs], [pair.target for pair in pairs]
    aligned = {
        name: translator.align(*texts)
        for name, translator in translators.items()
    }
    # Models of other choices may have other tokens.
    true = {
        name: _links_in_tokens(pairs, said, rows)
        for name, rows in aligned.items()
    }
    links = {
        name: [alignment.best_links(row["attention"][:-1, :-1]) for row in rows]
        for name, rows in aligned.items()
    }
    first = next(iter(translators))
    tokens = _tokens(translators[first], splits["train"] + pairs)
    for name, align in (
        (HMM, hmm_alignment.hmm_alignment),
        (MODEL_1, alignment.ibm_model_1),
    ):
        true[name], links[name] = true[first], align(tokens)[-len(pairs) :]
    if picture is not None:
        _draw(pairs, aligned, true[first], picture)
    return [_row(name, pairs, links[name], true[name]) for name in links]


def links_in_tokens(
    pairs: Sequence, rows: Sequence[Mapping], source: str = "en"
) -> list[tuple[set[alignment.Link], set[alignment.Link]]]:
    """What says the same in each phrase, in the tokens of a model.

    Args:
        pairs: phrases of the test split, with `source` and `target`.
        rows: for each, the `source_tokens` and `target_tokens` of
            `Translator.align`.
        source: the language of the sources, "en" or "de".

    Returns:
        `(sure, possible)` of each, as `alignment.token_links`.

    Raises:
        ValueError: If the links of a phrase are not known.
    """
    return _links_in_tokens(pairs, _links(pairs, source), rows)


def _links(pairs, source):
    """What says the same in each pair: spans of characters, of both texts."""
    found = {}
    for line in LINKS.read_text("utf-8").splitlines():
        *texts, links = line.split("\t")
        # The file goes from English to German.
        turn = slice(None, None, 1 if source == "en" else -1)
        found[tuple(texts[turn])] = [
            [_spans(side) for side in link.split(":")[turn]]
            for link in links.split()
        ]
    try:
        return [found[pair.source, pair.target] for pair in pairs]
    except KeyError as error:
        raise ValueError(
            "The installed versions of Babel and num2words write other phrases "
            f"than those whose links are known, such as {error}. Install the "
            "versions that the run was trained with."
        ) from None


def _spans(text):
    """ "0-3,7-9" -> [(0, 3), (7, 9)]."""
    return [tuple(map(int, span.split("-"))) for span in text.split(",")]


def _links_in_tokens(pairs, said, rows):
    """`(sure, possible)` of each pair, in the tokens of its row."""
    return [
        alignment.token_links(
            links,
            alignment.token_spans(row["source_tokens"][:-1], pair.source),
            alignment.token_spans(row["target_tokens"][:-1], pair.target),
        )
        for pair, links, row in zip(pairs, said, rows, strict=True)
    ]


def _tokens(translator, pairs):
    graph = translator.graph
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    rows = zip(
        graph.source_tokenizer.tokenize(sources).to_list(),
        graph.target_tokenizer.tokenize(targets).to_list(),
        strict=True,
    )
    return list(rows)


def _row(name, pairs, links, true):
    aligned, best, by_category = [], [], collections.defaultdict(list)
    for pair, positions, (sure, possible) in zip(
        pairs, links, true, strict=True
    ):
        aligned.append((positions, sure, possible))
        by_category[pair.category].append(aligned[-1])
        ideal = alignment.true_links(len(positions), sure, possible)
        best.append((ideal, sure, possible))
    rate = alignment.alignment_error_rate
    return {
        "model": name,
        "aer": 100 * rate(aligned),
        "best": 100 * rate(best),
        "by_category": {
            category: 100 * rate(sentences)
            for category, sentences in sorted(by_category.items())
        },
        "sentences": len(pairs),
    }


def _draw(pairs, aligned, true, path):
    """Draws the first number in words that is short enough to be read."""
    index = next(
        index
        for index, pair in enumerate(pairs)
        if pair.category == "cardinal" and len(pair.source) < 40
    )
    (first, *_) = rows = [rows[index] for rows in aligned.values()]
    alike = {
        name: row["attention"]
        for name, row in zip(aligned, rows, strict=True)
        if row["source_tokens"] == first["source_tokens"]
        and row["target_tokens"] == first["target_tokens"]
    }
    plotting.attention_heat_map(
        first["source_tokens"],
        first["target_tokens"],
        list(alike.values()),
        path=path,
        names=list(alike),
        links=sorted(true[index][1]),
    )
