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
# # 6. Training well
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/06_training_well.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# The model is right: each layer computes what its equation says. What makes its
# training good, and what makes it fast? This chapter trains one small
# Transformer by a recipe, and then changes one ingredient at a time. The
# ingredients are the batches, label smoothing, warm-up, averaging of the
# weights, the precision of the numbers, and the number of devices. Each is
# explained, checked where there is an exact answer, and measured against what
# chance alone changes. Some turn out not to matter for a model as small as
# this, and then we say so.
#
# Takes about 3 minutes on two cores. Each section prints its figures and draws
# a curve; the last section shows all choices side by side. Pictures are shown
# here and kept in the folder `pictures`.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import os
import pathlib
import time

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.plotting import drawing
from keras_attention.tokens import END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))

# Both must come before TensorFlow's first operation. On two cores, small
# operations run side by side instead of each being cut in two; and the CPU
# counts as two devices, which the section on replicas needs.
ka.devices.share_cores()
ka.devices.make_logical_devices(2)
keras.utils.set_random_seed(1)

# %% [markdown]
# ## Sentences into batches
#
# A batch is a rectangle of ids, and sentences are not equally long: the short
# ones are filled up with `PAD`. The mask keeps padding out of every result, but
# not out of the computation: the products run over every place in the
# rectangle, real or not. So the first question of speed is how much of the
# rectangle is real.
#
# From `phrases` we take the pairs without digits (numbers, years and dates in
# words), and we use one vocabulary for both languages.

# %%
NUM_PAIRS = 300 if FAST else 2000
corpus = ka.data.corpora.load("phrases", "en", "de")


def in_words(pair):
    """Whether the source has no digit."""
    return tf.strings.regex_full_match(pair["source"], "[a-z ,-]+")


pairs = corpus.splits["train"].filter(in_words).take(NUM_PAIRS)
sentences = [
    text.decode()
    for pair in pairs.as_numpy_iterator()
    for text in (pair["source"], pair["target"])
]
tokenizer = ka.data.Tokenizer(
    ka.data.train_vocabulary(sentences, 550, max_piece_length=9)
)
V = tokenizer.vocabulary_size

# Blocks of ragged rows: source ... END, START target ... END.
blocks = pairs.apply(ka.data.tokenize(tokenizer)).cache()
source_lengths, target_lengths = (
    np.concatenate([block[name].row_lengths() for block in blocks])
    for name in ("source_ids", "target_ids")
)
print(f"{NUM_PAIRS} pairs, {V} pieces in the vocabulary")
print(
    f"targets have {target_lengths.min()} to {target_lengths.max()} tokens, "
    f"{target_lengths.mean():.1f} on average"
)

# %% [markdown]
# Three ways to cut these pairs into batches:
#
# - *random*: shuffle, then a fixed number of pairs in each batch;
# - *sorted*: sort by length first, a fixed number of pairs in each batch
#   (then shuffle the batches);
# - *by tokens*: sort by length, and put as many pairs into a batch as a budget
#   of target tokens allows, padding included: few long ones or many short ones.
#   This is `ka.data.batch_by_tokens`; its plan is `ka.data.plan_batches`.
#
# The last two sort by the target's length, and equal ones by the source's. The
# budget holds for sources, too, but these count half, rounded up.
#
# With $n_i$ the length of row $i$, $|b|$ the number of rows in batch $b$ and
# $\ell_b$ the greatest length there, the share of padding is
#
# $$1 - \frac{\sum_i n_i}{\sum_b |b|\, \ell_b} .$$

# %%
MAX_TOKENS = 512
order, ends = ka.data.plan_batches(source_lengths, target_lengths, MAX_TOKENS)
by_tokens = np.split(order, ends[:-1])
# The same number of batches for the others.
shuffled = np.random.default_rng(1).permutation(NUM_PAIRS)
plans = {
    "random": np.array_split(shuffled, len(by_tokens)),
    "sorted": np.array_split(order, len(by_tokens)),
    "by tokens": by_tokens,
}


def places(lengths, batches):
    """Places of the rectangles, real or padding."""
    return sum(len(rows) * lengths[rows].max() for rows in batches)


shares, largest = {}, {}
for name, batches in plans.items():
    # Of labels: what the decoder predicts has no START.
    lengths = target_lengths - 1
    shares[name] = 1 - lengths.sum() / places(lengths, batches)
    sizes = [len(rows) * target_lengths[rows].max() for rows in batches]
    largest[name] = max(sizes)
    print(
        f"{name:9} {len(batches)} batches, {100 * shares[name]:4.1f} % "
        f"padding, {min(sizes)} to {max(sizes)} places in a batch"
    )

# The package reports the same share.
report = ka.data.report(
    blocks.apply(ka.data.shuffle(seed=1)), NUM_PAIRS, MAX_TOKENS
)
assert report.batches == len(by_tokens)
assert abs(report.padding_share - shares["by tokens"]) < 1e-12
assert largest["by tokens"] <= MAX_TOKENS < largest["sorted"]
if not FAST:
    assert shares["random"] > 0.25
    assert max(shares["sorted"], shares["by tokens"]) < 0.02

# %% [markdown]
# Random batches spend more than a quarter of the decoder's work on padding;
# sorting reduces that to less than two percent. The budget of tokens does not
# change the padding much. What it does change is the size of the largest batch,
# for which memory has to suffice: it no longer depends on how long the longest
# sentences are. It also makes the steps alike: each gradient is a mean over
# about the same number of tokens (except for the last batch).
#
# In the picture each line is a pair and each dark cell a real token.

# %% tags=["hide-input"]
with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, name in zip(panels, ("random", "by tokens"), strict=True):
        # A batch from the middle of the plan, its rows as they come.
        rows = plans[name][len(plans[name]) // 2][:24]
        lengths = target_lengths[rows] - 1
        real = np.arange(lengths.max()) < lengths[:, None]  # [B, T]
        panel.imshow(real, cmap="Blues", vmin=-0.15, vmax=1.3, aspect="auto")
        panel.set_title(f"{name}: {100 * shares[name]:.0f} % padding")
        panel.set_xlabel("place in the target")
        panel.spines[:].set_visible(False)
    panels[0].set_ylabel("row of the batch")
    drawing.save(figure, PICTURES / "06_padding.png")
figure

# %% [markdown]
# For training, `ka.data`'s stages do this: `shuffle` and `batch_by_tokens` give
# each epoch a different order, as a function of `seed` and `epoch`;
# `to_examples` makes what `fit` takes: inputs, labels, and sample weights. The
# weights are $1/N$ at each of the batch's $N$ real labels and 0 at padding, so
# that a *sum* of weighted losses is the mean over real tokens. For comparison
# we also make random batches of as many pairs as an average batch by tokens
# has.

# %%
ROWS = len(plans["random"][0])


def examples(epochs, seed, multiple_of=1, random=False):
    """The batches of all epochs, one epoch after the other."""
    whole = None
    for epoch in range(epochs):
        rows = blocks.apply(ka.data.shuffle(seed, epoch))
        if random:  # A fixed number of rows, as they come.
            batches = rows.unbatch().ragged_batch(ROWS)
            batches = batches.map(
                lambda batch: {k: v.to_tensor(PAD) for k, v in batch.items()}
            )
        else:
            batches = rows.apply(
                ka.data.batch_by_tokens(MAX_TOKENS, multiple_of, seed, epoch)
            )
        batches = batches.apply(ka.data.to_examples())
        whole = batches if whole is None else whole.concatenate(batches)
    return whole.prefetch(2)


held_out = corpus.splits["validation"].filter(in_words)
validation = (
    held_out.take(50 if FAST else 400)
    .apply(ka.data.tokenize(tokenizer))
    .apply(ka.data.join())
    .apply(ka.data.batch_by_tokens(4 * MAX_TOKENS))
    .apply(ka.data.to_examples())
    .cache()
)
num_batches = sum(1 for _ in validation)
validation = validation.apply(
    tf.data.experimental.assert_cardinality(num_batches)
)

inputs, labels, sample_weight = next(iter(examples(1, seed=1, random=True)))
real = labels.numpy() != PAD
assert np.isclose(sample_weight.numpy().sum(), 1)
assert (sample_weight.numpy()[~real] == 0).all()
# The decoder reads START ... and is to say ... END.
assert (inputs["target_ids"].numpy()[:, 0] == START).all()
assert (labels.numpy() == END).any(axis=1).all()

# %% [markdown]
# ## The recipe, and what chance does
#
# The recipe is that of `keras-attention train`, for a smaller model and less
# data. Batches are made by tokens, and label smoothing is 0.1. Adam has the
# paper's betas. Its learning rate warms up and then falls like half a cosine.
# Gradients are clipped at norm 1, dropout is 0.1, and the layers are pre-norm.
# All of it goes through Keras's own `compile` and `fit`.
#
# Before that, the cheapest test of a training. A model that knows nothing
# should consider all $V$ pieces about equally likely; then its cross-entropy is
# $-\ln(1/V) = \ln V$. If the first loss is far above, the model is sure of
# something that it cannot know.

# %%
WIDTH = 16 if FAST else 64


def small_transformer(**arguments):
    """One layer on each side, unless told otherwise."""
    sizes = {"num_layers": 1, "hidden_dim": WIDTH, "dropout": 0.1}
    sizes["intermediate_dim"] = 2 * WIDTH
    model = ka.models.Transformer.from_size("mini", V, **{**sizes, **arguments})
    model.build()
    return model


keras.utils.set_random_seed(1)
model = small_transformer()
first_loss = float(
    ka.training.losses.TokenCrossEntropy()(labels, model(inputs))
)
print(f"first loss {first_loss:.3f}, ln V = {np.log(V):.3f}")
# Logits are not all equal at first, which adds a little (exercise 1).
assert abs(first_loss - np.log(V)) < 0.5

# %% [markdown]
# About the held-out pairs we ask two things: the negative log-likelihood per
# token, and in how many pairs *every* token is right, given the true ones
# before it. These are just the pairs of which greedy search would write the
# reference ([chapter 2](02_encoder_decoder.ipynb)), so that `exact` needs no
# search.


# %%
class ExactRows(keras.metrics.Mean):
    """The share of pairs of which every token is right."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "int32")
        predicted = ops.cast(ops.argmax(y_pred, axis=-1), "int32")
        right = ops.equal(predicted, y_true) | ops.equal(y_true, PAD)
        super().update_state(ops.all(right, axis=-1))


STEPS = 2 if FAST else report.batches  # of an epoch
EPOCHS = 2 if FAST else 10
WARMUP = 2 if FAST else 100
PEAK = 5e-3
histories, models = {}, {}


def train(
    name,
    seed=1,
    random=False,
    rate=None,
    smoothing=0.1,
    averaging=False,
    epochs=EPOCHS,
    steps=STEPS,
    validate=True,
    callbacks=(),
    **arguments,
):
    """Trains by the recipe but for what is given; keeps the history."""
    keras.utils.set_random_seed(seed)
    model = small_transformer(**arguments)
    model.compile(
        ka.training.optimizers.Adam(
            rate or ka.training.schedules.Cosine(PEAK, WARMUP, epochs * steps),
            beta_2=0.98,
            epsilon=1e-9,
            global_clipnorm=1.0,
            use_ema=averaging,
            ema_momentum=0.99,
        ),
        loss=ka.training.losses.TokenCrossEntropy(smoothing),
        weighted_metrics=[
            ka.training.metrics.TokenLoss(name="nats"),
            ExactRows(name="exact"),
        ],
        jit_compile=False,  # Shapes change from batch to batch.
        run_eagerly=FAST,  # For two steps, tracing is not worth it.
    )
    started = time.time()
    history = model.fit(
        examples(epochs, seed, random=random),
        epochs=epochs,
        steps_per_epoch=steps,
        validation_data=validation if validate else None,
        callbacks=list(callbacks),
        shuffle=False,
        verbose=0,
    ).history
    seconds = time.time() - started
    histories[name], models[name] = history, model
    line = (
        f"{name:20} {seconds:5.1f} s, training loss {history['loss'][-1]:.3f}"
    )
    if validate:
        line += (
            f"; held out {history['val_nats'][-1]:.3f} nats, "
            f"{100 * history['val_exact'][-1]:.1f} % exact"
        )
    print(line)


RECIPES = [f"recipe, seed {seed}" for seed in (1, 2, 3)]
for seed, name in enumerate(RECIPES, 1):
    train(name, seed)

# %% [markdown]
# The three runs differ in nothing but their seed: different initial weights,
# different orders, different dropout. The differences between them are what
# chance does. In the pictures that follow, the grey band goes from the least to
# the greatest of the three. (Three seeds are few, and each choice is run once:
# what lies inside the band has shown nothing, and what lies outside is a hint.)


# %%
def end_of(key, names=RECIPES):
    """A figure of some runs, the mean of each one's last three epochs."""
    return np.array([np.mean(histories[name][key][-3:]) for name in names])


def axes_with_band(key="val_exact", scale=100, x=1):
    """A picture with the recipe's three seeds as a grey band."""
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    band = scale * np.array([histories[name][key] for name in RECIPES])
    axes.fill_between(
        x * np.arange(1, EPOCHS + 1), band.min(axis=0), band.max(axis=0),
        color="#BBBBBB", linewidth=0, label="the recipe, three seeds",
    )  # fmt: skip
    return figure, axes


def curve(axes, index, label, values, x=1):
    """One run, a point for each epoch."""
    axes.plot(
        x * np.arange(1, len(values) + 1), values, label=label,
        color=drawing.COLORS[index], marker=drawing.MARKERS[index],
    )  # fmt: skip


exact = 100 * end_of("val_exact")
print(f"exact, last epochs: {exact.min():.1f} to {exact.max():.1f} %")
if not FAST:
    assert exact.min() > 90 and exact.max() - exact.min() < 5

# %% [markdown]
# ## Batches by length: the curve
#
# Rows of similar length in a batch are less random than rows drawn at random.
# Does that cost quality? Here is one run with random batches, with as many
# steps. The horizontal axis shows what the computer has to do: the places of
# all rectangles so far, source and target.

# %%
train("random batches", random=True)
work = {
    name: sum(
        places(lengths, batches)
        for lengths in (source_lengths, target_lengths - 1)
    )
    for name, batches in plans.items()
}
more = work["random"] / work["by tokens"]
print(f"random batches compute {more:.2f} times as many places")
[of_random] = 100 * end_of("val_exact", ["random batches"])
if not FAST:
    assert more > 4 / 3 and of_random > exact.max()

with drawing.style():
    figure, axes = axes_with_band(x=work["by tokens"] / 1e6)
    values = 100 * np.array(histories["random batches"]["val_exact"])
    curve(axes, 1, "random batches", values, x=work["random"] / 1e6)
    axes.set_xlabel("places computed, millions")
    axes.set_ylabel("exact, %")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "06_batches.png")
figure

# %% [markdown]
# Step for step, random batches end higher, but the work of three of them is
# enough for more than four batches by tokens. For equal work both rise much
# alike, and beyond the end of the band there is nothing to compare with. A
# likely reason why they end higher: rows of one length are often rows of one
# kind. (Short targets are years and small numbers, long ones large numbers.) So
# a batch by tokens is a less fair sample of the corpus, and its gradient is
# noisier. That may be the price of bucketing, which is there for speed. It
# would show less in a large training run. Here there are only some dozens of
# batches, a few for each length.

# %% [markdown]
# ## Label smoothing
#
# The cross-entropy of a label rewards certainty without end: the loss goes to
# 0 only as the label's logit goes to infinity. Label smoothing (Szegedy et
# al. 2015, section 7; Vaswani et al. 2017, 5.4) asks for less: the target is
# no longer 1 at the label $y$ and 0 elsewhere, but
#
# $$q_v = (1 - \epsilon)\,[v = y] + \epsilon / V .$$
#
# The loss $-\sum_v q_v \ln p_v$ is least at $p = q$, where it is the entropy
# of $q$, not 0. With $a = 1 - \epsilon + \epsilon / V$ at the label, that is
#
# $$H = -a \ln a - (V - 1)\, \frac{\epsilon}{V} \ln \frac{\epsilon}{V} .$$
#
# A training loss of almost one nat may thus be nearly perfect.

# %%
EPSILON = 0.1
a = 1 - EPSILON + EPSILON / V
elsewhere = EPSILON / V
H = -a * np.log(a) - (V - 1) * elsewhere * np.log(elsewhere)
print(f"the least loss with smoothing {EPSILON}: {H:.4f} nats")

# Logits that say exactly q have this loss and no gradient.
q = np.full(V, elsewhere, "float32")
q[7] = a
logits = tf.constant(np.log(q)[None])
with tf.GradientTape() as tape:
    tape.watch(logits)
    loss = ka.training.losses.token_cross_entropy(
        logits, tf.constant([7]), EPSILON
    )
assert np.isclose(loss.numpy()[0], H, atol=1e-5)
assert np.abs(tape.gradient(loss, logits)).max() < 1e-6

# %%
train("no smoothing", smoothing=0.0)
with drawing.style():
    figure, axes = axes_with_band("loss", scale=1)
    curve(axes, 1, "no smoothing", histories["no smoothing"]["loss"])
    for least, color in ((H, "#888888"), (0, drawing.COLORS[1])):
        axes.axhline(least, color=color, linestyle=":", linewidth=1.5)
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss, nats")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "06_smoothing.png")
figure

# %% [markdown]
# Each loss falls towards its own floor (dotted): two losses can be compared
# only if their smoothing is the same. The likelihood can always be compared,
# and so can what the model claims to know. A model is *calibrated* if, of all
# the tokens that it considers 90 % likely, 90 % are right. So on average its
# confidence, the greatest probability, should equal its accuracy.


# %%
def confidence_and_accuracy(model):
    """Means over the held-out tokens."""
    greatest, right = [], []
    for inputs, labels, _ in validation:
        probabilities = ops.softmax(model(inputs)).numpy()
        real = labels.numpy() != PAD
        greatest.append(probabilities.max(axis=-1)[real])
        right.append((probabilities.argmax(axis=-1) == labels.numpy())[real])
    return np.concatenate(greatest).mean(), np.concatenate(right).mean()


gaps = {}
for name in (RECIPES[0], "no smoothing"):
    confidence, accuracy = confidence_and_accuracy(models[name])
    gaps[name] = accuracy - confidence
    print(
        f"{name:16} confidence {confidence:.3f}, accuracy {accuracy:.3f}, "
        f"{histories[name]['val_nats'][-1]:.3f} nats"
    )
if not FAST:
    assert gaps[RECIPES[0]] > 0.04 > abs(gaps["no smoothing"])
    nats = end_of("val_nats", [*RECIPES, "no smoothing"])
    assert nats[-1] < nats[:-1].min()
    [unsmoothed] = 100 * end_of("val_exact", ["no smoothing"])
    assert unsmoothed > exact.min() - 2

# %% [markdown]
# The model that was trained with smoothing is too modest: it is right more
# often than it says, as it was asked to. Without smoothing, confidence comes
# close to accuracy, and the likelihood is better. What does smoothing gain in
# return? The paper reports a worse perplexity and a better BLEU (5.4). Real
# sentences can be translated in many ways, and a model that is too sure of one
# of them is perhaps easily misled. Our phrases have one right translation each,
# and here it gains nothing that chance would not give. Before you copy a
# setting from a paper, ask whether your data are like its data.

# %% [markdown]
# ## Warm-up
#
# Adam (Kingma and Ba 2014, algorithm 1) divides a running mean of the gradient
# $g$ by the root of a running mean of its square. At step $s = 1, 2, \dots$:
#
# $$\begin{aligned}
# m &\leftarrow \beta_1 m + (1 - \beta_1)\, g,
#   & \hat m &= m / (1 - \beta_1^s), \\
# v &\leftarrow \beta_2 v + (1 - \beta_2)\, g^2,
#   & \hat v &= v / (1 - \beta_2^s), \\
# w &\leftarrow w - \eta\, \frac{\hat m}{\sqrt{\hat v} + \varepsilon} .
# \end{aligned}$$
#
# $m$ and $v$ begin at 0, for which $\hat m$ and $\hat v$ make up. The paper of
# the Transformer has $\beta_1 = 0.9$ and $\beta_2 = 0.98$. (Keras adds
# $\varepsilon$ to $\sqrt v$, before the correction. Where $\varepsilon$ is
# tiny, this makes no difference.)
#
# At the first step $\hat m = g$ and $\hat v = g^2$. The quotient is the *sign*
# of $g$. So every weight moves by the whole learning rate $\eta$, however small
# its gradient is, and however little is known about where the weight should go.
# Nor does clipping help at this step, since the size of the gradient divides
# out. A check on our model:


# %%
def first_step(clip_norm):
    """How far the first step moves each weight that has a gradient."""
    keras.utils.set_random_seed(1)
    model = small_transformer(dropout=0.0)
    variables = model.trainable_variables
    before = [variable.numpy() for variable in variables]
    with tf.GradientTape() as tape:
        loss = ka.training.losses.TokenCrossEntropy()(labels, model(inputs))
    gradients = [
        tf.convert_to_tensor(gradient)
        for gradient in tape.gradient(loss, variables)
    ]
    optimizer = ka.training.optimizers.Adam(
        1e-3, epsilon=1e-12, global_clipnorm=clip_norm
    )
    optimizer.apply(gradients, variables)
    moved = [
        np.abs(variable.numpy() - old)[np.abs(gradient) > 1e-5]
        for variable, old, gradient in zip(
            variables, before, gradients, strict=True
        )
    ]
    return np.concatenate(moved), tf.linalg.global_norm(gradients).numpy()


for clip_norm in (None, 0.1):
    moved, norm = first_step(clip_norm)
    print(
        f"clipped at {clip_norm}: moved {moved.min():.5f} to {moved.max():.5f}"
    )
    assert norm > 0.1 and np.allclose(moved, 1e-3, atol=1e-5)

# %% [markdown]
# The next steps are hardly better informed. So the rate starts near 0 and rises
# over some hundred or thousand steps, until the means are means of something.
# In the paper (equation 3) it then falls as one over the root of the step, and
# in our recipe like half a cosine (Loshchilov and Hutter 2016, equation 5).
# With $u$ steps of warm-up out of $n$, both rise as
# $\eta_s = \eta_{\max}\, s/u$ up to step $u$. From there the paper's falls as
# $\eta_{\max} \sqrt{u/s}$, ours as
# $\eta_{\max} \frac12 \left(1 + \cos \pi \frac{s - u}{n - u}\right)$.

# %%
paper = ka.training.schedules.InverseSquareRoot.for_width(
    512, warmup_steps=4000
)
cosine = ka.training.schedules.Cosine(PEAK, warmup_steps=100, num_steps=500)
for s in (50, 300, 16_000):
    # Keras counts steps from 0.
    by_hand = 512**-0.5 * min(s**-0.5, s * 4000**-1.5)
    assert np.isclose(paper(s - 1), by_hand)
    factor = (1 + np.cos(np.pi * min(1, (s - 100) / 400))) / 2
    by_hand = PEAK * (s / 100 if s < 100 else factor)
    assert np.isclose(cosine(s - 1), by_hand, atol=1e-9)
print(f"the paper's base model peaks at {float(paper(3999)):.1e}")

# %% [markdown]
# How much harm a bold beginning does depends on the model. The paper's layers
# normalise after each sum (post-norm), ours before each sublayer (pre-norm),
# which leaves a path from end to end on which nothing is rescaled (Xiong et
# al. 2020). Here we take two layers on each side, a high rate, 1e-2, and 150
# steps of training, with 75 steps of warm-up and without.

# %%
WARMUPS = {
    "post-norm, none": (False, 1),
    "post-norm, warm-up": (False, 75),
    "pre-norm, none": (True, 1),
}
for name, (norm_first, warmup) in WARMUPS.items():
    train(
        name,
        rate=ka.training.schedules.Cosine(1e-2, warmup, 150),
        epochs=1 if FAST else 6,
        steps=2 if FAST else 25,
        validate=False,
        num_layers=1 if FAST else 2,
        norm_first=norm_first,
    )

with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for index, name in enumerate(WARMUPS):
        curve(axes, index, name, histories[name]["loss"], x=25)
    axes.set_xlabel("step")
    axes.set_ylabel("training loss, nats")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "06_warm_up.png")
figure

# %% [markdown]
# How good is a model that knows how frequent each piece is, and nothing else?
# Its negative log-likelihood is the entropy of these frequencies.

# %%
pieces = np.concatenate([block["target_ids"][:, 1:].values for block in blocks])
share_of_piece = np.bincount(pieces)[np.unique(pieces)] / len(pieces)
entropy = -np.sum(share_of_piece * np.log(share_of_piece))
nats = {name: histories[name]["nats"][-1] for name in WARMUPS}
print(f"entropy of the pieces: {entropy:.2f} nats")
print({name: round(of_run, 2) for name, of_run in nats.items()})
if not FAST:
    others = max(nats["post-norm, warm-up"], nats["pre-norm, none"])
    assert nats["post-norm, none"] > others + 0.5
    assert nats["post-norm, none"] > entropy - 0.2

# %% [markdown]
# In this run post-norm without warm-up gets stuck at once: it has learned how
# frequent each piece is, and nothing more. With warm-up the same model, at the
# same peak, goes on learning. Pre-norm does so even without warm-up.

# %% [markdown]
# ## Averaging
#
# Each gradient is that of one batch, so the weights never stop trembling. One
# cure is to let the learning rate fall to 0; another is to average the weights
# over the last steps. The paper averages its last checkpoints (section 6.1); a
# running mean after each step is cheaper to keep (Polyak and Juditsky 1992 give
# the theory for the plain mean),
#
# $$\bar w_1 = w_1, \qquad \bar w_t = \mu\, \bar w_{t-1} + (1 - \mu)\, w_t,$$
#
# in Keras `use_ema=True, ema_momentum=` $\mu$. A step that lies $k$ steps back
# has the weight $(1 - \mu) \mu^k$, so that about $1 / (1 - \mu)$ steps count. A
# weight that walks 1, 2, 3, ... checks it:

# %%
MU, n = 0.9, 10
weight = keras.Variable(0.0)
optimizer = keras.optimizers.SGD(
    1.0, use_ema=True, ema_momentum=MU, ema_overwrite_frequency=n
)
for _ in range(n):  # After the last step the mean replaces the weight.
    optimizer.apply([ops.convert_to_tensor(-1.0)], [weight])
mean = 1.0
for t in range(2, n + 1):
    mean = MU * mean + (1 - MU) * t
shares_of_steps = (1 - MU) * MU ** np.arange(n - 1.0, -1, -1)
shares_of_steps[0] = MU ** (n - 1)  # The first step starts the mean.
assert np.isclose(shares_of_steps.sum(), 1)
assert np.isclose(mean, shares_of_steps @ np.arange(1, n + 1))
assert np.isclose(weight.numpy(), mean)

# %% [markdown]
# Now we train at the peak rate from the first step to the last (so without
# warm-up, too), with $\mu = 0.99$: about the last 100 steps count, which is
# three epochs. Such a run takes longer to arrive, so it gets 16 epochs. The
# average is only looked at and does not change the training, so one run gives
# both curves. The callback `SwapEMAWeights` puts the average in place while
# Keras validates, and takes it out afterwards; a second callback then validates
# the weights themselves.


# %%
class ValidateWeights(keras.callbacks.Callback):
    """The same held-out pairs, with the weights as they are."""

    def on_epoch_end(self, epoch, logs=None):
        scores = self.model.evaluate(validation, verbose=0, return_dict=True)
        history = histories.setdefault("constant rate", {})
        for name, score in scores.items():
            history.setdefault(f"val_{name}", []).append(score)


LONGER = 2 if FAST else 16
CONSTANT = ("constant, averaged", "constant rate")
train(
    "constant, averaged",
    rate=PEAK,
    averaging=True,
    epochs=LONGER,
    callbacks=[keras.callbacks.SwapEMAWeights(), ValidateWeights()],
)
with drawing.style():
    figure, axes = axes_with_band()
    for index, name in enumerate(CONSTANT):
        values = 100 * np.array(histories[name]["val_exact"])
        curve(axes, index, name, values)
    axes.set_xlabel("epoch")
    axes.set_ylabel("exact, %")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "06_averaging.png")
figure

# %%
averaged, plain = end_of("val_exact", CONSTANT)
print(f"last epochs: averaged {averaged:.3f}, not averaged {plain:.3f}")
if not FAST:
    assert averaged > plain and averaged >= exact.min() / 100
    trail = [histories[name]["val_exact"][5] for name in CONSTANT]
    assert trail[0] < trail[1]

# %% [markdown]
# While the model makes progress the average trails behind, since it still holds
# weights that knew less. When the progress ends, the average overtakes the
# weights themselves, and after its 16 epochs it is no lower than the recipe's
# lowest seed after 10. Where the rate falls to 0 the trembling stops by itself,
# and there should be less to average away. (We have not measured it here.) But
# an average can be had at any time, without knowing beforehand when the
# training will end.

# %% [markdown]
# ## Mixed precision
#
# A bfloat16 is a float32 without its last 16 bits, rounded to the nearest: as
# large a range, but only 8 bits for the digits, the leading one included. That
# is half the memory and, on hardware that supports it, products several times
# as fast. What does one lose? Between 1 and 2 there are only 128 numbers.

# %%
number = tf.constant(np.pi, tf.float32)
shortened = tf.bitcast(tf.cast(number, tf.bfloat16), tf.uint16)
assert int(shortened) == int(tf.bitcast(number, tf.uint32)) >> 16
grid = tf.cast(tf.linspace(1.0, 2.0, 10_001), tf.bfloat16)
assert len(np.unique(grid)) - 1 == 128

# %% [markdown]
# So one cannot add a thousandth to a weight of 1, not even a thousand times:
# each sum is rounded back to 1. Many steps are that small beside their weight.
# That is why precision is *mixed*: weights, Adam's means and the loss stay
# float32, and only what flows through the layers is bfloat16. (The other short
# format, float16, has more digits but a small range: a gradient of 1e-8 is 0 in
# it, and losses have to be scaled. In bfloat16 it is fine.)

# %%
sums = {}
for dtype in (tf.float32, tf.bfloat16):
    weight = tf.constant(1, dtype)
    for _ in range(1000):
        weight += tf.constant(1e-3, dtype)
    sums[dtype.name] = float(weight)
print(sums)
assert np.isclose(sums["float32"], 2, atol=1e-4) and sums["bfloat16"] == 1
tiny = 1e-8
assert float(tf.cast(tiny, tf.float16)) == 0 < float(tf.cast(tiny, tf.bfloat16))

# %%
train("bfloat16", dtype="mixed_bfloat16")
model = models["bfloat16"]
assert {variable.dtype for variable in model.trainable_variables} == {"float32"}
assert {layer.compute_dtype for layer in model.encoder_layers} == {"bfloat16"}
assert model(inputs).dtype == tf.float32  # The loss is computed from these.
with drawing.style():
    figure, axes = axes_with_band()
    values = 100 * np.array(histories["bfloat16"]["val_exact"])
    curve(axes, 1, "mixed bfloat16", values)
    axes.set_xlabel("epoch")
    axes.set_ylabel("exact, %")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "06_precision.png")
if not FAST:
    [mixed] = 100 * end_of("val_exact", ["bfloat16"])
    assert exact.min() - 4 < mixed < exact.max() + 4
figure

# %% [markdown]
# The curve ends within a few points of the band, though what flows through the
# layers was rounded to two or three digits. Whether the rest is rounding or
# chance, one run cannot tell. How long it took is printed above: a processor
# without bfloat16 arithmetic has to convert, and may be slower, not faster.

# %% [markdown]
# ## Two replicas, one step
#
# A batch can be shared out among devices, each with its copy of the weights (a
# *replica*). That is exact, if the parts are weighted right. The loss of a
# batch is a mean over its $N$ real tokens, so the loss $L_i$ of each token has
# the weight $1/N$, *in whichever part it lands*:
#
# $$\nabla \frac1N \sum_{i} L_i
#   = \nabla \frac1N \sum_{i \in A} L_i + \nabla \frac1N \sum_{i \in B} L_i .$$
#
# The common mistake is to take the mean of the parts' means: then the tokens
# of a part with few tokens count more. That is why `to_examples` puts $1/N$
# into the sample weights before the batch is split.

# %%
keras.utils.set_random_seed(1)
model = small_transformer(dropout=0.0)
# A batch whose first half has the short rows, to tell the two rules apart.
by_length = np.argsort((labels.numpy() != PAD).sum(axis=1), kind="stable")


def gradient(rows, sample_weight):
    """That of the weighted loss of some rows, as one long vector."""
    part = {name: tf.gather(ids, rows) for name, ids in inputs.items()}
    with tf.GradientTape() as tape:
        losses = ka.training.losses.token_cross_entropy(
            model(part), tf.gather(labels, rows), EPSILON
        )
        loss = tf.reduce_sum(losses * tf.gather(sample_weight, rows))
    gradients = tape.gradient(loss, model.trainable_variables)
    return np.concatenate(
        [tf.reshape(tf.convert_to_tensor(g), [-1]) for g in gradients]
    )


def off_by(first, second):
    """The relative distance of two gradients."""
    return np.linalg.norm(first - second) / np.linalg.norm(second)


parts = np.array_split(by_length, 2)
whole = gradient(by_length, sample_weight)
summed = sum(gradient(rows, sample_weight) for rows in parts)
of_means = sum(
    # Within each part, the weights add up to 1.
    gradient(
        rows, sample_weight / tf.reduce_sum(tf.gather(sample_weight, rows))
    )
    / 2
    for rows in parts
)
print(f"sum of the parts: off by {off_by(summed, whole):.1e}")
print(f"mean of the parts' means: off by {off_by(of_means, whole):.2f}")
assert off_by(summed, whole) < 1e-4 and off_by(of_means, whole) > 0.02

# %% [markdown]
# `ka.training.trainer.Trainer` is a Keras model around a model, with `compile`
# and `fit` as usual. Under a `MirroredStrategy` each of two devices gets half
# of the rows, gradients are summed over the devices, and only then clipped.
# (With `model.fit` the gradients are summed just as exactly, but Keras's
# optimizers clip each replica's part alone.) Here the devices are the two of
# the first cell. They share all cores, so nothing gets faster, but we see
# whether the weights are the same. Two things are chosen so that they can be:
# no dropout, which draws different numbers on each device, and plain gradient
# descent. (Adam's quotient turns the sign of a gradient into a whole step, even
# where the gradient is 0 but for rounding.)


# %%
def some_steps(replicas):
    """Trains on some devices: weights before, weights after, losses."""
    strategy = ka.devices.make_strategy(replicas)
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = small_transformer(dropout=0.0)
        before = [variable.numpy() for variable in model.trainable_variables]
        trainer = ka.training.trainer.Trainer(model, EPSILON, clip_norm=1.0)
        trainer.compile(keras.optimizers.SGD(0.5), jit_compile=False)
        trainer.optimizer.build(model.trainable_variables)
    history = trainer.fit(
        examples(1, seed=1, multiple_of=2),
        epochs=2 if FAST else 20,
        steps_per_epoch=1,
        shuffle=False,
        verbose=0,
    ).history
    after = [variable.numpy() for variable in model.trainable_variables]
    return before, after, history["loss"]


def greatest_difference(first, second):
    """Of all weights."""
    return max(np.abs(a - b).max() for a, b in zip(first, second, strict=True))


before, one, losses_of_one = some_steps(1)
_, two, losses_of_two = some_steps(2)
moved = greatest_difference(one, before)
difference = greatest_difference(one, two)
print(f"weights moved by up to {moved:.3f} and differ by {difference:.1e}")
assert difference < 1e-4 * moved
assert np.allclose(losses_of_one, losses_of_two, rtol=1e-4)

with drawing.style():
    figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    steps = np.arange(1, len(losses_of_one) + 1)
    axes.plot(steps, losses_of_one, color=drawing.COLORS[0], label="one device")
    axes.plot(
        steps,
        losses_of_two,
        color=drawing.COLORS[1],
        linestyle="none",
        marker=drawing.MARKERS[1],
        label="two replicas",
    )
    axes.set_xticks(steps[4::5])
    axes.set_xlabel("step")
    axes.set_ylabel("training loss, nats")
    drawing.finish(axes)
    drawing.save(figure, PICTURES / "06_replicas.png")
figure

# %% [markdown]
# The squares lie on the line: after the same steps both have the same weights,
# but for float32's rounding of sums in a different order.
#
# ## All choices side by side
#
# The share of held-out pairs that are exactly right, as a mean over the last
# three epochs, and the likelihood. Grey is what chance does.

# %%
CHOICES = (
    "random batches",
    "no smoothing",
    "constant rate",
    "constant, averaged",
    "bfloat16",
)
print(f"{'':20} exact, %   nats")
for name in (*RECIPES, *CHOICES):
    [of_exact], [of_nats] = (
        end_of(key, [name]) for key in ("val_exact", "val_nats")
    )
    print(f"{name:20} {100 * of_exact:8.1f} {of_nats:6.3f}")

with drawing.style():
    figure = drawing.Figure(figsize=(7.2, 3.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, (key, scale, title) in zip(
        panels,
        (("val_exact", 100, "exact, %"), ("val_nats", 1, "nats a token")),
        strict=True,
    ):
        band = scale * end_of(key)
        panel.axvspan(band.min(), band.max(), color="#CCCCCC", linewidth=0)
        panel.plot(
            scale * end_of(key, CHOICES),
            range(len(CHOICES)),
            "o",
            color=drawing.COLORS[0],
        )
        panel.set_yticks(range(len(CHOICES)), CHOICES)
        panel.set_xlabel(title)
        panel.grid(axis="y", color="#E4E4E4", linewidth=0.8)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].invert_yaxis()
    drawing.save(figure, PICTURES / "06_choices.png")
of_choices = 100 * end_of("val_exact", CHOICES)
outside = np.maximum(exact.min() - of_choices, of_choices - exact.max())
print(
    f"{np.sum(outside > 0)} choices lie outside the band, "
    f"by up to {outside.max():.1f} points"
)
if not FAST:
    assert outside.max() < 5
    assert np.argmin(end_of("val_nats", CHOICES)) == 1  # No smoothing.
figure

# %% [markdown]
# Read it with the band in mind. Some of the five lie outside it, by as much as
# is printed above; with one run each that is a hint, not a finding. (The run at
# a constant rate, with its average, had 16 epochs, the others 10.) Random
# batches lie above it: here batches with little padding saved time in each
# step, but may have cost quality. The likelihood is moved most by leaving out
# the label smoothing, which asks the model to be less sure. What did break a
# training run was a post-norm model without warm-up.
#
# ## What to take away
#
# - Batches of similar length and equal size compute little padding and need a
#   known amount of memory; they are less random, which may cost something.
# - Label smoothing has its own floor and buys modesty at the price of
#   likelihood.
# - Warm-up is there because Adam's first steps are as large as its later ones
#   but know far less. A post-norm model bears that badly (Xiong et al. 2020
#   explain why), a pre-norm one better. A falling learning rate and averaged
#   weights are two ways to stop trembling.
# - In mixed precision the products are short and the sums of steps long. Over
#   replicas, losses are weighted by the tokens of the whole batch; then two
#   devices do what one does.
# - Before a choice is praised: what does chance alone do?
#
# ## Your turn
#
# Write the learning rate of the paper's equation 3. It rises to its peak in a
# straight line, over `warmup` steps. Then it falls as one over the root of the
# step. Steps count from 1.

# %% tags=["alone"]
import your_turn


def paper_rate(step, peak, warmup):
    """The learning rate of one step."""
    if step <= warmup:
        return ...
    return ...


your_turn.check(6, paper_rate)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def paper_rate(step, peak, warmup):
#     if step <= warmup:
#         return peak * step / warmup
#     return peak * np.sqrt(warmup / step)
#
#
# your_turn.check(6, paper_rate)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots. Two digits are enough.
#
# - a: Sentences of 3, 5 and 12 tokens are one batch. Which share of it is
#   padding?
# - b: One replica has 10 tokens and a mean loss of 2. The other has 30 tokens
#   and a mean loss of 4. What is the loss of the whole batch?
# - c: In a running mean with $\mu = 0.99$, an old value counts less than a new
#   one. By which number is the share of a value multiplied in 100 steps?

# %% tags=["alone"]
your_turn.quiz(6, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: The batch has 3 rows of 12 places, and 20 tokens fill them.
# - b: A replica counts as many times as it has tokens.
# - c: Each step multiplies what is old by $\mu$.
#
# ```python
# your_turn.quiz(6, a=1 - 20 / 36, b=(10 * 2 + 30 * 4) / 40, c=0.99**100)
# ```
#
# </details>
#
# ## Exercises
#
# 1. Our embeddings start with a standard deviation of $\frac12 D^{-1/2}$,
#    so that a logit, the product of a normalised vector of width $D$ with an
#    embedding, has $\sigma = \frac12$. For Gaussian logits
#    $\ln \sum_v e^{l_v} \approx \ln V + \sigma^2 / 2$. What is the first loss
#    with embeddings of standard deviation 1, the default of some other
#    libraries?
#
# <details><summary>Solution</summary>
#
# The formula would say $\ln V + D / 2$, which is 38 for our model. But it holds
# only while $\sigma$ is well below $\sqrt{2 \ln V} = 3.5$, and here $\sigma$ is
# $\sqrt D = 8$: the greatest logit rules the sum, and Gaussian logits would
# have a loss of about 24. The loss of our model is far greater, for another
# reason: its logits are not random. The residual path carries the embedding of
# the input token to the output, where it meets itself in the same matrix. The
# model is sure that each token will be repeated, and would spend its first
# epochs on unlearning that.
#
# ```python
# generator = np.random.default_rng(1)
# for sigma in (0.5, 1):
#     logits = generator.normal(0, sigma, (1000, 1000))
#     measured = np.log(np.exp(logits).sum(axis=1)).mean()
#     assert abs(measured - np.log(1000) - sigma**2 / 2) < 0.01
# logits = generator.normal(0, 8, (1000, 424))
# assert 23 < np.log(np.exp(logits).sum(axis=1)).mean() < 26  # Not 38.
# keras.utils.set_random_seed(1)
# model = small_transformer()
# embeddings = model.target_embedding.embeddings
# embeddings.assign(embeddings * 2 * WIDTH**0.5)
# cross_entropy = ka.training.losses.TokenCrossEntropy()
# wrong_loss = float(cross_entropy(labels, model(inputs)))
# print(f"{wrong_loss:.1f}")
# assert wrong_loss > np.log(V) + WIDTH / 2
# likeliest = np.argmax(model(inputs), axis=-1)
# repeated = (likeliest == inputs["target_ids"].numpy())[real].mean()
# print(f"repeats {100 * repeated:.0f} %")
# assert repeated > 0.8
# ```
#
# </details>
#
# 2. A training with label smoothing 0.1 and a vocabulary of 8,000 pieces
#    shows a loss of 1.3. How far is it from the best possible?
#
# <details><summary>Solution</summary>
#
# The floor is 1.22 nats, so 0.08.
#
# ```python
# at_label, elsewhere = 0.9 + 0.1 / 8000, 0.1 / 8000
# floor = -at_label * np.log(at_label)
# floor -= 7999 * elsewhere * np.log(elsewhere)
# assert round(floor, 2) == 1.22
# ```
#
# </details>
#
# 3. Suppose that late in a training the weights tremble around a point,
#    independently at each step, with a standard deviation of 1. How far from
#    the point is a running mean with $\mu = 0.99$?
#
# <details><summary>Solution</summary>
#
# The squares of the shares add up to $(1 - \mu)^2 / (1 - \mu^2) = (1 - \mu) /
# (1 + \mu)$, and its root is 0.07.
#
# ```python
# trembling = np.random.default_rng(1).normal(size=(1000, 1000))
# mean = trembling[0]
# for w in trembling[1:]:
#     mean = 0.99 * mean + 0.01 * w
# assert abs(mean.std() - (0.01 / 1.99) ** 0.5) < 0.01
# ```
#
# </details>
#
# Next, in [chapter 7](07_searching_well.ipynb): the model is trained, and its
# best sentences have to be found.
