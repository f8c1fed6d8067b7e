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
# # 4. Flavours of attention
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/04_flavours_of_attention.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# Chapter 3 grew attention inside a translator: a decoder's state asked, an
# encoder's annotations answered. What is left when the translation is taken
# away? A small function of three tensors, query, key and value, that fits on
# three lines. Its flavours (additive, dot, general, concat, scaled) differ in
# one line only, the score. This chapter writes each flavour by hand and checks
# it against the package's layer. Then it finds out what the one line decides:
# what a score costs, what it can and cannot find, and when it stops learning.
#
# Takes about 1 minute on two cores. It prints what a score costs, and what four
# flavours learned on three tasks from the same examples. It also prints what a
# model learns with and without the factor $1 / \sqrt d$. Pictures are shown
# here and kept in the folder `pictures`.
#
# Two overviews go well with this chapter: Lilian Weng's [Attention?
# Attention!](https://lilianweng.github.io/posts/2018-06-24-attention/) lists
# many more scores, and [Dive into Deep
# Learning](https://d2l.ai/chapter_attention-mechanisms-and-transformers/attention-scoring-functions.html)
# writes the same ones in other frameworks.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import math
import os
import pathlib
import string
import time

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.plotting import drawing
from keras_attention.tokens import END, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")
rng = np.random.default_rng(1)

# %% [markdown]
# ## Query, key, value
#
# Think of a memory of $S$ pairs. Pair $s$ has a *key* $k_s$, by which it is
# found, and a *value* $v_s$, which is what it holds. Somebody comes with a
# *query* $q$. Attention answers in three steps.
#
# 1. Score each key: $e_s = \mathrm{score}(q, k_s)$, one number per pair. High
#    means "this is what I am looking for".
# 2. Turn scores into weights with the softmax:
#    $a_s = \exp(e_s) / \sum_r \exp(e_r)$. They are positive and add up to 1.
# 3. Average the values with these weights: $c = \sum_s a_s v_s$.
#
# The scores are called `scores`, the weights `attention_weights`, the average
# `context`. In chapter 3 the query was the decoder's state $s_{i-1}$, and an
# annotation $h_j$ was key and value at once. Nothing above needs a state or an
# annotation, or words, or an order, or even a network.

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.attention_steps(PICTURES / "04_attention_steps.png")

# %% [markdown]
# Flavours differ in the orange box. For $T$ queries, each step is a line of
# numpy.


# %%
def softmax(scores):
    # Subtracting the greatest score changes nothing but avoids overflow.
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def attend(score, query, key, value):
    """query [T, Dq], key [S, Dk], value [S, Dv] -> [T, Dv], [T, S]."""
    scores = np.array([[score(q, k) for k in key] for q in query])
    attention_weights = softmax(scores)
    context = attention_weights @ value
    return context, attention_weights


# %% [markdown]
# An example to do in your head. The score is the dot product. The query
# $(1, 0)$ meets three keys and scores $\ln 1$, $\ln 2$ and $\ln 5$. The softmax
# undoes the logarithm, so the weights are as $1 : 2 : 5$, that is
# $\frac18, \frac28, \frac58$. The values 8, 80 and 800 then average to
# $1 + 20 + 500 = 521$.

# %%
context, attention_weights = attend(
    score=lambda q, k: q @ k,
    query=np.array([[1.0, 0.0]]),
    key=np.array([[0.0, 3.0], [math.log(2), 1.0], [math.log(5), -2.0]]),
    value=np.array([[8.0], [80.0], [800.0]]),
)
print("weights", attention_weights[0], "context", context[0])
np.testing.assert_allclose(attention_weights, [[1 / 8, 2 / 8, 5 / 8]])
np.testing.assert_allclose(context, [[521.0]])

# %% [markdown]
# ## One line decides: the scores
#
# `attend` takes the score as an argument, and every flavour is a different
# argument:
#
# | flavour | $\mathrm{score}(q, k)$ | learned | paper |
# |---|---|---|---|
# | additive | $v \cdot \tanh(W q + U k)$ | $W, U, v$ | Bahdanau 2014, A.1.2 |
# | dot | $q \cdot k$ | nothing | Luong 2015, 3.1 |
# | general | $q \cdot W k$ | $W$ | Luong 2015, 3.1 |
# | concat | $v \cdot \tanh(W [q; k])$ | $W, v$ | Luong 2015, 3.1 |
# | scaled dot | $q \cdot k / \sqrt{d}$ | nothing | Vaswani 2017, (1) |
#
# (The last column also gives the section or, in brackets, the equation.) $d$ is
# the width of query and key. $[q; k]$ is one vector after the other. The $v$ of
# a score is a learned vector, not a value of the memory. Here they are, written
# by hand. Keras multiplies rows, `x @ kernel`, and the papers multiply columns,
# $W x$: hence the `.T`.


# %%
def additive(query_kernel, key_kernel, score_vector):
    W, U, v = query_kernel.T, key_kernel.T, score_vector[:, 0]
    return lambda q, k: v @ np.tanh(W @ q + U @ k)


def dot():
    return lambda q, k: q @ k


def general(key_kernel):
    W = key_kernel.T
    return lambda q, k: q @ (W @ k)


def concat(query_kernel, key_kernel, score_vector):
    W = np.concatenate([query_kernel, key_kernel]).T
    v = score_vector[:, 0]
    return lambda q, k: v @ np.tanh(W @ np.concatenate([q, k]))


def scaled_dot():
    return lambda q, k: q @ k / math.sqrt(len(q))


# %% [markdown]
# The package has a layer for each: `AdditiveAttention` and
# `MultiplicativeAttention`. Both are subclasses of `ka.layers.Attention`,
# which does steps 2 and 3 and leaves the score to the subclass, as `attend`
# does. The scaled dot is a function, `dot_product_attention`. We give each
# the same random numbers as our lines, in sizes that all differ, so that no
# axis can be confused with another.
#
# Two of the names are one function: a matrix times $[q; k]$ is the sum of two
# smaller products, $W [q; k] = W_1 q + W_2 k$, so concat *is* additive.

# %%
T, S, QUERY_DIM, KEY_DIM, VALUE_DIM, UNITS = 3, 5, 7, 11, 13, 17
query = rng.normal(size=(T, QUERY_DIM))
key = rng.normal(size=(S, KEY_DIM))
value = rng.normal(size=(S, VALUE_DIM))


def check(name, make_score, layer, query, key, value):
    # A layer takes batches: here a batch of one example.
    context, attention_weights = layer(
        query=query[None], key=key[None], value=value[None]
    )
    score = make_score(*layer.get_weights())
    by_hand = attend(score, query, key, value)
    np.testing.assert_allclose(context[0], by_hand[0], atol=1e-5)
    np.testing.assert_allclose(attention_weights[0], by_hand[1], atol=1e-5)
    print(f"{name:9} layer and equation agree")


Multiplicative = ka.layers.MultiplicativeAttention
additive_layer = ka.layers.AdditiveAttention(UNITS)
concat_layer = Multiplicative("concat", units=UNITS)
check("additive", additive, additive_layer, query, key, value)
check("general", general, Multiplicative("general"), query, key, value)
check("concat", concat, concat_layer, query, key, value)
# Without a matrix between them, query and key must have one width.
short_key = key[:, :QUERY_DIM]
check("dot", dot, Multiplicative("dot"), query, short_key, value)

context, attention_weights = ka.layers.dot_product_attention(
    query=query, key=short_key, value=value
)
by_hand = attend(scaled_dot(), query, short_key, value)
np.testing.assert_allclose(context, by_hand[0], atol=1e-5)
np.testing.assert_allclose(attention_weights, by_hand[1], atol=1e-5)

batch = {"query": query[None], "key": key[None], "value": value[None]}
concat_layer.set_weights(additive_layer.get_weights())
assert np.array_equal(concat_layer(**batch)[0], additive_layer(**batch)[0])

# %% [markdown]
# ### A mask
#
# Some pairs of the memory must not be looked at: padding, or, in chapter 5,
# words that are not written yet. A *mask* says which ones may be, with True. It
# enters between score and softmax: where it is False, the score becomes
# $-\infty$, and $\exp(-\infty) = 0$. The weights of the others still add up to
# 1, and what the masked pairs hold makes no difference.

# %%
mask = np.array([True, True, False, True, False])  # [S]
scores = np.array(
    [[q @ k / math.sqrt(len(q)) for k in short_key] for q in query]
)
masked_weights = softmax(np.where(mask, scores, -np.inf))
print(masked_weights.round(2))
context, attention_weights = ka.layers.dot_product_attention(
    query=query, key=short_key, value=value, mask=mask
)
np.testing.assert_allclose(attention_weights, masked_weights, atol=1e-5)
np.testing.assert_allclose(context, masked_weights @ value, atol=1e-5)
assert (masked_weights[:, ~mask] == 0).all()
np.testing.assert_allclose(
    masked_weights @ value, masked_weights[:, mask] @ value[mask]
)

# %% [markdown]
# (A query that may look at nothing has no softmax: $0 / 0$. The package's
# layers give it weights of 0.)
#
# ### Looking ahead: a head is general attention
#
# The Transformer of chapter 5 runs several attentions side by side, each with
# small learned matrices of its own, and joins what they find. Each of them is
# called a *head* (Vaswani et al. 2017, section 3.2.2). A head is no new score.
# It maps queries and keys to a narrow space, of width $d_k$, by two learned
# matrices, and takes the scaled dot there. With rows as vectors:
#
# $$\frac{(q W^Q) \cdot (k W^K)}{\sqrt{d_k}}
#   = q\, \frac{W^Q W^{K\top}}{\sqrt{d_k}}\, k^\top$$
#
# This is Luong's general score, with a matrix that is the product of a tall
# and a wide one: its rank is $d_k$ at most. A head compares a few features of
# query and key instead of all of them, and where $d_k$ is below half of their
# width it saves weights.

# %%
HEADS, HEAD_DIM = 2, 3
layer = ka.layers.MultiHeadAttention(HEADS, HEAD_DIM, use_bias=False)
_, layer_weights = layer(**batch)  # [1, H, T, S]
W_Q, W_K, _, _ = layer.get_weights()
for i in range(HEADS):
    part = slice(i * HEAD_DIM, (i + 1) * HEAD_DIM)
    W = W_Q[:, part] @ W_K[:, part].T / math.sqrt(HEAD_DIM)
    one_head = Multiplicative("general")
    one_head.build((1, T, QUERY_DIM), (1, S, VALUE_DIM), (1, S, KEY_DIM))
    one_head.set_weights([W.T])
    np.testing.assert_allclose(
        one_head(**batch)[1], layer_weights[:, i], atol=1e-5
    )
    assert np.linalg.matrix_rank(W) == HEAD_DIM < min(QUERY_DIM, KEY_DIM)

# %% [markdown]
# ### What they cost
#
# Let all vectors have width $d$, with $d$ units in the additive score, and
# let there be $T$ queries and $S$ keys. We count the weights, and the
# multiplications in all matrix products of the layer's graph, the weighted
# average included.
#
# | flavour | weights | multiplications |
# |---|---|---|
# | dot | $0$ | $2TSd$ |
# | general | $d^2$ | $2TSd + Sd^2$ |
# | additive | $2d^2 + d$ | $2TSd + (S + T) d^2$, and $TSd$ times $\tanh$ |
#
# Additive needs only $Td^2$ more multiplications than general, to map the
# queries (so does a head). It loses time through the $\tanh$ between query and
# key. The dot products of all pairs are one matrix product, which processors
# are built for, and their result has $T \times S$ numbers. The $\tanh$ has to
# be taken for each pair and each unit: $T \times S \times d$ numbers to
# compute, write, read, and keep for the gradient. The clock says so.


# %%
def multiplications(layer, **tensors):
    graph = tf.function(layer).get_concrete_function(**tensors).graph
    return sum(
        op.outputs[0].shape.num_elements() * op.inputs[0].shape[-1]
        for op in graph.get_operations()
        if "MatMul" in op.type
    )


def seconds(layer, **tensors):
    function = tf.function(layer)
    times = []
    for _ in range(3 if FAST else 15):
        start = time.perf_counter()
        function(**tensors)[0].numpy()
        times.append(time.perf_counter() - start)
    return min(times)


T, S, d = 128, 96, 64
expected = {
    "dot": (0, 2 * T * S * d),
    "general": (d * d, 2 * T * S * d + S * d * d),
    "additive": (2 * d * d + d, 2 * T * S * d + (S + T) * d * d),
}
made = {
    "dot": Multiplicative("dot"),
    "general": Multiplicative("general"),
    "additive": ka.layers.AdditiveAttention(d),
}
times = {}
print(f"{'':10}{'weights':>9}{'products':>12}{'ms':>8}")
for name, layer in made.items():
    one = {"query": tf.zeros((1, T, d)), "value": tf.zeros((1, S, d))}
    layer(**one)
    counted = layer.count_params(), multiplications(layer, **one)
    assert counted == expected[name], (name, counted)
    many = {
        "query": tf.random.normal((16, T, d)),
        "value": tf.random.normal((16, S, d)),
    }
    times[name] = seconds(layer, **many)
    parameters, products = counted
    print(f"{name:10}{parameters:9,}{products:12,}{1e3 * times[name]:8.2f}")
if not FAST and not tf.config.list_physical_devices("GPU"):
    assert times["additive"] > 2 * times["dot"]

# %% [markdown]
# This is the reason that Vaswani et al. give for the dot (section 3.2.1). In
# chapter 3 it mattered less: one attention, beside a recurrence that is slow
# anyway, and the keys' part $U k_s$ is computed once for a sentence (the
# layer's `project`). The Transformer of chapter 5 lets every position ask
# every other, in every layer, and there it counts.

# %% [markdown]
# ## Attention is an average
#
# Positive weights that add up to 1: whatever the score, the context is an
# average of the values. It cannot leave them. In each component it lies between
# the least and the greatest value.

# %%
context, _ = ka.layers.AdditiveAttention(UNITS)(**batch)
assert np.all(context[0] <= value.max(axis=0) + 1e-6)
assert np.all(context[0] >= value.min(axis=0) - 1e-6)

# %% [markdown]
# ### At one end: mean pooling
#
# When all scores are equal the softmax gives every key the weight $1/S$, and
# attention is the plain mean. A query of zeros does this to the dot. With a
# mask that leaves out padding it is Keras's `GlobalAveragePooling1D`. So a
# network with attention can do all that one with mean pooling can: it only has
# to learn to ask nothing.

# %%
values = rng.normal(size=(4, 5, 7)).astype("float32")
lengths = np.array([5, 3, 1, 2])
padding_mask = np.arange(5) < lengths[:, None]  # [4, 5], True at real ones
context, attention_weights = Multiplicative("dot")(
    query=np.zeros((4, 1, 7)), value=values, padding_mask=padding_mask
)
pooled = keras.layers.GlobalAveragePooling1D()(values, mask=padding_mask)
np.testing.assert_allclose(context[:, 0], pooled, atol=1e-6)
print(attention_weights[:, 0].numpy().round(2))

# %% [markdown]
# ### At the other end: a look-up
#
# Now make the scores large. Divide them by a *temperature* $\tau$:
# $a_s = \mathrm{softmax}_s(e_s / \tau)$. Hot, $\tau \to \infty$, all scores
# become 0 and the mean comes out. Cold, $\tau \to 0$, the greatest score
# takes everything.
#
# To see the cold end, here is a Python dictionary made of tensors. Its keys
# are German words, each a random vector of length 1; its values are numbers.
# The score is the dot product over the temperature. A subclass of
# `ka.layers.Attention` only has to say so.


# %%
class Dot(ka.layers.Attention):
    """`factor * (query . key)`; the factor is one over the temperature."""

    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def score(self, query, projected_key):
        return ops.matmul(
            self.factor * query, ops.swapaxes(projected_key, 1, 2)
        )


dictionary = {"eins": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5}
words = list(dictionary)
names = rng.normal(size=(len(words), 16))
names /= np.linalg.norm(names, axis=-1, keepdims=True)
numbers = np.array([[float(dictionary[word])] for word in words])


def read(query, temperature):
    """What the dictionary answers to each row of `query`, softly."""
    context, attention_weights = Dot(factor=1 / temperature)(
        query=query[None], key=names[None], value=numbers[None]
    )
    return context[0, :, 0].numpy(), attention_weights[0].numpy()


for temperature in (1000, 1, 0.1, 0.001):
    print(f"temperature {temperature:7}:", read(names, temperature)[0])

# Hot: the mean of the values. Cold: exactly what the dictionary says.
np.testing.assert_allclose(read(names, 1000)[0], 3, atol=0.01)
answers, attention_weights = read(names, 0.001)
assert [int(answer) for answer in answers] == list(dictionary.values())
assert np.array_equal(answers, list(dictionary.values()))
assert np.array_equal(attention_weights, np.eye(5))

between = (names[2] + names[3])[None] / 2
blurred = names[[1]] + 0.05 * rng.normal(size=(1, 16))
print("between drei and vier:", read(between, 0.001)[0])
print("zwei, blurred:", read(blurred, 0.001)[0])
np.testing.assert_allclose(read(between, 0.001)[0], 3.5, atol=0.01)
assert np.array_equal(read(blurred, 0.001)[0], [2])

# %% [markdown]
# At $\tau = 0.001$ the answers are the dictionary's, to the bit: the other
# weights are smaller than the smallest number of float32, and so they are 0.
# What has the soft dictionary got that `dict` has not? It answers to what
# is *near* a key, it blends when in doubt, and it has a gradient. Half way
# between "drei" and "vier", where `dict` raises a `KeyError`, it says 3.5.

# %% tags=["hide-input"]
temperatures = np.geomspace(0.01, 100, 60)
curves = np.array([read(names[[2]], tau)[1][0] for tau in temperatures])
np.testing.assert_allclose(curves[0], np.eye(5)[2], atol=1e-6)
np.testing.assert_allclose(curves[-1], np.full(5, 1 / 5), atol=0.01)

with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, word in enumerate(words):
        axes.semilogx(
            temperatures, curves[:, index], color=drawing.COLORS[index],
            marker=drawing.MARKERS[index], markevery=(index, 10), label=word,
        )  # fmt: skip
    axes.set_xlabel("temperature")
    axes.set_ylabel('weight when asked "drei"')
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "04_temperature.png")
figure

# %% [markdown]
# Read the picture from the left. Cold, "drei" has all the weight: a look-up.
# Hot, each of the five words has a fifth: mean pooling. All attention lives
# between these two, and how large its scores are says where.
#
# **To play with:** [Temperature and
# masks](https://github.com/keras-attention/keras_attention/blob/main/docs/play/temperature.html).
# It has the queries and keys of trained heads, and a slider for the
# temperature. In a clone, open `docs/play/temperature.html` with a browser.

# %% [markdown]
# ## What a score can find
#
# Which flavour is best? That depends on what has to be found, so here are
# three tasks of one shape. A memory holds eight pairs of a capital letter and
# a digit. Four letters are asked for, and the answer is the digit that stands
# beside each:
#
# > memory K 3, B 7, T 1, ..., asked B, answer 7
#
# The letters are *given* vectors, which do not learn. So nothing but the
# attention can solve the task, and we see what each score is able to do.
#
# - **One alphabet.** A letter is a random vector of width 16, and it is asked
#   for by the vector that it has in the memory.
# - **Two alphabets.** Capital letters in the memory are asked for by small
#   ones. A small letter's vector is its capital's, turned by a rotation that
#   nobody tells the models. It is the same in a translator: queries come out of
#   one network and keys out of another.
# - **Numbers.** The letters stand for numbers from $-1$ to 1, evenly spaced,
#   and the vector is the number itself (and zeros).
#
# The last part of every vector is 1. It does the work of a bias, which the
# additive score has not got: $\tanh$ is odd, so without it
# $\mathrm{score}(-q, -k) = -\mathrm{score}(q, k)$, and a pair that matches
# would have a mirror image that does not.

# %%
LETTERS, WIDTH, PAIRS, ASKED = 26, 16, 8, 4


def with_one(vectors):
    vectors = vectors.astype("float32")
    vectors[:, -1] = 1
    return vectors


rotation = np.eye(WIDTH, dtype="float32")
rotation[:-1, :-1] = np.linalg.qr(rng.normal(size=(WIDTH - 1, WIDTH - 1)))[0]
capital = with_one(rng.normal(size=(LETTERS, WIDTH)))
small = capital @ rotation
line = np.zeros((LETTERS, WIDTH))
line[:, 0] = np.linspace(-1, 1, LETTERS)
line = with_one(line)
# Letters for the examination, which no training shows.
unseen = with_one(rng.normal(size=(LETTERS, WIDTH)))

# Vectors in the memory, vectors that ask.
tasks = {
    "one alphabet": (capital, capital),
    "two alphabets": (capital, small),
    "numbers": (line, line),
}
unseen_tasks = {
    "one alphabet": (unseen, unseen),
    "two alphabets": (unseen, unseen @ rotation),
}


def examples(count, key_table, query_table, seed):
    """Inputs and labels of `count` memories with four questions each."""
    rng = np.random.default_rng(seed)
    letters = np.tile(np.arange(LETTERS), (count, 1))
    letters = rng.permuted(letters, axis=1)[:, :PAIRS]
    digits = np.tile(np.arange(1, 10), (count, 1))
    digits = rng.permuted(digits, axis=1)[:, :PAIRS]
    asked = rng.integers(PAIRS, size=(count, ASKED))
    inputs = {
        "query": query_table[np.take_along_axis(letters, asked, axis=1)],
        "key": key_table[letters],
        "value": np.eye(WIDTH, dtype="float32")[digits],
    }
    return inputs, np.take_along_axis(digits, asked, axis=1).astype("int32")


inputs, labels = examples(1, *tasks["two alphabets"], seed=0)
for name, array in inputs.items():
    print(f"{name:6}", array.shape)
print("labels", labels)

# %% [markdown]
# A digit as a value is a row of zeros with a single 1. (Digits begin at 1,
# since the package's losses take label 0 for padding.) The context is then a
# distribution over digits, and a dense layer that starts as the identity
# makes logits of it. Digits in a memory are all different, so a model that does
# not know where to look is right in 1 of 8 cases.
#
# All four flavours get the same examples, the same optimizer and the same 400
# steps. These are twelve trainings, of some seconds each, which print nothing
# before the table. (Concat is additive, and a head is a kind of general.)


# %%
def make_model(attention, maps=None, width=WIDTH):
    """Asks the memory; the maps, if any, come before the score."""
    query = keras.Input((ASKED, width), name="query")
    key = keras.Input((PAIRS, width), name="key")
    value = keras.Input((PAIRS, WIDTH), name="value")
    map_query, map_key = maps or (lambda x: x, lambda x: x)
    context, _ = attention(
        query=map_query(query), key=map_key(key), value=value
    )
    readout = keras.layers.Dense(WIDTH, kernel_initializer="identity")
    inputs = {"query": query, "key": key, "value": value}
    return keras.Model(inputs, readout(context))


BATCH_SIZE = 64
STEPS = 2 if FAST else 20


def train(model, tables, optimizer, epochs):
    """Trains, and returns accuracies after each epoch of `STEPS` steps."""
    model.compile(
        optimizer,
        loss=ka.training.losses.TokenCrossEntropy(),
        metrics=[ka.training.metrics.TokenAccuracy()],
        # The model is tiny: calls would cost more than what they compute.
        steps_per_execution=STEPS,
        jit_compile=False,
    )
    history = model.fit(
        *examples(BATCH_SIZE * STEPS, *tables, seed=2),
        batch_size=BATCH_SIZE,
        epochs=1 if FAST else epochs,
        validation_data=examples(512, *tables, seed=3),
        validation_batch_size=512,
        verbose=0,
    )
    return history.history["val_accuracy"]


flavours = {
    "dot": lambda: Multiplicative("dot"),
    "scaled dot": lambda: Dot(factor=1 / math.sqrt(WIDTH)),
    "general": lambda: Multiplicative("general"),
    "additive": lambda: ka.layers.AdditiveAttention(units=64),
}
layers, accuracy, on_unseen = {}, {}, {}
for task in tasks:
    for name, make_attention in flavours.items():
        keras.utils.set_random_seed(1)
        layers[task, name] = make_attention()
        model = make_model(layers[task, name])
        optimizer = keras.optimizers.Adam(1e-2)
        accuracy[task, name] = train(model, tasks[task], optimizer, 20)[-1]
        print(f"{task}, {name}: {accuracy[task, name]:.2f}")
        if task in unseen_tasks:
            result = model.evaluate(
                *examples(512, *unseen_tasks[task], seed=4),
                batch_size=512,
                verbose=0,
                return_dict=True,
            )
            on_unseen[task, name] = result["accuracy"]

print("\nAccuracy on new memories, and (in brackets) of unseen letters")
print(" " * 12 + "".join(f"{task:>18}" for task in tasks))
for name in flavours:
    row = f"{name:12}"
    for task in tasks:
        other = on_unseen.get((task, name))
        other = "" if other is None else f" ({other:.2f})"
        row += f"{f'{accuracy[task, name]:.2f}{other}':>18}"
    print(row)
if not FAST:
    for name in flavours:
        assert accuracy["one alphabet", name] > 0.97, name
    for name in ("general", "additive"):
        assert accuracy["two alphabets", name] > 0.97, name
        # A rule more than a table: it serves letters never seen.
        assert on_unseen["two alphabets", name] > 0.5, name
        of_dot = on_unseen["one alphabet", "dot"]
        assert on_unseen["one alphabet", name] < of_dot - 0.05, name
    for name in ("dot", "scaled dot"):
        assert on_unseen["one alphabet", name] > 0.95, name
        assert accuracy["two alphabets", name] < 0.25, name

# %% [markdown]
# With one alphabet every flavour wins, and dot wins without having learned how
# to look: its answers for unseen letters are as good, while the two flavours
# that have to learn what "equal" means do less well there. With two alphabets
# dot is about as good as a guess, and no training can help it, as its score has
# nothing to train. General and additive learn the map between the spaces, and
# since a map is more than a table of 26 letters, it serves most unseen letters
# as well. The picture shows where they look: rows are the questions, columns
# the memory, and a frame marks the right pair.

# %%
in_memory, asked = "KBTWAQZD", "btka"
places = [string.ascii_uppercase.index(letter) for letter in in_memory]
questions = [string.ascii_lowercase.index(letter) for letter in asked]
right = [places.index(letter) for letter in questions]
shown = ("dot", "general", "additive")
attention_weights = np.concatenate(
    [
        layers["two alphabets", name](
            query=small[questions][None], value=capital[places][None]
        )[1]
        for name in shown
    ]
)  # [3, asked, memory]
at_right = attention_weights[:, np.arange(ASKED), right]
print("dot's weight on the right letters", at_right[0].round(2))
print("and its greatest weights", attention_weights[0].max(axis=-1).round(2))
# Dot learns nothing, so this holds without training.
assert np.all(attention_weights[0].max(axis=-1) > 0.7)
assert np.all(at_right[0] < 0.1)
if not FAST:
    assert np.all(at_right[1:] > 0.5)
ka.plotting.attention_heat_map(
    list(in_memory),
    list(asked),
    attention_weights,
    path=PICTURES / "04_where_they_look.png",
    names=shown,
    links=[(place, row) for row, place in enumerate(right)],
    axis_names=("memory", "questions"),
)

# %% [markdown]
# Dot is sure, and wrong: it looks wherever the product of two unrelated vectors
# happens to be large. (All four rows agree on Z, one of the two longest
# vectors; other questions find other letters.) So dot needs query and key to
# live in one space. Luong's dot translates well all the same (table 4 of the
# paper), because there both networks are trained, and they learn to meet. In
# exercise 2 you turn the keys yourself.
#
# ### Numbers, and a limit of the dot
#
# Numbers are another matter: only additive finds them. The reason is
# geometry. For a given query, dot and general are *linear* in the key,
# $q \cdot W k$. On a line, a linear function has its maximum at an end: the
# greatest weight falls on the greatest or on the least number of the memory,
# whatever is asked for and whatever $W$ is. The score of additive attention is
# a sum of $\tanh$, and two steps, one up and one down, make a bump. We ask the
# trained layers for all 26 numbers, with all 26 in the memory:

# %%
everything = {"query": line[None], "key": line[None], "value": line[None]}
peaks = {
    name: np.array(layers["numbers", name](**everything)[1][0])
    for name in flavours
}  # [asked, memory] each
for name in ("dot", "scaled dot", "general"):
    ends = peaks[name][:, [0, -1]].max(axis=-1)
    assert np.all(ends >= peaks[name].max(axis=-1) - 1e-6), name
found = peaks["additive"].argmax(axis=-1) == np.arange(LETTERS)
print("additive finds", found.sum(), "of", LETTERS)
if not FAST:
    assert found.sum() >= 22

number = 16  # The one to ask for: 0.28, neither end nor middle.
assert round(float(line[number, 0]), 2) == 0.28
with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, name in ((2, "general"), (3, "additive")):
        axes.plot(
            line[:, 0], peaks[name][number], color=drawing.COLORS[index],
            marker=drawing.MARKERS[index], label=name,
        )  # fmt: skip
    axes.axvline(line[number, 0], color=drawing.INK, linewidth=1, linestyle=":")
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.set_xlabel("number in the memory")
    axes.set_ylabel("attention weight")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "04_numbers.png")
figure

# %% [markdown]
# The dotted line is the number asked for, 0.28. General can only slope towards
# an end.
#
# How well can one do with the ends alone? The number asked for is the greatest
# of the eight, or the least, with a probability that counting gives; where both
# are improbable, a guess (1 of 8) is better. Averaged over the 26 numbers this
# comes to 0.297, and that is about the most that dot and general reach.

# %%
# The chance that number i is the greatest: the other seven are below it.
greatest = np.array([math.comb(i, 7) / math.comb(25, 7) for i in range(26)])
ceiling = np.maximum(greatest, greatest[::-1]).clip(min=1 / 8).mean()
print(f"the best with ends and guesses: {ceiling:.3f}")
assert round(ceiling, 3) == 0.297
if not FAST:
    for name in ("dot", "scaled dot", "general"):
        assert accuracy["numbers", name] < ceiling + 0.04, name
    assert accuracy["numbers", "additive"] > 0.95

# %% [markdown]
# It is a limit of the *vectors*, however, as much as of the score. In more
# dimensions the maximum of a linear function lies on a corner of the convex
# hull of the keys, never inside it, and keys on a circle or a sphere are all
# corners. Letters of 16 random parts are nearly that. Exercise 3 gives the
# numbers one more part and lets general win.

# %% [markdown]
# ## Why divide by $\sqrt{d}$
#
# Nobody sets a temperature, so who decides how large the scores are? For dot
# products, the width does. Let the parts of $q$ and $k$ be independent, with
# mean 0 and variance 1. Then $q \cdot k = \sum_{i=1}^d q_i k_i$ is a sum of
# $d$ terms, each with mean 0 and variance $1 \cdot 1 = 1$, so its variance is
# $d$ (Vaswani et al. 2017, footnote 4). Scores grow like $\sqrt d$, and the
# growth means nothing: the wider the vectors, the colder the softmax. Dividing
# by $\sqrt d$ undoes exactly this.

# %%
widths = [1, 4, 16, 64, 256, 1024]
print(f"{'d':>5}{'q.k':>10}{'scaled':>9}   (variances)")
for d in widths:
    q, k = rng.normal(size=(2, 10_000, d)).astype("float32")
    products = np.sum(q * k, axis=-1)
    scaled = products / math.sqrt(d)
    print(f"{d:5}{products.var():10.2f}{scaled.var():9.2f}")
    np.testing.assert_allclose(products.var(), d, rtol=0.1)
    np.testing.assert_allclose(scaled.var(), 1, rtol=0.1)

# %% [markdown]
# Is a cold softmax bad? For the answer, no: a look-up may be just what is
# wanted. For learning, yes. The derivative of the weights with respect to the
# scores is
#
# $$\frac{\partial a_s}{\partial e_r} = a_s (\delta_{sr} - a_r), \qquad
# \delta_{sr} = 1 \text{ if } s = r \text{ else } 0,$$
#
# and the sum of its diagonal, $\sum_s a_s (1 - a_s) = 1 - \sum_s a_s^2$,
# tells how much the weights can move at all. It is $1 - 1/S$ for equal
# weights and 0 for a look-up: a softmax that is certain, rightly or wrongly,
# passes no gradient to its scores. First the formula, against differences:

# %%
scores, step = rng.normal(size=8), 1e-5
a = softmax(scores)
jacobian = a[:, None] * (np.eye(8) - a[None, :])
differences = np.stack(
    [
        (softmax(scores + step * e) - softmax(scores - step * e)) / (2 * step)
        for e in np.eye(8)
    ],
    axis=-1,
)
np.testing.assert_allclose(jacobian, differences, atol=1e-8)
np.testing.assert_allclose(np.trace(jacobian), 1 - np.sum(a**2))

# %% [markdown]
# Then we measure this sum for random queries, with sixteen random keys for
# each, and take the median over the queries, so that the line shows a typical
# one.


# %%
def gradient_left(attention_weights):
    """The median of `1 - sum_s a_s^2` over rows of weights."""
    return np.median(1 - np.sum(np.square(attention_weights), axis=-1))


NUM_KEYS = 16
typical = []
for d in widths:
    q = rng.normal(size=(500, 1, d))
    k = rng.normal(size=(500, NUM_KEYS, d))
    scores = np.sum(q * k, axis=-1)  # [500, NUM_KEYS]
    typical.append(
        [
            gradient_left(softmax(scores)),
            gradient_left(softmax(scores / math.sqrt(d))),
        ]
    )
typical = np.array(typical)
print("d, plain, scaled")
for d, (plain, scaled) in zip(widths, typical, strict=True):
    print(f"{d:5} {plain:.6f} {scaled:.3f}")
assert np.all(typical[:, 1] > 0.8)
assert typical[-1, 0] < 0.001

with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, name in enumerate(("plain", "divided by the root of d")):
        axes.loglog(
            widths, typical[:, index], color=drawing.COLORS[index],
            marker=drawing.MARKERS[index], label=name,
        )  # fmt: skip
    axes.set_xticks(widths, [str(d) for d in widths])
    axes.minorticks_off()
    axes.set_xlabel("width $d$")
    axes.set_ylabel("gradient left by the softmax")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "04_saturation.png")
figure

# %% [markdown]
# With the division by $\sqrt d$, the width makes no difference. Without it,
# less than a thousandth of the gradient is left for a typical query of
# width 1024.
#
# Does it matter in training? Two alphabets again, but wide ones. Letters are
# random vectors of width 256, and a capital and its small letter have nothing
# in common. Queries and keys each go through a learned map before the dot. In
# each pair of runs all but the factor is the same. There are two pairs, for two
# optimizers. (A smaller first kernel would make the same first scores. The
# factor does more: each later step, too, moves the scores less.)

# %%
WIDE = 256
wide_letters = rng.normal(size=(2, LETTERS, WIDE)).astype("float32")
OPTIMIZERS = {
    "Adam": lambda: keras.optimizers.Adam(1e-3),
    "SGD": lambda: keras.optimizers.SGD(1.0),
}
FACTORS = {"plain": 1.0, "scaled": 1 / math.sqrt(WIDE)}
wide_inputs, _ = examples(512, *wide_letters, seed=3)
left_at_start, wide_curves = {}, {}
for name, factor in FACTORS.items():
    for choice, make_optimizer in OPTIMIZERS.items():
        keras.utils.set_random_seed(1)
        maps = [
            keras.layers.Dense(
                WIDE, use_bias=False, kernel_initializer="lecun_normal"
            )
            for _ in range(2)
        ]
        attention = Dot(factor)
        model = make_model(attention, maps, width=WIDE)
        _, attention_weights = attention(
            query=maps[0](wide_inputs["query"]),
            key=maps[1](wide_inputs["key"]),
            value=wide_inputs["value"],
        )
        left_at_start[name] = gradient_left(attention_weights)
        wide_curves[name, choice] = train(
            model, wide_letters, make_optimizer(), epochs=10
        )
        print(f"{name}, {choice}: {wide_curves[name, choice][-1]:.2f}")

for name, left in left_at_start.items():
    print(f"{name}: gradient left before training {left:.3f}")
assert left_at_start["plain"] < 0.05 < 0.7 < left_at_start["scaled"]
print(f"{'accuracy after steps':24}{5 * STEPS:5}{10 * STEPS:7}")
for (name, choice), curve in wide_curves.items():
    half = curve[(len(curve) - 1) // 2]
    print(f"{name:8}{choice:16}{half:5.2f}{curve[-1]:7.2f}")
if not FAST:
    for choice in OPTIMIZERS:
        assert wide_curves["scaled", choice][0] > 0.95, choice
        assert wide_curves["plain", choice][-1] < 0.98, choice
        for plain, scaled in zip(
            wide_curves["plain", choice],
            wide_curves["scaled", choice],
            strict=True,
        ):
            assert plain < scaled, choice

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.subplots()
    for color, name in zip(drawing.COLORS, FACTORS, strict=False):
        for marker, choice in zip(drawing.MARKERS, OPTIMIZERS, strict=False):
            curve = wide_curves[name, choice]
            axes.plot(
                STEPS * np.arange(1, len(curve) + 1), curve, color=color,
                marker=marker, linewidth=1.6, label=f"{name}, {choice}",
            )  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("training steps")
    axes.set_ylabel("accuracy")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "04_scaled_training.png")
figure

# %% [markdown]
# With each optimizer the scaled line, in orange, is above the plain one. With
# scaling, both are nearly always right at the first measurement, after 20 steps
# (the circles lie under the squares); without it, neither is after 200. A
# likely reason: a question on which the softmax, by the chance of the first
# weights, is certain and wrong gets next to no gradient and stays as it is. (We
# deliberately took letters that have nothing in common, so that a question
# teaches little about others.)

# %% [markdown]
# ## Before the step or after it: Luong's decoder
#
# The score is one choice, the place of attention in a decoder another. Chapter
# 3's decoder looks *before* its step: the old state asks, and what it finds
# goes into the GRU. Luong et al. (2015, section 3) let the decoder step first
# and look *afterwards*. The new state $h_t$ has read $y_{t-1}$. It asks the
# encoder's states $\bar h_s$, with any of the scores above. A dense layer joins
# the query and what was found into the *attention vector* $\tilde h_t$:
#
# $$
# \begin{aligned}
# h_t &= \mathrm{LSTM}(h_{t-1},\, [E y_{t-1};\, \tilde h_{t-1}]) \\
# \alpha_t &= \mathrm{softmax}(\mathrm{score}(h_t, \bar h)), \qquad
#   c_t = \textstyle\sum_s \alpha_{ts} \bar h_s \\
# \tilde h_t &= \tanh(W_c\, [c_t;\, h_t]) \\
# p(y_t) &= \mathrm{softmax}(W_s \tilde h_t)
# \end{aligned}
# $$
#
# The LSTM reads $\tilde h_{t-1}$ beside the token. The paper calls this **input
# feeding** (section 3.3). Without it, what the decoder has found would reach
# its next step only through the one token that was written. Chapter 3's context
# is in the state anyway.
#
# `ka.models.Luong` is this model, with as many layers of LSTMs as one likes, a
# bias in the last line, and the general score divided by the width:
# $\mathrm{score}(h_t, \bar h_s) = h_t \cdot W_a \bar h_s / d$. (The layer does
# not divide, nor does the model divide dot or concat. The documentation of
# `ka.models.Luong` says why: it is for Adam.) The encoder's LSTMs read
# forwards, and the decoder's start from their last states, layer by layer, as
# in chapter 2. $\bar h_s$ and $h_t$ are the outputs of the last layers.
#
# Here is the model's second step by hand (in the first, $\tilde h_0$ is 0):

# %%
units = 8
luong = ka.models.Luong(20, embedding_dim=6, units=units, num_layers=1)
luong.build()
draw = np.random.default_rng(6).normal  # Instead of a training.
luong.set_weights([draw(size=weight.shape) for weight in luong.weights])
memory = luong.encode(np.array([[5, 9, 7, END]]))
_, state, _ = luong.step(np.array([START]), memory, luong.initial_state(memory))
logits, after, attention_weights = luong.step(np.array([5]), memory, state)


def sigmoid(x):
    """Between 0 and 1, as a gate."""
    return 1 / (1 + np.exp(-x))


W_x, W_h, b = luong.decoder[0].get_weights()
W_score, W_c = (
    layer.get_weights()[0]
    for layer in (luong.attention, luong.attention_projection)
)
embedding = luong.target_embedding.get_weights()[0][5]
fed = np.array(state["attention_vector"])[0]
h, cell = (np.array(one)[0] for one in state["layers"][0])
i, f, g, o = np.split(
    np.concatenate([embedding, fed]) @ W_x + h @ W_h + b, 4
)  # Gates and candidate of chapter 1's LSTM.
cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
h = sigmoid(o) * np.tanh(cell)
annotations = np.array(memory["values"])[0]
# "general", the model's default, divided by its width.
alpha = softmax(annotations @ W_score @ h / units)
attention_vector = np.tanh(np.concatenate([alpha @ annotations, h]) @ W_c)
W_s, b_s = luong.output_projection.get_weights()

assert np.abs(fed).max() > 0.1 and alpha.max() > 1.3 * alpha.min()
np.testing.assert_allclose(attention_weights[0], alpha, atol=1e-5)
np.testing.assert_allclose(
    after["attention_vector"][0], attention_vector, atol=1e-5
)
np.testing.assert_allclose(logits[0], attention_vector @ W_s + b_s, atol=1e-5)

# %% [markdown]
# ## A feed-forward network is attention, too
#
# Between its attentions the Transformer has feed-forward networks of two
# dense layers (Vaswani et al. 2017, equation 2). With rows as vectors:
#
# $$\mathrm{FFN}(x) = \mathrm{act}(x W_1 + b_1)\, W_2 + b_2$$
#
# Column $j$ of $W_1$ is as wide as $x$, and $x W_1$ is the dot product of $x$
# with each column. So call $x$ the query, the columns of $W_1$ keys $k_j$, and
# the rows of $W_2$ values $v_j$:
#
# $$\mathrm{FFN}(x) = \sum_j \mathrm{act}(x \cdot k_j + b_{1j})\, v_j + b_2$$
#
# Scores, weights, weighted sum: the same three steps. Two things differ. The
# softmax gives way to a function of each score alone, so weights do not
# compete and the sum is no average. And keys and values are parameters: the
# memory is the same whatever the input, learned in training instead of read
# from a sentence. The products are the same two, so the outputs agree to the
# bit:

# %%
DIM, NUM_KEYS = 8, 32
x = rng.normal(size=(20, DIM)).astype("float32")
expand = keras.layers.Dense(
    NUM_KEYS, activation="relu", bias_initializer="random_normal"
)
contract = keras.layers.Dense(DIM, bias_initializer="random_normal")
outputs = contract(expand(x))

key = ops.transpose(expand.kernel)  # [NUM_KEYS, DIM], a key a row
value = ops.convert_to_tensor(contract.kernel)  # [NUM_KEYS, DIM]
scores = ops.matmul(x, ops.transpose(key)) + expand.bias
attention_weights = ops.relu(scores)  # Elsewhere: a softmax.
context = ka.layers.weighted_sum(attention_weights, value) + contract.bias
assert np.array_equal(context, outputs)

# The package's feed-forward layer is these two dense layers.
feed_forward = ka.layers.FeedForward(NUM_KEYS)
feed_forward.build(x.shape)
feed_forward.set_weights(expand.get_weights() + contract.get_weights())
assert np.array_equal(feed_forward(x), outputs)

# With a softmax for the ReLU it is the package's dot attention.
expand = keras.layers.Dense(NUM_KEYS, activation="softmax", use_bias=False)
contract = keras.layers.Dense(DIM, use_bias=False)
outputs = contract(expand(x))
context, _ = Multiplicative("dot")(
    query=x[None],
    key=ops.transpose(expand.kernel)[None],
    value=ops.convert_to_tensor(contract.kernel)[None],
)
np.testing.assert_allclose(context[0], outputs, atol=1e-5)

# %% [markdown]
# Read this way, attention is a network of two layers whose weights are made
# anew from each input, and a feed-forward network is an attention to things
# that are always true. (Andrej Karpathy, in the note with the letter of chapter
# 3, names them the other way round: the weights of the first layer are his
# queries, and the input is his keys. The products are the same.) Geva et al.
# (2021) looked into trained Transformers and found much of that: keys of
# feed-forward layers that answer to patterns of text, with values that raise
# the words which tend to follow.

# %% [markdown]
# ## What readers ask
#
# > **Is a key a word?** It is a vector that is made of a word. Key and value of
# > one word may be two vectors: how it wants to be found, and what it says when
# > it is found.
#
# > **Why a softmax, and not the scores divided by their sum?** Scores may be
# > negative, and their sum may be 0. The exponential makes all of them
# > positive. It also makes differences of scores into ratios of weights, so
# > that adding a number to all scores changes nothing.
#
# > **Why the square root of $d$, and not $d$?** The usual size of a number is
# > the root of its variance. The variance of $q \cdot k$ is $d$, so its usual
# > size is $\sqrt d$. Divided by $d$, scores would shrink as $1 / \sqrt d$, and
# > a wide model would begin with a mean over all words.
#
# > **Is $\sqrt d$ a temperature?** It is: one that is fixed by the width. A
# > trained model may still make its queries longer, and so its softmax colder.

# %% [markdown]
# ## What to take away
#
# - Attention is three lines: score each key, take the softmax, average the
#   values. Flavours differ in the score alone.
# - Dot is cheap and learns nothing, so query and key must share a space
#   already. General, and so a head, learns the linear map between two spaces.
#   Additive also learns what is not linear, and pays with time and memory.
# - Small scores make a mean and large ones a look-up. As the variance of
#   $q \cdot k$ is $d$, dividing by $\sqrt d$ keeps the softmax where it can
#   learn.
# - A decoder may look before its step or after it; what it finds afterwards is
#   lost to later steps, unless it is fed back.
# - Two dense layers with an activation between them are attention, too, to a
#   memory that does not depend on the input.
#
# ## Your turn
#
# Write scaled dot-product attention for $T$ queries at once, without a loop.
# Three rules hold: the scores are scaled, masked keys have no weight, and the
# weights of each query sum to 1.

# %% tags=["alone"]
import your_turn


def scaled_attention(query, key, value, mask):
    """query [T, d], key [S, d], value [S, Dv], mask [S] -> context [T, Dv]."""
    masked_scores = ...  # [T, S]
    look = ...  # The weights [T, S].
    return look @ value


your_turn.check(4, scaled_attention)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def scaled_attention(query, key, value, mask):
#     masked_scores = query @ key.T / np.sqrt(query.shape[1])
#     masked_scores = np.where(mask, masked_scores, -np.inf)
#     look = np.exp(masked_scores)
#     look = look / look.sum(axis=1, keepdims=True)
#     return look @ value
#
#
# your_turn.check(4, scaled_attention)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: The query is $(0, 0)$, the score is the dot, and the three values are 8,
#   80 and 800. What is the context?
# - b: $q$ and $k$ have 64 parts each, which are independent, with mean 0 and
#   variance 1. What is the standard deviation of $q \cdot k$?
# - c: Queries have a width of 6, keys of 10. How many weights has general
#   attention?

# %% tags=["alone"]
your_turn.quiz(4, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: All scores are 0, so the context is the mean of the values.
# - b: The variance is 64.
# - c: Its matrix maps keys to queries.
#
# ```python
# your_turn.quiz(4, a=(8 + 80 + 800) / 3, b=64**0.5, c=6 * 10)
# ```
#
# </details>
#
# ## Exercises
#
# 1. The query of the very first example is doubled to $(2, 0)$. Which weights
#    and which context come out? Which temperature does the same?
#
# <details><summary>Solution</summary>
#
# All scores are doubled, to $\ln 1$, $\ln 4$ and $\ln 25$, so the weights are
# as $1 : 4 : 25$, and the context is
# $(8 + 4 \cdot 80 + 25 \cdot 800) / 30 = 677.6$. A temperature of $1/2$
# doubles the scores, too.
#
# ```python
# context, attention_weights = attend(
#     score=lambda q, k: q @ k,
#     query=np.array([[2.0, 0.0]]),
#     key=np.array([[0.0, 3.0], [math.log(2), 1.0], [math.log(5), -2.0]]),
#     value=np.array([[8.0], [80.0], [800.0]]),
# )
# expected = [[1 / 30, 4 / 30, 25 / 30]]
# np.testing.assert_allclose(attention_weights, expected)
# print(context)  # 677.6
# ```
#
# </details>
#
# 2. Without any training, set the kernel of a general layer so that it treats
#    the two alphabets exactly as dot treats one.
#
# <details><summary>Solution</summary>
#
# A small letter is $q R$ with $R$ the rotation, and the layer computes
# $q R \cdot k M$ with $M$ its kernel (keys are rows). Turning the keys as
# well, $M = R$, gives $q R \cdot k R = q \cdot k$, since a rotation leaves
# dot products as they are.
#
# ```python
# layer = Multiplicative("general")
# layer.build((1, ASKED, WIDTH), (1, PAIRS, WIDTH))
# layer.set_weights([rotation])
# turned = layer(query=small[None], value=capital[None])[1]
# straight = Multiplicative("dot")(query=capital[None], value=capital[None])[1]
# np.testing.assert_allclose(turned, straight, atol=1e-4)
# ```
#
# </details>
#
# 3. Write each number $x$ as $(x, x^2, 1)$. Find a $W$ with which general
#    attention gives the greatest weight to the number asked for, whichever
#    numbers are in the memory.
#
# <details><summary>Solution</summary>
#
# We want $-(x - y)^2 = -x^2 + 2xy - y^2$, and every term is a part of the
# query $(x, x^2, 1)$ times a part of the key $(y, y^2, 1)$. The term $-x^2$
# is the same for all keys, so the softmax does not see it and we could leave
# it out. On a parabola all points are corners.
#
# ```python
# x = np.linspace(-1, 1, LETTERS)
# points = np.stack([x, x**2, np.ones_like(x)], axis=1)
# W = np.array([[2.0, 0, 0], [0, 0, -1.0], [0, -1.0, 0]])
# scores = np.array([[general(W.T)(q, k) for k in points] for q in points])
# np.testing.assert_allclose(scores, -((x[:, None] - x) ** 2), atol=1e-12)
# assert np.array_equal(scores.argmax(axis=-1), np.arange(LETTERS))
# ```
#
# </details>
#
# 4. The parts of $q$ and $k$ have variance 1, but their mean is 1 instead
#    of 0. What are the mean and the variance of $q \cdot k$, and how much of
#    them does the softmax see?
#
# <details><summary>Solution</summary>
#
# Each term has the mean $1 \cdot 1 = 1$ and the mean square
# $2 \cdot 2 = 4$, so its variance is $4 - 1 = 3$. The sum of $d$ terms has
# mean $d$ and variance $3d$. Of $3d$, $d$ lies between queries, which the
# softmax does not see: for one query the mean is $\sum_i q_i$ for all keys
# alike. Among the keys of one query the variance is $\sum_i q_i^2$, about
# $2d$. So the mean of the scores does no harm. The mean of $q$ does: it makes
# the softmax colder.
#
# ```python
# d = 256
# q, k = 1 + rng.normal(size=(2, 10_000, d))
# products = np.sum(q * k, axis=-1)
# print(products.mean() / d, products.var() / d)  # about 1 and 3
# among = [np.var(k @ one_query) / d for one_query in q[:50]]
# print(np.mean(among))  # about 2
# scores = k[:8] @ q[0]
# np.testing.assert_allclose(softmax(scores - q[0].sum()), softmax(scores))
# ```
#
# </details>
#
# Next, in [chapter 5](05_transformer.ipynb): a sequence asks itself. With
# scaled dots, several heads and the feed-forward network of this chapter, the
# recurrence can go.
