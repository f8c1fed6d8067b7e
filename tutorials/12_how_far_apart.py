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
# # 12. How far apart?
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/12_how_far_apart.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# In German a verb may stand at the end of a sentence, and its subject at the
# start. A model that translates it has to bring the two together. How many
# *operations* lie between them, that is, steps of a cell or layers? In a
# recurrent network it is one for each word on the way. In a Transformer it is
# one. In 2016 and 2017 came models that stand between the two and read with
# *convolutions*: ByteNet (Kalchbrenner et al. 2016) and ConvS2S (Gehring et al.
# 2017). This chapter counts operations, then looks at what the count decides:
# what can be learned, and how long it takes.
#
# Takes about 6 minutes on two cores, with ten trainings: six small readers, a
# ConvS2S, two ByteNets and a Neural GPU. The text before each says what is
# trained, and each prints lines while it learns or when it is ready. Pictures
# are shown here and kept in the folder `pictures`. Vectors are columns in the
# equations of this chapter, as in its papers, and rows in the code. The chapter
# prints the fewest layers between two positions for four kinds of layers, and
# what each kind learns about a far word. Then it prints how many lists of
# numbers a small ConvS2S translates rightly. At the end a ByteNet reverses
# strings, and a Neural GPU adds numbers.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import functools
import math
import os
import pathlib
import time

import keras
import numpy as np
import phrase_links
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.data.embedded import addition, phrases
from keras_attention.plotting import drawing
from keras_attention.tokens import CONTROL_TEXTS, END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")
rng = np.random.default_rng(1)

# %% [markdown]
# ## A window that slides
#
# Convolutions are known from pictures, where a small window looks for an edge
# and finds it wherever it is. Why should that work on a sentence? A sentence
# is a picture that is one pixel high. An edge is a pattern of neighbouring
# pixels, and language has patterns of neighbouring words: *not good*, *New
# York*, *twenty - one*. A window of $k$ words that has learned such a pattern
# finds it wherever it stands. (Chapter 1's window of a few words was such a
# layer.)
#
# $$y_t = b + \sum_{j=0}^{k-1} W_j\, x_{t - (k - 1 - j)}$$
#
# $x_t$ is the vector of word $t$. The window ends there: its place $j = 0$ is
# the oldest word, and $j = k - 1$ is word $t$ itself. Each $W_j$ is a matrix:
# it says what the window would like to see at its place $j$.
#
# Let us make a window by hand that looks for a number with a tens and a unit,
# such as *twenty - one*. German turns those round (*einundzwanzig*), so a
# translator had better notice them. A word is a vector of three features, each
# of them 0 or 1: is it a tens, a hyphen, a unit? A ReLU behind the window cuts
# off what is below 0.

# %%
sentence = "two hundred , sixty - one , four , ninety - nine , thirty".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
UNITS = "one two three four five six seven eight nine".split()
x = np.array([[w in TENS, w == "-", w in UNITS] for w in sentence], "float32")

window = ka.layers.CausalConvolution(filters=1, kernel_size=3)
window.build((1, None, 3))
# W_0 asks for a tens, W_1 for a hyphen, W_2 for a unit, and b is -2. So the
# output is 1 if all three are there, and at most 0 otherwise.
window.set_weights([np.eye(3)[:, :, None], np.array([-2.0])])
found = ops.convert_to_numpy(ops.relu(window(x[None])))[0, :, 0]
by_hand = [
    max(0, sum(x[t - 2 + j, j] for j in range(3) if t - 2 + j >= 0) - 2)
    for t in range(len(sentence))
]
np.testing.assert_allclose(found, by_hand, atol=1e-6)
print([word for word, y in zip(sentence, found, strict=True) if y > 0])
assert [sentence[t] for t in np.flatnonzero(found)] == ["one", "nine"]


# %% tags=["hide-input"]
def draw_window():
    with drawing.style():
        figure = drawing.Figure(figsize=(7.6, 2.9), layout="constrained")
        axes = figure.subplots()
        for t, word in enumerate(sentence):
            axes.text(t, 0, word, ha="center", va="center", rotation=40)
            axes.bar(t, found[t], 0.6, bottom=1.6, color=drawing.COLORS[0])
            for j in range(3):
                if t - 2 + j >= 0:
                    axes.plot(
                        [t - 2 + j, t], [0.5, 1.5],
                        color=drawing.COLORS[1] if found[t] else "#CCCCCC",
                        linewidth=2.2 if found[t] else 0.8,
                        zorder=2 if found[t] else 1,
                    )  # fmt: skip
        axes.set(xlim=(-0.8, len(sentence)), ylim=(-0.6, 2.8))
        axes.axis("off")
        drawing.save(figure, PICTURES / "12_window.png")
    return figure


draw_window()

# %% [markdown]
# *Each output sees three words. The orange windows hold the pattern, and the
# bars above them are the outputs.* The same three matrices are used for each
# $t$. So a sentence that is shifted has outputs that are shifted, and a pattern
# is learned once for all places. The check takes random vectors in the place of
# words, and shifts them by four:

# %%
layer = ka.layers.CausalConvolution(filters=5, kernel_size=3)
random = rng.normal(size=(1, 12, 7)).astype("float32")
shifted = np.pad(random, ((0, 0), (4, 0), (0, 0)))
np.testing.assert_allclose(layer(shifted)[:, 4:], layer(random), atol=1e-5)

# %% [markdown]
# This convolution is *causal*: it looks back and never ahead, as a decoder
# must. When a decoder writes word by word, it keeps the last $k - 1$ inputs of
# each layer in a buffer. The buffer is to a convolution what the state is to an
# RNN. But the state depends on all words so far, and the buffer holds the last
# two and forgets the third at once.

# %%
buffer = layer.initial_buffer(batch_size=1)
for t in range(12):
    y, buffer = layer.step(random[:, t], buffer)
    np.testing.assert_allclose(y, layer(random)[:, t], atol=1e-5)
np.testing.assert_array_equal(buffer, random[:, -2:])

# %% [markdown]
# ## How far a layer sees
#
# A window of three words is short. But the next layer's window sees three
# outputs of the first, each of which has seen three words. They overlap, so
# together it is five words. The layer after that sees seven, and so on:
# $1 + L (k - 1)$ words with $L$ layers.
#
# With *gaps* in the window it goes faster. ByteNet's layers look at $x_t$,
# $x_{t-d}$ and $x_{t-2d}$, where $d$, the *dilation*, doubles from layer to
# layer: 1, 2, 4, 8, 16. That is $1 + (k - 1) \sum d$ words: 3, 7, 15, 31, 63.
# Each layer about doubles what is seen.
#
# We can measure this, as chapter 5 did. An output depends on an input if it has
# a gradient there. The *reach* of a stack is the matrix that says for each
# output (row) whether it has a gradient at each input (column).
#
# The next cell builds four kinds of stacks: steps of an RNN's cell,
# convolutions, dilated convolutions, attentions. For the RNN, an operation is a
# step of the cell: after $L$ steps, a state depends on its own input and the
# $L$ inputs before it. The printed rows say how many positions back the last
# output sees, with 1, 2, 4 and 6 operations.

# %%
LENGTH, WIDTH, KERNEL = 65, 4, 3


def reach(apply):
    """[T, T], True where output t has a gradient at input s."""
    x = rng.normal(size=(1, LENGTH, WIDTH)).astype("float32")
    # As many copies as outputs: copy t is asked for the gradient of output t.
    copies = tf.constant(np.repeat(x, LENGTH, axis=0))
    with tf.GradientTape() as tape:
        tape.watch(copies)
        outputs = tf.einsum("ttd->td", apply(copies))
    gradient = tape.gradient(outputs, copies)  # [T, T, D]
    return np.abs(gradient).max(axis=-1) > 0


def convolutions(dilations):
    # Positive kernels: no two paths cancel.
    initializer = keras.initializers.Constant(1 / (WIDTH * KERNEL))
    return keras.Sequential(
        [
            ka.layers.CausalConvolution(
                WIDTH, KERNEL, dilation, kernel_initializer=initializer
            )
            for dilation in dilations
        ]
    )


def steps_of_a_cell(count):
    """Each position's state, `count` steps after a state of zeros."""
    cell = ka.layers.GRUCell(WIDTH)

    def apply(x):
        # All positions at once: first each reads what stands `count` before it,
        # in the end its own input.
        padded = tf.pad(x, [[0, 0], [count, 0], [0, 0]])
        state = tf.zeros_like(x)
        for i in range(count + 1):
            state, _ = cell(padded[:, i : i + LENGTH], [state])
        return state

    return apply


def attentions(count):
    stack = [ka.layers.MultiHeadAttention(2, 2) for _ in range(count)]

    def apply(x):
        for attention in stack:
            x, _ = attention(query=x, use_causal_mask=True)
        return x

    return apply


KINDS = {
    "recurrence": steps_of_a_cell,
    "convolution": lambda count: convolutions([1] * count),
    "dilated": lambda count: convolutions([2**i for i in range(count)]),
    "attention": attentions,
}
DEPTHS = (1, 2, 4, 6)
reached = {
    name: [reach(kind(depth)) for depth in DEPTHS]
    for name, kind in KINDS.items()
}
for name, matrices in reached.items():
    # The last output's row: how many positions back it sees.
    print(f"{name:12}", [int(matrix[-1].sum()) - 1 for matrix in matrices])
assert [m[-1].sum() - 1 for m in reached["recurrence"]] == [1, 2, 4, 6]
assert [m[-1].sum() - 1 for m in reached["convolution"]] == [2, 4, 8, 12]
assert [m[-1].sum() - 1 for m in reached["dilated"]] == [2, 6, 30, 64]
assert [m[-1].sum() - 1 for m in reached["attention"]] == [64] * 4

# %% [markdown]
# (Six dilated layers would see 126 positions back. Here there are 64.)


# %% tags=["hide-input"]
def draw_reach():
    with drawing.style():
        figure = drawing.Figure(figsize=(7.6, 7.6), layout="constrained")
        grid = figure.subplots(len(DEPTHS), len(KINDS))
        for column, (name, matrices) in enumerate(reached.items()):
            for row, matrix in enumerate(matrices):
                panel = grid[row, column]
                panel.imshow(matrix, cmap="Blues", vmin=0, vmax=1.2)
                panel.set(xticks=[], yticks=[])
                if row == 0:
                    panel.set_title(name)
                if column == 0:
                    panel.set_ylabel(f"{DEPTHS[row]} deep")
        figure.supxlabel("input")
        figure.supylabel("output")
        drawing.save(figure, PICTURES / "12_reach.png")
    return figure


draw_reach()

# %% [markdown]
# *Blue: this output has a gradient at this input. Nothing is ever blue above
# the diagonal, as all four are causal. Follow a column of panels from top to
# bottom: the band along the diagonal is as wide as the stack sees far. With
# attention all that may be seen is seen at once.*
#
# Turn it round: how many operations does a distance of $n$ take? `fewest` tries
# one depth after the other, until a stack sees $n$ positions back.


# %%
@functools.cache
def sees(name, depth):
    """How many positions back the last output has a gradient."""
    return int(reach(KINDS[name](depth))[-1].sum()) - 1


def fewest(name, distance):
    return next(d for d in range(1, LENGTH) if sees(name, d) >= distance)


DISTANCES = (1, 2, 4, 8) if FAST else (1, 2, 4, 8, 16, 32, 64)
counts = {name: [fewest(name, n) for n in DISTANCES] for name in KINDS}
print("distance    ", *DISTANCES, sep="\t")
for name, row in counts.items():
    print(f"{name:12}", *row, sep="\t")
for n, *row in zip(DISTANCES, *counts.values(), strict=True):
    assert row == [
        n,
        math.ceil(n / (KERNEL - 1)),
        math.ceil(math.log2(n / (KERNEL - 1) + 1)),
        1,
    ]

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for look, (name, row) in zip(
        drawing.looks(counts), counts.items(), strict=True
    ):
        axes.plot(
            DISTANCES, row, color=drawing.COLORS[look],
            marker=drawing.MARKERS[look], label=name,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set(xlabel="distance between two positions", ylabel="operations")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "12_operations.png")
figure  # noqa: B018

# %% [markdown]
# *Both axes are logarithmic. The lower a line, the nearer are far words.* At a
# distance of 64 it takes 64 steps, 32 layers, 6 dilated layers, or one
# attention. With $k = 3$ these are $n$, $n / (k - 1)$, $\log_2 n$ and 1. The
# orders of growth are those of Vaswani et al. (2017): $n$, $\log_k n$ and 1 in
# table 1, and $n / k$ for convolutions without gaps in section 4. Attention has
# a path of its own for each pair of positions. In a stack of convolutions the
# paths of many pairs go through the same outputs in between.

# %%
if not FAST:
    assert [row[-1] for row in counts.values()] == [64, 32, 6, 1]

# %% [markdown]
# ## What the count decides: far words
#
# Can a model learn that the *last* word depends on the *first*? Below, it reads
# 65 random letters. At the last one it is asked for the first, 64 words back.
# Six small models learn from the same examples: a plain RNN, six convolutions,
# six dilated convolutions, one attention, and chapter 1's GRU and LSTM, whose
# gates should help a state to remember. (Attention needs to know which word is
# the first. It gets positions, as in chapter 5. Each convolution has a ReLU and
# a residual path.) Six convolutions without gaps see 12 words back. No training
# can help them.
#
# The next cell trains the six, each in 400 steps. Each prints a line when it is
# ready. They are six of the ten trainings that share the 6 minutes of the
# chapter.

# %%
LETTERS, UNITS_WIDE = 8, 32
NUM_STEPS = 5 if FAST else 400
RECURRENT = {
    "recurrence": keras.layers.SimpleRNN,
    "GRU": keras.layers.GRU,
    "LSTM": keras.layers.LSTM,
}


def first_letter(count):
    letters = rng.integers(LETTERS, size=(count, LENGTH))
    return letters, letters[:, 0]


def reader(kind):
    ids = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(
        LETTERS,
        UNITS_WIDE,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=0.5),
    )(ids)
    if kind in RECURRENT:
        x = RECURRENT[kind](UNITS_WIDE)(x)
    elif kind == "attention":
        x = ka.layers.PositionEncoding()(x)
        x, _ = ka.layers.MultiHeadAttention(2, 16)(query=x)
        x = x[:, -1]
    else:
        for index in range(6):
            dilation = 2**index if kind == "dilated" else 1
            y = ka.layers.CausalConvolution(UNITS_WIDE, KERNEL, dilation)(x)
            x = x + ops.relu(y)
        x = x[:, -1]
    return keras.Model(ids, keras.layers.Dense(LETTERS)(x))


def learn(kind):
    keras.utils.set_random_seed(1)
    model = reader(kind)
    model.compile(
        keras.optimizers.Adam(3e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    model.fit(*train, batch_size=64, epochs=1, verbose=0)
    return model.evaluate(*test, verbose=0)[1]


train, test = first_letter(64 * NUM_STEPS), first_letter(1000)
accuracy = {}
for kind in (*KINDS, "GRU", "LSTM"):
    accuracy[kind] = learn(kind)
    print(f"{kind:12} knows the first letter: {accuracy[kind]:.2f}")

# %% [markdown]
# Chance is one in eight. The dilated convolutions and the attention know the
# letter. The RNN could know it, since its state reaches all 64 words back. But
# its gradient has to come back through 64 steps, and can shrink at each of them
# (chapter 1). Gates do not help here: GRU and LSTM guess, too. Before training,
# the LSTM's forget gate is about $\sigma(1) = 0.73$, so each word leaves 0.73
# of the cell state. After 64 words, two billionths of it are left. The six
# short convolutions are at chance, and the gradient at the first letter says
# why. For a stack of this depth it is exactly 0, with any weights. The cell
# checks it for a stack whose weights are all positive, where no two paths can
# cancel.

# %%
if not FAST:
    assert accuracy["dilated"] > 0.95 and accuracy["attention"] > 0.95
    assert max(accuracy[kind] for kind in RECURRENT) < 0.5
    assert accuracy["convolution"] < 0.25
forget = 1 / (1 + math.exp(-1))  # Keras begins with a bias of 1.
assert round(forget, 2) == 0.73 and round(1e9 * forget**64) == 2
assert not reach(convolutions([1] * 6))[-1, 0]

# %% [markdown]
# ## What the count decides: time
#
# An RNN computes $h_t$ after $h_{t-1}$, whatever the machine. A convolution
# computes all positions at once, and so does attention. But attention compares
# all pairs: twice the length is four times the scores. Here is what a clock
# says, for one layer of width 64 and a batch of one sentence. Each time is the
# shortest of twenty calls, so the first call, which builds the graph, does not
# count.


# %%
def seconds(layer, length):
    x = tf.constant(rng.normal(size=(1, length, 64)).astype("float32"))
    function = tf.function(layer)
    times = []
    for _ in range(2 if FAST else 20):
        start = time.perf_counter()
        function(x).numpy()
        times.append(time.perf_counter() - start)
    return min(times)


LENGTHS = (64, 128, 256, 512, 1024, 2048)[: 2 if FAST else None]
attention = ka.layers.MultiHeadAttention(4, 16)
LAYERS = {
    "recurrence": keras.layers.RNN(
        ka.layers.GRUCell(64), return_sequences=True
    ),
    "convolution": ka.layers.CausalConvolution(64, KERNEL),
    "attention": lambda x: attention(query=x)[0],
}
clock = {
    name: [seconds(layer, length) for length in LENGTHS]
    for name, layer in LAYERS.items()
}
print("milliseconds", *LENGTHS, sep="\t")
for name, times in clock.items():
    print(f"{name:12}", *(f"{1000 * t:.2f}" for t in times), sep="\t")

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for look, (name, times) in zip(
        drawing.looks(clock), clock.items(), strict=True
    ):
        axes.plot(
            LENGTHS, 1000 * np.array(times), color=drawing.COLORS[look],
            marker=drawing.MARKERS[look], label=name,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set(xlabel="length of the sentence", ylabel="milliseconds")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "12_clock.png")
figure  # noqa: B018

# %% [markdown]
# *Both axes are logarithmic.* The convolution does a fixed amount of work for
# each word. So does the RNN, but it does it word by word, each time in several
# small products. That takes longer, even on a processor with few cores.
# Attention does more work for each word, the more words there are. From 1,024
# to 2,048 words, its scores are four times as many. The next cell prints the
# ratio of these two times. (Clocks are noisy: another run gives other ratios.)

# %%
growth = {name: times[-1] / times[-2] for name, times in clock.items()}
print({name: round(ratio, 1) for name, ratio in growth.items()})
if not FAST:
    assert clock["recurrence"][-1] > 5 * clock["convolution"][-1]

# %% [markdown]
# ## ConvS2S: convolutions that attend
#
# How does the decoder of such a model see the source? ByteNet has no attention,
# and we come to it at the end. ConvS2S keeps attention and takes out only the
# recurrence. Its layer is a convolution with a gate, the *gated linear unit*,
#
# $$[A; B] = W [x_{t-2}; x_{t-1}; x_t] + b, \qquad h_t = A \otimes \sigma(B),$$
#
# where $W$ is the $W_j$ of the window side by side. Half of the outputs are
# $A$, the other half are $B$. The sigmoid $\sigma(B)$ is a gate as in chapter
# 1: it says how much of each component of $A$ is let through ($\otimes$
# multiplies component by component). This is the decoder's window. The
# encoder's is centred: $x_{t-1}$, $x_t$, $x_{t+1}$.
#
# Each layer of the decoder then asks the source by itself. At step $i$ the
# query $d_i$ is made of $h_i$ and of $g_i$, the sum of two learned vectors: of
# the word that was written last, and of its position. $z_j$ is the encoder's
# output at word $j$ of the source. $e_j$ is what went in there, such a sum for
# the source's word and its position. The source has $m$ words, END included.
#
# $$d_i = \sqrt{\tfrac12}\,(W_d h_i + b_d + g_i) \qquad
# a_{ij} = \frac{\exp(d_i \cdot z_j)}{\sum_l \exp(d_i \cdot z_l)} \qquad
# c_i = \sqrt{m} \sum_j a_{ij} (z_j + e_j)$$
#
# $z_j$ is the *key*, and knows its neighbours. $z_j + e_j$ is the *value*, and
# knows the word. The layer's output $o_i$ has two sums, one with what was
# found, and one with the layer's own input $x_i$ (a residual path):
#
# $$o_i = \sqrt{\tfrac12}\,\Big(\sqrt{\tfrac12}\,(h_i + W_c c_i + b_c)
# + x_i\Big)$$
#
# Why the factors? The sum of two independent numbers of variance 1 has the
# variance 2. Times $\sqrt{1/2}$, it is 1 again, so that numbers do not grow
# from layer to layer. A mean of $m$ such numbers has the variance $1/m$, and
# $\sqrt m$ brings it back. An encoder's layer has one such sum: $z^l =
# \sqrt{1/2}\,(h^l + z^{l-1})$. The first layer's input is a dense layer of
# $e_j$, or $g_i$, and another dense layer brings the encoder's last output to
# the width of $e_j$. Behind the decoder's last layer, two dense layers without
# anything between them make the logits.

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.conv_layer(PICTURES / "12_conv_layer.png")

# %% [markdown]
# *One layer of ConvS2S's decoder. Read it from below.* `ka.models.ConvSeq2Seq`
# is this model. (The factor of $d_i$ is from the authors' code; the paper's
# equation has none. The paper normalises its weights, and the package does
# not.)
#
# Here it gets the lists of numbers of chapters 2, 3 and 5, where German turns
# *twenty-one* round. The next cell draws the lists; skip it.

# %% tags=["hide-input"]
COMMA = ("comma", ",")


def tokens(pair, language):
    """What a number is composed of: [(what it says, how), ...]."""
    found = phrase_links.parts(pair, language)
    return [(name, text.strip()) for name, text in found if text.strip()]


numbers = [
    pair
    for pair in phrases.generate("en", "de", train=10_000)["train"]
    if pair.category == "cardinal" and pair.writing.arguments[0] < 1000
]
cut = {pair: (tokens(pair, "en"), tokens(pair, "de")) for pair in numbers}
pools = [
    [p for p in numbers if len(str(p.writing.arguments[0])) == digits]
    for digits in (1, 2, 3)
]
draws = np.random.default_rng(1)


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
    return sides[0][1:], sides[1][1:]  # Without the first comma.


def corpus(size):
    """That many distinct lists of at most 28 tokens: (source, target)."""
    lists = {}
    while len(lists) < size:
        source, target = draw()
        if len(source) <= 28:
            lists[tuple(text for _, text in source)] = source, target
    return list(lists.values())


NUM_HELD_OUT, NUM_TRAINING = (50, 100) if FAST else (500, 6000)
lists = corpus(NUM_HELD_OUT + NUM_TRAINING)
held_out, training = lists[:NUM_HELD_OUT], lists[NUM_HELD_OUT:]
SOURCE, TARGET = (
    [
        *CONTROL_TEXTS,
        *sorted({text for pair in training for _, text in pair[side]}),
    ]
    for side in (0, 1)
)


def block(pairs):
    """Ids: source ... END, and START target ... END, as ragged rows."""
    sources = [[SOURCE.index(text) for _, text in pair[0]] for pair in pairs]
    targets = [[TARGET.index(text) for _, text in pair[1]] for pair in pairs]
    return {
        "source_ids": tf.ragged.constant([[*ids, END] for ids in sources]),
        "target_ids": tf.ragged.constant(
            [[START, *ids, END] for ids in targets]
        ),
    }


training_batches = (
    tf.data.Dataset.from_tensors(block(training))
    .apply(ka.data.batch_by_tokens(max_tokens=1024))
    .apply(ka.data.to_examples())
    .cache()
)
num_batches = sum(1 for _ in training_batches)
examples = training_batches.shuffle(num_batches).apply(
    tf.data.experimental.assert_cardinality(num_batches)
)
ids = {name: rows.to_tensor(PAD) for name, rows in block(held_out).items()}
labels = ids["target_ids"][:, 1:].numpy()
inputs = {**ids, "target_ids": ids["target_ids"][:, :-1]}

# %% [markdown]
# We train it as chapter 5 trained its Transformer, with three layers of width
# 64 on either side. Then we count the new lists that are right to the last
# word.
#
# This is one of the ten trainings that share the 6 minutes of the chapter. It
# prints a line for each epoch.

# %%
EPOCHS = 1 if FAST else 8


def train_translator(model):
    rate = ka.training.schedules.Cosine(
        3e-3,
        warmup_steps=min(200, num_batches),
        num_steps=EPOCHS * num_batches + 1,
    )
    model.compile(
        ka.training.optimizers.Adam(rate, beta_2=0.98, global_clipnorm=1.0),
        loss=ka.training.losses.TokenCrossEntropy(label_smoothing=0.1),
        jit_compile=False,
    )
    model.fit(examples, epochs=EPOCHS, shuffle=False, verbose=2)
    return model


keras.utils.set_random_seed(1)
model = train_translator(
    ka.models.ConvSeq2Seq.from_size(
        "mini",
        len(TARGET),
        len(SOURCE),
        num_layers=3,
        embedding_dim=64,
        hidden_dim=64,
    )
)


# %%
def share_right(model):
    """Of the held-out lists, those with no wrong token."""
    predicted = np.argmax(model.predict(inputs, verbose=0), axis=-1)
    right = (predicted == labels) | (labels == PAD)
    return right.all(axis=1).mean()


right = share_right(model)
print(f"ConvS2S: {right:.1%} of {len(held_out):,} lists are right as a whole")
if not FAST:
    assert right > 0.95

# %% [markdown]
# The encoder has three layers with a window of three words: an output sees
# three words to each side, and the list may have 28. That is enough, since a
# number is short, and attention does the rest. Each of the decoder's layers has
# attention weights of its own. Here they are for one short list.


# %%
def attention_of(model, source, target):
    """[layers, target tokens, source tokens]."""
    row = block([(source, target)])
    memory = model.encode(row["source_ids"].to_tensor())
    state = model.initial_state(memory)
    weights = []
    for token in row["target_ids"].to_tensor()[0, :-1]:
        _, state, step_weights = model.step(token[None], memory, state)
        weights.append(step_weights[0])
    return np.stack(weights, axis=1)


short = next(
    pair
    for pair in held_out
    if len(pair[0]) in (9, 10, 11) and any(t == "und" for _, t in pair[1])
)
source_words, target_words = (
    [*(text for _, text in side), "END"] for side in short
)
weights = attention_of(model, *short)
print(" ".join(source_words), "|", " ".join(target_words))
np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)

# %% tags=["hide-input"]
ka.plotting.attention_heat_map(
    source_words,
    target_words,
    weights,
    PICTURES / "12_attention.png",
    names=[f"layer {number}" for number in (1, 2, 3)],
)

# %% [markdown]
# *Where each layer of the decoder looks before it writes the word at the
# left. A darker cell has more weight. Look for the layer whose dark cells cross
# over where German turns a number round.* How often is the darkest place the
# right one? The lists know what each word says, so we can count, as chapter 3
# did. We count the tens and the units, and print one share for each layer.


# %%
def agreement(model, pairs):
    """Share of tens and units whose strongest weight is their own word."""
    hits = np.zeros(len(model.decoder_layers))
    total = 0
    for source, target in pairs:
        weights = attention_of(model, source, target)
        names = [name for name, _ in source]
        for i, (name, _) in enumerate(target):
            if names.count(name) == 1 and name[0] in ("tens", "units"):
                hits += weights[:, i].argmax(axis=-1) == names.index(name)
                total += 1
    return hits / total  # One share a layer.


aligned = agreement(model, held_out[: 3 if FAST else 30])
print("looks at the word that it writes:", aligned.round(2))
if not FAST:
    assert aligned.max() > 0.8

# %% [markdown]
# At least one layer mostly looks at the word that it writes. The others need
# not: what the layers find is added up.
#
# ## ByteNet: no attention at all
#
# `ka.models.ByteNet` stacks the decoder *on* the encoder. The encoder's output
# at place $t$ is called column $t$. Step $t$ of the decoder starts from column
# $t$ and the last word. It looks nowhere else in the source. What stands
# further right must have come through the encoder's dilated layers. What stands
# further left may also come through the decoder's, which are causal. (A
# translation may be longer than its source. So PAD follows a source of $n$
# tokens, END included, until our small model has $\lfloor 1.2\, n \rfloor + 4$
# columns. A step behind the last column starts from the last word alone.)
#
# A layer is a *block*. Its input $x$ has $2d$ numbers for each place. The block
# makes $d$ numbers of them, looks through its window, and makes $2d$ numbers
# again. A LayerNorm and a ReLU stand before each of the three, and the input is
# added at the end. With $k = 3$ places and the dilation $r$, the decoder's
# block is
#
# $$\rho(x) = \max(0, \mathrm{LayerNorm}(x)) \qquad
# u_t = \rho(W_1\, \rho(x_t) + b_1)$$
#
# $$v_t = b_2 + \sum_{j=0}^{2} W_{2,j}\, u_{t - (2 - j)\, r} \qquad
# \mathrm{block}(x)_t = x_t + W_3\, \rho(v_t) + b_3$$
#
# The encoder's window is centred: it has $u_{t-r}$, $u_t$ and $u_{t+r}$. Column
# $t$ and the embedding of the last word are added, and go through the decoder's
# blocks. Two more layers, each with its own LayerNorm and ReLU before it, make
# the logits.

# %% tags=["hide-input", "alone"]
diagrams.bytenet_block(PICTURES / "12_bytenet_block.png")

# %% [markdown]
# *A block of ByteNet. The window in the middle works at half the width.*
#
# One set of five layers has the dilations 1, 2, 4, 8 and 16. The encoder's
# windows are centred, so it sees 31 words to each side. The decoder's look back
# alone, so it sees 63 positions, its own included. We measure the decoder's
# reach:

# %%
bytenet = ka.models.ByteNet.from_size("mini", 100, num_sets=1, dropout=0.0)
bytenet.build()
target_ids = np.arange(4, 84)[None]  # Each id once: a gradient for each place.
with tf.GradientTape() as tape:
    logits = bytenet(
        {"source_ids": np.array([[5, 6, END]]), "target_ids": target_ids}
    )
    loss = tf.reduce_sum(logits[:, -1] ** 2)
gradient = tape.gradient(loss, bytenet.target_embedding.embeddings.value)
seen = np.abs(tf.convert_to_tensor(gradient).numpy()[target_ids[0]]).max(1) > 0
print("the last of 80 steps sees", seen.sum(), "positions")
assert seen.sum() == 63 == 1 + 2 * (1 + 2 + 4 + 8 + 16)
assert not seen[:17].any()

# %% [markdown]
# Its time grows as the length does, for training and for translation. Its paper
# promises that in its title. The price is that a column is one vector, and has
# to hold whatever its step may need to know of the source.
#
# Can the columns learn what to hold? Two tasks with known answers ask this.
# Both have strings of one to six random letters.
#
# - To *copy* a string, step $t$ needs letter $t$, which is in its own column.
# - To *reverse* it, the first step needs the last letter. The encoder has to
#   bring it to the first column, from up to five columns away.
#
# A small ByteNet learns each task anew, and prints a line when it is ready.
# Each step of training has 64 random strings, and reversing gets more steps.
# Then we draw 1,000 strings, drop those that training has had, and count how
# many are right to the last letter, END included. (The decoder is given the
# right letters so far, as in training. Where all of its answers are right,
# greedy search writes the same string.)
#
# These are two of the ten trainings that share the 6 minutes of the chapter.

# %%
LONGEST = 6
STRING_STEPS = {"copy": 300, "reverse": 800}
letters = np.random.default_rng(1)


def strings(task, count):
    """Inputs and labels of that many random strings."""
    source_ids = np.full((count, LONGEST + 1), PAD)
    target_ids, labels = source_ids.copy(), source_ids.copy()
    lengths = letters.integers(1, LONGEST + 1, size=count)
    for row, length in enumerate(lengths):
        source = END + 1 + letters.integers(LETTERS, size=length)
        target = source[::-1] if task == "reverse" else source
        source_ids[row, : length + 1] = [*source, END]
        target_ids[row, : length + 1] = [START, *target]
        labels[row, : length + 1] = [*target, END]
    return {"source_ids": source_ids, "target_ids": target_ids}, labels


def predict(model, inputs):
    """The most probable token at each place, after the right ones."""
    return np.argmax(model.predict(inputs, verbose=0), axis=-1)


def string_of(row):
    return "".join("abcdefgh"[i - END - 1] for i in row if i > END)


for task, num_steps in STRING_STEPS.items():
    keras.utils.set_random_seed(1)
    num_steps = 2 if FAST else num_steps
    examples, labels = strings(task, 64 * num_steps)
    seen_strings = {tuple(row) for row in examples["source_ids"]}
    model = ka.models.ByteNet.from_size(
        "mini", END + 1 + LETTERS, hidden_dim=64, dropout=0.0
    )
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(3e-3, num_steps),
            global_clipnorm=1.0,
        ),
        loss=ka.training.losses.TokenCrossEntropy(),
        jit_compile=False,
    )
    model.fit(examples, labels, batch_size=64, epochs=1, verbose=0)

    examples, labels = strings(task, 1000)
    is_new = [tuple(r) not in seen_strings for r in examples["source_ids"]]
    found = predict(model, examples)
    right = ((found == labels) | (labels == PAD)).all(axis=1)
    first = is_new.index(True)
    print(
        f"{task}: {right[is_new].mean():.1%} of {sum(is_new)} new strings,",
        string_of(examples["source_ids"][first]),
        "->",
        string_of(found[first][labels[first] != PAD]),
    )
    if not FAST:
        assert right[is_new].mean() > 0.95

# %% [markdown]
# Both are learned. (With eight letters there are few short strings, and
# training has had most of them. So most of the counted strings are long.)
#
# ## The Neural GPU: as deep as the input is long
#
# ByteNet has a fixed number of layers. The *Neural GPU* (Kaiser and Sutskever
# 2016) applies one and the same gated convolution again and again, once for
# each word of the input, so that its depth grows with the length. Its memory is
# a vector for each word, END included. It is called a column, and begins as the
# word's embedding. A step rewrites all columns at once, as a graphics processor
# would: that is the name. Each column sees its neighbours, and gates like those
# of a GRU say what stays. After $n$ steps each can have heard of all $n$ words.
#
# Let $s$ be all columns, and let $U * s$ be a convolution: at column $t$ it is
# $b + U_{-1} s_{t-1} + U_0 s_t + U_1 s_{t+1}$. One step, the *convolutional
# GRU*, is chapter 1's GRU with convolutions in the place of its matrices:
#
# $$u = \sigma'(U_u * s) \qquad r = \sigma'(U_r * s) \qquad
# \tilde s = \tanh(U * (r \odot s)) \qquad
# s' = u \odot s + (1 - u) \odot \tilde s$$
#
# $$\sigma'(x) = \max\big(0, \min(1,\ 1.2\, \sigma(x) - 0.1)\big)$$
#
# The sharpened sigmoid $\sigma'$ reaches 0 and 1, which a sigmoid does not.
# Where $u$ is exactly 1, a column stays exactly what it was, over any number of
# steps.

# %% tags=["hide-input", "alone"]
diagrams.convolutional_gru(PICTURES / "12_neural_gpu.png")

# %% [markdown]
# *Two steps, from below to above. Drawn is what the middle column hears: three
# columns after one step, all five after two.* Columns may be several rows high;
# then the windows are 3 by 3, as in a picture. Ours have one row.
#
# The *Extended* Neural GPU (Kaiser and Bengio 2016) then writes its output word
# by word, and translates. Its decoder is another such GRU, which goes on from
# the encoder's columns. Step $t$ first writes the embedding of the last word on
# a *tape* beside column $t$. All windows see the tape, too. The gate $r$ does
# not act on it. After the step, a linear layer reads the logits from column
# $t$. Where the answer is longer than the source, a column of 0 is added in
# each step.
#
# Can `ka.models.ExtendedNeuralGPU` add? A sum is a text here. The lowest bit
# stands first, and the sum has one bit more. The next cell prints eleven plus
# six, with four bits each:

# %%
print(*addition.pair(11, 6, num_bits=4))
assert addition.pair(11, 6, num_bits=4) == ("1101+0110", "10001")

# %% [markdown]
# The two bits of one place are far apart: with numbers of $n$ bits, the one
# stands $n + 1$ columns after the other. And a *carry* may run through all
# places: 1111 plus 1000, fifteen plus one, is 00001.
#
# The model below is small: it has a column of 48 numbers for each character. It
# trains on numbers of at most 10 bits. At first they have at most three. The
# limit rises, and is 10 from the middle of the training on. Kaiser and
# Sutskever have such a *curriculum*, too. The tests have 500 sums each, of 10,
# 20 and 40 bits. None of them is in training.
#
# It takes 1,000 steps, and prints a line for each 250. It is the last of the
# ten trainings that share the 6 minutes of the chapter.

# %%
ADDING_STEPS = 3 if FAST else 1000
MOST_BITS = 4 if FAST else addition.MOST_BITS
BATCH_TOKENS = 384  # Of the sums, with END.
splits = addition.generate(held_out=20 if FAST else 500)


def sums(pairs):
    """Inputs and labels of sums of equally many bits."""
    sources, targets = (
        END + 1 + np.array([["01+".index(sign) for sign in t] for t in texts])
        for texts in zip(*pairs, strict=True)
    )
    start, end = (np.full((len(pairs), 1), sign) for sign in (START, END))
    inputs = {
        "source_ids": np.concatenate([sources, end], axis=1),
        "target_ids": np.concatenate([start, targets], axis=1),
    }
    return inputs, np.concatenate([targets, end], axis=1)


def train_adder(seed):
    of_bits = {
        bits: sums([p for p in splits["train"] if len(p[1]) == bits + 1])
        for bits in range(1, MOST_BITS + 1)
    }
    keras.utils.set_random_seed(seed)
    draws = np.random.default_rng(seed)
    model = ka.models.ExtendedNeuralGPU.from_size("mini", END + 4, dropout=0.0)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, ADDING_STEPS, warmup_target=3e-3, warmup_steps=100
    )
    model.compile(
        keras.optimizers.Adam(rate, global_clipnorm=1.0),
        loss=ka.training.losses.TokenCrossEntropy(),
        jit_compile=False,
    )
    for step in range(ADDING_STEPS):
        longest = 3 + 2 * (MOST_BITS - 3) * step // ADDING_STEPS
        bits = draws.integers(1, min(MOST_BITS, longest) + 1)
        inputs, labels = of_bits[bits]
        rows = draws.integers(len(labels), size=BATCH_TOKENS // (bits + 2))
        loss = model.train_on_batch(
            {name: ids[rows] for name, ids in inputs.items()}, labels[rows]
        )
        if (step + 1) % 250 == 0:
            print(f"{step + 1:5} steps, mean loss {float(loss):.2f}")
    return model


def without_carries(inputs):
    """The sums of a model that adds each two bits and carries nothing."""
    is_one = inputs["source_ids"][:, :-1] == END + 2
    num_bits = is_one.shape[1] // 2
    differ = is_one[:, :num_bits] != is_one[:, num_bits + 1 :]
    return END + 1 + np.pad(differ, ((0, 0), (0, 1))).astype(int)


adder = train_adder(seed=1)
sums_right, bits_right, bits_simple = {}, {}, {}
print("bits", "sums right", "bits right", "without carries", sep="  ")
for split in ("test", "test_20", "test_40"):
    bits = addition.LENGTHS[split]
    inputs, labels = sums(splits[split])
    is_right = predict(adder, inputs) == labels
    simple = without_carries(inputs) == labels[:, :-1]
    sums_right[bits] = is_right.all(axis=1).mean()
    bits_right[bits] = is_right[:, :-1].mean()  # END is no bit.
    bits_simple[bits] = simple.mean()
    shares = sums_right[bits], bits_right[bits], bits_simple[bits]
    print(f"{bits:4}", *(f"{share:10.1%}" for share in shares), sep="  ")
if not FAST:
    assert sums_right[10] > 0.7
    assert bits_right[10] > 0.95
    assert bits_right[20] > bits_simple[20] + 0.1
    assert sums_right[20] < sums_right[10] and sums_right[40] < 0.5

# %% [markdown]
# The last column is the share of right bits of a model that adds each two bits
# and carries nothing. With 10 bits most sums are right in every bit: the model
# has learned to carry. With 20 bits it still has more bits right than without
# carries, but fewer sums are right as a whole. With 40 bits few or no sums are
# right. The length at which it fails depends on the seed.
# [Results](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/addition.md)
# has ten trainings on a GPU, without a curriculum: some seeds learn the carry,
# others do not.
#
# ## What is left to attention
#
# | | operations over a distance of $n$ | one layer over $n$ words |
# |---|---|---|
# | recurrence | $n$ | $n$ steps, one after the other |
# | convolution | $n / (k - 1)$ | all words at once |
# | dilated | $\log n$ | all words at once |
# | attention | 1 | all words at once, with $n^2$ scores |
#
# A convolution is fast and near-sighted, and depth makes it see farther. One
# attention sees all words at once, and pays with a score for each pair. What it
# gives up is order. A window has places, left and right. Attention by itself
# knows none. Chapter 5 gave them back in one way.
#
# ## Your turn
#
# Write a causal convolution with gaps, for words that are single numbers. The
# loops are given. Which word does the window see at its place `j`? Place 0 is
# the oldest word, and the last place is word `t` itself.

# %% tags=["alone"]
import your_turn


def with_gaps(x, kernel, dilation):
    """x [T], kernel [k] -> [T]."""
    y = np.zeros(len(x))
    for t in range(len(x)):
        for j in range(len(kernel)):
            s = ...  # A position of x.
            if 0 <= s < len(x):
                y[t] += kernel[j] * x[s]
    return y


your_turn.check(12, with_gaps)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def with_gaps(x, kernel, dilation):
#     y = np.zeros(len(x))
#     for t in range(len(x)):
#         for j in range(len(kernel)):
#             s = t - (len(kernel) - 1 - j) * dilation
#             if 0 <= s < len(x):
#                 y[t] += kernel[j] * x[s]
#     return y
#
#
# your_turn.check(12, with_gaps)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: Four layers have windows of 3 words, without gaps. How many words does
#   the last output see?
# - b: The same four layers have the dilations 1, 2, 4 and 8. How many words
#   does it see now?
# - c: Two words stand 12 places apart. How many layers with windows of 5 words,
#   without gaps, does it take until the later one hears of the earlier one?

# %% tags=["alone"]
your_turn.quiz(12, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: Each layer adds 2 words.
# - b: A layer adds 2 words times its dilation.
# - c: Each layer reaches 4 places back.
#
# ```python
# your_turn.quiz(12, a=1 + 4 * 2, b=1 + 2 * (1 + 2 + 4 + 8), c=12 // 4)
# ```
#
# </details>
#
# ## Exercises
#
# 1. How many layers with a window of five words does a distance of 64 take,
#    without gaps and with dilations 1, 2, 4, ...?
#
# <details><summary>Solution</summary>
#
# $64 / 4 = 16$, and the smallest $L$ with $4 (2^L - 1) \ge 64$: five.
#
# ```python
# for dilations, expected in (([1] * 16, True), ([1] * 15, False),
#                             ([1, 2, 4, 8, 16], True), ([1, 2, 4, 8], False)):
#     stack = keras.Sequential(
#         [
#             ka.layers.CausalConvolution(4, 5, d, kernel_initializer="ones")
#             for d in dilations
#         ]
#     )
#     assert reach(stack)[-1, 0] == expected
# ```
#
# </details>
#
# 2. Three layers with a window of two words and dilations 1, 2, 4 see eight
#    words, each of them on exactly one path. How many words do they see with
#    dilations 1, 1, 1, and on how many paths each?
#
# <details><summary>Solution</summary>
#
# Four words, on 1, 3, 3 and 1 paths: the binomial coefficients. With kernels
# of ones, the response to a single 1 counts paths.
#
# ```python
# def paths(dilations):
#     x = np.zeros((1, 9, 1), "float32")
#     x[0, 0] = 1
#     for d in dilations:
#         x = ka.layers.CausalConvolution(1, 2, d, kernel_initializer="ones")(x)
#     return np.array(x)[0, :, 0].tolist()
#
#
# assert paths([1, 2, 4]) == [1] * 8 + [0]
# assert paths([1, 1, 1]) == [1, 3, 3, 1] + [0] * 5
# ```
#
# </details>
#
# 3. Without the gate, two convolutions in a row are one convolution with a
#    longer window. Show it.
#
# <details><summary>Solution</summary>
#
# A convolution is linear. Two of width 3 are one of width 5, whose kernel is
# what the two make of a single 1 (the biases are 0 here).
#
# ```python
# one = ka.layers.CausalConvolution(1, 3)
# two = ka.layers.CausalConvolution(1, 3)
# impulse = np.zeros((1, 5, 1), "float32")
# impulse[0, 0] = 1
# response = np.array(two(one(impulse)))[0, :, 0]
# both = ka.layers.CausalConvolution(1, 5)
# both.build((1, None, 1))
# both.set_weights([response[::-1, None, None], np.zeros(1)])
# signal = rng.normal(size=(1, 20, 1)).astype("float32")
# np.testing.assert_allclose(both(signal), two(one(signal)), atol=1e-5)
# ```
#
# </details>
#
# And with real data?
# [Results](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/every_translator.md)
# has the BLEU of all translators on Multi30k. ConvS2S, ByteNet and the Extended
# Neural GPU are among them.
# [SCAN](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/scan.md)
# is there, too. One of its splits tests commands whose answers are longer than
# those of training.
#
# Next: attention needs to be told where a word stands. There is more than one
# way, and [chapter 13](13_where_am_i.ipynb) compares them.
#
# ## References
#
# - Kalchbrenner et al. 2016, [Neural Machine Translation in Linear
#   Time](https://arxiv.org/abs/1610.10099) (ByteNet)
# - Gehring et al. 2017, [Convolutional Sequence to Sequence
#   Learning](https://arxiv.org/abs/1705.03122) (ConvS2S)
# - Vaswani et al. 2017, [Attention Is All You
#   Need](https://arxiv.org/abs/1706.03762)
# - Kaiser and Sutskever 2016, [Neural GPUs Learn
#   Algorithms](https://arxiv.org/abs/1511.08228)
# - Kaiser and Bengio 2016, [Can Active Memory Replace
#   Attention?](https://arxiv.org/abs/1610.08613)
