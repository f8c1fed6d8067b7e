"""The models that savedmodels/README.md lists: as exported, and translating."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.data.embedded import phrases
from keras_attention.serving import quick_search

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
    assert translate([f"{text}\0", f"\0{text}", text]) == [first] * 3
    hypotheses = translate.n_best([text])[0]
    assert hypotheses[0][0] == first and len(hypotheses) == translate.num_beams
    (shown,) = translate.with_attention([text])
    assert len(shown["attention"]) == len(shown["target_tokens"]) > 1
    inside = translate.inspect(text)
    assert inside.answer == first
    is_looking = name != "multi30k_en_de_rnn_encoder_decoder"
    assert ("cross" in inside.maps) == is_looking


@pytest.mark.slow
@pytest.mark.parametrize("name", ["greedy", "serving_default"])
def test_what_xla_compiles_answers_as_the_graph_does(name):
    """1,000 held-out phrases, one at a time."""
    signature = ka.load(FOLDER / "phrases_en_de").signatures[name]
    pairs = phrases.generate(train=101, validation=1, seed=5)["test"]
    texts = [tf.constant([pair.source]) for pair in pairs]
    assert len(texts) == 1000
    asked = [signature(text)["translation"].numpy() for text in texts]
    quick_search.compiler().submit(int).result()
    jobs = signature._compiled.values()
    assert jobs and all(job and job.result() for job in jobs)
    assert [signature(text)["translation"].numpy() for text in texts] == asked
    assert [
        signature._signature(text=text)["translation"].numpy() for text in texts
    ] == asked


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
