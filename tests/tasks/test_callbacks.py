"""What translation scores do at the end of an epoch."""

import pytest
import sacrebleu

from keras_attention.tasks import callbacks

SOURCES = ["one two", "three", "four five"]
REFERENCES = ["eins zwei drei vier", "drei", "vier fünf sechs sieben"]
HYPOTHESES = ["eins zwei drei vier", "zwei", "vier fünf sechs acht"]


def translator(asked):
    def translate(texts):
        asked.append(list(texts))
        return HYPOTHESES

    return translate


def test_scores_join_the_logs():
    asked, lines = [], []
    callback = callbacks.TranslationScores(
        translator(asked),
        SOURCES,
        REFERENCES,
        num_samples=2,
        write=lines.append,
    )
    logs = {"loss": 1.0}
    callback.on_epoch_end(4, logs)
    assert asked == [SOURCES]
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    chrf = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert logs == {
        "loss": 1.0,
        "val_bleu": pytest.approx(bleu),
        "val_chrf": pytest.approx(chrf),
        "val_exact_match": pytest.approx(100 / 3),
    }
    assert f"epoch 5: validation BLEU {bleu:.2f}" in lines[0]
    # Two of the three translations, beside their texts.
    assert [line.split(maxsplit=1) for line in lines[1:]] == [
        [word, texts[row]]
        for row in range(2)
        for word, texts in (
            ("source", SOURCES),
            ("translation", HYPOTHESES),
            ("reference", REFERENCES),
        )
    ]


def test_without_logs_scores_are_printed_only():
    lines = []
    callback = callbacks.TranslationScores(
        translator([]), SOURCES, REFERENCES, num_samples=9, write=lines.append
    )
    callback.on_epoch_end(0)
    assert len(lines) == 1 + 3 * 3


def test_perfect_chinese_scores_100():
    texts = ["一只狗在草地上跑", "两个人坐在桌子旁边"]
    callback = callbacks.TranslationScores(
        lambda _: texts, texts, texts, write=[].append, target_language="zh"
    )
    logs = {}
    callback.on_epoch_end(0, logs)
    assert logs["val_bleu"] == pytest.approx(100)
