"""Alignment error rates of words, whose links people have made."""

import json
import os
import pathlib
import types

import numpy as np
import pytest

from keras_attention import cli, data
from keras_attention.data.readers import lines
from keras_attention.evaluation import alignment, gold_alignment
from keras_attention.training import restore

NULL = alignment.NULL
PAIRS = [("one two  three", "eins drei"), ("nine ", "neun"), ("", "")]
LINKS = ["1-1 3-2 2p2", "", ""]


class Speller:
    """Tokens are characters; attention is on true characters alone.

    The characters of a target word look at those of the source word in
    `looks`, most at its last one; what is left of a weight is on a space.
    """

    def __init__(self, looks):
        self.looks = looks

    def align(self, texts, references, truncate=False):
        return [
            self._row(source, target, truncate)
            for source, target in zip(texts, references, strict=True)
        ]

    def _row(self, source, target, truncate):
        sides = [["▁", *" ".join(text.split())] for text in (source, target)]
        sides = [[c.replace(" ", "▁") for c in side] for side in sides]
        limit = 12 if truncate else None
        sides = [[*side[:limit], "[END]"] for side in sides]
        attention = np.zeros((len(sides[1]), len(sides[0])))
        for index, word in enumerate(self.word_of(sides[1])):
            for place, other in enumerate(self.word_of(sides[0])):
                if other in self.looks.get(word, ()):
                    attention[index, place] = self.looks[word][other]
        return {
            "source_tokens": sides[0],
            "target_tokens": sides[1],
            "attention": attention,
        }

    @staticmethod
    def word_of(tokens):
        """The number of the word of each character; None of a space."""
        word, found = -1, []
        for token in tokens:
            word += token == "▁"
            found.append(None if len(token) > 1 or token == "▁" else word)
        return found


@pytest.fixture
def write(tmp_path):
    def write(rows, name="links"):
        path = tmp_path / name
        path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
        return path

    return write


def test_links_are_counted_from_0_and_sure_ones_are_possible(write):
    assert gold_alignment.read_links(write(LINKS), PAIRS) == [
        ({(0, 0), (2, 1)}, {(0, 0), (2, 1), (1, 1)}),
        (set(), set()),
        (set(), set()),
    ]


def test_only_a_space_divides_words():
    assert gold_alignment.words(" a\u3000b  \u3000 c\u00a0d ") == [
        *("a\u3000b", "\u3000", "c\u00a0d")
    ]


@pytest.mark.parametrize(
    "rows, message",
    [
        (LINKS[:2], "has 2 lines, and there are 3 pairs"),
        ([*LINKS, ""], "has 4 lines, and there are 3 pairs"),
        (["1-1", "1", ""], "line 2: '1' is no link. Write 3-5 for a sure"),
        (["1-1", "1-x", ""], "line 2: '1-x' is no link"),
        (["1-1,2-2", "", ""], "line 1: '1-1,2-2' is no link"),
        (["1-1", "1?1", ""], r"line 2: '1\?1' is no link"),
        (["1--1", "", ""], "line 1: '1--1' is no link"),
        (["0-0", "", ""], "line 1: words are counted from 1, so '0-0'"),
        (["4-1", "", ""], "line 1: '4-1' links word 4 of the source, which h"),
        (["1-1", "1p2", ""], "'1p2' links word 2 of the target, which has 1 w"),
        (["", "", "1-1"], "line 3: '1-1' links word 1 of the source, which ha"),
    ],
)
def test_what_is_no_file_of_links(rows, message, write):
    with pytest.raises(ValueError, match=message):
        gold_alignment.read_links(write(rows), PAIRS)


def test_error_rate_by_hand():
    """A, S and P of two sentences, counted on paper."""
    gold = [
        ({(0, 0), (2, 1)}, {(0, 0), (2, 1), (1, 1)}),
        ({(0, 0)}, {(0, 0)}),
    ]
    rate = gold_alignment.error_rate
    assert rate([[0, 2], [0]], gold) == 0
    # A = {(0, 0), (1, 1), (0, 0)}: |A and S| = 2, |A and P| = 3, |A| = |S| = 3.
    assert rate([[0, 1], [0]], gold) == pytest.approx(100 * (1 - 5 / 6))
    # A = {(0, 0)}: 1 - (1 + 1) / (1 + 3).
    assert rate([[0, NULL], [NULL]], gold) == pytest.approx(50)
    # A = {(0, 0), (0, 1), (0, 0)}: 1 - (2 + 2) / (3 + 3).
    assert rate([[0, 0], [0]], gold) == pytest.approx(100 / 3)
    # A third word, which nobody linked, is linked, and that is wrong:
    # 1 - (3 + 3) / (4 + 3).
    assert rate([[0, 2, 1], [0]], gold) == pytest.approx(100 / 7)


def test_words_look_where_their_characters_look():
    # Sums over a source word: 3 characters of 0.2 beat 5 characters of 0.11.
    looks = {0: {0: 0.2, 2: 0.11}, 1: {2: 0.3, 1: 0.4}}
    found = gold_alignment.attention_links(Speller(looks), PAIRS)
    assert found == [[0, 2], [0], []]
    nowhere = gold_alignment.attention_links(Speller({}), PAIRS)
    assert nowhere == [[NULL, NULL], [NULL], []]
    assert gold_alignment.attention_links(Speller(looks), []) == []


def test_a_word_that_was_cut_off_is_not_linked():
    looks = {0: {0: 0.1, 3: 0.9}, 1: {0: 0.5}, 2: {0: 0.5}}
    pair = ("one two sixteen three", "siebzehn zwei drei")
    assert gold_alignment.attention_links(Speller(looks), [pair]) == [[3, 0, 0]]
    # 12 characters are left: neither "three" nor "drei".
    found = gold_alignment.attention_links(Speller(looks), [pair], True)
    assert found == [[0, 0, NULL]]


def test_a_token_of_two_words_is_shared_by_its_characters():
    shares = gold_alignment._shares(["▁a", "b▁c", "d"], ["ab", "cd"])
    np.testing.assert_array_equal(shares, [[1, 0.5, 0], [0, 0.5, 1]])
    assert gold_alignment._shares(["ac"], ["ab"]) is None


def test_a_text_that_is_read_otherwise_than_its_words():
    speller = Speller({})
    row = speller._row

    def shouted(source, target, truncate):
        is_text = len(source.split()) == 3
        return row(source.upper() if is_text else source, target, False)

    speller._row = shouted
    with pytest.raises(ValueError, match="Pair 2: the vocabulary reads 'a b c"):
        gold_alignment.attention_links(speller, [("a", "b"), ("a b c", "d")])


def test_a_word_that_cannot_be_seen_has_tokens(random_translator):
    pairs = [("one \u3000 two", "eins \u200b zwei")]
    translator = random_translator("rnnsearch")
    (row,) = translator.align(*map(list, zip(*pairs, strict=True)))
    assert "<0xE3>" in row["source_tokens"]
    (links,) = gold_alignment.attention_links(translator, pairs)
    assert len(links) == 3 and max(links) <= 2


@pytest.mark.parametrize("name", ["rnnsearch", "luong", "transformer"])
def test_a_models_links_equal_those_of_a_loop(name, random_translator):
    """Words of SentencePiece's tokens begin with a blank."""
    pairs = [
        ("one twelve nine", "neun eins zwölf xyz"),
        ("zwei  two", "drei"),
        ("seven", "null acht"),
    ]
    translator = random_translator(name)
    rows = translator.align(*map(list, zip(*pairs, strict=True)))
    expected = []
    for row in rows:
        places = {}
        for side in ("source_tokens", "target_tokens"):
            word, places[side] = -1, []
            for token in row[side][:-1]:
                word += token.startswith("▁")
                places[side].append(word)
        targets, sources = places["target_tokens"], places["source_tokens"]
        weights = np.zeros((targets[-1] + 1, sources[-1] + 1))
        for t, target in enumerate(targets):
            for s, source in enumerate(sources):
                share = row["attention"][t, s] / targets.count(target)
                weights[target, source] += share
        expected.append(weights.argmax(axis=1).tolist())
    assert [len(links) for links in expected] == [4, 1, 2]
    assert gold_alignment.attention_links(translator, pairs) == expected


def test_counts_stand_beside(write):
    pairs = [("das Haus", "the house"), ("ein Buch", "a book")]
    more = [("das Buch", "the book"), ("das", "the"), ("ein Haus", "a house")]
    gold = gold_alignment.read_links(write(["1-1 2-2", "1-1 2p2"]), pairs)
    found = gold_alignment.of_counts(pairs, gold, more)
    assert found == {
        **dict.fromkeys(["aer_hmm", "aer_ibm_model_1", "aer_best"], 0),
        "counted_pairs": 5,
        "sure_links": 3,
        "possible_links": 4,
    }
    # By themselves, the two pairs do not tell which word is which: Model 1
    # takes the first one. A = {(0, 0), (0, 1)} in both.
    alone = gold_alignment.of_counts(pairs, gold)
    assert alone["counted_pairs"] == 2
    assert alone["aer_ibm_model_1"] == pytest.approx(100 * (1 - 4 / 7))


def evaluate(tmp_path, monkeypatch, *more):
    """The command, with a run whose model is a `Speller`."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text(
        f"corpus: {tmp_path}\nsource: en\ntarget: de\n"
    )
    for name in ("train", "validation"):
        (tmp_path / f"{name}.en").write_text("one\nnine\nthree\ntwo\n")
        (tmp_path / f"{name}.de").write_text("eins\nneun\ndrei\nzwei\n")

    class Model(Speller):
        task = "translation"

        def __call__(self, texts, **options):
            return ["eins"] * len(texts)

    model = Model({0: {0: 0.5, 1: 0.1}, 1: {1: 0.2}})
    monkeypatch.setattr(restore, "load_run", lambda *arguments: model)
    cli.main(["evaluate", str(run), *map(str, more)])


def test_the_command_prints_the_rates(tmp_path, monkeypatch, write, capsys):
    links = write(["1-1 3-2 2p2", "1-1"])
    source = write([source for source, _ in PAIRS[:2]], "source")
    reference = write([target for _, target in PAIRS[:2]], "reference")
    evaluate(
        *(tmp_path, monkeypatch, "--alignments", links),
        *("--source", source, "--reference", reference),
    )
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    # A = {(0, 0), (1, 1), (0, 0)}, as in the count on paper.
    assert found["aer"] == pytest.approx(100 * (1 - 5 / 6))
    # Four pairs of training say which word is which.
    assert found["aer_ibm_model_1"] == found["aer_best"] == 0
    assert (found["sure_links"], found["possible_links"]) == (3, 4)
    assert found["counted_pairs"] == 6
    assert {"bleu", "chrf", "sentences_per_second"} <= found.keys()


def test_texts_and_translations_in_one_file(
    tmp_path, monkeypatch, write, capsys
):
    both = write([" ||| ".join(pair) for pair in PAIRS[:2]], "both")
    evaluate(
        *(tmp_path, monkeypatch, "--source", both),
        *("--alignments", write(["1-1 3-2 2p2", "1-1"])),
    )
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["aer"] == pytest.approx(100 * (1 - 5 / 6))


@pytest.mark.parametrize(
    "rows, links, message",
    [
        (["a ||| b", "a"], [""], "line 2 has 0 of them"),
        (["a ||| b"], ["1-2"], "links, line 1: '1-2' links word 2 of the ta"),
        (["a ||| b"], ["", ""], "links has 2 lines, and there are 1 pairs"),
    ],
)
def test_mistakes_are_one_clear_line(
    rows, links, message, tmp_path, monkeypatch, write
):
    files = "--source", write(rows, "both"), "--alignments", write(links)
    with pytest.raises(SystemExit, match=message) as error:
        evaluate(tmp_path, monkeypatch, *files)
    assert "\n" not in str(error.value)


def test_a_file_of_links_that_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="--alignments: there is no file"):
        evaluate(tmp_path, monkeypatch, "--alignments", tmp_path / "nothing")


# Set of links -> sentences, sure links, and links that are only possible.
PUBLISHED = {
    "enfr": (447, 4_038, 13_400),
    "roen": (248, 6_198, 0),
    "jaen": (582, 13_562, 0),
    "zhen": (450, 11_238, 178),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_links(name):
    folder = os.environ.get("KERAS_ATTENTION_ALIGN_GOLD")
    if not folder:
        pytest.skip(
            "KERAS_ATTENTION_ALIGN_GOLD names no folder with enfr.gold.gz and "
            "enfr.src-tgt.gz"
        )
    folder = pathlib.Path(folder)
    rows = lines.read_lines(folder / f"{name}.src-tgt.gz")
    pairs = [tuple(row.split(" ||| ")) for row in rows]
    gold = gold_alignment.read_links(folder / f"{name}.gold.gz", pairs)
    sentences, num_sure, num_possible = PUBLISHED[name]
    assert len(gold) == sentences
    assert sum(len(sure) for sure, _ in gold) == num_sure
    only_possible = sum(len(possible - sure) for sure, possible in gold)
    assert only_possible == num_possible
    found = gold_alignment.of_counts(pairs, gold)
    rates = [found["aer_best"], found["aer_hmm"], found["aer_ibm_model_1"], 100]
    assert rates == sorted(rates)
    # Every text is read as its words are, by all kinds of vocabularies.
    for model_type in data.MODEL_TYPES:
        _check_words(pairs, model_type)


def _check_words(pairs, model_type):
    texts = [text for pair in pairs for text in pair]
    tokenizer = data.Tokenizer(
        # Of half of the texts: the others have unknown words and characters.
        data.train_vocabulary(texts[::2], 8000, model_type)
    )
    ids = np.arange(tokenizer.vocabulary_size)[np.newaxis]
    pieces = [piece.decode() for piece in tokenizer.pieces(ids).numpy()[0]]

    def tokens(texts):
        rows = tokenizer.tokenize(texts).to_list()
        return [[*(pieces[one] for one in row), "[END]"] for row in rows]

    def align(sources, targets, truncate=False):
        return [
            {
                "source_tokens": source,
                "target_tokens": target,
                "attention": np.ones((len(target), len(source))),
            }
            for source, target in zip(
                tokens(sources), tokens(targets), strict=True
            )
        ]

    translator = types.SimpleNamespace(align=align)
    links = gold_alignment.attention_links(translator, pairs)
    for row, (source, target) in zip(links, pairs, strict=True):
        # The word of most tokens is looked at most, and every word looks.
        assert len(row) == len(gold_alignment.words(target))
        assert max(row) < len(gold_alignment.words(source))
