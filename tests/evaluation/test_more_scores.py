"""chrF++, TER and COMET, against their packages called directly."""

import os
import sys

import pytest
import sacrebleu

from keras_attention import evaluation

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


# What `comet_score` uses of unbabel-comet 2.2.7, with the same arguments.
PACKAGE = """
def download_model(model, saving_directory=None, local_files_only=False):
    return f"models/{model}"


def load_from_checkpoint(
    checkpoint_path, reload_hparams=False, strict=False, local_files_only=False
):
    assert checkpoint_path == "models/N", checkpoint_path
    print("Lightning says something.")
    return Network()


class Network:
    def predict(
        self, samples, batch_size=16, gpus=1, devices=None, mc_dropout=0,
        progress_bar=True, accelerator="auto", num_workers=None,
        length_batching=True,
    ):
        assert samples == [{"src": "a\\n", "mt": "ß", "ref": "c"}], samples
        assert gpus == 0
        return {"scores": [0.75], "system_score": 0.75}
"""


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment with a package in its place, and a link on the PATH.

    The true one needs PyTorch and a network.
    """
    folder, path = tmp_path / "comet/bin", tmp_path / "path"
    for made in (folder, path):
        made.mkdir(parents=True)
    (folder / "comet.py").write_text(PACKAGE)
    version = folder / "unbabel_comet-2.2.7.dist-info"
    version.mkdir()
    (version / "METADATA").write_text("Name: unbabel-comet\nVersion: 2.2.7\n")
    (folder / "comet-score").write_text("")
    add = f"import sys; sys.path.insert(0, {str(folder)!r})"
    (folder / "python").write_text(
        f'#!/bin/sh\nexec {sys.executable} -I -c "{add}\n$3"\n'
    )
    for program in folder.glob("[cp]*"):
        program.chmod(0o755)
    (path / "comet-score").symlink_to(folder / "comet-score")
    monkeypatch.setenv("PATH", str(path), prepend=os.pathsep)
    return folder


def test_comet_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match="comet/bin/pip install .* unbabel-"):
        evaluation.comet_score(["a"], ["b"], ["c"])


def test_comet_looks_for_the_python_beside_it(environment):
    (environment / "python").unlink()
    with pytest.raises(ImportError, match="comet/bin/python is no file"):
        evaluation.comet_score(["a"], ["b"], ["c"])


def test_another_python_gets_the_triples(environment):
    found = evaluation.comet_score(["a\n"], ["ß"], ["c"], "N")
    assert found == {"score": 75.0, "signature": "N|unbabel-comet:2.2.7"}
    with pytest.raises(RuntimeError, match="ended with the status 1. Its own"):
        evaluation.comet_score(["b"], ["ß"], ["c"], "N")


def test_comet_needs_as_many_of_each(environment):
    with pytest.raises(ValueError, match="as many of each"):
        evaluation.comet_score(["a"], ["b"], ["c", "d"])
