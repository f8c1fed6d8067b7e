"""chrF++, TER and COMET, against their packages called directly."""

import sys
import types

import pytest
import sacrebleu

from keras_attention import evaluation
from keras_attention.evaluation import comet

REFERENCES = ["Der alte Hund schläft .", "Wo ist der Bahnhof ?"]
HYPOTHESES = ["Der Hund alte schläft .", "Wo ist die Bahnhof ?"]


def test_they_equal_sacrebleu():
    found = evaluation.more_scores(HYPOTHESES, REFERENCES, "de")
    chrf = sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2)
    ter = sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES])
    assert found["chrf++"]["score"] == pytest.approx(chrf.score, abs=1e-9)
    assert found["ter"]["score"] == pytest.approx(ter.score, abs=1e-9)
    assert "nw:2" in found["chrf++"]["signature"]
    assert "case:lc|tok:tercom" in found["ter"]["signature"]


def test_edits_counted_by_hand():
    # One shift and one substitution for 10 words.
    found = evaluation.more_scores(HYPOTHESES, REFERENCES)
    assert found["ter"]["score"] == pytest.approx(100 * 2 / 10)


def test_chinese_is_counted_by_characters():
    found = evaluation.more_scores(["火车站在"], ["火车站呢"], "zh")
    assert found["ter"]["score"] == pytest.approx(100 / 4)
    assert "asian:yes" in found["ter"]["signature"]


def test_comet_says_what_it_needs(monkeypatch):
    monkeypatch.setattr(comet.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install unbabel-comet"):
        evaluation.comet_score(["a"], ["b"], ["c"])


def test_comet_gets_the_triples(monkeypatch):
    """A package in its place: the true one needs PyTorch and a network."""

    class Network:
        def predict(self, rows, batch_size, gpus):
            assert rows == [{"src": "a", "mt": "b", "ref": "c"}]
            return {"system_score": 0.75}

    package = types.ModuleType("comet")
    package.download_model = lambda name: f"models/{name}"
    package.load_from_checkpoint = lambda path: Network()
    monkeypatch.setitem(sys.modules, "comet", package)
    monkeypatch.setattr(comet.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(comet.importlib.metadata, "version", lambda name: "2")
    found = evaluation.comet_score(["a"], ["b"], ["c"], "N")
    assert found == {"score": 75.0, "signature": "N|unbabel-comet:2"}
