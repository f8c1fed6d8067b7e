# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 9. Serving
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/09_serving.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# How do I put the model where others can use it? They may have no Keras, not
# even Python: a web page, a phone's backend, a program in C. This chapter
# exports a translator as one folder that takes text and gives text. It calls it
# in five ways: from Python with TensorFlow alone, from a bare session, from C,
# over HTTP and over gRPC. A small stand-in for TensorFlow Serving answers the
# last two. Along the way it looks at what is in the folder, at bad input, and
# at what a batch costs and does not cost.
#
# Takes about 4 minutes on two cores. At the end the numbers of the chapter
# are printed: how many held-out phrases the served model translates right,
# and how long a text takes alone and in a batch. Pictures are shown here and
# kept in the folder `pictures`.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import hashlib
import http.server
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent import futures

import grpc
import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

import keras_attention as ka
from keras_attention.plotting import drawing

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
ka.devices.share_cores()  # On two cores, each computes operations of its own.
keras.utils.set_random_seed(1)

# %% [markdown]
# ## A model to serve
#
# If you have exported RNNsearch (chapter 3) for the phrases, to
# `savedmodels/phrases_en_de_rnnsearch`, we take a copy: to deploy a model is to
# copy a folder. Otherwise we train one, for three epochs. That is too short for
# the best scores, but enough for most phrases. (If all you want is a model to
# serve: some that are ready lie in `savedmodels/` of a clone.)

# %%
NAME = "phrases_en_de_rnnsearch"
# Goes away with this process.
temporary = tempfile.TemporaryDirectory(prefix="serving-")
WORK = pathlib.Path(temporary.name)
FOLDER = WORK / NAME

ready = pathlib.Path("savedmodels") / NAME
if ready.exists():
    shutil.copytree(ready, FOLDER)
else:
    config = ka.config.make(
        model="rnnsearch",
        output=str(WORK / "run"),
        epochs=3,
        steps=5 if FAST else None,
        max_length=32 if FAST else 128,
        warmup_steps=200,
        learning_rate=3e-3,
        validation_sentences=2 if FAST else 200,
    )
    parts = ka.train(config)
    ka.load(parts.directory.path).export(
        FOLDER, card="# Phrases, English to German\n"
    )

# %% [markdown]
# ## What was written
#
# Below the model's folder, each version has a folder whose name is its
# number. TensorFlow Serving asks for this layout.

# %%
version = ka.serving.savedmodel.versions(FOLDER)[-1]
for path in sorted(FOLDER.rglob("*")):
    if path.is_file():
        size = path.stat().st_size / 1000
        print(f"{size:9.1f} kB  {path.relative_to(FOLDER)}")

# %% [markdown]
# `saved_model.pb` is the program, a graph of TensorFlow's operations;
# `variables/` holds the weights that it reads. Nothing here is Python: the
# layers have turned into matrix products, the tokenizer and the search into
# operations of the same graph. Let us open the program and see.

# %%
saved_model = saved_model_pb2.SavedModel()
saved_model.ParseFromString((version / "saved_model.pb").read_bytes())
meta_graph = saved_model.meta_graphs[0]

functions = meta_graph.graph_def.library.function
nodes = [node for function in functions for node in function.node_def]
own_names = {function.signature.name for function in functions}
operations = {node.op for node in nodes} - own_names
print(f"{len(nodes):,} nodes, {len(operations)} kinds of operations")

# The tokenizer: the only operations that TensorFlow alone does not have.
from_tensorflow_text = {
    name for name in operations if name.startswith("Sentencepiece")
}
print(sorted(from_tensorflow_text))
assert from_tensorflow_text == {
    "SentencepieceOp",
    "SentencepieceTokenizeOp",
    "SentencepieceDetokenizeOp",
}
# The search: a loop in the graph, whose end the graph decides.
loops = operations & {"While", "StatelessWhile"}
print(sorted(loops))
assert loops

# The weights: four bytes for each number (the state of dropout's random
# numbers is among them), and the names of the Python objects.
shapes = [
    shape
    for name, shape in tf.train.list_variables(
        str(version / "variables" / "variables")
    )
    if name.startswith("_variables")
]
parameters = sum(int(np.prod(shape)) for shape in shapes)
(weights,) = (version / "variables").glob("*.data-*")
print(f"{parameters:,} numbers, {weights.stat().st_size:,} bytes")
assert 0 <= weights.stat().st_size - 4 * parameters < 100_000

# %% [markdown]
# Text goes in and text comes out because the tokenizer and the search are in
# the graph. A model that is exported without them goes from ids to logits, and
# leaves both to the client. The client then needs the same vocabulary, the same
# normalisation of Unicode and the same beam search, written again in its own
# language. Any difference lowers the quality and raises no error. And the
# client calls the model once for each token, not once for each text.
#
# ## From Python, with TensorFlow alone
#
# A **signature** is a named entry of the program: tensors with names go in,
# tensors with names come out. Our translators have eight. Here is a client that
# knows nothing of us but a path. It runs in a process of its own, in which an
# import of this package would raise an error.

# %%
CLIENT = """
import json
import sys
import time

sys.modules["keras_attention"] = None  # To import it is an error now.

import tensorflow as tf
import tensorflow_text  # Registers the operations of SentencePiece.

path, *texts = sys.argv[1:]
model = tf.saved_model.load(path)
text = tf.constant(texts)

start = time.perf_counter()
translation = model.signatures["serving_default"](text=text)["translation"]
first = time.perf_counter() - start
start = time.perf_counter()
model.signatures["serving_default"](text=text)
second = time.perf_counter() - start

answers = {}
for name, signature in model.signatures.items():
    if name == "inspect":
        continue  # It looks inside, for people and not for programs.
    inputs = {"text": text}
    if "reference" in signature.structured_input_signature[1]:
        inputs["reference"] = translation
    answers[name] = signature(**inputs)


def described(tensor):
    return {
        "dtype": tensor.dtype.name,
        "shape": tensor.shape.as_list(),
        "value": tensor.numpy().tolist(),
    }


answers = tf.nest.map_structure(described, answers)
result = {"answers": answers, "seconds": [first, second]}
json.dump(result, sys.stdout, default=bytes.decode)
"""


def run_program(*command):
    """Runs a program and returns what it prints."""
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


TEXTS = ["twenty-one", "Monday, March 3, 2025"]
client = WORK / "client.py"
client.write_text(CLIENT)
found = json.loads(run_program(sys.executable, client, version, *TEXTS))
for name, outputs in found["answers"].items():
    print(name)
    for key, tensor in outputs.items():
        value = str(tensor["value"])
        shown = value if len(value) < 44 else value[:41] + "..."
        print(f"  {key:16} {tensor['dtype']:8} {tensor['shape']!s:11} {shown}")

# %% [markdown]
# The axes: B texts (here 2), S source tokens, T target tokens, N beams. All
# signatures take `text` [B].
#
# - `serving_default`: `translation` [B], by beam search; `greedy`: the same
#   by greedy search, quicker and a little worse.
# - `with_attention`: also its `score` [B], whether the text was `truncated`
#   [B], the tokens [B, S] and [B, T], and the `attention` [B, T, S].
# - `n_best`: `translations` and `scores` [B, N], best first; the same text may
#   come twice, in different tokens.
# - `score` takes a `reference` [B] too, a translation by somebody else, and
#   gives its `log_probability`, `num_tokens` and `truncated`, each [B].
# - `align` takes a `reference` too, and gives the model's `attention` as it
#   writes that reference.
# - `num_tokens` counts: `num_tokens` [B], and the model's `limit` [B].
# - `inspect` takes an `answer` [B], and looks inside the model.
#
# The answers are those of the same model in this process. Texts are equal;
# numbers agree up to rounding.

# %%
served = ka.load(FOLDER)  # Checks the files and takes the newest version.
signatures = served.signatures
assert set(found["answers"]) | {"inspect"} == set(signatures)


def plain(value):
    """Bytes as text, tensors and arrays as lists: what JSON can hold."""
    if isinstance(value, tf.Tensor):
        return plain(value.numpy().tolist())
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def call(name, texts, **others):
    """A signature's answer, as lists."""
    inputs = {"text": texts, **others}
    inputs = {key: tf.constant(value) for key, value in inputs.items()}
    return {
        key: plain(tensor) for key, tensor in signatures[name](**inputs).items()
    }


def same(one, other):
    """Equal; where there are numbers with a fraction, to rounding."""
    one, other = np.array(one), np.array(other)
    if one.dtype.kind == "f":
        return np.allclose(one, other, rtol=1e-3, atol=1e-3)
    return np.array_equal(one, other)


references = call("serving_default", TEXTS)["translation"]
for name, outputs in found["answers"].items():
    others = {"reference": references} if name in ("score", "align") else {}
    here = call(name, TEXTS, **others)
    assert here.keys() == outputs.keys()
    for key, value in here.items():
        assert same(value, outputs[key]["value"]), (name, key)

# %% [markdown]
# How good is the model that we serve? We ask it for phrases that it has
# never seen.

# %%
pairs = ka.data.corpora.load("phrases", "en", "de").splits["test"]
pairs = list(pairs.take(8 if FAST else 200).as_numpy_iterator())
test_texts = [pair["source"].decode() for pair in pairs]
test_references = [pair["target"].decode() for pair in pairs]
test_translations = served(test_texts)
right = np.mean(np.array(test_translations) == np.array(test_references))
print(f"{100 * right:.1f} % of {len(pairs)} held-out phrases are right")
for row in range(3):
    print(f"  {test_texts[row]} -> {test_translations[row]}")
if not FAST:
    assert right > 0.6
    assert call("serving_default", ["twenty-one"]) == {
        "translation": ["einundzwanzig"]
    }

# %% [markdown]
# ## From a bare session
#
# TensorFlow 1 had no functions to call; it had a graph, and a session that runs
# parts of it. Servers in C++, TensorFlow Serving among them, still load a
# SavedModel in this way. In the graph each tensor has a name, and a signature
# is only a table from our names to those.

# %%
for key, tensor in meta_graph.signature_def["serving_default"].inputs.items():
    print("in: ", key, "is", tensor.name)
for key, tensor in meta_graph.signature_def["serving_default"].outputs.items():
    print("out:", key, "is", tensor.name)


tf.get_logger().setLevel("ERROR")  # It would tell us that this is old.


def by_session(texts, name="serving_default"):
    """Translates in a graph and a session of their own."""
    with (
        tf.Graph().as_default() as graph,
        tf.compat.v1.Session(graph=graph) as session,
    ):
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(version))
        signature = loaded.signature_def[name]
        return session.run(
            signature.outputs["translation"].name,
            {signature.inputs["text"].name: texts},
        )


session_answers = plain(by_session(TEXTS).tolist())
print(session_answers)
assert session_answers == references

# %% [markdown]
# ## From C
#
# TensorFlow has an interface in C, on which other languages build theirs. The
# whole client: load the operations of SentencePiece, load the model, put
# strings into a tensor, run, print. `TF_TString` is TensorFlow's string: it
# knows its length, so that a text may hold any bytes; `TF_DeleteTensor` frees a
# tensor together with its strings.

# %%
C_CLIENT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

static TF_Status* status;

static void check(const char* action) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", action, TF_Message(status));
  exit(1);
}

/* The output that "operation:0" names. */
static TF_Output find(TF_Graph* graph, char* name) {
  char* colon = strrchr(name, ':');
  if (colon) *colon = '\0';
  TF_Output found = {TF_GraphOperationByName(graph, name),
                     colon ? atoi(colon + 1) : 0};
  if (found.oper) return found;
  fprintf(stderr, "no tensor %s\n", name);
  exit(1);
}

/* Arguments: library of operations, version, input, output, texts. */
int main(int argc, char** argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: client OPERATIONS VERSION INPUT OUTPUT TEXT...\n");
    return 2;
  }
  status = TF_NewStatus();
  TF_Library* library = TF_LoadLibrary(argv[1], status);
  check("loading the operations");
  TF_Graph* graph = TF_NewGraph();
  const char* tags[] = {"serve"};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_LoadSessionFromSavedModel(
      options, NULL, argv[2], tags, 1, graph, NULL, status);
  TF_DeleteSessionOptions(options);
  check("loading the model");
  TF_Output input = find(graph, argv[3]), output = find(graph, argv[4]);

  int64_t count = argc - 5;
  TF_Tensor* fed =
      TF_AllocateTensor(TF_STRING, &count, 1, count * sizeof(TF_TString));
  TF_TString* texts = TF_TensorData(fed);
  for (int row = 0; row < count; row++) {
    TF_StringInit(&texts[row]);
    TF_StringCopy(&texts[row], argv[5 + row], strlen(argv[5 + row]));
  }

  TF_Tensor* fetched = NULL;
  TF_SessionRun(session, NULL, &input, &fed, 1, &output, &fetched, 1, NULL, 0,
                NULL, status);
  check("translating");

  TF_TString* translations = TF_TensorData(fetched);
  for (int row = 0; row < count; row++) {
    fwrite(TF_StringGetDataPointer(&translations[row]), 1,
           TF_StringGetSize(&translations[row]), stdout);
    putchar('\n');
  }
  TF_DeleteTensor(fed);
  TF_DeleteTensor(fetched);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteLibraryHandle(library);
  TF_DeleteStatus(status);
  return 0;
}
"""

# %% [markdown]
# Headers and libraries come with the Python package of TensorFlow, so a C
# compiler is all we need; if there is none, the next cell says so. Our client
# reads no protocol buffers, so it gets the names of the tensors from us;
# `saved_model_cli`, below, prints them. These names are no contract: read them
# anew from each version. Where the client runs, the two libraries in the
# printed command and the library of the operations have to be present, but no
# Python.

# %%
compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
headers = pathlib.Path(tf.sysconfig.get_include())
if compiler is None:
    print("Not built: no C compiler was found.")
elif not (headers / "tensorflow" / "c" / "c_api.h").exists():
    print("Not built: TensorFlow came without its headers.")
else:
    (WORK / "client.c").write_text(C_CLIENT)
    libraries = pathlib.Path(tf.sysconfig.get_lib())
    command = [
        *(compiler, WORK / "client.c", "-o", WORK / "client"),
        f"-I{headers}",
        next(libraries.glob("libtensorflow_cc.*2*")),
        next(libraries.glob("libtensorflow_framework.*2*")),
        f"-Wl,-rpath,{libraries}",
    ]
    print(shlex.join(str(part) for part in command))
    run_program(*command)
    origin = importlib.util.find_spec("tensorflow_text").origin
    operations_folder = pathlib.Path(origin).parent / "python" / "ops"
    signature = meta_graph.signature_def["serving_default"]
    printed = run_program(
        WORK / "client",
        operations_folder / "_sentencepiece_tokenizer.so",
        version,
        signature.inputs["text"].name,
        signature.outputs["translation"].name,
        *TEXTS,
    )
    print(printed)
    assert printed.splitlines() == references

# %% [markdown]
# ## What a stranger sees
#
# Whoever gets the folder and no documentation has `saved_model_cli`, which
# TensorFlow installs. Here the command is run as a module; in a shell it is
# `saved_model_cli show --dir FOLDER/1 --tag_set serve --signature_def ...`.
# (Its `run` fails: it does not load the operations of SentencePiece.)

# %%
shown = run_program(
    *(sys.executable, "-m", "tensorflow.python.tools.saved_model_cli"),
    *("show", "--dir", version, "--tag_set", "serve"),
    *("--signature_def", "with_attention"),
)
print(shown)
for name in signatures["with_attention"].structured_outputs:
    assert f"outputs['{name}']" in shown

# %% [markdown]
# Each -1 in `shape: (-1, -1, -1)` is a length that the signature leaves open.
# The first length of each shape is the batch. TensorFlow Serving says the same
# over HTTP, at `/v1/models/NAME/metadata`.
#
# ## The first request is slow
#
# Our client above measured its first call and its second.

# %%
first, second = found["seconds"]
print(f"first call {first:.2f} s, second {second:.3f} s")
assert first > 2 * second

# %% [markdown]
# At its first call TensorFlow optimises the graph, and allocates memory. A
# server should do that before the first user comes. So an export carries
# **warm-up requests**, in the file `assets.extra/tf_serving_warmup_requests`:
# TensorFlow Serving runs them when it loads a version, and announces the
# version only then. Each record is a `PredictionLog`, here with a
# `PredictRequest`, the same message that a gRPC client sends. We run them as
# the server does.

# %%
warm_up = version / "assets.extra" / "tf_serving_warmup_requests"
warmed_up = set()
for record in tf.data.TFRecordDataset(str(warm_up)).as_numpy_iterator():
    log = prediction_log_pb2.PredictionLog.FromString(record)
    request = log.predict_log.request
    name = request.model_spec.signature_name
    inputs = {
        key: tf.constant(tf.make_ndarray(tensor))
        for key, tensor in request.inputs.items()
    }
    outputs = signatures[name](**inputs)
    warmed_up.add(name)
    print(f"{name:16}", plain(inputs["text"]))
# All but the count of tokens, which is quick, and what looks inside.
assert warmed_up | {"num_tokens", "inspect"} == set(signatures)

# %% [markdown]
# ## Versions, and how to know that a copy is whole
#
# A better model becomes the next version. Here the loaded model stands in for
# it: it is exported once more.

# %%
ka.serving.savedmodel.export(tf.saved_model.load(str(version)), FOLDER)
print([path.name for path in ka.serving.savedmodel.versions(FOLDER)])
newest = ka.load(FOLDER)
assert int(newest.path.name) == int(served.path.name) + 1
assert newest(TEXTS) == references

# %% [markdown]
# The version was written to a hidden folder and renamed when it was whole:
# a server that polls the folder, as TensorFlow Serving does, never sees half
# a model. It loads version 2 beside version 1, warms it up, sends new
# requests there, and unloads version 1 when its last request is answered.
# Meanwhile both are in memory. To go back, one takes the folder `2` away, or
# tells the server which version to serve (exercise 1).
#
# A copy over a network may break off, and a server would serve what arrived.
# `MANIFEST.sha256` has a line for each file of each version. `sha256sum -c
# MANIFEST.sha256` checks them in a shell; this is all that it does:

# %%
manifest = (FOLDER / "MANIFEST.sha256").read_text()
for line in manifest.splitlines():
    expected, name = line.split("  ")
    digest = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
    assert digest == expected
    print(digest[:16], name)

# %% [markdown]
# `ka.load` compares before it loads. TensorFlow itself does not know the
# manifest: check after each copy.

# %%
damaged = WORK / "damaged"
shutil.copytree(FOLDER, damaged)
(file,) = (damaged / newest.path.name / "variables").glob("*.data-*")
content = bytearray(file.read_bytes())
content[len(content) // 2] ^= 1  # One bit.
file.write_bytes(content)
try:
    ka.load(damaged)
except ValueError as error:
    message = str(error)
print(message.replace(str(WORK), ""))
assert "was changed or damaged" in message
shutil.rmtree(damaged)

# %% [markdown]
# The manifest detects accidents, not attacks: whoever can change a file can
# also change its line. And a SavedModel is a program, with operations that read
# and write files. Load only those you trust.
#
# ## Bad input
#
# A service gets anything: empty fields, half a character, a novel. The
# signatures answer each text, without an error and row by row, so that one
# client's text does not break the batch of another.
#
# A blank text translates to the empty string. A zero-width space is blank, too,
# and so are bytes that are not UTF-8.

# %%
BLANK = [b"", b"   ", b"\t\r\n", b"\xff\xfe", "\u200b".encode()]
answer = call("with_attention", BLANK)
assert answer["translation"] == [""] * len(BLANK)
assert answer["score"] == [0.0] * len(BLANK)
mixed = call("serving_default", [b"\xff", TEXTS[0].encode(), b""])
print(mixed)
assert mixed["translation"] == ["", references[0], ""]

# %% [markdown]
# Text is read as it is written, but runs of spaces count as one. Characters
# outside the vocabulary are encoded byte by byte, and no character is unknown.

# %%
tokens = call("with_attention", ["7  PM", "7 PM"])["source_tokens"]
print(repr("7  PM"), tokens[0])
assert tokens[0] == tokens[1]
(tokens,) = call("with_attention", ["☂"])["source_tokens"]
print(repr("☂"), tokens)
spelt = [token for token in tokens if token.startswith("<0x")]
assert bytes(int(token[1:-1], 16) for token in spelt).decode() == "☂"

# %% [markdown]
# A text may be longer than the model's limit. Every signature takes what fits;
# `with_attention`, `score` and `align` say so, by `truncated`. A client of the
# other signatures asks `num_tokens` first and compares with `limit`. We send
# "one" 500 times; the answer is, to the letter, the answer to as many as fit.

# %%
(limit,) = call("num_tokens", ["one"])["limit"]
long = "one " * 500
fits = "one " * (limit - 1)  # And the token END.
counted = call("num_tokens", [long, fits])["num_tokens"]
print(f"limit {limit} tokens; the two texts have {counted}")
assert counted == [501, limit]
answer = call("with_attention", [long, fits])
print("truncated:", answer["truncated"])
assert answer["truncated"] == [True, False]
assert answer["translation"][0] == answer["translation"][1]

# %% [markdown]
# The Python class refuses such a text: a translation without its second half is
# worse than an error, if somebody reads the error.

# %%
try:
    served(["twenty-one", long])
except ValueError as error:
    message = str(error)
print(message)
assert "line 2 has 501 tokens" in message
assert len(served([long], truncate=True)) == 1

# %% [markdown]
# A batch without texts gets an answer without translations. What remains is a
# wrong type or shape, an error in the client's code. This does raise an
# exception.

# %%
nothing = signatures["serving_default"](text=tf.constant([], tf.string))
assert nothing["translation"].shape == (0,)
for wrong in (tf.constant("twenty-one"), tf.constant([21])):
    try:
        signatures["serving_default"](text=wrong)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        print(type(error).__name__, "for", wrong)
    else:
        raise AssertionError("it was accepted")

# %% [markdown]
# ## A row's answer does not depend on its batch
#
# Texts of different users travel together, padded to the longest. Nobody may
# get a different answer because of neighbouring texts. That is what the masks
# of chapters 3 and 5 are for: padding has a weight of exactly 0, so what is in
# the padded places, and how many there are, does not matter. Answers are equal
# up to rounding; where two hypotheses tie, the shape of a batch may decide. We
# translate some texts alone, together, in reverse, and beside one that makes
# the batch much wider.

# %%
some = test_texts[: 2 if FAST else 32]
alone = [call("with_attention", [text]) for text in some]
together = call("with_attention", some)
reverse = call("with_attention", some[::-1])
wide = call("with_attention", [*some, "one " * 60])

for row in range(len(some)):
    (translation,) = alone[row]["translation"]
    (tokens,) = alone[row]["source_tokens"]
    for batch, place in (
        (together, row),
        (reverse, len(some) - 1 - row),
        (wide, row),
    ):
        # A model with hardly any training has near ties, which may be
        # rounded the other way in another shape.
        assert batch["translation"][place] == translation or FAST
        assert same(batch["score"][place], alone[row]["score"][0]) or FAST
        padding = np.array(batch["attention"][place])[:, len(tokens) :]
        assert not padding.any()
print(f"{len(some)} texts: the same answers in four kinds of batches")

# %% [markdown]
# A batch is worth it. The search is a chain of small operations, each of which
# starts anew for each token; with more rows an operation takes hardly any
# longer. We measure the seconds per text for each size of batch.

# %%
SIZES = [1, 4] if FAST else [1, 2, 4, 8, 16, 32]
text_of_all = [TEXTS[1]] * max(SIZES)  # One length: no row waits.
milliseconds = {}
for size in SIZES:
    call("serving_default", text_of_all[:size])
    seconds = []
    for _ in range(1 if FAST else 7):
        start = time.perf_counter()
        call("serving_default", text_of_all[:size])
        seconds.append(time.perf_counter() - start)
    # The best of them: other programs can only make it slower.
    milliseconds[size] = 1000 * min(seconds) / size
for size, value in milliseconds.items():
    print(f"batch of {size:2}: {value:6.1f} ms for a text")
if not FAST:
    assert milliseconds[1] > milliseconds[32]

# %%
with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        list(milliseconds),
        list(milliseconds.values()),
        color=drawing.COLORS[0],
        marker=drawing.MARKERS[0],
        label="beam search",
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("texts in a batch")
    axes.set_ylabel("milliseconds for a text")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "09_batch.png")
figure

# %% [markdown]
# What to see: a text in a batch of 32 takes less time than alone, and the
# curve gets flat: a doubling can at most halve what is left. Here all texts are
# equal; where their lengths differ, all rows wait for the longest.
#
# TensorFlow Serving can form batches by itself from requests that arrive within
# some milliseconds (`--enable_batching`, with a file of parameters). It joins
# the inputs of the requests along axis 0, calls the signature once, and cuts
# the outputs along axis 0. That asks two things of a signature: texts as
# strings [B], which always join, whereas padded ids would have to agree in
# their width; and the batch as first axis of every output. Therefore even
# `limit`, a constant, comes once for each row.

# %%
for name in signatures:
    for tensor in meta_graph.signature_def[name].outputs.values():
        assert tensor.tensor_shape.dim[0].size == -1
assert call("num_tokens", TEXTS)["limit"] == [limit, limit]

# %% [markdown]
# ## TensorFlow Serving
#
# The server is one container. The command maps your folder into it; port 8501
# answers HTTP (REST) and port 8500 gRPC. TensorFlow Serving has an older
# tensorflow-text built in, but we use only three old operations of it. Take an
# image that is not older than the TensorFlow that exported the model, by its
# tag: `latest` may lag. The tags are listed at
# <https://hub.docker.com/r/tensorflow/serving/tags>.
#
# Our own folder goes away with this process; the first two commands make one
# that stays.
#
# **The commands of this section are printed and not run here**, as they need
# Docker and a download. The bodies of the requests are built by code, and so
# are the answers to expect: from the outputs of the signatures, by the rules
# of [TensorFlow Serving's REST
# API](https://www.tensorflow.org/tfx/serving/api_rest).

# %%
print("exported by TensorFlow", tf.__version__)
print(f"""
keras-attention train --model rnnsearch
keras-attention export runs/{NAME} --to savedmodels/{NAME}

docker run -t --rm -p 127.0.0.1:8500:8500 -p 127.0.0.1:8501:8501 \\
    -v "$PWD/savedmodels/{NAME}:/models/{NAME}" -e MODEL_NAME={NAME} \\
    tensorflow/serving:{tf.__version__}

# In a second shell:
curl http://localhost:8501/v1/models/{NAME}
""")

# %% [markdown]
# The last line asks for the state of the model. The newest version is served,
# in our folder the second, in yours the first:

# %%
status = {
    "model_version_status": [
        {
            "version": ka.serving.savedmodel.versions(FOLDER)[-1].name,
            "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""},
        }
    ]
}
print(json.dumps(status, indent=1))

# %% [markdown]
# The server's flags go after the image: `--tensorflow_intra_op_parallelism=1`
# where cores are few, or
# `--enable_batching --batching_parameters_file=/models/NAME/batching.txt`, with
# a file such as
#
# ```
# max_batch_size { value: 32 } batch_timeout_micros { value: 5000 }
# num_batch_threads { value: 2 } max_enqueued_batches { value: 100 }
# ```
#
# With a GPU it is `docker run --gpus all` and the image with `-gpu` at the end
# of its tag. A request to one version goes to
# `/v1/models/NAME/versions/2:predict`. A wrong request is answered with a
# status such as 400 or 404 and `{"error": "..."}`.
#
# A request names a signature (without one it is `serving_default`) and has
# its inputs in rows, `"instances"`, or in columns, `"inputs"`. The answer has
# the same form: `"predictions"` or `"outputs"`. If the signature has one
# output only, its name is left out.
#
# JSON holds Unicode, not bytes. Text of an unknown encoding travels in base
# 64, as `{"b64": ...}`; other text travels as it is, and so do translations.

# %%


def rest_answer(body):
    """What the REST API answers to the body of a `:predict` request."""
    signature = signatures[body.get("signature_name", "serving_default")]
    in_columns = "inputs" in body
    if in_columns:
        inputs = body["inputs"]
    else:
        rows = body["instances"]
        inputs = {key: [row[key] for row in rows] for key in rows[0]}
    inputs = {key: tf.constant(values) for key, values in inputs.items()}
    outputs = {
        key: plain(tensor) for key, tensor in signature(**inputs).items()
    }
    if len(outputs) == 1:
        (answer,) = outputs.values()
    elif in_columns:
        answer = outputs
    else:
        rows = zip(*outputs.values(), strict=True)
        answer = [dict(zip(outputs, row, strict=True)) for row in rows]
    return {"outputs" if in_columns else "predictions": answer}


def curl(body):
    """The command that sends a body."""
    url = f"http://localhost:8501/v1/models/{NAME}:predict"
    print(f"curl {url} \\\n    -d {shlex.quote(json.dumps(body))}")
    print(json.dumps(rest_answer(body), ensure_ascii=False, indent=1), "\n")


curl({"instances": [{"text": text} for text in TEXTS]})
curl(
    {
        "signature_name": "score",
        "inputs": {"text": TEXTS, "reference": references},
    }
)
assert rest_answer({"instances": [{"text": TEXTS[0]}]}) == {
    "predictions": references[:1]
}
assert rest_answer({"inputs": {"text": TEXTS}}) == {"outputs": references}

# %% [markdown]
# One trap: scores of hypotheses that do not exist are minus infinity, and the
# server writes `-Infinity`, which is strictly speaking not JSON. Python reads
# it; `JSON.parse` in a browser does not. A blank text has one hypothesis:

# %%
body = {"signature_name": "n_best", "instances": [{"text": ""}]}
text_of_answer = json.dumps(rest_answer(body))
print(text_of_answer)
assert "-Infinity" in text_of_answer
(row,) = json.loads(text_of_answer)["predictions"]
assert row["scores"] == [0.0] + [-np.inf] * (served.num_beams - 1)

# %% [markdown]
# ### A small server
#
# To run the clients as well, we need something that listens. This stand-in
# answers both protocols from the loaded model. It is no replacement: it has no
# batching, no versions, no limits and no encryption. (TensorFlow Serving
# encrypts gRPC only, by `--ssl_config_file`; put its REST behind a proxy that
# encrypts and knows your users.) But nothing in between is hidden.
#
# Outside this chapter, `keras-attention serve FOLDER` (extra `serve`) answers
# both protocols without Docker, with batching, versions and limits.

# %%


class RestHandler(http.server.BaseHTTPRequestHandler):
    """POST /v1/models/NAME:predict."""

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        answer = rest_answer(json.loads(self.rfile.read(length)))
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        """Prints nothing."""


class Predictor(prediction_service_pb2_grpc.PredictionServiceServicer):
    """The gRPC method `Predict`."""

    def Predict(self, request, context):
        name = request.model_spec.signature_name or "serving_default"
        inputs = {
            key: tf.constant(tf.make_ndarray(tensor))
            for key, tensor in request.inputs.items()
        }
        response = predict_pb2.PredictResponse()
        for key, tensor in signatures[name](**inputs).items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(tensor))
        return response


rest_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RestHandler)
threading.Thread(target=rest_server.serve_forever, daemon=True).start()
grpc_server = grpc.server(futures.ThreadPoolExecutor(2))
prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
    Predictor(), grpc_server
)
grpc_port = grpc_server.add_insecure_port("127.0.0.1:0")
grpc_server.start()

# %% [markdown]
# The client over HTTP needs nothing but Python's own library. For TensorFlow
# Serving only the address changes, to `http://localhost:8501`.

# %%
rest_address = f"http://127.0.0.1:{rest_server.server_address[1]}"
# Do not ask a proxy for our own machine.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def post(body):
    """Sends a body and returns the answer."""
    request = urllib.request.Request(
        f"{rest_address}/v1/models/{NAME}:predict",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with opener.open(request, timeout=60) as response:
        return json.load(response)


predictions = post({"instances": [{"text": text} for text in TEXTS]})
print(predictions)
assert predictions == {"predictions": references}

# %% [markdown]
# gRPC sends protocol buffers, for which client code is generated in many
# languages; in Python this code is the package `tensorflow-serving-api`. A
# tensor is a `TensorProto`; strings are bytes, so nothing has to be in base 64.
# TensorFlow Serving's response has a `model_spec` too, with the version that
# answered.

# %%
channel = grpc.insecure_channel(
    f"127.0.0.1:{grpc_port}", options=[("grpc.enable_http_proxy", 0)]
)
stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

request = predict_pb2.PredictRequest()
request.model_spec.name = NAME
request.model_spec.signature_name = "serving_default"
request.inputs["text"].CopyFrom(tf.make_tensor_proto(TEXTS))
print(request)

response = stub.Predict(request, timeout=60)
print(response)
grpc_answers = plain(tf.make_ndarray(response.outputs["translation"]).tolist())
assert grpc_answers == references

# %% [markdown]
# ## Attention out of a served model
#
# `with_attention` gives, beside the translation, where the model looked. The
# answer is JSON that any program can draw; ours has tokens padded with empty
# strings, which we cut away.

# %%
body = {
    "signature_name": "with_attention",
    "instances": [{"text": TEXTS[1]}, {"text": "twenty-one"}],
}
row, _ = post(body)["predictions"]
source_tokens = [token for token in row["source_tokens"] if token]
target_tokens = [token for token in row["target_tokens"] if token]
weights = np.array(row["attention"])
weights = weights[: len(target_tokens), : len(source_tokens)]
assert np.allclose(weights.sum(axis=1), 1, atol=1e-3)

figure = ka.plotting.attention_heat_map(
    source_tokens,
    target_tokens,
    weights,
    path=PICTURES / "09_served_attention.png",
)
figure

# %% [markdown]
# What to see: each row is a token of the translation, and a dark cell marks the
# source token that the model looked at while writing it; a pale row looked at
# no single place. A web page could shade the words of the source in this way.
# The signature `align` gives the same for a translation that somebody else
# wrote.
#
# Last, we shut down the stand-ins.

# %%
channel.close()
grpc_server.stop(None)
rest_server.shutdown()
rest_server.server_close()

print(f"right: {100 * right:.1f} % of {len(pairs)} held-out phrases")
print(f"one text alone: {milliseconds[1]:.1f} ms")
print(f"a text in a batch of {SIZES[-1]}: {milliseconds[SIZES[-1]]:.1f} ms")

# %% [markdown]
# ## What to take away
#
# - An export is a program and its weights, from text to text. Whoever can run
#   TensorFlow can run it, in any language, without this package.
# - A signature is a table of names. Everything else, a session, the C
#   interface, HTTP and gRPC, is a way to carry strings to these names.
# - Bad input gets an answer in its own row; only a wrong type or shape is an
#   error. Where a text did not fit, `truncated` or `num_tokens` says so.
# - Batches cost no correctness, because masked places have a weight of exactly
#   0, and they gain speed. The batch is the first axis of every output.
#
# ## Your turn
#
# A SavedModel answers in columns: each name has a list with one value for each
# text. But who asks TensorFlow Serving in rows gets rows: a dictionary for each
# text. If there is only one name, a row is the value itself. Turn columns into
# rows.

# %% tags=["alone"]
import your_turn


def in_rows(columns):
    """{"translation": [...], "score": [...]} -> one row for each text."""
    ...


your_turn.check(9, in_rows)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def in_rows(columns):
#     if len(columns) == 1:
#         return list(*columns.values())
#     rows = zip(*columns.values(), strict=True)
#     return [dict(zip(columns, row, strict=True)) for row in rows]
#
#
# your_turn.check(9, in_rows)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: The body of a request is `{"instances": [{"text": "one"}, {"text":
#   "two"}]}`. How many rows has the answer?
# - b: Texts of 3, 7 and 5 tokens are one batch. How many places are padding?
# - c: A translation has 7 tokens and the log-probability -3. What score does
#   `n_best` give? (Exercise 3 has the formula.)

# %% tags=["alone"]
your_turn.quiz(9, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: Each row of the request gets a row.
# - b: Each text is filled up to 7.
# - c: The divisor is $(5 + 7) / 6 = 2$.
#
# ```python
# your_turn.quiz(9, a=2, b=(7 - 3) + (7 - 5), c=-3 / 2)
# ```
#
# </details>
#
# ## Exercises
#
# **1.** The new version turned out to be worse. Make `ka.load(FOLDER)` take
# the old one again, without changing a file of a version. Does the manifest
# complain?
#
# <details><summary>Solution</summary>
#
# ```python
# newest.path.rename(WORK / "taken away")
# assert ka.load(FOLDER).path == served.path
# ```
#
# It does not: a version is compared with its own lines only. TensorFlow
# Serving unloads a version whose folder has gone. It can also be told to serve
# an older one while the newer stays: by `model_version_policy { specific {
# versions: 1 } }` in a file for `--model_config_file`, which it reads again
# only with `--model_config_file_poll_wait_seconds`.
#
# </details>
#
# **2.** Which of "einundzwanzig", "zweiundzwanzig" and "zwanzig" does the
# model find likeliest as a translation of "twenty-one"? Write the body of a
# REST request that asks for all three in columns, and take the answer from
# `rest_answer`.
#
# <details><summary>Solution</summary>
#
# ```python
# candidates = ["einundzwanzig", "zweiundzwanzig", "zwanzig"]
# body = {
#     "signature_name": "score",
#     "inputs": {"text": ["twenty-one"] * 3, "reference": candidates},
# }
# outputs = rest_answer(body)["outputs"]
# likeliest = candidates[np.argmax(outputs["log_probability"])]
# assert FAST or likeliest == "einundzwanzig"
# ```
#
# </details>
#
# **3.** `n_best` gives scores, `score` gives log-probabilities. The search
# divides a log-probability by $((5 + n) / 6)^\alpha$, where $n$ is the number
# of tokens, END included (Wu et al. 2016, equation 14); $\alpha$ is 1 here.
# Compute the score of the best translation of "twenty-one" from the answer of
# `score`.
#
# <details><summary>Solution</summary>
#
# ```python
# best = call("n_best", ["twenty-one"])
# text = best["translations"][0][0]
# told = call("score", ["twenty-one"], reference=[text])
# penalty = (5 + told["num_tokens"][0]) / 6
# score = told["log_probability"][0] / penalty
# # What has hardly learned may spell a text in other pieces than `score` reads.
# assert FAST or same(score, best["scores"][0][0])
# ```
#
# The two agree if the search found the text by the pieces into which the
# tokenizer cuts it, as it does here. A model trained with `subword_sampling`
# may find it in other pieces, even twice; `score` knows those of the tokenizer.
#
# </details>
#
# **4.** Your users send longer texts than the warm-up requests. Somebody adds
# a request to the file in `assets.extra` by hand. What does `ka.load` say, and
# what would TensorFlow Serving do?
#
# <details><summary>Solution</summary>
#
# ```python
# records = list(tf.data.TFRecordDataset(str(warm_up)).as_numpy_iterator())
# log = prediction_log_pb2.PredictionLog.FromString(records[0])
# log.predict_log.request.inputs["text"].CopyFrom(
#     tf.make_tensor_proto(["one " * 60])
# )
# with tf.io.TFRecordWriter(str(warm_up)) as writer:
#     for record in [*records, log.SerializeToString()]:
#         writer.write(record)
# try:
#     ka.load(version)
# except ValueError as error:
#     assert "tf_serving_warmup_requests was changed" in str(error)
# ```
#
# `ka.load` refuses the version: its files are not those that were exported.
# TensorFlow Serving does not read the manifest and would run the request. Write
# the file's new sum into the manifest, and both are satisfied. But a warm-up
# request that fails keeps the version from being served: try it first.
#
# </details>
#
# Next: [chapter 10](10_reusing_layers.ipynb) leaves translation. What is in
# this package for another task?
