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
# # 8. Your own language pair
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/08_your_own_pair.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# You have two text files in UTF-8 that are translations of each other, line by
# line. How do you get a translator from them, and how do you know what it is
# worth? We do it once on the command line, where everything is one command, and
# once from Python, where every stage is yours to change.
#
# Takes about 5 minutes on two cores. At the end a small translator from
# English to French has been exported, with a BLEU score that you know how to
# read. Pictures are shown here and kept in the folder `pictures`.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import os
import pathlib
import random

import keras
import sacrebleu
import tensorflow as tf

import keras_attention as ka
from keras_attention import cli
from keras_attention.plotting import drawing

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
keras.utils.set_random_seed(1)

# %% [markdown]
# ## Two files
#
# So that this chapter runs for everybody, we make the files: English and French
# phrases, from a corpus that the package generates. From here on they are files
# like yours.

# %%
folder = pathlib.Path("runs/my_pair_fast" if FAST else "runs/my_pair")
folder.mkdir(parents=True, exist_ok=True)
phrases = ka.data.corpora.load("phrases", "en", "fr").splits["train"]
size = 1_200 if FAST else 12_700
for side, language in (("source", "en"), ("target", "fr")):
    lines = [pair[side] for pair in phrases.take(size).as_numpy_iterator()]
    (folder / f"all.{language}").write_bytes(b"\n".join(lines) + b"\n")
    print(
        f"all.{language}: {len(lines):,} lines; the first: {lines[0].decode()}"
    )

# %% [markdown]
# Three splits, three purposes. **train** is what the model learns from.
# **validation** is what *you* learn from: you look at it as often as you like
# to choose sizes, rates and the number of epochs. **test** tells what the
# result is worth. The command below prints its score at the end of each
# training; do not choose by it. A choice that was made on the test set makes
# its score too good, and nobody can say by how much.
#
# No pair may be in two splits, so duplicates are removed first, and no source
# sentence of the test set may be one that was trained on. Some hundreds of
# pairs are enough for either of the small splits. For training, ten thousand
# are enough for a narrow subject such as this one; captions of pictures want
# some tens of thousands, and news millions.
#
# A word of warning about reading such files: Python's `str.splitlines` also
# cuts at characters that stand *inside* a line of real texts, such as U+2028
# and U+0085. One of them in one of the two files shifts all pairs below it. So
# we cut at line feeds, as the package does.


# %%
def read_lines(path):
    """The lines of a text file, which end in line feeds only."""
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


inside = folder / "inside.txt"
inside.write_bytes("un\u2028deux\u0085trois\nquatre\n".encode())
assert len(inside.read_text("utf-8").splitlines()) == 4
assert read_lines(inside) == ["un\u2028deux\u0085trois", "quatre"]

sides = [read_lines(folder / f"all.{language}") for language in ("en", "fr")]
pairs = list(dict.fromkeys(zip(*sides, strict=True)))
random.Random(1).shuffle(pairs)
splits = {
    "validation": pairs[:200],
    "test": pairs[200:700],
    "train": pairs[700:],
}
tested = {source for source, _ in splits["test"]}
splits["train"] = [pair for pair in splits["train"] if pair[0] not in tested]
for split, chosen in splits.items():
    for index, language in enumerate(("en", "fr")):
        text = "".join(pair[index] + "\n" for pair in chosen)
        (folder / f"{split}.{language}").write_bytes(text.encode())
    print(f"{split}: {len(chosen):,} pairs")

seen = {source for source, _ in splits["train"]}
assert not seen & tested

# %% [markdown]
# The names say split and language: `train.en`, `train.fr`, `validation.en`,
# ..., and any `test*.en`. They may be gzipped. Line 17 of one file has to be
# the translation of line 17 of the other. A missing line shifts all pairs below
# it, and a model that is trained on such files learns nothing and says nothing.
# The package therefore counts the lines before it trains:

# %%
broken = folder / "broken"
broken.mkdir(exist_ok=True)
for path in folder.glob("[!a]*.??"):
    (broken / path.name).write_bytes(path.read_bytes())
(broken / "train.fr").write_text("une ligne\n", "utf-8")
message = ""
try:
    ka.data.corpora.load(str(broken), "en", "fr")
except ValueError as error:
    message = str(error)
print(message)
assert "train.fr has 1" in message and "has no partner" in message

# %% [markdown]
# ## On the command line
#
# One command learns a vocabulary, trains, scores the test set, draws and
# exports. `keras-attention train --help` lists every choice; those that you
# make again and again go into a YAML file (`--config FILE.yaml`). If the
# machine goes down, the same command with `--resume` goes on where it stopped,
# and on a CPU ends with the same weights.

# %%
run = folder / "run"
command = [
    *("train", "--corpus", str(folder), "--source", "en", "--target", "fr"),
    *("--model", "transformer", "--size", "mini", "--output", str(run)),
    *("--vocabulary_size", "500", "--max_piece_length", "9"),
    *("--max_tokens", "512", "--dropout", "0.1", "--resume"),
    *(("--steps", "5") if FAST else ("--epochs", "8")),
]
print("keras-attention", *command)
cli.main(command)  # The function behind the command.

# %% [markdown]
# ## From Python
#
# The same stages one by one. First the pairs, and a vocabulary for both
# languages: it cuts words into pieces, so that no word is unknown, and what
# English and French write alike has the same pieces.

# %%
corpus = ka.data.corpora.load(str(folder), "en", "fr")
texts = [
    text.decode()
    for pair in corpus.splits["train"].as_numpy_iterator()
    for text in (pair["source"], pair["target"])
]
tokenizer = ka.data.Tokenizer(
    ka.data.train_vocabulary(texts, vocabulary_size=500, max_piece_length=9)
)
ids = tokenizer.tokenize(["twenty-one", "vingt et un"])
print(tokenizer.pieces(ids.to_tensor()).numpy())

# %% [markdown]
# Then batches. Each stage is a function that makes a transform for
# `Dataset.apply`; leave one out, or put your own between them. Pairs of about
# the same length share a batch, of at most 512 target tokens.


# %%
def batches(split, epoch):
    """The examples of one epoch: (inputs, labels, weights)."""
    return (
        corpus.splits[split]
        .apply(ka.data.tokenize(tokenizer))
        .apply(ka.data.filter_by_length(max_length=64))
        .apply(ka.data.shuffle(seed=1, epoch=epoch))
        .apply(ka.data.batch_by_tokens(max_tokens=512))
        .apply(ka.data.to_examples())
        .prefetch(2)
    )


inputs, labels, weights = next(iter(batches("train", 0)))
print(inputs["source_ids"].shape, labels.shape)
# The weights of a batch's real tokens add up to 1: the loss is their mean.
assert abs(float(tf.reduce_sum(weights)) - 1) < 1e-5

# %% [markdown]
# The model is a Keras model, and it trains with `compile` and `fit`. This one
# is Bahdanau's; any of `ka.models` fits here, and so does your own.

# %%
model = ka.models.RNNSearch.from_size(
    "tiny",
    tokenizer.vocabulary_size,
    embedding_dim=64,
    units=96,
    readout_dim=64,
    dropout=0.1,
)
EPOCHS = 1 if FAST else 8
examples = [batches("train", epoch) for epoch in range(EPOCHS)]
examples = [one.take(5) for one in examples] if FAST else examples
counts = [sum(1 for _ in one) for one in examples]  # Batches.
warmup = sum(counts) // 10
rate = keras.optimizers.schedules.CosineDecay(
    0.0, sum(counts) - warmup, warmup_target=4e-3, warmup_steps=warmup
)
model.compile(
    ka.training.optimizers.Adam(rate, global_clipnorm=1.0),
    loss=ka.training.losses.TokenCrossEntropy(),
    jit_compile=False,
)
history = []
for epoch in range(EPOCHS):
    logs = model.fit(
        examples[epoch], steps_per_epoch=counts[epoch], shuffle=False, verbose=2
    )
    history.append(logs.history["loss"][0])
if not FAST:
    assert history[-1] < history[0] / 2

# %% [markdown]
# A `Translator` joins tokenizer, model and search, and exports all three as one
# SavedModel. Here are the first texts of the test set and what the translator
# makes of them (in brackets what would have been right), and how many of all
# answers are right.

# %%
translator = ka.Translator(model, tokenizer, num_beams=4, max_source_length=64)
sources = read_lines(folder / "test.en")
references = read_lines(folder / "test.fr")
if FAST:
    sources, references = sources[:20], references[:20]
answers = translator(sources)
for source, answer, reference in zip(
    sources[:5], answers, references, strict=False
):
    wrong = "" if answer == reference else f" ({reference})"
    print(f"{source} | {answer}{wrong}")
right = sum(map(str.__eq__, answers, references)) / len(references)
print(f"exact match {right:.1%}")
if not FAST:
    assert right > 0.9
exported = translator.export(folder / "exported")
assert (pathlib.Path(exported) / "saved_model.pb").is_file()

# %% [markdown]
# ## Reading BLEU honestly
#
# BLEU (Papineni et al. 2002) counts runs of one, two, three and four words.
# Which share of the translations' runs is also in the references (each at most
# as often as it occurs there)? BLEU is the geometric mean of the four shares.
# It punishes translations that are too short. If all of them have $c$ words,
# and the references $r > c$, BLEU is multiplied by the *brevity penalty*
# $e^{1 - r / c}$. It is a score of a corpus, from 0 to 100. Six things to know
# before you believe one, or print one.

# %%
run_translator = ka.load(run)
answers = {
    "beam of 4": run_translator(sources),
    "greedy": run_translator(sources, num_beams=1),
}
scores = {
    name: ka.evaluation.corpus_scores(texts, references)
    for name, texts in answers.items()
}
for name, score in scores.items():
    print(
        f"{name:10} BLEU {score['bleu']['score']:6.2f}   "
        f"chrF {score['chrf']['score']:6.2f}   "
        f"exact match {score['exact_match']:5.1f} %"
    )
print(scores["greedy"]["bleu"]["signature"])

# %% [markdown]
# **1. It needs its signature.** The same translations have many BLEU scores,
# depending on how words are told apart and whether case counts. Compare scores
# only if their signatures are equal (Post 2018). The package's, `tok:13a`, is
# for languages that put spaces between words; to it, a whole sentence of
# Chinese, Japanese or Thai is one word. For these languages read chrF, which
# compares runs of characters, or score with sacrebleu's own tokenizers for
# them.

# %%
best = answers["beam of 4"]
variants = {
    "13a, cased": sacrebleu.BLEU(),
    "13a, lower-cased": sacrebleu.BLEU(lowercase=True),
    "no tokenizer": sacrebleu.BLEU(tokenize="none"),
    "characters": sacrebleu.BLEU(tokenize="char"),
}
by_variant = {
    name: metric.corpus_score(best, [references]).score
    for name, metric in variants.items()
}
for name, score in by_variant.items():
    print(f"{name:18} {score:6.2f}")

# %% [markdown]
# **2. It is a score of the corpus, not the mean of the sentences.** Counts are
# added over all sentences before shares are taken.

# %%
metric = sacrebleu.BLEU(effective_order=True)
single = [
    metric.sentence_score(answer, [reference]).score
    for answer, reference in zip(best, references, strict=True)
]
mean = sum(single) / len(single)
print(f"corpus {by_variant['13a, cased']:.1f}, mean of sentences {mean:.1f}")

# %% [markdown]
# **3. One wrong word costs up to ten runs of words.** Let one word in the
# middle of six be wrong. Five of six words are left, three of five pairs, one
# of four triples, and none of three runs of four. Without smoothing that is a
# BLEU of 0.

# %%
reference = "the cat sat on the mat"
answer = "the cat sat at the mat"
words, theirs = answer.split(), reference.split()
shares = []
for n in (1, 2, 3, 4):
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    known = {tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1)}
    shares.append((sum(one in known for one in runs), len(runs)))
print(shares)
assert shares == [(5, 6), (3, 5), (1, 4), (0, 3)]
assert (
    sacrebleu.BLEU(smooth_method="none")
    .corpus_score([answer], [[reference]])
    .score
    == 0
)

# %% [markdown]
# **4. It varies with the sentences.** Another test set of the same kind would
# give another score. The bootstrap (Koehn 2004) draws the test set again, with
# replacement, many times, and looks at how far the score moves. This is the
# interval of one score; two systems on the same sentences are another matter,
# which is the next point.

# %%
bleu = sacrebleu.BLEU()
generator = random.Random(1)
greedy = answers["greedy"]


def resampled(count):
    """BLEU of both models on the same resampled test sets."""
    for _ in range(count):
        chosen = generator.choices(range(len(references)), k=len(references))
        yield tuple(
            bleu.corpus_score(
                [texts[i] for i in chosen], [[references[i] for i in chosen]]
            ).score
            for texts in (best, greedy)
        )


samples = sorted(resampled(20 if FAST else 200))
firsts = [first for first, _ in samples]
low, high = firsts[len(firsts) // 40], firsts[-1 - len(firsts) // 40]
print(f"95 % of the samples lie between {low:.1f} and {high:.1f}")
assert low <= scores["beam of 4"]["bleu"]["score"] <= high

# %% [markdown]
# **5. Two systems are compared on the same sentences.** Here, one model with
# two searches. Both scores move together, since the same sentences are hard for
# both, so we look at the difference of each pair of samples; it moves less than
# either score. `p` says how often chance in the sentences alone produces a
# difference as large as this. (It is a share of the samples. A sample counts if
# its absolute difference, less the samples' mean, is greater than that of the
# whole test set.) Above 0.05 one does not speak of a difference. (`p` knows
# nothing of the seed: to compare two recipes, train each more than once.)
# `keras-attention evaluate RUN --beside OTHER` does this for two runs.

# %%
result = ka.evaluation.paired_bootstrap(
    greedy, best, references, num_samples=100 if FAST else 1000
)
print(result)
verdict = "a difference" if result["p_value"] < 0.05 else "no difference shown"
print(f"greedy search and beam of 4: {verdict}")
differences = [first - second for first, second in samples]
spread = max(firsts) - min(firsts)
print(
    f"one score: over {spread:.2f} points, "
    f"difference: over {max(differences) - min(differences):.2f}"
)
if not FAST:
    assert max(differences) - min(differences) < spread
figure = drawing.Figure(figsize=(6, 3.6), layout="constrained")
with drawing.style():
    left, right = figure.subplots(1, 2)
    left.hist(firsts, bins=20, color=drawing.COLORS[0])
    left.set_xlabel("BLEU, beam of 4")
    left.set_ylabel("samples")
    right.hist(differences, bins=20, color=drawing.COLORS[1])
    right.set_xlabel("beam of 4 over greedy")
    for axes in (left, right):
        drawing.finish(axes)
    drawing.save(figure, PICTURES / "08_bootstrap.png")
figure

# %% [markdown]
# **6. It is not the quality of a translation.** It compares words with one
# reference of many that would be right. Here every phrase has one right
# answer, and exact match says more. On news or speech look at chrF too, and
# read the translations: the command line prints a table of them for that.
#
# ## What to take away
#
# Two aligned files are enough: one command trains, scores and exports, and
# from Python each stage is a few lines that you may change. Count the lines,
# keep the test set out of your choices, and give no score without its
# signature, nor a difference without the interval that chance would give it.
#
# ## Your turn
#
# Write one of BLEU's four shares. The given lines count the runs of $n$ words,
# of the translation and of its reference. A run of the translation is known if
# the reference has it. It counts at most as often as the reference has it.

# %% tags=["alone"]
import collections

import your_turn


def known_share(words, reference, n):
    """Lists of words -> which share of the runs of `words` is known."""
    runs, known = (
        collections.Counter(
            tuple(text[i : i + n]) for i in range(len(text) - n + 1)
        )
        for text in (words, reference)
    )
    return ...


your_turn.check(8, known_share)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# import collections
#
#
# def known_share(words, reference, n):
#     runs, known = (
#         collections.Counter(
#             tuple(text[i : i + n]) for i in range(len(text) - n + 1)
#         )
#         for text in (words, reference)
#     )
#     return (runs & known).total() / runs.total()  # & takes the lesser count.
#
#
# your_turn.check(8, known_share)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: The reference is "the cat". Which share of the words of "the the the the"
#   is known?
# - b: Of a corpus of two sentences, one has 6 words, 5 of them known. The other
#   has 2 words, 1 of them known. Which share enters BLEU?
# - c: A sentence has 10 words. How many runs of four words does it have?

# %% tags=["alone"]
your_turn.quiz(8, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: The reference has one "the", so one of four is known.
# - b: Counts are added over all sentences before shares are taken.
# - c: The last run begins at word 7.
#
# ```python
# your_turn.quiz(8, a=1 / 4, b=(5 + 1) / (6 + 2), c=10 - 4 + 1)
# ```
#
# </details>
#
# ## Exercises
#
# 1. Train in the other direction. What do you have to change?
#
#    <details><summary>Solution</summary>
#
#    `--source fr --target en`, and another `--output`: nothing else. The files
#    stay as they are.
#
#    </details>
# 2. What is the BLEU of a translation that repeats its reference of ten words,
#    but lacks the last one? (The shares are all 1.)
#
#    <details><summary>Solution</summary>
#
#    Only the brevity penalty is left: exp(1 - 10/9) = 0.895, so 89.5.
#
#    ```python
#    text = "a b c d e f g h i j"
#    sacrebleu.BLEU().corpus_score([text[:-2]], [[text]]).score  # 89.48
#    ```
#
#    </details>
# 3. Is the vocabulary too small? Count the tokens of the validation set with
#    400 and with 2,000 pieces, and say what a longer sentence costs.
#
#    <details><summary>Solution</summary>
#
#    ```python
#    count = {}
#    lines = read_lines(folder / "validation.fr")
#    for size in (400, 2000):
#        model = ka.data.train_vocabulary(texts, vocabulary_size=size)
#        count[size] = len(ka.data.Tokenizer(model).tokenize(lines).flat_values)
#    assert count[400] > count[2000]
#    ```
#
#    Fewer pieces make longer sentences, which take more steps to write; more
#    pieces make a larger softmax, and each piece is seen less often.
#
#    </details>
#
# Next, in [chapter 9](09_serving.ipynb): what a program that has never heard of
# this package can ask of an exported model.
