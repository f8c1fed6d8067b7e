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
# # 18. Learning without pairs, and saying what matters
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/18_without_pairs.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# So far a translator learned from pairs: a text, and what is right to write.
# Somebody had to write both. This chapter asks two questions about that.
#
# *What if there are few pairs?* Texts alone are easy to find. A network can
# learn to read and write from them before it sees the first pair. We measure
# how many pairs that is worth.
#
# *What if the right text is not the point?* A summary can be good in many ways.
# Cross-entropy asks for one of them, word by word. Paulus et al. (2017) report
# that networks which learn long summaries in this way say things twice. We
# build their summariser, which keeps account of where it has looked and what it
# has said. Then we train by one mark for a whole text.
#
# 1. A translator from a language to the same language.
# 2. How many pairs that is worth, with two learning curves.
# 3. A language model in its place.
# 4. A summariser with two attentions that know its past.
# 5. A mark for a whole text, and its gradient.
#
# Takes about 6 minutes on two cores, with 45 trainings: small ones, from three
# seeds each. The text before each cell that trains says how many, and a line is
# printed when one is ready. Pictures are shown here and kept in the folder
# `pictures`. Vectors are columns in the equations of this chapter, as in $W f$,
# and rows in the code. In a map a row asks (a word that is written) and a
# column is asked (a word that is read).

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import os
import pathlib

import diagrams
import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.data.embedded import mentions, phrases
from keras_attention.models import self_critical
from keras_attention.plotting import drawing
from keras_attention.tokens import END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
BATCH = 64
# All that is trained here is trained for each of these.
SEEDS = (1,) if FAST else (1, 2, 3)
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")

# %% [markdown]
# ## Texts without partners
#
# The texts are the numbers below ten thousand, spelt in English and in French.
# `phrases` spells them. A token is a word, and hyphens are spaces.

# %%
LARGEST = 10_000


def tokens(value, language):
    """The words of a number: 21 is "twenty" and "one"."""
    text = phrases.words(value, "cardinal", language)
    return text.replace("-", " ").replace(",", "").split()


texts = {
    language: [tokens(value, language) for value in range(LARGEST)]
    for language in ("en", "fr")
}
words = sorted({w for rows in texts.values() for row in rows for w in row})
number_of = {word: number for number, word in enumerate(words, END + 1)}
V = END + 1 + len(words)
LENGTH = 1 + max(len(row) for rows in texts.values() for row in rows)
# Ids [10000, LENGTH]: the words, END, padding.
ids = {
    language: keras.utils.pad_sequences(
        [[*(number_of[word] for word in row), END] for row in rows],
        LENGTH, padding="post", value=PAD,
    )
    for language, rows in texts.items()
}  # fmt: skip
print(*texts["en"][2471], "=", *texts["fr"][2471])
print(f"{len(words)} words in both languages, at most {LENGTH - 1} in a number")

# %% [markdown]
# The numbers are dealt to four heaps, and each number goes to one heap only:
#
# | heap | numbers | what we know of them |
# |---|---|---|
# | English texts | 4,000 | the English text |
# | French texts | 4,000 | the French text |
# | pairs | 240 at most | both |
# | test | 500 | both, and no network learns from them |
#
# So no text of the first heap has its translation in the second one. There are
# no hidden pairs.


# %%
def heaps(seed):
    """Numbers of the English texts, the French ones, the pairs, the test."""
    order = np.random.default_rng(seed).permutation(LARGEST)
    return order[:4000], order[4000:8000], order[8000:8240], order[8240:8740]


# %% [markdown]
# ## From a language to the same language
#
# The *sequence autoencoder* (Dai and Le 2015) is chapter 2's translator, with
# the source as its target. The encoder reads a text $x$ into one vector $v$.
# The decoder starts from $v$ and writes the text again:

# %% tags=["hide-input"]
text = ("vingt", "et", "un", "END")
diagrams.encoder_decoder(text, text, PICTURES / "18_autoencoder.png")

# %% [markdown]
# *Chapter 2's picture, with one text at both ends. We take its first model:
# without the dashed arrows, and with an encoder that reads backwards.*
#
# $$\log p(x \mid v) = \sum_{t=1}^{T} \log p(x_t \mid v, x_1, \dots, x_{t-1})$$
#
# Training raises the sum of these over all texts. ($v$ holds the LSTM's two
# last states, as in chapter 2.)
#
# To copy is no use by itself. But everything that the decoder has to know must
# go through $v$, so the encoder learns to put a text into a vector, and the
# decoder learns to take it out. A translator must do the same. Only one thing
# is missing: the vector of "twenty-one" should make the decoder write "vingt et
# un".
#
# (Attention may be in the way: a decoder that looks at the source can copy word
# by word, and $v$ may stay empty.)
#
# One model does all trainings of this part, and is given other weights before
# each. `train` is plain: it draws batches, and lowers the learning rate in ten
# steps.

# %%
model = ka.models.LSTMEncoderDecoder(
    V, embedding_dim=64, units=128, num_layers=1
)
model.build()
optimizer = keras.optimizers.Adam(global_clipnorm=1.0)
model.compile(optimizer, ka.training.losses.TokenCrossEntropy())
RATE, EPOCHS = 4e-3, 10


def fresh_weights(seed):
    """Weights as a training begins with them."""
    keras.utils.set_random_seed(seed)
    other = ka.models.LSTMEncoderDecoder(**model.config)
    other.build()
    return other.get_weights()


def shifted(labels):
    """What the decoder reads: START, and each token but the last."""
    return np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=START)


def train(weights, source_ids, labels, updates, seed):
    """The weights after some updates of `weights`."""
    model.set_weights(weights)
    for variable in optimizer.variables:
        variable.assign(tf.zeros_like(variable))  # No memory of other runs.
    generator = np.random.default_rng(seed)
    rows, count = BATCH * updates // EPOCHS, len(labels)
    passes = [generator.permutation(count) for _ in range(1 + rows // count)]
    chosen = np.concatenate(passes)[:rows]
    inputs = {
        "source_ids": source_ids[chosen],
        "target_ids": shifted(labels[chosen]),
    }
    lower = keras.callbacks.LearningRateScheduler(
        lambda epoch, _: RATE * (1 - epoch / EPOCHS)
    )
    model.fit(
        inputs, labels[chosen], BATCH, EPOCHS, callbacks=[lower], verbose=0
    )
    return model.get_weights()


@tf.function
def greedy(source_ids):
    """What the model writes, [B, LENGTH]: each time the likeliest token."""
    return self_critical.write(model, source_ids, LENGTH)


def share_right(weights, source_ids, labels):
    """The share of texts without a mistake."""
    model.set_weights(weights)
    written = greedy(tf.constant(source_ids)).numpy()
    return float(np.mean((written == labels).all(axis=1)))


# %% [markdown]
# First stage: the autoencoder learns from the English texts and the French
# texts, mixed. It is told no language. Here is how many of the test numbers it
# writes again without a mistake. It has seen none of them in either language.
#
# The next cell trains three autoencoders, one a seed, with 1,500 updates each.
# They are three of the 45 trainings that share the 6 minutes of the chapter.

# %%
PRE_TRAINING = 20 if FAST else 1500
fresh, autoencoder = {}, {}
for seed in SEEDS:
    english, french, _, test = heaps(seed)
    alone = np.concatenate([ids["en"][english], ids["fr"][french]])
    fresh[seed] = fresh_weights(seed)
    autoencoder[seed] = train(fresh[seed], alone, alone, PRE_TRAINING, seed)
    again = [
        share_right(autoencoder[seed], rows[test], rows[test])
        for rows in ids.values()
    ]
    print(
        f"seed {seed}: English {again[0]:.1%}, French {again[1]:.1%}",
        "are written again",
    )
    assert FAST or min(again) > 0.9

# %% [markdown]
# ## How many pairs is that worth?
#
# Second stage: the same model learns to translate, from English to French, from
# few pairs. It begins either with fresh weights or with those of the
# autoencoder. Everything else is the same: the pairs, their order, and the
# number of updates.
#
# A fair comparison needs one more thing. A training that was stopped too early
# only shows which one *begins* faster. So the next cell also tries the pairs
# that were trained on, and asserts that nearly all of them are right. Then the
# test shows what a network makes of pairs that it knows.
#
# These are 24 of the 45 trainings that share the 6 minutes of the chapter: four
# numbers of pairs, two beginnings and three seeds. Each has 400 updates.

# %%
COUNTS = (30, 240) if FAST else (30, 60, 120, 240)
UPDATES = 20 if FAST else 400


def translate(weights, count, seed):
    """(share of its own pairs right, share of the test) after training."""
    *_, pairs, test = heaps(seed)
    own = pairs[:count]
    trained = train(weights, ids["en"][own], ids["fr"][own], UPDATES, seed)
    return [
        share_right(trained, ids["en"][rows], ids["fr"][rows])
        for rows in (own, test)
    ]


right = {}
print("pairs    fresh  autoencoder   (right of the test, one line a seed)")
for seed in SEEDS:
    for count in COUNTS:
        for name, weights in (("fresh", fresh), ("autoencoder", autoencoder)):
            own, tested = translate(weights[seed], count, seed)
            right[name, seed, count] = tested
            assert FAST or own > 0.97
        alone, helped = (
            right[name, seed, count] for name in ("fresh", "autoencoder")
        )
        print(f"{count:5}   {alone:6.1%}  {helped:11.1%}")
        assert FAST or helped > alone

# %% [markdown]
# Both know their own pairs by heart. With each number of pairs and with each
# seed, the autoencoder's translator has more of the test right.
#
# "More right" is not yet an answer to the question: how many pairs is that
# worth? For this, read the picture from left to right, not upwards. Choose a
# height, such as half of the test right. Each curve says how many pairs it
# needs to get there. The distance between the curves is the answer. The axis is
# logarithmic, so a distance is a factor.

# %%
HEIGHTS = (0.2, 0.5)


def pairs_needed(name, seed, height):
    """How many pairs lift the curve to a height, by straight lines."""
    shares = [right[name, seed, count] for count in COUNTS]
    assert FAST or (shares == sorted(shares) and shares[-1] > height)
    return float(np.exp(np.interp(height, shares, np.log(COUNTS))))


needed = {
    (height, seed): [
        pairs_needed(name, seed, height) for name in ("fresh", "autoencoder")
    ]
    for height in HEIGHTS
    for seed in SEEDS
}
for (height, seed), (alone, helped) in needed.items():
    print(
        f"{height:.0%} right, seed {seed}: {alone:.0f} pairs alone, "
        f"{helped:.0f} with the autoencoder: a factor of {alone / helped:.1f}"
    )
    assert FAST or 1.2 < alone / helped < 2


# %% tags=["hide-input"]
def draw_gap():
    """Two learning curves, a thin line a seed, and their gap."""
    names = {"autoencoder": "first an autoencoder", "fresh": "fresh weights"}
    with drawing.style():
        figure = drawing.Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        for color, (name, label) in zip(
            drawing.COLORS, names.items(), strict=False
        ):
            rows = [
                [100 * right[name, seed, count] for count in COUNTS]
                for seed in SEEDS
            ]
            for row in rows:
                axes.plot(COUNTS, row, color=color, linewidth=0.8, alpha=0.6)
            means = np.mean(rows, axis=0)
            axes.plot(COUNTS, means, "o-", color=color, label=label)
        for height in HEIGHTS:
            rows = [needed[height, seed] for seed in SEEDS]
            alone, helped = np.exp(np.mean(np.log(rows), axis=0))
            axes.annotate(
                "", (alone, 100 * height), (helped, 100 * height),
                arrowprops={"arrowstyle": "<->", "color": drawing.INK},
            )  # fmt: skip
            axes.text(
                1.15 * alone, 100 * height, f"{alone / helped:.1f} times",
                va="center",
            )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_xticks(COUNTS, COUNTS)
        axes.set(
            xlabel="pairs", ylabel="right of the test, in %", ylim=(0, 100)
        )
        drawing.finish(axes)
        drawing.save(figure, PICTURES / "18_worth.png")
    return figure


draw_gap()

# %% [markdown]
# *Thin lines are single seeds, and thick lines their means. The arrows are the
# gaps at two heights, with their mean factors.*
#
# With each seed and at both heights, the texts are worth a factor between 1.2
# and 2: a hundred pairs do what 120 to 200 do without them. One thing texts
# cannot teach is what pairs alone tell: that "vingt" is "twenty".
#
# ## A language model in its place
#
# The paper tries a second way. A *language model* says how probable each next
# word is, and knows no source:
#
# $$\log p(x) = \sum_{t=1}^{T} \log p(x_t \mid x_1, \dots, x_{t-1})$$
#
# A decoder does just that, and starts from a vector $v$ besides. So a trained
# language model can be the beginning of a decoder. The encoder begins fresh.
#
# To get a language model we need no new class. We take the source away: our
# model reads END alone, whatever it has to write. Then $v$ is always the same
# and says nothing.
#
# The next cell trains three language models with 1,500 updates each, and from
# each a translator with 400. They are six of the 45 trainings that share the 6
# minutes of the chapter.

# %%
DECODER = ("target_embedding/", "decoder_", "output_projection/")


def of_decoder(trained, others):
    """The decoder's weights from the first list, the rest from the second."""
    return [
        one if any(part in variable.path for part in DECODER) else other
        for variable, one, other in zip(
            model.weights, trained, others, strict=True
        )
    ]


COUNT = COUNTS[-2] if len(COUNTS) > 2 else COUNTS[0]
print(f"{COUNT} pairs: fresh, language model, autoencoder")
for seed in SEEDS:
    english, french, _, _ = heaps(seed)
    alone = np.concatenate([ids["en"][english], ids["fr"][french]])
    nothing = np.full_like(alone, PAD)
    nothing[:, 0] = END
    trained = train(fresh[seed], nothing, alone, PRE_TRAINING, seed)
    begin = of_decoder(trained, fresh[seed])
    own, right["language model", seed, COUNT] = translate(begin, COUNT, seed)
    row = [
        right[name, seed, COUNT]
        for name in ("fresh", "language model", "autoencoder")
    ]
    print(f"seed {seed}:", *(f"{share:6.1%}" for share in row))
    assert FAST or (own > 0.97 and row[1] < row[0] < row[2])

# %% [markdown]
# The autoencoder is ahead with each seed. It has trained both halves of the
# translator, and the language model one. Here the language model is even behind
# fresh weights. We have not measured why. It has never had a source to listen
# to, so its decoder may first have to unlearn to do without.
#
# On longer texts the autoencoder was ahead, too. The package's phrases (dates,
# amounts, large numbers) were tried with 500 pairs and a short training. With
# the autoencoder, 38, 34 and 31 of 500 test phrases were right. With fresh
# weights or a language model it was none
# ([experiments](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/pre_training.md)).
#
# Dai and Le classify texts, with a label in place of a translation, so their
# language model becomes the reader. On reviews of films both ways help, and the
# autoencoder helps more. History went the other way. GPT and BERT are language
# models, far larger, with attention in place of $v$.
#
# The package does the two stages with two commands, on your own texts:
#
# ```sh
# keras-attention train --model lstm_encoder_decoder \
#     --corpus TEXTS --source en --target en --output runs/autoencoder
# keras-attention train --init runs/autoencoder \
#     --corpus PAIRS --source en --target fr --output runs/translator
# ```
#
# The guide [Pre-train on texts
# alone](https://github.com/keras-attention/keras_attention/blob/main/docs/guides/pre_train.md)
# says more, also about language models.
#
# ## A summary leaves things out
#
# The second half needs another task. A text has twelve words. Some are invented
# names, and some are "um". The summary has the names, in their order. There are
# only eight names, so the same name comes again and again. Who copies such a
# text and looks for the name that was written last, finds it at several places.

# %%
NAMES = mentions.names()[:8]
FILLER, READ = END + 1, 12
NUM_IDS = FILLER + 1 + len(NAMES)


def draw_texts(count, seed):
    """Texts and their summaries, ids [B, 13] each: words, END, padding."""
    generator = np.random.default_rng(seed)
    names = generator.integers(FILLER + 1, NUM_IDS, size=(count, READ))
    is_filler = generator.random((count, READ)) < 0.3
    text = np.where(is_filler, FILLER, names)
    names_first = np.argsort(is_filler, axis=1, kind="stable")
    said = np.take_along_axis(names, names_first, axis=1)
    num_said = READ - is_filler.sum(axis=1, keepdims=True)
    at_end = ((0, 0), (0, 1))
    source_ids = np.pad(text, at_end, constant_values=END)
    labels = np.pad(said, at_end)
    places = np.arange(READ + 1)
    labels[places == num_said] = END
    labels[places > num_said] = PAD
    return source_ids, labels


def as_words(row):
    """The words of a row of ids."""
    names = ["um", *NAMES]
    return [names[number - FILLER] for number in row if number > END]


test_sources, test_labels = draw_texts(500, seed=0)
print(*as_words(test_sources[0]), "\n ->", *as_words(test_labels[0]))

# %% [markdown]
# A decoder with soft search (chapter 3) has to remember by itself where it has
# looked and what it has written: all of it must be in its state. Paulus, Xiong
# and Socher (2017) give it two attentions that remember for it.
#
# ### Not to look twice at the same place
#
# The decoder's state at step $t$ is $h^d_t$. The encoder's state at place $i$
# of the source is $h^e_i$. The score is chapter 4's "general" one, with a
# learned matrix $W_e$:
#
# $$e_{ti} = {h^d_t}^\top W_e\, h^e_i$$
#
# Plain soft search takes the softmax of these over $i$. *Intra-temporal
# attention* first divides each $\exp(e_{ti})$ by the sum of those that the same
# place had at all earlier steps:
#
# $$e'_{ti} = \begin{cases} \exp(e_{ti}) & t = 1 \\[4pt]
# \dfrac{\exp(e_{ti})}{\sum_{j=1}^{t-1} \exp(e_{ji})} & t > 1 \end{cases}
# \qquad \alpha^e_{ti} = \frac{e'_{ti}}{\sum_k e'_{tk}}
# \qquad c^e_t = \sum_i \alpha^e_{ti}\, h^e_i$$
#
# An example with two places. At each step, $\exp(e)$ is 4 at the first place
# and 1 at the second. Step 1 has the weights 0.8 and 0.2. In step 2, $e'$ is
# 4/4 and 1/1, so both places have the weight 0.5. The same question no longer
# prefers the first place. It must be asked more strongly to be answered again.
#
# In code, the sum over earlier steps is a running sum, and the division is a
# subtraction of logarithms. (Our model divides all scores by $\sqrt D$, where
# $D$ is the width of the states, as in chapter 4. The paper does not.)


# %%
def temporal_weights(scores, is_real):
    """alpha^e of scores e [B, T, S]; is_real [B, S] is False at padding."""
    sums = ops.cumsum(ops.exp(scores), axis=1)  # Of steps 1 to t.
    later = scores[:, 1:] - ops.log(sums[:, :-1])
    scores = ops.concatenate([scores[:, :1], later], axis=1)
    return ops.softmax(ops.where(is_real[:, None], scores, -1e9))


example = np.log([[[4.0, 1.0]] * 3])
weights = temporal_weights(example, np.ones((1, 2), bool)).numpy()
print(weights[0].round(2))
np.testing.assert_allclose(weights[0], [[0.8, 0.2], [0.5, 0.5], [0.5, 0.5]])

# The equation as a loop, for random scores.
e = np.random.default_rng(1).normal(size=(5, 7))  # [T, S]
expected = np.zeros_like(e)
for t in range(5):
    e_prime = np.exp(e[t])
    if t > 0:
        e_prime = e_prime / sum(np.exp(e[j]) for j in range(t))
    expected[t] = e_prime / e_prime.sum()
found = temporal_weights(e[None], np.ones((1, 7), bool))[0]
np.testing.assert_allclose(found, expected, rtol=1e-5)

# %% [markdown]
# What this does to repetition can be seen without any training. Suppose a score
# has two parts. One part, $a_i$, belongs to the place and is the same at every
# step: some words attract every question. The other part, $b_t$, is the same at
# every place. Then $\exp(a_i + b_t)$ divided by $\sum_j \exp(a_i + b_j)$ is the
# same for all $i$. From step 2 on, what attracts every question is cancelled.
#
# Real questions also differ from step to step. The next cell draws 500 texts of
# twelve different words, and scores $a_i + b_{ti}$ at random, where $a$ varies
# three times as much as $b$. At each step the search copies the word with the
# highest weight. `share_again` counts what is said again: of all runs of $n$
# words, the share that stands earlier in the same text. The paper counts runs
# of three.


# %%
def share_again(texts, n):
    """The share of runs of n words that stand earlier in their text."""
    runs = [
        [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]
        for text in texts
    ]
    again = sum(len(row) - len(set(row)) for row in runs)
    return again / max(1, sum(map(len, runs)))


assert share_again(["ababab"], 1) == 4 / 6
assert share_again(["ababab"], 3) == 2 / 4

generator = np.random.default_rng(3)
a, b = (generator.normal(size=(500, steps, 12)) for steps in (1, 12))
everywhere = np.ones((500, 12), bool)
constant = temporal_weights(3 * a + b[:, :, :1], everywhere).numpy()
np.testing.assert_allclose(constant[:, 1:], 1 / 12, rtol=1e-4)

again = {}
for name, weights in {
    "plain": ops.softmax(3 * a + b),
    "intra-temporal": temporal_weights(3 * a + b, everywhere),
}.items():
    copied = np.argmax(weights, axis=-1).tolist()
    again[name] = [share_again(copied, n) for n in (1, 3)]
    print(f"{name:15} words again {again[name][0]:.0%},", end=" ")
    print(f"runs of three again {again[name][1]:.1%}")
assert again["plain"][1] > 0.2 > 0.02 > again["intra-temporal"][1]

# %% [markdown]
# ### To know what was written
#
# *Intra-decoder attention* looks from the decoder's state at its own earlier
# states. It is the self-attention of chapter 5 with a mask that leaves out the
# present, too:
#
# $$e^d_{tj} = {h^d_t}^\top W_d\, h^d_j \qquad
# \alpha^d_{tj} = \frac{\exp(e^d_{tj})}{\sum_{k=1}^{t-1} \exp(e^d_{tk})}
# \quad (j < t) \qquad
# c^d_t = \sum_{j=1}^{t-1} \alpha^d_{tj}\, h^d_j$$
#
# At the first step there is nothing to look at, and $c^d_1 = 0$.


# %%
def earlier_weights(scores):
    """alpha^d of scores e^d [B, T, T]: row t has weights for j < t."""
    steps = ops.arange(ops.shape(scores)[1])
    is_earlier = steps[:, None] > steps
    weights = ops.softmax(ops.where(is_earlier, scores, -1e9))
    return ops.where(is_earlier, weights, 0.0)  # The first row, too.


e = np.random.default_rng(2).normal(size=(5, 5))
expected = np.zeros_like(e)
for t in range(1, 5):
    for j in range(t):
        below = sum(np.exp(e[t, k]) for k in range(t))
        expected[t, j] = np.exp(e[t, j]) / below
np.testing.assert_allclose(earlier_weights(e[None])[0], expected, rtol=1e-5)

# %% [markdown]
# ### To copy, or to write
#
# Most words of a summary stand in the source. So the network has two ways to
# say a word, and a switch $u$ between them:
#
# $$f_t = [h^d_t;\; c^e_t;\; c^d_t] \qquad
# p_{\text{write}} = \mathrm{softmax}(W_{\text{out}} f_t + b_{\text{out}})
# \qquad u_t = \sigma(w_u \cdot f_t + b_u)$$
#
# $$p(y_t = w) = u_t \sum_{i:\, x_i = w} \alpha^e_{ti} +
# (1 - u_t)\; p_{\text{write}}(w)$$
#
# The semicolons put three vectors behind each other. $u_t$ is the probability
# that the word is copied. The first term copies: a word is as probable as the
# places where it stands are looked at. This is the *pointer* (See et al. 2017
# have one, too). It uses the weights $\alpha^e$ a second time: not to look
# twice at a place is also not to copy it twice.
#
# One economy: the rows of $W_{\text{out}}$, one a word, are made from the
# words' embeddings $E$, as $W_{\text{out}} = \tanh(E\, W_{\text{proj}})$. Words
# that are read alike are written alike.
#
# All together:

# %% tags=["hide-input", "alone"]
diagrams.summarizer(path=PICTURES / "18_summarizer.png")

# %% [markdown]
# *Step 3. The loop at the left is the running sum. Not drawn: the encoder is a
# bidirectional LSTM, and its last states are the decoder's first ones.*
#
# | symbol | shape | what it is |
# |---|---|---|
# | $h^e$ | [B, S, D] | the encoder's states, D/2 of each direction |
# | $h^d$ | [B, T, D] | the decoder's states |
# | $W_e$, $W_d$ | [D, D] | of the two scores |
# | $f$ | [B, T, 3 D] | state and both contexts |
# | $E$ | [V, D] | the embeddings, of source and summary |
# | $W_{\text{proj}}$, $W_{\text{out}}$ | [D, 3 D], [V, 3 D] | to words |
# | $w_u$ | [3 D] | to the switch; $b_u$ begins at −2: few copies at first |
#
# In training the right words are known, so all steps are computed at once.
# `looks_on` may switch the intra-temporal attention off. Then $\alpha^e$ is a
# plain softmax of $e$.


# %%
class Summarizer(keras.Model):
    """Paulus et al. 2017, equations 1 to 13."""

    def __init__(self, num_ids, width, looks_on=True):
        super().__init__()
        self.num_ids, self.width, self.looks_on = num_ids, width, looks_on
        lstm = {"return_sequences": True, "return_state": True}
        # Wider than Keras draws them, so that training gets going at once.
        wide = keras.initializers.RandomNormal(stddev=0.5)
        self.embedding = keras.layers.Embedding(num_ids, width, wide)
        self.encoder = keras.layers.Bidirectional(
            keras.layers.LSTM(width // 2, **lstm)
        )
        self.decoder = keras.layers.LSTM(width, **lstm)
        self.w_e = keras.layers.Dense(width, use_bias=False)
        self.w_d = keras.layers.Dense(width, use_bias=False)
        self.w_proj = keras.layers.Dense(3 * width, "tanh", use_bias=False)
        self.b_out = self.add_weight(shape=(num_ids,), initializer="zeros")
        self.switch = keras.layers.Dense(
            1, "sigmoid", bias_initializer=keras.initializers.Constant(-2)
        )

    def build(self, input_shape=None):
        """Makes all weights by a first call."""
        if not self.built:
            ids = ops.ones((1, 2), "int32")
            self.attend({"source_ids": ids, "target_ids": ids})
            self.built = True

    def attend(self, inputs):
        """log p(y_t) [B, T, V], and alpha^e [B, T, S]."""
        source_ids, target_ids = inputs["source_ids"], inputs["target_ids"]
        is_real = ops.not_equal(source_ids, PAD)  # [B, S]
        h_e, *last = self.encoder(self.embedding(source_ids), mask=is_real)
        first = [ops.concatenate(last[k::2], axis=-1) for k in (0, 1)]
        h_d, *_ = self.decoder(self.embedding(target_ids), initial_state=first)

        def score(query, key):  # [B, T, D], [B, S, D] -> [B, T, S]
            return ops.matmul(query, ops.swapaxes(key, 1, 2)) / self.width**0.5

        e = score(self.w_e(h_d), h_e)
        if self.looks_on:
            alpha_e = temporal_weights(e, is_real)
        else:
            alpha_e = ops.softmax(ops.where(is_real[:, None], e, -1e9))
        alpha_d = earlier_weights(score(self.w_d(h_d), h_d))
        c_e, c_d = ops.matmul(alpha_e, h_e), ops.matmul(alpha_d, h_d)
        f = ops.concatenate([h_d, c_e, c_d], axis=-1)
        w_out = self.w_proj(self.embedding(ops.arange(self.num_ids)))
        written = ops.softmax(ops.matmul(f, ops.transpose(w_out)) + self.b_out)
        copied = ops.matmul(alpha_e, ops.one_hot(source_ids, self.num_ids))
        u = self.switch(f)  # [B, T, 1]
        return ops.log(u * copied + (1 - u) * written + 1e-20), alpha_e

    def call(self, inputs):
        return self.attend(inputs)[0]


# %% [markdown]
# The package has this model, too, and its tests hold it to the equations one by
# one. With the same weights both must say the same.

# %%
WIDTH = 64
ours = Summarizer(NUM_IDS, WIDTH)
ours.build()
theirs = ka.models.IntraAttentionSummarizer(
    NUM_IDS, embedding_dim=WIDTH, units=WIDTH // 2
)
theirs.build()
for mine, other in (
    (ours.embedding, theirs.embedding),
    (ours.encoder, theirs.encoder),
    (ours.decoder, theirs.decoder),
    (ours.w_e, theirs.temporal_query),
    (ours.w_d, theirs.decoder_query),
    (ours.w_proj, theirs.output_projection),
    (ours.switch, theirs.switch),
):
    other.set_weights(mine.get_weights())
some = {
    "source_ids": test_sources[:5],
    "target_ids": shifted(test_labels[:5]),
}
np.testing.assert_allclose(ours(some), theirs(some), atol=1e-4)

# %% [markdown]
# ### With and without
#
# Two kinds of network learn from the same texts: one with both attentions, and
# one without the intra-temporal one. Each is trained from every seed.
#
# To write a summary, take the likeliest word, read it, and take the next.
# `write` does so. It computes everything anew for each word. That is wasteful,
# and short. (Given random numbers, it draws words by chance instead. We need
# this at the end of the chapter.)
#
# The paper also forbids to repeat a run of three words. If the last two words
# are $v, w$, then no word $z$ may follow if $v, w, z$ stands in the text
# already. The searches in `ka.decoding` do this with `no_repeat_ngram_size=3`.
# Our right summaries may repeat runs, so `write` does not.


# %%
def log_probabilities(model, source_ids, texts):
    """log p of each next word [B, T, V]; PAD and START are never written."""
    starts = ops.full_like(texts[:, :1], START)
    read = ops.concatenate([starts, texts[:, :-1]], axis=1)
    log_p = model({"source_ids": source_ids, "target_ids": read})
    numbers = ops.arange(model.num_ids)
    is_control = ops.logical_or(numbers == PAD, numbers == START)
    return ops.log_softmax(ops.where(is_control, -1e9, log_p))


def write(model, source_ids, length, uniforms=None):
    """Texts [B, T]: words, END, padding. `uniforms` [B, T] draw the words."""
    steps = ops.arange(length)

    def add(t, carry):
        texts, has_ended = carry
        log_p = log_probabilities(model, source_ids, texts)
        log_p = ops.take(log_p, t, axis=1)  # [B, V]
        if uniforms is None:
            word = ops.argmax(log_p, axis=-1)
        else:
            sums = ops.cumsum(ops.exp(log_p), axis=-1)
            drawn = ops.take(uniforms, t, axis=1) * sums[:, -1]
            word = ops.sum(ops.cast(sums <= drawn[:, None], "int32"), axis=-1)
            word = ops.minimum(word, model.num_ids - 1)  # If rounded up.
        word = ops.where(has_ended, PAD, ops.cast(word, "int32"))
        texts = ops.where(steps == t, word[:, None], texts)
        return texts, ops.logical_or(has_ended, word == END)

    nothing = ops.zeros((ops.shape(source_ids)[0], length), "int32")
    texts, _ = ops.fori_loop(0, length, add, (nothing, nothing[:, 0] > 0))
    return texts


# %% [markdown]
# Two measures of the summaries of 500 test texts:
#
# - *right*: the share without a mistake.
# - *ROUGE-L* (Lin 2004): take the longest sequence of words that summary and
#   reference have in common, gaps allowed. Divide twice its length by the sum
#   of both lengths. It is 1 for the right summary.
#
# The next cell trains two kinds of summarisers from three seeds, with 300
# updates each. They are six of the 45 trainings that share the 6 minutes of the
# chapter.


# %%
def rouge_l(text, reference):
    """2 L / (m + n); L is the longest common subsequence's length."""
    longest = np.zeros((len(text) + 1, len(reference) + 1), int)
    for i, j in np.ndindex(len(text), len(reference)):
        longest[i + 1, j + 1] = (
            longest[i, j] + 1
            if text[i] == reference[j]
            else max(longest[i, j + 1], longest[i + 1, j])
        )
    return 2 * longest[-1, -1] / (len(text) + len(reference))


assert rouge_l("abcd", "acbd") == 3 / 4


def measure(written):
    """(share right, mean ROUGE-L) of the test's summaries."""
    pairs = [
        (as_words(text), as_words(label))
        for text, label in zip(written, test_labels, strict=True)
    ]
    return (
        np.mean([text == label for text, label in pairs]),
        np.mean([rouge_l(*pair) for pair in pairs]),
    )


LEARNING = 20 if FAST else 300
VARIANTS = {"without": False, "with both": True}
summarizers, measured = {}, {}
for name, looks_on in VARIANTS.items():
    for seed in SEEDS:
        keras.utils.set_random_seed(seed)
        summarizer = Summarizer(NUM_IDS, WIDTH, looks_on)
        summarizer.build()
        rate = keras.optimizers.schedules.CosineDecay(5e-3, LEARNING)
        summarizer.compile(
            keras.optimizers.Adam(rate, global_clipnorm=1.0),
            ka.training.losses.TokenCrossEntropy(),
            jit_compile=False,
        )
        source_ids, labels = draw_texts(BATCH * LEARNING, seed)
        inputs = {"source_ids": source_ids, "target_ids": shifted(labels)}
        summarizer.fit(inputs, labels, BATCH, shuffle=False, verbose=0)
        summarizers[name, seed] = summarizer
        written = np.array(write(summarizer, test_sources, READ + 1))
        measured[name, seed] = measure(written)
        is_right, rouge = measured[name, seed]
        print(
            f"{name:9} seed {seed}: {is_right:6.1%} right, ROUGE-L {rouge:.3f}"
        )
        assert FAST or is_right > 0.9

# %% [markdown]
# Both learn it. A text of twelve words is short enough for a decoder that
# remembers by itself, so this table does not tell the two apart. (The paper's
# articles have hundreds of words, and there it measures a gain.) But do
# both do the same?
#
# Where do they look, step after step? Each step has a place whose turn it is:
# that of the name which is to be written. The next cell measures the mean
# weight of that place, at the first step and at the last name. Then it draws
# the weights of one test text. Columns are its words, rows those of its
# summary, and each row sums to 1. A frame is a place whose turn it is.


# %%
def weights_in_turn(model):
    """The mean weight of the right place: at the first name, at the last."""
    inputs = {"source_ids": test_sources, "target_ids": shifted(test_labels)}
    alpha = np.array(model.attend(inputs)[1])  # [500, 13, 13]
    turns = np.argsort(test_sources <= FILLER, axis=1, kind="stable")
    texts, last = np.arange(500), np.sum(test_labels > END, axis=1) - 1
    return [
        alpha[texts, steps, turns[texts, steps]].mean()
        for steps in (np.zeros(500, int), last)
    ]


for (name, seed), summarizer in summarizers.items():
    at_first, at_last = weights_in_turn(summarizer)
    print(
        f"{name:9} seed {seed}: {at_first:.2f} at first, {at_last:.2f} at last"
    )
    assert FAST or (at_last > at_first) == VARIANTS[name]

shown = [summarizers[name, SEEDS[0]] for name in VARIANTS]
first = {
    "source_ids": test_sources[:1],
    "target_ids": shifted(test_labels[:1]),
}
read, said = as_words(test_sources[0]), as_words(test_labels[0])
maps = np.array([one.attend(first)[1][0] for one in shown])
stands = [place for place, word in enumerate(read) if word != "um"]
ka.plotting.attention_heat_map(
    read,
    said,
    maps[:, : len(said), : len(read)],
    path=PICTURES / "18_looks.png",
    names=["without intra-temporal", "with both"],
    links=[(place, step) for step, place in enumerate(stands)],
    axis_names=("text", "summary"),
)

# %% [markdown]
# Both maps follow the names down the text. On the left, the decoder's state has
# learned to move on by itself. From the first step to the last it gets less
# sure: the numbers above fall with each seed. On the right, the division takes
# part, and the numbers rise with each seed. At first there is nothing to divide
# by, and many places share the weight. Then the places that have had their turn
# count less.
#
# ## Saying what matters
#
# Cross-entropy knows one right text, and marks a network word by word while it
# reads the right words. When it writes, it reads its own. No mark ever said
# what a whole text of its own is worth.
#
# So let us give such a mark. A *reward* $r(y)$ is any number that says how good
# a text $y$ is, such as its ROUGE-L. What we want is a high mean reward of the
# texts that the network writes:
#
# $$J = \sum_y p(y \mid x)\, r(y)$$
#
# The sum runs over all texts, and there are too many. And $r$ has no gradient:
# it counts words. Two steps make a mean over samples of it. First, $\nabla p =
# p \,\nabla \log p$, where $\nabla$ is the gradient by the network's weights.
# So
#
# $$\nabla J = \sum_y p(y \mid x)\; r(y)\, \nabla \log p(y \mid x)$$
#
# This is a mean over texts that the network writes by chance, and a mean can be
# estimated from a few of them. (Its name is REINFORCE, Williams 1992.)
# Second, any number $b$ may be subtracted from the reward, if it does not
# depend on $y$. The mean stays the same, since
#
# $$\sum_y p(y \mid x)\; b\, \nabla \log p(y \mid x) = b\, \nabla \sum_y p(y
# \mid x) = b\, \nabla 1 = 0$$
#
# A good $b$ makes the estimate less noisy. *Self-critical* training (Rennie et
# al. 2016) takes the reward of the network's own greedy text $\hat y$, which
# has the likeliest word at each step. A sample $y^s$ that is better than $\hat
# y$ becomes more probable, and a worse one less:
#
# $$L_{\text{rl}} = \big(r(\hat y) - r(y^s)\big) \log p(y^s \mid x)$$
#
# The bracket counts as a constant: no gradient goes through it. Here it is in
# code. The package has ROUGE-L for rows of ids.


# %%
reward = self_critical.rouge_l


def log_probability(model, source_ids, texts):
    """log p(y|x) of whole texts [B, T] (words, END, padding): [B]."""
    log_p = log_probabilities(model, source_ids, texts)
    chosen = ops.take_along_axis(log_p, texts[..., None], axis=-1)[..., 0]
    return ops.sum(ops.where(texts != PAD, chosen, 0.0), axis=1)


def self_critical_loss(model, source_ids, labels, uniforms):
    """L_rl of each text [B]; its gradient is an estimate of that of -J."""
    length = labels.shape[1]
    sample = write(model, source_ids, length, uniforms)
    best = write(model, source_ids, length)
    advantage = reward(best, labels) - reward(sample, labels)
    advantage = ops.stop_gradient(advantage)
    return advantage * log_probability(model, source_ids, sample)


some_texts = np.array(
    write(summarizers["without", SEEDS[0]], test_sources[:20], READ + 1)
)
without_ends = [
    [[number for number in row if number not in (PAD, END)] for row in rows]
    for rows in (some_texts, test_labels[:20])
]
np.testing.assert_allclose(
    reward(some_texts, test_labels[:20]),
    [rouge_l(*pair) for pair in zip(*without_ends, strict=True)],
    rtol=1e-5,
)

# %% [markdown]
# Is this the gradient of $-J$? With a tiny vocabulary we can write down *all*
# texts. With four words (END among them) and at most three steps there are $1 +
# 3 + 9 \cdot 4 = 40$. Then $J$ is a plain sum, and TensorFlow differentiates it
# as it stands, with no estimate and no trick. The next cell compares three
# gradients:
#
# - that of $-J$, from the sum over all texts;
# - the estimator's exact mean: $L_{\text{rl}}$ of each text, weighted by how
#   probable the text is (these weights are constants, too);
# - the mean of $L_{\text{rl}}$ over 20,000 random samples.

# %%
SMALL, STEPS = 6, 3
keras.utils.set_random_seed(1)
tiny = Summarizer(SMALL, 4)
tiny.build()
for variable in tiny.trainable_variables:  # Far from equal probabilities.
    variable.assign(keras.random.normal(variable.shape))
source, label = np.array([[4, 5, END]]), np.array([[5, 4, END]])


def all_texts(beginning=()):
    """Each text that ends, or has STEPS words, once."""
    if len(beginning) == STEPS or END in beginning:
        yield [*beginning, *[PAD] * (STEPS - len(beginning))]
        return
    for word in range(SMALL):
        if word not in (PAD, START):
            yield from all_texts((*beginning, word))


every = np.array(list(all_texts()))
print(f"{len(every)} texts, such as {every[1]}, {every[-1]}")


def tiled(row, count):
    return np.tile(row, (count, 1))


def gradient(loss):
    """All derivatives in a row."""
    with tf.GradientTape() as tape:
        value = loss()
    variables = [one.value for one in tiny.trainable_variables]
    found = tape.gradient(value, variables, None, "zero")
    return np.concatenate([np.ravel(tf.convert_to_tensor(g)) for g in found])


r = reward(every, tiled(label, len(every)))
r_greedy = reward(write(tiny, source, STEPS), label)[0]
sources = tiled(source, len(every))


def minus_j():
    return -ops.sum(ops.exp(log_probability(tiny, sources, every)) * r)


def mean_loss():
    """Weighted by p, in which no gradient is taken."""
    log_p = log_probability(tiny, sources, every)
    p = ops.stop_gradient(ops.exp(log_p))
    return ops.sum(p * (r_greedy - r) * log_p)


def sampled_loss(count=20_000):
    uniforms = keras.random.uniform((count, STEPS), seed=1)
    rows = tiled(source, count), tiled(label, count)
    return ops.mean(self_critical_loss(tiny, *rows, uniforms))


exact, mean, sampled = map(gradient, (minus_j, mean_loss, sampled_loss))
total = float(ops.sum(ops.exp(log_probability(tiny, sources, every))))
print(f"all probabilities sum to {total:.4f}")
print(f"greatest derivative {np.abs(exact).max():.4f}, greatest difference:")
print(f"exact mean {np.abs(mean - exact).max():.6f}")
print(f"20,000 samples {np.abs(sampled - exact).max():.6f}")
assert abs(total - 1) < 1e-4
np.testing.assert_allclose(mean, exact, atol=1e-5)
assert np.abs(sampled - exact).max() < 0.1 * np.abs(exact).max()

# %% [markdown]
# The estimator's mean is the gradient, to the digits that single precision
# keeps. Samples come close to it.
#
# ### Training by the mark
#
# Now the tiny network learns by marks alone. It is never shown the right text.
# In each step it writes 64 texts by chance, gets 64 numbers, and takes a step
# along the estimate. As there are only forty texts, we can compute $J$ exactly
# at each step. A second network climbs along the exact gradient, as nobody
# could with a real vocabulary.
#
# The next cell trains both from three seeds, with 100 steps each. They are the
# last six of the 45 trainings that share the 6 minutes of the chapter.

# %%
CLIMB = 5 if FAST else 100


def climb(kind, seed):
    """J before each step of a training of a fresh network."""
    keras.utils.set_random_seed(seed)
    network = Summarizer(SMALL, 8)
    network.build()
    optimizer = keras.optimizers.Adam(0.02)
    optimizer.build(network.trainable_variables)
    generator = keras.random.SeedGenerator(seed)
    rows = tiled(source, 64), tiled(label, 64)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            p = ops.exp(log_probability(network, sources, every))
            j = ops.sum(p * r)
            loss = -j
            if kind == "samples":
                uniforms = keras.random.uniform((64, STEPS), seed=generator)
                loss = ops.mean(self_critical_loss(network, *rows, uniforms))
        variables = [one.value for one in network.trainable_variables]
        found = tape.gradient(loss, variables, None, "zero")
        optimizer.apply(found, network.trainable_variables)
        return j

    return [float(step()) for _ in range(CLIMB)]


climbs = {
    (kind, seed): climb(kind, seed)
    for kind in ("samples", "exact")
    for seed in SEEDS
}
for (kind, seed), marks in climbs.items():
    print(f"{kind:7} seed {seed}: {marks[0]:.3f} -> {marks[-1]:.3f}")
    assert FAST or marks[-1] > 0.9


# %% tags=["hide-input"]
def draw_climbs():
    """J after each step, a line for each training."""
    with drawing.style():
        figure = drawing.Figure(figsize=(6.0, 3.4), layout="constrained")
        axes = figure.subplots()
        for (kind, seed), marks in climbs.items():
            axes.plot(
                marks, linewidth=1.4,
                color=drawing.COLORS[kind == "exact"],
                label=f"{kind} gradient".replace("samples", "sampled")
                if seed == SEEDS[0] else None,
            )  # fmt: skip
        axes.set(xlabel="steps", ylabel="mean reward $J$", ylim=(0, 1.03))
        drawing.finish(axes)
        drawing.save(figure, PICTURES / "18_reward.png")
    return figure


draw_climbs()

# %% [markdown]
# *A line is one network.* The marks are enough: a text that is better than the
# network's own greedy one becomes more probable, until the right one is the
# greedy one. The shelf at 0.8 is a text with both right words and one too many:
# its ROUGE-L is $2 \cdot 2 / (3 + 2)$. Samples climb about as fast as the exact
# gradient.
#
# A large network cannot begin like this. With 50,000 words, nearly all texts
# that it writes at first are equally bad, and their marks are 0. So the paper
# trains by cross-entropy first, and then by both at once:
#
# $$L = \gamma\, L_{\text{rl}} + (1 - \gamma)\, L_{\text{ml}} \qquad
# L_{\text{ml}} = -\sum_t \log p(y^*_t \mid y^*_1, \dots, y^*_{t-1}, x)$$
#
# $y^*$ is the right text, and $\gamma = 0.9984$. (The second loss is a sum over
# all words of a text, so it is much larger than the first.) The mixture has a
# reason. A network that is trained by ROUGE alone writes what ROUGE counts. In
# the paper it has the highest ROUGE of all, and people find its summaries the
# hardest to read. What matters has to be said with care.
#
# With the package, these are two commands:
#
# ```sh
# keras-attention train --model intra_attention_summarizer --output runs/first
# keras-attention train --init runs/first \
#     --model_arguments '{"reward_weight": 0.9984}' --learning_rate 1e-4 \
#     --output runs/rewarded
# ```
#
# ## What to take away
#
# - An autoencoder is a translator whose target is its source. It learns to put
#   a text into a vector and to take it out, from texts alone.
# - What pre-training is worth is a distance between two learning curves, read
#   from left to right: a factor of pairs.
# - Intra-temporal attention divides by what was looked at. Intra-decoder
#   attention looks at what was written. A pointer turns looks into words.
# - A reward needs no gradient. Samples give one, and its mean is exact. The
#   network's own greedy text says what to expect.
#
# ## Your turn
#
# Write what the summariser says: with the probability $u$ it copies a word of
# the source, and otherwise it writes one of the vocabulary. `written` is
# $p_{\text{write}}$, and `looks` are the weights $\alpha^e_t$ of the places of
# the source. A word may stand in the source several times.

# %% tags=["alone"]
import your_turn


def copy_or_write(written, looks, source_ids, u):
    """written [V], looks and source_ids [S], a number u -> p [V]."""
    ...


your_turn.check(18, copy_or_write)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def copy_or_write(written, looks, source_ids, u):
#     p = (1 - u) * written
#     np.add.at(p, source_ids, u * looks)  # `p[source_ids] +=` adds once.
#     return p
#
#
# your_turn.check(18, copy_or_write)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: At each step $\exp(e)$ is 9 at one place and 1 at the other. What is the
#   weight of the first place at step 1, with intra-temporal attention?
# - b: And at step 2?
# - c: The greedy text has a reward of 0.4. A sample has a reward of 0.6 and a
#   log-probability of -10. What is the self-critical loss?

# %% tags=["alone"]
your_turn.quiz(18, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: At step 1 there is nothing to divide by.
# - b: $e'$ is 9/9 and 1/1.
# - c: $(0.4 - 0.6) \cdot (-10)$.
#
# ```python
# your_turn.quiz(18, a=9 / 10, b=1 / 2, c=(0.4 - 0.6) * -10)
# ```
#
# </details>
#
# ## Exercises
#
# 1. A place has the score $e_1$ at step 1, and all others have 0 at each step.
#    Which score must it have at step 2 to get the same weight again? And at
#    step 3?
#
# <details><summary>Solution</summary>
#
# The place must have $e^{e_1}$ times the $e'$ of the others, as at step 1. At
# step 2, $e' = e^{e_2 - e_1}$ there and 1 elsewhere, so the score $e_2$ must be
# $2 e_1$. At step 3 the sums are $e^{e_1} + e^{2 e_1}$ there and
# 2 elsewhere, so the score is $e_1 + \log((e^{e_1} + e^{2 e_1}) / 2)$.
#
# ```python
# third = 1 + np.log((np.exp(1) + np.exp(2)) / 2)
# asked = np.array([[[1.0, 0, 0], [2.0, 0, 0], [third, 0, 0]]])
# weights = temporal_weights(asked, np.ones((1, 3), bool)).numpy()[0]
# np.testing.assert_allclose(weights[1:], weights[:1].repeat(2, 0), rtol=1e-5)
# ```
#
# </details>
#
# 2. Subtract nothing, the greedy reward, or 7 from the reward. The mean is the
#    same. How noisy is a single sample?
#
# <details><summary>Solution</summary>
#
# The noise is the mean squared distance from the exact gradient, over all
# texts. With 7 it is by far the largest.
#
# ```python
# log_p = log_probability(tiny, sources, every).numpy()
# each = np.array([
#     gradient(lambda i=i: log_probability(tiny, source, every[i : i + 1])[0])
#     for i in range(len(every))
# ])
# noise = {}
# for b in (0, float(r_greedy), 7):
#     estimates = (b - np.array(r))[:, None] * each
#     squared = np.sum((estimates - exact) ** 2, axis=1)
#     noise[b] = float(np.exp(log_p) @ squared)
# print(noise)
# assert noise[7] > 10 * max(noise[0], noise[float(r_greedy)])
# ```
#
# </details>
#
# 3. Is it the decoder's language that has to be practised? Let the autoencoder
#    read French texts alone, and compare.
#
# <details><summary>Solution</summary>
#
# ```python
# for seed in SEEDS:
#     _, french, _, _ = heaps(seed)
#     alone = ids["fr"][french]
#     begin = train(fresh[seed], alone, alone, PRE_TRAINING, seed)
#     _, tested = translate(begin, COUNT, seed)
#     print(f"seed {seed}: French alone {tested:.1%},",
#           f"both {right['autoencoder', seed, COUNT]:.1%}")
# ```
#
# If the share is near that of both languages, the decoder's French is what
# counts. If it is near that of fresh weights, the encoder has to have read
# English. The chapter has not measured it: your run decides.
#
# </details>
#
# ## References
#
# - Dai and Le 2015, [Semi-supervised Sequence
#   Learning](https://arxiv.org/abs/1511.01432)
# - Paulus et al. 2017, [A Deep Reinforced Model for Abstractive
#   Summarization](https://arxiv.org/abs/1705.04304)
# - Rennie et al. 2016, [Self-critical Sequence Training for Image
#   Captioning](https://arxiv.org/abs/1612.00563)
# - Williams 1992, [Simple statistical gradient-following algorithms for
#   connectionist reinforcement
#   learning](https://doi.org/10.1007/BF00992696)
# - Lin 2004, [ROUGE: A Package for Automatic Evaluation of
#   Summaries](https://aclanthology.org/W04-1013/)
# - See et al. 2017, [Get To The Point: Summarization with Pointer-Generator
#   Networks](https://arxiv.org/abs/1704.04368)
