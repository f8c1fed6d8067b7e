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
# # 10. Reusing the layers
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/10_reusing_layers.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# I have another task: what can I reuse? The layers of this package are ordinary
# Keras layers, and attention is not only for translation. This chapter puts
# them into three small models of other kinds. One reads a text and has to find
# the word that matters. One looks at an image and has to compare its parts. One
# has a score that we write ourselves, in ten lines. Each is trained by `fit` on
# data made here, and each is compared with a model without attention that must
# fail, or with an answer that is known.
#
# Takes about 1 minute on two cores. At the end a table with the scores of
# all models is printed. Pictures are shown here and kept in the folder
# `pictures`.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import keras
import numpy as np
from keras import ops
from matplotlib import patches as mpl_patches

import keras_attention as ka
from keras_attention.plotting import drawing

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
generator = np.random.default_rng(1)
results = {}

# %% [markdown]
# ## Which part for which task
#
# Attention is always the same three lines: scores, softmax, weighted sum.
#
# $$e_{ts} = \mathrm{score}(q_t, k_s) \qquad
# a_{ts} = \frac{\exp e_{ts}}{\sum_r \exp e_{tr}} \qquad
# c_t = \sum_s a_{ts} v_s$$
#
# $q_t$ are the queries, $k_s$ the keys, $v_s$ the values; $a_{ts}$ are the
# attention weights and $c_t$ the contexts. What differs from task to task is
# where the queries come from.
#
# - **One answer from many parts** (below: a text). There is one query, and it
#   is learned; keys and values are the parts. `AdditiveAttention`.
# - **Relations between the parts** (below: an image). Queries, keys and values
#   are the parts. `MultiHeadAttention`, or all of `TransformerEncoderLayer`.
# - **Looking up in a memory** (below: curves). The queries are what is asked,
#   keys and values the memory. `Attention`, with a score of your own.
# - **Writing a sequence from a memory** (chapters 3 to 5). The queries are
#   what is being written. `TransformerDecoderLayer`, or a whole model.
#
# Around them: `padding_mask` and `causal_mask` make masks, `PositionEncoding`
# tells where a part stands, `FeedForward` and `Residual` complete a
# Transformer layer, and `masked_softmax` and `weighted_sum` are the last two
# of the three equations, as functions.
#
# ## A text classifier with attention pooling
#
# A classifier has to turn a sentence of any length into one vector. The
# simplest way is the mean of the words' vectors. It treats all words alike, and
# often that is what is wrong.
#
# Our task: each sentence names all four colours, and the word "code". The
# class is the colour right after "code".

# %%
COLOURS = ["red", "green", "blue", "yellow"]
FILLERS = (
    "the a old new big small house garden boat river street door window lamp "
    "cat dog bird horse tree stone road bridge tower cloud rain snow wind sun "
    "moon star ship train wheel box cup table chair book letter song"
).split()
WORDS = ["", "code", *COLOURS, *FILLERS]  # Id 0 is padding.
IDS = {word: index for index, word in enumerate(WORDS)}


def sentences(count, num_fillers):
    """Sentences in groups of four: the same words, four answers.

    Args:
        count: groups.
        num_fillers: the least and the most words without a meaning.

    Returns:
        Lists of words, and the index of the colour of each.
    """
    texts = []
    for _ in range(count):
        size = generator.integers(*num_fillers, endpoint=True)
        fillers = list(generator.choice(FILLERS, size))
        before = list(generator.choice(FILLERS, 3))
        colours = generator.permutation(COLOURS)
        # Where the four colours go; the last word is a filler.
        places = np.sort(generator.integers(0, size, 4))[::-1]
        for answer in COLOURS:
            others = iter(before)
            words = list(fillers)
            for colour, place in zip(colours, places, strict=True):
                first = "code" if colour == answer else next(others)
                words[place:place] = [first, colour]
            texts.append(words)
    return texts, np.tile(np.arange(4), count)


def padded(texts):
    """Ids [B, S], filled up with 0."""
    longest = max(len(words) for words in texts)
    return np.array(
        [
            [IDS[word] for word in words] + [0] * (longest - len(words))
            for words in texts
        ],
        "int32",
    )


group, answers = sentences(1, (6, 6))
for words, answer in zip(group, answers, strict=True):
    print(f"{COLOURS[answer]:7}", " ".join(words))
assert len({tuple(sorted(words)) for words in group}) == 1

# %% [markdown]
# The four sentences of a group have the same words, in a different order: a
# bag of words cannot tell them apart. So each word's vector is joined with
# that of the word before it. Now the pair (code, blue) is in one vector, and
# it only has to be found.
#
# We pool these vectors in two ways. **Mean pooling** gives each real word the
# same weight. In the words of this package: all scores are 0.

# %%


@keras.saving.register_keras_serializable(package="tutorial")
class MeanPooling(keras.layers.Layer):
    """c = sum_s v_s / S, over the real words: scores of 0."""

    def call(self, value, padding_mask):
        scores = ops.zeros_like(value[:, None, :, 0])  # [B, 1, S]
        weights = ka.layers.masked_softmax(scores, padding_mask[:, None])
        context = ka.layers.weighted_sum(weights, value)
        return context[:, 0], weights[:, 0]


# %% [markdown]
# **Attention pooling** learns which words matter. The query is a weight of the
# layer, the same for all sentences: it is the question "are you the word that
# we need?", and training finds it. In the additive score of chapter 4,
#
# $$e_s = v \cdot \tanh(W q + U h_s),$$
#
# $h_s$ is the vector at place $s$, and $q$ the query; $W$, $U$ and $v$ are
# `AdditiveAttention`'s weights. Since $q$ is constant, so is $W q$. It is the
# bias of the attention that Yang et al. (2016, equations 5 to 7) used to
# classify documents.

# %%


@keras.saving.register_keras_serializable(package="tutorial")
class AttentionPooling(keras.layers.Layer):
    """One learned query looks for what matters in a sequence."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.attention = ka.layers.AdditiveAttention(units, name="attention")

    def build(self, value_shape, padding_mask_shape=None):
        query_shape = (1, 1, self.units)
        self.query = self.add_weight(name="query", shape=query_shape)
        self.attention.build(query_shape, value_shape)

    def call(self, value, padding_mask):
        query = ops.repeat(self.query, ops.shape(value)[0], axis=0)
        context, weights = self.attention(
            query=query, value=value, padding_mask=padding_mask
        )  # [B, 1, D], [B, 1, S]
        return context[:, 0], weights[:, 0]

    def get_config(self):
        return {**super().get_config(), "units": self.units}


# %% [markdown]
# The equation in numpy, with loops, checks that the layer computes what it says
# it does. Vectors are columns in the equations of this chapter, and rows in the
# code.

# %%
value = generator.normal(size=(2, 5, 7)).astype("float32")
mask = np.arange(5) < [[5], [3]]
layer = AttentionPooling(units=11)
context, weights = layer(value, mask)
query = ops.convert_to_numpy(layer.query)[0, 0]
W, U, v = (
    ops.convert_to_numpy(getattr(layer.attention, name))
    for name in ("query_kernel", "key_kernel", "score_vector")
)
for row in range(2):
    length = mask[row].sum()
    e = [
        v[:, 0] @ np.tanh(query @ W + value[row, s] @ U) for s in range(length)
    ]
    a = np.exp(e) / np.sum(np.exp(e))
    c = sum(a[s] * value[row, s] for s in range(length))
    assert np.allclose(weights[row, :length], a, atol=1e-5)
    assert np.allclose(context[row], c, atol=1e-5)
    assert not np.any(weights[row, length:])  # Padding: exactly 0.

# %% [markdown]
# The rest of both models is the same.

# %%


def text_classifier(pooling):
    """Ids -> logits of the four colours."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    padding_mask = ka.layers.padding_mask(ids)
    x = keras.layers.Embedding(len(WORDS), 32)(ids)
    # The word before: shifted by one place.
    before = keras.layers.ZeroPadding1D((1, 0))(x)
    before = keras.layers.Cropping1D((0, 1))(before)
    x = keras.layers.Concatenate()([before, x])  # [B, S, 64]
    context, weights = pooling(x, padding_mask=padding_mask)
    logits = keras.layers.Dense(4)(context)
    model = keras.Model(ids, logits)
    # The same layers, to look inside.
    return model, keras.Model(ids, weights)


train_texts, train_labels = sentences(50 if FAST else 1000, (4, 12))
test_texts, test_labels = sentences(250, (4, 12))
looking = {}
for name, pooling in (
    ("mean pooling", MeanPooling()),
    ("attention pooling", AttentionPooling(units=32)),
):
    keras.utils.set_random_seed(1)
    model, looking[name] = text_classifier(pooling)
    model.compile(
        keras.optimizers.Adam(3e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        padded(train_texts),
        train_labels,
        batch_size=64,
        epochs=1 if FAST else 10,
        verbose=0,
    )
    _, accuracy = model.evaluate(padded(test_texts), test_labels, verbose=0)
    results[f"text, {name}"] = accuracy
    print(f"{name:18} {100 * accuracy:5.1f} % right")
classifier = model

# %% [markdown]
# Mean pooling is right once in four times, which is what guessing gives. That
# is no accident of training. The four sentences of a group have the same words
# and, since the last word is the same too, the same words standing before other
# words. So the mean of their vectors is the same, whatever the embeddings. The
# model has to give the same answer to all four, and one of them is right.

# %%
assert abs(results["text, mean pooling"] - 1 / 4) < 0.005
means = MeanPooling()(
    generator.normal(size=(len(WORDS), 8)).astype("float32")[padded(group)],
    padding_mask=padded(group) != 0,
)[0]
assert np.allclose(means, means[:1], atol=1e-6)
if not FAST:
    assert results["text, attention pooling"] > 0.98

# %% [markdown]
# And where does attention look? We ask for the weights of a group.

# %%
weights = np.array(looking["attention pooling"](padded(group)))
with drawing.style():
    figure = drawing.Figure(figsize=(6, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.imshow(weights.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for column, words in enumerate(group):
        for place, word in enumerate(words):
            dark = weights[column, place] > 0.6
            axes.text(
                column,
                place,
                word,
                ha="center",
                va="center",
                color="white" if dark else drawing.INK,
            )
    axes.set_yticks([])
    axes.set_xticks(range(4), [COLOURS[answer] for answer in answers])
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("class")
    axes.set_ylabel("words, from first to last")
    axes.spines[:].set_visible(False)
    drawing.save(figure, PICTURES / "10_where_it_looks.png")
figure

# %% [markdown]
# What to see: each column is a sentence. The words are the same in all four,
# but the dark cell is always the colour after "code". The weights say which
# word decided; mean pooling has nothing to show.
#
# Over the whole test set: how much weight lies on the word that was planted?

# %%
test_ids = padded(test_texts)
weights = np.array(looking["attention pooling"].predict(test_ids, verbose=0))
planted = np.roll(test_ids == IDS["code"], 1, axis=1)
share = weights[planted].mean()
print(f"weight on the planted word: {share:.3f}")
if not FAST:
    assert share > 0.9
assert planted.sum() == len(test_ids)

# %% [markdown]
# Now sentences longer than any in training: the mean of more words says less of
# each, but the largest score stays the largest.

# %%
long_texts, long_labels = sentences(100, (40, 60))
_, accuracy = classifier.evaluate(padded(long_texts), long_labels, verbose=0)
results["text, attention pooling, longer texts"] = accuracy
print(f"48 to 68 words instead of 12 to 20: {100 * accuracy:.1f} % right")
if not FAST:
    assert accuracy > 0.9

# %% [markdown]
# ## An image model: which patch is the same?
#
# Attention knows nothing of words. Cut an image into patches, make each patch a
# vector, and there is a sequence of tokens (Dosovitskiy et al. 2021 built their
# Vision Transformer this way).
#
# Our images have 4 by 4 patches of 6 by 6 pixels. Each patch shows a pattern
# of 3 by 3 black and white squares, with noise. The patch in the top left
# corner has a twin: one of the other 15 shows the same pattern, with other
# noise. Where is it?

# %%
NUM_PATTERNS = 2**9


def images(count):
    """Images [B, 24, 24], and which of the other 15 patches is the twin."""
    patterns = np.array(
        [
            generator.choice(NUM_PATTERNS, 15, replace=False)
            for _ in range(count)
        ]
    )
    twins = generator.integers(0, 15, count)
    first = patterns[np.arange(count), twins]
    patterns = np.concatenate([first[:, None], patterns], axis=1)  # [B, 16]
    squares = (patterns[..., None] >> np.arange(9)) & 1  # [B, 16, 9]
    squares = squares.reshape(count, 4, 4, 3, 3).transpose(0, 1, 3, 2, 4)
    pixels = squares.reshape(count, 12, 12).repeat(2, axis=1).repeat(2, axis=2)
    noise = generator.normal(0, 0.2, (count, 24, 24))
    return (pixels + noise).astype("float32"), twins


def patches(image):
    """[B, 24, 24] -> [B, 16, 36]: a row for each patch."""
    x = keras.layers.Reshape((4, 6, 4, 6))(image)
    x = keras.layers.Permute((1, 3, 2, 4))(x)
    return keras.layers.Reshape((16, 36))(x)


train_images, train_twins = images(500 if FAST else 20_000)
test_images, test_twins = images(2_000)
cut = np.array(patches(train_images[:1]))
assert np.array_equal(cut[0, 6].reshape(6, 6), train_images[0, 6:12, 12:18])

# %% [markdown]
# No patch holds the answer. It is a relation between two of them. In terms of
# attention: the first patch is the query, the other 15 are keys and values. The
# score compares two patches; the value of a patch also tells where it is,
# because `PositionEncoding` has added its place. If the weights find the twin,
# the context is the twin's value, and a `Dense` layer reads the place from it.

# %%


def with_attention(x):
    """The first patch asks, the others answer."""
    x = keras.layers.Dense(64)(x)
    x = ka.layers.PositionEncoding()(x)
    first = keras.layers.Cropping1D((0, 15))(x)
    others = keras.layers.Cropping1D((1, 0))(x)
    context, weights = ka.layers.MultiHeadAttention(
        num_heads=8, key_dim=16, name="find_twin"
    )(query=first, value=others)  # [B, 1, 64], [B, 8, 1, 15]
    return keras.layers.Flatten()(context), weights


# %% [markdown]
# Beside it we train two models without attention. In the first one, each patch
# goes by itself through the same hidden layer, and the results are added up. A
# sum of functions that each see one patch cannot say whether two patches are
# equal: each pattern by itself is a twin as often as any other. The second one
# is not so limited: two wide layers see all pixels at once.

# %%


def each_by_itself(x):
    """What the patches say is added up."""
    x = keras.layers.Dense(64, activation="relu")(x)
    return keras.layers.Flatten()(x), None


def two_wide_layers(x):
    """All pixels at once."""
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(512, activation="relu")(x)
    return keras.layers.Dense(512, activation="relu")(x), None


def fit_image_model(body, data, epochs):
    """A trained classifier of 15 places, and its attention weights."""
    keras.utils.set_random_seed(1)
    image = keras.Input((24, 24), name="image")
    features, weights = body(patches(image))
    model = keras.Model(image, keras.layers.Dense(15)(features))
    model.compile(
        keras.optimizers.Adam(2e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(*data, batch_size=128, epochs=epochs, verbose=0)
    return model, None if weights is None else keras.Model(image, weights)


parameters = []
for body in (each_by_itself, two_wide_layers, with_attention):
    detector, look = fit_image_model(
        body, (train_images, train_twins), epochs=1 if FAST else 3
    )
    parameters.append(detector.count_params())
    _, accuracy = detector.evaluate(test_images, test_twins, verbose=0)
    name = body.__name__.replace("_", " ")
    results[f"images, {name}"] = accuracy
    print(
        f"{name:16} {100 * accuracy:5.1f} % right, "
        f"{parameters[-1]:7,} parameters"
    )

assert abs(results["images, each by itself"] - 1 / 15) < 0.03
assert parameters[1] > 15 * parameters[2]
if not FAST:
    assert results["images, with attention"] > 0.95
    assert results["images, two wide layers"] < 0.6

# %% [markdown]
# Patches seen one by one are worth no more than a guess, 1 in 15. The wide
# layers could compare in principle, but they would have to learn each pair of
# places anew, and each pattern: with 15 times the parameters they are far
# behind. Attention learns one comparison, of patch with patch, and uses it 15
# times.
#
# The weights show whether it works as we think. There are eight heads, each
# with a comparison of its own that began at random. Not every head finds the
# twin, but it is enough that some do.

# %%
weights = look.predict(test_images, verbose=0)[:, :, 0]  # [B, H, 15]
on_twin = weights[np.arange(len(weights)), :, test_twins].mean(axis=0)
print("weight on the twin, by head:", on_twin.round(2))
best_head = on_twin.argmax()
weights = weights[:, best_head]
found = (weights.argmax(axis=1) == test_twins).mean()
print(f"head {best_head} has its largest weight on the twin: {found:.3f}")
if not FAST:
    assert on_twin[best_head] > 0.7 and found > 0.9
    assert on_twin.min() < 0.5

# %%
with drawing.style():
    figure = drawing.Figure(figsize=(6, 4), layout="constrained")
    panels = figure.subplots(2, 3)
    for column in range(3):
        top, bottom = panels[:, column]
        top.imshow(test_images[column], cmap="gray", vmin=-0.4, vmax=1.4)
        grid = np.insert(weights[column], 0, np.nan).reshape(4, 4)
        bottom.imshow(grid, cmap="Blues", vmin=0, vmax=1)
        place = test_twins[column] + 1
        for patch, line in ((0, "--"), (place, "-")):
            corner = patch % 4, patch // 4
            for axes, size in ((top, 6), (bottom, 1)):
                frame = mpl_patches.Rectangle(
                    (corner[0] * size - 0.5, corner[1] * size - 0.5),
                    *(size, size),
                    fill=False,
                    edgecolor=drawing.COLORS[1],
                    linestyle=line,
                    linewidth=2.5,
                    clip_on=False,
                )
                axes.add_patch(frame)
        for axes in (top, bottom):
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(False)
    panels[0, 0].set_ylabel("image")
    panels[1, 0].set_ylabel("one head")
    drawing.save(figure, PICTURES / "10_twins.png")
figure

# %% [markdown]
# What to see: above, the patch that asks has a dashed frame and its twin a
# solid one; below, the weight of one head is on the twin.
#
# In a larger model all patches would ask at once (self-attention), in several
# layers with feed-forward networks in between: `TransformerEncoderLayer`, whose
# `padding_mask` hides parts that are not there. Where you pass none, our layers
# use the mask that `Embedding(mask_zero=True)` attaches.
# `keras.layers.MultiHeadAttention` would do here as well; ours always returns
# its weights and has the steps that a decoder needs.

# %% [markdown]
# ## A custom score in ten lines
#
# `ka.layers.Attention` is abstract: it has the softmax, the masks and the
# weighted sum, and asks a subclass for the score. Three methods are enough.
# `build` makes the weights. `project` is the part of the score that depends on
# the keys alone. A decoder calls it once for each sentence, outside of `call`,
# where Keras does not cast weights for mixed precision, so we cast. `score`
# compares queries with projected keys.
#
# The score that we want is a distance. A query looks at the keys near it:
#
# $$\mathrm{score}(q_t, k_s) = -\lVert W q_t - W k_s \rVert^2$$
#
# With values $y_s$ the context is
# $c_t = \sum_s y_s \, e^{-\lVert W q_t - W k_s \rVert^2} \big/
# \sum_r e^{-\lVert W q_t - W k_r \rVert^2}$, an average of the values near
# the query. Statisticians know it as kernel regression (Nadaraya 1964, Watson
# 1964), with a Gaussian kernel whose widths are in $W$. They choose the
# widths; we learn them by `fit`.

# %%


@keras.saving.register_keras_serializable(package="tutorial")
class DistanceAttention(ka.layers.Attention):
    """score(query, key) = -||W query - W key||^2."""

    def build(self, query_shape, value_shape, key_shape=None):
        dim = query_shape[-1]
        self.kernel = self.add_weight((dim, dim), "identity", name="kernel")

    def project(self, key):
        return ops.matmul(key, ops.cast(self.kernel, key.dtype))

    def score(self, query, projected_key):
        projected_query = self.project(query)[:, :, None]  # [B, T, 1, D]
        difference = projected_query - projected_key[:, None]  # [B, T, S, D]
        return -ops.sum(ops.square(difference), axis=-1)


# %% [markdown]
# Masks, the `.keras` format and the decoder's `attend` come with the base
# class. The layer's weight is $W^\top$, as its vectors are rows. The equation
# again with loops:

# %%
layer = DistanceAttention()
query = generator.normal(size=(2, 3, 2)).astype("float32")
key = generator.normal(size=(2, 5, 2)).astype("float32")
value = generator.normal(size=(2, 5, 1)).astype("float32")
mask = np.arange(5) < [[5], [3]]
layer.build(query.shape, value.shape, key.shape)
W = generator.normal(size=(2, 2)).astype("float32")
layer.set_weights([W.T])
context, weights = layer(query=query, value=value, key=key, padding_mask=mask)
for row in range(2):
    for t in range(3):
        keep = np.flatnonzero(mask[row])
        e = [-np.sum((W @ query[row, t] - W @ key[row, s]) ** 2) for s in keep]
        a = np.exp(e) / np.sum(np.exp(e))
        assert np.allclose(np.array(weights)[row, t, keep], a, atol=1e-5)
        c = sum(a[i] * value[row, s] for i, s in enumerate(keep))
        assert np.allclose(np.array(context)[row, t], c, atol=1e-5)

# %% [markdown]
# The data: each example is a curve that the model has never seen, a sine with a
# random phase and speed. The memory is 64 noisy points of the curve. A point
# has two coordinates, and the curve depends on the first one only; the second
# is there to mislead. The model is asked for the curve at other points. It has
# four weights in all, the matrix $W$.

# %%
NOISE = 0.3


def curves(count, num_points=64, num_queries=32):
    """Noisy points of sines, and places to guess them at."""
    phase = generator.uniform(0, 2 * np.pi, (count, 1))
    speed = generator.uniform(3, 6, (count, 1))

    def curve(x):
        return np.sin(speed * x[..., 0] + phase)[..., None]

    keys = generator.uniform(-1, 1, (count, num_points, 2))
    queries = generator.uniform(-1, 1, (count, num_queries, 2))
    values = curve(keys) + generator.normal(0, NOISE, (count, num_points, 1))
    inputs = {"queries": queries, "keys": keys, "values": values}
    return (
        {name: array.astype("float32") for name, array in inputs.items()},
        curve(queries).astype("float32"),
    )


def curve_model():
    """Asks the memory at the queries."""
    inputs = {
        "queries": keras.Input((None, 2), name="queries"),
        "keys": keras.Input((None, 2), name="keys"),
        "values": keras.Input((None, 1), name="values"),
    }
    context, _ = DistanceAttention(name="look_up")(
        query=inputs["queries"], value=inputs["values"], key=inputs["keys"]
    )
    model = keras.Model(inputs, context)
    model.compile(keras.optimizers.Adam(0.1), "mean_squared_error")
    return model


train_curves = curves(200 if FAST else 2000)
test_curves = curves(500)
curve_guess = curve_model()
assert curve_guess.count_params() == 4


def curve_error(kernel):
    """Mean squared error on the test curves with a matrix W."""
    old = curve_guess.get_weights()
    curve_guess.set_weights([np.array(kernel, "float32")])
    error = curve_guess.evaluate(*test_curves, batch_size=100, verbose=0)
    curve_guess.set_weights(old)
    return error


results["curves, uniform weights"] = curve_error(np.zeros((2, 2)))
results["curves, W = identity"] = curve_error(np.eye(2))
curve_guess.fit(
    *train_curves, batch_size=50, epochs=1 if FAST else 15, verbose=0
)
W = curve_guess.get_weights()[0].T
results["curves, W learned"] = curve_error(W.T)
for name in ("uniform weights", "W = identity", "W learned"):
    print(f"{name:18} error {results[f'curves, {name}']:.3f}")
print(W.round(2))

# %% [markdown]
# What should $W$ be? The first coordinate matters, so its column should be
# long, but not too long: with very narrow kernels the average is over few
# points and keeps their noise. The second does not matter, so its column should
# be 0. The score depends on $W^\top W$ only, so $W$ is known up to a rotation
# or reflection, but the lengths of its columns are fixed: they are, up to a
# factor of $\sqrt 2$, the inverse standard deviations of the kernel. For a
# diagonal $W$ with a 0 we can try many widths ourselves, and compare the best
# of them with what was learned.

# %%
widths = np.linalg.norm(W, axis=0)
print("lengths of the columns:", widths.round(2))
tried = {b: curve_error(np.diag([b, 0])) for b in np.arange(1, 12.1, 0.5)}
best = min(tried, key=tried.get)
print(f"tried by hand: {best:.1f} is best, error {tried[best]:.4f}")
print(f"learned: error {results['curves, W learned']:.4f}")
# Uniform weights give the mean of a curve's points: no better than its spread.
assert 0.4 < results["curves, uniform weights"] < 0.6
if not FAST:
    assert widths[1] < 0.2 * widths[0]
    assert abs(widths[0] - best) < 1.5
    assert results["curves, W learned"] < 1.05 * tried[best]
    assert results["curves, W learned"] < 0.5 * results["curves, W = identity"]

# %%
line = np.linspace(-1, 1, 201)
example = {name: array[:1] for name, array in test_curves[0].items()}
example["queries"] = np.stack([line, 0 * line], axis=-1)[None].astype("float32")
learned = curve_guess.predict(example, verbose=0)[0, :, 0]
curve_guess.set_weights([np.eye(2)])
unlearned = curve_guess.predict(example, verbose=0)[0, :, 0]
curve_guess.set_weights([W.T])
with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        example["keys"][0, :, 0],
        example["values"][0, :, 0],
        "o",
        color="#BBBBBB",
        label="memory",
    )
    axes.plot(
        line, unlearned, "--", color=drawing.COLORS[1], label="W = identity"
    )
    axes.plot(line, learned, color=drawing.COLORS[0], label="W learned")
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.set_xlabel("first coordinate")
    axes.set_ylabel("value")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "10_kernel_regression.png")
figure

# %% [markdown]
# What to see: with the learned $W$ the average runs through the points; with
# the identity each query averages over most of the memory, and the curve is
# flat. The model has learned no curve, since it gets a new one each time. It
# has learned how to look.

# %% [markdown]
# ## Saving and loading
#
# All three models are saved as `.keras` like any other. Our classes are
# registered under their names, and so are those of this chapter, by the
# decorator `register_keras_serializable`. A loaded model gives the same
# answers, bit for bit.

# %%
with tempfile.TemporaryDirectory() as folder:
    for name, model, inputs in (
        ("text", classifier, test_ids),
        ("images", detector, test_images),
        ("curves", curve_guess, test_curves[0]),
    ):
        path = pathlib.Path(folder) / f"{name}.keras"
        model.save(path)
        loaded = keras.models.load_model(path)
        before = model.predict(inputs, verbose=0)
        assert np.array_equal(before, loaded.predict(inputs, verbose=0))
        print(f"{name:8} {path.stat().st_size / 1000:6.1f} kB")

# %% [markdown]
# In another process the names have to be registered before the file is read:
# `import keras_attention as ka`, then touch `ka.layers`, and import the module
# with your own classes.
#
# A translator that was trained is a Keras model, too: from a run's folder,
# `ka.load("runs/NAME").model` gives the whole model, and its
# `encode(source_ids)` is the trained encoder. (A SavedModel, such as those that
# come with the package, is a graph and gives no layers.)
#
# ## Other backends
#
# The layers are written in `keras.ops` alone, so they run on JAX and PyTorch as
# they do on TensorFlow; only `ka.training.optimizers`, `ka.training.trainer`,
# text, data and serving need TensorFlow. Even numpy is a backend of Keras (it
# computes, but cannot train; it needs jax and scipy). We compute the same
# attention on each backend that is installed here, in a process of its own; the
# tests of the package do so for whole models.

# %%
BACKEND_PROGRAM = """
import sys

import keras
import numpy as np

import keras_attention as ka

given = dict(np.load(sys.argv[1]))
query, value, mask = (given[name] for name in ("query", "value", "mask"))
found = {}
for name, layer in (
    ("additive", ka.layers.AdditiveAttention(8)),
    ("multi_head", ka.layers.MultiHeadAttention(2, 4)),
):
    layer.build(query.shape, value.shape)
    weights = [given[f"{name}{i}"] for i in range(len(layer.weights))]
    layer.set_weights(weights)
    context, _ = layer(query=query, value=value, padding_mask=mask)
    found[name] = keras.ops.convert_to_numpy(context)
np.savez(sys.argv[2], **found)
if keras.backend.backend() != "tensorflow":
    assert "tensorflow" not in sys.modules
"""

given = {
    "query": generator.normal(size=(2, 3, 6)).astype("float32"),
    "value": generator.normal(size=(2, 5, 7)).astype("float32"),
    "mask": np.arange(5) < [[5], [3]],
}
expected = {}
for name, layer in (
    ("additive", ka.layers.AdditiveAttention(8)),
    ("multi_head", ka.layers.MultiHeadAttention(2, 4)),
):
    context, _ = layer(
        query=given["query"],
        value=given["value"],
        padding_mask=given["mask"],
    )
    expected[name] = np.array(context)
    for index, array in enumerate(layer.get_weights()):
        given[f"{name}{index}"] = array

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    program = folder / "other_backend.py"
    program.write_text(BACKEND_PROGRAM)
    np.savez(folder / "given.npz", **given)
    for backend, needed in (
        ("numpy", ["jax", "scipy"]),
        ("jax", ["jax"]),
        ("torch", ["torch"]),
    ):
        if None in map(importlib.util.find_spec, needed):
            print(f"{backend:6} not here: it needs {' and '.join(needed)}")
            continue
        subprocess.run(
            [sys.executable, program, folder / "given.npz", folder / "f.npz"],
            env={
                **os.environ,
                "KERAS_BACKEND": backend,
                "PYTHONPATH": os.pathsep.join(
                    [str(pathlib.Path(ka.__file__).parents[1]), *sys.path]
                ),
            },
            check=True,
        )
        found = np.load(folder / "f.npz")
        error = max(
            np.abs(found[name] - expected[name]).max() for name in expected
        )
        print(f"{backend:6} differs by {error:.1e} at most")
        assert error < 1e-5

# %%
# All scores of the chapter.
for name, result in results.items():
    print(f"{name:42} {result:.3f}")

# %% [markdown]
# ## What to take away
#
# - Attention is a softmax over scores and a weighted sum. A task decides what
#   asks (the queries) and what is asked (keys and values); the layers are the
#   same.
# - One learned query turns attention into pooling: it finds the part that
#   matters, says which one it was, and does not mind how many others there
#   are.
# - Where the answer lies in a relation between parts, let the parts ask each
#   other. A model that looks at each part by itself has no chance.
# - A score of your own is a method of a few lines; masks, saving and other
#   backends come with the base class.
#
# ## Your turn
#
# Write attention pooling for a batch of texts of different lengths. The scores
# are given. Each text becomes one vector.

# %% tags=["alone"]
import your_turn


def pooled(value, scores, mask):
    """value [B, S, D], scores and mask [B, S] -> [B, D]."""
    shares = ...  # [B, S]
    return np.einsum("bs,bsd->bd", shares, value)


your_turn.check(10, pooled)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def pooled(value, scores, mask):
#     shares = np.exp(np.where(mask, scores, -np.inf))
#     shares = shares / shares.sum(axis=1, keepdims=True)
#     return np.einsum("bs,bsd->bd", shares, value)
#
#
# your_turn.check(10, pooled)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: Mean pooling reads 5 words, filled up to 8. What is the weight of a word?
# - b: `AttentionPooling` has a query of 32 numbers and `units=32`. It reads
#   vectors of width 64. How many weights does it have?
# - c: An image has 4 by 4 patches, and each asks all, itself too. How many
#   scores are that?

# %% tags=["alone"]
your_turn.quiz(10, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: Padding has no weight.
# - b: The query has 32, $W$ is 32 by 32, $U$ is 64 by 32, and $v$ has 32.
# - c: There are 16 patches.
#
# ```python
# your_turn.quiz(10, a=1 / 5, b=32 + 32 * 32 + 64 * 32 + 32, c=16 * 16)
# ```
#
# </details>
#
# ## Exercises
#
# **1.** Attention pooling contains mean pooling. Which one weight of
# `AttentionPooling` has to be 0 so that both layers give the same context?
# Check it.
#
# <details><summary>Solution</summary>
#
# The vector $v$. All scores are 0 then, whatever the query.
#
# ```python
# value = generator.normal(size=(2, 5, 7)).astype("float32")
# mask = np.arange(5) < [[5], [3]]
# layer = AttentionPooling(units=11)
# layer(value, padding_mask=mask)  # Builds it.
# layer.attention.score_vector.assign(np.zeros((11, 1)))
# for ours, theirs in zip(
#     layer(value, padding_mask=mask),
#     MeanPooling()(value, padding_mask=mask),
#     strict=True,
# ):
#     assert np.allclose(ours, theirs, atol=1e-6)
# ```
#
# </details>
#
# **2.** Write a subclass `PoolingWithQuestions` of `AttentionPooling` that
# asks two questions: it returns a context of width $2D$ and weights [B, 2, S].
#
# <details><summary>Solution</summary>
#
# Two queries instead of one; `AdditiveAttention` answers each by itself.
#
# ```python
# class PoolingWithQuestions(AttentionPooling):
#     def build(self, value_shape, padding_mask_shape=None):
#         query_shape = (1, 2, self.units)
#         self.query = self.add_weight(
#             name="query", shape=query_shape, initializer="random_normal"
#         )
#         self.attention.build(query_shape, value_shape)
#
#     def call(self, value, padding_mask):
#         query = ops.repeat(self.query, ops.shape(value)[0], axis=0)
#         context, weights = self.attention(
#             query=query, value=value, padding_mask=padding_mask
#         )  # [B, 2, D], [B, 2, S]
#         context = ops.reshape(context, (-1, 2 * value.shape[-1]))
#         return context, weights
#
#
# context, weights = PoolingWithQuestions(units=11)(value, padding_mask=mask)
# assert context.shape == (2, 14) and weights.shape == (2, 2, 5)
# assert np.allclose(ops.sum(weights, axis=-1), 1, atol=1e-5)
# ```
#
# Lin et al. (2017) read a sentence with 30 such questions.
#
# </details>
#
# **3.** Write Luong's general score (2015, section 3.1), $q_t^\top W k_s$, as a
# subclass of `ka.layers.Attention`, and compare it with
# `ka.layers.MultiplicativeAttention("general")`.
#
# <details><summary>Solution</summary>
#
# ```python
# class GeneralAttention(ka.layers.Attention):
#     def build(self, query_shape, value_shape, key_shape=None):
#         shape = ((key_shape or value_shape)[-1], query_shape[-1])
#         self.kernel = self.add_weight(name="kernel", shape=shape)
#
#     def project(self, key):
#         return ops.matmul(key, ops.cast(self.kernel, key.dtype))
#
#     def score(self, query, projected_key):
#         return ops.matmul(query, ops.swapaxes(projected_key, 1, 2))
#
#
# query = generator.normal(size=(2, 3, 6)).astype("float32")
# ours = GeneralAttention()
# theirs = ka.layers.MultiplicativeAttention("general")
# for layer in (ours, theirs):
#     layer.build(query.shape, value.shape)
# ours.set_weights(theirs.get_weights())
# given = {"query": query, "value": value, "padding_mask": mask}
# for one, other in zip(ours(**given), theirs(**given), strict=True):
#     assert np.allclose(one, other, atol=1e-6)
# ```
#
# </details>
#
# **4.** For keys of length 1, and $W$ the identity, our distance is a score of
# chapter 4 in disguise. Which one, and at what temperature?
#
# <details><summary>Solution</summary>
#
# $-\lVert q - k \rVert^2 = 2\, q \cdot k - \lVert q \rVert^2 -
# \lVert k \rVert^2$. The last two terms are the same for all keys of a query,
# and what is added to all scores of a softmax cancels. It is the dot score,
# doubled: temperature 1/2.
#
# ```python
# query = generator.normal(size=(2, 3, 7)).astype("float32")
# key = generator.normal(size=(2, 5, 7)).astype("float32")
# key /= np.linalg.norm(key, axis=-1, keepdims=True)
# distance = DistanceAttention()
# distance.build(query.shape, value.shape, key.shape)
# given = {"value": value, "key": key, "padding_mask": mask}
# _, ours = distance(query=query, **given)
# dot = ka.layers.MultiplicativeAttention("dot")
# _, theirs = dot(query=2 * query, **given)
# assert np.allclose(ours, theirs, atol=1e-5)
# ```
#
# </details>
#
# `docs/` has the guide to adding a paper's model, and the reference of every
# layer used here.
#
# Next, in [chapter 11](11_whose_is_his.ipynb): can a network know a word by the
# words around it?
