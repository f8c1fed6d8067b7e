"""Scores against sacrebleu called directly, and against counting by hand."""

import math
import random

import pytest
import sacrebleu

from keras_attention import evaluation

REFERENCES = [
    "Mir geht es gut .",
    "Der alte Hund schläft unter dem großen grünen Tisch .",
    "Wo ist der Bahnhof ?",
    "Ja",
]
HYPOTHESES = [
    "Mir geht es gut .",
    "Der alte hund schläft unter dem grossen Tisch .",
    "Wo ist die Bahnhof ?",
    "Ja",
]


def test_scores_equal_sacrebleu():
    scores = evaluation.corpus_scores(HYPOTHESES, REFERENCES)
    cased = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES])
    lowered = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], lowercase=True)
    chrf = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES])
    assert scores["bleu"]["score"] == pytest.approx(cased.score, abs=1e-9)
    assert scores["bleu_lc"]["score"] == pytest.approx(lowered.score, abs=1e-9)
    assert scores["chrf"]["score"] == pytest.approx(chrf.score, abs=1e-9)
    # "hund" for "Hund" costs only the cased score.
    assert scores["bleu"]["score"] < scores["bleu_lc"]["score"]


def test_signatures_name_what_was_computed():
    scores = evaluation.corpus_scores(HYPOTHESES, REFERENCES)
    version = sacrebleu.__version__
    rest = f"eff:no|tok:13a|smooth:exp|version:{version}"
    assert scores["bleu"]["signature"] == f"nrefs:1|case:mixed|{rest}"
    assert scores["bleu_lc"]["signature"] == f"nrefs:1|case:lc|{rest}"
    assert "nc:6|nw:0" in scores["chrf"]["signature"]


def test_bleu_counted_by_hand():
    # 5 words in both. n-grams of the hypothesis that are in the reference:
    # 4 of 5, 3 of 4, 2 of 3, 1 of 2; equal lengths, so no brevity penalty.
    scores = evaluation.corpus_scores(["a b c d x"], ["a b c d e"])
    expected = 100 * math.prod([4 / 5, 3 / 4, 2 / 3, 1 / 2]) ** (1 / 4)
    assert scores["bleu"]["score"] == pytest.approx(expected)


def test_brevity_penalty_counted_by_hand():
    # Every n-gram is right, but 4 words stand for 5: exp(1 - 5 / 4).
    scores = evaluation.corpus_scores(["a b c d"], ["a b c d e"])
    assert scores["bleu"]["score"] == pytest.approx(100 * math.exp(-1 / 4))


def test_perfect_translations_score_exactly_one_hundred():
    scores = evaluation.corpus_scores(REFERENCES, REFERENCES)
    assert scores["bleu"]["score"] == 100
    assert scores["bleu_lc"]["score"] == 100
    assert scores["chrf"]["score"] == 100
    assert scores["exact_match"] == 100
    assert scores["sentences"] == 4


def test_exact_match_counted_by_hand():
    hypotheses = ["a", "B", "c ", "d"]
    scores = evaluation.corpus_scores(hypotheses, ["a", "b", "c", "d"])
    assert scores["exact_match"] == 50


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_make_no_difference(end):
    lines = [f"{line}{end}" for line in HYPOTHESES]
    expected = evaluation.corpus_scores(HYPOTHESES, REFERENCES)
    assert expected["exact_match"] == 50
    assert evaluation.corpus_scores(lines, REFERENCES) == expected
    assert (
        evaluation.corpus_scores(
            HYPOTHESES, [f"{REFERENCES[0]}{end}", *REFERENCES[1:]]
        )
        == expected
    )
    rows = evaluation.bleu_by_length([1] * 4, lines, REFERENCES)
    assert [row["exact_match"] for row in rows] == [50]


def test_a_zero_of_short_translations_is_explained():
    """The figure is sacrebleu's."""
    short = evaluation.corpus_scores(["Ja", "zwei drei"], ["Ja", "zwei drei"])
    assert short["exact_match"] == 100
    assert short["bleu"]["score"] == 0
    assert (
        short["bleu"]["score"] == sacrebleu.corpus_bleu(["Ja"], [["Ja"]]).score
    )
    assert "no translation has four words" in short["bleu"]["note"]
    assert "note" not in short["chrf"]
    wrong = evaluation.corpus_scores(["a b c d"], ["e f g h"])
    assert wrong["bleu"].keys() == {"score", "signature"}
    (row,) = evaluation.bleu_by_length([1], ["Ja"], ["Ja"])
    assert row["bleu"] == 100


def test_empty_hypotheses_score_zero():
    scores = evaluation.corpus_scores(["", ""], ["a b c d", "e"])
    assert scores["bleu"]["score"] == 0
    assert scores["exact_match"] == 0


def test_bins_hold_the_sentences_of_their_length():
    rows = evaluation.bleu_by_length(
        [4, 10, 5, 1], HYPOTHESES, REFERENCES, edges=(1, 3, 5)
    )
    # The bin of 2 and 3 is empty and left out.
    assert [(row["low"], row["high"]) for row in rows] == [
        (0, 1),
        (4, 5),
        (6, None),
    ]
    assert [row["sentences"] for row in rows] == [1, 2, 1]
    assert [row["exact_match"] for row in rows] == [100, 50, 0]
    middle = sacrebleu.corpus_bleu(
        [HYPOTHESES[0], HYPOTHESES[2]], [[REFERENCES[0], REFERENCES[2]]]
    )
    assert rows[1]["bleu"] == pytest.approx(middle.score, abs=1e-9)


def test_one_bin_over_everything_is_the_corpus_score():
    rows = evaluation.bleu_by_length(
        [4, 10, 5, 1], HYPOTHESES, REFERENCES, edges=(100,)
    )
    scores = evaluation.corpus_scores(HYPOTHESES, REFERENCES)
    assert [row["bleu"] for row in rows] == [scores["bleu"]["score"]]


def test_lowercase_bins():
    [cased] = evaluation.bleu_by_length([10], HYPOTHESES[1:2], REFERENCES[1:2])
    [lowered] = evaluation.bleu_by_length(
        [10], HYPOTHESES[1:2], REFERENCES[1:2], lowercase=True
    )
    assert cased["bleu"] < lowered["bleu"]


@pytest.mark.parametrize(
    "hypotheses, references, message",
    [
        ([], [], "Received: 0 hypotheses, 0 references"),
        (["a"], ["a", "b"], "Received: 1 hypotheses, 2 references"),
        ("a b", ["a", "b", "c"], "`hypotheses` must be a sequence"),
        (["a"], [["a"]], "`references` must hold strings only"),
    ],
)
def test_wrong_texts_are_refused(hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        evaluation.corpus_scores(hypotheses, references)


@pytest.mark.parametrize("edges", [(), (0, 5), (5, 5), (9, 3)])
def test_wrong_edges_are_refused(edges):
    with pytest.raises(ValueError, match="Received: edges="):
        evaluation.bleu_by_length([1], ["a"], ["a"], edges=edges)


def test_lengths_of_another_number_are_refused():
    with pytest.raises(ValueError, match="2 lengths, 1 hypotheses"):
        evaluation.bleu_by_length([1, 2], ["a"], ["a"])


def test_a_difference_is_more_than_chance_or_not():
    rng = random.Random(0)
    references = [
        " ".join(rng.choices("ein Hund läuft durch den Park".split(), k=8))
        for _ in range(200)
    ]
    good = [r.replace("Hund", "Tier") for r in references]
    # Both make as many errors more, in different sentences.
    bad, other = (
        [t.upper() if i % 10 == k else t for i, t in enumerate(good)]
        for k in (0, 5)
    )

    def compare(baseline, system, **options):
        return evaluation.paired_bootstrap(
            baseline, system, references, num_samples=200, **options
        )

    better = compare(other, good)
    scores = [
        evaluation.corpus_scores(texts, references)["bleu"]["score"]
        for texts in (other, good)
    ]
    assert better["difference"] == pytest.approx(scores[1] - scores[0])
    assert compare(good, other)["difference"] == -better["difference"]
    assert better["p_value"] < 0.05 < compare(bad, other)["p_value"]
    # They differ in case alone.
    assert compare(other, good, lowercase=True) == {
        "difference": 0.0,
        "p_value": 1.0,
    }
    assert compare(good, good)["p_value"] == 1


def test_systems_of_other_lengths_are_not_compared():
    with pytest.raises(ValueError, match="1 baseline, 2 hypotheses"):
        evaluation.paired_bootstrap(["a"], ["a", "b"], ["a", "b"])


def test_intervals_narrow_with_the_number_of_sentences():
    rng = random.Random(1)
    words = "ein Hund läuft durch den Park".split()
    references = [" ".join(rng.choices(words, k=8)) for _ in range(1100)]
    hypotheses = [r.replace("Hund", rng.choice(words)) for r in references]
    few, many = evaluation.bleu_by_length(
        [5] * 100 + [15] * 1000, hypotheses, references, num_samples=300
    )
    assert 0 < many["interval"] < 0.6 * few["interval"]


# Languages whose words have no blanks between them.

WITHOUT_BLANKS = {
    "zh": ["你好，世界！", "今天天气很好。", "我们去公园吧。"],
    "ja": ["今日はいい天気ですね。", "東京に行きます。"],
    "ko": ["오늘은 날씨가 정말 좋습니다.", "서울에 갑니다."],
    "th": ["วันนี้อากาศดีมาก", "ฉันไปโรงเรียน"],
    "km": ["ថ្ងៃនេះអាកាសធាតុល្អ"],
    "lo": ["ມື້ນີ້ອາກາດດີ"],
    "my": ["ဒီနေ့ရာသီဥတုကောင်းတယ်"],
    "bo": ["དེ་རིང་གནམ་གཤིས་ཡག་པོ་འདུག"],
}


@pytest.mark.parametrize("language", WITHOUT_BLANKS)
def test_perfect_translations_without_blanks(language):
    texts = WITHOUT_BLANKS[language]
    scores = evaluation.corpus_scores(texts, texts, target_language=language)
    assert scores["bleu"]["score"] == scores["bleu_lc"]["score"] == 100
    name = evaluation.bleu_tokenizer(language)
    for bleu in ("bleu", "bleu_lc"):
        assert f"|tok:{name}" in scores[bleu]["signature"]
    # 13a sees less than four words, wherever there are no blanks.
    alone = evaluation.corpus_scores(texts, texts)
    assert "|tok:13a|" in alone["bleu"]["signature"]
    if language != "ko":
        assert alone["bleu"]["score"] == 0


def test_scores_without_blanks_equal_sacrebleu():
    references = WITHOUT_BLANKS["zh"]
    hypotheses = [text.replace("天", "日") for text in references]
    for options, name in (
        ({"target_language": "zh"}, "zh"),
        ({"tokenize": "char"}, "char"),
        ({"target_language": "zh", "tokenize": "char"}, "char"),
        ({"target_language": "de", "tokenize": "intl"}, "intl"),
    ):
        expected = sacrebleu.corpus_bleu(
            hypotheses, [references], tokenize=name
        ).score
        scores = evaluation.corpus_scores(hypotheses, references, **options)
        assert scores["bleu"]["score"] == pytest.approx(expected, abs=1e-9)
        assert f"|tok:{name}|" in scores["bleu"]["signature"]
        [row] = evaluation.bleu_by_length(
            [9] * 3, hypotheses, references, edges=[10], **options
        )
        assert row["bleu"] == scores["bleu"]["score"]
        assert f"|tok:{name}|" in row["signature"]
        compared = evaluation.paired_bootstrap(
            hypotheses, references, references, num_samples=10, **options
        )
        perfect = evaluation.corpus_scores(references, references, **options)
        assert compared["difference"] == pytest.approx(
            perfect["bleu"]["score"] - scores["bleu"]["score"]
        )


@pytest.mark.parametrize(
    "tokenizer, codes",
    {
        "zh": "zh zh-CN zh_TW ZH zho zho_Hans cmn yue zh-Hant-HK cn",
        "char": "th tha th-TH km khm lo lao my mya bur bo dz",
        "13a": "de en-GB fr vi deu_Latn zh-Latn ja-Latn id zha he ar hi",
    }.items(),
)
def test_a_language_has_its_tokenizer(tokenizer, codes):
    for code in codes.split():
        assert evaluation.bleu_tokenizer(code) == tokenizer, code
    assert evaluation.bleu_tokenizer() == "13a"


@pytest.mark.parametrize(
    "tokenizer, codes",
    [("ja-mecab", "ja ja-JP jpn jpn_Jpan jp"), ("ko-mecab", "ko ko_KR kor")],
)
def test_mecab_is_used_where_it_is_installed(monkeypatch, tokenizer, codes):
    for installed in (True, False):
        monkeypatch.setattr(
            evaluation.scores, "_is_installed", {tokenizer: installed}.get
        )
        for code in codes.split():
            assert evaluation.bleu_tokenizer(code) == (
                tokenizer if installed else "char"
            )
    with pytest.raises(ValueError, match=r"pip install .*sacrebleu\["):
        evaluation.corpus_scores(["a"], ["a"], tokenize=tokenizer)


@pytest.mark.parametrize(
    "options", [{"tokenize": "moses"}, {"target_language": 3}], ids=repr
)
def test_another_tokenizer_is_refused(options):
    for score in (
        lambda: evaluation.corpus_scores(["a"], ["a"], **options),
        lambda: evaluation.bleu_by_length([1], ["a"], ["a"], **options),
        lambda: evaluation.paired_bootstrap(["a"], ["a"], ["a"], **options),
    ):
        with pytest.raises(ValueError, match="Received: "):
            score()
