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
# # 17. What it costs
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/17_what_it_costs.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# By 2016 translators were large: Google's had eight layers of LSTMs on each
# side. Then cost is what decides. This chapter writes it as a bill of four
# lines:
#
# - *weights*: the numbers that are learned, kept and loaded;
# - *multiplications*: what a token costs in arithmetic;
# - *steps in a row*: how many steps have to wait for one another;
# - *memory*: what is kept while the model works.
#
# This chapter counts the four. Then it looks at six tricks of the years 2016 to
# 2023. Each makes a line of the bill smaller, or two. One of them, trick 5,
# computes the same function as before. The others give something up, and the
# table at the end says what.
#
# Takes about 5 minutes on two cores, with six trainings. The text before each
# says what is trained, and a line is printed when it is ready. Pictures are
# shown here and kept in the folder `pictures`. Vectors are rows in the
# equations of this chapter, as in $x W$ and in the code. Among other things it
# prints what each trick costs, how well four experts divide a function among
# themselves, and how much memory attention needs for 8,192 tokens.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

import keras_attention as ka
from keras_attention.data.embedded import sentences
from keras_attention.plotting import drawing

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
tf.get_logger().setLevel("ERROR")
rng = np.random.default_rng(1)

# %% [markdown]
# ## The bill of one layer
#
# A matrix of $a$ rows and $b$ columns has $a b$ weights. To multiply one vector
# by it takes $a b$ multiplications. So for one matrix and one vector the first
# two lines of the bill are equal. They are two lines all the same, and trick 3
# takes them apart. Biases are few, and adding them takes no multiplication.
#
# We do not trust formulas here. The next cell asks TensorFlow for the graph of
# a layer and adds up its matrix products. A product of $[a, b]$ and $[b, c]$
# has $a b c$ multiplications: $b$ for each number of the result.


# %%
PRODUCTS = ("MatMul", "BatchMatMulV2", "Einsum")


def multiplications(function, *shape):
    """Those of all matrix products, for one input of this shape."""
    traced = tf.function(function).get_concrete_function(tf.TensorSpec(shape))
    total = 0
    for operation in traced.graph.get_operations():
        if operation.type in PRODUCTS:
            left = operation.inputs[0]
            total += left.shape[-1] * np.prod(operation.outputs[0].shape)
    return int(total)


def matrix_weights(layer):
    """The weights of a layer's matrices, its biases left out."""
    return sum(
        int(np.prod(weight.shape))
        for weight in layer.weights
        if "bias" not in weight.path
    )


WIDTH = 256


def bill_of_step(cell):
    """Weights and multiplications of one step of a cell."""
    cell.build((1, WIDTH))
    zeros = [tf.zeros((1, size)) for size in cell.state_size]
    products = multiplications(lambda x: cell(x, zeros)[0], 1, WIDTH)
    return matrix_weights(cell), products


bills = {"LSTM": bill_of_step(keras.layers.LSTMCell(WIDTH))}
print("LSTM: {:,} weights, {:,} multiplications".format(*bills["LSTM"]))
assert bills["LSTM"] == (4 * WIDTH * 2 * WIDTH,) * 2

# %% [markdown]
# The LSTM of chapter 1 makes four vectors, three gates and a candidate, from
# its input $x$ and its state $h$. Here both have the width $n$. Written one
# after the other they are the row $[x; h]$ of $2n$ numbers, and one product
# makes all four:
#
# $$[i;\, f;\, g;\, o] = [x; h]\, W + b, \qquad
# c' = \sigma(f) \odot c + \sigma(i) \odot \tanh g, \qquad
# h' = \sigma(o) \odot \tanh c'$$
#
# $W$ has $2n$ rows and $4n$ columns, so $8 n^2$ weights. That is the bill to
# beat. ($\sigma$ is the sigmoid. In Keras's order $i$, $f$, $o$ are the gates
# for input, forgetting and output, and $g$ is the candidate.) Tricks 1 and 2
# change the product with $W$, and nothing else.
#
# ## Trick 1: two thin matrices for a thick one
#
# Kuchaiev and Ginsburg (2017) write the large matrix as a product of two small
# ones, $W = W_1 W_2$. $W_1$ has $2n$ rows and $r$ columns, and $W_2$ has $r$
# rows and $4n$ columns. Their F-LSTM ("factorized") has
# $2n \cdot r + r \cdot 4n = 6nr$ weights.
#
# What is lost? A product with such a waist has *rank* $r$ at most: whatever
# goes in, what comes out lies in a space of $r$ dimensions. If $r$ is as large
# as the smaller side of $W$, which is $2n$, nothing is lost: every $W$ is such
# a product. The singular value decomposition gives the factors. With a smaller
# $r$ it gives the product that is closest to $W$. So we can check it: we cut
# the matrix of an LSTM into two, and compare the outputs.


# %%
def factorized(lstm, rank):
    """An F-LSTM whose factors are the best ones of this rank."""
    kernel = np.concatenate([lstm.kernel, lstm.recurrent_kernel])  # [2n, 4n]
    left, values, right = np.linalg.svd(kernel, full_matrices=False)
    cell = ka.layers.FactorizedLSTMCell(WIDTH, rank)
    cell.build((1, WIDTH))
    cell.set_weights(
        [left[:, :rank] * values[:rank], right[:rank], lstm.bias.numpy()]
    )
    return cell


lstm = keras.layers.LSTMCell(WIDTH)
lstm.build((1, WIDTH))
x = rng.normal(size=(5, WIDTH)).astype("float32")
states = [tf.constant(rng.normal(size=(5, WIDTH)), "float32") for _ in "hc"]
expected, _ = lstm(x, states)
for rank in (2 * WIDTH, WIDTH, 64):
    output, _ = factorized(lstm, rank)(x, states)
    error = np.sqrt(np.mean((output - expected) ** 2))
    print(f"rank {rank}: {6 * WIDTH * rank:9,} weights, error {error:.5f}")
    if rank == 2 * WIDTH:
        assert error < 1e-5

# %% [markdown]
# With the full rank, 512, the two are the same function, and the factors are
# larger than what they replace. A smaller rank saves weights and makes an
# error: this matrix is random, so all its directions matter. A model that is
# *trained* with a waist chooses the directions that it needs.
#
# ## Trick 2: groups that do not talk
#
# G-LSTM cuts $x$, $h$ and $c$ into $k$ parts of $n / k$ numbers each. Group $j$
# is a small LSTM of its own. It reads part $j$ of $x$ and part $j$ of $h$, and
# keeps part $j$ of $c$. The outputs of all groups are put side by side. If the
# numbers of each group stand together, the large matrix is 0 but for $k$ blocks
# on its diagonal. A block has $2n / k$ rows and $4n / k$ columns. So the cell
# has $k \cdot 8 n^2 / k^2 = 8 n^2 / k$ weights, and the groups can be computed
# at the same time.

# %%
bills["F-LSTM, rank 64"] = bill_of_step(
    ka.layers.FactorizedLSTMCell(WIDTH, rank=64)
)
bills["G-LSTM, 4 groups"] = bill_of_step(
    ka.layers.GroupLSTMCell(WIDTH, num_groups=4)
)
for name, (weights, products) in bills.items():
    print(f"{name:17} {weights:9,} weights {products:9,} multiplications")
assert bills["F-LSTM, rank 64"] == (6 * WIDTH * 64,) * 2
assert bills["G-LSTM, 4 groups"] == (8 * WIDTH**2 // 4,) * 2

# %% [markdown]
# Do they still learn? The three cells read sentences from a source whose
# entropy is known, and say how probable each next word is. *Perplexity* is $e$
# to the mean loss. A model of perplexity 12 is as unsure as if 12 words were
# equally likely. No model gets below the source's own perplexity, but for
# chance. (More of this source is in [chapter 14](14_one_stack.ipynb).) The next
# cell trains five models, one after the other: 32,000 sentences once each. Each
# prints its perplexity when it is ready. They are five of the six trainings
# that share the 5 minutes of the chapter.

# %%
NUM_SENTENCES = 640 if FAST else 32_000
texts = sentences.generate(train=NUM_SENTENCES, validation=1, test=500)
words = ["", "<end>", *sentences.vocabulary()]
number_of = {word: index for index, word in enumerate(words)}


def as_ids(lines):
    """Inputs and labels: each word, and the one behind it. 0 is padding."""
    rows = [[number_of[w] for w in line.split()] + [1] for line in lines]
    ids = keras.utils.pad_sequences(rows, padding="post", maxlen=24)
    before = np.pad(ids[:, :-1], ((0, 0), (1, 0)), constant_values=1)
    return np.where(ids > 0, before, 0), ids


def perplexity_of(cell):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Embedding(len(words), WIDTH, mask_zero=True),
            keras.layers.RNN(cell, return_sequences=True),
            keras.layers.Dense(len(words)),
        ]
    )
    model.compile(
        keras.optimizers.Adam(3e-3),
        ka.training.losses.TokenCrossEntropy(),
        jit_compile=False,
    )
    model.fit(*as_ids(texts["train"]), batch_size=128, epochs=1, verbose=0)
    return float(np.exp(model.evaluate(*as_ids(texts["test"]), verbose=0)))


perplexities = {}
for name, make in {
    "LSTM": lambda: keras.layers.LSTMCell(WIDTH),
    "F-LSTM, rank 64": lambda: ka.layers.FactorizedLSTMCell(WIDTH, rank=64),
    "G-LSTM, 4 groups": lambda: ka.layers.GroupLSTMCell(WIDTH, 4),
    "LSTM of width 94": lambda: keras.layers.LSTMCell(94),
    "LSTM of width 74": lambda: keras.layers.LSTMCell(74),
}.items():
    perplexities[name] = perplexity_of(make())
    print(f"{name:17} perplexity {perplexities[name]:.2f}")
print(f"the source itself: {np.exp(sentences.entropy_rate()):.2f}")

# %% [markdown]
# The LSTMs of width 94 and 74 are the rivals: plain cells that are simply
# narrower. Their input still has 256 numbers, so a cell of width $n$ has
# $4n\,(256 + n)$ weights. That makes about as many for 94 as for the G-LSTM,
# and about as many for 74 as for the F-LSTM. A trick is worth its name where it
# beats a narrower layer of the same bill. Both do so here, in one pass over the
# sentences with one seed. (The rivals also give fewer numbers to the layer that
# predicts the word.)

# %%
if not FAST:
    assert perplexities["F-LSTM, rank 64"] < perplexities["LSTM of width 74"]
    assert perplexities["G-LSTM, 4 groups"] < perplexities["LSTM of width 94"]

# %% [markdown]
# ## Trick 3: many experts, few of them at work
#
# A feed-forward network has two matrices, and each token uses all of both.
# Shazeer et al. (2017) keep many such networks, the *experts*, and a *gate*
# that chooses $k$ of them for each token $x$:
#
# $$y = \sum_{i \in \text{chosen}} G(x)_i\, E_i(x), \qquad
# E_i(x) = \max(0,\; x W_1^i + b_1^i)\, W_2^i + b_2^i$$
#
# $E_i$ is expert $i$. The gate's scores are $x W_g$, one for each expert. The
# $k$ experts with the largest scores are chosen. $G(x)_i$ is the share of
# expert $i$: a softmax over the $k$ chosen scores. An expert that is not chosen
# has the share 0, and is not computed. Here the first two lines of the bill
# come apart. Weights grow with the number of experts, multiplications with $k$.
#
# In training, the gate adds noise to the scores. So experts that are nearly
# good enough are tried, too:
#
# $$s_i = (x W_g)_i + \varepsilon_i\, d_i, \qquad
# d_i = \ln\big(1 + e^{(x W_\text{noise})_i}\big), \qquad
# \varepsilon_i \text{ normal, with mean 0 and deviation 1}$$
#
# Then the noisy scores $s_i$ decide on choice and share. $W_\text{noise}$ is
# learned. Both matrices of the gate start at zero, so at first all experts have
# the same score $x W_g$.
#
# The paper also adds two losses, so that all experts have work to do. The
# *importance* of an expert is the sum of its shares over the tokens of a batch.
# Its *load* is the number of tokens that choose it. A count has no gradient, so
# the load is estimated by a sum of probabilities:
#
# $$\mathrm{importance}_i = \sum_x G(x)_i, \qquad
# \mathrm{load}_i = \sum_x \Phi\left(\frac{(x W_g)_i - t_i}{d_i}\right)$$
#
# Here $t_i$ is the $k$-th largest noisy score among the *other* experts. If
# $s_i$ is above it, $i$ is chosen. $\Phi$ is the distribution function of the
# normal distribution. So a term of the load is the probability that $x$ chooses
# $i$ if only the noise of $i$ is drawn again. One loss comes from the
# importance of all experts, and one from their load. It is 0.1 (in the package)
# times (standard deviation / mean)² over the experts, so it is 0 if all experts
# have the same. (The deviation is that of `np.std`.)
#
# Now count. The plain network has a hidden layer of $4n$ numbers. Each of 16
# experts has one of $2n$, and a token uses two of them:

# %%
EXPERTS, CHOSEN, TOKENS = 16, 2, 512
network = ka.layers.FeedForward(4 * WIDTH)
network.build((TOKENS, WIDTH))
bills["feed-forward"] = (
    matrix_weights(network),
    multiplications(network, TOKENS, WIDTH) // TOKENS,
)
mixture = ka.layers.MixtureOfExperts(EXPERTS, 2 * WIDTH, CHOSEN)
mixture.build((TOKENS, WIDTH))
bills["16 experts, 2 chosen"] = (
    matrix_weights(mixture),
    CHOSEN * 2 * WIDTH * 2 * WIDTH + EXPERTS * WIDTH,
)
computed = multiplications(mixture, TOKENS, WIDTH) // TOKENS
for name in ("feed-forward", "16 experts, 2 chosen"):
    weights, products = bills[name]
    print(f"{name:20} {weights:9,} weights {products:9,} multiplications")
print(f"the layer computes {computed:,}: it fills its blocks up")
assert bills["16 experts, 2 chosen"][0] > 7 * bills["feed-forward"][0]
assert bills["16 experts, 2 chosen"][1] < 1.02 * bills["feed-forward"][1]
assert computed < 2.1 * bills["feed-forward"][1]

# %% [markdown]
# The mixture has eight times the weights. A token needs about as many
# multiplications as before: those of its two experts, and a few for the gate.
# The machine computes up to twice as many. It sorts the tokens by their expert
# into blocks of one size. Blocks are not always full, and it computes their
# empty rows, too.
#
# Does the gate learn who is good at what? A point has four numbers, and the
# signs of the first two say in which *quadrant* it lies. Each quadrant has an
# affine function of its own (a matrix and an offset), which makes the point's
# label. Four experts without an activation, so affine like the functions, learn
# from points and labels. Each point chooses two. We look at the one with the
# larger share. *Purity* is the share of points that lie in the quadrant from
# which their expert has most of its points. It is about 0.25 if one expert has
# all points, and 1 if no expert has points of two quadrants.
#
# The next cell trains the four experts together for 40 epochs, the last of the
# six trainings that share the 5 minutes of the chapter.

# %%
keras.utils.set_random_seed(0)
draws = np.random.default_rng(0)
matrices = 2 * draws.normal(size=(4, 4, 4))
offsets = 2 * draws.normal(size=(4, 4))
points = draws.uniform(-1, 1, size=(4096, 4)).astype("float32")
quadrant = 2 * (points[:, 0] > 0) + (points[:, 1] > 0)
wanted = np.einsum("nd,ndo->no", points, matrices[quadrant])
wanted = wanted + offsets[quadrant]


def purity(chosen):
    """The share of points whose expert has most of its points with them."""
    counts = [np.bincount(quadrant[chosen == e]).max() for e in set(chosen)]
    return sum(counts) / len(chosen)


experts = ka.layers.MixtureOfExperts(4, 8, 2, activation="linear")
model = keras.Sequential([experts])
model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
model.fit(points, wanted, batch_size=128, epochs=1 if FAST else 40, verbose=0)
best = np.argmax(experts.gates(points), axis=1)
print(f"purity: {purity(best):.3f}")
if not FAST:
    assert purity(best) > 0.98

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(4.4, 4.6), layout="constrained")
    axes = figure.subplots()
    for expert in range(4):
        chosen = best == expert
        axes.scatter(
            points[chosen, 0], points[chosen, 1], s=5,
            color=drawing.COLORS[expert], label=f"expert {expert + 1}",
        )  # fmt: skip
    axes.axhline(0, color="#888888")
    axes.axvline(0, color="#888888")
    axes.set(xlabel="first number of a point", ylabel="second number")
    axes.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=2, markerscale=3)
    drawing.save(figure, PICTURES / "17_experts.png")
figure  # noqa: B018

# %% [markdown]
# *Each dot is a point, in the colour of the expert with the largest share.*
# Nobody told the gate where the quadrants are. (The experts are as pure here
# without the two losses, see exercise 4: all quadrants are equally large, and
# all experts are needed. The paper adds the losses because its gates tended to
# choose the same few experts for all tokens. An expert that is chosen more
# learns more, and is chosen even more.)
#
# ## Trick 4: layers that need not wait
#
# Google's translator (GNMT, Wu et al. 2016) has eight LSTMs on top of each
# other on each side, each on a graphics card of its own. Then the bill's third
# line decides: what has to wait for what? A cell needs two things: its own
# state at the word before, and the output of the layer below. So layer 2 can
# read word 1 while layer 1 reads word 2.
#
# A *bidirectional* layer destroys that: its output at word 1 needs the whole
# text, read backwards. So GNMT's encoder has one bidirectional layer, at the
# bottom, and seven that read forwards. The second layer reads both directions
# side by side.
#
# The decoder has one attention. Its *bottom* layer asks, and all layers read
# what it finds. At word $t$, with $y^k_t$ for the output of layer $k$:
#
# $$\begin{aligned}
# a_t &= \mathrm{attention}(\text{query } y^1_{t-1},\;
#   \text{memory: the top of the encoder}) \\
# y^1_t &= \mathrm{LSTM}([\text{embedding of the word before};\; a_t]) \\
# y^2_t &= \mathrm{LSTM}([y^1_t;\; a_t]) \\
# y^k_t &= \mathrm{LSTM}([y^{k-1}_t;\; a_t]) + y^{k-1}_t
#   \qquad k = 3, \dots, 8
# \end{aligned}$$
#
# The attention is chapter 3's, and the logits are an affine function of
# $y^8_t$. The first query and all first states are zero. From the third layer
# on, a layer adds its input to its output, a residual connection as in [chapter
# 5](05_transformer.ipynb). The encoder does so, too.
#
# If the *top* layer asked instead, with its output at the word before, the
# bottom layer would have to wait for the whole stack before each word.
#
# We do not trust this either, and simulate the waiting. Each cell takes one
# tick and starts as soon as it has what it needs. The two directions of a
# bidirectional layer run at the same time. The attention takes no tick.


# %%
def ticks_of_encoder(kinds, length):
    """Ticks until a stack has read a text, a card for each direction."""
    below = np.zeros(length, int)  # When the words are there.
    for kind in kinds:
        ahead, back = np.zeros(length, int), np.zeros(length, int)
        for t in range(length):
            ahead[t] = 1 + max(below[t], ahead[t - 1] if t else 0)
        for t in reversed(range(length)):
            later = back[t + 1] if t + 1 < length else 0
            back[t] = 1 + max(below[t], later)
        below = np.maximum(ahead, back) if kind == "both" else ahead
    return int(below.max())


def ticks_of_decoder(num_layers, length, asks):
    """Ticks of a decoder in training, where the words are known."""
    ready = np.zeros((num_layers, length), int)
    for t in range(length):
        for layer in range(num_layers):
            needs = [ready[layer, t - 1] if t else 0]
            if layer:
                needs.append(ready[layer - 1, t])
            elif t:  # The bottom layer needs a context, asked one step before.
                needs.append(
                    ready[num_layers - 1 if asks == "top" else 0, t - 1]
                )
            ready[layer, t] = 1 + max(needs)
    return int(ready.max())


LAYERS, LENGTH = 8, 50
waits = {
    "encoder, 8 bidirectional": ticks_of_encoder(["both"] * LAYERS, LENGTH),
    "encoder, GNMT": ticks_of_encoder(["both"] + ["ahead"] * 7, LENGTH),
    "encoder, 8 forwards": ticks_of_encoder(["ahead"] * LAYERS, LENGTH),
    "decoder, the top asks": ticks_of_decoder(LAYERS, LENGTH, "top"),
    "decoder, the bottom asks": ticks_of_decoder(LAYERS, LENGTH, "bottom"),
}
for name, ticks in waits.items():
    print(f"{name:25} {ticks:4} ticks")
assert list(waits.values()) == [
    LAYERS * LENGTH,
    2 * LENGTH + LAYERS - 2,
    LENGTH + LAYERS - 1,
    LAYERS * LENGTH,
    LENGTH + LAYERS - 1,
]

# %% [markdown]
# For 50 words, eight bidirectional layers take 400 ticks, and GNMT's encoder
# 106. A layer of a Transformer's encoder waits only for the layer below: eight
# layers take 8 ticks for any text. [Chapter 5](05_transformer.ipynb) gives this
# as a reason to do without recurrence.
#
# ## Trick 5: attention without its matrix
#
# Attention pays with memory, the fourth line. For $T$ words it makes $T^2$
# scores and as many weights, and in training they are kept for the gradient.
# The softmax seems to need all scores of a query at once, because each weight
# is divided by the sum over all of them. But the *context* $c$ of a query needs
# only two sums, and sums can be made word by word:
#
# $$c = \frac{\sum_j e^{x_j - m}\, v_j}{\sum_j e^{x_j - m}}$$
#
# $x_j$ is the score of the query with word $j$, and $v_j$ is the value of word
# $j$. $m$ may be any number, since it cancels. We take the largest score so
# far, so no power is larger than 1. A larger score becomes the new maximum
# $m'$. Then both sums so far are multiplied by $e^{m - m'}$, as if $m'$ had
# been there from the beginning (Milakov and Gimelshein 2018). No weight is ever
# kept:


# %%
def context_word_by_word(scores, values):
    largest, below, above = -np.inf, 0.0, np.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        new_largest = max(largest, score)
        shrink = np.exp(largest - new_largest)
        below = below * shrink + np.exp(score - new_largest)
        above = above * shrink + np.exp(score - new_largest) * value
        largest = new_largest
    return above / below


scores, values = rng.normal(size=100) * 5, rng.normal(size=(100, 4))
weights = np.exp(scores) / np.exp(scores).sum()
np.testing.assert_allclose(
    context_word_by_word(scores, values), weights @ values
)

# %% [markdown]
# It is the same vector, not an approximation (but for rounding).
# `ka.layers.online_softmax_attention` does this for all queries at once, with
# blocks of 256 keys. Its scores are $q \cdot k / \sqrt{d_k}$. It keeps $m$ and
# the sum below the line for each query. With them it computes the weights of a
# block once more when the gradient needs them (Rabe and Staats 2021, Dao et al.
# 2022).
#
# The next cell starts fresh processes. Each computes context and gradient of
# one text with two heads, with the whole matrix or in blocks, and prints how
# much memory it has needed at most. The smaller numbers are mostly TensorFlow
# itself, which needs them without any text:

# %%
PROGRAM = """
import resource, sys
import tensorflow as tf
import keras_attention as ka

x = tf.ones((1, 2, int(sys.argv[2]), 16))
with tf.GradientTape() as tape:
    tape.watch(x)
    if sys.argv[1] == "blocks":
        context = ka.layers.online_softmax_attention(x, x, x)
    else:
        context, _ = ka.layers.dot_product_attention(x, x, x)
tape.gradient(context, x)
unit = 2**20 if sys.platform == "darwin" else 2**10
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
"""


def megabytes(way, length):
    command = [sys.executable, "-c", PROGRAM, way, str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


lengths = (512, 1024) if FAST else (2048, 4096, 8192)
memory = {
    way: [megabytes(way, length) for length in lengths]
    for way in ("whole", "blocks")
}
print("tokens", *lengths, sep="\t")
for way, row in memory.items():
    print(way, *(f"{size:.0f} MB" for size in row), sep="\t")
if not FAST:
    growth = {way: row[-1] - row[0] for way, row in memory.items()}
    assert growth["whole"] > 8 * growth["blocks"]

# %% [markdown]
# The whole matrix of 8,192 tokens and two heads takes half a gigabyte (8,192² ·
# 2 numbers of 4 bytes), and several such matrices are in memory at once. Blocks
# need so little that it does not show beside TensorFlow. They cost a seventh
# matrix product. Scores and context are two products, and their gradients are
# four. The seventh computes the scores once more. And there is no heat map:
# weights that were never kept cannot be drawn.
#
# ## Trick 6: heads that share what they look at
#
# A decoder keeps keys and values of all words so far, for each head. That is
# its *cache* (chapter 5). At each step it reads all of the cache, and does few
# multiplications with each number. So the fourth line decides. In *multi-query*
# attention (Shazeer 2019) all heads share one head of keys and values. In
# *grouped-query* attention (Ainslie et al. 2023) the heads form groups, and
# each group shares one: of 8 heads with 2 shared ones, heads 1 to 4 use the
# first and heads 5 to 8 the second. There are as many queries as before, so
# each head still asks its own question.

# %%
HEADS, HEAD_WIDTH = 8, WIDTH // 8
for name, shared in (("8 heads", 8), ("2 shared", 2), ("1 shared", 1)):
    layer = ka.layers.MultiHeadAttention(
        HEADS, HEAD_WIDTH, num_key_value_heads=shared
    )
    layer.build((1, TOKENS, WIDTH))
    products = multiplications(lambda x: layer(query=x)[0], 1, TOKENS, WIDTH)  # noqa: B023
    bills[f"attention, {name}"] = (matrix_weights(layer), products // TOKENS)
    cache = layer.initial_cache(1, TOKENS)
    numbers = 2 * int(np.prod(cache.key.shape)) // TOKENS
    print(
        f"{name:9} {matrix_weights(layer):8,} weights,",
        f"{numbers:4} numbers of cache a word",
    )
    assert numbers == 2 * shared * HEAD_WIDTH
    assert matrix_weights(layer) == 2 * WIDTH * (WIDTH + shared * HEAD_WIDTH)


# %% tags=["hide-input"]
def draw_bills():
    """An arrow for each trick: weights to the right, products upwards."""
    arrows = [
        ("LSTM", "F-LSTM, rank 64"),
        ("LSTM", "G-LSTM, 4 groups"),
        ("feed-forward", "16 experts, 2 chosen"),
        ("attention, 8 heads", "attention, 1 shared"),
    ]
    with drawing.style():
        figure = drawing.Figure(figsize=(7.4, 4.6), layout="constrained")
        axes = figure.subplots()
        for index, (start, end) in enumerate(arrows):
            color = drawing.COLORS[index]
            axes.annotate(
                "", bills[end], bills[start],
                arrowprops={"arrowstyle": "->", "color": color, "lw": 2},
            )  # fmt: skip
            axes.plot(*bills[end], "o", color=color, label=end)
        for name in {start for start, _ in arrows}:
            axes.plot(*bills[name], "s", color=drawing.INK)
        axes.plot([5e4, 5e6], [5e4, 5e6], color="#BBBBBB", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set(xlabel="weights", ylabel="multiplications a token")
        drawing.finish(axes)
        drawing.save(figure, PICTURES / "17_bills.png")
    return figure


draw_bills()

# %% [markdown]
# *A black square is a plain layer: LSTM and feed-forward network share the
# right one, and attention with 8 heads is the left one. An arrow is a trick,
# and leads to its dot. On the grey line a token uses each weight once. F-LSTM
# and G-LSTM go down along it, one arrow on the other. Experts leave it to the
# right: a token does not use all weights. Attention lies above it, because it
# also multiplies words by words.*
#
# | trick | what it saves | what it pays |
# |---|---|---|
# | F-LSTM | weights and multiplications | rank |
# | G-LSTM | weights and multiplications | groups do not see each other |
# | experts | multiplications for each weight | more weights, a gate to train |
# | GNMT's order | steps in a row | seven layers read in one direction |
# | online softmax | memory | scores computed twice, no heat map |
# | shared keys | cache, and weights | heads look at the same keys |
#
# ## Your turn
#
# Write the gate of trick 3, without noise. For each token it chooses the $k$
# experts with the largest scores. Their shares are a softmax over these $k$
# scores.

# %% tags=["alone"]
import your_turn


def gate_shares(scores, k):
    """scores [T, experts] -> shares [T, experts]; k of each row are not 0."""
    threshold = np.sort(scores, axis=1)[:, -k][:, None]  # The k-th largest.
    ...


your_turn.check(17, gate_shares)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def gate_shares(scores, k):
#     threshold = np.sort(scores, axis=1)[:, -k][:, None]  # The k-th largest.
#     exponentials = np.where(scores >= threshold, np.exp(scores), 0)
#     return exponentials / exponentials.sum(axis=1, keepdims=True)
#
#
# your_turn.check(17, gate_shares)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: Each of 16 experts has a matrix of 64 by 128 and one of 128 by 64. How
#   many weights are that?
# - b: A token uses two of them. How many multiplications does it cost, those of
#   the gate ($x W_g$, 64 by 16) included?
# - c: 8 heads, 32 wide, share two heads of keys and values. How many numbers of
#   cache does a word take?

# %% tags=["alone"]
your_turn.quiz(17, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: Both matrices of all experts.
# - b: Those of two experts, and $W_g$.
# - c: Two keys and two values, each 32 wide.
#
# ```python
# your_turn.quiz(17, a=16 * 2 * 64 * 128, b=4 * 64 * 128 + 64 * 16, c=4 * 32)
# ```
#
# </details>
#
# ## Exercises
#
# 1. From which rank on does an F-LSTM of width 256 have more weights than the
#    LSTM?
#
# <details><summary>Solution</summary>
#
# $6 n r > 8 n^2$, so $r > 4 n / 3 = 341.3$. That is from 342 on.
#
# ```python
# full = bill_of_step(keras.layers.LSTMCell(WIDTH))[0]
# for rank, is_more in ((341, False), (342, True)):
#     cell = ka.layers.FactorizedLSTMCell(WIDTH, rank)
#     assert (bill_of_step(cell)[0] > full) == is_more
# ```
#
# </details>
#
# 2. If *all* experts are chosen, and the gate gives all the same score, a
#    mixture is a plain average. Show it for a fresh layer.
#
# <details><summary>Solution</summary>
#
# The gate starts at zero. So with $n$ experts all shares are $1 / n$.
#
# ```python
# layer = ka.layers.MixtureOfExperts(3, 8, num_chosen=3)
# x = rng.normal(size=(5, 4)).astype("float32")
# layer.build(x.shape)
# outputs = [
#     np.maximum(x @ a + b, 0) @ c + d
#     for a, b, c, d in zip(
#         *(
#             w.numpy()
#             for w in (
#                 layer.expand_kernel,
#                 layer.expand_bias,
#                 layer.contract_kernel,
#                 layer.contract_bias,
#             )
#         ),
#         strict=True,
#     )
# ]
# np.testing.assert_allclose(layer(x), np.mean(outputs, axis=0), atol=1e-5)
# ```
#
# </details>
#
# 3. How many ticks does the encoder need if only the *last* of the eight layers
#    is bidirectional?
#
# <details><summary>Solution</summary>
#
# The last layer's way back begins when the last word has come up through seven
# layers, at tick $T + 6$, and takes $T$ more.
#
# ```python
# ticks = ticks_of_encoder(["ahead"] * 7 + ["both"], LENGTH)
# assert ticks == 2 * LENGTH + 6
# ```
#
# </details>
#
# 4. Train the four experts without the two losses. How pure are they?
#
# <details><summary>Solution</summary>
#
# As pure as with them. All four quadrants are equally large, and one affine
# function cannot serve two of them. So each expert has work.
#
# ```python
# free = ka.layers.MixtureOfExperts(
#     4, 8, 2, importance_weight=0, load_weight=0, activation="linear"
# )
# model = keras.Sequential([free])
# model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=False)
# epochs = 1 if FAST else 40
# model.fit(points, wanted, batch_size=128, epochs=epochs, verbose=0)
# print(purity(np.argmax(free.gates(points), axis=1)))
# ```
#
# </details>
#
# ## References
#
# - Kuchaiev and Ginsburg 2017, [Factorization tricks for LSTM
#   networks](https://arxiv.org/abs/1703.10722)
# - Shazeer et al. 2017, [Outrageously Large Neural Networks: The
#   Sparsely-Gated Mixture-of-Experts Layer](https://arxiv.org/abs/1701.06538)
# - Wu et al. 2016, [Google's Neural Machine Translation
#   System](https://arxiv.org/abs/1609.08144)
# - Milakov and Gimelshein 2018, [Online normalizer calculation for
#   softmax](https://arxiv.org/abs/1805.02867)
# - Rabe and Staats 2021, [Self-attention Does Not Need O(n^2)
#   Memory](https://arxiv.org/abs/2112.05682)
# - Dao et al. 2022, [FlashAttention](https://arxiv.org/abs/2205.14135)
# - Shazeer 2019, [Fast Transformer Decoding: One Write-Head is All You
#   Need](https://arxiv.org/abs/1911.02150)
# - Ainslie et al. 2023, [GQA](https://arxiv.org/abs/2305.13245)
