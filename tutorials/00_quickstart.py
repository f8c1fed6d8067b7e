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
# # 0. Quickstart
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/00_quickstart.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# Train a translator, look at its attention, export it and serve it, in about
# ten lines each. The corpus is made by the package: numbers, dates, times and
# sums of money as they are written in English, and as they are written in
# German. Nothing is downloaded.
#
# Takes about 5 minutes on two cores. Most of them pass in one training, which
# shows its progress. Each picture is shown where it is made, and is also
# written to the folder `pictures`, here as in all chapters. At the end a model
# that knows nothing of this package's code turns "twenty-one" into
# "einundzwanzig".
#
# Here and in all chapters, lines that begin with `assert` check that the text
# tells the truth. You may read past them.
#
# If you know Keras but not translation, [TensorFlow's
# tutorials](https://www.tensorflow.org/text/tutorials/nmt_with_attention) are a
# good companion. If you are new to neural networks, begin with
# [3Blue1Brown's](https://www.3blue1brown.com/topics/neural-networks) pictures
# or Andrej Karpathy's [Zero to Hero](https://karpathy.ai/zero-to-hero.html).

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import os
import pathlib

import keras
import tensorflow as tf

import keras_attention as ka

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)

# %% [markdown]
# This is what we are going to build, from text to text:

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.translator(path=PICTURES / "00_translator.png")

# %% [markdown]
# The tokenizer cuts a text into pieces and numbers them. The encoder reads them
# into a *memory*. The decoder looks at the memory, with attention, and says how
# likely each piece is as the next one (by numbers called *logits*, chapter 1).
# The search picks one, and the decoder reads what was picked. In the end the
# tokenizer joins the pieces.
#
# ## The data
#
# A corpus consists of pairs of texts, in splits. These are the first five of
# the test set, which training never sees.

# %%
corpus = ka.data.corpora.load("phrases", source="en", target="de")
print(corpus.sizes)
for pair in corpus.splits["test"].take(5).as_numpy_iterator():
    print(f"{pair['source'].decode():34} {pair['target'].decode()}")

# %% [markdown]
# ## Train
#
# One call learns a vocabulary of word pieces, builds a small Transformer and
# fits it with Keras's `fit`. That takes some minutes, and a bar shows how far
# it has come. After each epoch it shows three translations of sentences that
# were not trained on. `resume=True` makes the call safe to repeat: a run that
# was stopped goes on, and one that is finished is left alone. (Perplexity is
# $e$ to the mean negative log-probability of a token: 1 is perfect. The loss
# beside it is label-smoothed, chapter 6, and so does not go to 0.)

# %%
config = ka.config.make(
    model="transformer",
    corpus="phrases",
    output="runs/quickstart_fast" if FAST else "runs/quickstart",
    steps=20 if FAST else None,
)
parts = ka.train(config, resume=True)

# %% [markdown]
# ## Translate

# %%
translator = ka.load(parts.directory.path)
texts = ["twenty-one", "Monday, March 3, 2025", "7:05 PM", "$1,250.40"]
for text, translation in zip(texts, translator(texts), strict=True):
    print(f"{text:24} {translation}")
if not FAST:
    assert translator(["twenty-one"]) == ["einundzwanzig"]

# %% [markdown]
# How good is it? We translate the whole test set and count. Exact match is the
# percentage of answers that equal the reference to the letter. BLEU counts the
# runs of one to four words that both have. (Chapter 8 says what it is worth.
# The text in brackets is its *signature*, the settings that it was computed
# with.) `num_beams=1` asks for the simplest search: always the most probable
# next token.

# %%
pairs = list(corpus.splits["test"].as_numpy_iterator())
if FAST:
    pairs = pairs[:20]
scores = ka.evaluation.corpus_scores(
    translator([pair["source"].decode() for pair in pairs], num_beams=1),
    [pair["target"].decode() for pair in pairs],
)
print(f"exact match {scores['exact_match']:.1f} %")
print(f"BLEU {scores['bleu']['score']:.1f} ({scores['bleu']['signature']})")
if not FAST:
    assert scores["exact_match"] > 98

# %% [markdown]
# ## Look at the attention
#
# While it writes, the model looks back at the source. The next cell draws
# where. All such maps in these chapters are read in one way:
#
# - **A row asks, and a column is asked.** Here a row is a token that the model
#   wrote, and a column is a token of the source.
# - The darker a cell, the more the row's token looked at the column's token. A
#   row sums to 1.
#
# This map is that of the last layer, the mean of its heads (chapter 5). For
# "twenty-one" German says one-and-twenty: "einund" (one-and) looks to the
# right, at the hyphen and at "one", and "zwanzig" to the left, at "twenty". The
# two cross. How a network learns this is the subject of chapter 3. ("▁" is the
# beginning of a word, "[END]" the end of a text. By then the model has mixed
# each token with its neighbours, so a look at the hyphen can serve as a look at
# "one".)

# %%
(shown,) = translator.with_attention(["twenty-one"])
figure = ka.plotting.attention_heat_map(
    shown["source_tokens"],
    shown["target_tokens"],
    shown["attention"],
    path=PICTURES / "00_attention.png",
)
if not FAST:
    assert shown["target_tokens"][-2:] == ["zwanzig", "[END]"]
    assert shown["source_tokens"][0].endswith("twenty")
    first, zwanzig = shown["attention"][0], shown["attention"][-2]
    assert first[1:].sum() > first[0]
    assert zwanzig.argmax() == 0
figure

# %% [markdown]
# Colours have one meaning, too. In diagrams, blue is a recurrent state, orange
# an attention, green a dense layer and pink a normalisation. In curves, blue is
# a model without attention, orange one with attention beside a recurrence,
# green one with attention alone, and pink one with convolutions.
#
# ## Export
#
# Tokenizer, model and search become one SavedModel: text in, text out.

# %%
version = translator.export(parts.directory.path / "exported")
print(version)

# %% [markdown]
# ## Serve
#
# The SavedModel needs TensorFlow and tensorflow-text, and nothing of this
# package. This is all that a server has to do; chapter 9 also does it in a
# process without Python.

# %%
import tensorflow_text  # noqa: E402, F401 (registers the tokenizer's op)

serve = tf.saved_model.load(str(version)).signatures["serving_default"]
answer = serve(text=tf.constant(texts))["translation"].numpy()
print([text.decode() for text in answer])
assert [text.decode() for text in answer] == translator(texts)

# %% [markdown]
# ## What to take away
#
# A translator is a vocabulary, a model and a search, which picks one token
# after another (chapters 2 and 7). Here they are trained by one call, and
# exported as one file tree that answers text with text. Between the two texts
# lies the model, and in the model the attention, which you have seen in a
# picture. The chapters that follow open each part.
#
# ## Your turn
#
# Each chapter ends with a function that has a hole. You fill it and run the
# cell. Its last line checks what you wrote, and says which rule is broken.
# Then come questions whose answers are numbers.
#
# Here: read a map of attention. `weights` has a row for each word of the target
# and a column for each word of the source. Which word of the source does each
# word of the target look at most?

# %% tags=["alone"]
import your_turn


def looked_at(weights, source):
    """weights [T, S], a list of S words -> a list of T words."""
    ...


your_turn.check(0, looked_at)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def looked_at(weights, source):
#     return [source[position] for position in weights.argmax(axis=1)]
#
#
# your_turn.check(0, looked_at)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots, and run the cell.
#
# - a: A map has 4 rows and 6 columns. What is the sum of all its weights?
# - b: A row has 5 weights. The greatest of them is as small as it can be. How
#   great is it?

# %% tags=["alone"]
your_turn.quiz(0, a=..., b=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: Each row sums to 1, and there are 4 rows.
# - b: All weights of the row are equal then.
#
# ```python
# your_turn.quiz(0, a=4, b=1 / 5)
# ```
#
# </details>
#
# ## Exercises
#
# 1. What does the model make of a sentence that is not a number at all, such as
#    "I like apples"? How can you see that it should not be believed?
#
#    <details><summary>Solution</summary>
#
#    `translator(["I like apples"])` answers with some number: a model
#    that translates has no way to say that it does not know. But it can say
#    how sure it is. `translator.n_best(["I like apples", "twenty-one"])` gives
#    log-probabilities (divided by a power of the length), and that of the
#    first text is far lower.
#
#    ```python
#    (_, unsure), *_ = translator.n_best(["I like apples"])[0]
#    (_, sure), *_ = translator.n_best(["twenty-one"])[0]
#    assert FAST or unsure < sure - 1
#    ```
#
#    </details>
# 2. Train another model, with recurrent networks instead of a Transformer:
#    chapter 3's, `model="rnnsearch"`. Which lines of this chapter change?
#
#    <details><summary>Solution</summary>
#
#    Only that argument and `output`, the folder. The SavedModel has the same
#    signatures, and the code that serves it does not change at all.
#
#    </details>
#
# Next: how a network reads a sequence of any length, in
# [chapter 1](01_recurrence.ipynb).
