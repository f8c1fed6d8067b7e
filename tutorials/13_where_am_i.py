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
# # 13. Where am I?
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/13_where_am_i.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# Attention is a sum over a set, and a set has no order. [Chapter
# 5](05_transformer.ipynb) gave the order back by adding sinusoids to the words.
# That is one of two places where a position can go. The other is the score: how
# much does word $t$ want word $s$, *given how far apart they are*? This chapter
# tries six kinds of positions, two in the word and four in the score, and a
# seventh model without any. It measures what each knows about texts that are
# longer than any it was trained on.
#
# Takes about 5 minutes on two cores. Most of them pass in one cell, which
# trains each of the seven from three seeds, and prints a line when one is
# ready. Pictures are shown here and kept in the folder `pictures`. The chapter
# prints how much each of the seven gets right at one, two, four and eight times
# the length of training. Vectors are rows in the equations of this chapter, as
# in $x W$ and in the code. In a map a row asks and a column is asked.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import os
import pathlib

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.plotting import drawing

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")

# %% [markdown]
# ## A bag of words
#
# First, attention without any positions. Shuffle the words, and the outputs are
# shuffled in the same way: nothing else changes. Chapter 5 called this
# *equivariant* to permutations. "The dog bites the man" and "the man bites the
# dog" are the same bag. All weights in the next cell are drawn at random.

# %%
LENGTH, WIDTH, HEADS = 8, 16, 2
KEY_DIM = WIDTH // HEADS
x = keras.random.normal((1, LENGTH, WIDTH), seed=1)


def new_attention(positions=None):
    """Multi-head attention, its weights drawn (biases too)."""
    layer = ka.layers.MultiHeadAttention(HEADS, KEY_DIM, positions=positions)
    layer.build((None, None, WIDTH))
    generator = np.random.default_rng(1)
    for weight in layer.trainable_weights:
        weight.assign(generator.normal(0, 0.4, weight.shape))
    return layer


order = np.random.default_rng(2).permutation(LENGTH)
blind = new_attention()
outputs, _ = blind(x)
of_shuffled, _ = blind(ops.take(x, order, axis=1))
np.testing.assert_allclose(
    of_shuffled, ops.take(outputs, order, axis=1), atol=1e-5
)

# %% [markdown]
# A causal mask says a little about order, since a word sees only those before
# it. But one causal layer still takes its past for a bag: shuffle everything
# before the last word, and the last output stays as it was. (Two layers know
# more, see exercise 2 of chapter 5. So the models of this chapter have one.)

# %%
past = np.append(np.random.default_rng(3).permutation(LENGTH - 1), LENGTH - 1)
last, _ = blind(x, use_causal_mask=True)
of_shuffled, _ = blind(ops.take(x, past, axis=1), use_causal_mask=True)
np.testing.assert_allclose(of_shuffled[:, -1], last[:, -1], atol=1e-5)

# %% [markdown]
# ## Added to the word
#
# The first place for a position is the word itself: $x_t + p_t$, where each
# place $t$ has a vector $p_t$. This vector is **learned** (Gehring et al.
# 2017), or it is made of **sinusoids** (Vaswani et al. 2017). What does a score
# then know of places? Leave out the biases and the division by $\sqrt d$. With
# $W = W_Q W_K^\top$ the score has four parts:
#
# $$(x_t + p_t)\, W (x_s + p_s)^\top = x_t W x_s^\top + x_t W p_s^\top +
# p_t W x_s^\top + p_t W p_s^\top .$$
#
# The last part is about two places, and could be a function of their distance.
# Chapter 5 built such a $W$ for sinusoids. The two parts in the middle mix a
# word with an *absolute* place. So if the whole sentence moves, its scores
# change.
#
# Here is the test. We put $k$ padded words before the text and mask them. The
# words of the text are the same and just as far apart, and only their places
# have changed. `change` returns the greatest difference that this makes to an
# output. Its argument `read` is a function that reads a text in one of the
# seven ways.


# %%
def moved(read, x, k):
    """What `read` gives for x, if the text begins at place k."""
    padded = ops.pad(x, [[0, 0], [k, 0], [0, 0]])
    is_real = (np.arange(k + x.shape[1]) >= k)[None]
    return read(padded, is_real)[:, k:]


def change(read, k=29):
    """How much the outputs change when the text moves by k places."""
    return float(ops.max(ops.abs(moved(read, x, k) - moved(read, x, 0))))


def read_with_added(added):
    """Positions into the words, then plain attention."""
    return lambda x, is_real: blind(added(x), padding_mask=is_real)[0]


def read_with_scored(positions):
    """Positions into the attention."""
    layer = new_attention(positions)
    return lambda x, is_real: layer(x, padding_mask=is_real)[0]


normal = keras.initializers.RandomNormal(stddev=1.0)
learned = ka.layers.LearnedPositions(64, embeddings_initializer=normal)
sinusoids = ka.layers.PositionEncoding()
changes = {
    "none": change(lambda x, is_real: blind(x, padding_mask=is_real)[0]),
    "learned": change(read_with_added(learned)),
    "sinusoids": change(read_with_added(sinusoids)),
}

# %% [markdown]
# ## Put into the score
#
# The second place is the score. `MultiHeadAttention(positions=layer)` has a
# layer of positions, which may do three things: turn queries and keys before
# they meet, add to the scores, and add to the context. Here are four papers
# with a layer each. $q_t$, $k_s$ and $v_s$ are the query, key and value of one
# head, and $d$ is their width.
#
# **Relative positions** (Shaw et al. 2018) learn a vector $a^K$ for each
# distance and add it to the key, and another one, $a^V$, for the value. Both
# are $d$ wide, and all heads share them. All distances beyond `max_distance`
# have the vector of that distance:
#
# $$e_{ts} = \frac{q_t \cdot (k_s + a^K_{s - t})}{\sqrt{d}}, \qquad
# c_t = \sum_s \alpha_{ts} (v_s + a^V_{s - t}) .$$
#
# **T5** (Raffel et al. 2020) learns only a number for each distance, in each
# head, and adds it to the score (T5 itself leaves the division out):
#
# $$e_{ts} = \frac{q_t \cdot k_s}{\sqrt{d}} + b_{s - t} .$$
#
# Far distances share a number: they fall into *buckets* that get wider and
# wider. Let there be $N$ buckets for earlier words, and let $n = t - s$ be the
# distance. The first half of the buckets has one distance each. In the second
# half the width grows with the logarithm, and from the distance $M$ on
# (`max_distance`) all are in the last one:
#
# $$\mathrm{bucket}(n) = \begin{cases} n & n < N / 2 \\[4pt]
# \min\Big(N - 1,\; \dfrac N2 + \Big\lfloor \dfrac N2 \cdot
# \dfrac{\log(2 n / N)}{\log(2 M / N)} \Big\rfloor\Big) & \text{otherwise}
# \end{cases}$$
#
# $\lfloor\ \rfloor$ rounds down. If a layer may look ahead, later words have
# $N$ buckets of their own: the word $n$ places later is in bucket
# $N + \mathrm{bucket}(n)$. The layer's `num_buckets` is then $2 N$.
#
# **ALiBi** (Press et al. 2022) learns nothing. Its $b_{s - t}$ is $-m_h \cdot
# |t - s|$: what is far is faint. The slope $m_h$ of head $h$ of $H$ is fixed,
# one power of two after the other:
#
# $$m_h = 2^{-8 h / H}, \qquad h = 1, \dots, H .$$
#
# With 8 heads the slopes are $\frac12, \frac14, \dots, \frac1{256}$. With 2
# heads, as in this chapter, they are $\frac1{16}$ and $\frac1{256}$. (If $H$ is
# no power of two, the layer takes the slopes of the next lower power, and then
# every second one of the next higher power.) The next picture has both biases
# with small numbers.

# %% tags=["hide-input", "alone"]
import diagrams

six_places = np.arange(6)
six_apart = six_places[:, None] - six_places  # t - s: [T, S]
four_buckets = ka.layers.BucketedBias(4, max_distance=8, bidirectional=False)
small_buckets = ops.convert_to_numpy(four_buckets.buckets(-six_apart))
first_slope = ka.layers.alibi_slopes(8)[0]
assert small_buckets[5].tolist() == [3, 3, 2, 2, 1, 0] and first_slope == 1 / 2
diagrams.distances(
    {
        "ALiBi: the bias, slope 1/2": first_slope * -six_apart,
        "T5: the bucket, N = 4, M = 8": small_buckets,
    },
    path=PICTURES / "13_biases.png",
)

# %% [markdown]
# *A row asks, a column is asked, both by their places in the text. Grey is the
# future.* Each diagonal has one number, as only the distance counts. ALiBi adds
# this number to the score. T5 looks up a learned number for the bucket: here
# the distances 2 and 3 share one.
#
#
# **RoPE** (Su et al. 2021) turns query and key by angles that grow with their
# places. We write it down with complex numbers. Two features are one number. To
# turn it by an angle $\varphi$, multiply it by $e^{i \varphi}$. The dot product
# of two pairs is $\mathrm{Re}(q\, \overline{k})$, where the bar changes the
# sign of the imaginary part. So one pair has this share of a score:
#
# $$q_t \to q_t\, e^{i t \theta}, \quad k_s \to k_s\, e^{i s \theta}, \quad
# \mathrm{Re}\left(q_t e^{i t \theta}\, \overline{k_s e^{i s \theta}}\right) =
# \mathrm{Re}\left(q_t \overline{k_s}\, e^{i (t - s) \theta}\right).$$
#
# The places went in one by one, and only the distance comes out. The score is
# the sum over all pairs, and each pair has its own speed: pair $j$, counted
# from 0, has $\theta_j = 10000^{-2j/d}$. These are the clocks of chapter 5
# (there they turn the other way), put where they can do more. They turn queries
# and keys with all that these say, and are not added to the words.
#
# The next cell writes down each of the four by hand, first RoPE, then Shaw, T5
# and ALiBi, and compares it with the package's layer. For T5 it looks at the
# width of the buckets. (In an attention, `bias` gets a query that is divided by
# $\sqrt d$ already.)


# %%
def turned(heads, places):
    """RoPE by complex numbers: [..., T, d] -> [..., T, d]."""
    d = heads.shape[-1]
    theta = 10000.0 ** (-2 * np.arange(d // 2) / d)
    pairs = heads[..., 0::2] + 1j * heads[..., 1::2]
    pairs = pairs * np.exp(1j * np.outer(places, theta))
    return np.stack([pairs.real, pairs.imag], -1).reshape(heads.shape)


generator = np.random.default_rng(4)
query, key = generator.normal(size=(2, 1, HEADS, LENGTH, KEY_DIM))
places = np.arange(LENGTH)
distance = places[None, :] - places[:, None]  # s - t: [T, S]

rotary = ka.layers.RotaryPositions()
np.testing.assert_allclose(
    rotary.rotate(query, places), turned(query, places), atol=1e-5
)

relative = ka.layers.RelativePositions(max_distance=3)
relative.build((None, HEADS, None, KEY_DIM))
rows = relative.key_table.numpy()[np.clip(distance, -3, 3) + 3]  # [T, S, d]
np.testing.assert_allclose(
    relative.bias(query, places, places),
    np.sum(query[:, :, :, None] * rows, axis=-1),
    atol=1e-5,
)

bucketed = ka.layers.BucketedBias(num_buckets=16, max_distance=32)
bucketed.build((None, HEADS, None, KEY_DIM))
# 0 to 7 are for keys up to the query, 8 to 15 for those behind it.
back = ops.convert_to_numpy(bucketed.buckets(-np.arange(40)))
widths = np.bincount(back)
assert back[:4].tolist() == [0, 1, 2, 3]  # One distance, one bucket,
assert widths[:4].tolist() == [1, 1, 1, 1]
assert widths[4:7].tolist() == [3, 5, 8]  # then wider and wider ones,
assert set(back[32:]) == {7}  # and the last one for all the rest.

linear = ka.layers.LinearBias()
linear.build((None, HEADS, None, KEY_DIM))
slopes = np.array(ka.layers.alibi_slopes(HEADS))
np.testing.assert_allclose(
    linear.bias(query, places, places)[0],
    -slopes[:, None, None] * abs(distance),
)

# %% [markdown]
# Now the test from above, for all seven: the text moves by 29 places.

# %%
changes |= {
    "Shaw": change(read_with_scored(ka.layers.RelativePositions(3))),
    "T5": change(read_with_scored(ka.layers.BucketedBias(16, 32))),
    "ALiBi": change(read_with_scored(ka.layers.LinearBias())),
    "RoPE": change(read_with_scored(ka.layers.RotaryPositions())),
}
print("change of the outputs when the text moves by 29 places")
for kind, greatest in changes.items():
    print(f"{kind:10} {greatest:8.5f}")
    is_fixed = kind not in ("learned", "sinusoids")
    assert (greatest < 2e-5) if is_fixed else (greatest > 0.01)

# %% [markdown]
# Where positions are in the score, or nowhere, the outputs do not change. Where
# they are added to the words, the text becomes another one. (Nothing is trained
# here, and the learned vectors are drawn at random. So what matters is whether
# a number is 0, not how great it is.)
#
# What does a score see of a distance? Shaw's vectors say nothing before they
# are trained. Here are the other three.

# %% tags=["hide-input"]
FAR = 48
apart = np.arange(FAR + 1)
with drawing.style():
    figure = drawing.Figure(figsize=(7.4, 2.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    color_t5, color_alibi, color_rope = drawing.COLORS[4:7]
    left.step(apart, bucketed.buckets(-apart), where="mid", color=color_t5)
    left.set_title("T5: the bucket")
    for slope, dash in zip(slopes, ("-", "--"), strict=True):
        middle.plot(apart, -slope * apart, dash, color=color_alibi)
    middle.set_title("ALiBi: the bias, two heads")
    # All features 1: what the rotation alone does to a product.
    ones = np.ones((1, 1, FAR + 1, 32))
    rotated = turned(ones, apart)[0, 0]
    right.plot(apart, rotated @ rotated[0] / 32, color=color_rope)
    right.set_title("RoPE: query and key alike")
    for axes in (left, middle, right):
        axes.set_xlabel("distance")
        drawing.finish(axes)
    drawing.save(figure, PICTURES / "13_distances.png")
figure

# %% [markdown]
# The left panel has the bucket of each distance to an earlier word. (There are
# 8 such buckets here, and 8 for later words.) The middle one has what ALiBi
# adds to the score, with a solid line for the first head and a dashed one for
# the second. The right one has the product of two equal vectors after
# RoPE has turned them, as a share of what it is at the distance 0.
#
# Each has a view of distance of its own. T5's buckets tell near places apart
# and throw far ones together. ALiBi falls in a straight line, fast in one head
# and slowly in the other. RoPE's product falls, too, but in waves. Its crest is
# at the distance 0, as the two vectors are equal; a trained model may turn its
# queries, so that the crest lies at another distance.
#
# ## Longer than ever
#
# Here is a task that is all about distance: *write the word that stood three
# places back*. One causal layer reads texts of words that are drawn from ten.
# The first three places have no such word and do not count. The layer is
# trained on texts of 24 words, and then tried on longer ones. All seven get the
# same network, the same texts and the same training.
#
# The next cell is long and has five parts. `reader` makes a network. `texts`
# draws texts and the right answers. `trained` makes a network and trains it.
# `right` measures it on new texts, place by place. `KINDS` lists the seven, and
# for each a function that makes its layer anew. T5 has all its 16 buckets for
# earlier words here, as a causal layer sees no later ones.
#
# Each of the seven is trained three times, from three seeds: what one seed
# learns may be luck. These are 21 trainings, which take most of the 5 minutes
# of the chapter. Each prints a line when it is ready, with the share of right
# words at the length of training.

# %%
VOCABULARY, BACK, TRAINED_AT = 10, 3, 24
TRIED_AT = (24, 48, 96, 192)
EPOCHS, BATCHES = (1, 2) if FAST else (10, 100)
SEEDS = (1,) if FAST else (1, 2, 3)


def reader(added=None, scored=None):
    """A causal model of one layer: ids [B, T] -> logits [B, T, 10]."""
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(VOCABULARY, 32)(ids)
    if added is not None:
        x = added(x)
    layer = ka.layers.TransformerEncoderLayer(
        num_heads=2, intermediate_dim=64, norm_first=True, positions=scored
    )
    x, _ = layer(x, use_causal_mask=True)
    return keras.Model(ids, keras.layers.Dense(VOCABULARY)(x))


def texts(count, length, seed):
    """Random ids, what stood three places back, and what counts."""
    ids = np.random.default_rng(seed).integers(VOCABULARY, size=(count, length))
    counts = np.broadcast_to(np.arange(length) >= BACK, ids.shape)
    return ids, np.roll(ids, BACK, axis=1), counts.astype("float32")


def trained(added=None, scored=None, seed=1):
    """A reader after training on texts of 24 words."""
    keras.utils.set_random_seed(seed)
    model = reader(added, scored)
    steps = EPOCHS * BATCHES
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(3e-3, steps)
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=BATCHES // 2,
        jit_compile=False,
    )
    ids, labels, counts = texts(64 * BATCHES, TRAINED_AT, seed=1)
    model.fit(
        ids,
        labels,
        sample_weight=counts,
        batch_size=64,
        epochs=EPOCHS,
        verbose=0,
    )
    return model


def right(model, length):
    """The share of right words at each place of texts of some length."""
    ids, labels, _ = texts(100, length, seed=2)
    return np.mean(np.argmax(model(ids), axis=-1) == labels, axis=0)


def wide_t5():
    """T5's buckets, of which the last one begins at the distance 27."""
    return ka.layers.BucketedBias(16, 32, bidirectional=False)


KINDS = {
    "none": dict,
    "learned": lambda: {"added": ka.layers.LearnedPositions(max(TRIED_AT))},
    "sinusoids": lambda: {"added": ka.layers.PositionEncoding()},
    "Shaw": lambda: {"scored": ka.layers.RelativePositions(max_distance=8)},
    "T5": lambda: {"scored": wide_t5()},
    "ALiBi": lambda: {"scored": ka.layers.LinearBias()},
    "RoPE": lambda: {"scored": ka.layers.RotaryPositions()},
}
readers = {kind: [] for kind in KINDS}
for kind, make in KINDS.items():
    for seed in SEEDS:
        readers[kind].append(trained(**make(), seed=seed))
        known = np.mean(right(readers[kind][-1], TRAINED_AT)[BACK:])
        print(f"{kind:10} seed {seed}: {known:.2f} right at {TRAINED_AT} words")

# %% [markdown]
# In the table each column is a length. The first counts all places of texts as
# long as those of training (from the fourth on). The others count places that
# no training had: the second half of each text. Each entry is the mean over the
# three seeds, and in brackets the worst and the best of them. A blind guess is
# right in 0.10.


# %%
def shares(model):
    """The share of right words at each of the lengths."""
    return [
        np.mean(right(model, n)[BACK if n == TRAINED_AT else n // 2 :])
        for n in TRIED_AT
    ]


def print_row(kind, rows):
    """Mean (lowest-highest) of some seeds: [seeds, lengths]."""
    print(
        f"{kind:10}"
        + "".join(
            f"{np.mean(one):6.2f} ({min(one):.2f}-{max(one):.2f})"
            for one in np.transpose(rows)
        )
    )


print(f"{'tried at':10}" + "".join(f"{n:6}{'':12}" for n in TRIED_AT))
table = {}
for kind, models in readers.items():
    table[kind] = np.array([shares(model) for model in models])
    print_row(kind, table[kind])
by_place = {
    kind: np.mean([right(model, 192) for model in models], axis=0)
    for kind, models in readers.items()
}

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for index, (kind, of_places) in enumerate(by_place.items()):
        smooth = np.convolve(of_places[BACK:], np.ones(7) / 7, mode="valid")
        axes.plot(
            BACK + 3 + np.arange(len(smooth)),
            smooth,
            color=drawing.COLORS[index],
            label=kind,
        )
    axes.axvline(TRAINED_AT, color=drawing.INK, linewidth=1, linestyle=":")
    axes.set_xlabel("place in the text (dotted: where training ended)")
    axes.set_ylabel("share of right words")
    axes.set_ylim(0, 1.05)
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "13_extrapolation.png")
figure

# %% [markdown]
# The picture has the texts of 192 words, place by place. Each point is the mean
# of three seeds and of seven places, so that lines begin to fall three places
# before the dotted one. Look at what they do to the right of it: two drop at
# once, T5 and RoPE sink slowly, and Shaw goes straight on.
#
# Now read the table from the left.
#
# - *Learned* and *sinusoids* are right at the places where they were trained,
#   and guess at all later ones. The learned vectors from place 24 on are as
#   they were drawn. The sinusoids of those places are known, but no weight has
#   ever met them.
# - *Shaw* is right everywhere. All distances from 8 on share one vector, and
#   that vector has been trained.
# - *RoPE* is right where it was trained, and then depends on the seed. At four
#   times the length, one of our three seeds has nearly every word right, and
#   another one word in five. Nothing in the training asked for more.
# - *T5* loses with each doubling, from every seed.
# - *ALiBi* is equally bad at all lengths. It is not lost beyond 24, but its
#   bias only falls with the distance. The bias cannot prefer the third word
#   back to the second (exercise 3). With other tasks, where near words count,
#   and with several layers, ALiBi does well.
# - *None* sees a bag of words. It can do no better than name a word that is
#   frequent in the bag. The longer the text, the more equal are the shares of
#   its words, and the less is such a guess worth.

# %%
if not FAST:
    worst, best = (
        {kind: dict(zip(TRIED_AT, of(rows, 0), strict=True))
         for kind, rows in table.items()}
        for of in (np.min, np.max)
    )  # fmt: skip
    for kind in ("learned", "sinusoids", "Shaw", "T5", "RoPE"):
        assert worst[kind][24] > 0.97
    assert max(best["learned"][96], best["sinusoids"][96]) < 0.3
    assert worst["Shaw"][192] > 0.9
    assert best["T5"][192] < 0.6 and best["T5"][96] < 0.8
    assert worst["RoPE"][96] < 0.5 < best["RoPE"][96]  # It depends on the seed.
    assert best["ALiBi"][24] - worst["ALiBi"][192] < 0.1

# %% [markdown]
# Why do T5 and RoPE get worse, if they see distances only? First, because
# there are *more* of them. A softmax spreads its weight over all words. Each
# word far away gets very little, but 192 words take more of it than 24 do. For
# each of the four lengths, the next cell prints what is left for the word that
# counts. It takes the head that gives this word most.


# %%
def on_the_word(model, length):
    """The mean weight on the word three places back."""
    of_layer = keras.Model(model.input, model.layers[-2].output[1])
    weights = np.array(of_layer(texts(100, length, seed=2)[0]))  # [B, H, T, T]
    places = np.arange(length // 2, length)
    return weights[:, :, places, places - BACK].mean(axis=(0, 2)).max()


print(f"{'tried at':10}" + "".join(f"{n:6}{'':12}" for n in TRIED_AT))
for kind in ("Shaw", "T5", "RoPE"):
    left = np.array(
        [
            [on_the_word(model, length) for length in TRIED_AT]
            for model in readers[kind]
        ]
    )
    print_row(kind, left)
    if not FAST:
        at_training, at_eight = left[:, 0], left[:, -1]
        assert (at_eight < 0.7 * at_training).all() == (kind != "Shaw")

# %% [markdown]
# With T5 and RoPE, much less is left at 192 words than at 24. Shaw hardly loses
# any.
#
# Second, some distances are *new*. A text of 24 words has none above 23. Shaw
# has nothing new to meet there, as all distances from 8 on are one. But T5's
# last bucket begins at 27, so that its number is as it was drawn. Let us give
# T5 a last bucket that begins earlier, within the training's texts, and train
# it from the three seeds. It prints a line for each:


# %%
def near_t5():
    """T5's buckets, of which the last one begins at the distance 15."""
    return ka.layers.BucketedBias(16, max_distance=16, bidirectional=False)


buckets = ops.convert_to_numpy(wide_t5().buckets(np.array([-23, -26, -27])))
print("T5's buckets of distances 23, 26 and 27:", *buckets)
near_buckets = ops.convert_to_numpy(near_t5().buckets(np.array([-14, -15])))
assert near_buckets.tolist() == [14, 15]
of_near = []
for seed in SEEDS:
    of_near.append(shares(trained(scored=near_t5(), seed=seed)))
    print(f"T5, near   seed {seed}: {of_near[-1][0]:.2f} right at "
          f"{TRAINED_AT} words")  # fmt: skip
of_near = np.array(of_near)
print_row("T5, near", of_near)
assert buckets.tolist() == [14, 14, 15]
assert FAST or min(of_near[:, -1]) > max(table["T5"][:, -1]) + 0.2

# %% [markdown]
# RoPE has waves, as the picture of distances shows for heads that are 32 wide.
# Those of our models are 16 wide. Their three fastest pairs turn by 1, 0.32 and
# 0.1 radians a place. In 119 places they make 18.9, 6.0 and 1.9 turns, so that
# all three are almost back. A word at the distance of 3 + 119 = 122 then looks
# much like the one at 3. The slower pairs could tell the two apart, but in 24
# words these hardly move, and no training text asked it of them. For each seed,
# the next cell lists the distances that get most weight in texts of 192 words.

# %%
late = np.arange(130, 192)
rows = np.arange(len(late))
for model in readers["RoPE"]:
    of_layer = keras.Model(model.input, model.layers[-2].output[1])
    weights = np.array(of_layer(texts(100, 192, seed=2)[0]))[:, :, late]
    by_distance = [
        weights[:, :, rows, late - d].mean(axis=(0, 2)).max()
        for d in range(130)
    ]
    most = np.argsort(by_distance)[::-1][:5]
    print({int(d): round(float(by_distance[d]), 2) for d in most})
    assert FAST or {BACK, BACK + 119} <= set(most.tolist())

# %% [markdown]
# **To play with:**
# [Positions](https://github.com/keras-attention/keras_attention/blob/main/docs/play/positions.html).
# It runs four of these readers on texts of any length, which may begin at any
# place. In a clone, open `docs/play/positions.html` with a browser.
#
# ## The cache
#
# A decoder writes token by token and keeps the keys and values of those before
# (chapter 5). What is in the cache must not change when another token comes. So
# RoPE turns a key once, by its own place, before it goes into the cache. A
# rotation by the *distance* would turn all keys anew at each step. Biases form
# a matrix $[T, S]$, with a row for each query. A step needs one row: that of
# the place that is written.
#
# The next cell gives the words to each of the four layers one by one. The
# outputs are those of one call with all words.

# %%
for positions in (
    ka.layers.RelativePositions(3),
    ka.layers.BucketedBias(16, 32),
    ka.layers.LinearBias(),
    ka.layers.RotaryPositions(),
):
    layer = new_attention(positions)
    whole, _ = layer(x, use_causal_mask=True)
    cache = layer.initial_cache(batch_size=1, max_length=LENGTH)
    for place in range(LENGTH):
        one, _, cache = layer.step(x[:, place], cache, place)
        np.testing.assert_allclose(one, whole[:, place], atol=1e-5)

# %% [markdown]
# ## RoFormer
#
# The Transformer with RoPE in place of sinusoids is called RoFormer (Su et al.
# 2021). All of its self-attentions turn their queries and keys. Its attention
# to the source turns nothing: two places in two texts have no distance. Not one
# weight is added or taken away. So a Transformer can even take a RoFormer's
# weights over, as the next cell does. But it makes other outputs of them.
#
# RoFormer is trained like any other model: `keras-attention train --model
# roformer`.
# [Results](https://github.com/keras-attention/keras_attention/blob/main/docs/results.md)
# has what it reaches.

# %%
sizes = {"num_layers": 2, "hidden_dim": 16, "intermediate_dim": 32}
roformer = ka.models.RoFormer(50, num_heads=2, **sizes)
transformer = ka.models.Transformer(50, num_heads=2, **sizes)
roformer.build()
transformer.build()
transformer.set_weights(roformer.get_weights())
sentence = {
    "source_ids": np.array([[7, 8, 9, 10, 3]]),
    "target_ids": np.array([[2, 11, 12]]),
}
assert roformer.count_params() == transformer.count_params()
assert np.abs(roformer(sentence) - transformer(sentence)).max() > 1e-3

# %% [markdown]
# ## An older answer: look near one place
#
# Luong et al. (2015) had put places into attention two years before the
# Transformer. Their decoder is recurrent, and knows by itself how far it has
# come. What they wanted was to look at fewer words. **Local attention** looks
# at a window around a place $p_t$: the words $s$ with $|s - p_t| \le D$, which
# are $2D + 1$ at most. (This $p_t$ is a number, not a vector.) In *local-m*, m
# for monotonic, the place moves on by one with each word, $p_t = t$. In
# *local-p*, p for predictive, the decoder's state $h_t$ predicts it, and a
# Gaussian makes words fainter with their distance from it:
#
# $$p_t = S \cdot \sigma(\tanh(h_t W_p)\, v_p^\top), \qquad
# \alpha_t(s) = \text{align}_t(s)\,
# \exp\left(-\frac{(s - p_t)^2}{2 (D / 2)^2}\right).$$
#
# (The paper has columns, and writes $v_p^\top \tanh(W_p h_t)$.) $S$ is the
# number of words in the source, so that $p_t$ lies between 0 and $S$. $v_p$ and
# $W_p$ are learned.
# $\text{align}_t$ is the softmax of the scores within the window. If no word is
# in the window, all weights are 0.
#
# The window has a hard edge, through which no gradient comes. The Gaussian is
# there for that: through it $p_t$ learns.
#
# In each call, our layer divides its $v_p$ by the width of $h_t$. (Undivided,
# Adam may soon push the $\sigma$ to an end, where it is nearly flat. In one of
# our trainings, $p_t$ then stayed at the end of the source.) So an untrained
# layer looks near the middle. The next cell multiplies $v_p$ by the width, and
# its places differ.
#
# The next cell checks three things. With $D = 2$ local-m looks at words that
# are at most two places away. The weights of local-p sum to less than 1, as the
# Gaussian takes from each. And with $D = 10^6$ nothing is cut: local-p is
# the global attention of [chapter 4](04_flavours_of_attention.ipynb).

# %%
state = keras.random.normal((1, 5, WIDTH), seed=5)
source = keras.random.normal((1, 12, WIDTH), seed=6)
windows = {}
for place in ("monotonic", "predictive"):
    local = ka.layers.LocalAttention("dot", half_width=2, place=place)
    local.build(state.shape, source.shape)
    if place == "predictive":
        local.place_vector.assign(WIDTH * local.place_vector)
    _, windows[place] = local(query=state, value=source)
seen = ops.convert_to_numpy(windows["monotonic"])[0] > 0
t, s = np.indices(seen.shape)
assert np.array_equal(seen, abs(s - t) <= 2)
assert (np.sum(windows["predictive"], axis=-1) < 1).all()

everywhere = ka.layers.MultiplicativeAttention("dot")
wide = ka.layers.LocalAttention("dot", half_width=1e6)
for got, expected in zip(
    wide(query=state, value=source),
    everywhere(query=state, value=source),
    strict=True,
):
    np.testing.assert_allclose(got, expected, atol=1e-5)

# %% tags=["hide-input", "alone"]
nine_words = np.arange(9)
in_turn, predicted = np.arange(5.0), np.array([1.2, 3.5, 2.5, 5.4, 6.6])
windows_of = {}
for window_name, centres in (("local-m", in_turn), ("local-p", predicted)):
    away = nine_words - centres[:, None]  # s - p_t: [T, S]
    # All scores are equal here.
    even = (abs(away) <= 2) / np.sum(abs(away) <= 2, axis=1, keepdims=True)
    fainter = np.exp(-(away**2) / 2) if window_name == "local-p" else 1.0
    windows_of[f"{window_name}, D = 2"] = even * fainter
np.testing.assert_allclose(windows_of["local-m, D = 2"].sum(axis=1), 1)
assert (windows_of["local-p, D = 2"].sum(axis=1) < 1).all()
diagrams.windows(windows_of, PICTURES / "13_windows.png")

# %% [markdown]
# *A row is a word that is written, a column a word of the source, and grey lies
# outside of the window. All scores are equal, so the picture shows nothing but
# the windows.* With local-m the window moves on by one word in each row. With
# local-p it stands where the network says: here at 1.2, 3.5, 2.5, 5.4 and 6.6.
# The Gaussian makes the words at the edge faint. With $D = 2$ it is $e^{-(s -
# p_t)^2 / 2}$.
#
# ALiBi has something of this: each head is a soft window around the query's own
# place. The steeper the slope, the narrower the window.
#
# ## What readers ask
#
# > **Which features make a pair in RoPE?** Here features 0 and 1, 2 and 3, and
# > so on, as in the paper. Other code pairs feature $j$ with feature $j + d/2$:
# > the first half of the vector with the second. Both are right. A score is a
# > sum over pairs, so it does not matter where a pair stands. But trained
# > weights fit one of the two. To bring them to the other, put the columns of
# > $W_Q$ and $W_K$ of each head in the other order.
#
# > **Does RoPE turn values, too?** No. It turns queries and keys, as only their
# > product makes the score. What is handed over is not turned.
#
# > **Why the number 10,000?** It sets the slowest hand. With $d = 64$ the
# > slowest pair takes some 47,000 places for one turn, so that no two places of
# > a usual text look alike to it. Models for long texts take a larger base.
#
# > **Does position 0 or position 1 come first?** It makes no difference to what
# > looks at distances. Here places count from 0.
#
# ## What to take away
#
# - Attention without positions reads a bag.
# - A position in the word is a place. A position in the score is a distance.
# - What depends on the distance alone is the same at each place, so it is the
#   same at places where no training has been.
# - A longer text has more distances, too, and new ones. Here those did best
#   that treat all far distances alike, after training: Shaw's.
#
# ## Your turn
#
# Write RoPE without complex numbers. To turn a pair $(x, y)$ by an angle
# $\varphi$ is to make $(x \cos \varphi - y \sin \varphi,\ x \sin \varphi + y
# \cos \varphi)$ of it.

# %% tags=["alone"]
import your_turn


def rope(x, places):
    """x [T, d], places [T] -> x with each pair turned [T, d]."""
    d = x.shape[1]
    angle = ...  # Of each place and pair: [T, d / 2].
    first, second = x[:, 0::2], x[:, 1::2]
    result = np.zeros_like(x)
    result[:, 0::2] = ...
    result[:, 1::2] = ...
    return result


your_turn.check(13, rope)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def rope(x, places):
#     d = x.shape[1]
#     angle = places[:, None] * 10000.0 ** (-2 * np.arange(d // 2) / d)
#     first, second = x[:, 0::2], x[:, 1::2]
#     result = np.zeros_like(x)
#     result[:, 0::2] = first * np.cos(angle) - second * np.sin(angle)
#     result[:, 1::2] = first * np.sin(angle) + second * np.cos(angle)
#     return result
#
#
# your_turn.check(13, rope)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: A head of ALiBi has the slope $\frac12$. What does it add to the score of
#   a word that stands 6 places back?
# - b: T5 has $N = 4$ buckets for earlier words and $M = 8$. Which bucket has
#   the distance 5?
# - c: RoPE is $d = 8$ wide. By which angle has pair $j = 1$ turned after 10
#   places? (The first pair is $j = 0$, and a full turn is $2 \pi$.)

# %% tags=["alone"]
your_turn.quiz(13, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: The bias is minus the slope times the distance.
# - b: $2 + \lfloor 2 \log(2.5) / \log(4) \rfloor$.
# - c: $\theta_1 = 10000^{-2/8} = 0.1$.
#
# ```python
# your_turn.quiz(13, a=-6 / 2, b=3, c=10 * 0.1)
# ```
#
# </details>
#
# ## Exercises
#
# 1. RoPE's angles depend on a `base` of 10,000. Show that a layer with a base
#    barely over 1 turns all pairs at nearly the same speed, and that the score
#    of equal vectors then rises and falls with a period of $2 \pi$.
#
# <details><summary>Solution</summary>
#
# All $\theta_j$ are near 1, so that the product of two vectors of ones is near
# $d \cos(t - s)$.
#
# ```python
# fast = ka.layers.RotaryPositions(base=1 + 1e-6)
# ones = np.ones((1, 1, 30, 8), "float32")
# heads = ops.convert_to_numpy(fast.rotate(ones, np.arange(30)))[0, 0]
# np.testing.assert_allclose(
#     heads @ heads[0], 8 * np.cos(np.arange(30)), atol=1e-3
# )
# ```
#
# </details>
#
# 2. Write a layer of positions of your own: a head may look `reach` places back
#    and not further (the sliding window of long-text models). How many places
#    back can the output of two such layers have heard of?
#
# <details><summary>Solution</summary>
#
# Twice `reach`: a word hears what its neighbours have heard.
#
# ```python
# class Sliding(ka.layers.Positions):
#     """Keys from `reach` places back up to the query itself."""
#
#     reach = 2
#
#     def bias(self, query, query_positions, key_positions):
#         back = query_positions[:, None] - key_positions[None, :]
#         is_near = ops.logical_and(back >= 0, back <= self.reach)
#         return ops.where(is_near, 0.0, -1e9)
#
#
# first, second = new_attention(Sliding()), new_attention(Sliding())
# text = tf.constant(x)
# with tf.GradientTape() as tape:
#     tape.watch(text)
#     last = second(first(text)[0])[0][:, -1]
# heard = np.abs(tape.gradient(last, text))[0].sum(axis=-1) > 0
# assert heard.tolist() == [s >= LENGTH - 1 - 4 for s in range(LENGTH)]
# ```
#
# </details>
#
# 3. Can a head of ALiBi give more weight to the word three places back than to
#    the one two places back, if both are the same word?
#
# <details><summary>Solution</summary>
#
# No. Equal words have equal keys, so that the two scores differ by the bias
# alone: $m > 0$ in favour of the nearer one.
#
# ```python
# twice = ops.repeat(x[:, :1], 6, axis=1)  # The same word six times.
# _, weights = new_attention(ka.layers.LinearBias())(
#     twice, use_causal_mask=True
# )
# assert (np.diff(weights[0, :, -1], axis=-1) > 0).all()
# ```
#
# </details>
#
# Next: drop the encoder, and a decoder is left, which says what comes next.
# [Chapter 14](14_one_stack.ipynb) asks what it can do, and what limits it.
#
# ## References
#
# - Vaswani et al. 2017, [Attention Is All You
#   Need](https://arxiv.org/abs/1706.03762)
# - Gehring et al. 2017, [Convolutional Sequence to Sequence
#   Learning](https://arxiv.org/abs/1705.03122)
# - Shaw et al. 2018, [Self-Attention with Relative Position
#   Representations](https://arxiv.org/abs/1803.02155)
# - Raffel et al. 2020, [Exploring the Limits of Transfer
#   Learning](https://arxiv.org/abs/1910.10683)
# - Su et al. 2021, [RoFormer](https://arxiv.org/abs/2104.09864)
# - Press et al. 2022, [Train Short, Test
#   Long](https://arxiv.org/abs/2108.12409)
# - Luong et al. 2015, [Effective Approaches to Attention-based Neural Machine
#   Translation](https://arxiv.org/abs/1508.04025)
