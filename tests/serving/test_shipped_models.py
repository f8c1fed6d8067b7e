"""The models that savedmodels/README.md lists: as exported, and translating."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

import keras_attention as ka

FOLDER = pathlib.Path(__file__).parents[2] / "savedmodels"
FRESH_PYTHON = pathlib.Path(__file__).parent / "loaders" / "fresh_python.py"
LIST = (FOLDER / "README.md").read_text("utf-8")
NAMES = re.findall(r"\]\(([^)/]+)/README\.md\)", LIST)
MOST_MEGABYTES = 60
# A text, what its translation holds, the least BLEU (lower-cased) of a card.
KNOWN = {
    "phrases_en_de": ("twenty-one", "einundzwanzig", 99),
    "multi30k_en_de_transformer": (
        "Two dogs are playing in the snow.",
        "Hunde spielen im Schnee",
        41,
    ),
    "multi30k_en_de_rnnsearch": (
        "Two dogs are playing in the snow.",
        "Zwei Hunde spielen im Schnee.",
        39,
    ),
    "multi30k_en_de_rnn_encoder_decoder": (
        "Two dogs are playing in the snow.",
        "Zwei Hunde spielen im Schnee.",
        28,
    ),
}


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    """Name, folder and translator; the manifest is checked by `load`."""
    folder = FOLDER / request.param
    return request.param, folder, ka.load(folder)


def test_the_list_is_what_is_known():
    assert NAMES == list(KNOWN)


@pytest.mark.fast_for("phrases_en_de")
def test_it_translates(model):
    name, _, translate = model
    text, expected, _ = KNOWN[name]
    first, nothing = translate([text, ""])
    assert expected in first and nothing == ""
    # Their graphs are older than the rule that NUL is left out.
    assert translate([f"{text}\0", f"\0{text}", text]) == [first] * 3
    hypotheses = translate.n_best([text])[0]
    assert hypotheses[0][0] == first and len(hypotheses) == translate.num_beams
    (shown,) = translate.with_attention([text])
    assert len(shown["attention"]) == len(shown["target_tokens"]) > 1


@pytest.mark.fast_for("phrases_en_de")
def test_its_card_is_its_own(model):
    name, folder, translate = model
    card = (folder / "README.md").read_text("utf-8")
    assert [path.name for path in ka.serving.savedmodel.versions(folder)] == [
        "1"
    ]
    for line in ("- Data: ", "- Seed: ", "- Training: ", "- Limits: "):
        assert f"\n{line}" in card
    assert f"\n- Search: beam {translate.num_beams}, " in card
    (score,) = re.findall(r"\| bleu_lc \| ([0-9.]+) \| `.*version:", card)
    assert float(score) >= KNOWN[name][-1]
    # The list has the score of the card.
    (row,) = (line for line in LIST.splitlines() if f"({name}/" in line)
    assert score in row


@pytest.mark.slow
def test_it_needs_no_package(model):
    name, folder, translate = model
    result = subprocess.run(
        [sys.executable, FRESH_PYTHON, folder / "1", "serving_default"],
        input=json.dumps([KNOWN[name][0]]),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert json.loads(result.stdout) == translate([KNOWN[name][0]])


def test_a_clone_stays_small():
    files = [path for name in NAMES for path in (FOLDER / name).rglob("*")]
    assert 0 < sum(file.stat().st_size for file in files) < MOST_MEGABYTES * 1e6
