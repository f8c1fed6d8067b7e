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
# # 11. Whose is "his"?
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/11_whose_is_his.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# *His red hat and her blue cup.* Which colour is his? *His blue cup and her red
# hat.* Which colour is his now? The two texts have the same words and different
# answers. So the meaning of a word is not its own: it comes from the company
# that the word keeps. This chapter asks how a network can let words keep
# company, and starts with one that cannot.
#
# 1. A vector for each word.
# 2. A bag of vectors, in which no word sees another.
# 3. XOR: what adding up can never say, and why a layer can.
# 4. Two texts whose words ask each other: decomposable attention.
# 5. One text that is asked several questions: the self-attentive embedding.
#
# Here a text is asked by another text, or by the task. In [chapter
# 11b](11b_looking_back.ipynb) a text asks itself. You may read either first.
#
# Each model gets a corpus that a program of ours wrote, so all right answers
# are known. "It can" and "it cannot" are then numbers.
#
# Takes about 3 minutes on two cores, with five trainings. The text before each
# says what is trained, and each model prints a line when it is ready. Pictures
# are shown here and kept in the folder `pictures`. Vectors are columns in the
# equations of this chapter, as in its papers, and rows in the code. In a map a
# row asks and a column is asked.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import collections
import itertools
import os
import pathlib

import keras
import numpy as np
import tensorflow as tf

import keras_attention as ka
from keras_attention.data.embedded import colours, multisets
from keras_attention.tokens import END, PAD

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")
rng = np.random.default_rng(1)

# %% [markdown]
# Each word becomes a number, its place in a list of all words. So does each
# label. A text ends with END, as everywhere in this package. `fit` trains as
# chapter 5 does, and `accuracy` is the share of right answers. The next cell
# has nothing else in it; skip it.


# %%
def read(splits):
    """Rows (label, *texts) -> (inputs, labels) of each split; ids of words."""
    rows = [row for split in splits.values() for row in split]
    words = sorted({word for row in rows for word in " ".join(row[1:]).split()})
    place = {word: number for number, word in enumerate(words, END + 1)}
    classes = sorted({row[0] for row in rows})

    def ids(texts):
        longest = max(len(text.split()) for text in texts) + 1
        array = np.full((len(texts), longest), PAD, "int32")
        for row, text in enumerate(texts):
            numbers = [*(place[word] for word in text.split()), END]
            array[row, : len(numbers)] = numbers
        return array

    def examples(split):
        labels, *columns = zip(*split, strict=True)
        names = ("source_ids", "pair_ids")
        inputs = dict(zip(names, map(ids, columns), strict=False))
        return inputs, np.array([classes.index(label) for label in labels])

    return {name: examples(split) for name, split in splits.items()}, place


def fit(model, inputs, labels, epochs, rate=2e-3, batch_size=64):
    """Trains with the Transformer's Adam, the rate falling along a cosine."""
    steps = epochs * -(-len(labels) // batch_size)
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(
                0.0, steps, warmup_target=rate, warmup_steps=steps // 10
            ),
            beta_2=0.98,
            epsilon=1e-9,
            global_clipnorm=1.0,
        ),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    epochs = 1 if FAST else epochs
    model.fit(inputs, labels, batch_size, epochs, verbose=0)
    return model


def accuracy(model, inputs, labels):
    logits = model.predict(inputs, batch_size=500, verbose=0)
    return float(np.mean(logits.argmax(axis=1) == labels))


# %% [markdown]
# ## A vector for each word
#
# A network knows a word by its vector. What is in it? A translator of captions
# lies beside the chapters, in `savedmodels`: chapter 3's RNNsearch, trained on
# 29,000 captions of pictures. Its first layer is a table with a row of 256
# numbers for each piece of a word. These rows began as random numbers. Training
# has moved them, with one aim: to translate. Which rows point the same way now?
# The cosine of the angle between two rows says so. It is 1 for the same
# direction, and about 0 for two random ones.
#
# $$\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert\, \lVert v \rVert}$$
#
# The next cell reads the table out of the saved model. For some words it prints
# the five pieces with the highest cosine, among those that begin a word. It
# leaves out short pieces and capitals. (In its training, a word was sometimes
# cut otherwise than usual. So "bik" is a piece, too.) The two words at the end
# come from the table of what the translator *writes*.


# %% tags=["alone"]
import diagrams
import sentencepiece
from tensorflow.core.protobuf import saved_model_pb2

CAPTIONS = (
    pathlib.Path(diagrams.__file__)
    .parents[2]
    .joinpath("savedmodels", "multi30k_en_de_rnnsearch", "1")
)


def word_table(number):
    """Pieces and vectors: of what it reads (0), or of what it writes (1)."""
    program = saved_model_pb2.SavedModel()
    program.ParseFromString((CAPTIONS / "saved_model.pb").read_bytes())
    functions = program.meta_graphs[0].graph_def.library.function
    spelling, *_ = (
        node.attr["model"].s
        for function in functions
        for node in function.node_def
        if node.op == "SentencepieceOp"
    )
    vocabulary = sentencepiece.SentencePieceProcessor(model_proto=spelling)
    pieces = [vocabulary.id_to_piece(i) for i in range(len(vocabulary))]
    saved = tf.train.load_checkpoint(str(CAPTIONS / "variables" / "variables"))
    name = f"_variables/{number}/.ATTRIBUTES/VARIABLE_VALUE"
    return pieces, saved.get_tensor(name).astype("float32")


def neighbours(word, pieces, vectors, count=5):
    """The words whose vectors are nearest in direction, nearest first."""
    # A word begins with this sign for a space.
    are_words = [
        piece[0] == "\u2581" and len(piece) > 3 and piece[1:].islower()
        for piece in pieces
    ]
    lengths = np.linalg.norm(vectors, axis=1)
    asked_for = pieces.index("\u2581" + word)
    cosines = vectors @ vectors[asked_for] / lengths / lengths[asked_for]
    best = [i for i in np.argsort(-cosines) if are_words[i] and i != asked_for]
    return {pieces[i][1:]: round(float(cosines[i]), 2) for i in best[:count]}


if CAPTIONS.exists():
    near = {}
    for number_of_table, asked_words in (
        (0, ("bicycle", "running", "woman", "blue", "two", "guitar")),
        (1, ("rot", "zwei")),
    ):
        read_table = word_table(number_of_table)
        for asked_word in asked_words:
            near[asked_word] = neighbours(asked_word, *read_table)
            print(f"{asked_word:8}", near[asked_word])
    assert {"bike", "bicycles"} <= set(near["bicycle"])
    assert {"run", "runs"} <= set(near["running"])
    assert {"red", "black", "green", "yellow"} <= set(near["blue"])
    assert {"blau", "grün"} <= set(near["rot"])
else:
    print("no saved model here: clone the repository to see the neighbours")

# %% [markdown]
# A bicycle is near a bike, and running is near runs. Blue is near other
# colours. In the table of what is written, *rot* (red) is near *schwarz*,
# *blau* and *grün* (black, blue, green). Nobody said that these are colours.
# They stand in the same places of the same kinds of captions, so training
# pushes their vectors the same way. (Some rows are near by chance.) Models such
# as word2vec (Mikolov et al. 2013) learn nothing but such vectors, from
# neighbouring words alone.
#
# But a row is the same in every sentence. The row of "it" cannot say who "it"
# is in *this* sentence. For that, the words of the sentence must meet.
#
# ## A bag of vectors
#
# Give each word a vector, take the mean of a text's vectors, and let a small
# network read a label off the mean. That is a *bag of vectors*: cheap, and hard
# to beat where the words alone tell (Iyyer et al. 2015).
#
# $$v = \frac1n \sum_{t=1}^{n} E\,w_t \qquad
# y = W_2\,\max(0, W_1 v + b_1) + b_2$$
#
# $w_t$ is word $t$ of $n$, as a one-hot vector, and $E$ is the table of
# embeddings. END counts as a word, here and below. The mean $v$ goes through
# one layer with a ReLU. A linear layer then makes the logits $y$.
#
# Here are texts where the words alone do not tell. A text lists things, with
# their owners and colours. Two of the things are mine, of two different
# colours, and the label names these. There are six colours, so there are 15
# labels.

# %%
lists = colours.generate(train=300 if FAST else 12_000)
sets, place = read(lists)
print("train:", len(lists["train"]), "lists, for instance")
for label, text in lists["train"][:2]:
    print(f"  {text}\n    -> {label}")

# %% [markdown]
# A bag knows how often each colour occurs. It does not know which colour stands
# behind "my". What is the best that *anyone* can do who knows only the counts?
# Let colour $c$ occur $n_c$ times in a list. Then there are $n_a n_b$ ways to
# choose one $a$ and one $b$ as mine. All ways are equally likely, as the corpus
# draws every colour with the same chance. So the best guess is the pair with
# the most ways. Its chance to be right, as a mean over the test's lists, is the
# ceiling of all bags, whatever their size.
#
# The next cell computes the ceiling, and trains a bag for six epochs. This is
# the first of the five trainings that share the 3 minutes of the chapter.


# %%
def chance_of_the_best_guess(text):
    words = [word for word in text.split() if word in colours.COLOURS]
    counts = collections.Counter(words).values()
    ways = [a * b for a, b in itertools.combinations(counts, 2)]
    return max(ways) / sum(ways)


ceiling = np.mean([chance_of_the_best_guess(text) for _, text in lists["test"]])
bag = ka.models.BagOfVectors.from_size(
    "mini", len(place) + END + 1, num_classes=15
)
fit(bag, *sets["train"], epochs=6)
of_bag = accuracy(bag, *sets["test"])
print(f"the ceiling of all bags {100 * ceiling:.1f} %")
print(f"our bag                 {100 * of_bag:.1f} %")
deviation = np.sqrt(0.25 / len(lists["test"]))
if not FAST:
    assert ceiling - 0.1 < of_bag < ceiling + 3 * deviation

# %% [markdown]
# Our bag ends near the ceiling. (By luck it may even stand a little above. The
# ceiling is what to expect, and a share of 2,000 lists has a standard deviation
# of up to 1.1 points.) No training, no width and no depth *above the mean* can
# lift a bag over its ceiling: shuffle the words of a text, and the bag does not
# notice.

# %%
inputs, _ = sets["test"]
# PAD is shuffled, too, and still counts for nothing.
shuffled = {"source_ids": rng.permuted(inputs["source_ids"], axis=1)}
before = bag.predict(inputs, batch_size=500, verbose=0)
after = bag.predict(shuffled, batch_size=500, verbose=0)
print("greatest difference after shuffling", np.abs(after - before).max())
np.testing.assert_allclose(after, before, atol=1e-4)

# %% [markdown]
# ## XOR: why there is a layer above the mean
#
# The mean is a sum, and a linear layer above it is a sum, too: each word adds
# its own bit of evidence, whatever the others say. That is enough for "good",
# "great" and "bad". It is not enough for "not": *good* and *not bad* are
# praise, *bad* and *not good* are none. Let $x$ be 1 if "not" is there, and $y$
# be 1 if the adjective is "bad". Praise is where $x = y$. Where $x \ne y$ there
# is none, and that is XOR:
#
# | $x$ | $y$ | XOR |
# |---|---|---|
# | 0 | 0 | 0 |
# | 0 | 1 | 1 |
# | 1 | 0 | 1 |
# | 1 | 1 | 0 |
#
# Can a sum $ax + by + c$ be positive in the two middle rows, and not positive
# in the two outer ones? Add up the sums of the middle rows: $a + b + 2c > 0$.
# Add up those of the outer rows: $a + b + 2c \le 0$. Both cannot be, so three
# of four rows are the most that a line gets right.
#
# A layer of two ReLUs between gets all four. $\max(0, x + y)$ counts the ones:
# 0, 1, 1, 2. From this we take twice $\max(0, x + y - 1)$, which is 2 in the
# last row and 0 in the others. The next cell tries 100,000 random lines, and
# then the two ReLUs.

# %%
points = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
xor = np.array([0, 1, 1, 0])
lines = rng.normal(size=(100_000, 3))
right = np.sum((lines[:, :2] @ points.T + lines[:, 2:] > 0) == xor, axis=1)
print(
    "rows right, of 100,000 lines:", dict(collections.Counter(right.tolist()))
)
assert right.max() == 3
x, y = points.T
hidden = np.maximum(0, [x + y, x + y - 1])
print("with one layer between:", hidden[0] - 2 * hidden[1])
assert np.array_equal(hidden[0] - 2 * hidden[1], xor)

# %% [markdown]
# So one layer above the mean lets words *combine*, and our bag has one. What it
# still cannot do is *bind*: "my" and "red" are both in the bag, but whether
# they belong together is lost before the layer sees them. The words must meet
# before they are added up, while each is still a vector of its own.
#
# ## Two texts whose words ask each other
#
# Does a text follow from another one? The next corpus asks this of texts
# without any grammar. The second text (the *hypothesis*) follows if each of its
# words is in the first one (the *premise*). Then the label is "entailment". It
# is "neutral" if one word is not.

# %%
pairs = multisets.generate(train=300 if FAST else 20_000)
sets, place = read(pairs)
for label, premise, hypothesis in pairs["train"][:4]:
    print(f"{premise:40} | {hypothesis:16} -> {label}")

# %% [markdown]
# Two bags compare no words: each text has become one vector before it meets the
# other. *Decomposable attention* (Parikh et al. 2016) lets the words meet
# first. It has three steps: attend, compare, aggregate. The first line below is
# the first step, the second line has the other two. $a_i$ is the vector of word
# $i$ of the first text, $b_j$ that of word $j$ of the second: an embedding
# times a matrix. $F$, $G$ and $H$ are small feed-forward networks. Each has two
# layers, and each layer ends in a ReLU. Behind $H$, a linear layer makes the
# logits. $[\,;\,]$ puts two vectors end to end.
#
# $$e_{ij} = F(a_i) \cdot F(b_j) \qquad
# \beta_i = \sum_j \mathrm{softmax}_j(e_{ij})\, b_j \qquad
# \alpha_j = \sum_i \mathrm{softmax}_i(e_{ij})\, a_i$$
#
# $$y = H\Big(\sum_i G([a_i; \beta_i]),\ \sum_j G([b_j; \alpha_j])\Big)$$
#
# Each word $b_j$ asks the words of $a$, and gets $\alpha_j$, what it found
# there. In the same way each $a_i$ asks the words of $b$, and gets $\beta_i$.
# The scores are the same; what differs is along which side the softmax goes.
# (In chapter 3 $\alpha$ was a weight. Here, as in the paper, $\alpha_j$ and
# $\beta_i$ are contexts.) $G$ compares a word with its context, *for this word
# alone*. The two sums add up what all words have to say, and $H$ reads them.
# There is no order and no recurrence in it. The problem has been decomposed
# into small ones, one a word.
#
# Two bags of almost the same size stand beside it. A dense layer with a tanh
# reads each word, and each text becomes the mean of its words. Two more such
# layers read both means, and a linear layer makes the logits.

# %% tags=["hide-input", "alone"]
diagrams.decomposable(PICTURES / "11_decomposable.png")

# %% [markdown]
# *Texts of two words each. Read it from below.* The next cell trains both
# models for ten epochs each. They are two of the five trainings that share the
# 3 minutes of the chapter.

# %%
vocabulary_size = len(place) + END + 1
keras.utils.set_random_seed(2)
two_bags = ka.models.BagOfVectorPairs.from_size(
    "mini", vocabulary_size, num_classes=2
)
attentive = ka.models.DecomposableAttention.from_size(
    "mini", vocabulary_size, num_classes=2
)
found = {}
for name, model in (("two bags", two_bags), ("attention", attentive)):
    fit(model, *sets["train"], epochs=10, batch_size=128)
    found[name] = accuracy(model, *sets["test"])
    print(f"{name:10} {model.count_params():7,} parameters, "
          f"{100 * found[name]:.1f} % right")  # fmt: skip
if not FAST:
    assert found["attention"] > 0.95
    assert found["two bags"] < 0.6

# %% [markdown]
# With attention the model is right nearly always. Two bags are hardly better
# than a coin: the layers above two means have not learned to compare the words.
# (This is no proof, as the ceiling was. A mean may still hold its words.)
#
# This corpus asks for nothing but the comparison of words. Sentences of people
# ask for more. On SICK, 4,500 pairs of sentences, attention gains nothing that
# can be seen: 60.6 % of the test are right with it and 60.0 % with two bags, as
# means of three seeds
# ([experiments](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/sentences.md#pairs-of-sentences)).
#
# Where does a word of the second text look? The rows below are its words, the
# columns those of the first text. A frame marks equal words. The second text
# does not follow, so one of its words has no frame. Look at where its weight
# goes.

# %%
chosen = next(
    row for row, (label, *_) in enumerate(pairs["test"]) if label == "neutral"
)
_, premise, hypothesis = pairs["test"][chosen]
example = {
    name: ids[chosen : chosen + 1] for name, ids in sets["test"][0].items()
}
# of_a [1, T, S]: how each word of b spreads its weight over a; of_b: over b.
logits, (of_b, of_a) = attentive.attend(example)
columns = [*premise.split(), "[END]"]
rows = [*hypothesis.split(), "[END]"]
weights = of_a.numpy()[0, : len(rows), : len(columns)]
np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
ka.plotting.attention_heat_map(
    columns,
    rows,
    weights,
    path=PICTURES / "11_pairs.png",
    links=[
        (column, row)
        for row, word in enumerate(rows)
        for column, other in enumerate(columns)
        if word == other
    ],
    axis_names=("first text", "second text"),
)

# %% [markdown]
# How much weight does a word of the second text put on its equals, if it has
# any? If it has none, does it look at END? Over the whole test set:

# %%
inputs, labels = sets["test"]
of_a = np.concatenate(
    [
        attentive.attend({name: ids[part : part + 500] for name, ids in
                          inputs.items()})[1][1].numpy()
        for part in range(0, len(labels), 500)
    ]
)  # fmt: skip
a, b = inputs["source_ids"][:, None], inputs["pair_ids"][:, :, None]
is_word = inputs["pair_ids"] > END
is_equal = a == b  # [texts, T, S]
on_equals = np.sum(of_a * is_equal, axis=2)
on_end = np.sum(of_a * (a == END), axis=2)
has_equal = is_word & is_equal.any(axis=2)
alone = is_word & ~is_equal.any(axis=2)
print(f"a word that is there puts {on_equals[has_equal].mean():.2f} on its "
      f"equals, {on_end[has_equal].mean():.2f} on END")  # fmt: skip
print(f"a word that is not there puts {on_end[alone].mean():.2f} on END")
if not FAST:
    assert on_equals[has_equal].mean() > 0.9

# %% [markdown]
# A word that is there finds itself. A word that is not there hardly uses END.
# It may look at any other word, as the row without a frame does: what it finds
# is not itself, and that is all that $G$ has to see.
#
# ## One text that is asked several questions
#
# Back to the colours. There is one text now, so who asks? Lin et al. (2017) let
# the *task* ask: $r$ questions that are learned, the same ones for each text.
# The paper calls each of them a *hop*, and they are asked side by side. (In
# chapters 14 and 15 a hop is something else: a second look, which needs what
# the first one has found.) First an LSTM of each direction reads the text. So
# the state at "red" knows of the "my" before it. Then each hop spreads its
# weight over the states. $H$ now has a row for each of the $n$ states.
#
# $$A = \mathrm{softmax}(W_2 \tanh(W_1 H^\top)) \qquad M = A H$$
#
# This is chapter 3's additive score, but without the term of a query. $W_1$
# does what $U$ did, and each row of $W_2$ is the $v$ of one hop. The softmax
# goes along the words, so each row of $A$ sums to 1. The text has become a
# matrix $M$ with a row for each hop. Its rows are put end to end. A dense layer
# with a ReLU reads them, and a linear layer makes the logits.
#
# If nothing tells the hops apart, they may all ask the same. The *penalty*
# $P = \lVert A A^\top - I \rVert_F^2$, a sum of squares over all entries, is 0
# where each hop has one token of its own. The diagonal of $A A^\top$ is 1 only
# where a hop has all its weight on one token. So the penalty asks for sharp
# hops, too. Its mean over the texts, times `penalty`, is added to the loss. We
# train a model of two hops with it and without it.
#
# Each learns for six epochs. They are the last two of the five trainings that
# share the 3 minutes of the chapter.

# %%
sets, place = read(lists)
hops, redundancy, of_hops = {}, {}, {}
example = {"source_ids": sets["test"][0]["source_ids"][:1]}
measured = {"source_ids": sets["test"][0]["source_ids"][:500]}
for penalty in (0.0, 1.0):
    keras.utils.set_random_seed(3)
    model = ka.models.SelfAttentiveEmbedding.from_size(
        "mini", len(place) + END + 1, num_classes=15, penalty=penalty
    )
    fit(model, *sets["train"], epochs=6, rate=4e-3)
    hops[penalty] = accuracy(model, *sets["test"])
    _, weights = model.attend(measured)
    redundancy[penalty] = float(
        np.mean(ka.models.self_attentive_embedding.redundancy(weights))
    )
    of_hops[penalty] = model.attend(example)[1].numpy()[0]
    print(f"penalty {penalty:g}: {100 * hops[penalty]:.1f} % right, "
          f"mean P {redundancy[penalty]:.2f}")  # fmt: skip
if not FAST:
    assert min(hops.values()) > 0.9 > of_bag + 0.3
    assert redundancy[1.0] < redundancy[0.0]

# %%
_, text = lists["test"][0]
tokens = [*text.split(), "[END]"]
ka.plotting.attention_heat_map(
    tokens,
    ["hop 1", "hop 2"],
    np.stack([of_hops[penalty][:, : len(tokens)] for penalty in hops]),
    path=PICTURES / "11_hops.png",
    names=["without the penalty", "with it"],
    axis_names=("text", "hops"),
)

# %% [markdown]
# *Each row is a hop, and sums to 1. With the penalty each hop has a token of
# its own. It need not belong to a thing of mine.* How much of the hops' weight
# is on what is mine: the word "my", the colour behind it and the thing?

# %%
# `weights` is still that of the model with the penalty, [500, 2, S].
ids = measured["source_ids"]
is_my = ids == place["my"]
mine = is_my.copy()
mine[:, 1:] |= is_my[:, :-1]
mine[:, 2:] |= is_my[:, :-2]
on_mine = float(np.mean(np.sum(weights * mine[:, None], axis=2)))
print(
    f"with the penalty, a hop puts {on_mine:.2f} of its weight on what is mine"
)
share = float(np.mean(mine.sum(axis=1) / np.sum(ids > PAD, axis=1)))
print(f"equal weights would put {share:.2f} on it")

# %% [markdown]
# The LSTM has done the binding, and has carried it along the text: a state far
# from "my" may know the colour as well. So the answer can be right although the
# hops look elsewhere. Their map need not point at what decided it. The hops
# only collect. (Training can make them point:
# [experiments](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/phrases.md#hops-that-find)
# show how.)
#
# ## What is left
#
# - A bag of vectors cannot bind, whatever is built upon its mean.
# - Attention is a bag that chooses: with equal weights, it is the bag.
# - Who asks may be the words of another text, or a few questions that are
#   learned.

# %% [markdown]
# ## Your turn
#
# Write the first step of decomposable attention. $F$ is left out: the scores
# are the dot products of the words. Each word of $a$ asks the words of $b$, and
# each word of $b$ asks those of $a$.

# %% tags=["alone"]
import your_turn


def both_ways(a, b):
    """a [S, D], b [T, D] -> beta [S, D] and below it alpha [T, D]."""
    exponentials = np.exp(a @ b.T)  # exp(e_ij): [S, T]
    beta = ...
    alpha = ...
    return np.concatenate([beta, alpha])


your_turn.check(11, both_ways)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def both_ways(a, b):
#     exponentials = np.exp(a @ b.T)  # exp(e_ij): [S, T]
#     beta = exponentials / exponentials.sum(axis=1, keepdims=True) @ b
#     alpha = (exponentials / exponentials.sum(axis=0)).T @ a
#     return np.concatenate([beta, alpha])
#
#
# your_turn.check(11, both_ways)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: Two texts have 6 and 4 words. How many scores $e_{ij}$ do they need?
# - b: "Red" has the vector $(1, 0)$ and "blue" $(0, 1)$. What is the first
#   number of the mean of "red red blue red"?
# - c: Two hops put all their weight on the same word. How large is the penalty
#   $\|A A^\top - I\|^2$, the sum of the squares of all entries?

# %% tags=["alone"]
your_turn.quiz(11, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: One for each pair. Both directions share them.
# - b: Three of four words are "red".
# - c: All entries of $A A^\top$ are 1. Without the diagonal two are left.
#
# ```python
# your_turn.quiz(11, a=6 * 4, b=3 / 4, c=2)
# ```
#
# </details>
#
# ## Exercises
#
# 1. A list has only two different colours, such as "my red hat my blue cup a
#    red bag a blue shoe". Why can a bag always get it right?
#
# <details><summary>Solution</summary>
#
# There is only one pair to choose from, so the label is certain. A list with
# more colours is harder, and the ceiling is a mean over easy and hard lists.
#
# ```python
# assert chance_of_the_best_guess("my red hat my blue cup a red bag") == 1
# # Red twice, blue once, green once: 2 + 2 + 1 ways.
# text = "my red hat my blue cup a red bag a green pen"
# assert chance_of_the_best_guess(text) == 2 / 5
# ```
#
# </details>
#
# 2. How large is the penalty $P$ of two hops that both spread their weight
#    evenly over $n$ tokens? And for large $n$?
#
# <details><summary>Solution</summary>
#
# All entries of $A A^\top$ are $n \cdot 1/n^2 = 1/n$. The two on the diagonal
# should be 1, the two others 0: $P = 2 (1 - 1/n)^2 + 2/n^2$, which goes to 2.
# So the penalty asks for sharp hops as well as for different ones.
#
# ```python
# for n in (2, 10, 1000):
#     even = np.full((1, 2, n), 1 / n)
#     p = ka.models.self_attentive_embedding.redundancy(even)
#     np.testing.assert_allclose(p, 2 * (1 - 1 / n) ** 2 + 2 / n**2)
# ```
#
# </details>
#
# 3. With $F = 0$, what does decomposable attention compute? Set the weights of
#    $F$ to 0 in the trained model. How often is it still right?
#
# <details><summary>Solution</summary>
#
# All scores are 0, all weights are equal, and each word meets the *mean* of the
# other text. The mean is the bag. So the bag of vectors is attention that does
# not look, and attention is a bag that chooses what goes into it. The attention
# weights are then those of the two bags, and all $\beta_i$ are the same mean.
# When this chapter was made, the model was right in 50.9 % without looking.
#
# ```python
# of_pairs = read(pairs)[0]["test"]
# for layer in attentive.attend_layers:
#     layer.set_weights([0 * weight for weight in layer.get_weights()])
# first = {name: ids[:1] for name, ids in of_pairs[0].items()}
# _, (of_b, _) = attentive.attend(first)
# _, (equal, _) = two_bags.attend(first)
# np.testing.assert_allclose(of_b[0, 0], equal[0, 0], atol=1e-6)
# blind = accuracy(attentive, *of_pairs)
# assert FAST or blind < 0.8
# ```
#
# </details>
#
# The real data, TREC, film reviews and SICK, are in
# [Results](https://github.com/keras-attention/keras_attention/blob/main/docs/experiments/sentences.md).
#
# Next: nobody comes from outside, and a text asks itself. That is [chapter
# 11b](11b_looking_back.ipynb).
#
# ## References
#
# - Mikolov et al. 2013, [Efficient Estimation of Word Representations in Vector
#   Space](https://arxiv.org/abs/1301.3781)
# - Iyyer et al. 2015, [Deep Unordered Composition Rivals Syntactic Methods for
#   Text Classification](https://aclanthology.org/P15-1162)
# - Parikh et al. 2016, [A Decomposable Attention Model for Natural Language
#   Inference](https://arxiv.org/abs/1606.01933)
# - Lin et al. 2017, [A Structured Self-attentive Sentence
#   Embedding](https://arxiv.org/abs/1703.03130)
