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
# # 1. Recurrence
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/01_recurrence.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# How can a network read a sequence of any length? A dense layer takes a vector
# of one fixed size, but a sentence has as many words as it likes. This chapter
# starts from a network that sees a window of a few words, and measures what it
# misses. Then it replaces the window by a *state* that is carried from word to
# word. That is the recurrent network. Then it measures why such a network is
# hard to train, and how the gates of the LSTM and of the GRU help.
#
# Why begin here, when the subject is attention? Attention was invented to mend
# recurrent networks: it lets a network look back at *all* of its states, not
# only at the last one. To see what that is good for, one has to know what a
# state is, how far back it reaches, and how little it holds.
#
# Takes about 2 minutes on two cores. At the end it prints a table: which
# recurrent networks learn to recall the first token of a sequence, and how long
# may the sequence be? It also prints how many words a state can hold. Pictures
# are shown here and kept in the folder `pictures`. Comments give shapes: `[B,
# T, D]` is a batch of B rows, T steps and D features; V is the size of the
# vocabulary.
#
# For other tellings see Andrej Karpathy's [Unreasonable Effectiveness of
# Recurrent Neural
# Networks](https://karpathy.github.io/2015/05/21/rnn-effectiveness/) (what they
# can write), Christopher Olah's [Understanding
# LSTMs](https://colah.github.io/posts/2015-08-Understanding-LSTMs/) (the gates,
# in pictures) and [Dive into Deep
# Learning](https://d2l.ai/chapter_recurrent-neural-networks/) (from scratch).

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import os
import pathlib

import keras
import numpy as np
import tensorflow as tf

import keras_attention as ka
from keras_attention.plotting import drawing

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)

# %% [markdown]
# This is where the chapter leads: one network that reads one word after the
# other and keeps what matters in a state $h$. Left, as it is built; right, as
# it runs.

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.unrolled_rnn(path=PICTURES / "01_unrolled_rnn.png")

# %% [markdown]
# ## A text whose floor is known
#
# A language model predicts the next word from the words before it. Its loss
# is the mean of $-\log q(\text{word})$, in nats per word (the natural
# logarithm), where $q$ is the probability that it gave to the word that came.
# For a real text nobody knows how low this loss can go. So we write a language
# of our own, a *source* of texts in the sense of Shannon (1948). It has states
# (not yet those of a network), and words that lead from one to the next.
#
# ```
#            cat               really, again and again
#   begin --------> singular ---------------------------> singular
#            cats              really, again and again
#   begin --------> plural   ---------------------------> plural
#
#            purrs, sleeps
#   singular --------------> begin
#            purr, sleep
#   plural   --------------> begin
# ```
#
# The verb must agree with the noun, and there may be any number of "really"
# between them: "cats really really really sleep". This is what makes language
# hard for a window.

# %%
REALLY = 0.75  # the probability of one more "really"
VERB = 1 - REALLY
# For each state: (probability, word, next state).
SOURCE = {
    "begin": [(0.5, "cat", "singular"), (0.5, "cats", "plural")],
    "singular": [
        (REALLY, "really", "singular"),
        (0.6 * VERB, "purrs", "begin"),
        (0.4 * VERB, "sleeps", "begin"),
    ],
    "plural": [
        (REALLY, "really", "plural"),
        (0.6 * VERB, "purr", "begin"),
        (0.4 * VERB, "sleep", "begin"),
    ],
}
STATES = list(SOURCE)
WORDS = ["cat", "cats", "really", "purrs", "sleeps", "purr", "sleep"]
# First the control tokens (padding, unknown, start, end: chapter 2).
VOCABULARY = [*ka.tokens.CONTROL_TEXTS, *WORDS]

# p(word | state), [3, V], and the state that the word leads to.
word_given_state = np.zeros((len(STATES), len(VOCABULARY)))
next_state = np.zeros((len(STATES), len(VOCABULARY)), dtype="int32")
for state, edges in SOURCE.items():
    for probability, word, following in edges:
        edge = STATES.index(state), VOCABULARY.index(word)
        word_given_state[edge] = probability
        next_state[edge] = STATES.index(following)
assert np.allclose(word_given_state.sum(axis=-1), 1)

# %% [markdown]
# How well can a model do at best? Even someone who knows the state does not
# know the next word. The mean cost of that uncertainty is the *entropy* of the
# state $i$, $H_i = -\sum_w p(w \mid i) \log p(w \mid i)$. No prediction $q$ has
# a lower expected loss: $-\sum_w p(w) \log q(w) \ge -\sum_w p(w) \log p(w)$
# (Gibbs's inequality).
#
# A sentence has one noun, which is read in the state "begin", and then words up
# to the verb, all read in "singular" or "plural". A verb comes with the
# probability $v = 1/4$ each time, so these words are $1/v = 4$ on average. Of
# five words one is read in "begin" and four in the others. The mean of their
# entropies (the *entropy rate*, Shannon 1948) is the floor: the lowest loss
# that any model can reach.


# %%
def entropy(p):
    p = p[p > 0]
    return -np.sum(p * np.log(p))


entropy_of_state = np.array([entropy(row) for row in word_given_state])
# How often each state occurs: once, and 1 / VERB times one of the others.
share_of_state = np.array([1, 0.5 / VERB, 0.5 / VERB]) / (1 + 1 / VERB)
FLOOR = share_of_state @ entropy_of_state

for state, share in zip(STATES, share_of_state, strict=True):
    print(f"share of words read in {state:8}: {share:.2f}")
print(f"the floor: {FLOOR:.4f} nats per word")
assert np.allclose(share_of_state, [0.2, 0.4, 0.4])

# %% [markdown]
# ## What a window cannot see
#
# Suppose that a model sees only the last $w$ words, and predicts as well as
# they allow. It fails only where all of its words are "really", so that it has
# not seen the noun. Then singular and plural are equally likely, and if a verb
# is next, it costs $\log 2$ more than necessary:
#
# $$\text{loss}(w) - H = \underbrace{\tfrac{1}{1 + v}}_{\text{after a noun}}
# \; \underbrace{r^w}_{\text{only "really"}} \;
# \underbrace{v}_{\text{a verb is next}} \log 2 \qquad (w \ge 1),$$
#
# where $H$ is the floor, $r = 0.75$ the probability of "really" and $v = 1 - r$
# that of a verb. Each further word takes away a quarter of what is left, and
# the loss never comes down to the floor.


# %%
def window_excess(num_words):
    """How far above the floor a window of so many words must stay."""
    return REALLY**num_words * VERB * np.log(2) / (1 + VERB)


print("words seen   least loss above the floor")
for num_words in range(1, 9):
    print(f"{num_words:10} {window_excess(num_words):12.4f}")

# %% [markdown]
# Is the formula true? The next cell lists all windows with their probabilities
# and computes the loss from them. You may skip it.


# %% tags=["hide-input"]
def window_loss(num_words):
    """The least expected loss of a model that sees `num_words` words."""
    windows = {(): share_of_state}  # p(window, state), [3]
    for _ in range(num_words):
        longer = {}
        for window, joint in windows.items():
            for (state, word), p in np.ndenumerate(word_given_state):
                if joint[state] * p > 0:
                    after = longer.setdefault((*window, word), np.zeros(3))
                    after[next_state[state, word]] += joint[state] * p
        windows = longer
    loss = 0.0
    for joint in windows.values():
        p = joint @ word_given_state  # p(window, next word), [V]
        # H(window, next word) - H(window) = H(next word | window), of which
        # this is the part of one window; p.sum() is p(window).
        loss += entropy(p) - entropy(p.sum(keepdims=True))
    return loss


for num_words in range(1, 9):
    exact = window_loss(num_words) - FLOOR
    assert abs(window_excess(num_words) - exact) < 1e-12
print(f"with no word seen: {window_loss(0) - FLOOR:.4f} above the floor")

# %% [markdown]
# ## A feed-forward network with a window
#
# Does a network get down to these numbers? We draw texts from the source. A
# text begins anywhere, perhaps in the middle of a sentence. So that a model has
# time to find out where it is, the first 32 words are read but not predicted.
# (What a model misses that began to read 32 words ago is `window_excess(32)`,
# next to nothing.)


# %%
def sample_texts(num_texts, length, rng):
    """Word ids, and the state before each word: both int [B, T]."""
    state = rng.choice(len(STATES), size=num_texts, p=share_of_state)
    ids, states = [], []
    for _ in range(length):
        # Draws by the inverse of the distribution function.
        below = np.cumsum(word_given_state[state], axis=-1)
        word = (rng.random((num_texts, 1)) > below).sum(axis=-1)
        ids.append(word)
        states.append(state)
        state = next_state[state, word]
    return np.stack(ids, axis=1).astype("int32"), np.stack(states, axis=1)


CONTEXT, SCORED = 32, 64
assert window_excess(CONTEXT) < 2e-5


def examples(num_texts, rng):
    """Inputs [B, 96], labels [B, 64], the states before the labels."""
    ids, states = sample_texts(num_texts, CONTEXT + SCORED + 1, rng)
    return ids[:, :-1], ids[:, CONTEXT + 1 :], states[:, CONTEXT + 1 :]


rng = np.random.default_rng(1)
inputs, labels, _ = examples(64 if FAST else 4096, rng)
new_inputs, _, new_states = examples(64 if FAST else 1024, rng)
print(" ".join(VOCABULARY[index] for index in inputs[0, :16]))

# %% [markdown]
# The network of Bengio et al. (2003) looks up an *embedding* for each of the
# last $w$ words (a trained vector for each word, a row of a table), puts these
# vectors end to end, and applies a dense layer with tanh, then one with
# softmax. (The softmax turns the numbers $a_k$ of a layer, called *logits*,
# into probabilities: $e^{a_k} / \sum_j e^{a_j}$.) To apply it at every position
# of a text at once, we need not cut out windows: a *convolution* over $w$ words
# is the same dense layer at every position. (`padding="causal"` puts $w - 1$
# vectors of zeros before the first word.)

# %%
width, units = 4, 5
embedded = np.random.default_rng(2).normal(size=(1, 10, 3)).astype("float32")
convolution = keras.layers.Conv1D(
    units, width, padding="causal", activation="tanh"
)
outputs = convolution(embedded)  # [1, 10, 5]
kernel, bias = convolution.get_weights()  # [4, 3, 5], [5]
window = embedded[0, 9 - width + 1 : 9 + 1]  # the last four vectors, [4, 3]
dense = np.tanh(window.reshape(-1) @ kernel.reshape(-1, units) + bias)
np.testing.assert_allclose(outputs[0, 9], dense, atol=1e-6)

# %% [markdown]
# The model has three parts: embeddings, a *reader*, and a dense layer that
# predicts. The reader is the layer in the middle, the part that changes in this
# chapter. It takes the embeddings and gives, at each position, a vector that
# may depend on the words up to that point.


# %%
def language_model(reader):
    """Word ids [B, 96] to logits of the next word, [B, 64, V]."""
    return keras.Sequential(
        [
            keras.layers.Embedding(len(VOCABULARY), 16),
            reader,
            keras.layers.Cropping1D((CONTEXT, 0)),
            keras.layers.Dense(len(VOCABULARY)),
        ]
    )


def train(model, epochs=8):
    steps = epochs * len(inputs) // 32
    schedule = keras.optimizers.schedules.CosineDecay(0.01, steps)
    model.compile(
        keras.optimizers.Adam(schedule, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(
        inputs,
        labels,
        batch_size=32,
        epochs=1 if FAST else epochs,
        verbose=2,
    )


def excess(model):
    """Mean expected loss on new texts, minus the loss that no model beats."""
    logits = model.predict(new_inputs, verbose=0)
    log_q = np.asarray(keras.ops.log_softmax(logits))
    p = word_given_state[new_states]  # [B, 64, V]
    expected_loss = -np.sum(p * log_q, axis=-1)
    return np.mean(expected_loss - entropy_of_state[new_states])


# %% [markdown]
# `excess` uses the fact that we know the source: in place of the one word that
# came next, it takes the mean over all words that could have come. That removes
# most of the luck. By Gibbs's inequality the result cannot be negative.

# %%
excess_of_window, weights_of_window = {}, {}
for num_words in (1, 2, 4, 8):
    reader = keras.layers.Conv1D(
        64, num_words, padding="causal", activation="tanh"
    )
    model = language_model(reader)
    train(model)
    excess_of_window[num_words] = excess(model)
    weights_of_window[num_words] = model.count_params()
    if num_words == 4:
        model_of_four = model

print("words seen   trained   least possible   (above the floor)")
for num_words, measured in excess_of_window.items():
    exact = window_excess(num_words)
    print(f"{num_words:10} {measured:9.4f} {exact:12.4f}")
    assert measured > 0
    if not FAST:
        assert abs(measured - exact) < 0.004

# %% [markdown]
# Each network learned what its window holds and nothing more. A wider
# window helps, but it costs a new block of weights for each further word, and
# for every width there are sentences that do not fit.
#
# ## A network with a state
#
# The way out is to read as we do: one word after the other, keeping in mind
# what matters. Let $h_t$ be a vector, the *state*, after $t$ words, and $x_t$
# the embedding of word $t$. The next state is computed from the previous state
# and the new word, always with the same weights (Elman 1990):
#
# $$h_t = \tanh(x_t W + h_{t-1} U + b), \qquad h_0 = 0.$$
#
# $W$ is called the kernel, $U$ the recurrent kernel, $b$ the bias. (Vectors
# are rows here, as in Keras; papers mostly write $W x_t$.)


# %%
def simple_rnn(x, w, u, b):
    """The states after each of T vectors: [T, D] -> [T, units]."""
    h = np.zeros(len(u))
    states = []
    for x_t in x:
        h = np.tanh(x_t @ w + h @ u + b)
        states.append(h)
    return np.stack(states)


layer = keras.layers.SimpleRNN(
    8, return_sequences=True, bias_initializer="random_normal"
)
for length in (1, 6, 200):
    x = np.random.default_rng(3).normal(size=(length, 3)).astype("float32")
    from_keras = layer(x[None])[0]
    ours = simple_rnn(x, *layer.get_weights())
    np.testing.assert_allclose(ours, from_keras, atol=1e-6)
print("parameters, for a sequence of any length:", layer.count_params())
assert layer.count_params() == 3 * 8 + 8 * 8 + 8

# %% [markdown]
# One loop, 96 weights and biases, and it reads 1, 6 or 200 vectors.
#
# ### It is a deep network with shared weights
#
# In the picture at the top of the chapter this is the right half: the loop,
# *unrolled*. Follow the loop for six steps and write down what is computed: a
# feed-forward network with six layers. Each layer gets the output of the layer
# below and, which is unusual, one more piece of the input. Let us build this
# network, from six ordinary dense layers.

# %%
LENGTH, DIM, UNITS = 6, 3, 8
steps = keras.Input((LENGTH, DIM))
h = first_state = keras.Input((UNITS,))
dense_layers = []
for t in range(LENGTH):
    dense_layers.append(keras.layers.Dense(UNITS, activation="tanh"))
    x_t = steps[:, t]
    h = dense_layers[-1](keras.layers.concatenate([x_t, h]))
deep = keras.Model([steps, first_state], h)

rnn = keras.layers.SimpleRNN(UNITS)
rnn.build((None, LENGTH, DIM))
w, u, b = rnn.get_weights()
for dense_layer in dense_layers:
    # [x, h] times W above U is x W + h U.
    dense_layer.set_weights([np.concatenate([w, u]), b])

x = np.random.default_rng(4).normal(size=(2, LENGTH, DIM)).astype("float32")
zeros = np.zeros((2, UNITS), "float32")
np.testing.assert_allclose(deep([x, zeros]), rnn(x), atol=1e-6)

# %% [markdown]
# The same function. Training differs in one point: in `deep` each layer
# has its own gradient; in the RNN the six copies are one matrix, and its
# gradient is the sum of the six. This is all that *backpropagation through
# time* means.

# %%
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(deep([x, zeros]) ** 2)
gradients = tape.gradient(loss, [layer.kernel for layer in dense_layers])
sum_over_layers = np.sum(gradients, axis=0)  # [DIM + UNITS, UNITS]

with tf.GradientTape() as tape:
    loss = tf.reduce_sum(rnn(x) ** 2)
weights = [rnn.cell.kernel, rnn.cell.recurrent_kernel]
through_time = np.concatenate(tape.gradient(loss, weights))
np.testing.assert_allclose(through_time, sum_over_layers, atol=1e-5)

# %% [markdown]
# ### Down to the floor
#
# Now the RNN reads our texts. It has to find out by itself that its state
# should remember whether the noun was singular or plural. `excess` says how far
# above the floor it ends up: 0 is perfect.

# %%
rnn_model = language_model(keras.layers.SimpleRNN(32, return_sequences=True))
train(rnn_model)
rnn_excess = excess(rnn_model)
print(f"above the floor: {rnn_excess:.5f} nats")
print(f"weights: {rnn_model.count_params()}, window: {weights_of_window}")
assert rnn_excess > 0
assert rnn_model.count_params() < weights_of_window[2]
if not FAST:
    assert rnn_excess < window_excess(15)


# %% tags=["hide-input"]
def picture(name, lines, x_label, y_label, limits=None):
    """Draws lines (label, x, y, colour, style) on a logarithmic scale."""
    with drawing.style():
        figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        for label, x, y, color, style in lines:
            axes.plot(x, y, style, color=drawing.COLORS[color], label=label)
        axes.set_yscale("log")
        axes.set_ylim(limits)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        drawing.finish(axes)
        drawing.save(figure, PICTURES / name)
    return figure


seen, trained = np.arange(1, 19), list(excess_of_window.items())
picture(
    "01_window_and_state.png",
    [
        ("window, exactly", seen, window_excess(seen), 0, "-"),
        ("window, trained", *zip(*trained, strict=True), 1, "s"),
        ("RNN, trained", seen, np.full(18, rnn_excess), 2, "--"),
    ],
    "words in the window",
    "nats above the floor",
)

# %% [markdown]
# The scale is logarithmic. The windows go down a straight line, a factor of
# 0.75 for each word, and every trained window lies on it or just above. The RNN
# is far below all the windows that we trained, with fewer weights than the
# network that sees two words. Even with perfect training, a window would need
# more than 15 words to get as low.
#
# The loss says that the RNN keeps in mind which noun it was. We can also
# ask it: after "cat" and $n$ times "really", what share of the probability of a
# verb goes to the verbs that agree?


# %%
def agreement(model, most=100):
    """p(the verb agrees), after a noun and 0 ... `most` times "really"."""
    # "cat purrs" fills the 32 words that are not scored.
    rows = [
        ["cat", "purrs"] * (CONTEXT // 2) + [noun] + ["really"] * most
        for noun in ("cat", "cats")
    ]
    ids = np.array([[VOCABULARY.index(word) for word in row] for row in rows])
    p = np.asarray(keras.ops.softmax(model.predict(ids, verbose=0)))
    columns = [VOCABULARY.index(word) for word in WORDS[3:]]
    p = p[..., columns] / p[..., columns].sum(axis=-1, keepdims=True)
    return (p[0, :, :2].sum(axis=-1) + p[1, :, 2:].sum(axis=-1)) / 2


agreement_of_four, agreement_of_rnn = map(agreement, (model_of_four, rnn_model))
for times in (0, 3, 4, 20, 100):
    print(
        f"{times:3} times really: window of four {agreement_of_four[times]:.2f}"
        f", RNN {agreement_of_rnn[times]:.2f}"
    )
if not FAST:
    # The noun is in the window, or it is not.
    assert agreement_of_four[:4].min() > 0.95
    assert np.abs(agreement_of_four[4:] - 0.5).max() < 0.1
    assert agreement_of_rnn[:21].min() > 0.95

# %% [markdown]
# With three times "really" the noun is still among the last four words; with
# four it is not, and the network can only guess. The RNN has no such
# boundary.
#
# ## Why the gradient vanishes, or explodes
#
# The language above was kind: most sentences are short. A network that first
# learns to remember the noun over one "really" is on its way to
# remembering it over twenty. What if there is nothing to learn on the way, and
# a word matters only long after it was read?
#
# Training then depends on the gradient: by how much does the state at the end
# change if the first state is changed a little? This is the Jacobian matrix
# $\partial h_T / \partial h_0$. From the equation of the RNN and the chain
# rule, with $\tanh' = 1 - \tanh^2$,
#
# $$\frac{\partial h_T}{\partial h_0} = J_T \cdots J_2 J_1, \qquad
# J_t = \frac{\partial h_t}{\partial h_{t-1}} =
# \operatorname{diag}(1 - h_t^2) \, U^\top .$$
#
# Entry $(i, j)$ of $J_t$ is the derivative of component $i$ of $h_t$ with
# respect to component $j$ of $h_{t-1}$, that is $(1 - h_{t,i}^2)\, U_{ji}$:
# hence the transpose.
#
# A product of $T$ matrices behaves like a power. The norm of a matrix
# (the largest singular value: by how much it can stretch a vector) is at most
# 1 for the diagonal matrix, and the norm of a product is at most the product of
# the norms. Hence (Hochreiter 1991; Bengio et al. 1994; Pascanu et al. 2013)
#
# $$\left\| \frac{\partial h_T}{\partial h_0} \right\| \le \| U \|^T .$$
#
# With $\|U\| < 1$ the gradient must vanish, exponentially in $T$. For it to
# explode, $\|U\| > 1$ is needed.
#
# The Jacobian of any recurrent layer can be computed in one backward pass. Rows
# of a batch do not depend on each other. So we put the same sequence into as
# many rows as the state has components, and ask row $i$ for the gradient of
# component $i$ only: row $i$ of the batch gives row $i$ of the matrix.


# %%
def jacobian(layer, x):
    """d state_T / d state_0, [D, D]; of an LSTM the state is [h, c]."""
    sizes = np.atleast_1d(layer.state_size)
    first = tf.zeros((sizes.sum(), sizes.sum()))  # state_0 in D equal rows
    batch = tf.repeat(x[None], len(first), axis=0)
    with tf.GradientTape() as tape:
        tape.watch(first)
        state = tf.split(first, sizes, axis=-1)
        _, *last = layer(batch, initial_state=state)
        # Component i of row i, summed over i.
        total = tf.linalg.trace(tf.concat(last, axis=-1))
    return tape.gradient(total, first).numpy()


def norm(matrix):
    return np.linalg.norm(matrix, ord=2)


def orthogonal_rnn(gain):
    """Recurrent kernel: `gain` times an orthogonal matrix, of norm 1."""
    initializer = keras.initializers.Orthogonal(gain, seed=1)
    return keras.layers.SimpleRNN(
        64, recurrent_initializer=initializer, return_state=True
    )


x = np.random.default_rng(5).normal(size=(100, 16)).astype("float32")
layer = orthogonal_rnn(1.0)
measured = jacobian(layer, x[:10])
w, u, b = layer.get_weights()
by_hand = np.eye(64)
for h in simple_rnn(x[:10], w, u, b):
    by_hand = np.diag(1 - h**2) @ u.T @ by_hand
np.testing.assert_allclose(measured, by_hand, atol=1e-5)

# %% [markdown]
# The two ways agree. Now the norm over $T$, for three recurrent kernels that
# are multiples of an orthogonal matrix, so that $\|U\|$ is 0.9, 1 (Keras's
# default) and 2. The inputs `x` are random, with components of size 1.

# %%
TIMES = (1, 10, 20) if FAST else (1, 5, 10, 20, 40, 70, 100)


def norms_over_time(layer):
    return np.array([norm(jacobian(layer, x[:length])) for length in TIMES])


rnn_norms = {}
for gain in (0.9, 1.0, 2.0):
    layer = orthogonal_rnn(gain)
    rnn_norms[gain] = norms_over_time(layer)
    assert abs(norm(layer.get_weights()[1]) - gain) < 1e-5
    bound = gain ** np.array(TIMES)
    assert np.all(rnn_norms[gain] <= bound * 1.001)
    print(f"|U| = {gain}: after {TIMES[-1]} steps {rnn_norms[gain][-1]:.1e}")
if not FAST:
    assert rnn_norms[0.9][-1] < 1e-12 and rnn_norms[1.0][-1] < 1e-10
    assert rnn_norms[2.0][-1] > 100

# %% tags=["hide-input"]
lines = [("bounds", [], [], 6, "--")]
for index, (gain, norms) in enumerate(rnn_norms.items()):
    bound = gain ** np.array(TIMES)
    lines.append((f"|U| = {gain:g}", TIMES, norms, index, "os^"[index] + "-"))
    lines.append((None, TIMES, bound, index, "--"))
AXES = "steps T", "norm of the Jacobian"
picture("01_jacobian_of_rnn.png", lines, *AXES, limits=(1e-18, 1e9))

# %% [markdown]
# At 0.9 and 1 the lines are straight on a logarithmic scale: each step costs
# a factor. Even at $\|U\| = 1$, where the bound forbids nothing, the gradient
# vanishes, since $\tanh'$ is below 1 wherever the state is not 0. At 2 it
# explodes, but its line bends away from the bound, because large states
# saturate the tanh.
# No $\|U\|$ in between is right for all inputs: the smaller the inputs are,
# the closer $\tanh'$ is to 1 (exercise 3).
#
# Exploding gradients can be cut off: where the norm of the gradient, of all
# weights together, exceeds a limit, scale it down to the limit (Pascanu et al.
# 2013, algorithm 1). This is `global_clipnorm` in `train` above. There is no
# such remedy for vanishing ones. The gradient of a weight is a sum over all
# steps, and in this sum what comes from far away is drowned out by what is
# near.
#
# ## The LSTM: a state that is added to
#
# The RNN writes its whole state anew at each step, through a matrix and a
# tanh. The *long short-term memory* (Hochreiter and Schmidhuber 1997; with
# the forget gate of Gers et al. 2000) keeps a second vector, the *cell state*
# $c_t$, that no matrix touches on its way:
#
# $$\begin{aligned}
# i_t &= \sigma(x_t W_i + h_{t-1} U_i + b_i) && \text{what to write} \\
# f_t &= \sigma(x_t W_f + h_{t-1} U_f + b_f) && \text{what to keep} \\
# g_t &= \tanh(x_t W_g + h_{t-1} U_g + b_g) && \text{the candidate} \\
# o_t &= \sigma(x_t W_o + h_{t-1} U_o + b_o) && \text{what to show} \\
# c_t &= f_t \odot c_{t-1} + i_t \odot g_t \\
# h_t &= o_t \odot \tanh(c_t)
# \end{aligned}$$
#
# $\sigma(a) = 1 / (1 + e^{-a})$ lies between 0 and 1 and $\odot$ multiplies
# component by component: $i$, $f$ and $o$ are *gates*, a valve for each
# component, and the network itself sets them at each step. Here and in the GRU
# below all states begin at 0, too.
#
# In Keras such a set of equations is a *cell*: a layer that makes one step. Its
# `call` takes the inputs of one step and the states, and returns the output and
# the new states; `keras.layers.RNN` runs it over a sequence. This is a whole
# LSTM, with the four kernels side by side in one matrix (in Keras's order).


# %%
class LSTMCell(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.state_size = [units, units]  # `keras.layers.RNN` asks for it.

    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1], 4 * self.units))
        self.recurrent_kernel = self.add_weight((self.units, 4 * self.units))
        self.bias = self.add_weight((4 * self.units,))

    def call(self, inputs, states):
        h, c = states
        sums = inputs @ self.kernel + h @ self.recurrent_kernel + self.bias
        i, f, g, o = keras.ops.split(sums, 4, axis=-1)
        i, f, o = map(keras.ops.sigmoid, (i, f, o))
        c = f * c + i * keras.ops.tanh(g)
        h = o * keras.ops.tanh(c)
        return h, [h, c]


def random_weights(layer, x):
    """Builds the layer and draws all its weights, biases too."""
    layer(x)
    rng = np.random.default_rng(6)
    layer.set_weights([rng.normal(0, 0.4, w.shape) for w in layer.weights])
    return layer.get_weights()


vectors = np.random.default_rng(7).normal(size=(2, 12, 3)).astype("float32")
ours = keras.layers.RNN(LSTMCell(8), return_sequences=True)
from_keras = keras.layers.LSTM(8, return_sequences=True)
from_keras(vectors)
from_keras.set_weights(random_weights(ours, vectors))
np.testing.assert_allclose(ours(vectors), from_keras(vectors), atol=1e-5)

# %% [markdown]
# ## The GRU: the same idea with one state
#
# The *gated recurrent unit* (Cho et al. 2014, equations 5 to 8) has two gates
# and no second vector. Its new state is a weighted average of the old one and a
# candidate:
#
# $$\begin{aligned}
# r_t &= \sigma(x_t W_r + h_{t-1} U_r + b_r)
#   && \text{how much of the past to look at} \\
# z_t &= \sigma(x_t W_z + h_{t-1} U_z + b_z)
#   && \text{how much of the past to keep} \\
# \tilde h_t &= \tanh(x_t W + (r_t \odot h_{t-1}) U + b)
#   && \text{the candidate} \\
# h_t &= z_t \odot h_{t-1} + (1 - z_t) \odot \tilde h_t
# \end{aligned}$$
#
# (The paper leaves out the biases. Some papers swap $z$ and $1 - z$.)


# %%
class GRUCell(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.state_size = units

    def build(self, input_shape):
        self.kernel = self.add_weight((input_shape[-1], 3 * self.units))
        self.recurrent_kernel = self.add_weight((self.units, 3 * self.units))
        self.bias = self.add_weight((3 * self.units,))

    def call(self, inputs, states):
        (h,) = states
        to_gates = [2 * self.units]  # z and r first, then the candidate
        u_gates, u = keras.ops.split(self.recurrent_kernel, to_gates, axis=-1)
        projected = inputs @ self.kernel + self.bias
        gates, candidate = keras.ops.split(projected, to_gates, axis=-1)
        gates = keras.ops.sigmoid(gates + h @ u_gates)
        z, r = keras.ops.split(gates, 2, axis=-1)
        candidate = keras.ops.tanh(candidate + (r * h) @ u)
        h = z * h + (1 - z) * candidate
        return h, [h]


ours = keras.layers.RNN(GRUCell(8), return_sequences=True)
weights = random_weights(ours, vectors)
package = keras.layers.RNN(ka.layers.GRUCell(8), return_sequences=True)
package(vectors)
package.set_weights(weights)
np.testing.assert_allclose(ours(vectors), package(vectors), atol=1e-5)

from_keras = keras.layers.GRU(8, reset_after=False, return_sequences=True)
from_keras(vectors)
from_keras.set_weights(weights)
np.testing.assert_allclose(ours(vectors), from_keras(vectors), atol=1e-5)

# %% [markdown]
# `ka.layers.GRUCell` is this cell, and so is Keras's GRU with
# `reset_after=False`. (Keras's default, `reset_after=True`, multiplies by
# $r$ after the matrix $U$: a variant that is faster on some GPUs.)
#
# ## What gates do to the gradient
#
# Look at the path from $c_{t-1}$ to $c_t$ in the LSTM: a multiplication by
# $f_t$, component by component. If nothing else led from step to step, the
# Jacobian would be exactly the product of the forget gates. We can arrange
# that: with recurrent kernels of zero, no $h$ enters the gates.

# %%
lstm = keras.layers.LSTM(4, return_state=True)
lstm.build((None, None, 16))
w, u, b = lstm.get_weights()
lstm.set_weights([w, 0 * u, b])
forget = 1 / (1 + np.exp(-(x[:30] @ w + b)[:, 4:8]))  # f_t, [30, 4]
from_c_to_c = jacobian(lstm, x[:30])[4:, 4:]
expected = np.diag(np.prod(forget, axis=0))
np.testing.assert_allclose(from_c_to_c, expected, rtol=1e-3, atol=1e-9)

# %% [markdown]
# So a gate at 0.5 halves the gradient at each step, and a gate near 1 lets
# it through. Gates do not cure the gradient by being there; they give the
# network one number per component and step that says how fast to forget. The
# GRU has the same path with $z_t$ in place of $f_t$.
#
# Before training, the bias decides. Keras starts the forget gate's bias at 1
# (as Jozefowicz et al. 2015 advise), the GRU's biases at 0. We compare these
# with a bias of 5. The gate alone would give:

# %%
for bias in (0, 1, 5):
    gate = 1 / (1 + np.exp(-bias))
    print(f"bias {bias}: gate {gate:.4f}, to the power of 100 {gate**100:.1e}")


# %%
def make_lstm(units, forget_bias, **options):
    """An LSTM whose forget gate starts at sigmoid(forget_bias)."""
    layer = keras.layers.LSTM(units, unit_forget_bias=False, **options)
    layer.build((None, None, 16))
    w, u, b = layer.get_weights()
    b[units : 2 * units] = forget_bias
    layer.set_weights([w, u, b])
    return layer


def make_gru(units, keep_bias, **options):
    """A GRU whose gate z starts at sigmoid(keep_bias)."""
    layer = keras.layers.RNN(ka.layers.GRUCell(units), **options)
    layer.build((None, None, 16))
    w, u, b = layer.get_weights()
    b[:units] = keep_bias
    layer.set_weights([w, u, b])
    return layer


gated_norms = {
    "LSTM, bias 1": norms_over_time(make_lstm(64, 1.0, return_state=True)),
    "LSTM, bias 5": norms_over_time(make_lstm(64, 5.0, return_state=True)),
    "GRU, bias 0": norms_over_time(make_gru(64, 0.0, return_state=True)),
    "GRU, bias 5": norms_over_time(make_gru(64, 5.0, return_state=True)),
}
for name, norms in gated_norms.items():
    print(f"{name}: after {TIMES[-1]} steps {norms[-1]:.1e}")
if not FAST:
    at_40 = TIMES.index(40)
    assert gated_norms["LSTM, bias 5"][at_40] > 0.1
    assert gated_norms["GRU, bias 5"][at_40] > 0.1
    assert gated_norms["GRU, bias 0"][at_40] < 1e-6
    assert gated_norms["LSTM, bias 1"][-1] < 1e-6
    assert gated_norms["LSTM, bias 5"][-1] > 2
    assert gated_norms["GRU, bias 5"][-1] > 0.1
    bias_1, bias_0 = gated_norms["LSTM, bias 1"], gated_norms["GRU, bias 0"]
    assert bias_0[-1] < rnn_norms[1.0][-1] < bias_1[-1]

# %% tags=["hide-input"]
norms_of = {**gated_norms, "RNN, |U| = 1": rnn_norms[1.0]}
looks = zip((0, 0, 1, 1, 6), ("o--", "s-", "^--", "D-", "v--"), strict=True)
lines = [
    (name, TIMES, norms, *look)
    for (name, norms), look in zip(norms_of.items(), looks, strict=True)
]
picture("01_jacobian_of_gates.png", lines, *AXES, limits=(1e-21, 1e3))

# %% [markdown]
# With open gates the gradient is alive after 100 steps. (In the LSTM it even
# grows, by the paths that lead through $h$ and the gates.) With the usual
# biases it vanishes. In the LSTM it does so more slowly than in the RNN. In the
# GRU it is even faster, since its gate starts at one half.
#
# ## Recalling the first token
#
# Does the Jacobian tell us which network can learn? Here is a task that offers
# no easy, short examples to start from. A sequence begins with one of four
# letters, and fillers follow. At the end the network has to say which letter it
# was. A guess is right in a quarter of cases. The embeddings begin with
# components of size 1, like the random inputs `x` above. The next cell trains
# 15 networks, five at each of three lengths. It prints a row for each of the
# five when its three lengths are done.

# %%
NUM_LETTERS, NUM_FILLERS = 4, 8


def recall_examples(num_texts, length, rng):
    """A letter and `length` - 1 fillers, int [B, T]; the letter, int [B]."""
    letter = rng.integers(NUM_LETTERS, size=(num_texts, 1))
    fillers = rng.integers(NUM_FILLERS, size=(num_texts, length - 1))
    ids = np.concatenate([letter, NUM_LETTERS + fillers], axis=1)
    return ids, letter[:, 0]


class StopWhenSolved(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if logs["val_accuracy"] > 0.99:
            self.model.stop_training = True


def accuracy_of_recall(reader, length):
    """Trains for at most eight epochs; the accuracy on new sequences."""
    rng = np.random.default_rng(8)
    model = keras.Sequential(
        [
            keras.layers.Embedding(
                NUM_LETTERS + NUM_FILLERS,
                16,
                embeddings_initializer=keras.initializers.RandomNormal(
                    stddev=1.0
                ),
            ),
            reader,
            keras.layers.Dense(NUM_LETTERS),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.003, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(
        *recall_examples(64 if FAST else 4096, length, rng),
        batch_size=64,
        epochs=1 if FAST else 8,
        validation_data=recall_examples(512, length, rng),
        callbacks=[StopWhenSolved()],
        verbose=0,
    )
    return history.history["val_accuracy"][-1]


READERS = {
    "SimpleRNN": lambda: keras.layers.SimpleRNN(32),
    "LSTM, bias 1": lambda: make_lstm(32, 1.0),
    "LSTM, bias 5": lambda: make_lstm(32, 5.0),
    "GRU, bias 0": lambda: make_gru(32, 0.0),
    "GRU, bias 5": lambda: make_gru(32, 5.0),
}
LENGTHS = (5,) if FAST else (5, 20, 80)
recall = {name: [] for name in READERS}
print("accuracy after reading   " + "".join(f"{n:6}" for n in LENGTHS))
for name, make_reader in READERS.items():
    keras.utils.set_random_seed(1)
    for length in LENGTHS:
        recall[name].append(accuracy_of_recall(make_reader(), length))
    print(f"{name:25}" + "".join(f"{a:6.2f}" for a in recall[name]))

# %%
if not FAST:
    assert recall["SimpleRNN"][0] > 0.9
    assert recall["SimpleRNN"][-1] < 0.4
    assert max(recall["GRU, bias 0"][1:]) < 0.8
    assert recall["GRU, bias 0"][1] > recall["SimpleRNN"][1]
    assert recall["LSTM, bias 1"][1] > 0.9 > 0.6 > recall["LSTM, bias 1"][-1]
    assert min(recall["LSTM, bias 5"]) > 0.9
    assert min(recall["GRU, bias 5"]) > 0.9

# %% [markdown]
# The SimpleRNN recalls the first of five tokens, and over eighty it does no
# better than guessing. The LSTM and the GRU with a bias of 5 find the letter
# over every length. With Keras's biases they do not: the LSTM's 1 is enough for
# twenty tokens but not for eighty; the GRU's 0 is enough for neither. What
# decides is where the gates stand, much as the Jacobians said. But they do not
# say all: at twenty tokens the GRU with bias 0 does better than the SimpleRNN,
# although its Jacobian starts out smaller. Training moves the gates, and the
# Jacobian was measured before that.
#
# This is a failure to *learn*, not to remember. A SimpleRNN could do the task,
# as it did on our source, where short sentences showed it the way.
#
# ## The state has one size
#
# These networks read any length. What they know afterwards about what they read
# is their state, and the state has the same size after 10 words and after 1000.

# %%
layer = keras.layers.LSTM(32, return_state=True)
for length in (10, 1000):
    _, h, c = layer(np.zeros((1, length, 16), "float32"))
    assert h.shape == c.shape == (1, 32)

# %% [markdown]
# How much fits? 64 float32 numbers are 2048 bits, no more. A text from
# our source carries $H / \log 2$ bits per word. So there is a length beyond
# which no network, however well trained, can have a different state for every
# text that is likely to come.

# %%
bits = 2 * 32 * 32
bits_per_word = FLOOR / np.log(2)
print(f"{bits} bits are {bits / bits_per_word:.0f} words")
assert 1900 < bits / bits_per_word < 2000

# %% [markdown]
# This holds for any encoding; trained networks keep far less (chapter 2). To
# predict the next word of our source it was enough to know which of three
# states it is in, under two bits. To *translate* a sentence, all of it is
# needed.
#
# ## What to take away
#
# - A network with a window of $w$ words learns what these words tell and no
#   more; on a source that we wrote ourselves, how much it misses can be
#   computed, and the trained networks miss just that.
# - A recurrent network applies the same weights at each step and carries a
#   state. It is a deep feed-forward network with shared weights.
# - Its Jacobian over $T$ steps is a product of $T$ matrices, bounded by
#   $\|U\|^T$. It vanishes or explodes exponentially.
# - LSTM and GRU add a path on which the state is only multiplied by a gate.
#   The gate, and at the beginning its bias, says how long a memory lasts.
# - The state of all of them is one vector of fixed size. Attention will keep
#   all the states instead, a memory that grows with the text (chapter 3).
#
# ## Your turn
#
# Sentences of one batch have different lengths, and short ones are filled up
# with padding. A network should not read padding. Where the mask is False its
# state stands still. Write one step of the network in the place of the dots, in
# as many lines as you like.

# %% tags=["alone"]
import your_turn


def read_masked(x, mask, w, u, b):
    """x [T, D], mask [T] (True: a real token) -> all states [T, units]."""
    h = np.zeros(len(b))
    states = []
    for x_t, is_real in zip(x, mask, strict=True):
        h = ...
        states.append(h)
    return np.stack(states)


your_turn.check(1, read_masked)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def read_masked(x, mask, w, u, b):
#     h = np.zeros(len(b))
#     states = []
#     for x_t, is_real in zip(x, mask, strict=True):
#         if is_real:
#             h = np.tanh(x_t @ w + h @ u + b)
#         states.append(h)
#     return np.stack(states)
#
#
# your_turn.check(1, read_masked)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots. Two digits are enough.
#
# - a: How many weights and biases has a simple RNN of 32 units that reads
#   vectors of width 16?
# - b: It reads 100 tokens. How many times has the first token gone through a
#   tanh when the last state is ready?
# - c: A forget gate is 0.9 at each step. Which share of the cell's content is
#   left after 20 steps?

# %% tags=["alone"]
your_turn.quiz(1, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: $W$ is 16 by 32, $U$ is 32 by 32, and $b$ has 32 numbers.
# - b: One tanh a step, and the first token is there from the first step on.
# - c: The content is multiplied by the gate 20 times.
#
# ```python
# your_turn.quiz(1, a=16 * 32 + 32 * 32 + 32, b=100, c=0.9**20)
# ```
#
# </details>
#
# ## Exercises
#
# 1. How many words must a window hold to come within 0.001 nats of the floor?
#    And if `REALLY` were 0.9?
#
# <details><summary>Solution</summary>
#
# The smallest $w$ with $r^w v \log 2 / (1 + v) < 0.001$:
#
# ```python
# for r in (0.75, 0.9):
#     v = 1 - r
#     w = np.log(0.001 * (1 + v) / (v * np.log(2))) / np.log(r)
#     print(r, int(np.ceil(w)))  # 0.75: 18, 0.9: 40
# ```
#
# </details>
#
# 2. Set the biases of a GRU (our cell or `ka.layers.GRUCell`) so that it is a
#    SimpleRNN.
#
# <details><summary>Solution</summary>
#
# Nothing is to be kept ($z = 0$) and everything is to be looked at ($r = 1$): a
# large negative bias for $z$, a large positive one for $r$.
#
# ```python
# rnn = keras.layers.SimpleRNN(8)
# rnn.build((None, None, 3))
# w, u, b = rnn.get_weights()
# nothing = np.zeros((3, 16)), np.zeros((8, 16))
# bias = np.concatenate([np.full(8, -50.0), np.full(8, 50.0), b])
# gru_as_rnn = keras.layers.RNN(ka.layers.GRUCell(8))
# gru_as_rnn(vectors)
# gru_as_rnn.set_weights(
#     [
#         np.concatenate([nothing[0], w], axis=1),
#         np.concatenate([nothing[1], u], axis=1),
#         bias,
#     ]
# )
# np.testing.assert_allclose(gru_as_rnn(vectors), rnn(vectors), atol=1e-6)
# ```
#
# </details>
#
# 3. Why did we start the embeddings of the last task so large? Give `jacobian`
#    the inputs `0.03 * x`, for `orthogonal_rnn(1.0)`. Then train a SimpleRNN
#    on sequences of 40 tokens with Keras's initial embeddings, which lie
#    between -0.05 and 0.05.
#
# <details><summary>Solution</summary>
#
# Small inputs make a small state; there $\tanh'$ is near 1, and an orthogonal
# $U$ keeps every vector's length. So the gradient survives, and the SimpleRNN
# learns what it could not learn before. It works as long as the state
# stays small, a condition that training on a larger task does not respect.
#
# ```python
# print(norm(jacobian(orthogonal_rnn(1.0), 0.03 * x)) > 0.3)  # True
# rng = np.random.default_rng(8)
# model = keras.Sequential(
#     [
#         keras.layers.Embedding(NUM_LETTERS + NUM_FILLERS, 16),
#         keras.layers.SimpleRNN(32),
#         keras.layers.Dense(NUM_LETTERS),
#     ]
# )
# model.compile(
#     keras.optimizers.Adam(0.003, global_clipnorm=1.0),
#     loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
#     metrics=["accuracy"],
# )
# model.fit(
#     *recall_examples(4096, 40, rng),
#     batch_size=64,
#     epochs=8,
#     validation_data=recall_examples(512, 40, rng),
#     callbacks=[StopWhenSolved()],
#     verbose=2,
# )  # stops with an accuracy above 0.99
# ```
#
# </details>
#
# 4. Suppose that a forget gate depends on its bias alone. Which bias leaves
#    half of the cell state after 200 steps?
#
# <details><summary>Solution</summary>
#
# $\sigma(b)^{200} = 1/2$, so $\sigma(b) = 2^{-1/200}$ and $b = 5.66$:
#
# ```python
# gate = 0.5 ** (1 / 200)
# print(np.log(gate / (1 - gate)))  # 5.66
# ```
#
# </details>
#
# Next, in [chapter 2](02_encoder_decoder.ipynb): two such networks translate,
# and everything that the second one learns about the sentence goes through
# this one vector.
