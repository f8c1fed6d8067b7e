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
# # 16. The cursor that was too hard
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/16_the_cursor.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# Read a word aloud with a finger on it. The finger is a *cursor*: it stands on
# a letter, you say a sound, and it moves on. Bahdanau first wanted to build
# this ([chapter 3](03_soft_search.ipynb)). Nobody tells the model when the
# cursor moves. So the model would have to sum over all ways to move it, and
# there was too little time for that. He built the soft search instead. **What
# did he give up, and what did he gain?**
#
# This chapter builds the cursor that was too hard, and six relatives of it.
# Most of them learn the same thing: to read words aloud. (The hidden Markov
# model only aligns words with their sounds, and structured attention has a task
# of its own.)
#
# | section | system | how its cursor moves |
# |---|---|---|
# | 1 | diagonal, 2014 | at one speed that nobody learns |
# | 2, 3 | hidden Markov model, 1996 | by jumps, whose sizes are counted |
# | 4 | RNN transducer, 2012 | by a network; training sums over all paths |
# | 5 | Graves's window, 2013 | it glides forwards |
# | 6 | soft search, 2014 | not at all: it looks at all letters at once |
# | 7 | hard attention, 2015 | by chance, anywhere |
# | 8 | monotonic attention, 2017 | it stops or goes on |
# | 9 | structured attention, 2017 | many cursors, which hear their neighbours |
#
# Section 10 compares what they have learned, and section 11 shows what no
# forward path can do.
#
# Takes about 5 minutes on two cores, with six readers and some smaller models
# to train. The text before each says what is trained, and a line is printed
# when it is ready. Pictures are shown here and kept in the folder `pictures`.
# The text counts from 1, as the papers do. The code counts from 0. Vectors are
# columns in the equations of this chapter, as in $W s$, and rows in the code.
# In a map a row asks (the sound that is written) and a column is asked (the
# letter that is read).

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import collections
import itertools
import math
import os
import pathlib
import re

import diagrams
import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.data.embedded import pronunciations
from keras_attention.plotting import drawing
from keras_attention.tokens import END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")
rng = np.random.default_rng(1)

# %% [markdown]
# ## 1. Words, sounds, and a cursor of one speed
#
# The package's corpus `pronunciations` has invented words and their sounds. Its
# rules are much like those of Italian. The sounds stand in the order of the
# letters, so a cursor fits. But it has to change its speed: three letters may
# make one sound, and an x makes two. We take words of at most nine letters.

# %%
LONGEST = 9
corpus = {
    split: [pair for pair in pairs if len(pair[0]) <= LONGEST]
    for split, pairs in pronunciations.generate(
        train=1_000 if FAST else 35_000, held_out=1_200
    ).items()
}
test = corpus["test"][:500]
# Words with more letters than sounds, or fewer.
uneven = [row for row in test if len(row[0]) != len(row[1].split())]
print(len(corpus["train"]), "words to learn from, for instance")
for word, sounds in corpus["train"][:3]:
    print(f"  {word:9} {sounds}")
print(len(test), "words of the test, and", len(uneven), "are uneven")

# %% [markdown]
# The rules know which letters make a sound. So we know, for each sound, where a
# good cursor stands: on one of its letters. No model will be told this. We keep
# it as a measure. A word is *followed* if the cursor stands, at each sound, on
# one of the letters that make it. We measure this on the *uneven* words: those
# whose letters and sounds differ in number. In the others a cursor has little
# to decide.


# %%
def letters_of_sounds(word):
    """For each sound of a word, the places of the letters that make it."""
    found, place = [], 0
    while place < len(word):
        matches = (
            (re.compile(pattern).match(word, place), sound)
            for pattern, sound in pronunciations.RULES
        )
        match, sound = next(one for one in matches if one[0])
        found += [set(range(place, match.end()))] * len(sound.split())
        place = match.end()
    return found


def share_followed(cursors):
    """How many of the uneven words these places of their sounds follow."""
    return np.mean(
        [
            all(
                int(place) in letters
                for place, letters in zip(
                    places, letters_of_sounds(word), strict=True
                )
            )
            for places, (word, _) in zip(cursors, uneven, strict=True)
        ]
    )


for one, sounds in test:
    assert len(letters_of_sounds(one)) == len(sounds.split())
for sound, letters in zip(
    pronunciations.pronounce("taxi").split(),
    letters_of_sounds("taxi"),
    strict=True,
):
    print(sound, letters)

# %% [markdown]
# Now the simplest cursor. It moves at one speed, whatever it reads. For sound
# $i$ of a word of $S$ letters, it is at letter $j$ (here both count from 0):
#
# $$j = \min(\lfloor \text{ratio} \cdot i + 1/2 \rfloor,\ S - 1)$$
#
# $\text{ratio}$ is the number of letters for each sound, on average over the
# corpus, and $\lfloor\ \rfloor$ rounds down. As attention, letter $j$ has the
# weight 1 and all others have 0. Bahdanau tried such a *hard-coded diagonal*
# before his search, and said that it sort of worked.

# %%
ratio = np.mean([len(word) / len(sounds.split())
                 for word, sounds in corpus["train"]])  # fmt: skip


def diagonal(num_sounds, num_letters):
    """The places of a cursor of one speed [T]."""
    places = np.floor(ratio * np.arange(num_sounds) + 0.5)
    return np.minimum(places, num_letters - 1).astype(int)


layer = ka.layers.DiagonalAttention(ratio=float(ratio))
_, weights = layer(query=np.zeros((1, 7, 1)), value=np.zeros((1, 8, 1)))
assert (np.argmax(weights[0], axis=1) == diagonal(7, 8)).all()
followed = {
    "diagonal": share_followed(
        [diagonal(len(sounds.split()), len(word)) for word, sounds in uneven]
    )
}
print(f"{ratio:.2f} letters a sound, "
      f"{100 * followed['diagonal']:.0f} % of the words followed")  # fmt: skip
assert followed["diagonal"] < 0.2

# %% [markdown]
# It loses its place where several letters make one sound. A better cursor has
# to look at the letters.
#
# ## 2. All paths, and a sum over them
#
# Now the cursor may move as it likes, but only forwards. The source has $S$
# steps, and the target has the tokens $y_1 \dots y_T$. The cursor begins at the
# first step. Again and again, one of two things happens:
#
# - a token is *written*, and the cursor stays where it is;
# - nothing is written, and the cursor moves one step on. We say that it writes
#   a *blank*.
#
# A blank at the last step ends the text. Say that the cursor stands at step
# $j$, and $i$ tokens have been written. The next token $y_{i+1}$ then has the
# probability $y(j, i)$, and a blank has the probability $\varnothing(j, i)$.
# Section 4 says where these numbers come from. The pairs $(j, i)$ are the
# *nodes* of a *lattice*: $j$ is 1 to $S$, and $i$ is 0 to $T$. When all tokens
# are written, only blanks are left: $y(j, T) = 0$.
#
# A *path* is one way from the beginning to the end. Its probability is the
# product of what happens on it. The same text can be written along many paths:
# the k of "chi" may be said while the finger is on the c, or while it is on the
# h. Nobody has told us which. So the text's probability is a sum:
#
# $$p(y \mid x) = \sum_{\text{paths}}\ \prod_{\text{arcs}}
# y(j, i) \text{ or } \varnothing(j, i)$$
#
# An *arc* is one thing that happens: one factor of the product. How many paths
# are there? A path is known if we know at which step each token is written, and
# these steps never fall. So there are $\binom{S + T - 1}{T}$ paths. The next
# cell goes through all of them, with probabilities that are drawn at random.


# %%
def paths(num_steps, num_tokens):
    """Each path, as the steps at which its tokens are written."""
    return itertools.combinations_with_replacement(range(num_steps), num_tokens)


def arcs(path, num_steps):
    """The arcs of a path: ("token" or "blank", j, i), the last blank too."""
    found, j = [], 0
    for i, step in enumerate(path):
        found += [("blank", passed, i) for passed in range(j, step)]
        found.append(("token", step, i))
        j = step
    return found + [("blank", rest, len(path)) for rest in range(j, num_steps)]


def draw(num_steps, num_tokens):
    """y(j, i) and blank(j, i), at random: each [S, T + 1]."""
    token = rng.uniform(0.1, 0.9, size=(num_steps, num_tokens + 1))
    token[:, -1] = 0  # All tokens are written.
    return {"token": token, "blank": rng.uniform(0.1, 0.9) * (1 - token)}


def by_enumeration(p):
    """p(y | x), and how probable it is that the cursor took each arc."""
    num_steps, num_tokens = p["token"].shape[0], p["token"].shape[1] - 1
    total, taken = 0.0, {name: np.zeros_like(one) for name, one in p.items()}
    for path in paths(num_steps, num_tokens):
        on_path = arcs(path, num_steps)
        probability = math.prod(p[name][j, i] for name, j, i in on_path)
        total += probability
        for name, j, i in on_path:
            taken[name][j, i] += probability
    return total, {name: one / total for name, one in taken.items()}


small = draw(4, 3)
total, taken = by_enumeration(small)
print(f"{len([*paths(4, 3)])} paths sum to {total:.4f}")
for size in (5, 10, 20, 40):
    number = math.comb(2 * size - 1, size)
    print(f"{size} steps, {size} tokens: {number:.2g} paths")
assert len([*paths(4, 3)]) == math.comb(4 + 3 - 1, 3)

# %% [markdown]
# Nobody can go through $10^{23}$ paths. But paths meet. All paths that come to
# $(j, i)$ go on in the same ways, wherever they come from. So it is enough to
# know the sum of what has come there, $\alpha(j, i)$. It has come by a blank
# from the step before, or by a token at the same step:
#
# $$\alpha(j, i) = \alpha(j-1, i)\, \varnothing(j-1, i) +
# \alpha(j, i-1)\, y(j, i-1) \qquad \alpha(1, 0) = 1$$
#
# $$p(y \mid x) = \alpha(S, T)\, \varnothing(S, T)$$
#
# This is the *forward algorithm*. It has $S (T + 1)$ short sums in place of all
# paths. (Chapter 3 calls the attention weights $\alpha$. In this chapter they
# are $a$.) The same from the end is the *backward algorithm*. $\beta(j, i)$ is
# the probability of the rest of the text, for a cursor that stands at $(j, i)$:
#
# $$\beta(j, i) = \varnothing(j, i)\, \beta(j+1, i) + y(j, i)\, \beta(j, i+1)$$
#
# Behind the last blank nothing is left to do, so $\beta(S+1, T) = 1$. Elsewhere
# outside the lattice $\alpha$ and $\beta$ are 0.
#
# Both together say where the cursor was. A path that took an arc came to its
# beginning, took it, and went on from its end. So the probability that
# $y_{i+1}$ was written at step $j$, now that the whole text is known, is
#
# $$\frac{\alpha(j, i)\; y(j, i)\; \beta(j, i+1)}{p(y \mid x)}$$
#
# This is the *posterior* of the arc. For a blank, $\varnothing(j, i)\,
# \beta(j+1, i)$ takes the place of $y(j, i)\, \beta(j, i+1)$.


# %%
def forward(p):
    """alpha: [S, T + 1]."""
    alpha = np.zeros_like(p["token"])
    for j, i in np.ndindex(alpha.shape):
        alpha[j, i] = float(j == i == 0)
        if j:
            alpha[j, i] += alpha[j - 1, i] * p["blank"][j - 1, i]
        if i:
            alpha[j, i] += alpha[j, i - 1] * p["token"][j, i - 1]
    return alpha


def backward(p):
    """beta: [S + 1, T + 2], with a rim of zeros, and 1 behind the end."""
    num_steps, num_columns = p["token"].shape
    beta = np.zeros((num_steps + 1, num_columns + 1))
    beta[num_steps, num_columns - 1] = 1
    for j, i in reversed([*np.ndindex(p["token"].shape)]):
        beta[j, i] = (
            p["blank"][j, i] * beta[j + 1, i]
            + p["token"][j, i] * beta[j, i + 1]
        )
    return beta


def posteriors(p):
    """p(y | x), and how probable it is that the cursor took each arc."""
    alpha, beta = forward(p), backward(p)
    total = beta[0, 0]
    return total, {
        "token": alpha * p["token"] * beta[:-1, 1:] / total,
        "blank": alpha * p["blank"] * beta[1:, :-1] / total,
    }


for num_steps, num_tokens in itertools.product(range(1, 6), range(6)):
    p = draw(num_steps, num_tokens)
    expected, expected_taken = by_enumeration(p)
    total, taken = posteriors(p)
    np.testing.assert_allclose(total, expected)
    np.testing.assert_allclose(forward(p)[-1, -1] * p["blank"][-1, -1], total)
    for name in taken:
        np.testing.assert_allclose(
            taken[name], expected_taken[name], atol=1e-12
        )
print("equal to the sum over all paths, up to 5 steps and 5 tokens")


# %% tags=["hide-input"]
def draw_lattice(axes, taken, steps, tokens, with_numbers=False):
    """Steps to the right, tokens downwards; a likely arc is thick."""
    for name, color, (right, down) in (
        ("token", drawing.COLORS[1], (0, 1)),
        ("blank", drawing.COLORS[0], (1, 0)),
    ):
        for j, i in np.ndindex(taken[name].shape):
            if taken[name][j, i] < 0.005:
                continue
            axes.annotate(
                "", (j + 0.9 * right, i + 0.9 * down),
                (j + 0.1 * right, i + 0.1 * down),
                arrowprops={"arrowstyle": "-", "color": color,
                            "linewidth": 0.4 + 6 * taken[name][j, i]},
            )  # fmt: skip
            if with_numbers:
                axes.text(
                    j + (0.5 if right else 0.1), i + (0.5 if down else -0.16),
                    f"{taken[name][j, i]:.2f}", fontsize=9, va="center",
                    ha="center" if right else "left",
                )  # fmt: skip
    rows, columns = np.mgrid[: len(tokens) + 1, : len(steps)]
    axes.plot(columns.ravel(), rows.ravel(), ".", color=drawing.INK, ms=5)
    axes.set_xticks(range(len(steps)), steps)
    axes.set_yticks(np.arange(len(tokens)) + 0.5, tokens)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.4, len(steps) + 0.1)
    axes.set_ylim(len(tokens) + 0.4, -0.4)
    axes.spines[:].set_visible(False)


total, taken = posteriors(small)
with drawing.style():
    figure = drawing.Figure(figsize=(5.4, 3.8), layout="constrained")
    draw_lattice(
        figure.subplots(), taken, [f"step {j}" for j in range(1, 5)],
        ["$y_1$", "$y_2$", "$y_3$"], with_numbers=True,
    )  # fmt: skip
    drawing.save(figure, PICTURES / "16_lattice.png")
figure

# %% [markdown]
# *The lattice of 4 steps and 3 tokens. A dot is a node, and the top row has $i
# = 0$. Blue: a blank, and the cursor moves on. Orange: a token is written, and
# the row below is reached. Each line is as thick as its posterior, which stands
# beside it.* The posteriors into a node and those out of it have the same sum,
# as each path that comes must leave.
#
# ### Why posteriors matter
#
# Double the probability of one arc. All paths that take it get twice as
# probable, and the others stay. So $p(y \mid x)$ grows by the share of these
# paths, which is the posterior of the arc. The same holds of a small change:
# the gradient of $\log p(y \mid x)$ by the logarithm of an arc's probability
# *is* the arc's posterior. Gradient descent makes those arcs more probable that
# seem to have been taken. The next cell checks both statements, the second by
# finite differences.

# %%
TINY = 1e-6
for name, j, i in itertools.product(taken, range(4), range(3)):
    slopes = []
    for factor in (2, np.exp(TINY), np.exp(-TINY)):
        changed = {**small, name: small[name].copy()}
        changed[name][j, i] *= factor
        slopes.append(posteriors(changed)[0])
    doubled, more, less = slopes
    np.testing.assert_allclose(doubled / total - 1, taken[name][j, i])
    slope = (np.log(more) - np.log(less)) / (2 * TINY)
    np.testing.assert_allclose(slope, taken[name][j, i], atol=1e-8)

# %% [markdown]
# ## 3. The sum with counts: a hidden Markov model (Vogel et al. 1996)
#
# Such a sum aligned words long before attention did. In a *hidden Markov model*
# each target token $y_i$ comes from one source position $a_i$. Two tables say
# how:

# %% tags=["hide-input", "alone"]
diagrams.hidden_markov(path=PICTURES / "16_hidden_markov.png")

# %% [markdown]
# *The cursor jumps, by the table $c$. The letter where it stands makes a sound,
# by the table $t$.*
#
# $$p(y \mid x) = \sum_{a_1 \dots a_T}\ \prod_{i=1}^T\ p(a_i \mid a_{i-1})\;
# t(y_i \mid x_{a_i}) \qquad
# p(j \mid j') = \frac{c(j - j')}{\sum_{j''} c(j'' - j')}$$
#
# $t(y \mid x)$ is the probability that the letter $x$ makes the sound $y$: a
# table with a row for each letter. $c(d)$ says how often a cursor jumps by $d$
# letters. Jumps to the left are allowed, and $d = 0$ stays. The first position
# may be any: $p(a_1 \mid a_0)$ stands for $1/S$.
#
# There are $S^T$ sequences $a$. Again they meet, and again a forward and a
# backward sum do the work. $\alpha_i(j)$ is the probability that $y_1 \dots
# y_i$ are written and $a_i = j$. $\beta_i(j)$ is that of the tokens behind
# $y_i$, if $a_i = j$:
#
# $$\alpha_i(j) = t(y_i \mid x_j) \sum_{j'} \alpha_{i-1}(j')\, p(j \mid j')
# \qquad \beta_i(j) = \sum_{j'} p(j' \mid j)\, t(y_{i+1} \mid x_{j'})\,
# \beta_{i+1}(j')$$
#
# $$p(y \mid x) = \sum_j \alpha_T(j) \qquad
# p(a_i = j \mid y) = \frac{\alpha_i(j)\, \beta_i(j)}{p(y \mid x)}$$
#
# The first line begins with $\alpha_1(j) = t(y_1 \mid x_j) / S$ and $\beta_T(j)
# = 1$. The posterior of a jump from $j'$ to $j$ is made like that of an arc in
# section 2:
#
# $$p(a_{i-1} = j', a_i = j \mid y) = \frac{\alpha_{i-1}(j')\,
# p(j \mid j')\, t(y_i \mid x_j)\, \beta_i(j)}{p(y \mid x)}$$
#
# In the code, `emissions` [T, S] has $t(y_i \mid x_j)$, and `steps` [S, S] has
# $p(j \mid j')$ in row $j'$ and column $j$.


# %%
def step_matrix(jumps, size):
    """p(j | j') [S, S], from c(d) of d = 1 - LONGEST ... LONGEST - 1."""
    places = np.arange(size)
    counts = jumps[places[None, :] - places[:, None] + LONGEST - 1]
    return counts / counts.sum(axis=1, keepdims=True)


def hidden_markov(emissions, steps):
    """p(y | x), p(a_i = j | y) [T, S], p(a_{i-1} = j', a_i = j | y) summed."""
    length, size = emissions.shape
    alpha, beta = np.zeros((2, length, size))
    alpha[0], beta[-1] = emissions[0] / size, 1
    for i in range(1, length):
        alpha[i] = (alpha[i - 1] @ steps) * emissions[i]
    for i in reversed(range(length - 1)):
        beta[i] = steps @ (emissions[i + 1] * beta[i + 1])
    total = alpha[-1].sum()
    pairs = alpha[:-1].T @ (emissions[1:] * beta[1:]) * steps / total
    return total, alpha * beta / total, pairs


emissions = rng.uniform(size=(4, 3))
steps = step_matrix(rng.uniform(size=2 * LONGEST - 1), 3)
total, where, jumped = hidden_markov(emissions, steps)
expected, expected_where = 0.0, np.zeros((4, 3))
expected_jumped = np.zeros((3, 3))
for a in itertools.product(range(3), repeat=4):
    made = emissions[range(4), a].prod() / 3
    made *= math.prod(steps[pair] for pair in itertools.pairwise(a))
    expected += made
    expected_where[range(4), a] += made
    for pair in itertools.pairwise(a):
        expected_jumped[pair] += made
np.testing.assert_allclose(total, expected)
np.testing.assert_allclose(where, expected_where / expected)
np.testing.assert_allclose(jumped, expected_jumped / expected)
print(f"equal to the sum over {3**4} alignments")

# %% [markdown]
# How are $t$ and $c$ learned? If we knew the alignments, we would count: how
# often did this letter make that sound? We do not know them, but we have their
# posteriors. *Expectation maximisation* takes the posteriors as fractions of
# counts. The new $c(d)$ is the sum of the posteriors of all jumps by $d$. The
# new $t(y \mid x)$ is that of all places where $x$ made $y$, and each row of
# $t$ is divided by its sum. Then all starts anew. Both tables begin with equal
# entries. Each round makes the corpus more probable, or leaves it as it is.
#
# The next cell counts for eight rounds over 1,500 words.


# %%
def learn_tables(rows, rounds):
    """t [letters, sounds] and c, from words and sounds: lists of numbers."""
    shape = [1 + max(max(row[side]) for row in rows) for side in (0, 1)]
    t, jumps = np.ones(shape) / shape[1], np.ones(2 * LONGEST - 1)
    history = []
    for _ in range(rounds):
        made, jumped, log_p = np.zeros_like(t), np.zeros_like(jumps), 0.0
        for word, sounds in rows:
            steps = step_matrix(jumps, len(word))
            emissions = t[word][:, sounds].T  # [T, S]
            total, where, pairs = hidden_markov(emissions, steps)
            np.add.at(made, (word[None, :], sounds[:, None]), where)
            places = np.arange(len(word))
            distance = places[None, :] - places[:, None] + LONGEST - 1
            np.add.at(jumped, distance, pairs)
            log_p += np.log(total)
        # What was never counted stays possible.
        made, jumps = made + 1e-9, jumped + 1e-9
        t = made / made.sum(axis=1, keepdims=True)
        history.append(log_p)
    return t, jumps, history


letters = sorted({letter for word, _ in corpus["train"] for letter in word})
names = sorted({one for _, sounds in corpus["train"] for one in sounds.split()})


def numbers(row):
    """A word and its sounds as two arrays of numbers."""
    word, sounds = row
    return (
        np.array([letters.index(one) for one in word]),
        np.array([names.index(one) for one in sounds.split()]),
    )


counted = [numbers(row) for row in corpus["train"][: 100 if FAST else 1_500]]
t, jumps, history = learn_tables(counted, rounds=8)
assert (np.diff(history) > -1e-3).all()
print("log p(corpus) after each round:", *(f"{one:.0f}" for one in history))
for letter in "cx":
    row = t[letters.index(letter)]
    best = np.argsort(-row)[:4]
    print(letter, *(f"{names[one]} {row[one]:.2f}" for one in best), sep="   ")
shares = dict(
    zip(range(1 - LONGEST, LONGEST), jumps / jumps.sum(), strict=True)
)
print("jumps:", *(f"{d:+d} {shares[d]:.2f}" for d in range(-1, 4)))


# %%
def markov_cursor(row):
    """The likeliest place of each sound."""
    word, sounds = numbers(row)
    steps = step_matrix(jumps, len(word))
    return hidden_markov(t[word][:, sounds].T, steps)[1].argmax(axis=1)


followed["hidden Markov"] = share_followed(
    [markov_cursor(row) for row in uneven]
)
print(f"{100 * followed['hidden Markov']:.0f} % of the words followed")
if not FAST:
    assert followed["hidden Markov"] > 0.9

# %% [markdown]
# Two tables of counts follow nearly all words. They found out by themselves
# that the cursor goes forwards, mostly by one letter. But this model has to be
# given both texts. It cannot *read*: it knows which sounds a c may make, and
# not which one it makes in "chiave", as $t$ sees no other letters. (The
# package's `ka.evaluation.hmm_alignment` has one more source word, the empty
# one. It makes the tokens that come from nowhere.)
#
# ## 4. The sum as a loss: the RNN transducer (Graves 2012)
#
# The *RNN transducer* takes the lattice of section 2, and lets networks say
# what $y(j, i)$ and $\varnothing(j, i)$ are:

# %% tags=["hide-input", "alone"]
diagrams.transducer(path=PICTURES / "16_transducer.png")

# %% [markdown]
# *One node $(j, i)$ of the lattice.*
#
# $$f_j = W_f\,[\overrightarrow{\mathrm{LSTM}}(x)_j;
# \overleftarrow{\mathrm{LSTM}}(x)_j] + b_f \qquad
# g_i = W_g\, \mathrm{LSTM}(y_1 \dots y_i)$$
#
# $$p(k \mid j, i) = \mathrm{softmax}_k\big(W \tanh(f_j + g_i) + b\big)$$
#
# The first network reads the letters in both directions, so $f_j$ knows all of
# them. The second reads the sounds that are written, START first. Both have
# vectors of one width $D$. Their sum goes through a tanh, and a softmax gives
# the probabilities of $V$ outputs $k$: the sounds and the blank. So $y(j, i)$
# is the probability of $y_{i+1}$, and $\varnothing(j, i)$ that of the blank.
# This is done for each step *and* each number of tokens: an array [S, T + 1,
# V]. (Graves added logits in 2012. The tanh is from his next paper, in 2013.)
#
# The loss is $-\log p(y \mid x)$, the sum over all paths. The forward algorithm
# consists of sums and products, so it has a gradient, and that is all one needs
# to train. We have seen what the gradient does: it raises the arcs by their
# posteriors.
#
# The package's `RNNTransducer` does this for a batch. It computes $\log
# \alpha$, as products of many probabilities get too small for a computer. Each
# source has END as its last step, so $S$ counts END, too. The blank has the id
# END, as the last blank ends the text. The next cell computes the lattice of
# one word from the model's layers, line by line as above. Our forward algorithm
# of section 2 must then give the package's $\log p(y \mid x)$.

# %%
id_of_letter = {one: number for number, one in enumerate(letters, END + 1)}
id_of_sound = {one: number for number, one in enumerate(names, END + 1)}
SIZES = {
    "vocabulary_size": END + 1 + len(names),
    "source_vocabulary_size": END + 1 + len(letters),
    "embedding_dim": 32,
}
UNITS = 64
MOST = max(len(sounds.split()) for _, sounds in corpus["train"] + test)


def ids(rows):
    """Inputs and labels of pairs of word and sounds, as in chapter 3."""
    sources = [[*(id_of_letter[one] for one in word), END] for word, _ in rows]
    targets = [
        [id_of_sound[one] for one in sounds.split()] for _, sounds in rows
    ]

    def padded(rows, length):
        return keras.utils.pad_sequences(
            rows, maxlen=length, padding="post", value=PAD
        )

    inputs = {
        "source_ids": padded(sources, LONGEST + 1),
        "target_ids": padded([[START, *row] for row in targets], MOST + 1),
    }
    return inputs, padded([[*row, END] for row in targets], MOST + 1)


def lattice_of(model, word):
    """y(j, i) and blank(j, i) of a word and its own sounds: [S, T + 1]."""
    inputs, labels = ids([(word, pronunciations.pronounce(word))])
    x = model.source_embedding(inputs["source_ids"][:, : len(word) + 1])
    for bidirectional_lstm in model.encoder:
        x = bidirectional_lstm(x)
    f = model.source_projection(x)[0]  # [S, D]
    num_tokens = np.count_nonzero(labels)
    y = model.target_embedding(inputs["target_ids"][:, :num_tokens])
    g = model.prediction_projection(model.prediction(y)[0])[0]  # [T + 1, D]
    both = ops.tanh(f[:, None] + g[None, :])  # [S, T + 1, D]
    p = ops.convert_to_numpy(ops.softmax(model.output_projection(both)))
    # The last label is END, which no arc writes.
    written = np.append(labels[0, : num_tokens - 1], PAD)
    token = np.take_along_axis(p, written[None, :, None], axis=2)[..., 0]
    token[:, -1] = 0
    return {"token": token.astype("float64"),
            "blank": p[..., END].astype("float64")}  # fmt: skip


def new_transducer(num_layers=1):
    return ka.models.RNNTransducer(
        **SIZES, units=UNITS, joint_dim=UNITS, num_layers=num_layers
    )


keras.utils.set_random_seed(1)
WORD = "gnocchi"
fresh = new_transducer()
fresh.build()
inputs, labels = ids([(WORD, pronunciations.pronounce(WORD))])
log_p = fresh.log_probability(inputs["source_ids"], labels)
untrained = lattice_of(fresh, WORD)
np.testing.assert_allclose(
    np.log(posteriors(untrained)[0]), float(log_p[0]), rtol=1e-5
)
print(f"log p of {WORD}: {float(log_p[0]):.3f} by both")


# %% [markdown]
# Now it learns. `learn` trains a reader with Adam, and then measures two shares
# of the test: the words that are read without a fault, and the uneven words
# that are followed. (As in chapter 3, each sound is asked for after the right
# ones before it.) `looks` asks a reader where it stands.
#
# The transducer answers both with its $\alpha$. The probability that the next
# sound is $k$ is proportional to $\sum_j \alpha(j, i)\, p(k \mid j, i)$. The
# probability that it is written at letter $j$ is proportional to $\alpha(j,
# i)\, (1 - \varnothing(j, i))$. (The blank at END counts as a sound in both.)
# We take the likeliest letter.
#
# The next cell trains the transducer, the first of six readers. Each learns for
# four epochs, and all six share the 5 minutes of the chapter with the rest.


# %%
def fit(model, inputs, labels, epochs, batch_size=64, rate=4e-3):
    """Trains by the model's own objective if it has one."""
    epochs = 1 if FAST else epochs
    steps = epochs * -(-len(labels) // batch_size)
    adam = keras.optimizers.Adam(
        keras.optimizers.schedules.CosineDecay(rate, steps), clipnorm=1.0
    )
    if getattr(model, "objective", None):
        model.build()
        trainer = ka.training.trainer.Trainer(
            model, objective=type(model).objective
        )
        trainer.compile(adam, jit_compile=False)
        weights = (labels != PAD).astype("float32")
        trainer.fit(
            inputs, labels, batch_size, epochs, sample_weight=weights, verbose=0
        )
        return
    loss = ka.training.losses.TokenCrossEntropy()
    model.compile(adam, loss, jit_compile=False)
    model.fit(inputs, labels, batch_size, epochs, verbose=0)


def share_right(model, inputs, labels):
    """The share of texts in which each token is the likeliest one."""
    logits = model.predict(inputs, batch_size=250, verbose=0)
    is_right = (logits.argmax(axis=-1) == labels) | (labels == PAD)
    return is_right.all(axis=1).mean()


readers, right = {}, {}


def learn(name, make, epochs=4):
    """Trains a reader, and measures it."""
    keras.utils.set_random_seed(1)
    readers[name] = make()
    fit(readers[name], *ids(corpus["train"]), epochs)
    right[name] = share_right(readers[name], *ids(test))
    found = looks(readers[name], [word for word, _ in uneven])
    followed[name] = share_followed([row[:-1].argmax(axis=1) for row in found])
    print(f"{name:11} {readers[name].count_params():7,} weights, "
          f"{100 * right[name]:5.1f} % right, "
          f"{100 * followed[name]:5.1f} % followed")  # fmt: skip


def looks(model, words):
    """For each word, weights of its letters for its sounds: [T + 1, S]."""
    inputs, labels = ids(
        [(one, pronunciations.pronounce(one)) for one in words]
    )
    memory = model.encode(inputs["source_ids"])
    state, rows = model.initial_state(memory, MOST + 1), []
    for tokens in inputs["target_ids"].T:
        _, state, weights = model.step(tokens, memory, state)
        rows.append(ops.convert_to_numpy(weights))
    return [
        found[: np.count_nonzero(row), : len(word) + 1]
        for found, row, word in zip(
            np.stack(rows, axis=1), labels, words, strict=True
        )
    ]


learn("transducer", new_transducer)
if not FAST:
    assert right["transducer"] > 0.9

# %% [markdown]
# It reads, although nobody told it which letters make a sound. That is what the
# sum over all paths is for.
#
# **To play with:** [A lattice of
# paths](https://github.com/keras-attention/keras_attention/blob/main/docs/play/lattice.html).
# It has this model's lattices before, during and after training. Choose nodes,
# and see which share their paths have. In a clone, open
# `docs/play/lattice.html` with a browser.
#
# ## 5. A cursor that glides: Graves's window (2013)
#
# A year later Graves let a network write by hand: it reads a text and moves a
# pen. Its cursor needs no sum over paths, as it stands at a *real number*
# $\kappa$. It reads all letters under a bell around $\kappa$: the near ones
# much, the far ones little. It has $K$ such bells, and each can only glide
# forwards.

# %% tags=["hide-input", "alone"]
diagrams.window(path=PICTURES / "16_window.png")

# %% [markdown]
# *One step. Not drawn: the state also sets the bells' heights and widths.*
#
# $$(\hat a_i, \hat b_i, \hat\kappa_i) = W s_{i-1} + b \qquad
# \kappa_i = \kappa_{i-1} + e^{\hat\kappa_i}$$
#
# $$\phi(i, j) = \sum_{k=1}^K e^{\hat a_{ik}}\,
# e^{-e^{\hat b_{ik}} (\kappa_{ik} - j)^2} \qquad
# w_i = \sum_j \phi(i, j)\, h_j$$
#
# $s_{i-1}$ is the decoder's state, and $h_j$ the annotation of letter $j$, as
# in chapter 3. $W s_{i-1} + b$ has $3K$ numbers. The first $K$ say how high the
# bells are, the next $K$ how narrow, and the last $K$ how far they glide. The
# exponential makes all of them positive, so no step leads back. The window
# $w_i$ takes the place of the context. Its weights $\phi$ need not sum to 1.
#
# The window does not look at the letters to decide where it goes. It knows what
# it has read, through the state, and glides on from there. It begins at
# $\kappa_0 = 0$, one letter before the first.
#
# Our reader has one bell, and a plain decoder. It begins with $s_0 = 0$. Then
# $s_i = \mathrm{GRU}(s_{i-1}, [E y_{i-1}; w_i])$, and a linear layer of $[s_i;
# w_i]$ gives the logits. (Its GRUs are Keras's, with `reset_after=True`: see
# chapter 1. In the paper, $h_j$ is the bare letter, as a one-hot vector, and
# three LSTMs draw.)


# %%
class Window(keras.layers.Layer):
    """K bells that glide forwards (Graves 2013, equations 46 to 51)."""

    def __init__(self, num_bells):
        super().__init__()
        self.numbers = keras.layers.Dense(3 * num_bells)

    def call(self, s, h, places):
        """[B, D], [B, S, C], [B, K] -> w [B, C], phi [B, S], new places."""
        height, narrowness, step = ops.split(ops.exp(self.numbers(s)), 3, 1)
        places = places + step  # [B, K]
        distance = places[:, :, None] - ops.arange(h.shape[1], dtype="float32")
        bells = ops.exp(-narrowness[:, :, None] * distance**2)  # [B, K, S]
        phi = ops.sum(height[:, :, None] * bells, axis=1)
        return ops.einsum("bs,bsc->bc", phi, h), phi, places


class WindowReader(ka.models.Seq2Seq):
    """RNNsearch with a window in place of the search, and a plain output."""

    def __init__(self, num_bells):
        super().__init__()
        self.source_embedding = keras.layers.Embedding(
            SIZES["source_vocabulary_size"], SIZES["embedding_dim"]
        )
        self.target_embedding = keras.layers.Embedding(
            SIZES["vocabulary_size"], SIZES["embedding_dim"]
        )
        self.encoder = keras.layers.Bidirectional(
            keras.layers.GRU(UNITS, return_sequences=True)
        )
        self.window, self.num_bells = Window(num_bells), num_bells
        self.decoder = keras.layers.GRUCell(UNITS)
        self.output_projection = keras.layers.Dense(SIZES["vocabulary_size"])
        self.window.numbers.build((None, UNITS))
        self.decoder.build((None, SIZES["embedding_dim"] + 2 * UNITS))

    def encode(self, source_ids):
        mask = source_ids != PAD
        h = self.encoder(self.source_embedding(source_ids), mask=mask)
        # A bell over padding reads nothing.
        return h * ops.cast(mask, h.dtype)[..., None]  # [B, S, 2 D]

    def initial_state(self, memory, max_length=None):
        """s_0 = 0, the places one letter before the first, w_0 = 0, phi."""
        nothing = ops.zeros_like(memory[:, 0])
        return {
            "s": nothing[:, :UNITS],
            "places": nothing[:, : self.num_bells] - 1,
            "w": nothing,
            "phi": ops.zeros_like(memory[..., 0]),
        }

    def advance(self, embedded, memory, state):
        w, phi, places = self.window(state["s"], memory, state["places"])
        inputs = ops.concatenate([embedded, w], axis=-1)
        s, _ = self.decoder(inputs, [state["s"]])
        return {"s": s, "places": places, "w": w, "phi": phi}

    def answer(self, state):
        return self.output_projection(
            ops.concatenate([state["s"], state["w"]], axis=-1)
        )

    def step(self, token_ids, memory, state):
        state = self.advance(self.target_embedding(token_ids), memory, state)
        return self.answer(state), state, state["phi"]

    def call(self, inputs):
        memory = self.encode(inputs["source_ids"])
        states = ka.layers.unroll(
            lambda embedded, state: self.advance(embedded, memory, state),
            self.initial_state(memory),
            self.target_embedding(inputs["target_ids"]),
        )
        return self.answer(states)


# %% [markdown]
# The package's `GaussianWindow` is the same layer for all queries at once. With
# one and the same $W$ and $b$ both must give the same windows:

# %%
window, h = Window(2), rng.normal(size=(1, 5, 3)).astype("float32")
queries = rng.normal(size=(1, 4, 6)).astype("float32")
layer = ka.layers.GaussianWindow(num_components=2)
expected, expected_phi = layer(query=queries, value=h)
window.numbers.build((None, 6))
window.numbers.set_weights(layer.get_weights())
places = -np.ones((1, 2), "float32")
for i in range(4):
    w, phi, places = window(queries[:, i], h, places)
    np.testing.assert_allclose(w[0], expected[0, i], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(phi[0], expected_phi[0, i], rtol=1e-4, atol=1e-5)

# %% [markdown]
# Now the window learns: the second of the six readers that share the 5 minutes
# of the chapter.

# %%
learn("window", lambda: WindowReader(num_bells=1))
if not FAST:
    assert right["window"] > 0.8

# %% [markdown]
# ## 6. The sum moves inside: soft search (2014)
#
# Bahdanau's soft search is chapter 3's: scores for all letters, a softmax, and
# the weighted sum of the annotations. Nothing keeps it from going back.
#
# The next cell trains it: the third of the six readers that share the 5 minutes
# of the chapter.

# %%
learn("soft search", lambda: ka.models.RNNSearch(
    **SIZES, units=UNITS, readout_dim=UNITS))  # fmt: skip
if not FAST:
    assert right["soft search"] > 0.9

# %% [markdown]
# Here is the lattice beside the search, for a word of Italian. The posteriors
# of the transducer are drawn before its training and after it. Letters run to
# the right, and sounds run downwards, in all three.

# %% tags=["hide-input"]
sounds, columns = pronunciations.pronounce(WORD).split(), [*WORD, "END"]
trained = lattice_of(readers["transducer"], WORD)
with drawing.style():
    figure = drawing.Figure(figsize=(9.8, 3.4), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, p in zip(panels, (untrained, trained), strict=False):
        draw_lattice(axes, posteriors(p)[1], columns, sounds)
    image = panels[2].imshow(
        looks(readers["soft search"], [WORD])[0][:-1], cmap="Blues", vmin=0,
        vmax=1, aspect="auto",
    )  # fmt: skip
    panels[2].set_xticks(range(len(columns)), columns)
    panels[2].set_yticks(range(len(sounds)), sounds)
    panels[2].xaxis.tick_top()
    figure.colorbar(image, ax=panels[2]).set_label("attention weight")
    for axes, name in zip(
        panels,
        ("transducer, not trained", "transducer, trained", "soft search"),
        strict=True,
    ):
        axes.set_xlabel(name)
    drawing.save(figure, PICTURES / "16_two_readers.png")
figure

# %% [markdown]
# *Left: before training, the cursor may have gone nearly any way. Middle: after
# training, one path has nearly all the probability. An orange line is a sound,
# at the letter where it is written. Right: the soft search's weights.*
#
# ### Outside and inside
#
# Both readers have a sum over places. But they have it at different ends. Let
# $a_j$ be the probability that the cursor is at place $j$. The cursor stands at
# one place, whichever it is, and then speaks. So the sum is over
# *probabilities*, outside the network. The soft search first blends the places,
# and then speaks once. So the sum is over *vectors*, inside the network:
#
# $$\text{outside: } \log \sum_j a_j\, p(y \mid h_j) \qquad
# \text{inside: } \log p(y \mid c) \quad\text{with}\quad c = \sum_j a_j h_j$$
#
# Do they differ? Take two places, $h_1 = -1$ and $h_2 = 1$, and a network that
# says "yes" if $|h|$ is large. Let the cursor be at either place with
# probability 1/2. Wherever it is, it is sure of "yes". The blend is 0, a place
# that does not exist.


# %%
def yes(h):
    """p("yes" | h)."""
    return 1 / (1 + np.exp(-4 * (np.abs(h) - 0.5)))


h, a = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
outside, inside = a @ yes(h), yes(a @ h)
print(f'p("yes") outside {outside:.2f}, inside {inside:.2f}')
assert outside > 0.8 and inside < 0.2

# %% [markdown]
# The outside sum is exact: it is the probability of the text. It costs a
# softmax over the vocabulary at each of the $S (T + 1)$ nodes. The inside sum
# needs one softmax a token. For sounds that hardly matters. For a sentence of
# 50 words and a vocabulary of 30,000 it is a factor of 50, on the largest
# product of the model. The lattice has a second price, which section 11
# measures: its paths only go forwards.
#
# ## 7. A cursor that is drawn by chance: hard attention (Xu et al. 2015)
#
# Is there a cursor that may go anywhere, and still stands at one place? *Hard
# attention* takes the soft search's weights as chances, and *draws* one place
# $d$. The context is $h_d$ alone.

# %% tags=["hide-input", "alone"]
diagrams.hard_look(path=PICTURES / "16_hard_look.png")

# %% [markdown]
# *The draw has no slope. The scores learn on the dashed way: from the reward
# $R$ of the drawn place, less a number $b$.*
#
# The sum outside would have $S^T$ terms, and no lattice helps: the decoder's
# state depends on all places that were drawn before, so paths do not meet
# again. Hard attention raises a *lower bound* instead. It moves the logarithm
# into the sum:
#
# $$\sum_j a_j \log p(y \mid h_j)\ \le\ \log \sum_j a_j\, p(y \mid h_j)$$
#
# The bound is a mean over draws. So one draw is an estimate of it. Now there
# are three objectives. What does each say to the scores $e_j$, where $a =
# \mathrm{softmax}(e)$? Write $R_j = \log p(y \mid h_j)$ for the *reward* of a
# place, $\bar R = \sum_j a_j R_j$ for the mean reward, and $\tilde a_j = a_j\,
# p(y \mid h_j) / \sum_k a_k\, p(y \mid h_k)$ for the posterior of a place:
#
# | objective | its gradient by $e_j$ |
# |---|---|
# | outside | $\tilde a_j - a_j$ |
# | its bound | $a_j\, (R_j - \bar R)$ |
# | inside | $a_j\, (h_j - c) \cdot \partial \log p / \partial c$ (chapter 3) |
#
# The first two raise the places that do better than the mean. The next cell
# checks the bound, and the three gradients by finite differences. The places
# are numbers here.


# %%
def softmax(e):
    return np.exp(e - e.max()) / np.exp(e - e.max()).sum()


OBJECTIVES = {
    "outside": lambda e, h: np.log(softmax(e) @ yes(h)),
    "its bound": lambda e, h: softmax(e) @ np.log(yes(h)),
    "inside": lambda e, h: np.log(yes(softmax(e) @ h)),
}


def gradients(e, h):
    """By e, as in the table."""
    a, p = softmax(e), yes(h)
    R, c = np.log(p), a @ h
    by_c = (np.log(yes(c + TINY)) - np.log(yes(c - TINY))) / (2 * TINY)
    return {
        "outside": a * p / (a @ p) - a,
        "its bound": a * (R - a @ R),
        "inside": a * (h - c) * by_c,
    }


e, h = rng.normal(size=5), rng.normal(size=5)
for name, objective in OBJECTIVES.items():
    slopes = [
        (objective(e + nudge, h) - objective(e - nudge, h)) / (2 * TINY)
        for nudge in TINY * np.eye(5)
    ]
    np.testing.assert_allclose(gradients(e, h)[name], slopes, atol=1e-8)
    print(f"{name:9} {objective(e, h):6.3f}, gradient",
          gradients(e, h)[name].round(3))  # fmt: skip
for _ in range(1_000):
    e, h = rng.normal(size=(2, 5))
    assert OBJECTIVES["its bound"](e, h) <= OBJECTIVES["outside"](e, h) + 1e-12

# %% [markdown]
# ### One draw instead of all
#
# The gradient of the bound needs $R_j$ at every place. Training knows it at one
# place only, the one that was drawn. REINFORCE makes an estimate of that:
#
# $$\hat g_j = (R_d - b)\, (1[j = d] - a_j) \qquad d \sim a$$
#
# $1[j = d]$ is 1 for the drawn place and 0 elsewhere. If the place did better
# than the *baseline* $b$, its score goes up, and the others go down. TensorFlow
# makes $\hat g$ from $(R_d - b) \log a_d$, with the bracket as a constant. All
# weights get the gradient of $R_d$, too, with $d$ as a constant.
#
# The mean of $\hat g$ over draws is exactly $g$, the gradient of the bound, for
# any $b$. But a single $\hat g$ is noisy. Its *variance* is the mean of $|\hat
# g - g|^2$, and the baseline can lower that. With five places, all of it can be
# computed without drawing:


# %%
def estimates(e, R, b):
    """The estimate that each draw d gives: a row each."""
    return (R - b)[:, None] * (np.eye(len(e)) - softmax(e))


e, h = rng.normal(size=5), rng.normal(size=5)
a, R, g = softmax(e), np.log(yes(h)), gradients(e, h)["its bound"]
for name, b in {"none": 0.0, "the mean reward": a @ R}.items():
    rows = estimates(e, R, b)
    np.testing.assert_allclose(a @ rows, g, atol=1e-12)
    variance = a @ ((rows - g) ** 2).sum(axis=1)
    print(f"baseline {name:15} variance is {variance / (g @ g):5.1f} times "
          "the square of the gradient")  # fmt: skip

# %% [markdown]
# The soft gradient has no such noise: it is computed, not drawn. And this was a
# text of one token. In a text of $T$ tokens, a place is rewarded for *all*
# tokens from there on, since it changes the decoder's state for all of them. So
# the reward of the first look has $T - 1$ further terms, which are mostly the
# luck of later looks. Suppose that all looks have the same chances and the same
# rewards. Then these terms have the sum $(T - 1) \bar R$ on average, with the
# variance $(T - 1)\, v$, where $v$ is the variance of one reward. With $n_d =
# \sum_j (1[j = d] - a_j)^2$, the variance of the first look's $\hat g$ is
#
# $$\sum_d a_d\, n_d\, \big((R_d + (T - 1) \bar R - b)^2 +
# (T - 1)\, v\big) - |g|^2$$
#
# The next cell divides it by $|g|^2$.

# %%
v = a @ (R - a @ R) ** 2
size = ((np.eye(5) - a) ** 2).sum(axis=1)  # |1[j = d] - a|^2 of each d.
noise = collections.defaultdict(list)
print("tokens     no baseline   mean reward as baseline")
for length in (1, 5, 20, 80):
    for name, b in (("none", 0.0), ("mean", length * (a @ R))):
        known = R + (length - 1) * (a @ R) - b
        square = a @ (size * (known**2 + (length - 1) * v))
        noise[name].append((square - g @ g) / (g @ g))
    print(f"{length:6} {noise['none'][-1]:15,.0f} {noise['mean'][-1]:15,.0f}")
draws = 20_000
others = R[rng.choice(5, p=a, size=(draws, 19))].sum(axis=1)
first = rng.choice(5, p=a, size=draws)
drawn = (R[first] + others)[:, None] * (np.eye(5) - a)[first]
sampled = ((drawn - g) ** 2).sum(axis=1).mean() / (g @ g)
np.testing.assert_allclose(sampled, noise["none"][2], rtol=0.1)
assert noise["none"][-1] > 10 * noise["mean"][-1]

# %% [markdown]
# (The last lines check the table's row for 20 tokens by drawing 20,000 texts.)
# Without a baseline this noise grows with the square of the length. With a
# baseline it grows with the length.
#
# How large is it in a network? We take an RNNsearch after 50 steps, and the
# gradient of its three matrices $W$, $U$ and $v$, which make the scores. All
# gradients are those of one batch. `HardRNNSearch` draws anew each time. Its
# reward is the one above: the sum of all $\log p$ from the look on. Its
# baseline is the mean $\log p$ of a token, times the number of tokens from
# there on. The noise is the root of the variance, over 30 draws. Its unit is
# the length of the soft gradient.
#
# The 50 steps are a short training: one epoch of 3,200 words, where a reader
# has four of all words.


# %%
@tf.function(jit_compile=False)
def gradient_of(model, inputs, labels):
    """The gradient of the score's matrices by the mean loss of a batch."""
    weights = ops.cast(labels != PAD, "float32")
    with tf.GradientTape() as tape:
        if getattr(model, "objective", None):
            of_tokens = model.objective((inputs, labels, weights), True)
            of_tokens, weights = of_tokens["loss"]
            loss = ops.sum(of_tokens * weights) / ops.sum(weights)
        else:
            logits = model(inputs, training=True)
            loss = ka.training.losses.TokenCrossEntropy()(labels, logits)
    found = tape.gradient(loss, model.attention.trainable_variables)
    return ops.concatenate([ops.reshape(one, (-1,)) for one in found])


inputs, labels = ids(corpus["train"][:64])
same_size = {**SIZES, "units": UNITS, "readout_dim": UNITS}
keras.utils.set_random_seed(1)
soft = ka.models.RNNSearch(**same_size)
fit(soft, *ids(corpus["train"][:3_200]), epochs=1)  # 50 steps.
hard = ka.models.HardRNNSearch(**same_size, soft_share=0, entropy_weight=0)
hard.build()
for mine, other in zip(
    hard.trainable_variables, soft.trainable_variables, strict=True
):
    mine.assign(other)
length = np.linalg.norm(gradient_of(soft, inputs, labels))
weights = (labels != PAD).astype("float32")
losses, _ = hard.objective((inputs, labels, weights), True)["loss"]
mean_log_p = -np.sum(losses * weights) / np.sum(weights)
noise_of = {}
for name, model, baseline in (
    ("soft", soft, None),
    ("hard, baseline", hard, mean_log_p),
    ("hard, no baseline", hard, 0.0),
):
    found = []
    for _ in range(3 if FAST else 30):
        if baseline is not None:
            model.baseline.assign(baseline)
        found.append(gradient_of(model, inputs, labels))
    variance = np.sum(np.var(found, axis=0, ddof=1))
    noise_of[name] = np.sqrt(variance) / length
    print(f"{name:18} noise {noise_of[name]:8.2f}")
assert noise_of["soft"] < 1e-3
if not FAST:
    assert noise_of["hard, baseline"] > 1
    assert noise_of["hard, no baseline"] > 2 * noise_of["hard, baseline"]

# %% [markdown]
# On one batch, the soft gradient is the same each time. The noise of the hard
# one is larger than a whole soft gradient, and larger still without a baseline.
# So a step along one draw is mostly noise. Xu et al. help in three ways: the
# baseline (a running mean over batches), a small reward for chances that are
# spread out (their entropy), and soft contexts in place of drawn ones for half
# of the texts. (The package's running mean is 0.9 of the old one and 0.1 of the
# batch's mean. The reward is 0.01 of the entropy.) With these, it learns to
# read. When it reads, it does not draw: it takes the likeliest place.
#
# The next cell trains it: the fourth of the six readers that share the 5
# minutes of the chapter.

# %%
learn("hard", lambda: ka.models.HardRNNSearch(**same_size))
if not FAST:
    assert right["hard"] > 0.5

# %% [markdown]
# ## 8. A cursor that stops or goes on: monotonic attention (Raffel et al. 2017)
#
# Is there a cursor that stands at one place, and learns without draws? There is
# one that only goes forwards, and decides letter by letter. For each token the
# cursor begins at the place where it stopped before. At each letter it *stops*
# with the probability $p_{ij}$, or goes on to the next letter.

# %% tags=["hide-input", "alone"]
diagrams.stop_or_go_on(path=PICTURES / "16_stop_or_go_on.png")

# %% [markdown]
# *One token. The cursor enters where it stopped before, here at the first
# letter.*
#
# $$e_{ij} = g\, \frac{v}{|v|} \cdot \tanh(W s_{i-1} + U h_j + b) + r \qquad
# p_{ij} = \frac{1}{1 + \exp(-e_{ij} - \text{noise})}$$
#
# $$q_{ij} = (1 - p_{i,j-1})\, q_{i,j-1} + a_{i-1,j} \qquad
# a_{ij} = p_{ij}\, q_{ij} \qquad c_i = \sum_j a_{ij} h_j$$
#
# The score $e_{ij}$ is chapter 3's, with three learned extras: its size $g$ and
# its level $r$, two numbers, and the bias $b$. (At first $g$ is $1 / \sqrt n$,
# where $n$ is the width of $v$, $r$ is $-1$, and $b$ is 0.) $q_{ij}$ is the
# probability that the cursor comes to letter $j$ while it looks for token $i$.
# It comes from the letter before, where it went on, or it stood here already.
# ($q_{i0} = 0$.) $a_{ij}$ is the probability that it stops at $j$. Before the
# first token, the cursor is at the first letter: $a_{01} = 1$, and $a_{0j} = 0$
# elsewhere.
#
# Training takes the mean context $c_i$. So the sum over all paths is here, too:
# $a_{ij}$ is the sum of the probabilities of all ways to stop that end at $j$.
# But these sums are weights of vectors. So they stand *inside* the network. The
# next cell goes through all ways to stop.


# %%
def stop(before, p):
    """a_i [S], from a_{i-1} [S] and the p_ij of one token [S]."""
    stopped, comes = np.zeros_like(p), 0.0
    for j in range(len(p)):
        comes += before[j]
        stopped[j] = p[j] * comes
        comes *= 1 - p[j]
    return stopped


T, S = 3, 4
p = rng.uniform(0.1, 0.9, size=(T, S))
before, expected = np.eye(S)[0], np.zeros((T, S))
layer = ka.layers.MonotonicAttention(units=2)
for i in range(T):
    stopped = stop(before, p[i])
    of_package = layer.stop(
        before[None].astype("float32"),
        np.log(p[i] / (1 - p[i]))[None].astype("float32"),
    )
    np.testing.assert_allclose(of_package[0], stopped, atol=1e-6)
    before = stopped
    for way in itertools.combinations_with_replacement(range(S), i + 1):
        probability, last = 1.0, 0
        for token, place in enumerate(way):
            probability *= np.prod(1 - p[token, last:place]) * p[token, place]
            last = place
        expected[i, last] += probability
    np.testing.assert_allclose(stopped, expected[i])
print("p(the cursor stops at j), for token 3:", before.round(3))

# %% [markdown]
# (A cursor may pass the last letter and stop nowhere. The package's model stops
# it at END for sure.)
#
# When it reads, no mean is needed. The cursor stops at the first letter with
# $p_{ij} > 1/2$. So it never looks back, and needs at most $S + T$ scores in
# all. A soft search needs $S T$. But a cursor that stops for sure is another
# model than the mean that was trained, unless all $p_{ij}$ are near 0 or 1. The
# *noise* sees to that. It is a standard normal number, drawn for each score in
# training, and only large scores of either sign survive it.
#
# The next cell also trains the reader: the fifth of the six that share the 5
# minutes of the chapter.

# %%
asked, place = 0, 0
decisions = rng.uniform(size=(20, 30)) > 0.5  # [T, S]: stop here?
for i in range(20):
    while place < 30:
        asked += 1
        if decisions[i, place]:
            break
        place += 1
print(f"20 tokens, 30 letters: asked {asked} times; "
      f"a soft search asks {20 * 30}")  # fmt: skip
assert asked <= 20 + 30

learn("monotonic", lambda: ka.models.MonotonicRNNSearch(**same_size))
if not FAST:
    assert right["monotonic"] > 0.8

# %% [markdown]
# ## 9. Many cursors: structured attention (Kim et al. 2017)
#
# A softmax is a sum over one choice among $S$. The lattice is a sum over all
# paths. Can a sum over many choices stand *inside* the network, where attention
# stands? Kim et al. say yes. Let each letter be chosen or not, $z_j \in \{0,
# 1\}$, and let neighbours have a say in each other:

# %% tags=["hide-input", "alone"]
diagrams.chain_of_choices(path=PICTURES / "16_chain_of_choices.png")

# %% [markdown]
# *Each choice $z_j$ hears its own score and both neighbours.*
#
# $$p(z) = \frac1Z \exp\Big(\sum_{j=1}^S \theta_j z_j +
# \sum_{j=1}^{S-1} \theta'_{z_j z_{j+1}}\Big) \qquad
# c = \sum_j p(z_j = 1)\, h_j$$
#
# $\theta_j$ is the score of letter $j$, as ever. $\theta'$ is a learned table
# of $2 \times 2$ numbers, the *pairwise potentials*: how much two neighbours
# like to be 0 and 0, 0 and 1, and so on, the left one first. $Z$ is the sum of
# the exponentials, so that the probabilities of all $2^S$ choices sum to 1.
# Along a chain, choices meet as paths do. Let $\alpha_j(z)$ be the sum over all
# choices of the letters before $j$, and $\beta_j(z)$ that over all behind it,
# for $z_j = z$:
#
# $$\alpha_{j+1}(z) = \sum_{z'} \alpha_j(z')\, e^{\theta_j z' + \theta'_{z' z}}
# \qquad
# \beta_{j-1}(z) = \sum_{z'} e^{\theta'_{z z'} + \theta_j z'}\, \beta_j(z')
# \qquad \alpha_1 = \beta_S = 1$$
#
# $$p(z_j = 1) = \frac{\alpha_j(1)\, e^{\theta_j}\, \beta_j(1)}
# {\alpha_j(0)\, \beta_j(0) + \alpha_j(1)\, e^{\theta_j}\, \beta_j(1)}$$
#
# These *marginals* are the attention weights. They need not sum to 1: a chain
# may choose three letters, or none.


# %%
def chain(theta, table):
    """p(z_j = 1) [S], by the forward and the backward sum."""
    local = np.exp(np.stack([np.zeros_like(theta), theta], axis=1))  # [S, 2]
    pair = np.exp(table)
    alpha, beta = np.ones((2, len(theta), 2))
    for j in range(len(theta) - 1):
        alpha[j + 1] = (alpha[j] * local[j]) @ pair
    for j in reversed(range(1, len(theta))):
        beta[j - 1] = pair @ (local[j] * beta[j])
    both = alpha * local * beta
    return both[:, 1] / both.sum(axis=1)


def chain_by_enumeration(theta, table):
    """The same, by the sum over all choices."""
    total, chosen = 0.0, np.zeros(len(theta))
    for z in itertools.product((0, 1), repeat=len(theta)):
        z = np.array(z)
        weight = np.exp(theta @ z + table[z[:-1], z[1:]].sum())
        total, chosen = total + weight, chosen + weight * z
    return chosen / total


theta = np.array([-1.5, 2, 1.5, -0.5, 1.8, 2, -1.5, -2, 0.8, -2])
marginals = {}
for name, table in {
    "each alone": np.zeros((2, 2)),
    "neighbours like to be alike": np.diag([1.5, 1.5]),
    "at random": rng.normal(size=(2, 2)),
}.items():
    marginals[name] = chain(theta, table)
    np.testing.assert_allclose(
        marginals[name], chain_by_enumeration(theta, table)
    )
    np.testing.assert_allclose(
        ka.layers.structured_attention.chain_marginals(theta, table),
        marginals[name], atol=1e-5,
    )  # fmt: skip
    print(f"{name:27}", marginals[name].round(2))
# Without a say of neighbours each weight is the sigmoid of its score.
np.testing.assert_allclose(marginals["each alone"], 1 / (1 + np.exp(-theta)))
alone, alike = marginals["each alone"], marginals["neighbours like to be alike"]
assert alone[3] < 0.5 < alike[3] and alike[8] < 0.5 < alone[8]

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    of_names = {"softmax": softmax(theta), **marginals}
    del of_names["at random"]
    for place, (name, one) in enumerate(of_names.items()):
        axes.bar(
            np.arange(len(theta)) + 0.27 * (place - 1), one, 0.25, label=name,
            color=drawing.COLORS[place],
        )  # fmt: skip
    axes.set_xticks(range(len(theta)), [f"{one:g}" for one in theta])
    axes.set_xlabel("places, and their scores")
    axes.set_ylabel("weight")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "16_structured.png")
figure

# %% [markdown]
# *A softmax chooses one place, and its weights sum to 1. A chain chooses any
# number.* Where neighbours like to be alike, the place with the score -0.5 is
# taken along by those beside it, and the lonely one with 0.8 is doubted.
#
# What is that worth? Let the truth be a chain. There is a row of 20 switches.
# The first is on or off, with the same chance. Each next one is like the one
# before it with probability 0.9. We see each switch $z_j$ through noise: $x_j =
# z_j + \epsilon_j$, where $\epsilon_j$ is normal with standard deviation 1.
# What is the best that anyone can say about $z_j$ who knows the whole row $x$?
# By Bayes' rule, it is the marginal of a chain. Its score is $\theta_j = x_j -
# 1/2$, the logarithm of how much likelier $x_j$ is if the switch is on. Its
# table $\theta'$ holds $\log 0.9$ for equal neighbours and $\log 0.1$ for
# others. Who knows $x_j$ alone can say the sigmoid of $\theta_j$ at best.
#
# Now let the layer *learn* this, from noisy rows and the true $z$. It has six
# numbers: the table, and $u$ and $w$ of $\theta_j = u x_j + w$. The table
# begins with zeros, so the layer begins as a sigmoid. The loss of the best is
# known, and the layer should come down to it.
#
# The next cell trains the six numbers, in 200 steps.

# %%
STAY, PLACES = 0.9, 20


def switched(count):
    """Noisy rows x and the truth z: [count, PLACES] each."""
    switches = rng.uniform(size=(count, PLACES)) > STAY
    switches[:, 0] = rng.uniform(size=count) > 0.5
    z = np.cumsum(switches, axis=1) % 2
    x = z + rng.normal(size=z.shape)
    return x.astype("float32"), z.astype("float32")


def loss_of(p, z):
    return -np.mean(z * np.log(p) + (1 - z) * np.log(1 - p))


x, z = switched(200 if FAST else 2_000)
held_out_x, held_out_z = switched(2_000)
bayes = np.log([[STAY, 1 - STAY], [1 - STAY, STAY]])
known = {
    "each alone": loss_of(1 / (1 + np.exp(0.5 - held_out_x)), held_out_z),
    "the best": loss_of(
        np.stack([chain(row - 0.5, bayes) for row in held_out_x]), held_out_z
    ),
}
table, line = tf.Variable(tf.zeros((2, 2))), tf.Variable([1.0, 0.0])
adam = keras.optimizers.Adam(0.05)


@tf.function(jit_compile=False)
def improve():
    with tf.GradientTape() as tape:
        p = ka.layers.structured_attention.chain_marginals(
            line[0] * x + line[1], table
        )
        loss = ops.mean(ops.binary_crossentropy(z, p))
    variables = [table, line]
    adam.apply(tape.gradient(loss, variables), variables)
    return loss


for _ in range(10 if FAST else 200):
    improve()
learned = np.stack(
    [chain(line[0] * row + line[1], table.numpy()) for row in held_out_x]
)
known["learned"] = loss_of(learned, held_out_z)
for name, value in known.items():
    print(f"{name:10} loss {value:.3f}")
assert known["the best"] < known["each alone"] - 0.1
if not FAST:
    assert abs(known["learned"] - known["the best"]) < 0.01

# %% [markdown]
# The neighbours' say is worth much, and six numbers learn it: their loss comes
# within 0.01 of the best. (The package's `StructuredRNNSearch` is an RNNsearch
# with the chain in place of the softmax. Its weights are divided by their sum.)
#
# ## 10. What they have learned
#
# One reader is missing: an RNNsearch whose cursor moves along the diagonal.
# (Its $S$ counts END, too.) Then all readers stand in one table. Its third
# column says how sure they are: the greatest weight of a row, as a mean over
# all sounds. (A window's weights need not sum to 1, so they are divided by
# their sum first.) The last column is the share of words in which the greatest
# weight ever goes back to an earlier letter.
#
# The next cell trains the diagonal reader: the last of the six readers that
# share the 5 minutes of the chapter.

# %%
learn("diagonal", lambda: ka.models.DiagonalRNNSearch(
    **same_size, ratio=float(ratio)))  # fmt: skip

greatest, goes_back = {}, {}
for name, model in readers.items():
    rows = [row[:-1] for row in looks(model, [word for word, _ in uneven])]
    rows = [row / (row.sum(axis=1, keepdims=True) + 1e-30) for row in rows]
    greatest[name] = np.mean([np.mean(row.max(axis=1)) for row in rows])
    goes_back[name] = np.mean(
        [(np.diff(row.argmax(axis=1)) < 0).any() for row in rows]
    )
print("reader        right  followed  greatest weight  goes back")
for name in readers:
    print(
        f"{name:11} {100 * right[name]:5.1f} %  {100 * followed[name]:6.1f} %"
        f"  {greatest[name]:15.2f}  {100 * goes_back[name]:7.1f} %"
    )
for name in ("window", "monotonic", "diagonal"):
    assert goes_back[name] == 0
for name in ("hard", "monotonic", "diagonal"):
    np.testing.assert_allclose(greatest[name], 1, atol=1e-5)
if not FAST:
    assert followed["transducer"] > 0.9 and right["diagonal"] > 0.5

# %% [markdown]
# This is where they look while they read one word. A frame marks the letters of
# a sound. (A window's weights may be above 1. They are as dark as a 1.)

# %%
ka.plotting.attention_heat_map(
    columns,
    sounds,
    [looks(model, [WORD])[0][:-1] for model in readers.values()],
    path=PICTURES / "16_readers.png",
    names=list(readers),
    links=[(j, i) for i, places in enumerate(letters_of_sounds(WORD))
           for j in places],
    axis_names=("letters", "sounds"),
)  # fmt: skip

# %% [markdown]
# All six read most words without a fault. So the first column hardly tells them
# apart, and the second one does. The diagonal follows few uneven words. Yet its
# reader is right in nearly all words, so in most uneven ones, too. How can that
# be? The encoder reads in both directions, so each annotation has seen the
# whole word. A letter can be carried to the place where the cursor will be.
# Compare the columns of hard attention: its cursor is sure of its place, and
# that place is often another letter's.
#
# The transducer follows more than nine of ten uneven words. Each reader was
# trained once, so the order of the rows between says little. Nothing in the
# loss asks for more than the right sound. **Whoever reads right need not look
# right.**
#
# ## 11. What no path can do
#
# German turns numbers round: twenty-one is "einundzwanzig", one-and-twenty. Let
# there be eight tens and eight ones, and all 64 pairs of them. The source is a
# tens word and a ones word. The target is the same two, the ones first.
#
# Let each step know its own token alone: no LSTM reads the source
# (`num_layers=0`). Then every path has to guess one of the two words. If the
# ones are written while the cursor is at the tens, the ones are a guess. One of
# eight is right, and the loss is $\log 8$. If they are written later, the
# cursor has left the tens, and the tens are the guess. Let the cursor leave $k$
# of the tens words in this way. Each of them is then guessed with the
# probability $1/k$, and the loss is $\log k$. At the others the ones are the
# guess. So the mean loss of a text is $(k \log k + (8 - k) \log 8) / 8$ at
# best. No training gets a lattice below the least of these. And at most 15 of
# the 64 texts can be right: the eight of one tens word, and one of each other.
#
# The next cell trains three cursors and a soft search, for 300 steps each, and
# prints a row when each is ready.

# %%
NUMBER = 8
tens = END + 1 + np.arange(NUMBER)
pairs = np.array([*itertools.product(tens, tens + NUMBER)])  # [64, 2]
k = np.arange(1, NUMBER + 1)
least = min(k * np.log(k) + (NUMBER - k) * np.log(NUMBER)) / NUMBER
print(f"the least loss of any path: {least:.3f} nats")


def learn_pairs(model, answers):
    """The loss of a text in nats, and the share of texts that are right."""
    inputs = {
        "source_ids": np.pad(pairs, ((0, 0), (0, 1)), constant_values=END),
        "target_ids": np.pad(answers, ((0, 0), (1, 0)), constant_values=START),
    }
    labels = np.pad(answers, ((0, 0), (0, 1)), constant_values=END)
    # All pairs are one batch, and come 300 times.
    times = 10 if FAST else 300
    many = {name: np.tile(one, (times, 1)) for name, one in inputs.items()}
    fit(model, many, np.tile(labels, (times, 1)), 1, len(pairs), rate=1e-2)
    log_p = ops.log_softmax(model.predict(inputs, verbose=0))
    log_p = ops.convert_to_numpy(log_p)
    log_p = np.take_along_axis(log_p, labels[..., None], axis=-1)
    return -log_p.sum(axis=(1, 2)).mean(), share_right(model, inputs, labels)


few = {"vocabulary_size": END + 1 + 2 * NUMBER, "embedding_dim": 32}


def cursor(num_layers):
    return ka.models.RNNTransducer(
        **few, units=64, joint_dim=64, num_layers=num_layers
    )


turned = {}
for name, answers, make in (
    ("a cursor copies", pairs, lambda: cursor(0)),
    ("a cursor turns round", pairs[:, ::-1], lambda: cursor(0)),
    ("the same with an LSTM", pairs[:, ::-1], lambda: cursor(1)),
    ("soft search turns round", pairs[:, ::-1],
     lambda: ka.models.RNNSearch(**few, units=64, readout_dim=32)),
):  # fmt: skip
    keras.utils.set_random_seed(1)
    turned[name] = learn_pairs(make(), answers)
    loss, share = turned[name]
    print(f"{name:24} loss {loss:.3f}, {100 * share:5.1f} % right")
assert turned["a cursor turns round"][0] > least - 1e-4
if not FAST:
    assert turned["a cursor turns round"][1] <= (2 * NUMBER - 1) / NUMBER**2
    for name in turned.keys() - {"a cursor turns round"}:
        assert turned[name][1] == 1

# %% [markdown]
# The cursor cannot turn two words round, and an LSTM in front of it can. The
# LSTM carries the ones to the step of the tens, before the cursor starts. But
# then the cursor's place no longer says where a word came from. And how far can
# an LSTM carry words? Chapter 2 has measured that.
#
# The soft search turns the pairs round, too. Its encoder is recurrent here. But
# it does not need that: it may look at the ones first and at the tens after
# that. (With single words for annotations it had all 64 pairs right, as the
# [experiments](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/pronunciations.md#what-monotone-paths-cannot-do)
# tell. Monotonic attention had 8.)
#
# What about the others?
#
# - The hidden Markov model may jump back, so its tables learn to turn round.
# - The largest weight of a single bell cannot go back. Letter $j + 1$ has more
#   weight than letter $j$ if and only if $\kappa_i > j + 1/2$. And $\kappa$
#   only grows, so what holds once holds ever after.
# - *Two* bells can turn two words round. One waits at the second word, the
#   other at the first, and their heights say whose turn it is.
#
# The next cell checks all three.

# %%
# The words of the source are 0 ... 7 and 8 ... 15, those of the target too.
rows = [(row, row[::-1]) for row in pairs - END - 1]
t, jumps, _ = learn_tables(rows, rounds=10)
for word, answer in rows:
    steps = step_matrix(jumps, 2)
    _, where, _ = hidden_markov(t[word][:, answer].T, steps)
    assert where.argmax(axis=1).tolist() == [1, 0]

for _ in range(100):  # One bell, four letters, ten steps of any size.
    kappa = np.cumsum(rng.exponential(0.5, size=10)) - 1
    phi = np.exp(-rng.exponential(size=(10, 1))
                 * (kappa[:, None] - np.arange(4)) ** 2)  # fmt: skip
    assert ((phi[:, 1:] > phi[:, :-1])
            == (kappa[:, None] > np.arange(3) + 0.5)).all()  # fmt: skip
    assert (np.diff(phi.argmax(axis=1)) >= 0).all()

two_bells = Window(num_bells=2)
two_bells.numbers.build((None, 1))
# Of both bells: heights that follow the state, equal narrowness, tiny steps.
two_bells.numbers.set_weights(
    [np.array([[-5.0, 5, 0, 0, 0, 0]]), np.array([0.0, 0, 2, 2, -9, -9])]
)
h, places, looked = np.eye(2)[None].astype("float32"), np.array([[1.0, 0]]), []
for s in (-1.0, 1.0):
    _, phi, places = two_bells(np.array([[s]]), h, places)
    looked.append(int(np.argmax(phi[0])))
print("two bells look at words", looked)
assert looked == [1, 0]

# %% [markdown]
# ## What to take away
#
# - A sum over all paths of a cursor takes one short sum a node: the forward
#   algorithm. The gradient by the logarithm of an arc is the arc's posterior.
# - This sum stands outside the network, over texts. It is exact, it goes
#   forwards only, and it costs a softmax a node.
# - Attention's sum stands inside, over vectors. It costs one softmax a token.
#   It may go anywhere, also to blends that are no place.
# - A place that is drawn needs neither sum. It pays with the noise of its
#   gradient, and a baseline takes most of that away.
# - Monotonic attention trains with a sum over places and reads with a cursor
#   that needs $S + T$ scores. Structured attention sums over many choices at
#   once.
# - No forward path turns words round. That is what Bahdanau gained: translation
#   took the soft search. In speech, whose sounds are in order, the transducer
#   stayed.
# - Graves's window is a model of the package, too: `ka.models.WindowRNNSearch`,
#   or `keras-attention train --model window_rnnsearch`.
#
# ## Your turn
#
# Products of many probabilities get too small for a computer, so the package
# computes $\log \alpha$. Write the forward algorithm with logarithms. A product
# becomes a sum, and a sum of two becomes `np.logaddexp`.

# %% tags=["alone"]
import your_turn


def log_forward(log_token, log_blank):
    """log y(j, i) and log blank(j, i), each [S, T + 1] -> log p(y | x)."""
    log_alpha = np.full(log_token.shape, -np.inf)
    log_alpha[0, 0] = 0
    for j, i in np.ndindex(log_alpha.shape):
        if j:
            log_alpha[j, i] = ...
        if i:
            log_alpha[j, i] = ...
    return ...


your_turn.check(16, log_forward)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def log_forward(log_token, log_blank):
#     log_alpha = np.full(log_token.shape, -np.inf)
#     log_alpha[0, 0] = 0
#     for j, i in np.ndindex(log_alpha.shape):
#         if j:
#             log_alpha[j, i] = log_alpha[j - 1, i] + log_blank[j - 1, i]
#         if i:
#             by_token = log_alpha[j, i - 1] + log_token[j, i - 1]
#             log_alpha[j, i] = np.logaddexp(log_alpha[j, i], by_token)
#     return log_alpha[-1, -1] + log_blank[-1, -1]
#
#
# your_turn.check(16, log_forward)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: How many paths lead through a lattice of 4 steps and 2 tokens?
# - b: A lattice has 2 steps and 1 token, and all arcs have the probability
#   $\frac12$. What is the probability of the text?
# - c: In this lattice the text is known. How likely is it that its token was
#   written at step 1?

# %% tags=["alone"]
your_turn.quiz(16, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: $\binom{4 + 2 - 1}{2} = 10$.
# - b: Each of two paths has one token and two blanks.
# - c: Both paths are equally likely.
#
# ```python
# your_turn.quiz(16, a=10, b=2 * 0.5**3, c=1 / 2)
# ```
#
# </details>
#
# ## Exercises
#
# 1. What are the posteriors of a lattice whose arcs all have the same
#    probability?
#
# <details><summary>Solution</summary>
#
# All paths have the same number of arcs, $S$ blanks and $T$ tokens. So all are
# equally probable, and the posterior of an arc is the share of the paths that
# take it.
#
# ```python
# even = {name: np.full((4, 4), 0.5) for name in ("token", "blank")}
# even["token"][:, -1] = 0
# _, taken = posteriors(even)
# first = [path[0] for path in paths(4, 3)]
# share = first.count(0) / math.comb(6, 3)
# np.testing.assert_allclose(taken["token"][0, 0], share)
# ```
#
# </details>
#
# 2. Sum the posteriors of one token over all steps. What do they give, and why?
#
# <details><summary>Solution</summary>
#
# Each token is written once, at some step. So the posteriors of a token sum to
# 1 over the steps.
#
# ```python
# _, taken = posteriors(draw(7, 5))
# np.testing.assert_allclose(taken["token"].sum(axis=0)[:-1], 1)
# ```
#
# </details>
#
# 3. Which baseline makes the estimate of section 7 least noisy? Is it the mean
#    reward?
#
# <details><summary>Solution</summary>
#
# Section 7 has the variance. With $T = 1$ it is $\sum_d a_d n_d (R_d - b)^2 -
# |g|^2$. That is a parabola in $b$, and it is least at $b = \sum_d a_d n_d R_d
# / \sum_d a_d n_d$. This is a mean reward, too, but draws with large gradients
# weigh more.
#
# ```python
# a = np.array([0.1, 0.2, 0.7])
# e, R = np.log(a), np.array([-1.0, -3.0, -0.5])
# g = a * (R - a @ R)
# n = ((np.eye(3) - a) ** 2).sum(axis=1)
# best = a * n @ R / (a @ n)
# variances = [
#     a @ ((estimates(e, R, b) - g) ** 2).sum(axis=1)
#     for b in (best, a @ R, best - 0.01, best + 0.01)
# ]
# assert min(variances) == variances[0]
# ```
#
# </details>
#
# 4. Let all $p_{ij}$ of monotonic attention be 1/2, for a text of many letters.
#    How far does the cursor go for each token, on average?
#
# <details><summary>Solution</summary>
#
# It stops at once with probability 1/2, one letter on with 1/4, and so on. The
# mean is $\sum_n n / 2^{n+1} = 1$: one letter a token.
#
# ```python
# at = np.eye(200)[0]
# for _ in range(20):
#     at = stop(at, np.full(200, 0.5))
# np.testing.assert_allclose(at @ np.arange(200), 20)
# ```
#
# </details>
#
# ## References
#
# - Vogel et al. 1996, [HMM-Based Word Alignment in Statistical
#   Translation](https://aclanthology.org/C96-2141)
# - Graves 2012, [Sequence Transduction with Recurrent Neural
#   Networks](https://arxiv.org/abs/1211.3711)
# - Graves 2013, [Generating Sequences With Recurrent Neural
#   Networks](https://arxiv.org/abs/1308.0850)
# - Bahdanau et al. 2014, [Neural Machine Translation by Jointly Learning to
#   Align and Translate](https://arxiv.org/abs/1409.0473)
# - Xu et al. 2015, [Show, Attend and Tell](https://arxiv.org/abs/1502.03044)
# - Kim et al. 2017, [Structured Attention
#   Networks](https://arxiv.org/abs/1702.00887)
# - Raffel et al. 2017, [Online and Linear-Time Attention by Enforcing Monotonic
#   Alignments](https://arxiv.org/abs/1704.00784)
