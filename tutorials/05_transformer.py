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
# # 5. The Transformer
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/05_transformer.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# The models of the last chapters look back at the source with attention, but
# what they look at, and what they look with, are still the states of a
# recurrent network. Do we need the recurrence at all? This chapter takes it
# out (Vaswani et al. 2017), finds what is lost, puts that back, and ends with
# the whole Transformer: first from the package's layers, then by hand.
#
# Takes about 5 minutes on two cores. At the end the chapter prints how many
# lists of numbers a small Transformer translates rightly, beside the models of
# chapters 2 and 3. It also prints what the model loses without self-attention,
# what it loses without each head, and what decoding costs with and without a
# cache. Pictures are shown here and kept in the folder `pictures`.
#
# Others explain the Transformer well, too. Jay Alammar's [Illustrated
# Transformer](https://jalammar.github.io/illustrated-transformer/) follows one
# sentence through it in pictures, and
# [3Blue1Brown](https://www.3blue1brown.com/lessons/attention) moves them. The
# [Annotated Transformer](https://nlp.seas.harvard.edu/annotated-transformer/)
# puts code beside each paragraph of the paper. [TensorFlow's
# tutorial](https://www.tensorflow.org/text/tutorials/transformer) builds a
# translator from Keras's own layers, [Dive into Deep
# Learning](https://d2l.ai/chapter_attention-mechanisms-and-transformers/transformer.html)
# is a textbook with exercises, and Andrej Karpathy's [Zero to
# Hero](https://karpathy.ai/zero-to-hero.html) writes a GPT while you watch.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import functools
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
from keras_attention.plotting import drawing
from keras_attention.tokens import CONTROL_TEXTS, END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")

# %% [markdown]
# ## What the recurrence costs
#
# A recurrent network computes $h_t = \tanh(x_t W + h_{t-1} U + b)$. (From here
# on vectors are rows in equations, too, as in $x W$. So they are in chapter 1,
# in this chapter's paper and in all code.) What the first word has to say to
# the last one is handed on from state to state, like a message whispered down a
# row of people. To see how far a message has come, give every position a worker
# of its own and let all work at the same time. In one *tick* each worker reads
# its input and what its left neighbour held one tick ago, and writes its new
# state. After $n$ ticks the row of $n$ workers holds exactly the states of the
# recurrent network.

# %%
LENGTH, WIDTH = 12, 8
x = keras.random.normal((1, LENGTH, WIDTH), seed=1)
recurrent = keras.layers.SimpleRNN(WIDTH, return_sequences=True)
states = recurrent(x)
W, U, b = recurrent.weights


def ticks(x, number):
    """The states of all positions after some ticks, from states of 0."""
    state = ops.zeros_like(x)
    for _ in range(number):
        left = ops.pad(state[:, :-1], [[0, 0], [1, 0], [0, 0]])
        state = ops.tanh(ops.matmul(x, W) + ops.matmul(left, U) + b)
    return state


np.testing.assert_allclose(ticks(x, LENGTH), states, atol=1e-6)

# %% [markdown]
# **Self-attention** hands nothing on. Every position asks all others directly.
# It is the attention of the last chapters with one change: the sentence is
# query and memory at once. In its barest form it has no weights to learn; with
# $D$ the width of each $x_t$,
#
# $$\begin{aligned}
# \text{scores}_{ts} &= \frac{x_t \cdot x_s}{\sqrt{D}}, \\
# \text{attention weights}_t &= \text{softmax}(\text{scores}_t), \\
# \text{context}_t &= \sum_s \text{attention weights}_{ts}\, x_s .
# \end{aligned}$$
#
# Who hears whom? Output $t$ has heard of input $s$ if its gradient with
# respect to that input is not 0.


# %%
def bare_self_attention(x):
    """x is query, key and value."""
    scores = ops.matmul(x, ops.swapaxes(x, 1, 2)) / math.sqrt(x.shape[-1])
    attention_weights = ops.softmax(scores, axis=-1)  # [B, T, S]
    return ops.matmul(attention_weights, x)


def gradient_norms(function, x):
    """[T, S]: the norm of d output_t / d input_s, for a batch of one.

    The features of an output are mixed at random to one number, which
    is 0 everywhere only if nothing of input s arrives.
    """
    mixture = keras.random.normal((x.shape[-1],), seed=2)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        mixed = tf.unstack(ops.matmul(function(x)[0], mixture[:, None]))
    gradients = [tape.gradient(output, x)[0] for output in mixed]
    return np.linalg.norm(gradients, axis=-1)


t, s = np.indices((LENGTH, LENGTH))
for number in range(1, LENGTH + 1):
    heard = gradient_norms(lambda x, k=number: ticks(x, k), x) > 0
    assert np.array_equal(heard, (0 <= t - s) & (t - s < number))
assert (gradient_norms(bare_self_attention, x) > 0).all()

# %% [markdown]
# So it takes all 12 ticks for the last state to hear the first word, while
# self-attention reaches everything at once, backwards and forwards: the path
# between any two positions has length 1 instead of up to $n$ (Vaswani et al.
# 2017, table 1). A short path matters for learning, since each step of a long
# one can shrink the gradient, as [chapter 1](01_recurrence.ipynb) measured.
#
# The second cost is time. State $t$ cannot be computed before state $t - 1$, so
# a processor with a thousand free units still waits $n$ times. The graph that
# TensorFlow computes shows what has to wait for what. The function `cost` walks
# through it and returns two things: the multiply-adds of all matrix products,
# and the longest chain of products in which each needs the one before it.


# %% tags=["hide-input"]
def cost(function, *arguments):
    """(multiply-adds in matrix products, length of their longest chain)."""
    traced = tf.function(function, autograph=False)
    graph = traced.get_concrete_function(*arguments).graph
    multiply_adds, chain = 0, {}
    for operation in graph.get_operations():
        assert "Call" not in operation.type and "While" not in operation.type
        is_product = operation.type in ("MatMul", "BatchMatMulV2")
        chain[operation.name] = is_product + max(
            (chain[tensor.op.name] for tensor in operation.inputs), default=0
        )
        if is_product:
            # [..., T, K] times [..., K, S], or the first one turned round.
            turned = "adj_x" if "Batch" in operation.type else "transpose_a"
            inner = -2 if operation.get_attr(turned) else -1
            multiply_adds += (
                operation.outputs[0].shape.num_elements()
                * operation.inputs[0].shape[inner]
            )
    return multiply_adds, max(chain.values())


# %%
print(f"{'n':>4} {'recurrent':>20} {'self-attention':>20}")
D = 32
for n in (8, 16, 32, 64, 128):
    sequence = keras.random.normal((1, n, D), seed=n)
    recurrent = keras.layers.SimpleRNN(D, return_sequences=True, unroll=True)
    attention = ka.layers.MultiHeadAttention(num_heads=4, key_dim=D // 4)
    recurrent(sequence), attention(sequence)  # Creates the weights.
    of_recurrent = cost(recurrent, sequence)
    of_attention = cost(attention, sequence)
    assert of_recurrent == (2 * n * D**2, n)
    assert of_attention == (4 * n * D**2 + 2 * n**2 * D, 4)
    print(
        f"{n:4} {of_recurrent[0]:12,} in {of_recurrent[1]:3}"
        f" {of_attention[0]:14,} in {of_attention[1]}"
    )

# %% [markdown]
# The recurrent layer's chain is as long as the sentence. Self-attention's has
# four products for any length: projections, scores, context, output. The
# price is in the multiply-adds: besides $4nD^2$ for the projections, which we
# come to now, there are $2n^2D$ for the $n^2$ pairs of positions. That is cheap
# where $n$ is well below $D$, as in sentences, but not for a book.
#
# ## Queries, keys and values
#
# The bare form has two faults. The scores are symmetric,
# $x_t \cdot x_s = x_s \cdot x_t$: if "seven" had to look at "twenty", "twenty"
# would have to score "seven" just as high. And few vectors are as similar to
# $x_t$ as $x_t$ itself, so most positions look hardest at themselves.

# %%
scores = ops.matmul(x, ops.swapaxes(x, 1, 2))[0] / math.sqrt(WIDTH)
np.testing.assert_allclose(scores, ops.transpose(scores), atol=1e-6)
attention_weights = ops.softmax(scores, axis=-1)
on_itself = float(ops.mean(ops.diagonal(attention_weights)))
hardest = ops.argmax(attention_weights, axis=-1)
assert on_itself > 4 / LENGTH
assert np.sum(hardest == np.arange(LENGTH)) > LENGTH / 2
print(f"weight on itself: {on_itself:.2f}, at random {1 / LENGTH:.2f}")

# %% [markdown]
# The cure is to give each position three faces, with three learned matrices:
# the **query** says what it looks for, the **key** how it wants to be found,
# the **value** what it tells those who find it:
#
# $$\begin{aligned}
# \text{query}_t &= x_t W_Q + b_Q, \\
# \text{key}_s &= x_s W_K + b_K, \\
# \text{value}_s &= x_s W_V + b_V, \\
# \text{scores}_{ts} &= \frac{\text{query}_t \cdot \text{key}_s}{\sqrt{d_k}} .
# \end{aligned}$$
#
# $d_k$ is the width of a query and of a key; the last chapter showed why
# scores are divided by its square root. A fourth matrix $W_O$ brings the
# context back to the width of $x$.
#
# Query and key have kernels of their own: the scores need not be symmetric.
#
# ### One sentence with numbers
#
# Take "twenty - one" as three words. A word is a vector of four features: is it
# a tens, is it the hyphen, is it a unit, and a 1 that is always there. We write
# the three matrices by hand. $W_Q$ lets a tens look for a unit, a unit for a
# tens, and the hyphen for both. $W_K$ changes nothing: a word is found by what
# it is. $W_V$ hands over the number: 20 in the first feature, 1 in the second.
# The biases are 0, and $\sqrt{d_k} = \sqrt 4 = 2$.

# %% tags=["hide-input", "alone"]
import diagrams

three_words = ["twenty", "-", "one"]
is_tens_hyphen_unit = np.array(
    [[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]]
)  # [T, D]
to_query = np.array([[0.0, 0, 4, 0], [2, 0, 2, 0], [4, 0, 0, 0], [0, 0, 0, 0]])
to_key = np.eye(4)
to_value = np.array([[20.0, 0], [0, 0], [0, 1], [0, 0]])
three_queries = is_tens_hyphen_unit @ to_query
three_keys = is_tens_hyphen_unit @ to_key
three_values = is_tens_hyphen_unit @ to_value
three_scores = three_queries @ three_keys.T / math.sqrt(4)
three_weights = np.exp(three_scores)
three_weights /= three_weights.sum(axis=1, keepdims=True)
three_contexts = three_weights @ three_values
np.testing.assert_allclose(three_scores[2], [2, 0, 0])
np.testing.assert_allclose(three_weights[2], [0.79, 0.11, 0.11], atol=0.005)
np.testing.assert_allclose(three_contexts[2], [15.7, 0.1], atol=0.05)
diagrams.numbers(
    three_words,
    ["tens", "hyphen", "unit", "always"],
    {
        "x": is_tens_hyphen_unit,
        "Q": three_queries,
        "K": three_keys,
        "V": three_values,
        "scores": three_scores,
        "weights": three_weights,
        "context": three_contexts,
    },
    PICTURES / "05_numbers.png",
)

# %% [markdown]
# Follow the last word, "one". Its query is $(4, 0, 0, 0)$: it looks for a tens.
# The dot products with the three keys are 4, 0 and 0. Divided by 2 they are the
# scores 2, 0 and 0. The softmax makes $e^2 = 7.39$, 1 and 1 of them, and
# divides by their sum, 9.39: the weights 0.79, 0.11 and 0.11. The context is
# $0.79 \cdot (20, 0) + 0.11 \cdot (0, 0) + 0.11 \cdot (0, 1) = (15.7, 0.1)$. So
# "one" now knows that a twenty stands beside it. The hyphen asks for both, and
# gets the same share of both. A larger $W_Q$ would make the weights sharper.
#
# ## Several heads
# Attention returns one weighted average. Take the digits 2 and 7, and a
# position that has to fetch both, to write "siebenundzwanzig". If one softmax
# gives each half of its weight, 27 and 72 give the same context. Two softmaxes
# keep them apart:

# %%
twenty_seven = np.array([[2.0], [7.0]])
seventy_two = np.array([[7.0], [2.0]])
one_head = np.array([[0.5, 0.5]])
two_heads = np.array([[1.0, 0.0], [0.0, 1.0]])  # One row of weights a head.
assert (one_head @ twenty_seven == one_head @ seventy_two).all()
assert (two_heads @ twenty_seven != two_heads @ seventy_two).all()

# %% [markdown]
# That is so at exactly one half. With weights of 0.7 and 0.3 the contexts
# differ. Is one head enough, then? It depends on who reads the context. To
# write the first digit, the one with 0.7 has to win; to write the second, the
# one with 0.3. A *linear* function of the sum cannot let the smaller share win
# for every pair of digits. A network with a ReLU in it can tell the digits
# apart. We measure three models of equal size. Each looks at two digits with
# weights that depend on their positions alone (positions are the keys, digits
# the values) and has to write both in order. The next cell trains the three, in
# seconds.


# %%
class Question(keras.layers.Layer):
    """The same learned query for each row: [B, S, D] -> [B, 1, D]."""

    def build(self, input_shape):
        self.query = self.add_weight((1, 1, input_shape[-1]))

    def call(self, x):
        return ops.repeat(self.query, ops.shape(x)[0], axis=0)


def two_digits(num_heads, activation):
    """A model that fetches two digits: ids [B, 2] -> logits [B, 2, 10]."""
    digits = keras.Input((2,), dtype="int32")
    value = keras.layers.Embedding(10, 32, "random_normal")(digits)
    key = ka.layers.PositionEncoding()(0 * value)
    attention = ka.layers.MultiHeadAttention(num_heads, 32 // num_heads)
    context, _ = attention(query=Question()(value), value=value, key=key)
    hidden = keras.layers.Dense(64, activation)(context[:, 0])
    logits = keras.layers.Reshape((2, 10))(keras.layers.Dense(20)(hidden))
    return keras.Model(digits, logits)


every_pair = np.stack(np.divmod(np.arange(100), 10), axis=1)
examples_of_pairs = np.tile(every_pair, (2 if FAST else 40, 1))
both_right, sizes = {}, set()
print("share of the 100 pairs that are written rightly")
for name, num_heads, activation in (
    ("one head, linear read-out", 1, None),
    ("two heads, linear read-out", 2, None),
    ("one head, then a ReLU", 1, "relu"),
):
    keras.utils.set_random_seed(1)
    pair_model = two_digits(num_heads, activation)
    pair_model.compile(
        keras.optimizers.Adam(3e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=len(examples_of_pairs) // 100,
        jit_compile=False,
    )
    pair_model.fit(
        examples_of_pairs,
        examples_of_pairs,
        batch_size=100,
        epochs=1 if FAST else 20,
        verbose=0,
    )
    written = ops.argmax(pair_model(every_pair), axis=-1)
    both_right[name] = np.mean(np.all(written == every_pair, axis=1))
    sizes.add(pair_model.count_params())
    print(f"{name:28} {both_right[name]:.2f}")
assert len(sizes) == 1
print(f"parameters of each: {sizes}")
if not FAST:
    linear, two, relu = both_right.values()
    assert linear < 0.6 and two > 0.98 and relu > 0.98

# %% [markdown]
# So a second head makes linear what otherwise takes a network behind the
# attention. Each layer of the Transformer has such a network, as we shall see.
# There several heads are a convenience, not a necessity. (Weights that also
# depend on the digits would help one head further.)

# %% [markdown]
# **Multi-head attention** (Vaswani et al. 2017, 3.2.2) runs $h$ attentions
# side by side, each with its own small matrices, and joins their results:
#
# $$\begin{aligned}
# \text{head}_i &= \text{softmax}\left(\frac{Q W_Q^i (K W_K^i)^\top}
# {\sqrt{d_k}}\right) V W_V^i, \\
# \text{MultiHead}(Q, K, V) &=
# \text{Concat}(\text{head}_1, \dots, \text{head}_h)\, W_O .
# \end{aligned}$$
#
# Each head has a width of only $d_k = D / h$, so that $h$ heads together have
# as many parameters, and need as many multiply-adds, as one of full width. The
# matrices of all heads stand side by side in one kernel $[D, h\,d_k]$; head
# $i$, counted from 0, owns the columns from $i\,d_k$ to $(i+1)\,d_k$. (A new
# layer's biases are all 0, which would hide a forgotten one. So we first draw
# all weights at random.)


# %% tags=["hide-input", "alone"]
diagrams.heads(PICTURES / "05_multi_head.png")

# %% [markdown]
# A head is a *channel*: it carries $d_k$ numbers from one word to another, and
# it has its own rule about who is connected with whom. One channel may carry
# "which unit comes after this tens", and another "which number of the list is
# this". The channels do not disturb each other, as each has its own columns.
# Only $W_O$ mixes what they bring.


# %%
def randomise(layer, seed=1):
    """Draws all weights, biases too, from a normal distribution."""
    generator = np.random.default_rng(seed)
    for weight in layer.trainable_weights:
        weight.assign(generator.normal(0, 0.3, weight.shape))


def weights_by_name(layer):
    """{"query_kernel": array, ...}"""
    return {weight.name: weight.numpy() for weight in layer.weights}


def softmax(scores):
    """Along the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def multi_head_attention(layer, query, value, mask=None):
    """`ka.layers.MultiHeadAttention` for one sentence, by hand."""
    weight, d_k = weights_by_name(layer), layer.key_dim
    contexts, attention_weights = [], []
    for i in range(layer.num_heads):
        mine = slice(i * d_k, (i + 1) * d_k)
        Q = query @ weight["query_kernel"][:, mine] + weight["query_bias"][mine]
        K = value @ weight["key_kernel"][:, mine] + weight["key_bias"][mine]
        V = value @ weight["value_kernel"][:, mine] + weight["value_bias"][mine]
        scores = Q @ K.T / math.sqrt(d_k)  # [T, S]
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        attention_weights.append(softmax(scores))
        contexts.append(attention_weights[-1] @ V)  # [T, d_k]
    joined = np.concatenate(contexts, axis=-1)  # [T, h d_k]
    context = joined @ weight["output_kernel"] + weight["output_bias"]
    return context, np.stack(attention_weights)  # [T, D], [h, T, S]


sentence, numbers = x[0].numpy(), []
for num_heads in (1, 2, 4):
    layer = ka.layers.MultiHeadAttention(num_heads, key_dim=WIDTH // num_heads)
    layer(x)
    randomise(layer)
    context, attention_weights = layer(x)
    assert attention_weights.shape == (1, num_heads, LENGTH, LENGTH)
    by_hand = multi_head_attention(layer, query=sentence, value=sentence)
    np.testing.assert_allclose(context[0], by_hand[0], atol=1e-5)
    np.testing.assert_allclose(attention_weights[0], by_hand[1], atol=1e-5)
    numbers.append(layer.count_params())
assert numbers == [4 * (WIDTH**2 + WIDTH)] * 3

# %% [markdown]
# ## A layer of the encoder
#
# Attention only averages what positions hold. Something must also compute with
# it. A **feed-forward network** does: the one from
# [chapter 4](04_flavours_of_attention.ipynb), the same at every position and
# applied to each on its own.
#
# So attention moves information between positions, and the feed-forward network
# changes it within one: the network's Jacobian between two positions is
# exactly 0.

# %%
layer = ka.layers.FeedForward(intermediate_dim=32)
layer(x)
heard = gradient_norms(layer, x) > 0
assert np.array_equal(heard, np.eye(LENGTH, dtype=bool))

# %% [markdown]
# ### Words talk, then each word thinks
#
# Here is a way to see a layer that many find the clearest. **Attention is
# communication.** Each word holds up a sign (its key), asks a question (its
# query) and has a message (its value). It takes a message from everyone whose
# sign fits the question. Nothing is computed with the messages but a weighted
# sum. **The feed-forward network is thinking.** Each word works on what it has
# heard, for itself alone.
#
# What a word has in its hands is a vector of width $D$. It runs through all
# layers, and each sublayer only *adds* to it. It is called the *residual
# stream*. Every sublayer reads from the stream and writes into it. So a late
# layer can read what an early one wrote, and a sublayer that has nothing to say
# writes nearly 0.

# %% tags=["hide-input", "alone"]
diagrams.stream(PICTURES / "05_stream.png")

# %% [markdown]
# *One layer, for the word "one". The thick lines are the streams of the three
# words, which run upwards. Normalisations are not drawn.* The picture says what
# can go where. Information moves from one word to another only through an
# attention. Within one word it moves up the stream, through any number of
# layers. With 64 numbers in the stream and two layers, each sublayer has to
# leave room for what the others write.
#
# Now the same in equations. Attention and feed-forward network are *sublayers*
# $f$, and around each goes a **residual path**: its output is added to its
# input, so that a sublayer only has to say what should change, and gradients
# find a way past it. The sum is kept in range by **layer normalisation**, which
# for each position subtracts the mean over the features, divides by their
# standard deviation, and then scales and shifts by the learned $\gamma$ and
# $\beta$:
#
# $$\begin{aligned}
# \text{LayerNorm}(x) &= \beta +
# \gamma\,\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}, \\
# \text{post-norm}(x) &= \text{LayerNorm}(x + f(x)), \\
# \text{pre-norm}(x) &= x + f(\text{LayerNorm}(x)) .
# \end{aligned}$$
#
# In the picture the residual path is the line at the side. In post-norm it runs
# through each normalisation; in pre-norm nothing stands on it.

# %% tags=["hide-input", "alone"]
diagrams.transformer_layer(PICTURES / "05_layer.png")

# %% [markdown]
# The paper uses post-norm (section 3.1), and so do the package's layers, unless
# told otherwise, and the Transformer of the paper's size,
# `base`. The small models for small data, `mini` and
# `tiny`, normalise first, which leaves the residual path free from end to end
# and needs less care in training (Xiong et al. 2020). The last sum of a stack
# of pre-norm layers is not normalised, so the model normalises once more at the
# end of encoder and decoder.
#
# **Dropout** sets a random share $r$ of the entries to 0 and divides the others
# by $1 - r$, in training only (section 5.4). It has two places: each sublayer's
# output, before it is added to the residual path, and the sum of words and
# positions before the first layer. (A `MultiHeadAttention` of your own may also
# drop attention weights, with `dropout=`; the package's layers do not.)
#
# The $\epsilon$ of the normalisation is $10^{-6}$ here, as in the authors'
# code. Keras's default is $10^{-3}$. To compute the same as these layers with
# `keras.layers.LayerNormalization`, pass it `epsilon=1e-6`.
#
# These are all the parts of a layer of the encoder, which takes one cell to
# write by hand (without dropout).


# %%
def layer_norm(norm, x):
    """`keras.layers.LayerNormalization(epsilon=1e-6)`, by hand."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    gamma, beta = (weight.numpy() for weight in norm.weights)
    return gamma * (x - mean) / np.sqrt(variance + 1e-6) + beta


def residual(path, x, f):
    """A sublayer f with its residual path, by hand."""
    if path.norm_first:
        return x + f(layer_norm(path.norm, x))
    return layer_norm(path.norm, x + f(x))


def feed_forward(layer, x):
    """`ka.layers.FeedForward`, by hand."""
    (W_1, b_1), (W_2, b_2) = (
        half.get_weights() for half in (layer.expand, layer.contract)
    )
    return np.maximum(0, x @ W_1 + b_1) @ W_2 + b_2


def encoder_layer(layer, x):
    """`ka.layers.TransformerEncoderLayer` for one sentence, by hand."""

    def attend(x):
        context, _ = multi_head_attention(layer.self_attention, x, x)
        return context

    x = residual(layer.self_attention_residual, x, attend)
    f = functools.partial(feed_forward, layer.feed_forward)
    return residual(layer.feed_forward_residual, x, f)


for norm_first in (False, True):
    layer = ka.layers.TransformerEncoderLayer(
        num_heads=4, intermediate_dim=32, norm_first=norm_first
    )
    layer(x)
    randomise(layer)
    outputs, attention_weights = layer(x)
    by_hand = encoder_layer(layer, sentence)
    np.testing.assert_allclose(outputs[0], by_hand, atol=1e-5)
    assert layer.self_attention_residual.norm.epsilon == 1e-6
    assert layer.self_attention.dropout == 0
assert keras.layers.LayerNormalization().epsilon == 1e-3

# %% [markdown]
# ## What is lost: the order
#
# Our layer does not know which word comes first: no weight in its equations
# depends on $t$. Shuffle the words of a sentence, and the outputs are shuffled
# in the same way, but are the same vectors. It is **equivariant** to
# permutations:

# %%
encoder = [
    ka.layers.TransformerEncoderLayer(num_heads=4, intermediate_dim=32)
    for _ in range(3)
]


def three_layers(x):
    """One after the other."""
    for layer in encoder:
        x, attention_weights = layer(x)
    return x


three_layers(x)
for seed, layer in enumerate(encoder):
    randomise(layer, seed)
order = np.random.default_rng(1).permutation(LENGTH)
assert not np.array_equal(order, np.arange(LENGTH))
shuffled = ops.take(x, order, axis=1)
np.testing.assert_allclose(
    three_layers(shuffled),
    ops.take(three_layers(x), order, axis=1),
    atol=1e-5,
)

# %% [markdown]
# For a translator this is fatal: "two hundred and three" and "three hundred
# and two" would be the same to it.
#
# ## Positions as clocks
#
# So each position must say where it stands. The Transformer adds to each
# word's vector a second vector that depends on the position $p$ alone
# (Vaswani et al. 2017, section 3.5):
#
# $$\begin{aligned}
# PE(p, 2i) &= \sin(\omega_i p), \\
# PE(p, 2i+1) &= \cos(\omega_i p), \\
# \omega_i &= 10000^{-2i/D}, \qquad i = 0, \dots, D/2 - 1 .
# \end{aligned}$$
#
# Each pair (sine, cosine) is the hand of a clock. The first one turns by one
# radian per position and the last, for the width of 32 used here, by less than
# two ten-thousandths of that: like the hands for seconds, minutes and hours,
# they tell near positions apart and far ones too, and no entry ever leaves the
# range from -1 to 1.


# %%
def frequencies(dim):
    """All omega_i: [dim / 2]."""
    return 10000.0 ** (-2 * np.arange(dim // 2) / dim)


def positions_by_hand(positions, dim):
    """PE(p) for all p: [P, dim], in double precision."""
    angles = np.asarray(positions)[:, None] * frequencies(dim)
    encoding = np.empty((len(positions), dim))
    encoding[:, 0::2], encoding[:, 1::2] = np.sin(angles), np.cos(angles)
    return encoding


DIM = 32
assert frequencies(DIM)[0] == 1 and frequencies(DIM)[-1] < 2e-4
PE = positions_by_hand(np.arange(64), DIM)
zeros = ops.zeros((1, 64, DIM))
np.testing.assert_allclose(
    ka.layers.PositionEncoding()(zeros)[0], PE, atol=2e-5
)

# %% [markdown]
# Why sines? Because a shift by $k$ positions turns every hand by a fixed
# angle, wherever it stands. The formulas for the sine and the cosine of a sum
# say so:
#
# $$\begin{pmatrix} \sin \omega(p + k) \\ \cos \omega(p + k) \end{pmatrix} =
# \begin{pmatrix} \cos \omega k & \sin \omega k \\ -\sin \omega k & \cos
# \omega k \end{pmatrix} \begin{pmatrix} \sin \omega p \\ \cos \omega p
# \end{pmatrix} .$$
#
# All pairs together: $PE(p + k) = R_k\, PE(p)$, with such a rotation for each
# pair along the diagonal of $R_k$ and 0 elsewhere. $R_k$ does not depend on
# $p$.


# %%
def rotation(k, dim):
    """R_k: one small rotation for each pair, along the diagonal."""
    R = np.zeros((dim, dim))
    for i, omega in enumerate(frequencies(dim)):
        cosine, sine = math.cos(omega * k), math.sin(omega * k)
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [cosine, sine],
            [-sine, cosine],
        ]
    return R


print("R_3 for a width of 4:")
print(np.round(rotation(3, 4), 3))
for k in range(-20, 21):
    R = rotation(k, DIM)
    shifted = positions_by_hand(np.arange(64) + k, DIM)
    np.testing.assert_allclose(PE @ R.T, shifted, atol=1e-12)
    np.testing.assert_allclose(R @ R.T, np.eye(DIM), atol=1e-12)

# %% tags=["hide-input"]
HANDS = (0, 2, 4)  # Pairs whose frequencies are 1, 0.32 and 0.1.
with drawing.style():
    figure = drawing.Figure(figsize=(7.2, 2.9), layout="constrained")
    for axes, i in zip(figure.subplots(1, 3), HANDS, strict=True):
        omega = frequencies(DIM)[i]

        def draw(start, stop, radius, color, axes=axes, omega=omega):
            """The arc that the hand runs through, at some radius."""
            angles = omega * np.linspace(start, stop, 200)
            axes.plot(
                radius * np.sin(angles), radius * np.cos(angles), color=color
            )

        draw(0, 2 * np.pi / omega, radius=1, color="#DDDDDD")
        for p, radius, color in (
            (1, 0.45, drawing.COLORS[0]),
            (4, 0.65, drawing.COLORS[1]),
        ):
            for place, style in ((p, "-"), (p + 2, ":")):
                sine, cosine = PE[place, 2 * i : 2 * i + 2]
                axes.plot([0, sine], [0, cosine], color=color, linestyle=style)
            draw(p, p + 2, radius, color)
        axes.plot(PE[:7, 2 * i], PE[:7, 2 * i + 1], "o", color=drawing.INK)
        axes.set_title(rf"$\omega_{{{i}}}$ = {omega:.2g}")
        axes.set_aspect("equal")
        axes.set_axis_off()
    drawing.save(figure, PICTURES / "05_rotation.png")
figure

# %% [markdown]
# Three of the sixteen hands at positions 0 to 6 (dots; 0 is upright, and hands
# turn clockwise). Solid hands are at positions 1 (blue) and 4 (orange), dotted
# ones two positions later. In each clock both arcs span the same angle: a shift
# by two turns a hand by the same angle wherever it starts, and by a smaller one
# on a slower clock.
#
# That makes *relative* places easy to ask for. A head finds the previous word
# if query $t$ is most like key $t - 1$ (here for positions without words). With
# $W_Q$ such that $\text{query}_t = R_{-1} PE(t)$ and $W_K$ the identity,
# $\text{scores}_{ts}$ is greatest at $s = t - 1$, because
# $PE(s) \cdot PE(s') = \sum_i \cos \omega_i (s - s')$ is greatest for the
# distance 0. So a previous-word head can be written down, and need not be
# learned. We sharpen it by a factor of 100.

# %%
head = ka.layers.MultiHeadAttention(1, DIM, use_bias=False)
where = ops.convert_to_tensor(PE[None, :20], "float32")
head(where)
head.query_kernel.assign(100 * rotation(-1, DIM).T)  # Rows times kernel.
head.key_kernel.assign(np.eye(DIM))
_, attention_weights = head(where)
on_previous = np.diagonal(attention_weights[0, 0], offset=-1)
assert on_previous.min() > 0.99
distances = np.subtract.outer(np.arange(64), np.arange(64))[..., None]
likeness = np.cos(frequencies(DIM) * distances).sum(axis=-1)
np.testing.assert_allclose(PE @ PE.T, likeness, atol=1e-9)

# %% [markdown]
# The sum of word and position is the Transformer's input. Word vectors are
# multiplied by $\sqrt D$ first (section 3.4); one reason may be that positions,
# whose entries are about as large as 1, would otherwise drown them.
#
# ## Masks: padding and the future
#
# Two kinds of position must not be looked at. The first is padding, which only
# fills up the short sentences of a batch. In this package a mask is boolean,
# and True means: attend here. A masked score becomes so low that the softmax
# gives it a weight of exactly 0. So it does not matter what the padding holds,
# not even to the last bit:

# %%
source_ids = np.array([[5, 7, 4, 6, END], [4, 7, END, PAD, PAD]])
mask = ka.layers.padding_mask(source_ids)
print(mask.numpy())
layer = encoder[0]
generator = np.random.default_rng(2)
batch = generator.normal(size=(2, 5, WIDTH)).astype("float32")
outputs, attention_weights = layer(batch, padding_mask=mask)
assert (attention_weights.numpy()[1, :, :, 3:] == 0).all()
batch[1, 3:] = 1000 * generator.normal(size=(2, WIDTH))
other_outputs, _ = layer(batch, padding_mask=mask)
assert np.array_equal(outputs[1, :3], other_outputs[1, :3])

# %% [markdown]
# The second is the future. The decoder writes word $t + 1$ from words $1$ to
# $t$. In training we know the whole target and want all positions at once,
# without a loop; but then position $t$ must not see what comes after it, or
# it would copy the answer. A **causal mask** hides that.

# %%
print(ka.layers.causal_mask(5)[0].numpy().astype(int))
decoder_layer = ka.layers.TransformerDecoderLayer(
    num_heads=4, intermediate_dim=32, norm_first=True
)
encoded = keras.random.normal((1, 7, WIDTH), seed=3)
decoder_layer(x, encoded)
randomise(decoder_layer)
norms = gradient_norms(lambda x: decoder_layer(x, encoded)[0], x)
t, s = np.indices(norms.shape)
assert (norms[s > t] == 0).all()  # Exactly: the future does not leak.
assert (norms[s <= t] > 0).all()  # All the past is there.
# Without the mask it would leak:
norms = gradient_norms(lambda x: decoder_layer.self_attention(x)[0], x)
assert (norms[s > t] > 0).all()

# %% [markdown]
# Both masks at once are one `and`. Scores have the shape $[B, H, T, S]$: batch,
# heads, queries, keys. A padding mask says something about each row's keys and
# nothing about heads or queries, so it is $[B, 1, 1, S]$. A causal mask says
# something about pairs of positions, the same for each row and head: it is
# $[1, 1, T, T]$. In self-attention $S = T$, and broadcasting makes
# $[B, 1, T, T]$ of the two, which applies to all heads alike:

# %%
is_real = mask[:, None, None, :]  # [B, 1, 1, S]
is_past = ka.layers.causal_mask(5)[None]  # [1, 1, T, T]
allowed = ops.logical_and(is_real, is_past)  # [B, 1, T, T]
print(is_real.shape, "and", is_past.shape, "give", allowed.shape)
assert allowed.shape == (2, 1, 5, 5)

attention = layer.self_attention
_, attention_weights = attention(
    batch, padding_mask=mask, use_causal_mask=True
)  # [B, H, T, S]
assert attention_weights.shape == (2, 4, 5, 5)
in_all_heads = ops.broadcast_to(allowed, attention_weights.shape)
assert (attention_weights.numpy()[~in_all_heads.numpy()] == 0).all()
for row in range(2):
    _, by_hand = multi_head_attention(
        attention, batch[row], batch[row], allowed[row, 0].numpy()
    )
    np.testing.assert_allclose(attention_weights[row], by_hand, atol=1e-5)

# %% [markdown]
# Here are the masks on the sentence with numbers from above, with one place of
# padding behind it. The scores are the same in all four panels. The padding has
# the score 0 with everybody.

# %% tags=["hide-input", "alone"]
four_words = [*three_words, "PAD"]
four_scores = np.pad(three_scores, ((0, 1), (0, 1)))
not_padding = np.tile([True, True, True, False], (4, 1))
not_future = np.tri(4, dtype=bool)
masked = {}
for mask_name, may_look in {
    "no mask": np.ones((4, 4), bool),
    "padding mask": not_padding,
    "causal mask": not_future,
    "both": not_padding & not_future,
}.items():
    exponentials_left = np.where(may_look, np.exp(four_scores), 0)
    row_sums = exponentials_left.sum(axis=1, keepdims=True)
    masked[mask_name] = exponentials_left / row_sums, may_look
np.testing.assert_allclose(masked["both"][0][:3, :3].sum(axis=1), 1)
np.testing.assert_allclose(masked["causal mask"][0][1, :2], [0.73, 0.27], 0.01)
diagrams.masks(four_words, masked, PICTURES / "05_masks.png")

# %% [markdown]
# *A row asks and a column is asked. Grey is closed.* A padding mask closes a
# column: nobody looks at the padding. A causal mask closes all above the
# diagonal: nobody looks ahead. What is closed gets the score $-\infty$, so the
# weight 0, and the weights that are left are larger: each row still sums to 1.
# (The row of PAD has weights, too. Nobody reads what it finds.)
# (Our functions by hand serve one sentence and one head at a time, so they take
# the mask $[T, T]$ of that sentence.)
#
# In fact the decoder's self-attention needs no padding mask: padding stands at
# the end, after all real tokens, where the causal mask hides it already.
#
# **To play with:** [Temperature and
# masks](https://github.com/keras-attention/keras_attention/blob/main/docs/play/temperature.html).
# It has the queries and keys of trained heads, and a switch for each mask. In a
# clone, open `docs/play/temperature.html` with a browser.
#
# ## The whole model from the package's layers
#
# A layer of the decoder has three sublayers. The first is causal self-attention
# over what has been written. The second is attention to the encoder's output
# (below, `encoded`), as in chapter 3, but with the decoder's positions as
# queries. The third is a feed-forward network. So there are three kinds of
# attention, in orange. This is the paper's figure 1:

# %% tags=["hide-input", "alone"]
diagrams.transformer(PICTURES / "05_transformer.png")

# %% [markdown]
# *Read it from below. "Add & norm" is the end of a residual path, here in the
# paper's order, post-norm: add the sublayer's output to its input, then
# normalise. Dropout is not drawn. Each attention has several heads.* The memory
# goes to the cross-attention of *every* layer of the decoder. The last linear
# layer has no matrix of its own: the matrix of the target's embedding,
# transposed, turns the last layer's output into logits (section 3.4). (Where
# both languages have one vocabulary, the same matrix embeds the source.) With
# `ka.layers.TransformerDecoderLayer`, which has all three sublayers, this is
# the whole of `ka.models.transformer`. We want to look at the heads of a
# trained model later, so the decoder also hands out what the second sublayer
# looked at:


# %%
def embed(embedding, token_ids):
    """Words times sqrt(D), plus positions: [B, T, D]."""
    x = embedding(token_ids) * math.sqrt(embedding.output_dim)
    return ka.layers.PositionEncoding()(x)


def run_encoder(model, source_ids):
    """The encoder's output [B, S, D] and its mask."""
    mask = ka.layers.padding_mask(source_ids)
    x = embed(model.source_embedding, source_ids)
    for layer in model.encoder_layers:
        x, _ = layer(x, padding_mask=mask)
    return model.encoder_norm(x), mask


def run_decoder(model, encoded, mask, target_ids):
    """Its output [B, T, D] and where layers looked: [B, H, T, S] each."""
    x, looked = embed(model.target_embedding, target_ids), []
    for layer in model.decoder_layers:
        x, attention_weights = layer(x, encoded, memory_mask=mask)
        looked.append(attention_weights)
    return model.decoder_norm(x), looked


def logits_of(model, x):
    """Likely words have vectors like x: one matrix in and out."""
    return ops.matmul(x, ops.transpose(model.target_embedding.embeddings))


model = ka.models.Transformer.from_size(
    "mini", 8, hidden_dim=16, intermediate_dim=32, num_heads=4
)
model.build()
randomise(model)
source_ids = np.array([[5, 7, 4, 6, END], [4, 7, END, PAD, PAD]])
target_ids = np.array([[START, 4, 5, 6], [START, 7, 5, PAD]])
logits = model({"source_ids": source_ids, "target_ids": target_ids})
encoded, mask = run_encoder(model, source_ids)
outputs, _ = run_decoder(model, encoded, mask, target_ids)
np.testing.assert_allclose(logits_of(model, outputs), logits, atol=1e-4)

# %% [markdown]
# One pass over a target of $T$ tokens gives $T$ predictions, and, because
# nothing leaks, each of them is the one that the model would make if the
# target ended there. That is why the Transformer trains so fast: all
# positions at once, without a loop.

# %%
for length in range(1, 5):
    prefix = target_ids[:, :length]
    short = model({"source_ids": source_ids, "target_ids": prefix})
    np.testing.assert_allclose(short[:, -1], logits[:, length - 1], atol=1e-4)

# %% [markdown]
# ## And by hand
#
# Now everything in plain numpy, for one sentence, from the functions that we
# have: the Transformer is softmaxes, matrix products, sums, a normalisation
# and a threshold.


# %%
def decoder_layer_by_hand(layer, x, encoded):
    """`ka.layers.TransformerDecoderLayer` for one sentence."""
    causal = np.tri(len(x), dtype=bool)

    def attend_to_written(x):
        return multi_head_attention(layer.self_attention, x, x, causal)[0]

    def attend_to_source(x):
        return multi_head_attention(layer.cross_attention, x, encoded)[0]

    x = residual(layer.self_attention_residual, x, attend_to_written)
    x = residual(layer.cross_attention_residual, x, attend_to_source)
    f = functools.partial(feed_forward, layer.feed_forward)
    return residual(layer.feed_forward_residual, x, f)


def transformer_by_hand(model, source_ids, target_ids):
    """The logits [T, V] of one sentence."""
    E_source = model.source_embedding.embeddings.numpy()
    E_target = model.target_embedding.embeddings.numpy()
    D = E_target.shape[1]

    x = math.sqrt(D) * E_source[source_ids]
    x = x + positions_by_hand(np.arange(len(x)), D)
    for layer in model.encoder_layers:
        x = encoder_layer(layer, x)
    encoded = layer_norm(model.encoder_norm, x)

    x = math.sqrt(D) * E_target[target_ids]
    x = x + positions_by_hand(np.arange(len(x)), D)
    for layer in model.decoder_layers:
        x = decoder_layer_by_hand(layer, x, encoded)
    return layer_norm(model.decoder_norm, x) @ E_target.T


for row, size in enumerate((5, 3)):  # Without the padding.
    by_hand = transformer_by_hand(
        model, source_ids[row, :size], target_ids[row]
    )
    np.testing.assert_allclose(by_hand, logits[row], atol=1e-4)

# %% [markdown]
# ## Training
#
# The data are the lists of numbers of chapters 2 and 3, drawn in the same way:
# one to seven numbers below a thousand, in English and German. There are 8,000
# lists to train on and 1,000 others to test on. The next cell makes them; skip
# it.

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


NUM_HELD_OUT, NUM_TRAINING = (100, 400) if FAST else (1000, 8000)
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


# The same batches each epoch, in another order.
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

# %%
source, target = held_out[0]
print(*(text for _, text in source), "|", *(text for _, text in target))

# %% [markdown]
# Each training below prints a line for each epoch. There are six: this one, two
# recurrent models, and three Transformers without some attention. They take
# most of the chapter's minutes.
#
# The model has two layers on each side, a width of 64 and four heads. It gets
# as many epochs as the models of chapter 3. Warm-up and label smoothing come
# from the paper; [chapter 6](06_training_well.ipynb) asks what they are good
# for. `leave_out` names attentions to do without: their output is 0 from the
# start and stays 0.

# %%
EPOCHS = 1 if FAST else 8
NUM_STEPS = EPOCHS * num_batches


def attentions(model):
    """The three kinds, each in all layers."""
    return {
        "encoder": [layer.self_attention for layer in model.encoder_layers],
        "decoder": [layer.self_attention for layer in model.decoder_layers],
        "cross": [layer.cross_attention for layer in model.decoder_layers],
    }


def train_transformer(leave_out=()):
    """A small Transformer, trained on the lists."""
    keras.utils.set_random_seed(1)
    model = ka.models.Transformer.from_size(
        "mini", len(TARGET), len(SOURCE), hidden_dim=64, intermediate_dim=128
    )
    model.build()
    for kind in leave_out:
        for attention in attentions(model)[kind]:
            attention.output_kernel.assign(0 * attention.output_kernel)
            attention.trainable = False
    warmup = min(200, num_batches)
    rate = ka.training.schedules.Cosine(
        3e-3, warmup_steps=warmup, num_steps=NUM_STEPS + 1
    )
    model.compile(
        ka.training.optimizers.Adam(rate, beta_2=0.98, global_clipnorm=1.0),
        loss=ka.training.losses.TokenCrossEntropy(label_smoothing=0.1),
        jit_compile=False,  # It would compile anew for each shape of a batch.
    )
    model.fit(examples, epochs=EPOCHS, shuffle=False, verbose=2)
    return model


model = train_transformer()

# %% [markdown]
# ## Beside the recurrent models
#
# To continue the picture of chapters 2 and 3, we train two of their models once
# more: the one with one vector, and the soft search. They get the same lists,
# the same number of epochs, and chapter 3's optimizer.

# %%
recurrent_sizes = {
    "vocabulary_size": len(TARGET),
    "source_vocabulary_size": len(SOURCE),
    "embedding_dim": 64,
}


def train_recurrent(model_class, units):
    """A model of chapter 2 or 3, trained as there."""
    keras.utils.set_random_seed(1)
    model = model_class(**recurrent_sizes, units=units, readout_dim=units)
    rate = keras.optimizers.schedules.CosineDecay(3e-3, NUM_STEPS)
    model.compile(
        keras.optimizers.Adam(rate, clipnorm=1.0),
        loss=ka.training.losses.TokenCrossEntropy(),
    )
    model.fit(examples, epochs=EPOCHS, shuffle=False, verbose=2)
    return model


models = {
    "one vector": train_recurrent(ka.models.RNNEncoderDecoder, 128),
    "soft search": train_recurrent(ka.models.RNNSearch, 64),
    "Transformer": model,
}

# %% [markdown]
# As chapter 2 showed, a translation is right as a whole exactly if every token
# is the likeliest after the right ones before it. So one call of a model tells
# how many are right.

# %%
EDGES = (0, 4, 8, 12, 16, 20, 24, 28)
lengths = np.array([len(source) for source, _ in held_out])


def exact_match(model):
    """Which of the lists held out are right as a whole: bool."""
    logits = model.predict(inputs, batch_size=250, verbose=0)
    right = (logits.argmax(axis=-1) == labels) | (labels == PAD)
    return right.all(axis=1)


def by_length(exact):
    """The share of right lists for each range of lengths, as rows."""
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


def show(scores):
    """Prints the share of right lists, a column for each model."""
    print("length ", *(f"{name:>18}" for name in scores))
    for rows in zip(*scores.values(), strict=True):
        print(
            f"{rows[0]['low']:3}-{rows[0]['high']:2} ",
            *(f"{row['exact_match']:16.1f} %" for row in rows),
        )


exact = {name: exact_match(one) for name, one in models.items()}
scores = {name: by_length(found) for name, found in exact.items()}
show(scores)
for name, one in models.items():
    print(
        f"{name:12} {one.count_params():8,} parameters, "
        f"{100 * exact[name].mean():.1f} % right"
    )
if not FAST:
    assert scores["one vector"][-1]["exact_match"] < 20
    for name in ("soft search", "Transformer"):
        assert all(row["exact_match"] > 90 for row in scores[name])
ka.plotting.errors_by_length(scores, PICTURES / "05_length.png")

# %% [markdown]
# The scale counts *errors*, and each line of the grid is a factor of ten: below
# 1 % it is linear, down to none. The Transformer does what the soft search
# does, without a recurrence. In this run it makes a few more mistakes than the
# search, most of them in the longest lists. What it wins is time, on processors
# that have many units.
#
# ## Is self-attention needed?
#
# Cross-attention is: without it the decoder would not see the source. And
# self-attention? We train the same model without it, in the encoder, in the
# decoder, and in both.

# %%
ablated = {
    "all attention": scores["Transformer"],
    "without encoder's": ["encoder"],
    "without decoder's": ["decoder"],
    "without both": ["encoder", "decoder"],
}
shares = {"all attention": exact["Transformer"].mean()}
for name, leave_out in list(ablated.items())[1:]:
    found = exact_match(train_transformer(leave_out))
    ablated[name], shares[name] = by_length(found), found.mean()
show(ablated)
for name, share in shares.items():
    print(f"{name:18} {100 * share:5.1f} % right")
if not FAST:
    assert min(list(shares.values())[:3]) > 0.95
    assert shares["without both"] < 0.95
    longest = {name: rows[-1]["exact_match"] for name, rows in ablated.items()}
    assert longest["without both"] < min(list(longest.values())[:3]) - 8
    assert ablated["without both"][0]["exact_match"] > 90

# %% [markdown]
# Here either self-attention can be spared, but not both. A list has words that
# say what they say whatever stands beside them. What a list does ask for is to
# know how far one has come: which number of the list is next, and where it
# stands. Presumably the encoder can work that out by looking at the source, or
# the decoder by looking at what it has written. Without either, a position
# knows nothing but its word and where it stands, and the errors grow with the
# length. Sentences, whose words mean different things in different company, ask
# for more.

# %% [markdown]
# ## Decoding, step by step
#
# To translate, the model writes one token, reads it, writes the next. Called
# anew for each token, it would compute again everything that it knows about the
# earlier tokens. But none of that has changed: position $t$ never looks at what
# comes after it, so its keys and values are final once computed. So they are
# kept. Of the contract's four methods ([chapter 2](02_encoder_decoder.ipynb)),
# three are for writing: `encode`, `initial_state` and `step`. The Transformer's
# memory, which `encode` returns, holds for each layer the keys and values of
# the source. The state is the **cache**: for each layer the keys and values of
# the tokens written so far, with room for `max_length` of them, and the
# position.


# %%
def greedy(model, source_ids, max_length=30):
    """Writes the likeliest token each time: ids [B, T], logits, state."""
    memory = model.encode(source_ids)
    state = model.initial_state(memory, max_length)
    token_ids, written, found = tf.fill([len(source_ids)], START), [], []
    ended = tf.zeros_like(token_ids, dtype=bool)
    while len(written) < max_length and not tf.reduce_all(ended):
        logits, state, _ = model.step(token_ids, memory, state)
        token_ids = tf.argmax(logits, axis=-1, output_type=tf.int32)
        ended |= token_ids == END
        written.append(token_ids)
        found.append(logits)
    return tf.stack(written, axis=1), tf.stack(found, axis=1), state


def text_of(ids):
    """What stands before END."""
    ids = list(ids)
    return " ".join(TARGET[i] for i in ids[: (ids + [END]).index(END)])


sources = inputs["source_ids"][:200]
written, _, _ = greedy(model, sources)
for index, (source, _) in enumerate(held_out[:3]):
    print(
        " ".join(text for _, text in source),
        "|",
        text_of(written[index].numpy()),
    )
right = [
    text_of(ids.numpy()) == " ".join(text for _, text in target)
    for ids, (_, target) in zip(written, held_out, strict=False)
]
agree = np.mean(right == exact["Transformer"][: len(right)])
print(f"right: {np.mean(right):.1%}; as by one call: {agree:.1%}")
if not FAST:
    assert np.mean(right) > 0.95 and agree > 0.98

# %% [markdown]
# Written by hand, the cache is two lists that grow. Each step projects one new
# token, to a query, a key and a value, and puts key and value at the end of the
# lists. The query then looks at all that is there. No mask is needed: what is
# not yet written is not in the lists.

# %% tags=["hide-input", "alone"]
diagrams.cache(path=PICTURES / "05_cache.png")

# %% [markdown]
# *Three steps, from above to below. Each computes one key and one value, and
# looks at all that are there. The white ones were computed before and are
# kept.* A query is used once, so it is not kept.


# %%
def cached_step(layer, x_t, keys, values):
    """Causal self-attention of one more token [D]; the lists grow."""
    weight, d_k = weights_by_name(layer), layer.key_dim
    query, key, value = (
        x_t @ weight[f"{name}_kernel"] + weight[f"{name}_bias"]
        for name in ("query", "key", "value")
    )  # [h d_k] each
    keys.append(key)
    values.append(value)
    K, V = np.stack(keys), np.stack(values)  # [t, h d_k]
    contexts = []
    for i in range(layer.num_heads):
        mine = slice(i * d_k, (i + 1) * d_k)
        attention_weights = softmax(K[:, mine] @ query[mine] / math.sqrt(d_k))
        contexts.append(attention_weights @ V[:, mine])
    joined = np.concatenate(contexts)
    return joined @ weight["output_kernel"] + weight["output_bias"]


layer = model.decoder_layers[0].self_attention
vectors = np.random.default_rng(4).normal(size=(6, 64)).astype("float32")
at_once, _ = layer(vectors[None], use_causal_mask=True)
keys, values, cache = [], [], layer.initial_cache(1, max_length=6)
for t, x_t in enumerate(vectors):
    context = cached_step(layer, x_t, keys, values)
    np.testing.assert_allclose(context, at_once[0, t], atol=1e-4)
    context, _, cache = layer.step(x_t[None], cache, position=t)
    np.testing.assert_allclose(context, at_once[:, t], atol=1e-4)
# The layer's own cache holds the same, head by head: [B, h, L, d_k].
for ours, theirs in zip((keys, values), cache, strict=True):
    by_head = np.reshape(ours, (6, layer.num_heads, layer.key_dim))
    np.testing.assert_allclose(theirs[0], by_head.swapaxes(0, 1), atol=1e-4)

# %% [markdown]
# The layer has the room of all `max_length` tokens from the start and writes
# into it, because a graph likes tensors whose size does not change. A mask then
# hides the rest of the room. The price of a cache is that room: $2NLD$ numbers
# for an answer of up to $L$ tokens, with $N$ layers of width $D$. And for the
# whole model, what the steps compute is what one call computes:

# %%
source_ids = inputs["source_ids"][:1, : len(held_out[0][0]) + 1]
written, step_logits, state = greedy(model, source_ids)
target_ids = tf.concat([[[START]], written[:, :-1]], axis=1)
logits = model({"source_ids": source_ids, "target_ids": target_ids})
np.testing.assert_allclose(step_logits, logits, atol=1e-3)
size = sum(np.size(c) for pair in state["caches"] for c in pair)
assert size == 2 * 2 * 30 * 64

# %% [markdown]
# What does the cache save? The function from the first section counts the
# multiply-adds in the products of the real model. With a cache, the encoder's
# output is projected to keys and values once, and then each step costs the
# same. (A step multiplies with all the room there is and masks what is empty.)
# Without a cache, step $t$ reads $t$ tokens again, and projects the encoder's
# output again.


# %%
def project_source(encoded):
    """Keys and values of the source, once for all steps."""
    return [layer.project_memory(encoded) for layer in model.decoder_layers]


def predict_again(target_ids):
    """The next token's logits, without a cache."""
    outputs, _ = run_decoder(model, encoded, mask, target_ids)
    return logits_of(model, outputs[:, -1:])


encoded, mask = run_encoder(model, source_ids)
of_source, _ = cost(project_source, encoded)
memory = model.encode(source_ids)
for n in (1, 5, 20):
    state = model.initial_state(memory, max_length=n)
    of_step, _ = cost(model.step, tf.constant([START]), memory, state)
    cached, again = of_source + n * of_step, 0
    for t in range(1, n + 1):
        again += cost(predict_again, tf.fill([1, t], START))[0]
    print(
        f"{n:3} tokens: {again:10,} and {cached:9,} multiply-adds, "
        f"{again / cached:4.1f} times as many"
    )
assert again > 10 * cached

# %% [markdown]
# For one token a cache saves nothing. An answer of 20 tokens costs more than
# ten times as much without it.
#
# ## What the heads do
#
# The numbers were composed by rule. So we know which word of the source each
# word of the target comes from: the one that says the same part of the same
# number, such as its tens. We feed the model lists that it was never trained
# on, together with their right answers. At the moment when a word is *written*,
# what share of a cross-attention's weight goes to the word that it comes from?
# We take the mean for each head and for each kind of word. The kinds are named
# after the words of "dreihundertvierundfünfzig" and the comma behind it.

# %%
KINDS = {
    "hundreds": "drei",
    "hundred": "hundert",
    "units": "vier",
    "joint": "und",
    "tens": "fünfzig",
    "comma": ",",
}
_, attention_weights = run_decoder(
    model, *run_encoder(model, inputs["source_ids"]), inputs["target_ids"]
)
attention_weights = np.stack(attention_weights, axis=1)  # [B, N, H, T, S]

found = {kind: [] for kind in KINDS}
for row, (source, target) in enumerate(held_out):
    for t, (name, _) in enumerate(target):
        origin = [s for s, (other, _) in enumerate(source) if other == name]
        kind, _ = name
        found[kind].append(attention_weights[row, :, :, t, origin].sum(axis=0))

looked = np.stack(
    [np.mean(found[kind], axis=0).ravel() for kind in KINDS], axis=-1
)  # [layers times heads, kinds]
NAMES = [f"layer {n + 1}, head {h + 1}" for n, h in np.ndindex(2, 4)]
is_form = np.array([name in ("hundert", "und", ",") for name in KINDS.values()])
of_form, of_content = looked[:, is_form].mean(), looked[:, ~is_form].mean()
print(f"mean share: digits and tens {of_content:.2f}, others {of_form:.2f}")
print("best head of each kind", looked.max(axis=0).round(2))
print("worst head of each kind", looked.min(axis=0).round(2))
if not FAST:
    assert looked.max(axis=0).min() > 0.7 and looked.min() < 0.5

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(looked, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(KINDS)), KINDS.values())
    axes.set_yticks(range(len(NAMES)), NAMES)
    axes.set_xlabel("word that is written")
    figure.colorbar(image, ax=axes, ticks=[0, 0.5, 1], label="share")
    drawing.save(figure, PICTURES / "05_heads.png")
figure

# %% [markdown]
# A dark cell is a head that looks at the right word. For every kind of word
# there is such a head, but not every head is one: here and there a head looks
# elsewhere, at a neighbour, say, which also tells what is due. Which heads do
# is an outcome of the training.
#
# What a head looks at is one thing; what the model needs it for is another. To
# measure the second we take heads out: head $i$ reaches the output only through
# its own rows of $W_O$, and with 0 in these rows it says nothing. How many
# lists are still right, to the last word? This is not the experiment from
# above: there the model learned without an attention, here it loses one that it
# has learned to rely on.


# %%
def share_right(without=()):
    """Share of lists that are right without some (attention, head)s."""
    whole_model = model.get_weights()
    for attention, head in without:
        d_k, kernel = attention.key_dim, attention.output_kernel.numpy()
        kernel[head * d_k : (head + 1) * d_k] = 0
        attention.output_kernel.assign(kernel)
    share = exact_match(model).mean()
    model.set_weights(whole_model)
    return share


whole = share_right()
print(f"all heads: {100 * whole:.1f} % right")
without_one, without_all = {}, {}
for name, layers in attentions(model).items():
    heads = [(attention, head) for attention in layers for head in range(4)]
    without_one[name] = [share_right([one]) for one in heads]
    without_all[name] = share_right(heads)
    print(
        f"{name:8} without one: "
        + " ".join(f"{100 * share:5.1f}" for share in without_one[name])
        + f"; without all: {100 * without_all[name]:5.1f}"
    )
assert share_right() == whole  # All heads are back.
if not FAST:
    assert np.median(list(without_one.values())) > 0.9
    assert without_all["cross"] < 0.1 and without_all["decoder"] < 0.3
    assert without_all["encoder"] < whole - 0.1

# %% [markdown]
# Without any heads of the cross-attention no list is right, of course: the
# decoder has not seen the source. Without any of the decoder's self-attention
# few are, if any: it still reads the word it wrote last and knows which
# position is next, but it knows nothing of the earlier words. This model relies
# on the encoder's self-attention, too. A model that learned without one of the
# two did as well, as we saw: it found another way. So to take a part out of a
# trained model does not tell whether the task needs it. It tells what this
# model has made of it.
#
# Yet most heads, taken out one at a time, are hardly missed: others do what one
# of them does, or nothing needs it. (Michel et al. 2019 found the same in a
# large model.) Look for exceptions in the rows above.

# %% [markdown]
# ## What readers ask
#
# > **Why divide by $\sqrt{d_k}$, and not by $d_k$?** A dot product of $d_k$
# > independent terms of variance 1 has the variance $d_k$, so its usual size is
# > $\sqrt{d_k}$ ([chapter 4](04_flavours_of_attention.ipynb) measures it).
# > Divided by $\sqrt{d_k}$, scores are about as large as 1, whatever the width.
# > Divided by $d_k$, they would shrink with the width, and all words would get
# > nearly the same weight.
#
# > **Which order is right, "add, then normalise" or "normalise, then add"?**
# > Both work. Post-norm is the paper's. Its gradient has to pass each
# > normalisation, so it needs warm-up. Pre-norm leaves the stream free, and
# > most large models have it. It needs one more normalisation at the end, as
# > nothing has normalised the last sum. [Chapter 6](06_training_well.ipynb)
# > trains both.
#
# > **Is True in a mask "look" or "do not look"?** Here True means look. Keras's
# > layers say the same. PyTorch's `key_padding_mask` says the opposite, and
# > some code adds a mask of 0 and $-\infty$ to the scores. All mean the same
# > weights.
#
# > **Why not set the masked weights to 0 after the softmax?** Then a row would
# > no longer sum to 1, as the masked words have taken their share already. The
# > mask belongs before the softmax.
#
# > **Why may one matrix be embedding and last layer?** The logit of a word is
# > the dot product of the decoder's output with the word's vector. So the
# > output should look like the vector of the word that is due. This is called
# > *tying* the weights (Press and Wolf 2017). It saves $V D$ weights, which are
# > most of a small model. It makes sense because both use the vector in the
# > same way: words that may stand in each other's place are alike.
#
# > **Why are embeddings multiplied by $\sqrt D$?** A tied embedding starts with
# > small numbers, about $1 / \sqrt D$, so that the first logits are small. As
# > an input it should be about as large as a position, whose entries are sines.
# > The factor brings it there.
#
# > **What does the model know of a word that it has never seen in this place?**
# > The same as of any other: the three matrices are the same for each place,
# > and the place comes in only through the positions.

# %% [markdown]
# ## What to take away
#
# - The recurrence is not needed to relate the words of a sentence:
#   self-attention lets every position ask every other one directly, with a path
#   of length 1 and a chain of products that does not grow with the sentence.
# - What is lost with the recurrence is the order. Positions that are added to
#   the words put it back, and with sinusoids distances are easy to ask for,
#   since a shift is a rotation.
# - Two masks say what must not be looked at: a padding mask for what is not
#   there, a causal mask for what is not there yet. With a causal mask one pass
#   trains all positions at once, and keys and values are final, so that
#   decoding can keep them.
# - One attention is an average. Several heads keep apart what they fetch; so
#   does one head with a network behind it, which each layer has.
# - Attention is communication between words, a head is a channel, and the
#   residual stream is what each word carries from layer to layer.
# - What a head looks at, and what the model loses without it, are two
#   measurements; where heads can stand in for each other, the second may be
#   nothing.
#
# ## Your turn
#
# Write what happens inside one head of a decoder. The loop cuts queries, keys
# and values into heads and joins what they find. A word may look at itself and
# at what comes before it.

# %% tags=["alone"]
import your_turn


def causal_heads(query, key, value, num_heads):
    """[T, D] each -> what the heads find, side by side [T, D]."""
    found = []
    parts = (np.split(x, num_heads, axis=1) for x in (query, key, value))
    for q, k, v in zip(*parts, strict=True):
        look = ...  # The weights of this head [T, T].
        found.append(look @ v)
    return np.concatenate(found, axis=1)


your_turn.check(5, causal_heads)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def causal_heads(query, key, value, num_heads):
#     found = []
#     parts = (np.split(x, num_heads, axis=1) for x in (query, key, value))
#     for q, k, v in zip(*parts, strict=True):
#         look = q @ k.T / np.sqrt(q.shape[1])
#         look = np.where(np.tri(len(q), dtype=bool), look, -np.inf)
#         look = np.exp(look)
#         look = look / look.sum(axis=1, keepdims=True)
#         found.append(look @ v)
#     return np.concatenate(found, axis=1)
#
#
# your_turn.check(5, causal_heads)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: A target has 6 tokens. How many weights of one causal map may be more
#   than 0?
# - b: A layer has 8 heads and reads a sentence of 100 tokens. How many scores
#   does its self-attention compute, without a mask?
# - c: The layer has a width of 512. How many weights has this attention? Leave
#   the biases out.

# %% tags=["alone"]
your_turn.quiz(5, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: The first token may look at 1 token, the second at 2, the last at 6.
# - b: Each head has a score for each pair of tokens.
# - c: There are four square matrices, for queries, keys, values and the output.
#   The number of heads does not matter.
#
# ```python
# your_turn.quiz(5, a=sum(range(7)), b=8 * 100 * 100, c=4 * 512 * 512)
# ```
#
# </details>
#
# ## Exercises
#
# 1. From memory: write causal multi-head self-attention with a padding mask,
#    for a batch [B, T, D] with `keras.ops`, without a loop. Check it against
#    `ka.layers.MultiHeadAttention`.
#
# <details><summary>Solution</summary>
#
# ```python
# def causal_self_attention(layer, x, padding_mask):
#     weight = {w.name: w for w in layer.weights}
#     B, T, D = x.shape
#     h, d_k = layer.num_heads, layer.key_dim
#
#     def heads_of(name):  # [B, h, T, d_k]
#         projected = x @ weight[f"{name}_kernel"] + weight[f"{name}_bias"]
#         split = ops.reshape(projected, (B, T, h, d_k))
#         return ops.transpose(split, (0, 2, 1, 3))
#
#     query, key, value = map(heads_of, ("query", "key", "value"))
#     scores = query @ ops.swapaxes(key, -1, -2) / math.sqrt(d_k)
#     is_past = ops.tril(ops.ones((T, T), dtype="bool"))[None, None]
#     allowed = ops.logical_and(padding_mask[:, None, None, :], is_past)
#     scores = ops.where(allowed, scores, -1e9)  # Of float32.
#     context = ops.softmax(scores) @ value
#     context = ops.transpose(context, (0, 2, 1, 3))
#     joined = ops.reshape(context, (B, T, h * d_k))
#     return joined @ weight["output_kernel"] + weight["output_bias"]
#
#
# layer = ka.layers.MultiHeadAttention(num_heads=4, key_dim=2)
# layer(x)
# randomise(layer)
# two_rows = ops.concatenate([x, x[:, ::-1]])
# is_real = np.arange(LENGTH) < np.array([[LENGTH], [LENGTH - 3]])
# expected, _ = layer(two_rows, padding_mask=is_real, use_causal_mask=True)
# np.testing.assert_allclose(
#     causal_self_attention(layer, two_rows, is_real), expected, atol=1e-5
# )
# ```
#
# </details>
#
# 2. A decoder has a causal mask, and so is not equivariant to permutations
#    even without positions. Take causal self-attention without positions and
#    shuffle all inputs but the last. Does the last output change with one such
#    layer? With two?
#
# <details><summary>Solution</summary>
#
# Not with one: the last position sees all others, and a sum does not depend
# on their order. With two it does: what the last position sees in the second
# layer are outputs of the first, and each of those has seen only what came
# before it. So a decoder can tell order to some degree from its mask alone.
#
# ```python
# layers = [ka.layers.MultiHeadAttention(2, 4) for _ in range(2)]
# order = np.arange(LENGTH)
# np.random.default_rng(1).shuffle(order[:-1])
# changes, first, second = [], x, ops.take(x, order, axis=1)
# for seed, layer in enumerate(layers):
#     layer(x)
#     randomise(layer, seed)
#     first, _ = layer(first, use_causal_mask=True)
#     second, _ = layer(second, use_causal_mask=True)
#     changes.append(float(ops.max(ops.abs(first - second)[:, -1])))
# assert changes[0] < 1e-5 < 1e-3 < changes[1]
# ```
#
# </details>
#
# 3. How many bytes does the cache of the paper's base model take ($N = 6$,
#    $D = 512$, float32), for 32 sentences of up to 100 tokens?
#
# <details><summary>Solution</summary>
#
# $2NLD$ numbers of 4 bytes for each sentence:
# $32 \cdot 4 \cdot 2 \cdot 6 \cdot 100 \cdot 512$, that is 78,643,200.
#
# ```python
# layer = ka.layers.TransformerDecoderLayer(8, intermediate_dim=2048)
# layer.build((None, None, 512), (None, None, 512))
# cache = layer.initial_cache(batch_size=32, max_length=100)
# assert 6 * 4 * sum(np.size(c) for c in cache) == 78_643_200
# ```
#
# </details>
#
# The model is written. Next, in [chapter 6](06_training_well.ipynb): training
# one well.
