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
# # 14. One stack, no source
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/14_one_stack.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install scikit-learn ..`)
#
# Every translator so far has two halves: an encoder, which reads, and a
# decoder, which writes. The decoder already reads, too: it reads what it has
# written. So what is left if we drop the encoder? Layers of causal
# self-attention, one on top of the other, which say what comes next (Radford et
# al. 2018). We call them a *stack*. This chapter asks what a stack can do, and
# what limits it:
#
# - it learns a language, and comes close to a limit that we know exactly;
# - it is one of many models that predict words, and a table has four others
#   beside it;
# - a stack finds in a text what no training told it, and two layers do what one
#   cannot;
# - it does not care whether its tokens are words or pixels;
# - it keeps more with every token, and so memory limits the number of texts in
#   a batch.
#
# Takes about 7 minutes on two cores. Pictures are shown here and kept in the
# folder `pictures`. The chapter trains 13 models: one stack for the language,
# five language models side by side, three readers of prompts, a painter, and a
# recogniser of pictures from three seeds. The text before each training says
# what is trained, and a line is printed when it is ready. The first cell also
# has `train`. This function trains all models but the one that recognises
# pictures. Its learning rate rises for 100 steps. Then it falls to 0 along half
# a cosine. Vectors are rows in the equations of this chapter, as in $x W$ and
# in the code. In a map a row asks and a column is asked.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import collections
import math
import os
import pathlib
import time

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from sklearn import datasets, linear_model

import keras_attention as ka
from keras_attention.data.embedded import sentences
from keras_attention.plotting import drawing
from keras_attention.tokens import CONTROL_TEXTS, END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")


def train(model, token_ids, labels, epochs, batch_size=64):
    """Fits a model. Its learning rate falls to 0 along half a cosine."""
    steps = epochs * math.ceil(len(labels) / batch_size)
    warmup = min(100, steps - 1)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps - warmup, warmup_target=3e-3, warmup_steps=warmup
    )
    model.compile(
        keras.optimizers.Adam(schedule, global_clipnorm=1.0),
        ka.training.losses.TokenCrossEntropy(),
        jit_compile=False,  # Compiling takes longer than these trainings.
    )
    epochs = 1 if FAST else epochs
    history = model.fit(
        token_ids, labels, batch_size=batch_size, epochs=epochs, verbose=0
    )
    return history.history["loss"][-1]


# %% [markdown]
# ## A decoder without its second attention
#
# A layer of [chapter 5](05_transformer.ipynb)'s decoder has three parts:
# attention to itself, attention to the source, and a feed-forward network.
# Without a source the middle one goes, and its normalisation with it. We count
# the weights that go: the four kernels and biases of an attention, and the
# $\gamma$ and the $\beta$ of a normalisation. (Both layers below have four
# heads, and 64 units in the feed-forward network.)

# %%
WIDTH = 32
decoder_layer = ka.layers.TransformerDecoderLayer(4, 64)
decoder_layer.build((None, None, WIDTH), (None, None, WIDTH))
layer = ka.layers.SelfAttentionLayer(4, 64)
layer.build((None, None, WIDTH))
attention_weights = 4 * (WIDTH * WIDTH + WIDTH)
normalisation_weights = 2 * WIDTH
assert decoder_layer.count_params() - layer.count_params() == (
    attention_weights + normalisation_weights
)

# %% [markdown]
# The layer that is left is `SelfAttentionLayer`. Its feed-forward network has
# *GELU* in the place of ReLU, a smooth relative (Hendrycks and Gimpel 2016).
# GELU multiplies $x$ by the probability that a normal number is below $x$. The
# form with tanh is the one that GPT-2 and this package compute:
#
# $$\mathrm{GELU}(x) = \tfrac12\, x\, \Big(1 + \tanh\big(\sqrt{2 / \pi}\;
# (x + 0.044715\, x^3)\big)\Big)$$
#
# The models of this chapter are *pre-norm* (chapter 5): they normalise before
# each sublayer, and once more behind the last layer. With token ids $w_t$, $E$
# for the table of embeddings and $P_t$ for the position, the whole stack is
#
# $$\begin{aligned}
# x_t &= \sqrt D\, E_{w_t} + P_t \\
# y &= x + \mathrm{MultiHead}(\mathrm{LayerNorm}(x)) \qquad
# z = y + \mathrm{GELU}(\mathrm{LayerNorm}(y)\, W_1 + b_1)\, W_2 + b_2 \\
# \mathrm{logits} &= \mathrm{LayerNorm}(z)\, E^\top
# \end{aligned}$$
#
# The middle line is one layer, and the next layer takes its $z$ for $x$. The
# last line is after the last layer. Its matrix is the table of embeddings,
# turned: the weights are *tied*, and there is no bias. (With learned positions,
# as GPT-2 has them, there is no factor $\sqrt D$.)

# %% tags=["hide-input", "alone"]
steps_of_x = np.linspace(-3, 3, 121)
cubic = math.sqrt(2 / math.pi) * (steps_of_x + 0.044715 * steps_of_x**3)
gelu_of_x = 0.5 * steps_of_x * (1 + np.tanh(cubic))
np.testing.assert_allclose(
    gelu_of_x,
    keras.activations.gelu(steps_of_x, approximate=True),
    atol=1e-5,
)
print(f"GELU(-1) {gelu_of_x[40]:.2f}, GELU(1) {gelu_of_x[80]:.2f}")
with drawing.style():
    gelu_figure = drawing.Figure(figsize=(4.6, 2.8), layout="constrained")
    gelu_figure.alt = (
        "Two curves over x from -3 to 3. ReLU is 0 up to 0 and then equals x. "
        "GELU is near it, but smooth, and dips a little below 0 left of 0."
    )
    gelu_axes = gelu_figure.subplots()
    gelu_axes.plot(steps_of_x, np.maximum(0, steps_of_x), "--", label="ReLU",
                   color=drawing.INK)  # fmt: skip
    gelu_axes.plot(steps_of_x, gelu_of_x, label="GELU", color=drawing.COLORS[2])
    gelu_axes.set_xlabel("x")
    drawing.finish(gelu_axes)
    drawing.save(gelu_figure, PICTURES / "14_gelu.png")
gelu_figure

# %% [markdown]
# Nothing else changes. A *language model* ([chapter 1](01_recurrence.ipynb))
# predicts each token from those before it. Ours is a stack of these layers
# between an embedding and a softmax. Positions are added as in chapter 5. The
# model gives every position the probabilities of the next token, and a position
# sees nothing that comes after it. As in chapter 5, `step` gives the same
# logits token by token, with a cache.
#
# `mini` is a stack of two layers, here for 50 kinds of tokens. The next cell
# compares its steps with one call. Then it changes the token at place 3,
# counted from 0. The logits before this place stay, and those from there on
# change.

# %%
model = ka.models.TransformerLanguageModel.from_size("mini", 50)
token_ids = np.array([[START, 7, 8, 9, 10, 11]])
logits = model(token_ids)  # [1, 6, 50]
state = model.initial_state(batch_size=1, max_length=6)
for t in range(6):
    step_logits, state = model.step(token_ids[:, t], state)
    np.testing.assert_allclose(step_logits, logits[:, t], atol=1e-5)
changed = token_ids.copy()
changed[0, 3] = 30
difference = np.abs(model(changed) - logits).max(axis=-1)[0]
assert (difference[:3] < 1e-6).all() and (difference[3:] > 1e-3).all()

# %% [markdown]
# ## A language whose entropy is known
#
# How good can a language model be? For English nobody knows. Chapter 1 had a
# language whose probabilities are known, and so its *entropy rate* was a floor:
# no model has a lower loss, on average. The package's corpus `sentences` is
# such a language, with a larger grammar. One of its sentences is "the clever
# girl who many dogs chase dances often and she laughs". The dogs chase, and the
# girl dances and laughs. So a verb and a pronoun must agree with a noun that
# may stand far before them.
#
# We train the stack on 30,000 sentences. We test it on 2,000 others, which are
# drawn from the same source. (A short sentence may be drawn for both.) The next
# cell prints the first three, and makes ids of words. Its `loss_of` computes a
# trained model's loss, in nats a token.

# %%
corpus = sentences.generate(train=2_000 if FAST else 30_000)
print("\n".join(corpus["train"][:3]))
words = {word: END + 1 + i for i, word in enumerate(sentences.vocabulary())}
names = {index: word for word, index in words.items()}
V = END + 1 + len(words)


def to_ids(texts):
    """`token_ids` [B, T], from START on, and `labels`, up to END."""
    rows = [[words[word] for word in text.split()] for text in texts]
    inputs = [[START, *row] for row in rows]
    outputs = [[*row, END] for row in rows]
    return [
        keras.utils.pad_sequences(one, padding="post", value=PAD)
        for one in (inputs, outputs)
    ]


def loss_of(model, token_ids, labels):
    """The mean of -log p of the labels, in nats a token."""
    logits = model.predict(token_ids, verbose=0, batch_size=250)
    chosen = np.take_along_axis(
        np.array(ops.log_softmax(logits)), labels[..., None], axis=-1
    )[..., 0]
    return -chosen[labels != PAD].mean()


# %% [markdown]
# `mini` learns for four epochs. The loss below is that of training, with
# dropout.
#
# This is the first of the 13 trainings that share the 7 minutes of the chapter.

# %%
token_ids, labels = to_ids(corpus["train"])
test_ids, test_labels = to_ids(corpus["test"])
model = ka.models.TransformerLanguageModel.from_size("mini", V)
loss = train(model, token_ids, labels, epochs=4)
print(f"loss of the last epoch: {loss:.3f} nats a token")

# %% [markdown]
# We compare it with two others. The first looks at the last word alone: it
# counts how often each word came after it in the training sentences. The second
# is the source itself, which knows the true probabilities. We print
# *perplexities*, $e$ to the loss. A perplexity of 10 means: the model is as
# uncertain as a blind choice among 10 tokens.

# %%
pairs = collections.Counter(
    zip(token_ids[labels != PAD], labels[labels != PAD], strict=True)
)
firsts = collections.Counter(token_ids[labels != PAD])
real = test_labels != PAD
bigrams = [
    # 0.1 of a word is added to each count: none is 0.
    math.log((pairs[before, after] + 0.1) / (firsts[before] + 0.1 * V))
    for before, after in zip(test_ids[real], test_labels[real], strict=True)
]
truth = sum(map(sentences.log_probability, corpus["test"])) / real.sum()
perplexities = {
    "pairs of words": math.exp(-np.mean(bigrams)),
    "the stack": math.exp(loss_of(model, test_ids, test_labels)),
    "the source itself": math.exp(-truth),
}
for name, perplexity in perplexities.items():
    print(f"{name:18} perplexity {perplexity:6.3f}")
print(f"exp(entropy rate)  {math.exp(sentences.entropy_rate()):17.3f}")
assert perplexities["the source itself"] < perplexities["the stack"]
if not FAST:
    limit = perplexities["the source itself"]
    assert perplexities["the stack"] < 1.05 * limit
    assert perplexities["pairs of words"] > 1.5 * limit

# %% [markdown]
# The last two lines are the limit. The first of them is about the 2,000 test
# sentences, the second about all that the source may write. The stack is within
# a few percent of both. Pairs of words are far away, as the last word alone
# does not tell what a verb must agree with. (From the command line,
# `keras-attention train --model transformer_language_model` trains `mini` on
# all sentences of the corpus.)
#
# ### Bits per character
#
# A perplexity depends on the tokens: a model of letters has a low one, as a
# letter is easier to guess than a word. To compare models with different
# tokens, count the *bits per character*. A loss in nats, divided by $\ln 2$, is
# in bits. A text of $T$ tokens and $C$ characters costs
#
# $$\text{bits per character} = \frac{T}{C} \cdot \frac{\text{loss}}{\ln 2}
# = \frac{T}{C}\, \log_2(\text{perplexity}) .$$
#
# END counts as a token and as a character, as it says that a text is over. The
# next cell does this for the source itself. (A blind guess among 26 letters and
# a space costs $\log_2 27 = 4.75$ bits.)

# %% tags=["alone"]
some_sentences = sentences.generate(train=10)["test"]
num_tokens_of_them = sum(len(text.split()) + 1 for text in some_sentences)
num_characters = sum(len(text) + 1 for text in some_sentences)
nats_a_token = (
    -sum(map(sentences.log_probability, some_sentences)) / num_tokens_of_them
)
bits_a_character = num_tokens_of_them / num_characters
bits_a_character *= nats_a_token / math.log(2)
print(f"{num_characters / num_tokens_of_them:.2f} characters a token")
print(
    f"{nats_a_token:.3f} nats a token, perplexity {math.exp(nats_a_token):.2f}"
)
print(f"{bits_a_character:.3f} bits a character")
assert bits_a_character < math.log2(27)

# %% [markdown]
# The grammar leaves much less than one bit open at each letter: most letters
# follow from those before.
#
# ### Draw from it
#
# A language model is a distribution over texts, so we can draw from it.
# `sampling_search` draws a token with the probability that the model gives it,
# lets the model read it, and draws the next ([chapter
# 7](07_searching_well.ipynb) has more). It was written for translators, whose
# `step` also gets the memory of a source. `without_source` makes such a step
# from ours, and the memory is empty. A text ends at END, or after 30 tokens.
#
# A text is a sentence of the grammar if the source may write it, that is, if
# its log-probability is not minus infinity. The next cell prints the first five
# texts, and the share of sentences among all.

# %%
NUM_DRAWN = 200
result = ka.decoding.sampling_search(
    ka.decoding.without_source(model.step),
    memory=(),
    state=model.initial_state(NUM_DRAWN, 30),
    source_mask=None,
    max_lengths=np.full(NUM_DRAWN, 30),
    seed=1,
)
drawn = [
    " ".join(names[i] for i in row if i > END)
    for row in result.ids.numpy()[:, 0]
]
print("\n".join(drawn[:5]))
grammatical = np.mean(
    [sentences.log_probability(text) > -math.inf for text in drawn]
)
print(f"{grammatical:.0%} of {NUM_DRAWN} are sentences of the grammar")
assert FAST or grammatical > 0.8

# %% [markdown]
# ## Five language models beside each other
#
# The stack is one of many ways to predict a word. The next cell makes five
# models, each with 82,000 to 87,000 weights that are trained. They differ in
# what they keep of the words so far, and one of them in how it reads a word:
#
# - The *simple RNN* (Mikolov et al. 2010) keeps one vector, its state.
# - The *LSTM* (Zaremba et al. 2014) keeps two vectors, its output and its cell
#   state. Its gates say what stays in the cell state ([chapter
#   1](01_recurrence.ipynb)).
# - The *LSTMN* (Cheng et al. 2016) is an LSTM that keeps these two vectors of
#   every word so far. At each word it looks back at all of them, with the
#   additive attention of [chapter 3](03_soft_search.ipynb), and goes on from
#   the weighted sums ([chapter 11b](11b_looking_back.ipynb)).
# - The *character CNN* (Kim et al. 2016; Jozefowicz et al. 2016) has no
#   embedding of its own for each word. It makes the vector of a word from its
#   letters: convolutions slide along the letters, and the largest value that
#   each gives on its way stays. An LSTM with a projection, explained below,
#   reads these vectors. `read_vocabulary` tells the model how
#   the words are spelt, in the order of their ids. (The table of spellings is
#   not trained, and we do not count it.)
# - The *stack* keeps a key and a value of every word and layer.
#
# The stack's last matrix is its table of embeddings. Each of the others has a
# matrix and a bias of its own before the softmax.
#
# All five are language models of the same kind: a call predicts after each
# token of a text, and `step` after one more token. The cell checks that both
# give the same logits.

# %%
cells = {"embedding_dim": 64, "num_layers": 1, "dropout": 0.1}
language_models = {
    "simple RNN": ka.models.RNNLanguageModel(V, units=136, cell="rnn", **cells),
    "LSTM": ka.models.RNNLanguageModel(V, units=80, cell="lstm", **cells),
    "LSTMN": ka.models.LSTMN(V, embedding_dim=64, units=68, dropout=0.1),
    "character CNN": ka.models.CharCNNLanguageModel(
        V,
        character_dim=8,
        filters=((1, 16), (2, 32), (3, 48)),  # Letters, and how many filters.
        embedding_dim=48,
        units=88,
        projection_dim=56,
        num_layers=1,
        dropout=0.1,
    ),
    "stack": ka.models.TransformerLanguageModel(
        V, num_layers=2, hidden_dim=64, intermediate_dim=128, num_heads=4
    ),
}
pieces = [*CONTROL_TEXTS, *words]
parameters = {}
for name, one in language_models.items():
    keras.utils.set_random_seed(1)
    one.build()
    one.read_vocabulary(pieces)  # Only the character CNN takes note of it.
    parameters[name] = sum(
        math.prod(weight.shape) for weight in one.trainable_weights
    )
    logits = one(test_ids[:2, :5])  # [2, 5, V]
    state = one.initial_state(batch_size=2, max_length=5)
    for t in range(5):
        step_logits, state = one.step(test_ids[:2, t], state)
        np.testing.assert_allclose(step_logits, logits[:, t], atol=1e-5)
assert 82_000 < min(parameters.values())
assert max(parameters.values()) < 87_000

# %% [markdown]
# The character CNN makes the vector of a word in four steps (Kim et al. 2016).
# $C$ has the embeddings of the word's letters, with a sign before the first and
# one behind the last. Padding makes all words equally long. It has an embedding
# of its own, and a filter reads it like a letter. Filter $f$ of width $w$ looks
# at $w$ letters from letter $i$ on, and only the largest of its answers stays:
#
# $$y_f = \max_i\; \tanh\Big(b_f + \sum_{j=0}^{w-1} H_{f,j} \cdot C_{i+j}\Big)$$
#
# So a filter may learn to find an ending such as "-ing", wherever it stands.
# Then comes a *highway* layer (Srivastava et al. 2015), which mixes the answers
# and may also leave them as they are:
#
# $$t = \sigma(y W_T + b_T) \qquad
# z = t \odot \max(0,\ y W_H + b_H) + (1 - t) \odot y$$
#
# $b_T$ begins at $-2$, so that at first the gate $t$ is about $0.12$ and most
# of $y$ passes. A last matrix brings $z$ to the width that the LSTM reads.

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.highway(PICTURES / "14_highway.png")

# %% [markdown]
# *A highway layer. The gate $t$ says how much of $y$ is replaced.*
#
# The LSTM behind the character CNN has a *projection* (Sak et al. 2014). A
# matrix makes its output narrower, before it goes on to the softmax and returns
# at the next word. Let $n$ be the number of units, $d$ the width of the inputs,
# and $p$ that of the narrower output. The three gates and the new content each
# have $d + p + 1$ weights for each unit, one of them a bias. The projection has
# $n p$ weights. So the sum is $4 n (d + p + 1) + n p$. Without a projection the
# output has width $n$, and the sum is $4 n (d + n + 1)$.
#
# The next cell checks both. Then it puts in the sizes of the widest model of
# Jozefowicz et al.: 8,192 units, whose inputs and outputs are 1,024 wide. The
# projection saves three quarters of the weights.


# %%
def lstm_weights(n, d, p=None):
    """The weights of an LSTM, with a projection to width p or without."""
    return 4 * n * (d + n + 1) if p is None else 4 * n * (d + p + 1) + n * p


(projected,) = language_models["character CNN"].recurrent_layers
assert projected.count_params() == lstm_weights(n=88, d=48, p=56)
(lstm,) = language_models["LSTM"].recurrent_layers
assert lstm.count_params() == lstm_weights(n=80, d=64)
print(f"8,192 cells: {lstm_weights(8192, 1024):,} weights")
print(f"projected to 1,024: {lstm_weights(8192, 1024, 1024):,} weights")

# %% [markdown]
# Now all five learn from the same 11,520 sentences, for four epochs. Each
# prints its row when it is ready. The table has two more rows for comparison.
# *Words alone* counts how often each word occurs in this part, and predicts the
# same at each place. The source itself is the floor, as above.
#
# The last column is the time that 1,000 tokens of training take. It leaves out
# the time in which TensorFlow builds a model's graph: each model trains on 20
# more batches, and these are timed. The perplexity has been measured before.
#
# These are five of the 13 trainings that share the 7 minutes of the chapter.

# %%
SOME, TIMED = (640, 64) if FAST else (11_520, 1_280)
some_ids, some_labels = token_ids[:SOME], labels[:SOME]
occurred = some_labels[some_labels != PAD]
counts = np.bincount(occurred, minlength=V) + 0.1  # As above, none is 0.
alone = np.log(counts / counts.sum())[test_labels[real]]
floor = perplexities["the source itself"]
scores = {"words alone": math.exp(-alone.mean())}
print(f"{'':17} perplexity  parameters  ms for 1,000 tokens")
print(f"{'words alone':17} {scores['words alone']:10.2f}")
for name, one in language_models.items():
    keras.utils.set_random_seed(1)
    train(one, some_ids, some_labels, epochs=4)
    scores[name] = math.exp(loss_of(one, test_ids, test_labels))
    start = time.perf_counter()
    one.fit(some_ids[:TIMED], some_labels[:TIMED], batch_size=64, verbose=0)
    seconds = time.perf_counter() - start
    thousands = (some_labels[:TIMED] != PAD).sum() / 1_000
    print(
        f"{name:17} {scores[name]:10.2f} {parameters[name]:11,} "
        f"{1_000 * seconds / thousands:20.0f}"
    )
print(f"{'the source itself':17} {floor:10.2f}")
for name in language_models:
    assert scores[name] > 0.99 * floor  # No model beats it, but by luck.
    assert FAST or scores[name] < scores["words alone"] / 4

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(6.4, 2.8), layout="constrained")
    axes = figure.subplots()
    looks = drawing.looks(language_models)
    for place, (name, look) in enumerate(
        zip(language_models, looks, strict=True)
    ):
        axes.plot(
            scores[name], place, "o", color=drawing.COLORS[look], markersize=9
        )
    axes.axvline(
        floor, color=drawing.INK, linestyle="--", label="the source itself"
    )
    axes.set_yticks(range(len(language_models)), language_models)
    axes.set_ylim(len(language_models) - 0.5, -0.5)  # The first is on top.
    axes.set_xlabel("perplexity")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "14_five_models.png")
figure

# %% [markdown]
# In the picture a point further left is better, and only luck can bring a point
# to the left of the dashed line. All five know far more than how often a word
# occurs. Do not read the table as a verdict on the five models. It is their
# order after a short training, at one size, with one seed. We have sought no
# best learning rate and no best dropout for any of them. The models with gates
# are behind the simple RNN here. Larger models with a stack, a GRU, an LSTMN or
# a character CNN, trained on more sentences, come close to the line: see
# [Results](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/phrases.md).
#
# What a model costs is the other half of the comparison. Look at the last
# column. The simple RNN does the least for each word. The LSTMN looks back at
# all words before. The character CNN makes the vector of a word anew each time
# the word occurs. The stack computes all places of a text at once, and the
# others one after the other. [Chapter 12](12_how_far_apart.ipynb) measures what
# that means for longer texts.
#
# On real text, the Penn Treebank, all five are trained, and four stand beside a
# published figure:
# [Results](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/penn_treebank.md).
#
# ## Learning from the prompt
#
# A grammar is learned in training, and is then in the weights. But a text also
# says things that are true in this text alone: "Anna lives in room 7. Ben lives
# in room 3 ..." Here is the barest such text. It begins with eight *keys*, each
# followed by its *value*. (They are tokens, not the keys and values of an
# attention.) For every text we draw eight of twelve keys, and for each of them
# one of twelve values. Two keys may get the same value. Then all eight keys
# come again, in another order. Each of them is a *question*, and the model has
# to say the value:
#
# `k3 v7 k1 v2 k9 v2 ... | k9 v2 k3 v7 ...`
#
# The bar is for our eyes, and the text has none. What stands before it is the
# *prompt*. Which value a key has cannot be in the weights, since every text
# draws it anew. The model has to look it up in the prompt.
#
# `draw` makes the texts. A label is the value that is asked for, and stands at
# the place of the question. All other labels are padding, which the loss leaves
# out. In the output 0 is padding and 2 is START. Ids from 4 on are keys, and
# ids from 16 on are values.

# %%
PAIRS, KEYS, VALUES = 8, 12, 12
FIRST_KEY = END + 1
FIRST_VALUE = FIRST_KEY + KEYS
SIZE = FIRST_VALUE + VALUES


def draw(rng, count):
    """`token_ids`, `labels` (values that are asked for), and the places.

    Places: for each of the questions [B, 8], where its value is given.
    """
    inputs, outputs, places = [], [], []
    for _ in range(count):
        keys = FIRST_KEY + rng.permutation(KEYS)[:PAIRS]
        values = FIRST_VALUE + rng.integers(0, VALUES, PAIRS)
        asked = rng.permutation(PAIRS)
        pairs = np.stack([keys, values], axis=1)  # [8, 2]
        inputs.append([START, *pairs.ravel(), *pairs[asked].ravel()])
        label = np.zeros([PAIRS, 2], int) + PAD
        label[:, 0] = values[asked]
        outputs.append([PAD] * (1 + 2 * PAIRS) + label.ravel().tolist())
        places.append(2 + 2 * asked)
    return np.array(inputs), np.array(outputs), np.array(places)


prompts, answers, _ = draw(np.random.default_rng(1), 500 if FAST else 19_200)
test_prompts, test_answers, test_places = draw(np.random.default_rng(2), 500)
print("one text:", test_prompts[0])
print("asked:   ", test_answers[0])

# %% [markdown]
# `recall` is the share of right answers. Three models learn from the same
# texts: one layer, two layers, and a GRU. The GRU has about as many weights as
# the two layers.
#
# Each learns for ten epochs, and prints its row when it is ready. These are
# three of the 13 trainings that share the 7 minutes of the chapter.


# %%
def recall(model):
    """The share of questions that are answered rightly."""
    found = np.argmax(
        model.predict(test_prompts, verbose=0, batch_size=250), axis=-1
    )
    return np.mean((found == test_answers)[test_answers != PAD])


STACK = {"hidden_dim": 64, "intermediate_dim": 64, "num_heads": 2}
readers = {
    "one layer": ka.models.TransformerLanguageModel(
        SIZE, num_layers=1, dropout=0.0, **STACK
    ),
    "two layers": ka.models.TransformerLanguageModel(
        SIZE, num_layers=2, dropout=0.0, **STACK
    ),
    "GRU": ka.models.RNNLanguageModel(
        SIZE, 64, 96, num_layers=1, cell="gru", dropout=0.0
    ),
}
recalled = {}
for name, reader in readers.items():
    keras.utils.set_random_seed(1)
    train(reader, prompts, answers, epochs=10, batch_size=128)
    recalled[name] = recall(reader)
    print(
        f"{name:10} {reader.count_params():7,} weights, "
        f"recalls {recalled[name]:.2f}"
    )
given = np.stack(
    [
        np.bincount(row[1 : 2 * PAIRS + 1], minlength=SIZE)[FIRST_VALUE:]
        for row in test_prompts
    ]
)  # How often each value was given [B, 12].
most_frequent = given.max(axis=1).mean() / PAIRS
print(f"a blind guess: {1 / VALUES:.2f}")
print(f"the most frequent value of the prompt: {most_frequent:.2f}")
assert FAST or recalled["two layers"] > 0.95
assert FAST or abs(recalled["one layer"] - most_frequent) < 0.05
assert FAST or recalled["two layers"] > recalled["one layer"] + 0.3
assert FAST or recalled["two layers"] > recalled["GRU"] + 0.3

# %% [markdown]
# A blind guess among the twelve values is right once in twelve times, a share
# of 0.08. One layer is better than that, and as good as naming the most
# frequent value: it sees which values were given, and how often. But it cannot
# know which one is right. A question is a key, and the value that it asks for
# stands *after* the same key. In one layer the question sees every token as it
# came in: which token it is, and where it stands. So a value does not show
# which key stands before it.
#
# In two layers it does. In the first layer each value looks at the key before
# it, and keeps what it saw. In the second layer the question looks for the
# value that saw the same key. Each of the two looks is a *hop*. Elhage et al.
# 2021 and Olsson et al. 2022 found such pairs of heads in trained language
# models. They called the second head of a pair the *induction head*. The GRU
# needs no hop, but it has to keep all eight pairs in one vector of 96 numbers.
# It answers far fewer questions rightly than the two layers.
#
# Can we see the two hops? `read` returns the attention weights of each layer,
# [B, H, T, T]. From these we compute two means over the 500 test texts, for
# each head of both layers. The first is the weight that a value in the prompt
# gives to the token before it, which is its key. The second is the weight that
# a question gives to its answer in the prompt.

# %%
_, weights = readers["two layers"].read(test_prompts)
weights = np.array(weights)  # [layer, B, H, T, T]
rows = np.arange(len(test_prompts))[:, None]
questions = np.array([np.flatnonzero(row) for row in test_answers])  # [B, 8]
# Of an array that is indexed by arrays, their axes come first: [B, 8, N, H].
looked = {
    "value to its key": weights[:, rows, :, test_places, test_places - 1],
    "question to its answer": weights[:, rows, :, questions, test_places],
}
hops = {name: one.mean(axis=(0, 1)) for name, one in looked.items()}
for name, (first, second) in hops.items():
    print(
        f"from a {name:22} layer 1, heads: {first.round(2)}, "
        f"layer 2, heads: {second.round(2)}"
    )
first_head = int(hops["value to its key"][0].argmax())
second_head = int(hops["question to its answer"][1].argmax())
assert FAST or hops["value to its key"][0].max() > 0.5
assert FAST or hops["question to its answer"][1].max() > 0.5
assert FAST or hops["question to its answer"][0].max() < 0.3


# %% tags=["hide-input"]
def label_of(token):
    """A token as people write it."""
    if token >= FIRST_VALUE:
        return f"v{token - FIRST_VALUE}"
    return f"k{token - FIRST_KEY}" if token >= FIRST_KEY else "START"


# %% tags=["hide-input"]
end = questions[0][2] + 1  # Up to the third question.
with drawing.style():
    figure = drawing.Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots()
    for index, head, above in ((0, first_head, False), (1, second_head, True)):
        of_head = weights[index, 0, head, :end, :end]
        color = drawing.COLORS[index]
        sources = questions[0][:3] if above else test_places[0]
        for t in sources:
            for s in np.flatnonzero(of_head[t] > 0.1):
                middle, radius = (t + s) / 2, abs(t - s) / 2
                angles = np.linspace(0, np.pi, 60)
                height = np.sin(angles) * (1 + 0.12 * radius)
                axes.plot(
                    middle + radius * np.cos(angles),
                    (0.5 if above else -0.5) + (height if above else -height),
                    color=color,
                    linewidth=3 * of_head[t, s],
                )
    for t in range(end):
        axes.text(t, 0, label_of(test_prompts[0, t]), ha="center", va="center",
                  fontsize=8)  # fmt: skip
    axes.text(0, -2.2, "layer 1: a value looks at its key",
              color=drawing.COLORS[0])  # fmt: skip
    axes.text(0, 2.9, "layer 2: a question looks at its answer",
              color=drawing.COLORS[1])  # fmt: skip
    axes.axvline(2 * PAIRS + 0.5, 0.4, 0.6, color="grey")  # The prompt's end.
    axes.set_xlim(-1, end)
    axes.set_axis_off()
    drawing.save(figure, PICTURES / "14_two_hops.png")
figure

# %% [markdown]
# The printed numbers show both hops. In layer 1 one head gives most of a
# value's weight to its key. In layer 2 one head gives most of a question's
# weight to its answer. No head of layer 1 does that: the second hop needs the
# first.
#
# The picture has the first of these texts, up to its third question. The prompt
# ends where a key comes for the second time. The picture shows two heads: in
# each layer, the one that does its hop best. An arc leads from a token back to
# one that it looks at, and is thicker the more it looks. (Weights below 0.1 are
# left out. Only values of the prompt have lower arcs, and only questions have
# upper ones.) Find a question, at the right end of an upper arc. The arc leads
# to a value, and from there a thick lower arc leads to a key. Is it the same
# key?
#
# If you try this yourself, do not ask in the order of the prompt. The answer
# would then always be the same number of tokens back. The positions alone would
# give it away, and no reader would have to look for a key.
#
# ## Pixels are tokens, too
#
# The stack sees ids, and an id may stand for anything. Here are pictures of 8 x
# 8 pixels, handwritten digits that come with scikit-learn. We round them to
# five shades of grey. A picture is then a text of 64 tokens, row by row. Before
# them we write which digit it is, as one of ten further tokens. With
# `max_length` the model learns a vector for each position, and has no
# sinusoids. It learns from 1,500 pictures, and is tested on the others.
#
# For comparison we count, for each digit and each place, how often a pixel has
# each shade. (`np.add.at` counts. Each count begins at 1, so that none is 0.)
# That says all that can be said of each pixel alone. Both losses are means over
# 65 tokens, the digit and its pixels. Nothing tells the digit beforehand. So
# the comparison guesses it blindly, which costs $\log 10$.
#
# The next cell trains it for 24 epochs, one of the 13 trainings that share the
# 7 minutes of the chapter.

# %%
digits = datasets.load_digits()
LEVELS, PIXELS, TRAIN = 5, 64, 1_500
FIRST_DIGIT = END + 1
FIRST_LEVEL = FIRST_DIGIT + 10
levels = np.round(digits.images / 16 * (LEVELS - 1)).astype("int32")
levels = levels.reshape(-1, PIXELS)
picture_texts = np.concatenate(
    [
        np.full((len(levels), 1), START),
        FIRST_DIGIT + digits.target[:, None],
        FIRST_LEVEL + levels,
    ],
    axis=1,
)  # [1797, 66]
inputs, outputs = picture_texts[:, :-1], picture_texts[:, 1:]
painter = ka.models.TransformerLanguageModel(
    FIRST_LEVEL + LEVELS,
    num_layers=2,
    hidden_dim=64,
    intermediate_dim=128,
    num_heads=4,
    max_length=PIXELS + 2,
)
train(painter, inputs[:TRAIN], outputs[:TRAIN], epochs=24)
loss = loss_of(painter, inputs[TRAIN:], outputs[TRAIN:])

# For comparison: the shades that each pixel has in the pictures of a digit.
counts = np.ones((10, PIXELS, LEVELS))
classes, places = digits.target[:, None], np.arange(PIXELS)
np.add.at(counts, (classes[:TRAIN], places, levels[:TRAIN]), 1)
frequency = counts / counts.sum(axis=-1, keepdims=True)
chosen = frequency[classes[TRAIN:], places, levels[TRAIN:]]
independent = (math.log(10) - np.log(chosen).sum(axis=1).mean()) / (PIXELS + 1)
print(f"nats a token: the stack {loss:.3f}, each pixel alone {independent:.3f}")
assert FAST or loss < independent - 0.1

# %% [markdown]
# The stack's loss is lower: it has learned more than where ink is frequent. So
# it can draw. We give it the digit as a *prefix*, with which each text begins,
# and let it go on for 64 tokens. (A token that is no shade would be shown in
# white.)

# %%
result = ka.decoding.sampling_search(
    ka.decoding.without_source(painter.step),
    memory=(),
    state=painter.initial_state(30, PIXELS + 2),
    source_mask=None,
    max_lengths=np.full(30, PIXELS + 2),
    seed=1,
    prefix_ids=FIRST_DIGIT + np.arange(30)[:, None] % 10,
)
painted = result.ids.numpy()[:, 0, 1 : PIXELS + 1] - FIRST_LEVEL
painted = np.clip(painted, 0, LEVELS - 1).reshape(3, 10, 8, 8)

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(7.2, 2.4), layout="constrained")
    for row, panels in enumerate(figure.subplots(3, 10)):
        for digit, axes in enumerate(panels):
            axes.imshow(
                painted[row, digit], cmap="Greys", vmin=0, vmax=LEVELS - 1
            )
            axes.set_axis_off()
    drawing.save(figure, PICTURES / "14_painted.png")
figure

# %% [markdown]
# Each column is a digit, from 0 to 9, drawn three times. Not all are easy to
# read. Look at strokes that go on from one row of pixels to the next. In the
# text, the pixel above is eight tokens back, and attention is the only way
# there.
#
# ## The same stack without its mask
#
# To *recognise* a picture, we need not write it. Take the causal mask away, so
# that each token sees all others. Let the tokens be patches of 2 x 2 pixels: a
# dense layer makes one vector of the four pixels. Put one more token in front,
# a learned vector, the *class token*. Each of the 17 tokens gets the learned
# vector of its position. With $v^n$ for the four pixels of patch $n$, in a row:
#
# $$x = [c;\ v^1 E;\ \dots;\ v^{16} E] + P \qquad
# \mathrm{logits} = \mathrm{LayerNorm}(z_0)\, W + b$$
#
# The semicolons put rows one below the other, $P$ has a row for each position,
# and $z_0$ is the last layer's output at the class token. (The dense layer has
# a bias, too.)

# %% tags=["hide-input", "alone"]
first_four = datasets.load_digits().images[4] / 16
diagrams.picture_patches(first_four, path=PICTURES / "14_patches.png")

# %% [markdown]
# *A picture becomes a sentence of 17 tokens, row by row.* Without positions the
# stack would see a heap of patches.
#
# This is the Vision Transformer (Dosovitskiy et al. 2021). Its layers
# are `SelfAttentionLayer`, too, and each has as many weights as a layer of the
# stack that drew. The next cell checks that.
#
# The pictures are small, and a digit is always in the same place. So a logistic
# regression of the 64 pixels, which has no layer at all, stands beside it. Both
# learn from the same pictures. The stack is trained from three seeds, for 25
# epochs each. These are the last three of the 13 trainings that share the 7
# minutes of the chapter.

# %%
images = digits.images[..., None].astype("float32") / 16
pixels = images.reshape(len(images), -1)
regression = linear_model.LogisticRegression(max_iter=1_000)
regression.fit(pixels[:TRAIN], digits.target[:TRAIN])
of_pixels = regression.score(pixels[TRAIN:], digits.target[TRAIN:])

accuracies = []
for seed in (1,) if FAST else (1, 2, 3):
    keras.utils.set_random_seed(seed)
    vision = ka.models.VisionTransformer.from_size("mini", 10)
    vision.build()
    vision.compile(
        keras.optimizers.Adam(2e-3, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    vision.fit(
        images[:TRAIN],
        digits.target[:TRAIN],
        batch_size=32,
        epochs=1 if FAST else 25,
        verbose=0,
    )
    found = np.argmax(vision.predict(images[TRAIN:], verbose=0), axis=-1)
    accuracies.append(np.mean(found == digits.target[TRAIN:]))
    print(f"seed {seed}: {accuracies[-1]:.1%} of {len(found)} new digits")
assert type(vision.stack[0]) is type(painter.stack[0])
assert vision.stack[0].count_params() == painter.stack[0].count_params()
print(f"the logistic regression: {of_pixels:.1%}")
assert FAST or abs(np.mean(accuracies) - of_pixels) < 0.03

# %% [markdown]
# The two are alike. So the cell shows that the stack *can* recognise pictures,
# and not that these pictures need it. The paper's pictures are photographs, in
# which a thing may be anywhere. It has millions of them.

# %% [markdown]
# ## Memory limits the batch
#
# The price of looking back at everything is that everything has to be kept.
# While it writes, the stack keeps two vectors for each token and layer, the key
# and the value of its attention. With $N$ layers of width $D$ these are $2 N D$
# numbers a token, of 4 bytes each. A recurrent network keeps only its state,
# which does not grow with the text. The table has both, in bytes, for the two
# layers of `mini` and for one GRU. Both are 128 wide.


# %%
def bytes_of(state):
    """What a state takes. A position counts little, and is left out."""
    return sum(
        np.prod(leaf.shape) * 4
        for leaf in keras.tree.flatten(state)
        if "float" in keras.backend.standardize_dtype(leaf.dtype)
    )


stack = ka.models.TransformerLanguageModel.from_size("mini", V)
stack.build()
gru = ka.models.RNNLanguageModel.from_size("mini", V)
print(f"batch tokens {'cache of the stack':>19} {'state of the GRU':>17}")
for batch, length in ((1, 128), (1, 1024), (32, 128), (32, 1024)):
    cache = bytes_of(stack.initial_state(batch, length))
    gru_state = bytes_of(gru.initial_state(batch, length))
    assert cache == batch * length * 2 * 2 * 128 * 4
    assert gru_state == batch * 128 * 4
    print(f"{batch:5} {length:6} {cache:19,} {gru_state:17,}")

# %% [markdown]
# In training there is no cache. But the gradient needs what the forward pass
# has computed: the *activations*. Most of them grow with the length, as the
# cache does. But attention computes a matrix of weights $[T, T]$ for each head
# and layer, and this one grows with the *square* of the length.
#
# We count bytes, and compute nothing: TensorFlow's graph of a forward pass
# knows the shape of every tensor. We count a tensor if its first axis is the
# batch. (The count is generous, as the gradient does not need all of them.) A
# megabyte (MB) is a million bytes.


# %%
def activations(model, batch, length):
    """Bytes of all tensors that a forward pass computes of a batch."""
    forward = tf.function(lambda ids: model(ids, training=True))
    graph = forward.get_concrete_function(
        tf.TensorSpec([batch, length], tf.int32)
    ).graph
    return sum(
        4 * output.shape.num_elements()
        for operation in graph.get_operations()
        for output in operation.outputs
        if output.dtype == tf.float32
        and output.shape.rank
        and output.shape[0] == batch
    )


BATCH = 7  # No other axis has this length.
lengths = [32, 64, 128, 256, 512, 1024, 2048]
counted = [activations(stack, BATCH, length) for length in lengths]
for length, count in zip(lengths, counted, strict=True):
    print(f"{length:5} tokens: {count / BATCH / 1e6:8.1f} MB a text")
# Twice the batch is twice the memory; twice the length is up to four times.
doubled = activations(stack, 2 * BATCH, 32)
assert abs(doubled / counted[0] - 2) < 0.01
growth = [b / a for a, b in zip(counted, counted[1:], strict=False)]
assert growth == sorted(growth) and growth[0] < 2.2 < 3 < growth[-1] < 4

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(5.6, 3.4), layout="constrained")
    axes = figure.subplots()
    curves = {
        "activations, training": [count / BATCH for count in counted],
        "cache, writing": [
            bytes_of(stack.initial_state(1, length)) for length in lengths
        ],
        "state of a GRU, writing": [
            bytes_of(gru.initial_state(1, length)) for length in lengths
        ],
    }
    for (name, curve), look in zip(
        curves.items(), drawing.looks(curves), strict=True
    ):
        axes.plot(lengths, curve, "o-", color=drawing.COLORS[look], label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("tokens")
    axes.set_ylabel("bytes a text")
    axes.legend()
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "14_memory.png")
figure

# %% [markdown]
# Both axes are logarithmic: to the right the length doubles from point to
# point, and upwards each line of the grid is a factor of ten. The state of the
# GRU is level. The cache is a straight line: twice the length, twice the bytes.
# Activations lie above it and get steeper, as the matrices $[T, T]$ take over.
# The last doubling makes them more than three times as large.
#
# A text takes less time in a batch than alone ([chapter 9](09_serving.ipynb)
# measures it). But the whole batch has to fit into memory. By the numbers
# above, 1,000 MB are enough for the activations of about 80 texts of 128
# tokens, but for only 4 texts of 1,024. In this way memory limits the batch,
# and the longer the texts, the more.
#
# ## What readers ask
#
# > **Is a language model an encoder or a decoder?** It has one stack, so the
# > words do not fit. It is called *decoder-only*, as its mask is the decoder's.
# > Without the mask the same stack is called *encoder-only*.
#
# > **Why is the last normalisation needed?** In pre-norm nothing normalises the
# > last sum. It is the sum of all that the layers have written, and larger the
# > more layers there are. Without the normalisation, logits would grow with the
# > depth.
#
# > **Why is there no bias in the last layer, and no matrix?** The matrix is
# > there: it is the table of embeddings. What a bias would say, how frequent a
# > word is, the stack can write into the stream itself.
#
# > **Does the class token see the picture?** At first it is the same for each
# > picture. In each layer it asks all patches, and adds what it finds.
#
# ## What to take away
#
# - A decoder without a source is a language model. On a language whose limit we
#   know, its perplexity comes within a few percent of the limit.
# - Language models differ in what they keep of the words so far: a state, all
#   states, or keys and values. Five of about one size all come far closer to
#   the limit than a model that sees no word.
# - What is true in one text alone has to be read there. Here that takes two
#   hops, and so two layers: in the first a value looks at its key, in the
#   second a question finds the value.
# - A token may be a word or a pixel. Without the causal mask the same layer
#   recognises pictures.
# - Everything that is looked back at has to be kept. The cache grows with the
#   length, and the activations of training grow faster.
#
# ## Your turn
#
# Write where an induction head looks. It looks at each word that came right
# after an earlier occurrence of the present word. If there are several, they
# share the weight. If there are none, all weights are 0. The present word
# itself is such a word if it repeats the word before it.

# %% tags=["alone"]
import your_turn


def induction_weights(tokens):
    """tokens [T] -> weights [T, T]: a row asks, a column is asked."""
    may_look_at = np.tri(len(tokens), dtype=bool)
    may_look_at[:, 0] = False  # No word comes before the first one.
    before = np.roll(tokens, 1)  # The word before each word.
    ...


your_turn.check(14, induction_weights)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def induction_weights(tokens):
#     may_look_at = np.tri(len(tokens), dtype=bool)
#     may_look_at[:, 0] = False  # No word comes before the first one.
#     before = np.roll(tokens, 1)  # The word before each word.
#     is_found = may_look_at & (tokens[:, None] == before[None, :])
#     return is_found / np.maximum(1, is_found.sum(axis=1, keepdims=True))
#
#
# your_turn.check(14, induction_weights)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: A model gives the two tokens of a text the probabilities $\frac12$ and
#   $\frac18$. What is its perplexity?
# - b: A text of 3 tokens and 9 characters has a perplexity of 8. How many bits
#   does a character cost?
# - c: A stack has 12 layers of width 768. How many numbers are in its cache
#   after 100 tokens?

# %% tags=["alone"]
your_turn.quiz(14, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: The perplexity is $(\frac12 \cdot \frac18)^{-1/2}$.
# - b: A token costs $\log_2 8 = 3$ bits.
# - c: Each layer keeps a key and a value of each token.
#
# ```python
# your_turn.quiz(14, a=16**0.5, b=3 * 3 / 9, c=2 * 12 * 100 * 768)
# ```
#
# </details>
#
# ## Exercises
#
# 1. How many texts of 1,024 tokens can GPT-2 (Radford et al. 2019; 12 layers,
#    768 wide) write side by side before their caches take more memory than its
#    124,439,808 weights? All numbers have 4 bytes.
#
# <details><summary>Solution</summary>
#
# Six. The cache of one text takes $2 \cdot 12 \cdot 1024 \cdot 768 \cdot 4$ =
# 75,497,472 bytes, and the weights take 497,759,232. Six caches take less than
# the weights, and seven take more.
#
# ```python
# cache = 2 * 12 * 1024 * 768 * 4
# weights_of_gpt2 = 124_439_808 * 4
# assert 6 * cache < weights_of_gpt2 < 7 * cache
# ```
#
# </details>
#
# 2. The painter knows $p(\text{picture} \mid \text{digit})$. By Bayes's rule
#    it can therefore also recognise digits, though nobody has trained it to.
#    How well?
#
# <details><summary>Solution</summary>
#
# Try every digit in front of a picture. The one that makes the picture most
# probable is the answer, as all digits are about equally frequent. Of 100 test
# pictures it recognises more than 70.
#
# ```python
# some = picture_texts[TRAIN : TRAIN + 100]
# log_probabilities = []
# for digit in range(10):
#     claimed = some.copy()
#     claimed[:, 1] = FIRST_DIGIT + digit
#     log_probs = np.array(ops.log_softmax(painter(claimed[:, :-1])))
#     chosen = np.take_along_axis(log_probs, claimed[:, 1:, None], axis=-1)
#     log_probabilities.append(chosen[:, 1:, 0].sum(axis=1))
# recognised = np.argmax(log_probabilities, axis=0)
# share = np.mean(recognised == digits.target[TRAIN : TRAIN + 100])
# print(f"{share:.0%} of {len(some)} are recognised")
# assert FAST or share > 0.7
# ```
#
# </details>
#
# 3. Cut the second hop: take the induction head out of layer 2, as chapter 5
#    took heads out, and measure recall. Then take out the other head of layer 2
#    instead. Which of them does the model need?
#
# <details><summary>Solution</summary>
#
# It needs the induction head more than the other. A head is 32 wide here, and
# reaches the output only through its own 32 rows of `output_kernel`.
#
# ```python
# attention = readers["two layers"].stack[1].self_attention
# kept = attention.output_kernel.numpy()
# without = []
# for head in (second_head, 1 - second_head):
#     cut = kept.copy()
#     cut[head * 32 : (head + 1) * 32] = 0
#     attention.output_kernel.assign(cut)
#     without.append(recall(readers["two layers"]))
# attention.output_kernel.assign(kept)
# print(f"without the induction head: {without[0]:.2f}")
# print(f"without the other head: {without[1]:.2f}")
# assert FAST or without[0] < recalled["two layers"]
# assert FAST or without[0] < without[1]
# ```
#
# </details>
#
# Next: one look answers one question, and some questions need two.
# [Chapter 15](15_asking_twice.ipynb) asks twice.
#
# ## References
#
# - Srivastava et al. 2015, Highway Networks,
#   [arXiv:1505.00387](https://arxiv.org/abs/1505.00387)
# - Hendrycks and Gimpel 2016, Gaussian Error Linear Units,
#   [arXiv:1606.08415](https://arxiv.org/abs/1606.08415)
# - Mikolov et al. 2010, [Recurrent Neural Network Based Language
#   Model](https://doi.org/10.21437/Interspeech.2010-343)
# - Sak et al. 2014, Long Short-Term Memory Based Recurrent Neural Network
#   Architectures for Large Vocabulary Speech Recognition,
#   [arXiv:1402.1128](https://arxiv.org/abs/1402.1128)
# - Zaremba et al. 2014, Recurrent Neural Network Regularization,
#   [arXiv:1409.2329](https://arxiv.org/abs/1409.2329)
# - Cheng et al. 2016, Long Short-Term Memory-Networks for Machine Reading,
#   [arXiv:1601.06733](https://arxiv.org/abs/1601.06733)
# - Kim et al. 2016, Character-Aware Neural Language Models,
#   [arXiv:1508.06615](https://arxiv.org/abs/1508.06615)
# - Jozefowicz et al. 2016, Exploring the Limits of Language Modeling,
#   [arXiv:1602.02410](https://arxiv.org/abs/1602.02410)
# - Radford et al. 2018, [Improving Language Understanding by Generative
#   Pre-Training](https://openai.com/index/language-unsupervised/)
# - Radford et al. 2019, [Language Models are Unsupervised Multitask
#   Learners](https://openai.com/index/better-language-models/)
# - Elhage et al. 2021, [A Mathematical Framework for Transformer
#   Circuits](https://transformer-circuits.pub/2021/framework/index.html)
# - Olsson et al. 2022, In-context Learning and Induction Heads,
#   [arXiv:2209.11895](https://arxiv.org/abs/2209.11895)
# - Dosovitskiy et al. 2021, An Image is Worth 16x16 Words: Transformers for
#   Image Recognition at Scale,
#   [arXiv:2010.11929](https://arxiv.org/abs/2010.11929)
