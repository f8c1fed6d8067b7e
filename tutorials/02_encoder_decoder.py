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
# # 2. Sequence to sequence: a sentence in one vector
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/02_encoder_decoder.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# The networks of the last chapter read a sequence and predict its next token. A
# translation is another sequence, of another length, in another order. How can
# a recurrent network read one and write the other? In 2014 two groups gave the
# same answer. One network, the *encoder*, reads the whole source into one
# vector. A second one, the *decoder*, unfolds the vector into the target.
# (Kalchbrenner and Blunsom had come close in 2013, with a convolution as the
# reader.) We build both of their models, train them on numbers in words, and
# measure where they fail: the longer the source, the fewer translations are
# right.
#
# Takes about 6 minutes on two cores. It ends with two pictures and the tables
# behind them: how many translations are right at each length of the source,
# first for three models, then for three whose vectors differ in width. Pictures
# are shown here and kept in the folder `pictures`.
#
# [Dive into Deep Learning](https://d2l.ai/chapter_recurrent-modern/seq2seq.html)
# tells the same story with real sentences, and Jay Alammar
# [animates](https://jalammar.github.io/visualizing-neural-machine-translation-mechanics-of-seq2seq-models-with-attention/)
# what passes from the encoder to the decoder.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import itertools
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
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")

# %% [markdown]
# The two networks in a picture. The encoder reads, one token at each step. What
# it hands over is one vector. The decoder starts from it and writes, and reads
# what it has written. (The dashed arrows are the difference between the two
# models, which we come to.)

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.encoder_decoder(path=PICTURES / "02_encoder_decoder.png")

# %% [markdown]
# ## Lists of numbers
#
# The package carries a corpus of its own, `phrases`: numbers, dates and
# times that two languages spell by rule. We take its numbers below a
# thousand, in English and German, and make lists of one to seven of them:
# "twenty-one, seven, three hundred and five". Such a list is a pure test of
# memory. Every number is translated by itself, in the same way wherever it
# stands, so a long list is not harder than a short one; there is only more
# to remember. The next cell takes the numbers from the corpus; skip it.


# %% tags=["hide-input"]
def value(pair):
    """Which number it is: 21 of twenty-one."""
    return pair.writing.arguments[0]


numbers = [
    pair
    for pair in phrases.generate("en", "de", train=10_000)["train"]
    if pair.category == "cardinal" and value(pair) < 1000
]

# %%
for pair in numbers[:3]:
    print(f"{value(pair)}  {pair.source}: {pair.target}")

# %% [markdown]
# Models read ids, so texts are cut into tokens and tokens are numbered. In
# practice a vocabulary is learned from text (chapter 8). Here `phrase_links`, a
# program beside the chapters, knows what each number is composed of, so that we
# can read each token.


# %% tags=["hide-input"]
def tokens(pair, language):
    """What a number is composed of."""
    # `parts` gives pairs (what it says, text): ("tens", "twenty"), ...
    found = [text.strip() for _, text in phrase_links.parts(pair, language)]
    return [text for text in found if text]


# %%
twenty_one = next(pair for pair in numbers if value(pair) == 21)
print(tokens(twenty_one, "en"), tokens(twenty_one, "de"))
assert tokens(twenty_one, "en") == ["twenty", "-", "one"]
assert tokens(twenty_one, "de") == ["ein", "und", "zwanzig"]

# %% [markdown]
# The numbers with one, two and three digits are drawn equally often. A list
# has at most 28 tokens in English. No list that we test on is among those
# that we train on. The next cell draws them; skip it.

# %% tags=["hide-input"]
generator = np.random.default_rng(1)
cut = {pair: (tokens(pair, "en"), tokens(pair, "de")) for pair in numbers}
pools = [
    [pair for pair in numbers if len(str(value(pair))) == digits]
    for digits in (1, 2, 3)
]


def draw():
    """A list of numbers: its tokens in English, its tokens in German."""
    chosen = [
        pools[digits][generator.integers(len(pools[digits]))]
        for digits in generator.integers(3, size=generator.integers(1, 8))
    ]
    source, target = [], []
    for pair in chosen:
        english, german = cut[pair]
        source += [",", *english]
        target += [",", *german]
    # (",", "twenty", "-", "one", ",", "seven")[1:]
    return tuple(source[1:]), tuple(target[1:])


def corpus(size):
    """That many distinct lists: (source, target)."""
    lists = {}
    while len(lists) < size:
        source, target = draw()
        if len(source) <= 28:
            lists[source] = target
    return list(lists.items())


NUM_HELD_OUT, NUM_TRAINING = (100, 400) if FAST else (1000, 8000)
lists = corpus(NUM_HELD_OUT + NUM_TRAINING)
held_out, training = lists[:NUM_HELD_OUT], lists[NUM_HELD_OUT:]

# %%
for source, target in held_out[:3]:
    print(" ".join(source), "|", " ".join(target))

assert not set(held_out) & set(training)

# %% [markdown]
# ## START, END and padding
#
# Call the text that is read the source, $x = (x_1, \dots, x_S)$, and the one
# that is written the target, $y = (y_1, \dots, y_T)$. It takes three control
# tokens to make batches of them. (The vocabulary has a fourth, [UNK], for words
# it does not know. There are none in our lists, but an untrained model may
# write it.)
#
# - **END** is the last token of the source and of the target. The model has
#   to write it, and so itself says when a translation is complete.
# - **START** is what the decoder reads first, when nothing has been written.
# - **PAD** fills short rows, because an array is a rectangle.
#
# The decoder predicts each token of $y$ from the tokens before it. In
# training we know those tokens, so we feed it the true ones, whatever the model
# itself would have written. This is *teacher forcing* (Williams and
# Zipser 1989). Every position of the target is then an example of its own, and
# all of them are computed in one call. Two arrays, one shifted against the
# other, say it all:
#
# ```
# target_ids   START  ein  und      zwanzig   what the decoder reads
# labels       ein    und  zwanzig  END       what it should answer
# ```


# %%
def vocabulary(texts):
    """Tokens in the order of their ids, the control tokens first."""
    return [
        *CONTROL_TEXTS,
        *sorted({token for text in texts for token in text}),
    ]


# Of what is trained on: a token of the other lists that is not in here would
# be an error.
source_vocabulary = vocabulary(source for source, _ in training)
target_vocabulary = vocabulary(target for _, target in training)
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
    """Inputs and labels, as a model and a loss take them."""
    sources, targets = zip(*(ids_of(*pair) for pair in pairs), strict=True)
    inputs = {
        "source_ids": padded(sources),
        "target_ids": padded([ids[:-1] for ids in targets]),
    }
    return inputs, padded([ids[1:] for ids in targets])


inputs, labels = arrays([cut[twenty_one], (("seven",), ("sieben",))])
for name, ids in {**inputs, "labels": labels}.items():
    names = source_vocabulary if name == "source_ids" else target_vocabulary
    print(name)
    for row in ids:
        print("   ", *(f"{names[i]:8}" for i in row))

assert (inputs["target_ids"][0, 1:] == labels[0, :-1]).all()
assert inputs["target_ids"][0, 0] == START
assert labels[0, -1] == inputs["source_ids"][0, -1] == END

# %% [markdown]
# ## One vector: Sutskever, Vinyals and Le
#
# A recurrent network reads the source to its end. Its last state $v$ has
# seen every word. A second network starts from $v$ as its state, and writes
# (Sutskever et al. 2014, equation 1):
#
# $$p(y_1, \dots, y_T \mid x) = \prod_{t=1}^{T}
#   p(y_t \mid v, y_1, \dots, y_{t-1})$$
#
# Each factor is a softmax over the target's vocabulary, computed from the
# decoder's state at $t$. With an LSTM the state is a pair: hidden state and
# cell state. In Keras this is ten lines, and two arguments carry the idea:
# `return_state` on one side, `initial_state` on the other.

# %%
UNITS, EMBEDDING = 128, 64
SIZES = {
    "vocabulary_size": len(target_vocabulary),
    "source_vocabulary_size": len(source_vocabulary),
    "embedding_dim": EMBEDDING,
    "units": UNITS,
}

source_ids = keras.Input((None,), dtype="int32", name="source_ids")
target_ids = keras.Input((None,), dtype="int32", name="target_ids")
read = keras.layers.Embedding(len(source_vocabulary), EMBEDDING, mask_zero=True)
encoder = keras.layers.LSTM(UNITS, return_state=True)
written = keras.layers.Embedding(len(target_vocabulary), EMBEDDING)
decoder = keras.layers.LSTM(UNITS, return_sequences=True)
answer = keras.layers.Dense(len(target_vocabulary))

_, *v = encoder(read(source_ids))
logits = answer(decoder(written(target_ids), initial_state=v))
by_hand = keras.Model([source_ids, target_ids], logits)

# %% [markdown]
# `mask_zero` makes the encoder stop at the padding: PAD is id 0, and where
# the mask is false, the LSTM keeps its state. The package's
# `LSTMEncoderDecoder` is the same function with more layers, dropout, and one
# trick that the paper found to matter. With the same weights both give the same
# logits.

# %%
lstm = ka.models.LSTMEncoderDecoder(**SIZES, num_layers=1, reverse_source=False)
lstm.build()
for ours, theirs in (
    (read, lstm.source_embedding),
    (encoder, lstm.encoder[0]),
    (written, lstm.target_embedding),
    (decoder, lstm.decoder[0]),
    (answer, lstm.output_projection),
):
    ours.set_weights(theirs.get_weights())

few, few_labels = arrays(held_out[:5])
difference = by_hand([few["source_ids"], few["target_ids"]]) - lstm(few)
print("greatest difference", float(ops.max(ops.abs(difference))))
assert PAD == 0 and np.allclose(difference, 0, atol=1e-5)

# %% [markdown]
# The trick: the source is read backwards (section 3.3 of the paper). Here END
# is read first, and padding stays at the end of the row. If the languages have
# the same word order, the first source word should then be fresh in memory when
# the first target word is due. Suppose word $j$ of the source gives word $j$ of
# the target, $n$ words each, and count the steps between reading one and
# writing the other. The average does not change, but the shortest way becomes
# one step, and gradient descent gets a foot in the door.

# %%
n = 10
positions = np.arange(n)
written_at = n + positions
forwards = written_at - positions
backwards = written_at - (n - 1 - positions)
print("forwards: ", forwards)
print("backwards:", backwards)

assert forwards.mean() == backwards.mean() == n
assert forwards.min() == n and backwards.min() == 1

# %% [markdown]
# ## The contract: encode, initial_state, step, call
#
# Every model of this package is a `ka.models.Seq2Seq`, which promises four
# methods:
#
# | method | what it does |
# |---|---|
# | `encode(source_ids)` | reads the source once; gives the `memory` |
# | `initial_state(memory, max_length)` | the decoder's `state` at the start |
# | `step(token_ids, memory, state)` | logits, next state, attention weights |
# | `call({"source_ids", "target_ids"})` | teacher forcing: all steps at once |
#
# The memory stays as it is while a sentence is written; the state changes with
# each token. (`max_length` is the most tokens that will be written. It matters
# from chapter 5 on.) The logits are those of the next token. The attention
# weights say where the model looked; the models of this chapter have no choice,
# and theirs are always 1 at the token that the encoder read last. Training uses
# `call`. Writing a translation uses the other three, because there the next
# input is not known before the current output. All four share the trained
# parameters, so that `step`, fed with the tokens of the target one after the
# other, computes what `call` does.

# %%
memory = lstm.encode(few["source_ids"])
state = lstm.initial_state(memory, max_length=30)
steps = []
for t in range(few["target_ids"].shape[1]):
    step_logits, state, _ = lstm.step(few["target_ids"][:, t], memory, state)
    steps.append(step_logits)
assert np.allclose(ops.stack(steps, axis=1), lstm(few), atol=1e-5)

# %% [markdown]
# Now look at the memory. Whether the source has one token or sixteen, what
# the decoder receives has the same size.


# %%
def last_states(source):
    """What the encoder hands over: hidden state and cell, side by side."""
    inputs, _ = arrays([(source, ())])
    memory = lstm.encode(inputs["source_ids"])
    return np.concatenate(memory["last_states"][0], axis=-1)


short = last_states(("seven",))
long = last_states(("twenty", "-", "one", ",") * 4)
print(short.shape, long.shape)
assert short.shape == long.shape == (1, 2 * UNITS)

# %% [markdown]
# ## The summary at every step: Cho et al.
#
# Sutskever's decoder sees the vector once, at its start, and has to carry
# it through all of its steps. The model of Cho et al. (2014, section 2.2
# and appendix A) shows it again at each of them: these are the dashed arrows of
# the picture. Its recurrent unit is the GRU, invented for this model.
#
# From here on vectors are *columns* in equations, $W x$, as in the papers; in
# chapter 1 they were rows, $x W$, as they still are in all code. Square
# brackets put vectors end to end. With $h_S$ the last state of the encoder, a
# GRU over the source's embeddings, and $E$ the embedding of the target:
#
# $$
# \begin{aligned}
# c &= \tanh(V h_S + b) && \text{the summary} \\
# h'_0 &= \tanh(V' c + b') \\
# h'_t &= \mathrm{GRU}(h'_{t-1},\, [E y_{t-1};\, c]) \\
# u_t &= M\,[h'_t;\, E y_{t-1};\, c] + m \\
# s_{t,k} &= \max(u_{t,2k-1},\, u_{t,2k}) && \text{maxout} \\
# p(y_t) &= \mathrm{softmax}(G s_t + g)
# \end{aligned}
# $$
#
# $y_t$ is one-hot, so $E y_t$ picks a column of $E$ (in the code a row of the
# embedding's table), and $y_0$ is START. This $c$ is not the LSTM's cell state.
# $M$ is the paper's $O$. $h'_0$ is the decoder's state before it starts, $h'_t$
# the one after $t$ tokens. *Maxout* takes the place of tanh: each component of
# $s_t$ is the greater of two linear functions, and so never saturates.
# `readout_dim` is the length of $s_t$. `ka.models` has the model as
# `RNNEncoderDecoder`. The paper's appendix differs in two points: its reset
# gate acts on $c$, too, and its $G$ is a product of two smaller matrices. To be
# sure that we understand the model, here is one step in numpy, with the
# package's weights.

# %%
cho = ka.models.RNNEncoderDecoder(**SIZES, readout_dim=UNITS)
cho.build()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, layer):
    """Chapter 1's cell: z, r and the candidate side by side."""
    W, U, b = layer.get_weights()
    W_z, W_r, W_h = np.split(W, 3, axis=1)
    U_z, U_r, U_h = np.split(U, 3, axis=1)
    b_z, b_r, b_h = np.split(b, 3)
    z = sigmoid(x @ W_z + h @ U_z + b_z)
    r = sigmoid(x @ W_r + h @ U_r + b_r)
    candidate = np.tanh(x @ W_h + (r * h) @ U_h + b_h)
    return z * h + (1 - z) * candidate


def cho_step(token_ids, c, h):
    """One step of the decoder: equations above, line by line."""
    [E] = cho.target_embedding.get_weights()
    [M, m] = cho.maxout.get_weights()
    [G, g] = cho.output_projection.get_weights()
    Ey = E[token_ids]
    h = gru(np.concatenate([Ey, c], axis=1), h, cho.decoder)
    u = np.concatenate([h, Ey, c], axis=1) @ M + m
    s = np.maximum(u[:, 0::2], u[:, 1::2])
    return s @ G + g, h


memory = cho.encode(few["source_ids"])
c = np.array(memory["summary"])
kernel, bias = cho.bridge.get_weights()
h = np.tanh(c @ kernel + bias)  # h'_0
state = cho.initial_state(memory)
for t in range(4):
    token_ids = few["target_ids"][:, t]
    expected, state, _ = cho.step(token_ids, memory, state)
    computed, h = cho_step(token_ids, c, h)
    assert np.allclose(computed, expected, atol=1e-5)
print("four steps agree; the summary is", c.shape)

# %% [markdown]
# ## The loss, with padding masked
#
# Training minimises the mean negative log-probability of the true tokens.
# Padding is not a token: it must count neither in the sum nor in the
# number that divides it. With $\mu_{rt} = 1$ where row $r$ of the batch has a
# real label at $t$, and 0 where it has padding:
#
# $$L = - \frac{1}{\sum_{r,t} \mu_{rt}}
#   \sum_{r,t} \mu_{rt} \log p(y_{rt} \mid x_r, y_{r,<t})$$
#
# As a loop, and as the loss `ka.training.losses.TokenCrossEntropy` of `fit`:

# %%
logits = np.array(cho(few), "float64")
log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

total = count = 0
for row, t in np.ndindex(few_labels.shape):
    if few_labels[row, t] != PAD:
        total -= log_p[row, t, few_labels[row, t]]
        count += 1

loss = ka.training.losses.TokenCrossEntropy()
by_loss = float(loss(few_labels, logits))
print(f"by the loop {total / count:.6f}, by the package {by_loss:.6f}")
size = len(target_vocabulary)
print(f"log of {size} tokens: {np.log(size):.6f}")
assert np.isclose(by_loss, total / count, rtol=1e-5)
# What the model says at padded places changes nothing.
spoilt = (
    logits
    + 100.0 * np.random.rand(*logits.shape) * (few_labels == PAD)[..., None]
)
assert float(loss(few_labels, spoilt)) == by_loss
# An untrained model knows nothing: all tokens are about equally likely.
assert abs(by_loss - np.log(size)) < 0.1

# %% [markdown]
# ## Greedy search, by hand
#
# To translate we feed the model its own words: START first, then at each
# step the most probable token, until it says END. That is all of greedy
# search. Rows of a batch end at different times; those that are done go on
# writing, and what stands after END is cut off.


# %%
def greedy_search(model, memory, max_length=30):
    """The most probable token at each step: int [B, max_length]."""
    state = model.initial_state(memory, max_length)
    num_rows = len(keras.tree.flatten(memory)[0])
    token_ids = np.full(num_rows, START)
    ids = []
    for _ in range(max_length):
        logits, state, _ = model.step(token_ids, memory, state)
        token_ids = np.argmax(logits, axis=-1)
        ids.append(token_ids)
    return np.stack(ids, axis=1)


def texts(ids):
    """Rows of ids, each up to its END, as text."""
    rows = [itertools.takewhile(lambda i: i != END, row) for row in ids]
    return [" ".join(target_vocabulary[i] for i in row) for row in rows]


memory = cho.encode(few["source_ids"])
ids = greedy_search(cho, memory)
print(texts(ids)[0])

# %% [markdown]
# An untrained model babbles. Let us train it.
#
# ## Training
#
# `ka.data` makes batches of about 1,024 target tokens out of lists of similar
# length, so that there is little to pad. Each batch comes with weights: one
# divided by the number of its real labels. A `TokenCrossEntropy` that is given
# weights no longer divides: it multiplies by them and sums, which is the loss
# above. (Chapter 6 says what this is good for.) Everything else is `compile`
# and `fit`. The chapter trains six models, one of them four times as long, and
# each prints a line for each epoch.


# %%
def batches(pairs):
    """Batches of (inputs, labels, weights), in another order each epoch.

    Each epoch has the same batches, which is enough here; chapters 6 to 8
    shuffle the pairs and make new ones.
    """
    sources, targets = zip(*(ids_of(*pair) for pair in pairs), strict=True)
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


def train(model, epochs=EPOCHS):
    """Trains a model on all lists; returns the loss of each epoch."""
    rate = keras.optimizers.schedules.CosineDecay(3e-3, epochs * len(examples))
    model.compile(
        # Clips each kernel's gradient by itself, not all of them together.
        keras.optimizers.Adam(rate, clipnorm=1.0),
        loss=ka.training.losses.TokenCrossEntropy(),
    )
    history = model.fit(examples, epochs=epochs, shuffle=False, verbose=2)
    return history.history["loss"]


keras.utils.set_random_seed(1)
cho = ka.models.RNNEncoderDecoder(**SIZES, readout_dim=UNITS)
losses = train(cho)
if not FAST:
    assert losses[-1] < losses[0] / 3

# %% [markdown]
# How many lists does it translate without any mistake? There is a way to
# know without a search. If greedy search writes exactly the true target,
# then each of its steps had read the true tokens that come before: it did what
# teacher forcing does. And if under teacher forcing the most probable token is
# right at every position, then greedy search would have written those tokens.
# So one call of the model tells us both: which tokens are right, given the true
# ones before them, and which whole translations are.


# %%
def right_tokens(model, pairs):
    """Bool [B, T]: which tokens are right; and which are real."""
    inputs, labels = arrays(pairs)
    logits = model.predict(inputs, batch_size=250, verbose=0)
    return logits.argmax(axis=-1) == labels, labels != PAD


right, real = right_tokens(cho, held_out)
exact = (right | ~real).all(axis=1)

inputs, _ = arrays(held_out)
found = texts(greedy_search(cho, cho.encode(inputs["source_ids"])))
references = [" ".join(target) for _, target in held_out]
by_search = np.array(
    [
        text == reference
        for text, reference in zip(found, references, strict=True)
    ]
)
print(
    f"right: {exact.mean():.1%} by one call, {by_search.mean():.1%} by search"
)
# A tie that is rounded otherwise could make a difference; none should.
assert (exact == by_search).mean() > 0.99

# %% [markdown]
# The package's `ka.decoding.greedy_search` is the same loop, with three rules
# more. It stops when all rows are done. It writes PAD after END. And each row
# has a maximum length, `max_lengths`, at whose last position it writes END,
# whatever the model says: every answer is a whole one. It takes a function and
# tensors, so it serves every model that keeps the contract.

# %%
memory = cho.encode(inputs["source_ids"])
by_package = ka.decoding.greedy_search(
    cho.step,
    memory,
    cho.initial_state(memory),
    source_mask=inputs["source_ids"] != PAD,
    max_lengths=np.full(len(held_out), 30),
)
same = [
    ours == theirs
    for ours, theirs in zip(
        # [B, N, L]: N translations of each source, here one.
        found,
        texts(by_package.ids[:, 0].numpy()),
        strict=True,
    )
]
if not FAST:
    assert np.mean(same) > 0.99

# At most three tokens: two of the model's, and END.
cut_short = ka.decoding.greedy_search(
    cho.step,
    memory,
    cho.initial_state(memory),
    source_mask=inputs["source_ids"] != PAD,
    max_lengths=np.full(len(held_out), 3),
)
assert ((cut_short.ids == END).numpy().sum(axis=-1) == 1).all()
assert (cut_short.lengths <= 3).numpy().all()

# %% [markdown]
# ## The longer, the worse
#
# Some of its answers, short and long ones:

# %%
order = np.argsort([len(source) for source, _ in held_out], kind="stable")
for place in (0.1, 0.3, 0.9):
    index = order[int(place * len(order))]
    print("source     ", " ".join(held_out[index][0]))
    print("reference  ", references[index])
    print("translation", found[index], "\n")

# %% [markdown]
# The short one is right. The long one is fluent and wrong: well-formed
# numbers in good order, but some of them are not those that were asked for.
# The decoder knows German; what it has lost is the source. In any translation,
# almost everything between two commas is a number:

# %%
german = {" ".join(target) for _, target in cut.values()}
written = [text for row in found for text in row.split(" , ")]
well_formed = np.mean([text in german for text in written])
print(f"well-formed: {well_formed:.1%}")
if not FAST:
    assert found[order[100]] == references[order[100]]
    assert found[order[900]] != references[order[900]]
    assert well_formed > 0.85

# %% [markdown]
# Now count how many translations are right, for each range of lengths.

# %%
EDGES = (0, 4, 8, 12, 16, 20, 24, 28)


def by_length(model, pairs=held_out):
    """How many lists and how many tokens are right, by length."""
    right, real = right_tokens(model, pairs)
    exact = (right | ~real).all(axis=1)
    lengths = np.array([len(source) for source, _ in pairs])
    rows = []
    for low, high in itertools.pairwise(EDGES):
        chosen = (lengths > low) & (lengths <= high)
        rows.append(
            {
                "low": low + 1,
                "high": high,
                "sentences": int(chosen.sum()),
                "exact_match": 100 * exact[chosen].mean(),
                "tokens": 100 * right[chosen][real[chosen]].mean(),
            }
        )
    return rows


def show(rows):
    print("length  lists  exact match  tokens")
    for row in rows:
        print(
            f"{row['low']:3}-{row['high']:2} {row['sentences']:7} "
            f"{row['exact_match']:10.1f} % {row['tokens']:6.1f} %"
        )


scores = {"Cho": by_length(cho)}
show(scores["Cho"])

if not FAST:
    first, *_, last = scores["Cho"]
    assert first["exact_match"] > 75
    assert last["exact_match"] < 20

# %% [markdown]
# An objection: a target of $T$ tokens has $T$ chances to go wrong. If each
# token were right with the same chance $p$, whatever the length, then exact
# match would be $p^T$, and would fall too, without any bottleneck. So look at
# the tokens themselves, in the last column: they get worse with length, even
# though teacher forcing tells the decoder what comes before. With the $p$ of
# lists of five to eight tokens, most of the long lists would be right.

# %%
if not FAST:
    p = scores["Cho"][1]["tokens"] / 100
    T = max(len(target) for _, target in held_out) + 1  # END, too
    print(f"p = {p:.4f}, p^{T} = {p**T:.1%}")
    print(f"measured: {last['exact_match']:.1f} %")
    assert p**T > 0.5
    assert scores["Cho"][1]["tokens"] - last["tokens"] > 8
    assert last["exact_match"] < 100 * p**T / 2

# %% [markdown]
# Another objection: eight epochs are few. So we train the model once more, four
# times as long, and look at new lists and at those that it was trained on.

# %%
keras.utils.set_random_seed(1)
longer = ka.models.RNNEncoderDecoder(**SIZES, readout_dim=UNITS)
train(longer, epochs=4 * EPOCHS)
new, known = (
    by_length(longer, pairs) for pairs in (held_out, training[:NUM_HELD_OUT])
)
print("new lists")
show(new)
print("lists that it was trained on")
show(known)
if not FAST:
    assert new[3]["exact_match"] > scores["Cho"][3]["exact_match"] + 20
    assert new[-1]["exact_match"] < 50 < 90 < new[1]["exact_match"]
    assert min(row["exact_match"] for row in known) > 90

# %% [markdown]
# The fall moves to the right, but is still there. By now the model knows its
# own lists by heart, even the longest: they fit into the vector. What it has
# not found is a way to pack a long list that it has not seen. More time moves
# the fall; a longer source brings it back.
#
# Is that not plain overfitting? It is: from 8,000 lists it has not learned such
# a packing. But 8,000 lists are enough to learn to translate. Chapter 3 takes
# the same 8,000 lists and a quarter of these epochs, and its model gets over
# 90 % of new lists right at every length. It is the one vector that makes the
# task so hard to learn.
#
# ## Does reading backwards help?
#
# The model of Sutskever et al. gets the same lists, the same width and the
# same number of epochs, once reading forwards and once backwards. Lists
# have the same order in both languages, so this is where their trick should
# show.

# %%
for name, reverse_source in (
    ("Sutskever, backwards", True),
    ("Sutskever, forwards", False),
):
    keras.utils.set_random_seed(1)
    lstm = ka.models.LSTMEncoderDecoder(
        **SIZES, num_layers=1, reverse_source=reverse_source
    )
    train(lstm)
    scores[name] = by_length(lstm)
    print(name)
    show(scores[name])

if not FAST:
    for rows in scores.values():
        assert rows[-1]["exact_match"] < 20
    backwards, forwards = (
        scores[f"Sutskever, {way}"] for way in ("backwards", "forwards")
    )
    for row in (0, 1):
        assert backwards[row]["exact_match"] > forwards[row]["exact_match"] + 20

ka.plotting.scores_by_length(
    scores, PICTURES / "02_length.png", metric="exact_match"
)

# %% [markdown]
# It does. Read forwards, the LSTM has hardly begun to learn when the training
# is over; read backwards, it translates most of the short lists. (This is after
# eight epochs: it shows what is learned soon, not what could be learned.) Cho's
# model reads forwards and does well that way. But its decoder need not carry
# the summary, as it sees it at every step.
#
# In the picture the two upper lines fall to about zero on the right. The trick
# brings the beginning of the source nearer, but it makes no more room.
#
# ## Is it the vector?
#
# The explanation on offer is that the source does not fit into the vector. If
# we count, it does. There are 643 numbers to choose from (those that the
# generator drew, out of the 1,000). So a list of seven is one of $643^7$. That
# is about 65 bits, and three components in float32 have 96.

# %%
bits = 7 * np.log2(len(numbers))
print(f"{len(numbers)} numbers; a list of seven: {bits:.1f} bits")
assert len(numbers) == 643 and 65 < bits < 66 < 3 * 32
# Lists of up to four tokens are two numbers at most.
shortest = [source for source, _ in lists if len(source) <= 4]
assert max(source.count(",") for source in shortest) == 1
assert 2 * np.log2(len(numbers)) < 19 < 2 * 32

# %% [markdown]
# But counting does not say how the list is to be packed so that, by following
# gradients, one network can learn to pack it and a second one to unpack it. If
# that is what is scarce, then a narrower vector, with nothing else changed,
# must make the fall come earlier. So we put a waist into Cho's summary: one
# layer squeezes it to a given width, and the next brings it back to 128.
# Encoder and decoder stay as they were.


# %%
def with_waist(width):
    """Cho's model; its summary passes through `width` components."""
    model = ka.models.RNNEncoderDecoder(**SIZES, readout_dim=UNITS)
    # The layer that makes c.
    model.summary_projection = keras.Sequential(
        [
            keras.layers.Dense(width, activation="tanh"),
            keras.layers.Dense(UNITS, activation="tanh"),
        ]
    )
    return model


waists = {}
for width in (2, 8):
    keras.utils.set_random_seed(1)
    model = with_waist(width)
    train(model)
    waists[f"summary of {width}"] = by_length(model)
    print(f"summary of {width}")
    show(waists[f"summary of {width}"])
waists["summary of 128, no waist"] = scores["Cho"]
if not FAST:
    two, eight, all_128 = (
        [row["exact_match"] for row in rows] for rows in waists.values()
    )
    assert max(two) < 10
    assert 20 < eight[1] < 85 and max(eight[3:]) < 10
    for row in range(3):
        assert two[row] < eight[row] < all_128[row] - 10

ka.plotting.scores_by_length(
    waists, PICTURES / "02_width.png", metric="exact_match"
)

# %% [markdown]
# The narrower the vector, the earlier the fall, with everything else the same.
# With two components next to nothing is right, even among the shortest lists.
# These are two numbers at most and need fewer than 19 bits, and two components
# in float32 have 64. With eight components many lists of up to eight tokens are
# right, and next to none of more than twelve. With 128 the fall is moved to the
# right, but still there.
#
# So bits are not what is scarce. The encoder has to find, by gradient descent,
# a way to write many things into one vector at once, and the decoder a way to
# read each of them when its time comes. A wider vector makes that easier; a
# longer source makes it harder.
#
# ## What to take away
#
# - Two networks turn one sequence into another: an encoder reads the source
#   into a `memory`, a decoder writes the target one token at a time.
# - In training the decoder is fed the true tokens (teacher forcing); in use
#   it is fed its own (greedy search). `step` and `call` are the same
#   function, and where all tokens are right, both give the same sentence.
# - Padding is masked in the encoder and in the loss.
# - The memory of both models has one size, whatever the length of the
#   source, and accuracy falls with the length: for single tokens, and much
#   more for whole sentences. The decoder still writes good German. The fall
#   comes earlier if the vector is narrow, and later after longer training.
# - The cure cannot be a wider vector alone, since sentences have no maximum
#   length. The memory has to grow with the source.
#
# ## Your turn
#
# Write the loss without a loop. `log_p` has the log-probability of every token
# of the vocabulary, and the given line picks those of the labels. Padding must
# count neither in the sum nor in the number that divides it.

# %% tags=["alone"]
import your_turn


def masked_loss(log_p, labels, mask):
    """log_p [B, T, V], labels [B, T], mask [B, T] -> one number."""
    of_labels = np.take_along_axis(log_p, labels[:, :, None], axis=2)[:, :, 0]
    return ...


your_turn.check(2, masked_loss)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def masked_loss(log_p, labels, mask):
#     of_labels = np.take_along_axis(log_p, labels[:, :, None], axis=2)[:, :, 0]
#     return -(of_labels * mask).sum() / mask.sum()
#
#
# your_turn.check(2, masked_loss)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots. Two digits are enough.
#
# - a: The target is "zwei und zwanzig", three tokens. How many labels has the
#   decoder?
# - b: The vocabulary has 40 tokens, and the model thinks all of them equally
#   likely. What is the loss?
# - c: Each token is right with a probability of 0.98, whatever the others are.
#   How likely is a sentence of 30 tokens to be all right?

# %% tags=["alone"]
your_turn.quiz(2, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: END is a label, too. START is read only.
# - b: Each label has the log-probability $\ln \frac{1}{40}$.
# - c: All 30 have to be right: the probabilities multiply.
#
# ```python
# your_turn.quiz(2, a=3 + 1, b=np.log(40), c=0.98**30)
# ```
#
# </details>
#
# ## Exercises
#
# 1. Sutskever et al. used four layers of 1,000 units each; every layer of the
#    encoder hands its own state to the corresponding layer of the decoder. How
#    many components are handed over? Check your rule with the package's model.
#
# <details><summary>Solution</summary>
#
# A state is a hidden state and a cell state, $4 \cdot 2 \cdot 1000 = 8000$
# numbers, as the paper says in section 3.4.
#
# ```python
# small = {**SIZES, "units": 10}
# model = ka.models.LSTMEncoderDecoder(**small, num_layers=4)
# states = model.encode(few["source_ids"])["last_states"]
# print(sum(s.shape[-1] for s in keras.tree.flatten(states)))  # 4 * 2 * 10
# ```
#
# </details>
#
# 2. A language writes every sentence in the reverse order of its source.
#    Should the encoder read it backwards?
#
# <details><summary>Solution</summary>
#
# No. Now word $j$ of the source gives word $n - 1 - j$ of the target, and
# reading forwards has the shortest way, one step, for the last word read.
#
# ```python
# written_at = n + (n - 1 - positions)
# print(written_at - positions)  # forwards: 19, 17, ..., 1
# print(written_at - (n - 1 - positions))  # backwards: 10, 10, ..., 10
# ```
#
# </details>
#
# 3. What does padding do to the memory? Compare the summary of a short list
#    alone with its summary in a batch with longer ones, for `cho`; then for
#    the LSTM in Keras, with and without `mask_zero`.
#
# <details><summary>Solution</summary>
#
# With the mask, nothing: the states stand still over the padding. Without it
# the LSTM goes on reading PAD, and its state depends on the longest row of
# the batch.
#
# ```python
# both, _ = arrays([(("seven",), ()), held_out[0]])
# alone = both["source_ids"][:1, :2]  # "seven", END
# in_batch = cho.encode(both["source_ids"])["summary"][:1]
# assert np.allclose(cho.encode(alone)["summary"], in_batch, atol=1e-5)
#
# for mask_zero in (True, False):
#     read = keras.layers.Embedding(40, 64, mask_zero=mask_zero)
#     encoder = keras.layers.LSTM(UNITS)
#     in_batch = encoder(read(both["source_ids"]))[:1]
#     print(np.allclose(encoder(read(alone)), in_batch, atol=1e-5))
# # True, False
# ```
#
# </details>
#
# 4. A common slip: labels that are not shifted, `labels = target_ids`. Train
#    such a model for two epochs. What do its loss and its translations say?
#
# <details><summary>Solution</summary>
#
# The answer is then the token that has just been read, so the loss falls
# to almost nothing, and nothing is translated: given START, the model answers
# START, and so on.
#
# ```python
# inputs, _ = arrays(training)
# model = ka.models.RNNEncoderDecoder(**SIZES, readout_dim=UNITS)
# model.compile(
#     keras.optimizers.Adam(3e-3), loss=ka.training.losses.TokenCrossEntropy()
# )
# model.fit(inputs, inputs["target_ids"], batch_size=64, epochs=2)  # 0.00
# few_memory = model.encode(few["source_ids"])
# print(texts(greedy_search(model, few_memory))[0])  # [START] [START] ...
# ```
#
# </details>
#
# Next, in [chapter 3](03_soft_search.ipynb): the decoder may look back, first
# along a fixed line and then wherever it has learned to look.
