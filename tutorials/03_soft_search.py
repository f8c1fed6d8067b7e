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
# # 3. Soft search: learning where to look
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/03_soft_search.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# A sentence crammed into one vector gets lost as it grows: that was the end
# of chapter 2. The way out is to keep a vector for every word of the source
# and to let the decoder choose among them while it writes. But which one
# should it look at, and when? We follow the path of the inventor: first two
# cursors that move in step, which is a rule, then a search that is learned,
# which is attention.
#
# Takes about 4 minutes on two cores. It prints how many translations by three
# kinds of model are right for each length of the source, and how well attention
# found out which word comes from which, without ever being told. Pictures are
# shown here and kept in the folder `pictures`.
#
# Others tell it well, too. [TensorFlow's
# tutorial](https://www.tensorflow.org/text/tutorials/nmt_with_attention) trains
# such a translator from Spanish, Jay Alammar [animates its
# steps](https://jalammar.github.io/visualizing-neural-machine-translation-mechanics-of-seq2seq-models-with-attention/),
# and [Dive into Deep
# Learning](https://d2l.ai/chapter_attention-mechanisms-and-transformers/bahdanau-attention.html)
# has the textbook's version.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import itertools
import math
import os
import pathlib

import keras
import numpy as np
import phrase_links
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.data.embedded import phrases
from keras_attention.tokens import CONTROL_TEXTS, END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)

# %% [markdown]
# ## Two cursors
#
# Dzmitry Bahdanau has told how attention came about, in a letter that Andrej
# Karpathy [published](https://x.com/karpathy/status/1864023344435380613) in
# December 2024. As an intern in Montreal he was sceptical of cramming a
# sequence of words into a vector. He thought of two cursors, one that moves
# through the source and one that moves through the target. Nobody tells the
# model how they move, so it would have had to sum over all possible movements.
# (Kyunghyun Cho saw that this was the RNN transducer of Graves, 2012.) There
# was too little time for that, so he tried something simpler: both cursors move
# at the same time, in step. He calls it hard-coded diagonal attention, and says
# that it sort of worked.
#
# In symbols: a source of $S$ tokens, a target of $T$ tokens, a vector $h_j$
# for each source token $j$. When token $i$ of the target is due, the decoder
# receives a *context* $c_i$, a weighted sum of the source's vectors:
#
# $$c_i = \sum_j \alpha_{ij} h_j, \qquad
#   \alpha_{ij} = \begin{cases}
#     1 & \text{if } j = \min(i, S) \\
#     0 & \text{otherwise}
#   \end{cases}$$
#
# The cursor of the source waits at the end, if the target is longer. The
# weights $\alpha_{ij}$ of all $i$ and $j$ form a matrix, and this one is a
# diagonal line. (The text counts from 1, as the paper does, Python from 0.)


# %%
def diagonal(T, S):
    """alpha: both cursors move in step; float [T, S]."""
    alpha = np.zeros((T, S))
    for i in range(T):
        alpha[i, min(i, S - 1)] = 1
    return alpha


print(diagonal(5, 3).astype(int))
assert (diagonal(4, 4) == np.eye(4)).all()

# %% [markdown]
# What can a model do with nothing but such cursors? Take $h_j$ to be no more
# than the embedding of symbol $j$, so that nothing else mixes positions: no
# recurrence. Give the model two tasks on random sequences of eight symbols out
# of ten: to **copy** the sequence, and to **reverse** it.

# %%
SYMBOLS, S = 10, 8
generator = np.random.default_rng(1)
sequences = generator.integers(0, SYMBOLS, (500 if FAST else 4000, S))
fresh = generator.integers(0, SYMBOLS, (4000, S))
TASKS = {
    "copy": lambda x: x,
    "reverse": lambda x: x[:, ::-1],
}


def two_cursors():
    """Symbols [B, S] -> logits [B, S, SYMBOLS]; alpha is fixed."""
    x = keras.Input((S,), dtype="int32")
    h = keras.layers.Embedding(SYMBOLS, 32)(x)
    c = ka.layers.weighted_sum(diagonal(S, S), h)  # alpha @ h
    return keras.Model(x, keras.layers.Dense(SYMBOLS)(c))


def learn(model, task):
    """Loss and accuracy on fresh sequences, after training."""
    model.compile(
        keras.optimizers.Adam(1e-2),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        sequences,
        task(sequences),
        batch_size=64,
        epochs=1 if FAST else 6,
        verbose=0,
    )
    return model.evaluate(fresh, task(fresh), verbose=0)


results = {}
for name, task in TASKS.items():
    results[name] = learn(two_cursors(), task)
    loss, accuracy = results[name]
    print(f"{name:8} loss {loss:.3f}, accuracy {accuracy:.3f}")
print(f"log {SYMBOLS} = {np.log(SYMBOLS):.3f}")

# %% [markdown]
# Copying is solved: the cursor stands where the answer is. Reversing is not
# just harder, it is impossible. When the first symbol of the answer is due,
# the cursor stands on the first of the source, and that says nothing about
# the last one. With independent symbols the best prediction is the uniform
# one: a loss of $\log 10$ and one right guess in ten, and that is what the
# model arrives at.

# %%
if not FAST:
    assert results["copy"][1] == 1
    assert abs(results["reverse"][0] - np.log(SYMBOLS)) < 0.02
    assert abs(results["reverse"][1] - 1 / SYMBOLS) < 0.02

# %% [markdown]
# ## German is not a straight line
#
# Is translation more like copying or more like reversing? English says
# twenty-one, German *einundzwanzig*, one-and-twenty. We can measure how far
# a straight line goes, because the package composed the numbers and knows
# the name of each part: tens, units, hundreds. Parts with equal names say the
# same thing, so they are *linked*. A link is (position in the source, position
# in the target), the other way round from $\alpha_{ij}$.


# %% tags=["hide-input"]
def tokens(pair, language):
    """What a number is composed of: (name, text) of each part."""
    found = phrase_links.parts(pair, language)
    return [(name, text.strip()) for name, text in found if text.strip()]


def links_of(source, target):
    """{(j, i)}: source[j] and target[i] have the same name."""
    return {
        (j, i)
        for j, (source_name, _) in enumerate(source)
        for i, (target_name, _) in enumerate(target)
        if source_name == target_name
    }


def value(pair):
    """Which number it is: 21 of twenty-one."""
    return pair.writing.arguments[0]


numbers = [
    pair
    for pair in phrases.generate("en", "de", train=10_000)["train"]
    if pair.category == "cardinal" and value(pair) < 1000
]

# %%
twenty_one = next(pair for pair in numbers if value(pair) == 21)
source, target = tokens(twenty_one, "en"), tokens(twenty_one, "de")
print(source, target, sorted(links_of(source, target)), sep="\n")
assert source == [("tens", "twenty"), ("joint", "-"), ("units", "one")]
assert target == [("units", "ein"), ("joint", "und"), ("tens", "zwanzig")]
assert links_of(source, target) == {(0, 2), (1, 1), (2, 0)}

# %% [markdown]
# The hyphen is linked to *und*: both are the joint.
#
# We use the lists of chapter 2, drawn in the same way: one to seven numbers
# below a thousand with commas between them, at most 28 tokens in English.
# To keep two occurrences of "two" in a list apart, each name gets the index of
# its number in the list: (tens, 0), (joint, 0), (units, 0), (comma, 1),
# (units, 1). The next cell draws the lists; skip it.

# %% tags=["hide-input"]
draws = np.random.default_rng(1)
cut = {pair: (tokens(pair, "en"), tokens(pair, "de")) for pair in numbers}
pools = [
    [pair for pair in numbers if len(str(value(pair))) == digits]
    for digits in (1, 2, 3)
]
COMMA = ("comma", ",")


def draw():
    """A list of numbers: (name, text) of each token, in both languages."""
    chosen = [
        pools[digits][draws.integers(len(pools[digits]))]
        for digits in draws.integers(3, size=draws.integers(1, 8))
    ]
    sides = [], []
    for index, pair in enumerate(chosen):
        for side, found in zip(sides, cut[pair], strict=True):
            for name, text in (COMMA, *found):
                side.append(((name, index), text))
    return sides[0][1:], sides[1][1:]  # without the first comma


def corpus(size):
    """That many distinct lists: (source, target, links)."""
    lists = {}
    while len(lists) < size:
        source, target = draw()
        if len(source) <= 28:
            source_text = tuple(text for _, text in source)
            target_text = tuple(text for _, text in target)
            links = links_of(source, target)
            lists[source_text] = source_text, target_text, links
    return list(lists.values())


NUM_HELD_OUT, NUM_TRAINING = (100, 400) if FAST else (1000, 8000)
lists = corpus(NUM_HELD_OUT + NUM_TRAINING)
held_out, training = lists[:NUM_HELD_OUT], lists[NUM_HELD_OUT:]

# %%
source, target, links = held_out[0]
print(" ".join(source), "|", " ".join(target))
print([(source[j], target[i]) for j, i in sorted(links)])

# %% [markdown]
# Every German token says the same as exactly one English token. Only the "and"
# of "three hundred and five" has no counterpart.

# %%
for source, target, links in held_out:
    assert sorted(i for _, i in links) == list(range(len(target)))
    lone = set(range(len(source))) - {j for j, _ in links}
    assert all(source[j] == "and" for j in lone)

# %% [markdown]
# How good is an alignment? Let each token of the target be linked to one of the
# source. The *alignment error rate* (Och and Ney 2003) counts false links and
# missing ones, over all texts. With the links $A$ that were found and the true
# ones $L$ it is $1 - 2\,|A \cap L| / (|A| + |L|)$. Here, where each token has
# one true link, it is the share of tokens whose link is false. (The package's
# function takes two sets of true links, sure ones and possible ones; ours are
# both. It leaves out tokens of the target without a true link.)


# %%
def error_rate(positions):
    """Alignment error rate in percent, from the positions [T] of each."""
    return 100 * ka.evaluation.alignment.alignment_error_rate(
        (found, links, links)
        for found, (_, _, links) in zip(positions, held_out, strict=True)
    )


in_step = [
    diagonal(len(target), len(source)).argmax(axis=1)
    for source, target, _ in held_out
]
rates = {"two cursors": error_rate(in_step)}
print(f"two cursors in step: error rate {rates['two cursors']:.1f} %")
false = [
    (j, i) not in links
    for positions, (_, _, links) in zip(in_step, held_out, strict=True)
    for i, j in enumerate(positions)
]
assert np.isclose(rates["two cursors"], 100 * np.mean(false))

# %% [markdown]
# Most of the links are false. Two reasons: numbers such as twenty-one turn
# round, and every "and" that German does not write moves all that follows
# away from the line by one token. In a list with $n$ of them the cursor ends up
# $n$ tokens behind.

# %%
assert 55 < rates["two cursors"] < 75
behind = np.array([len(source) - len(target) for source, target, _ in held_out])
lone = [len(source) - len(links) for source, _, links in held_out]
assert (behind == lone).all()
print("lists by how far the cursor falls behind:", np.bincount(behind))

# %% [markdown]
# ## Soft search
#
# So one day, Bahdanau writes, he thought of letting the decoder *learn* to
# search where to put the cursor; a human translator looks back and forth, too.
# What decides where to look? What the decoder has in mind when token $i$
# is due is its state $s_{i-1}$. Each position of the source has its vector
# $h_j$, which the paper calls annotation. Compare the two, for every $j$, with
# a small network whose answer is one number, the *score* (Bahdanau, Cho and
# Bengio 2014, equations 5 and 6 and appendix A.1.2):
#
# $$
# \begin{aligned}
# e_{ij} &= v^\top \tanh(W s_{i-1} + U h_j) && \text{score} \\
# \alpha_{ij} &= \frac{\exp(e_{ij})}{\sum_{k} \exp(e_{ik})}
#   && \text{attention weights} \\
# c_i &= \sum_j \alpha_{ij} h_j && \text{context}
# \end{aligned}
# $$
#
# $W$ and $U$ bring state and annotation to one width, so that they can be
# added; $v$ weighs the result. All three are learned with the rest of the
# network. Without the $\tanh$ the score would be $v^\top W s_{i-1} + v^\top U
# h_j$; the first term is the same for all $j$ and cancels in the softmax, so
# the query would not matter. The softmax makes positive weights
# that sum to one. In today's words $s_{i-1}$ is the **query**, $h_j$ is
# both **key** (what is compared) and **value** (what is fetched). Because
# query and key are added, this is called additive attention.
#
# In a picture, one step of the decoder. (The weights are made up; the thicker
# an arrow, the greater its weight. The search is the frame with the scores, and
# the rest is the model further below.)

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.soft_search(path=PICTURES / "03_soft_search.png")

# %% [markdown]
# The same in numpy, with the same names. Vectors are columns in the formula and
# rows in the code, so the code's `W` is the transpose: $W s$ becomes `s @ W`.


# %%
def soft_search(s, h, W, U, v):
    """One query s [Dq], annotations h [S, Dh] -> (context, weights)."""
    e = np.array([np.tanh(s @ W + h_j @ U) @ v for h_j in h])
    alpha = np.exp(e) / np.sum(np.exp(e))
    c = sum(alpha_j * h_j for alpha_j, h_j in zip(alpha, h, strict=True))
    return c, alpha


s = generator.normal(size=3)  # the query has 3 features,
h = generator.normal(size=(5, 7))  # five annotations have 7 each,
W = generator.normal(size=(3, 11))  # and they are compared in 11.
U = generator.normal(size=(7, 11))
v = generator.normal(size=11)
c, alpha = soft_search(s, h, W, U, v)
print("weights", alpha.round(3), "sum", alpha.sum().round(6))

layer = ka.layers.AdditiveAttention(units=11)
layer.build((None, None, 3), (None, None, 7))
layer.set_weights([W, U, v[:, None]])
context, attention_weights = layer(query=s[None, None], value=h[None])
print("layer  ", np.array(attention_weights)[0, 0].round(3))

assert np.allclose(attention_weights[0, 0], alpha, atol=1e-6)
assert np.allclose(context[0, 0], c, atol=1e-5)

# %% [markdown]
# ### The layer
#
# A layer takes many queries and whole batches at once, and a mask, since rows
# of a batch have different lengths. A masked position gets a score so low that
# its weight is exactly 0, and what stands there makes no difference. (Keras
# sets each argument `name_shape` of `build` to the shape of the argument `name`
# of `call`.)


# %%
class Additive(keras.layers.Layer):
    """query [B, T, D], value [B, S, D'], padding_mask [B, S]."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, query_shape, value_shape):
        self.W = self.add_weight((query_shape[-1], self.units))
        self.U = self.add_weight((value_shape[-1], self.units))
        self.v = self.add_weight((self.units, 1))

    def call(self, query, value, padding_mask=None):
        Ws = query @ self.W  # [B, T, units]
        Uh = value @ self.U  # [B, S, units]
        # Every query with every position of the source:
        # [B, T, 1, units] + [B, 1, S, units].
        e = ops.tanh(Ws[:, :, None] + Uh[:, None]) @ self.v  # [B, T, S, 1]
        e = e[..., 0]
        if padding_mask is not None:
            # In float16, which ends at 65,504, this would be infinite.
            e = ops.where(padding_mask[:, None], e, -1e9)
        alpha = ops.softmax(e, axis=-1)  # [B, T, S]
        return alpha @ value, alpha  # context [B, T, D'] and weights


query = generator.normal(size=(2, 4, 3)).astype("float32")
values = generator.normal(size=(2, 5, 7)).astype("float32")
values[1, 3:] = 1e3  # masked: it makes no difference
mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
ours = Additive(units=11)
ours(query, values)
ours.set_weights(layer.get_weights())
c, alpha = ours(query, values, padding_mask=mask)
context, attention_weights = layer(query, values, padding_mask=mask)
assert np.allclose(c, context, atol=1e-5)
assert np.allclose(alpha, attention_weights, atol=1e-5)
assert (np.array(alpha)[1, :, 3:] == 0).all()
c_i, alpha_i = soft_search(query[1, 2], values[1, :3], W, U, v)
assert np.allclose(context[1, 2], c_i, atol=1e-5)

# %% [markdown]
# The package's layer differs in three points. It takes a separate `key`, and
# then applies $U$ to it instead of the value. It is split in two, `project` for
# $U h_j$, which a decoder needs once for each sentence, and `attend` for the
# rest, once for each token. And a row in which every position is masked gets
# weights 0 and the context 0; in ours all its scores are equal, and so are its
# weights.

# %%
nothing = np.zeros((2, 5), bool)
_, alpha = ours(query, values, padding_mask=nothing)
assert np.allclose(alpha, 1 / 5)
context, attention_weights = layer(query, values, padding_mask=nothing)
assert (np.array(attention_weights) == 0).all()
assert (np.array(context) == 0).all()

projected = layer.project(values)
assert np.allclose(projected, values @ U, rtol=1e-5, atol=1e-4)
context, _ = layer.attend(query, projected, values, padding_mask=mask)
assert np.allclose(context, c, atol=1e-5)

# %% [markdown]
# ### Why soft?
#
# The hard choice, $\alpha_{ij} = 1$ for the greatest score, would give a
# context too. But nothing could be learned from it: move a score a little,
# and the choice stays what it was, so the gradient is zero. The soft
# weights move with the scores. Differentiate the two lines with $\alpha$
# above, and the result is short:
#
# $$\frac{\partial c_i}{\partial e_{ij}} = \alpha_{ij}\,(h_j - c_i)$$
#
# If the loss would fall with a context more like $h_j$ than like the
# present average $c_i$, then gradient descent raises the score $e_{ij}$, and by
# more, the greater its weight already is. No one has to say where to look: that
# a look helped is enough. A check by finite differences:


# %%
def soft(e):
    alpha = np.exp(e) / np.exp(e).sum()
    return alpha @ h


def hard(e):
    return h[np.argmax(e)]


e = np.array([np.tanh(s @ W + h_j @ U) @ v for h_j in h])
alpha, c = np.exp(e) / np.exp(e).sum(), soft(e)
small = 1e-5
for j in range(len(h)):
    nudge = small * np.eye(len(h))[j]
    slope = (soft(e + nudge) - soft(e - nudge)) / (2 * small)
    assert np.allclose(slope, alpha[j] * (h[j] - c), atol=1e-7)
    assert (hard(e + nudge) == hard(e - nudge)).all()
print("soft: alpha_j (h_j - c). hard: 0.")

# %% [markdown]
# ### The reversal again
#
# Back to the task that defeated the cursors. The model stays as it was, except
# that $\alpha$ is now computed by an `AdditiveAttention`. There is no decoder
# and so no state. The query is an embedding of the position $i$ that is to be
# written. The key is an embedding of the position $j$. The value is $h_j$ as
# before.


# %%
class Positions(keras.layers.Layer):
    """A learned vector for each position of a sequence [B, S]: [1, S, 32]."""

    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(S, 32)

    def call(self, x):
        # x only ties the layer to the graph; the batch of 1 is broadcast.
        return self.embedding(ops.arange(S))[None]


x = keras.Input((S,), dtype="int32")
h_j = keras.layers.Embedding(SYMBOLS, 32)(x)
c_i, alpha_ij = ka.layers.AdditiveAttention(32)(
    query=Positions()(x), key=Positions()(x), value=h_j
)
searching = keras.Model(x, keras.layers.Dense(SYMBOLS)(c_i))
where_to_look = keras.Model(x, alpha_ij)

results["reverse, searching"] = learn(searching, TASKS["reverse"])
loss, accuracy = results["reverse, searching"]
print(f"reverse, searching: loss {loss:.3f}, accuracy {accuracy:.3f}")
found = np.array(where_to_look(fresh[:1]))[0].argmax(axis=1)
print("position i looks at", found)

if not FAST:
    assert accuracy > 0.99
    assert (found == np.arange(S)[::-1]).all()

# %% [markdown]
# ## RNNsearch
#
# Now the whole model of Bahdanau, Cho and Bengio (2014, section 3 and appendix
# A). Besides the search it has two more ideas. The encoder is *bidirectional*:
# one GRU reads forwards and another one backwards, so that $h_j$ says what word
# $j$ means among the words on both sides of it. And at each step the decoder
# receives the context of that step, and no fixed summary.
#
# $$
# \begin{aligned}
# h_j &= [\overrightarrow{\mathrm{GRU}}(x)_j;\,
#   \overleftarrow{\mathrm{GRU}}(x)_j] && \text{annotations} \\
# s_0 &= \tanh(W_s \overleftarrow{h}_1) \\
# c_i &= \textstyle\sum_j \alpha_{ij} h_j && \text{the search, with }
#   s_{i-1} \\
# s_i &= \mathrm{GRU}(s_{i-1},\, [E y_{i-1};\, c_i]) \\
# t_i &= \mathrm{maxout}(W_t [s_i;\, E y_{i-1};\, c_i]) \\
# p(y_i) &= \mathrm{softmax}(W_o t_i)
# \end{aligned}
# $$
#
# The letters follow the paper, which changed some of Cho's:
#
# | here | chapter 2 | what it is |
# |---|---|---|
# | $i$ | $t$ | position in the target |
# | $s_i$ | $h'_t$ | the decoder's state |
# | $t_i$ | $s_t$ | what maxout makes of it |
# | $c_i$ | $c$ | context; summary |
#
# The equations leave out the biases. All layers have them but the search.
# ($t_i$ sees $s_i$, as the paper's equation 4 says; its appendix prints
# $s_{i-1}$.) The decoder starts from the backward state at $x_1$, which has
# read the whole source. Compare with Cho's model: this is the same decoder with
# $c_i$ in place of $c$. In `ka.models.RNNSearch` the contract is the same too:
# encode, initial_state, step, call. Only now the memory grows with the source,
# and the weights that `step` returns mean something. The next cell makes
# vocabularies and arrays as in chapter 2; skip it.


# %% tags=["hide-input"]
def vocabulary(texts):
    """Tokens in the order of their ids, the control tokens first."""
    return [
        *CONTROL_TEXTS,
        *sorted({token for text in texts for token in text}),
    ]


source_vocabulary = vocabulary(source for source, _, _ in training)
target_vocabulary = vocabulary(target for _, target, _ in training)
source_id = {token: i for i, token in enumerate(source_vocabulary)}
target_id = {token: i for i, token in enumerate(target_vocabulary)}


def ids_of(source, target):
    """Ids of a pair: the source with END, START and END round the target."""
    return (
        [*(source_id[token] for token in source), END],
        [START, *(target_id[token] for token in target), END],
    )


def padded(rows):
    """Rows of ids as one array [B, longest row], PAD at the end."""
    return keras.utils.pad_sequences(rows, padding="post", value=PAD)


def arrays(pairs):
    """Inputs and labels, as in chapter 2."""
    sources, targets = zip(*(ids_of(*pair[:2]) for pair in pairs), strict=True)
    inputs = {
        "source_ids": padded(sources),
        "target_ids": padded([ids[:-1] for ids in targets]),
    }
    return inputs, padded([ids[1:] for ids in targets])


# %%
SIZES = {
    "vocabulary_size": len(target_vocabulary),
    "source_vocabulary_size": len(source_vocabulary),
    "embedding_dim": 64,
}
UNITS = 64


def new_search(seed):
    """RNNsearch; the seed says with which parameters it begins."""
    keras.utils.set_random_seed(seed)
    model = ka.models.RNNSearch(**SIZES, units=UNITS, readout_dim=UNITS)
    model.build()
    return model


rnnsearch = new_search(seed=1)

for source in (("seven",), ("twenty", "-", "one"), held_out[0][0]):
    inputs, _ = arrays([(source, ())])
    memory = rnnsearch.encode(inputs["source_ids"])
    print(memory["annotations"].shape, " ".join(source))
    assert memory["annotations"].shape == (1, len(source) + 1, 2 * UNITS)

# %% [markdown]
# The first search of `step`, with `soft_search` from above and the model's
# own W, U and v:

# %%
state = rnnsearch.initial_state(memory)
_, next_state, attention_weights = rnnsearch.step(
    np.array([START]), memory, state
)
W, U, v = rnnsearch.attention.get_weights()
c, alpha = soft_search(
    np.array(state["hidden"])[0],
    np.array(memory["annotations"])[0],
    *(W, U, v[:, 0]),
)
assert np.allclose(attention_weights[0], alpha, atol=1e-5)
assert np.allclose(next_state["context"][0], c, atol=1e-5)

# %% [markdown]
# ## Three kinds of model, the same lists
#
# Chapter 2's plain model, whose decoder sees one summary; two cursors in step;
# and the search, trained twice from different initial parameters, to see what
# depends on them. All get chapter 2's lists, its number of epochs and its
# optimizer. The cursors now get what our first experiment lacked: recurrence.
# Read by a bidirectional GRU, $h_j$ knows of its neighbours, and if the line
# points a token too far to the left, the answer may still be in there. Since
# the line does not depend on what is written, all contexts are known
# beforehand, and the model is short. Each of the four trainings prints a line
# for each epoch. They take most of the chapter's minutes.


# %%
class TwoCursors(keras.Model):
    """Recurrent encoder and decoder; the cursors move in step."""

    def __init__(self):
        super().__init__()
        self.read = keras.layers.Embedding(len(source_vocabulary), 64)
        self.written = keras.layers.Embedding(len(target_vocabulary), 64)
        self.encoder = keras.layers.Bidirectional(
            keras.layers.GRU(UNITS, return_sequences=True)
        )
        self.decoder = keras.layers.GRU(UNITS, return_sequences=True)
        self.answer = keras.layers.Dense(len(target_vocabulary))

    def call(self, inputs):
        source_ids, target_ids = inputs["source_ids"], inputs["target_ids"]
        mask = source_ids != PAD
        h = self.encoder(self.read(source_ids), mask=mask)
        # As `diagonal`, for rows of different lengths.
        last = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True) - 1
        i = ops.arange(ops.shape(target_ids)[1])[None]
        j = ops.minimum(i, last)  # [B, T]
        alpha = ops.one_hot(j, ops.shape(source_ids)[1])  # [B, T, S]
        c = ka.layers.weighted_sum(alpha, h)
        x = ops.concatenate([self.written(target_ids), c], axis=-1)
        return self.answer(self.decoder(x))


def batches(pairs):
    """As in chapter 2, the same ones each epoch: (inputs, labels, weights)."""
    sources, targets = zip(*(ids_of(*pair[:2]) for pair in pairs), strict=True)
    block = {
        "source_ids": tf.ragged.constant(sources, dtype=tf.int32),
        "target_ids": tf.ragged.constant(targets, dtype=tf.int32),
    }
    found = (
        tf.data.Dataset.from_tensors(block)
        .apply(ka.data.batch_by_tokens(1024))
        .apply(ka.data.to_examples())
        .cache()
    )
    size = sum(1 for _ in found)
    return found.shuffle(size).apply(
        tf.data.experimental.assert_cardinality(size)
    )


EPOCHS = 1 if FAST else 8
examples = batches(training)
models = {
    "one vector": ka.models.RNNEncoderDecoder(
        **SIZES, units=128, readout_dim=128
    ),
    "two cursors": TwoCursors(),
    "soft search": rnnsearch,
    "soft search 2": new_search(seed=2),
}


def train(name, model):
    """As chapter 2 does."""
    print(name)
    keras.utils.set_random_seed(1)
    rate = keras.optimizers.schedules.CosineDecay(3e-3, EPOCHS * len(examples))
    model.compile(
        keras.optimizers.Adam(rate, clipnorm=1.0),
        loss=ka.training.losses.TokenCrossEntropy(),
    )
    model.fit(examples, epochs=EPOCHS, shuffle=False, verbose=2)


for name, model in models.items():
    train(name, model)

sizes = {name: model.count_params() for name, model in models.items()}
for name, size in sizes.items():
    print(f"{name}: {size:,} parameters")
assert sizes["soft search"] < sizes["one vector"] / 2

# %% [markdown]
# As chapter 2 showed, a translation is right as a whole exactly if every
# token is right under teacher forcing, so one call of the model tells.


# %%
EDGES = (0, 4, 8, 12, 16, 20, 24, 28)


def exact_match(model):
    """Which of the lists held out are right as a whole: bool."""
    inputs, labels = arrays(held_out)
    logits = model.predict(inputs, batch_size=250, verbose=0)
    right = (logits.argmax(axis=-1) == labels) | (labels == PAD)
    return right.all(axis=1)


def by_length(exact):
    """How many lists are right, for each range of lengths."""
    lengths = np.array([len(source) for source, *_ in held_out])
    rows = []
    for low, high in itertools.pairwise(EDGES):
        chosen = (lengths > low) & (lengths <= high)
        rows.append(
            {
                "low": low + 1,
                "high": high,
                "sentences": int(chosen.sum()),
                "exact_match": 100 * exact[chosen].mean(),
            }
        )
    return rows


exact = {name: exact_match(model) for name, model in models.items()}
scores = {name: by_length(found) for name, found in exact.items()}
print("length ", *(f"{name:>14}" for name in scores))
for rows in zip(*scores.values(), strict=True):
    print(
        f"{rows[0]['low']:3}-{rows[0]['high']:2} ",
        *(f"{row['exact_match']:12.1f} %" for row in rows),
    )
figure = ka.plotting.errors_by_length(scores, PICTURES / "03_length.png")
figure

# %% [markdown]
# The picture counts errors instead of right translations, because three of the
# four lines would lie near 100. Each line of the grid is a factor of ten; below
# 1 % the scale is linear, down to no error at all.
#
# The model with one vector fails as in chapter 2, after as many epochs (from
# other initial parameters, so the numbers differ a little). The search does not
# fail at any length, with less than half of the parameters. It has the same
# 8,000 lists and eight epochs. So the overfitting of chapter 2 was the price of
# the one vector. The cursors come far, too: a vector for each step, taken from
# about the right position, is enough to be rid of the bottleneck. (Their
# network is a plain one: 64 units like the search's, without its maxout; the
# model with one vector has 128.) But the cursors fall off at the end of the
# scale. To see why, sort the lists by how far the cursor falls behind, instead
# of by length. Long lists tend to be farther behind, so the second table has
# only long ones.


# %%
def by_distance(among):
    """How many lists are right, for each distance of the cursor."""
    print("behind  lists", *(f"{name:>14}" for name in exact))
    for distance in np.unique(behind[among]):
        chosen = among & (behind == distance)
        print(
            f"{distance:6} {chosen.sum():6}",
            *(f"{100 * one[chosen].mean():12.1f} %" for one in exact.values()),
        )


long = np.array([len(source) > 20 for source, *_ in held_out])
print("all lists")
by_distance(np.full(len(held_out), True))
print("lists of more than 20 tokens")
by_distance(long)

if not FAST:
    first, *_, last = scores["one vector"]
    assert first["exact_match"] > 60 and last["exact_match"] < 20
    for name in ("soft search", "soft search 2"):
        assert all(row["exact_match"] > 90 for row in scores[name])
    longest = {name: rows[-1]["exact_match"] for name, rows in scores.items()}
    assert longest["two cursors"] < longest["soft search"] - 5
    assert exact["two cursors"].mean() > exact["one vector"].mean() + 0.3
    far = behind >= 3
    assert exact["two cursors"][behind == 0].mean() > 0.95
    assert exact["two cursors"][far].mean() < 0.9
    assert exact["soft search"][far].mean() > 0.95
    drift = exact["two cursors"][long & ~far], exact["two cursors"][long & far]
    assert drift[0].mean() > drift[1].mean() + 0.1

# %% [markdown]
# Among long lists, too, it is the falling behind that hurts the cursors. The
# backward GRU can carry what stands one or two tokens ahead; carrying it
# farther puts more of the sentence through one vector again. Each pair of
# languages would need a rule of its own, and for German verbs, which may stand
# at the end of a sentence of any length, no line fits. The search needs no
# rule.
#
# ## Where it looks
#
# The weights that `step` returns, while it writes the right translation of a
# list:


# %%
def looks(inputs, model=rnnsearch):
    """Attention weights of RNNsearch under teacher forcing: [B, T, S]."""
    memory = model.encode(inputs["source_ids"])
    state = model.initial_state(memory)
    found = []
    for token_ids in inputs["target_ids"].T:
        _, state, attention_weights = model.step(token_ids, memory, state)
        found.append(ops.convert_to_numpy(attention_weights))
    return np.stack(found, axis=1)


source, target, _ = next(
    pair for pair in held_out if 14 <= len(pair[0]) <= 18 and "and" in pair[0]
)
inputs, _ = arrays([(source, target)])
ka.plotting.attention_heat_map(
    [*source, "END"],
    [*target, "END"],
    looks(inputs)[0],
    PICTURES / "03_list.png",
)

# %% [markdown]
# Read it row by row: each row is one step of the decoder, and its weights sum
# to one. The first three rows show the crossing: *zwei* looks at "two", *und*
# at the hyphen, and *zwanzig* goes back to the left, to "twenty", which no
# cursor in step can do. From there the dark squares run down to the right and
# jump over each "and". In the rows of commas and of *hundert* the greatest
# weight may lie beside the true token.
#
# Do such numbers always look at their own words, *zwanzig* at "twenty" and
# before it *zwei* at "two"? Let us count where the greatest weight lies.


# %%
def own_words(weights):
    """How often units and tens look at their own word the most.

    Of the numbers that turn round; weights [B, T, S], two shares.
    """
    found = []
    for alpha, (_, target, links) in zip(weights, held_out, strict=True):
        best, own = alpha.argmax(axis=-1), {i: j for j, i in links}
        for units in range(len(target) - 2):
            tens = units + 2
            if own[units] == own[tens] + 2:
                found.append([best[i] == own[i] for i in (units, tens)])
    return np.mean(found, axis=0)


inputs, _ = arrays(held_out)
weights = {
    name: looks(inputs, models[name])
    for name in ("soft search", "soft search 2")
}
shares = {name: own_words(found) for name, found in weights.items()}
for name, (units, tens) in shares.items():
    print(f"{name:13} tens {100 * tens:5.1f} %, units {100 * units:5.1f} %")

assert np.allclose(weights["soft search"].sum(axis=-1), 1, atol=1e-5)
if not FAST:
    assert all(units < 0.5 and tens > 0.9 for units, tens in shares.values())
    best = looks(arrays([(source, target)])[0])[0].argmax(axis=-1)
    assert source[:3] == ("twenty", "-", "two")
    assert target[:3] == ("zwei", "und", "zwanzig")
    assert best[:3].tolist() == [2, 1, 0]
    assert "and" not in {[*source, "END"][j] for j in best}

# %% [markdown]
# The tens do, most units do not: the first row of the picture is not the rule.
# A word can also be recognised from the annotations of its neighbours. The GRU
# has told the hyphen's annotation about "twenty" on its left and "two" on its
# right. So one look at the hyphen can give both numerals. Is that the reason?
# Take the neighbours away. In the same search, let an annotation know its token
# and its position and nothing else ([chapter 5](05_transformer.ipynb) says how
# a position becomes a vector). The decoder, which started from the backward
# state, now starts from the same vector each time.


# %%
class WordByWord(keras.layers.Layer):
    """In the place of the bidirectional GRU: each token by itself."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True
        self.add_positions = ka.layers.PositionEncoding()
        self.annotate = keras.layers.Dense(2 * UNITS, activation="tanh")

    def call(self, x, mask=None):
        # Scaled up: new embeddings are small, and sines would drown them.
        scaled = math.sqrt(x.shape[-1]) * x
        h = self.annotate(self.add_positions(scaled))
        nothing = ops.zeros_like(h[:, 0, :UNITS])
        # As the GRU: annotations, last forward and last backward state.
        return h, nothing, nothing


keras.utils.set_random_seed(1)
by_word = ka.models.RNNSearch(**SIZES, units=UNITS, readout_dim=UNITS)
by_word.encoder = WordByWord()
by_word.build()
train("word by word", by_word)
units, tens = own_words(looks(inputs, by_word))
right = exact_match(by_word).mean()
print(f"word by word: tens {100 * tens:.1f} %, units {100 * units:.1f} %")
print(f"right: {100 * right:.1f} %")
if not FAST:
    assert tens > 0.9 and units > 0.5
    assert all(right < exact[name].mean() - 0.02 for name in weights)

# %% [markdown]
# Now most units look most at their own word, since there is hardly anywhere
# else to learn what they are. The price is that fewer lists are right. An
# annotation that knows its neighbours is the better memory, and the worse
# witness.

# %% [markdown]
# ## How well does it align?
#
# Nobody told the model which token comes from which. So let us ask what it
# found out. Link each token to the one it looks at most, and take the error
# rate: of all tokens, and of the numerals alone, which say what number it is.
# Beside it stands IBM Model 1 (Brown et al. 1993), the classic that learns
# which words translate which from nothing but the pairs they stand in. It
# learns from all pairs, including those held out, which the search never saw.

# %%
ids = [ids_of(source, target) for source, target, _ in lists]
model_1 = ka.evaluation.alignment.ibm_model_1(
    [(source[:-1], target[1:-1]) for source, target in ids]
)
alignments = {"two cursors": in_step, "IBM Model 1": model_1[:NUM_HELD_OUT]}
for name, found in weights.items():
    alignments[name] = [
        ka.evaluation.alignment.best_links(alpha[: len(target), : len(source)])
        for alpha, (source, target, _) in zip(found, held_out, strict=True)
    ]
# Their translations follow from what stands before and after.
FORM = {",", "-", "hundred"}


def numerals_only(positions):
    """As `error_rate`, but of the words that say which number it is."""
    kept = [
        {(j, i) for j, i in links if source[j] not in FORM}
        for source, _, links in held_out
    ]
    return 100 * ka.evaluation.alignment.alignment_error_rate(
        zip(positions, kept, kept, strict=True)
    )


print("error rate    all tokens   numerals")
rates = {}
for name, positions in alignments.items():
    rates[name] = error_rate(positions), numerals_only(positions)
    print(f"{name:13} {rates[name][0]:8.1f} % {rates[name][1]:8.1f} %")
if not FAST:
    assert 15 < rates["IBM Model 1"][1] < 20
    worse = max(rates["soft search"][1], rates["soft search 2"][1])
    assert rates["IBM Model 1"][1] < worse
    for name in ("soft search", "soft search 2"):
        assert rates[name][1] < 40
        assert rates[name][1] < rates["two cursors"][1] - 25
        assert rates[name][1] < rates[name][0] - 10
    difference = exact["soft search"].mean() - exact["soft search 2"].mean()
    assert abs(difference) < 0.03

# %% [markdown]
# Most of the numerals' links are true. Of Model 1's, between 15 and 20 % are
# false. It knows which words belong together, but not where they stand. Of two
# occurrences of "two" in a list it has to take one or the other. The search can
# tell them apart, because its query, the state, knows how far the translation
# has come. And that is a by-product of training to translate. The search does
# not necessarily beat Model 1: compare the rows. The two searches differ only
# in their initial parameters.
#
# Over all tokens the rate is worse. The decoder knows without another look that
# a comma is due, or *und*, or *hundert*, and where nothing depends on the look,
# nothing trains it. Even a numeral need not be looked at itself: a training run
# may settle on the neighbours; its links are then worse, its translations as
# good. So attention weights tell where the model looked. They do not tell what
# it found there, or whether it mattered.
#
# The name came last. The paper speaks of a soft search and of annotations;
# "attention" was Yoshua Bengio's suggestion, says Bahdanau's letter, in one
# of the last passes over the text.
#
# ## The same search in a picture and in sound
#
# The search does not know that it reads words. It asks for one thing: vectors
# $h_1 \dots h_S$. So whatever can be cut into parts, with a vector for each
# part, can be searched.

# %% tags=["hide-input", "alone"]
diagrams.three_sources(PICTURES / "03_three_sources.png")

# %% [markdown]
# *The weights are made up. The more orange a part, the more the search looks at
# it.* A picture is cut into squares, and a convolutional network makes a vector
# of each. The decoder writes a sentence about the picture, and searches the
# squares before each word: before "bird" it looks where the bird is ([Xu et al.
# 2015](https://arxiv.org/abs/1502.03044), "Show, attend and tell"). A recording
# is cut into moments of some hundredths of a second. A recurrent network reads
# them, and each moment has its state. The decoder writes letters or sounds, and
# searches the moments before each of them ([Chorowski et al.
# 2015](https://arxiv.org/abs/1506.07503); [Chan et al.
# 2015](https://arxiv.org/abs/1508.01211)). In all three the search is the three
# lines of this chapter: a score, a softmax, a weighted sum. Only what makes the
# $h_j$ differs. Sound has a difference of its own: it is read in order and
# never goes back. [Chapter 16](16_the_cursor.ipynb) builds cursors for that.
# [Chapter 14](14_one_stack.ipynb) reads pictures with attention alone.
#
# ## What to take away
#
# - Keep a vector for every token of the source, and give the decoder at
#   each step a weighted sum of them: the context. The memory grows with the
#   sentence, and the fall with its length is gone.
# - Weights that follow a rule, two cursors in step, work as far as the rule
#   fits. Weights that are computed from what the decoder has in mind and what
#   the source offers need no rule.
# - The computation has three lines: a score for each position, a softmax over
#   the positions, a weighted sum.
# - It is soft so that it can be learned: the gradient of the context with
#   respect to a score is $\alpha_{ij} (h_j - c_i)$, so a look that helps grows.
# - The weights can be drawn. For most numerals the greatest one lies on the
#   word itself, without anyone having said so; but a neighbour may serve.
#
# ## Your turn
#
# Write the search without its loop, for a source with padding. A position where
# the mask is False must have no weight at all. (`h @ U` has a row for each
# annotation.)

# %% tags=["alone"]
import your_turn


def masked_search(s, h, mask, W, U, v):
    """s [Dq], h [S, Dh], mask [S] (True: may be looked at) -> context [Dh]."""
    e = ...  # scores [S]
    alpha = ...  # weights [S]
    return alpha @ h


your_turn.check(3, masked_search)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def masked_search(s, h, mask, W, U, v):
#     e = np.tanh(s @ W + h @ U) @ v
#     e = np.where(mask, e, -np.inf)
#     alpha = np.exp(e) / np.exp(e).sum()
#     return alpha @ h
#
#
# your_turn.check(3, masked_search)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots. Two digits are enough.
#
# - a: Three positions have the scores $\ln 1$, $\ln 3$ and $\ln 4$. What is the
#   weight of the last one?
# - b: Now the last one is masked. What is the weight of the second one?
# - c: Two annotations are the numbers 0 and 10, and their scores are equal.
#   What is the gradient of the context with respect to the second score?

# %% tags=["alone"]
your_turn.quiz(3, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: The weights are as $1 : 3 : 4$.
# - b: They are as $1 : 3$.
# - c: The gradient is $\alpha_2 (h_2 - c)$. Both weights are one half, so
#   $c = 5$.
#
# ```python
# your_turn.quiz(3, a=4 / 8, b=3 / 4, c=0.5 * (10 - 5))
# ```
#
# </details>
#
# ## Exercises
#
# 1. How many parameters does the attention layer of `rnnsearch` have, and how
#    many scores does it compute for a source of 28 tokens and a target of 25,
#    to each of which END is added? Its comparison is `UNITS`, 64, wide.
#
# <details><summary>Solution</summary>
#
# $W$ is 64 by 64, $U$ 128 by 64 (an annotation has two directions), $v$ has
# 64 entries. Each of 26 steps scores 29 positions.
#
# ```python
# assert rnnsearch.attention.count_params() == 64 * 64 + 128 * 64 + 64
# assert rnnsearch.attention.count_params() == 12352
# assert 26 * 29 == 754
# ```
#
# </details>
#
# 2. Multiply all scores of `soft` by 1000. What is the gradient now?
#
# <details><summary>Solution</summary>
#
# The weights become those of `hard`: one is 1, all others are 0. For the
# chosen position $h_j = c_i$, for all others $\alpha_{ij} = 0$, so
# $\alpha_{ij}(h_j - c_i)$ is zero everywhere. A search that is quite sure
# no longer learns, be it right or wrong.
#
# ```python
# alpha = np.exp(1000 * (e - e.max()))
# alpha /= alpha.sum()
# print(np.abs(alpha[:, None] * (h - alpha @ h)).max())  # below 1e-9
# ```
#
# </details>
#
# 3. When the second token is due, does the position at which `rnnsearch` looks
#    depend on which token it has written first? And when the third is due?
#
# <details><summary>Solution</summary>
#
# No. The query of step $i$ is $s_{i-1}$, and that state was computed from
# $y_{i-2}$; the token $y_{i-1}$ enters only $s_i$, after the search. For the
# third token it does.
#
# ```python
# inputs, _ = arrays(held_out[:1])
# other = {**inputs, "target_ids": inputs["target_ids"].copy()}
# other["target_ids"][0, 1] = target_id["zwölf"]  # the first token written
# one, two = looks(inputs)[0], looks(other)[0]
# assert (one[:2] == two[:2]).all()
# assert (one[2] != two[2]).any()
# ```
#
# </details>
#
# 4. The model `searching` reverses sequences. Train a copy of it to sort them
#    instead. Why does it fail, although each answer is a symbol of the
#    source?
#
# <details><summary>Solution</summary>
#
# Its queries and keys are made of positions only, so it looks at the same ones
# whatever stands there. To sort, one has to look for content: the score must
# depend on the symbols, as in RNNsearch it depends on state and annotation.
#
# ```python
# x = keras.Input((S,), dtype="int32")
# c_i, _ = ka.layers.AdditiveAttention(32)(
#     query=Positions()(x),
#     key=Positions()(x),
#     value=keras.layers.Embedding(SYMBOLS, 32)(x),
# )
# sorter = keras.Model(x, keras.layers.Dense(SYMBOLS)(c_i))
# loss, accuracy = learn(sorter, lambda x: np.sort(x, axis=1))
# print(accuracy < 0.5)  # True
# ```
#
# </details>
#
# Next, in [chapter 4](04_flavours_of_attention.ipynb): the score can be
# computed in other ways, some of them much cheaper, and attention turns out
# to be an average whose weights are computed.
