"""Drawn segmentations, against all of a text found by trying every cut."""

import collections
import functools
import io
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_attention import data
from keras_attention.tokens import CONTROL_TEXTS, END, PAD, START, UNK

ROOT = pathlib.Path(data.__file__).parents[2]
WORDS = (
    "ab bären bauen der die das ein eine haus hunde katze klein große über "
    "unter grün straße zwanzig einund zwei drei vierzehn läuft schläft isst "
    "niemand morgen abend 1984 25 3,50 € café naïve señor"
).split()
ODD = [
    "",
    " ",
    "\u3000\u00a0\ufeff",
    "der  \t hund ",
    "漢字かな交じり文、ｶﾅ。",
    "😀 👩\u200d👩\u200d👧 x😀y",
    "[END] </s> <0x03>▁_",
    "5\u00a0€ «\u202foui\u202f»",
    "NUL \x00 \x07 bell",
    "e\u0301 é \ufffd",
]


def sentences(num_sentences, seed=0):
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(WORDS, k=generator.randint(1, 9)))
        for _ in range(num_sentences)
    ]


@pytest.fixture(scope="module")
def tokenizer():
    texts = sentences(600)
    texts += [text.replace(" ", "") for text in texts]
    return data.Tokenizer(data.train_vocabulary(texts, 400))


@pytest.fixture(scope="module")
def joined():
    """Of words written together, which it cuts in many ways."""
    generator = random.Random(0)
    texts = ["".join(generator.choices(WORDS[:8], k=3)) for _ in range(600)]
    return data.Tokenizer(data.train_vocabulary(texts, 330))


@functools.cache
def processor_of(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def drawn(tokenizer, *arguments, **options):
    """What `sample` draws, as lists that can be compared."""
    return [row.tolist() for row in tokenizer.sample(*arguments, **options)]


def probabilities(tokenizer, text, alpha):
    """Those of all segmentations, by trying every cut.

    A character that is no piece is spelt in bytes, at the least piece's
    log-probability less 10, as SentencePiece has it.
    """
    processor = processor_of(tokenizer.model)
    pieces = {
        processor.id_to_piece(id): id
        for id in range(processor.vocab_size())
        if id > UNK and not processor.is_byte(id) and not id <= END
    }
    unknown = min(map(processor.get_score, pieces.values())) - 10
    text = processor.normalize(text)
    weights = {}
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        parts = [text[0]]
        for letter, cut in zip(text[1:], cuts, strict=True):
            if cut:
                parts.append(letter)
            else:
                parts[-1] += letter
        ids, score = [], 0.0
        for part in parts:
            if part in pieces:
                ids.append(pieces[part])
                score += processor.get_score(pieces[part])
            elif len(part) == 1:
                ids += [
                    processor.piece_to_id(f"<0x{byte:02X}>")
                    for byte in part.encode()
                ]
                score += unknown
            else:
                break
        else:
            weights[tuple(ids)] = np.exp(alpha * score)
    total = sum(weights.values())
    return {ids: weight / total for ids, weight in weights.items()}


@pytest.mark.parametrize(
    "text", ["dasein", "ein das", "ab einder", "die漢ein", "😀 das ein"]
)
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_segmentations_are_drawn_by_their_probability(joined, text, alpha):
    """Pearson's test: chi-square is near its degrees of freedom."""
    draws = 20_000
    expected = probabilities(joined, text, alpha)
    assert len(expected) > 5
    counts = collections.Counter(
        map(tuple, drawn(joined, [text] * draws, 1, alpha))
    )
    assert set(counts) <= set(expected)
    chi_square = freedom = rest = rest_count = 0
    for ids, probability in expected.items():
        if draws * probability < 10:  # Rare ones count as one.
            rest += draws * probability
            rest_count += counts[ids]
            continue
        chi_square += (counts[ids] - draws * probability) ** 2 / (
            draws * probability
        )
        freedom += 1
    if rest:
        chi_square += (rest_count - rest) ** 2 / rest
    # Mean and standard deviation of the chi-square distribution.
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom)


def expected_cuts(tokenizer, text, alpha):
    """How many cuts there are on average, from sums forwards and backwards."""
    processor = processor_of(tokenizer.model)
    text = processor.normalize(text)
    pieces = {
        processor.id_to_piece(id): processor.get_score(id)
        for id in range(END + 1, processor.vocab_size())
        if not processor.is_byte(id)
    }
    size = len(text)
    forwards = np.full(size + 1, -np.inf)
    backwards = np.full(size + 1, -np.inf)
    forwards[0] = backwards[size] = 0
    for end in range(1, size + 1):
        for start in range(max(0, end - 16), end):
            if text[start:end] in pieces:
                forwards[end] = np.logaddexp(
                    forwards[end],
                    forwards[start] + alpha * pieces[text[start:end]],
                )
    for start in reversed(range(size)):
        for end in range(start + 1, min(size, start + 16) + 1):
            if text[start:end] in pieces:
                backwards[start] = np.logaddexp(
                    backwards[start],
                    backwards[end] + alpha * pieces[text[start:end]],
                )
    return np.exp(forwards + backwards - forwards[size])[1:-1].sum()


@pytest.mark.parametrize("blank", ["", " "], ids=["joined", "apart"])
def test_long_texts_are_cut_as_often_as_probable(tokenizer, blank):
    text = blank.join(random.Random(1).choices(WORDS, k=80))
    expected = expected_cuts(tokenizer, text, 0.1)
    rows = drawn(tokenizer, [text] * 300, 1, 0.1)
    cuts = [len(row) - 1 for row in rows]
    error = np.std(cuts) / np.sqrt(300)
    assert abs(np.mean(cuts) - expected) < 5 * error
    # Not the same few of the likeliest over and over.
    assert len(set(map(tuple, rows))) > 200


def test_a_seed_draws_the_segmentation(tokenizer):
    processor = processor_of(tokenizer.model)
    texts = sentences(50, seed=2) + ODD
    first = drawn(tokenizer, texts, seed=7)
    assert drawn(tokenizer, texts, seed=7) == first
    assert drawn(tokenizer, texts, seed=8) != first
    plain = tokenizer.tokenize(texts).to_list()
    assert first != plain
    assert processor.decode(first) == processor.decode(plain)
    assert not {i for row in first for i in row} & {PAD, UNK, START, END}


def test_drawn_rows_are_read_as_they_are(tokenizer):
    texts = sentences(5, seed=2)
    again = tokenizer.detokenize(tokenizer.sample(texts, seed=1)).numpy()
    assert [text.decode() for text in again] == texts


@pytest.mark.slow
def test_another_process_draws_the_same(tokenizer, tmp_path):
    """A run that is resumed elsewhere must see the same segmentations."""
    (tmp_path / "model").write_bytes(tokenizer.model)
    code = (
        "import json, sys; from keras_attention import data\n"
        "texts = json.loads(sys.argv[2])\n"
        "rows = data.Tokenizer(sys.argv[1]).sample(texts, seed=7)\n"
        "print(json.dumps([row.tolist() for row in rows]))"
    )
    texts = sentences(20, seed=2)
    result = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model", json.dumps(texts)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert json.loads(result.stdout) == drawn(tokenizer, texts, seed=7)


def test_sampling_does_not_change_tokenize(tokenizer):
    texts = sentences(20, seed=2)
    before = tokenizer.tokenize(tf.constant(texts)).to_list()
    tokenizer.sample(texts, seed=1)
    assert tokenizer.tokenize(tf.constant(texts)).to_list() == before


def test_invisible_texts_draw_nothing(tokenizer):
    texts = ["", "der", "\u3000\u00a0\ufeff", "\ufffd"]
    rows = tokenizer.sample(texts, seed=0)
    assert [len(row) > 0 for row in rows] == [False, True, False, False]
    assert {row.dtype.name for row in rows} == {"int32"}


def foreign_model(**options):
    """A unigram model trained otherwise than `train_vocabulary` does it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(600)),
        model_writer=model,
        vocab_size=200,
        hard_vocab_limit=False,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=START,
        eos_id=END,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": True, "vocab_size": 400},
        {"split_by_whitespace": False},
        {"treat_whitespace_as_suffix": True},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False},
        {"user_defined_symbols": ["<sep>"], "control_symbols": ["<c>"]},
    ],
    ids=lambda options: next(iter(options), "defaults"),
)
def test_models_of_others(options):
    """At a high alpha, nothing but the likeliest segmentation is drawn."""
    if "vocab_size" in options:
        options = {"byte_fallback": True}
        model = data.train_vocabulary(sentences(600), 400)
    else:
        model = foreign_model(**options)
    tokenizer = data.Tokenizer(model)
    texts = [*sentences(100, seed=3), *ODD[3:], "a <sep> b<sep>c <c> 漢字"]
    expected = likeliest(processor_of(model), texts)
    assert drawn(tokenizer, texts, 0, alpha=500.0) == expected
    assert tokenizer.tokenize(texts).to_list() == expected
    varied = drawn(tokenizer, texts, 0, alpha=0.1)
    assert varied != drawn(tokenizer, texts, 1, alpha=0.1)
    decode = processor_of(model).decode
    assert decode(varied) == decode(expected)


def likeliest(processor, texts):
    """SentencePiece's ids, with an UNK for each unknown character."""
    texts = [
        text.replace("\0", "").replace("\a", "").replace("\t", " ")
        for text in texts
    ]
    return [
        [
            id
            for id, piece in zip(ids, pieces, strict=True)
            for _ in (piece if id == UNK else "1")
        ]
        for ids, pieces in zip(
            processor.encode(texts),
            processor.encode(texts, out_type=str),
            strict=True,
        )
    ]


def test_another_kind_of_vocabulary_cannot_be_sampled():
    model = data.train_vocabulary(sentences(600), 400, model_type="bpe")
    with pytest.raises(ValueError, match="unigram"):
        data.Tokenizer(model).sample(["der"], seed=0)


@pytest.mark.parametrize("alpha", [-0.1, float("inf"), float("nan")])
def test_another_alpha_is_refused(tokenizer, alpha):
    with pytest.raises(ValueError, match="`alpha` must be 0 or more"):
        tokenizer.sample(["der"], seed=0, alpha=alpha)


@pytest.mark.parametrize("texts", ["der", [b"der"], [3]], ids=repr)
def test_what_are_no_texts_is_refused(tokenizer, texts):
    with pytest.raises(ValueError, match="in a list|must be a str"):
        tokenizer.sample(texts, seed=0)


def test_no_text_draws_a_control_id(tokenizer):
    texts = [*ODD, *(f"a{text}b {text}" for text in CONTROL_TEXTS)]
    ids = {id for row in drawn(tokenizer, texts, 1) for id in row}
    assert not ids & {PAD, UNK, START, END}
