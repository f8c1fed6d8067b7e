"""`Typing :: Typed` is true: a right script passes, a misspelt name fails."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
RIGHT = """
import numpy as np

import keras_attention as ka

translator = ka.load("savedmodels/phrases_en_de")
print(translator(["twenty-one"], num_beams=1)[0].upper())
for text, score in translator.n_best(["one"])[0]:
    print(text.upper(), score + 1.0)
print(translator.with_attention(["one"])[0]["attention"])
print(translator.score(["one"], ["eins"])[0][0] + 1.0)
print(translator.too_long(["one"]), translator.num_tokens(["one"])[0] + 1)
classifier = ka.load("runs/snli_decomposable_attention")
print(classifier([("a dog runs", "a cat sleeps")])[0].upper())
print(classifier.labels[0].upper(), classifier.probabilities(["a dog"]))
print(ka.load("runs/ptb_rnn_language_model").score(["a dog"])[0][1] + 1)
layer = ka.layers.AdditiveAttention(units=11)
print(layer(query=np.ones((2, 3, 7)), value=np.ones((2, 5, 7))))
model = ka.models.Transformer.from_size("tiny", 8000)
corpus = ka.data.corpora.load("phrases", "en", "de")
print(ka.decoding.beam_search, ka.training.losses.TokenCrossEntropy())
print(ka.train(ka.config.make(model="rnnsearch")).directory.path.name)
tokenizer = ka.data.Tokenizer(ka.data.train_vocabulary(["one"], 300))
ka.Translator(model, tokenizer, tokenizer).export("savedmodels/numbers")
"""
WRONG = [
    "ka.layres",
    "ka.layers.AdditiveAtention",
    "ka.models.Transfomer",
    "ka.decoding.greedy_serch",
    "ka.training.losess",
    "ka.data.corpra",
    "ka.serving.cadrs",
    "ka.lod('NAME')",
    "ka.load('NAME').translat(['one'])",
    "ka.load('NAME')(5)",
    "ka.load('NAME')(['one'])[0].uper()",
    "ka.load('NAME', num_beam=3)",
]
# Mypy need not read these packages: the scripts hold nothing of theirs.
CHOICES = """
[mypy]
follow_imports = silent
ignore_missing_imports = True
[mypy-cyclopts.*,matplotlib.*,PIL.*,rich.*,sacrebleu.*,starlette.*,uvicorn.*]
follow_imports = skip
"""


def errors(path, text):
    """Line of a script -> what mypy says of it."""
    pytest.importorskip("mypy", reason="mypy is in the extra `test`")
    path.write_text(text)
    choices = path.with_name("mypy.ini")
    choices.write_text(CHOICES)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", path.name]
        + [f"--config-file={choices}", f"--cache-dir={os.devnull}"],
        cwd=path.parent,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    found = [line.split(":", 3) for line in done.stdout.splitlines()]
    return {
        int(line): message
        for _, line, kind, message in found
        if kind.strip() == "error"
    }


def test_a_right_script_has_no_error_and_each_wrong_line_one(tmp_path):
    """One call for both: most of its time is the package's."""
    first = len(RIGHT.splitlines()) + 1
    found = errors(tmp_path / "script.py", "\n".join([RIGHT[:-1], *WRONG]))
    assert [*found] == [*range(first, first + len(WRONG))], found


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "keras_attention" / "py.typed").is_file()
