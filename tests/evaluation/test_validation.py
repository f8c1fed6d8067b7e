"""What is said of a translator after each epoch."""

import pytest
import sacrebleu

from keras_attention import evaluation

SOURCES = ["one two", "three", "four five"]
REFERENCES = ["eins zwei drei vier", "drei", "vier fünf sechs sieben"]
HYPOTHESES = ["eins zwei drei vier", "zwei", "vier fünf sechs acht"]


def test_scores_and_some_samples_are_told(capsys):
    logs = evaluation.validation_logs(HYPOTHESES, REFERENCES)
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    chrf = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert logs == {
        "val_bleu": pytest.approx(bleu),
        "val_chrf": pytest.approx(chrf),
        "val_exact_match": pytest.approx(100 / 3),
    }
    for count, shown in ((2, 2), (9, 3)):
        evaluation.print_samples(
            4, logs, SOURCES, HYPOTHESES, REFERENCES, count
        )
        first, *lines = capsys.readouterr().out.strip().split("\n")
        assert f"epoch 5: validation BLEU {bleu:.2f}" in first
        assert [line.split(maxsplit=1) for line in lines] == [
            [word, texts[row]]
            for row in range(shown)
            for word, texts in (
                ("source", SOURCES),
                ("translation", HYPOTHESES),
                ("reference", REFERENCES),
            )
        ]


def test_perfect_chinese_scores_100():
    texts = ["一只狗在草地上跑", "两个人坐在桌子旁边"]
    logs = evaluation.validation_logs(texts, texts, target_language="zh")
    assert logs["val_bleu"] == pytest.approx(100)
