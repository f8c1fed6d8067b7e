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
# # 7. Searching well
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/07_searching_well.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# A translation model does not write sentences. It answers one question, as
# often as it is asked: given the source and the tokens written so far, how
# probable is each token as the next one? The other half of a translator is the
# search: which sentence do we write down? Taking the most probable token each
# time is the obvious answer, and it is wrong in a way that can be computed. We
# take a model of three words, whose sentences can all be listed, so that each
# claim about a search can be checked exactly. Then we search with a trained
# model, where nobody can list anything.
#
# Takes about 3 minutes on two cores. At the end a table shows, for beams of 1
# to 8, how many translations of a trained model are right. It also shows whose
# fault the wrong ones are: the search's or the model's. Pictures are shown here
# and kept in the folder `pictures`.

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import collections
import itertools
import math
import os
import pathlib

import keras
import numpy as np
import tensorflow as tf

import keras_attention as ka
from keras_attention.plotting import drawing
from keras_attention.tokens import END, PAD, START

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
ka.devices.share_cores()  # On two cores, each computes operations of its own.
keras.utils.set_random_seed(1)

# %% [markdown]
# ## A model to hold in your hand
#
# Imagine a model half way through its training that is to translate
# "twenty-one". It has learned that German says the "one" before the "twenty",
# but is still tempted to begin with what English begins with. Its vocabulary
# has three pieces; as in SentencePiece, "▁" marks the beginning of a word, so
# that "▁zwanzig" begins one and "zwanzig" continues one. Here is all it knows:
# a row for the token written last, a column for the one that may come next.

# %%
PIECES = "[PAD] [UNK] [START] [END] ▁zwanzig ▁einund zwanzig".split()
WORDS = (4, 5, 6)
NEXT = {
    #            ▁zwanzig ▁einund zwanzig [END]
    "[START]": (0.50, 0.40, 0.05, 0.05),
    "▁zwanzig": (0.15, 0.25, 0.20, 0.40),
    "▁einund": (0.04, 0.03, 0.90, 0.03),
    "zwanzig": (0.02, 0.03, 0.05, 0.90),
}
IMPOSSIBLE = -1e9  # The logarithm of 0, but finite.


def log_table(next_tokens):
    """Log-probabilities [V, V]: from the token before to the next one."""
    table = np.full((len(PIECES), len(PIECES)), IMPOSSIBLE)
    for piece, row in next_tokens.items():
        table[PIECES.index(piece), [*WORDS, END]] = np.log(row)
    return table


def text_of(ids):
    """The sentence that ids spell, without its END."""
    words = "".join(PIECES[i] for i in ids if i not in (PAD, END))
    return words.replace("▁", " ").strip() or "(nothing)"


TOY = log_table(NEXT)
assert all(math.isclose(sum(row), 1) for row in NEXT.values())

# %% [markdown]
# The probability of a sentence is the product of these numbers along it, so
# its logarithm is a sum:
#
# $$\log p(y \mid x) = \sum_{t=1}^{|y|} \log p(y_t \mid y_{<t}, x)$$
#
# with $x$ the source, $y_t$ the $t$-th token, $y_{<t}$ those before it, and
# $|y|$ the number of tokens; each sentence ends in END, which counts as one.
# Our toy looks at the last token only. That is a simplification that lets its
# table fit on the screen; no search below makes use of it.


# %%
def log_probability(table, ids):
    """log p of a sentence, END included."""
    steps = itertools.pairwise([START, *ids])
    return sum(table[before, after] for before, after in steps)


einundzwanzig, zwanzig = (5, 6, END), (4, END)
assert math.isclose(
    math.exp(log_probability(TOY, einundzwanzig)), 0.40 * 0.90 * 0.90
)

# %% [markdown]
# The searches of `ka.decoding` know nothing of the model. They take a function
# `step(token_ids, memory, state)` that reads one token of each hypothesis and
# returns logits for the next one, the new state, and the attention weights.
# `memory` is what does not change while a sentence is written (the encoded
# source), `state` what does (a GRU's vector, a Transformer's cache). Each
# hypothesis has a row in both. It goes on from the state of its parent, the
# hypothesis that it extends. For the toy, the memory is the table, and the
# state counts tokens, just to have one. Log-probabilities will do as logits:
# the softmax of $\log p$ is $p$.


# %%
def step(token_ids, memory, state):
    """A row of the table for each hypothesis."""
    logits = tf.gather(memory["table"], token_ids, batch_dims=1)  # [B, V]
    # [B, S], of a source of one token.
    attention_weights = tf.ones_like(logits[:, :1])
    return logits, {"written": state["written"] + 1}, attention_weights


def problem(tables, longest):
    """What every search takes, for tables [B, V, V].

    `longest` is the most tokens of an answer, END included, one number or one
    for each table.
    """
    count = len(tables)
    return {
        "step": step,
        "memory": {"table": tf.constant(tables, "float32")},
        "state": {"written": tf.zeros([count], "int32")},
        "source_mask": tf.ones([count, 1], "bool"),
        "max_lengths": tf.broadcast_to(longest, [count]),
    }


def hypotheses(result):
    """What a search returned: for each row its hypotheses, as ids."""
    ids, lengths = result.ids.numpy(), result.lengths.numpy()
    return [
        [tuple(one[:size].tolist()) for one, size in zip(*row, strict=True)]
        for row in zip(ids, lengths, strict=True)
    ]


# %% [markdown]
# ## Greedy search, and why it is wrong
#
# Greedy search takes the most probable token, reads it, takes the most
# probable token again, and stops at END. By hand it is five lines.

# %%
greedy = [START]
while greedy[-1] != END:
    greedy.append(int(np.argmax(TOY[greedy[-1]])))
greedy = tuple(greedy[1:])

LONGEST = 4
result = ka.decoding.greedy_search(**problem(TOY[None], LONGEST))
assert hypotheses(result) == [[greedy]] and greedy == zwanzig
print(f"greedy: {text_of(greedy)!r}, p = {np.exp(result.score[0, 0]):.3f}")

# %% [markdown]
# It wrote "zwanzig", which is 20. Is that what the model believes? With three
# words and at most four tokens we can ask about every sentence there is.


# %%
def all_sentences(words, longest):
    """Every sentence of up to `longest` tokens, END included."""
    for length in range(longest):
        for chosen in itertools.product(words, repeat=length):
            yield (*chosen, END)


def distribution(table, longest=LONGEST):
    """Probability of each sentence, the most probable first."""
    probabilities = {
        ids: math.exp(log_probability(table, ids))
        for ids in all_sentences(WORDS, longest)
    }
    return dict(sorted(probabilities.items(), key=lambda item: -item[1]))


truth = distribution(TOY)
for ids, probability in itertools.islice(truth.items(), 5):
    print(f"{probability:.3f}  {text_of(ids)}")

longer = 1 - sum(truth.values())  # All sentences of more than four tokens.
assert len(truth) == 1 + 3 + 9 + 27
assert next(iter(truth)) == einundzwanzig
assert math.isclose(truth[einundzwanzig], 0.324)
assert math.isclose(truth[zwanzig], 0.200)
# No longer sentence can be better: even all of them together are not.
assert longer < truth[einundzwanzig]
# Even of 400 words and END, fewer than the trained model below has:
assert sum(400**length for length in range(20)) > 10**49

# %% [markdown]
# The model is right and the search is wrong: "einundzwanzig" has probability
# 0.324, and greedy search returned a sentence of 0.2. The first step looked
# good, 0.5 against 0.4. Its price came later: after "▁zwanzig" no token has
# more than 0.4, while after "▁einund" the way is clear at 0.9 and 0.9.
#
# Listing all sentences is **exhaustive search**. It finds the best one, but in
# practice it is out of the question: from 400 pieces, fewer than we have below,
# one can make more than $10^{49}$ sentences of up to 20 tokens.
#
# ## Beam search
#
# Between one hypothesis and all of them lies a number that we may choose.
# **Beam search** carries $N$ unfinished sentences, the beam. At each position
#
# 1. it extends each of them by every token: $N V$ candidates, where $V$ is the
#    size of the vocabulary, each with its log-probability so far;
# 2. it keeps the $N$ best candidates, whoever their parents are;
# 3. those that end in END are finished. They leave the beam but keep their
#    log-probability and their place: the beam is narrower by one from then on.
#
# At the last position that an answer may have, END is the only candidate. When
# nothing is left to extend, the best finished sentence is the answer.
# (Programs differ in step 3; some give the place to another hypothesis. If the
# place stays taken, as here, a beam of 1 is exactly greedy search.)
#
# Here it is in numpy. `candidates` is the table of step 1; the place of a
# candidate in the flattened table tells both its parent and its token.


# %%
def beam_by_hand(table, num_beams, longest):
    """Beam search over a table [V, V] of log-probabilities.

    Returns the finished hypotheses, best first, each with its
    log-probability, and what each position kept, finished and dropped.
    """
    size = len(table)
    beam, totals = [()], np.zeros(1)
    finished, positions = [], []
    for position in range(longest):
        last = [ids[-1] if ids else START for ids in beam]
        candidates = totals[:, None] + table[last]  # [N, V]
        if position == longest - 1:  # There is room for END alone.
            candidates[:, np.arange(size) != END] = IMPOSSIBLE
        places = np.argsort(-candidates, axis=None)
        ranked = [
            ((*beam[place // size], int(place % size)), candidates.flat[place])
            for place in places
            if candidates.flat[place] > IMPOSSIBLE / 2
        ]
        room = num_beams - len(finished)
        ended = [one for one in ranked[:room] if one[0][-1] == END]
        alive = [one for one in ranked[:room] if one[0][-1] != END]
        finished += ended
        positions.append((alive, ended, ranked[room:]))
        if not alive:
            break
        beam = [ids for ids, _ in alive]
        totals = np.array([total for _, total in alive])
    return sorted(finished, key=lambda one: -one[1]), positions


for num_beams in (1, 2):
    (best, total), *_ = beam_by_hand(TOY, num_beams, LONGEST)[0]
    print(f"beam of {num_beams}: {text_of(best)!r}, p = {math.exp(total):.3f}")

assert beam_by_hand(TOY, 1, LONGEST)[0][0][0] == greedy
assert beam_by_hand(TOY, 2, LONGEST)[0][0][0] == einundzwanzig

# %% [markdown]
# A beam of 2 repairs what greedy search broke. The package's search agrees with
# ours, on 100 random tables of four words, for narrow and for wide beams.


# %%
def random_tables(count, num_words=4, seed=7):
    """Log-probabilities [count, V, V] of models that are all different."""
    generator = np.random.default_rng(seed)
    size = END + 1 + num_words
    tables = np.full((count, size, size), IMPOSSIBLE)
    rows = [START, *range(END + 1, size)]
    drawn = generator.dirichlet([0.5] * (num_words + 1), (count, len(rows)))
    tables[:, rows, END:] = np.log(drawn)
    return tables


tables = random_tables(100)
for num_beams in (1, 2, 3, 5):
    result = ka.decoding.beam_search(
        **problem(tables, 6), num_beams=num_beams, n_best=num_beams
    )
    for table, theirs in zip(tables, result.log_probability, strict=True):
        ours = [total for _, total in beam_by_hand(table, num_beams, 6)[0]]
        np.testing.assert_allclose(theirs[: len(ours)], ours, atol=1e-4)

# %% [markdown]
# At the other end stands the beam that drops nothing. With $V$ tokens (three
# words and END) and $T$ positions there are at most $V^T$ candidates, so a beam
# of $V^T = 256$ is exhaustive search: it lists the same 40 sentences with the
# same probabilities.

# %%
result = ka.decoding.beam_search(
    **problem(TOY[None], LONGEST), num_beams=4**LONGEST, n_best=len(truth)
)
listed = hypotheses(result)[0]
probabilities = np.exp(result.log_probability[0])
assert set(listed) == set(truth)
np.testing.assert_allclose(
    probabilities, [truth[ids] for ids in listed], rtol=1e-4
)
assert np.all(np.diff(probabilities) < 1e-6)  # Best first.

# %% [markdown]
# ### The search as a tree
#
# What `beam_by_hand` kept, finished and dropped makes a tree: each level one
# position, each node a token, beside it the log-probability of the sentence so
# far. Boxes on solid lines are hypotheses that were kept (the thick boxes have
# ended); grey words on dashed lines were dropped.


# %% tags=["hide-input"]
def draw_tree(positions):
    """The tree of a beam search, from what `beam_by_hand` returns."""
    fates = {}
    for alive, ended, dropped in positions:
        for fate, some in (
            ("kept", alive), ("finished", ended), ("dropped", dropped)
        ):  # fmt: skip
            fates.update({ids: (total, fate) for ids, total in some})
    height = {}

    def place(ids):  # Leaves one below the other, parents at their middle.
        children = [i for i in fates if i[:-1] == ids and i]
        if not children:
            height[ids] = -sum(i not in parents for i in height)
        else:
            places = [place(child) for child in children]
            height[ids] = (places[0] + places[-1]) / 2
        return height[ids]

    parents = {ids[:-1] for ids in fates}
    place(())
    boxes = {
        "kept": {"edgecolor": drawing.COLORS[0], "linewidth": 2},
        "finished": {"edgecolor": drawing.COLORS[1], "linewidth": 3.5},
        "dropped": {"edgecolor": "none"},
    }
    picture = drawing.Figure(figsize=(6, 4.6), layout="constrained")
    axes = picture.subplots()
    axes.set_axis_off()
    for ids, y in height.items():
        total, fate = fates.get(ids, (0.0, "kept"))
        dropped = fate == "dropped"
        if ids:
            axes.plot(
                [len(ids) - 0.5, len(ids) - 0.04],
                [height[ids[:-1]], y],
                color="#999999" if dropped else drawing.COLORS[0],
                linestyle="--" if dropped else "-",
                linewidth=1 if dropped else 2.2,
            )
        axes.text(
            len(ids),
            y,
            f"{PIECES[ids[-1]]} {total:.2f}" if ids else "[START] 0.00",
            color="#666666" if dropped else drawing.INK,
            fontsize=10,
            va="center",
            bbox={"boxstyle": "round", "facecolor": "white", **boxes[fate]},
        )
    axes.set_xlim(-0.05, len(positions) + 0.65)
    return picture


finished, positions = beam_by_hand(TOY, 2, LONGEST)
assert [round(total, 2) for _, total in finished] == [-1.13, -1.61]
assert [round(total, 2) for _, total in positions[1][0]] == [-1.02]
with drawing.style():
    figure = draw_tree(positions)
    drawing.save(figure, PICTURES / "07_tree.png")
figure

# %% [markdown]
# Read it from the left. After one position the beam holds "▁zwanzig" and
# "▁einund". After two, "▁zwanzig [END]" is finished, with $-1.61 = \log 0.2$:
# greedy search would stop here. The other place holds "▁einund zwanzig" at
# $-1.02$, which is still ahead when it ends, at $-1.13 = \log 0.324$.
#
# ### What a wider beam buys
#
# For how many of 3,000 random models, each with 341 sentences of up to five
# tokens, does a beam find the best sentence?

# %%
tables = random_tables(3000, seed=8)
sentences = list(all_sentences(range(END + 1, END + 5), 5))
exact = np.max(  # Over all sentences, for all models at once.
    [
        sum(tables[:, a, b] for a, b in itertools.pairwise([START, *ids]))
        for ids in sentences
    ],
    axis=0,
)
WIDTHS = (1, 2, 3, 4, 8)
totals = {}
for num_beams in WIDTHS:
    result = ka.decoding.beam_search(**problem(tables, 5), num_beams=num_beams)
    totals[num_beams] = np.array(result.log_probability[:, 0])
share = {n: np.mean(totals[n] > exact - 1e-4) for n in WIDTHS}
for num_beams in WIDTHS:
    print(f"beam of {num_beams}: the best one in {share[num_beams]:.1%}")
worse = sum(
    np.count_nonzero(totals[wide] < totals[narrow] - 1e-4)
    for narrow, wide in itertools.pairwise(WIDTHS)
)
print(f"a wider beam found a worse sentence {worse} times")

assert len(sentences) == 341
assert all(np.all(totals[n] < exact + 1e-4) for n in WIDTHS)  # None is better.
assert share[1] < 0.5 and 0.6 < share[2] < 0.8 and share[8] > 0.97
assert worse > 0

# %% [markdown]
# Greedy search fails for more than half of the models, and a beam of 8 for next
# to none. Most of what can be won is won by the first few hypotheses. Beams of
# 4 or 5 are usual. But note the last line: a wider beam is *not* sure to find
# something better. A candidate that only the wide beam sees can look good for a
# while and push out the one that the narrow beam kept. Beam search promises
# nothing between $N = 1$, where it is greedy, and $N = V^T$, where it is exact.
#
# ## Sums favour short sentences
#
# Each token multiplies the probability by a number below 1. So a long sentence
# starts with a handicap, whatever it says. Here is a model in a hurry: after
# "▁zwanzig" it wants to stop.

# %%
HASTY = log_table({**NEXT, "▁zwanzig": (0.10, 0.10, 0.10, 0.70)})
hasty = distribution(HASTY)
for ids, probability in itertools.islice(hasty.items(), 2):
    print(f"{probability:.3f}  {text_of(ids)}")

assert list(hasty)[:2] == [zwanzig, einundzwanzig]
assert math.isclose(hasty[zwanzig], 0.350)

# %% [markdown]
# Exact search would answer "zwanzig", 0.350 against 0.324. Wu et al. (2016,
# equation 14) divide by something that grows with the length. The score of a
# hypothesis $Y$ of $|Y|$ tokens for the source $X$ is
#
# $$s(Y, X) = \frac{\log P(Y \mid X)}{lp(Y)}, \qquad
# lp(Y) = \frac{(5 + |Y|)^\alpha}{(5 + 1)^\alpha}$$
#
# This is **length normalisation**. For $\alpha = 0$ the divisor $lp$ is 1 and
# nothing changes. For $\alpha = 1$ the log-probability is divided by the
# length, more or less (the 5 softens it for short sentences). Since
# log-probabilities are negative, a greater divisor brings them nearer to 0:
# longer sentences gain.

# %%
lengths = np.arange(1, 51)
for alpha in (0.0, 0.6, 1.0):
    lp = (5 + lengths) ** alpha / (5 + 1) ** alpha
    np.testing.assert_allclose(
        ka.decoding.length_penalty(lengths, alpha), lp, rtol=1e-5
    )

# %% [markdown]
# The right sentence overtakes the hasty one between $\alpha = 0.5$ and 0.6.

# %%
for alpha, winner in (
    (0.0, zwanzig),
    (0.5, zwanzig),
    (0.6, einundzwanzig),
    (1.0, einundzwanzig),
):
    result = ka.decoding.beam_search(
        **problem(HASTY[None], LONGEST), num_beams=4, alpha=alpha
    )
    assert hypotheses(result) == [[winner]]
    print(f"alpha {alpha}: {text_of(winner)!r}")

# %% [markdown]
# A usual choice is $\alpha = 0.6$ (Vaswani et al. 2017, section 6.1), which
# would do here; `ka.Translator` takes 1. It is a number to tune on held-out
# sentences, and too much of it makes a model ramble (exercise 3). The beam
# itself is still ordered by plain log-probability: live hypotheses are all of
# the same length. The score decides among those that are finished. (Wu et al.
# also add a penalty for source tokens that got little attention, `beta` in
# `ka.decoding`.)

# %% [markdown]
# ## When a bigger beam hurts
#
# If the model prefers what is short, then a search that finds what the model
# prefers does harm, and a poor search may be a blessing. Koehn and Knowles
# (2017) saw that beyond some width, wider beams gave worse translations; Yang
# et al. (2018) called it the **beam search curse**; Stahlberg and Byrne (2019)
# searched exactly and found that for more than half of their sentences the
# empty translation was the most probable of all. A toy shows how this comes
# about.
#
# The model counts from one to $n$. After each number comes the next one with
# probability 0.8; with 0.08, 0.06 and 0.04 it skips one, two or three; and with
# 0.02 it stops, for no reason. (Where there is nothing left to skip to, the
# rest goes to END.) It is not a bad model: greedy search counts without error.

# %%
NEXT_NUMBERS = (0.80, 0.08, 0.06, 0.04)


def counting_table(n, most=30):
    """Log-probabilities [V, V] of a model that counts; number i is END + i."""
    table = np.zeros((END + 1 + most, END + 1 + most))
    for number in range(n + 1):
        row = table[END + number if number else START]
        for skipped, probability in enumerate(NEXT_NUMBERS):
            if number + 1 + skipped <= n:
                row[END + number + 1 + skipped] = probability
        row[END] = 1 - row.sum()
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(table), IMPOSSIBLE)


def count_to(n):
    """The right answer, and its log-probability."""
    ids = (*range(END + 1, END + 1 + n), END)
    return ids, log_probability(counting_table(n), ids)


# The last END is certain, all else is 0.8.
assert math.isclose(count_to(30)[1], 30 * math.log(0.8))

# %% [markdown]
# The right answer has probability $0.8^n$, the empty one 0.02 for every $n$
# from 4 on. The lines cross at $n = \log 0.02 / \log 0.8$.

# %%
crossing = math.log(0.02) / math.log(0.8)
print(f"from {math.ceil(crossing)} on, the empty answer is more probable")
assert math.ceil(crossing) == 18

NUMBERS = range(4, 31, 2)
RIGHT = [count_to(n)[0] for n in NUMBERS]
all_tables = np.array([counting_table(n) for n in NUMBERS])
room = tf.constant(NUMBERS) + 3  # Tokens that an answer may have.
counted = {
    (num_beams, alpha): ka.decoding.beam_search(
        **problem(all_tables, room), num_beams=num_beams, alpha=alpha
    )
    for num_beams, alpha in itertools.product((1, 4, 5, 8), (0.0, 0.6))
}
for (num_beams, alpha), result in counted.items():
    for n, right, [answer] in zip(
        NUMBERS, RIGHT, hypotheses(result), strict=True
    ):
        # From 18 on, all but narrow or normalised beams say nothing.
        silent = n > crossing and num_beams > 4 and alpha == 0
        assert answer == ((END,) if silent else right)

# %% [markdown]
# And it happens at a width that we can name. END is the fifth of the candidates
# for the first token. So beams of up to 4 drop the empty answer at once. A beam
# of 5 keeps it among the finished ones, where it waits to win. The beam of 5
# makes no mistake: it returns what is more probable. The beam of 4 is right
# because its search is not good enough.


# %% tags=["hide-input"]
def draw_counting():
    """What two beams find, beside the two lines that cross."""
    picture = drawing.Figure(figsize=(6, 3.6), layout="constrained")
    axes = picture.subplots()
    for index, (num_beams, size) in enumerate(((4, 9), (8, 5))):
        axes.plot(
            NUMBERS,
            counted[num_beams, 0.0].log_probability[:, 0],
            drawing.MARKERS[index],
            color=drawing.COLORS[index],
            markersize=size,
            label=f"found by a beam of {num_beams}",
            zorder=3,
        )
    line = {"color": drawing.INK, "linewidth": 1.2}
    rights = [count_to(n)[1] for n in NUMBERS]
    axes.plot(NUMBERS, rights, label="right answer", **line)
    axes.axhline(math.log(0.02), linestyle="--", label="empty answer", **line)
    axes.set_xlabel("count to")
    axes.set_ylabel("log-probability")
    drawing.finish(axes)
    return picture


with drawing.style():
    figure = draw_counting()
    drawing.save(figure, PICTURES / "07_curse.png")
figure

# %% [markdown]
# The circles follow the right answer all the way down; the squares leave it for
# the empty answer where the lines cross. With $\alpha = 0.6$ all beams count
# correctly, as the cell above has checked: the right answer's log-probability
# is divided by $lp = ((5 + n + 1) / 6)^{0.6}$, the empty one's by 1. Length
# normalisation is a repair, not a cure. The cure would be a model that gives
# END next to nothing where it has no business.
#
# ## Sampling
#
# A search looks for the best sentence. **Sampling** asks another question: what
# does the model believe, as a whole? Draw the first token from its
# distribution, read it, draw the next one from the distribution that follows,
# and so on up to END. Each sentence then comes up with exactly its probability
# $p(y \mid x)$, since that is the product of the steps' probabilities. We draw
# 20,000 and compare with the list of all sentences.


# %%
def draw(table, count=20_000, **options):
    """Sentences drawn from one model [V, V]."""
    copies = np.repeat(table[None], count, axis=0)
    result = ka.decoding.sampling_search(
        **problem(copies, 40), seed=1, **options
    )
    return [ids for [ids] in hypotheses(result)]


def largest_difference(samples, probabilities):
    """Between a sentence's share of the samples and its probability."""
    counted = collections.Counter(samples)
    return max(
        abs(counted[ids] / len(samples) - p) for ids, p in probabilities.items()
    )


samples = draw(TOY)
for ids, p in itertools.islice(truth.items(), 4):
    share = samples.count(ids) / len(samples)
    print(f"p {p:.4f}, drawn {share:.4f}  {text_of(ids)}")
# Five standard deviations of a share of a half, the greatest that there is.
CHANCE = 5 * math.sqrt(0.5 * 0.5 / len(samples))
assert largest_difference(samples, truth) < CHANCE < 0.02

# %% [markdown]
# ### Temperature, top-k and top-p
#
# Three knobs bend the distribution before each draw. A **temperature** $\tau$
# draws from $p^{1/\tau}$, normalised: below 1 it sharpens, above 1 it flattens.
# **Top-k** (Fan et al. 2018) forgets all but the $k$ most probable tokens.
# **Top-p**, or nucleus sampling (Holtzman et al. 2019), keeps the fewest most
# probable tokens that together reach a given share: many where the model is in
# doubt, one where it is sure. For the toy the bent models are tables again, so
# that we know exactly what should come out.


# %%
def renormalised(table):
    table = table - table.max(axis=1, keepdims=True)
    return table - np.log(np.exp(table).sum(axis=1, keepdims=True))


def bent_table(table, temperature=1.0, top_k=None, top_p=1.0):
    """The table from which sampling with these options draws."""
    bent = renormalised(table / temperature)
    for row in bent:
        best_first = np.argsort(-row)
        # What the tokens before each one amount to.
        before = np.cumsum(np.exp(row[best_first])) - np.exp(row[best_first])
        kept = best_first[before < top_p][:top_k]
        row[np.setdiff1d(best_first, kept)] = IMPOSSIBLE
    return renormalised(bent)


print("largest difference from   the model   the bent table")
for options in ({"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.6}):
    bent = distribution(bent_table(TOY, **options))
    samples = draw(TOY, **options)
    far, near = (largest_difference(samples, some) for some in (truth, bent))
    print(f"{options!s:22}{far:15.3f}{near:17.3f}")
    assert near < CHANCE < 0.1 < far

# Of one token there is nothing to choose: top-k with k = 1 is greedy search.
assert set(draw(TOY, count=100, top_k=1)) == {greedy}

# %% [markdown]
# It is tempting to think that sampling at a low temperature comes ever nearer
# to the best sentence. It does not: the temperature acts on each *token*. As it
# falls, each draw becomes the most probable token, and the whole becomes greedy
# search, mistake included. The tables say it exactly:

# %%
leaders = {}
print("temperature   einundzwanzig   zwanzig")
for tau in (2.0, 1.0, 0.5, 0.4, 0.2, 0.05):
    cooled = distribution(bent_table(TOY, tau))
    leaders[tau] = next(iter(cooled))
    print(f"{tau:11}{cooled[einundzwanzig]:16.3f}{cooled[zwanzig]:10.3f}")
assert leaders[1.0] == leaders[0.5] == einundzwanzig
assert leaders[0.4] == leaders[0.2] == leaders[0.05] == zwanzig
assert cooled[zwanzig] > 0.95  # Cold: greedy search.

# %% [markdown]
# At temperature 1 the right answer leads; from 0.4 down the greedy one does,
# and at 0.05 little else is left. So sample at $\tau = 1$ to know what the
# model believes. Sample at a somewhat lower one for variety without nonsense.
# And use a search to find the best: samples know nothing of each other and are
# often the same, while a beam holds $N$ different hypotheses.

# %% [markdown]
# ## A trained model
#
# Enough of toys. We train RNNsearch, the model of chapter 3, on a part of
# `phrases`, and not for long: a model that is always right leaves a search
# nothing to do.

# %%
NUM_PAIRS, EPOCHS = (400, 1) if FAST else (8000, 5)

corpus = ka.data.corpora.load("phrases", "en", "de")
pairs = corpus.splits["train"].take(NUM_PAIRS)
lines = [
    pair[side].decode()
    for pair in pairs.as_numpy_iterator()
    for side in ("source", "target")
]
tokenizer = ka.data.Tokenizer(
    ka.data.train_vocabulary(lines, vocabulary_size=550, max_piece_length=9)
)
V = tokenizer.vocabulary_size
assert FAST or V > 400
blocks = pairs.apply(ka.data.tokenize(tokenizer)).cache()


def epoch_of_batches(epoch):
    """Other batches, in another order, in each epoch."""
    return (
        blocks.apply(ka.data.shuffle(seed=1, epoch=epoch))
        .apply(ka.data.batch_by_tokens(512, seed=1, epoch=epoch))
        .apply(ka.data.to_examples())
    )


num_batches = sum(1 for _ in epoch_of_batches(0))  # In any epoch.
known = tf.data.experimental.assert_cardinality(num_batches)
num_steps = EPOCHS * num_batches
model = ka.models.RNNSearch.from_size("mini", V)
model.compile(
    ka.training.optimizers.Adam(
        ka.training.schedules.Cosine(2e-3, min(300, num_steps // 4), num_steps),
        global_clipnorm=1.0,
    ),
    loss=ka.training.losses.TokenCrossEntropy(label_smoothing=0.1),
    jit_compile=False,  # Shapes change from batch to batch.
)
for epoch in range(EPOCHS):
    model.fit(epoch_of_batches(epoch).apply(known), shuffle=False, verbose=2)

# %% [markdown]
# The searches are those of the toys. `ka.Translator` joins them with the model
# and the tokenizer: it encodes a text as `memory`, and calls
# `ka.decoding.beam_search` with the model's `step` and `state`. For
# $\alpha = 0$ the score that it reports is $\log p$. We translate held-out
# sentences, which the model has never seen.

# %%
tf.get_logger().setLevel("ERROR")  # It warns of many translators.
held_out = [
    pair
    for split in ("validation", "test")
    for pair in corpus.splits[split]
    .take(20 if FAST else 1000)
    .as_numpy_iterator()
]
sources = [pair["source"].decode() for pair in held_out]
references = np.array([pair["target"].decode() for pair in held_out], object)


def translate(num_beams, alpha=0.0):
    """For each source the translation, its score and its tokens."""
    translator = ka.Translator(
        model, tokenizer, num_beams=num_beams, length_penalty=alpha
    )
    rows = translator.with_attention(sources, batch_size=125)
    return [
        np.array([row[name] for row in rows], dtype)
        for name, dtype in (
            ("translation", object),
            ("score", float),
            ("target_tokens", object),
        )
    ]


# %% [markdown]
# We also want the model's opinion of given answers: of the reference, which is
# the right translation, and of the empty answer. That takes no search. One call
# of the model on the pair, as in training, gives the log-probabilities of all
# tokens, and `score` adds them up.


# %%
def log_probabilities(answers):
    """log p of an answer to each source."""
    scored = ka.Translator(model, tokenizer).score(sources, answers)
    return np.array([total for total, _ in scored])


reference_totals = log_probabilities(references)
empty_totals = log_probabilities([""] * len(sources))

# %% [markdown]
# ## Who is to blame?
#
# A wrong translation has one of two causes (Stahlberg and Byrne 2019). Either
# the search missed a sentence that is more probable: a **search error**. Or it
# wrote what the model prefers: a **model error**, which no better search will
# cure. We cannot list all sentences any more, but we have a witness. If the
# model gives the reference a greater probability than what was found, the
# search has missed at least the reference. Otherwise even a perfect search
# would not have written it. So the count of search errors is a lower bound: a
# search may have missed something better than both. (In `phrases` each source
# has one right translation, so that "wrong" is a plain comparison.)

# %%
BEAMS = (1, 2, 4, 8)
found, right, missed, blame = {}, {}, {}, {}
print("beam   right   search error   model error   empty   mean log p")
for num_beams in BEAMS:
    found[num_beams] = translations, totals, _ = translate(num_beams)
    right[num_beams] = translations == references
    better = reference_totals > totals + 1e-3
    missed[num_beams] = ~right[num_beams] & better
    row = {
        "right": np.mean(right[num_beams]),
        "search error": np.mean(missed[num_beams]),
        "model error": np.mean(~right[num_beams] & ~better),
        "empty": np.mean(translations == ""),
        "mean": np.mean(totals),
    }
    blame[num_beams] = row
    print(
        f"{num_beams:4}{row['right']:8.1%}{row['search error']:15.1%}"
        f"{row['model error']:14.1%}{row['empty']:8.1%}{row['mean']:13.4f}"
    )
cured = np.sum(right[8][missed[1]])  # Of greedy's, by a beam of 8.
print(f"of {np.sum(missed[1])} search errors, {cured} became right")

if not FAST:
    # What the model prefers is found more often,
    assert blame[8]["mean"] > blame[1]["mean"]
    # fewer answers are the fault of the search,
    assert blame[8]["search error"] < blame[1]["search error"]
    assert 0 < cured < np.sum(missed[1])
    # and most of the wrong ones, even of greedy search, are the model's own.
    for row in blame.values():
        assert row["model error"] > 3 * row["search error"]

# %% [markdown]
# (A beam of 1 is greedy search.) The column on the right is what a search is
# for, and a beam of 8 does better there than greedy search. The search errors
# melt away. Some of them become right answers, but not all: what the beam finds
# instead is more probable, but it need not *be* the reference. And most wrong
# answers were the model's fault from the beginning. Here better training is
# worth more than any search.

# %% [markdown]
# ### A sentence that the beam repairs
#
# Let a program find it: of the sentences that greedy search gets wrong and a
# beam of 4 right, the one whose log-probability gained the most. For both
# answers, here is the probability of each token. They agree up to some place;
# there greedy search takes the more probable token, and later pays for it.

# %%
repaired = np.flatnonzero(right[4] & ~right[1])
print(f"{len(repaired)} sentences are right with a beam of 4 alone")
gain = found[4][1] - found[1][1]
chosen = max(repaired if len(repaired) else [0], key=lambda row: gain[row])
id_of = {
    piece.decode(): index
    for index, piece in enumerate(tokenizer.pieces([range(V)])[0].numpy())
}


def token_probabilities(source, target_tokens):
    """p of each token of an answer, END included."""
    source_ids = [[*tokenizer.tokenize([source])[0].numpy(), END]]
    labels = [*(id_of[token] for token in target_tokens[:-1]), END]
    target_ids = [[START, *labels[:-1]]]
    logits = model(
        {
            "source_ids": tf.constant(source_ids, "int32"),
            "target_ids": tf.constant(target_ids, "int32"),
        }
    )
    return tf.gather(tf.nn.softmax(logits[0]), labels, batch_dims=1).numpy()


print(f"source: {sources[chosen]}\nreference: {references[chosen]}")
answers = []
for name, num_beams in (("greedy", 1), ("beam of 4", 4)):
    _, totals, tokens = (part[chosen] for part in found[num_beams])
    probabilities = token_probabilities(sources[chosen], tokens)
    answers.append((tokens, probabilities))
    print(f"{name}: p = {math.exp(totals):.2g}")
    steps = zip(tokens, probabilities, strict=True)
    print("  " + "  ".join(f"{token} {p:.2f}" for token, p in steps))
    told = np.log(probabilities).sum()  # An untrained model may find no END.
    assert FAST or math.isclose(told, totals, abs_tol=1e-2)

if not FAST:
    (tokens, theirs), (other_tokens, ours) = answers
    fork = 0
    while tokens[fork] == other_tokens[fork]:
        fork += 1
    assert theirs[fork] > ours[fork]  # Greedy's token looked better there,
    assert np.prod(theirs[fork:]) < np.prod(ours[fork:])  # and was not.

# %% [markdown]
# That is "zwanzig" and "einundzwanzig" over again, at a place that nobody wrote
# into a table.
#
# ### Does a bigger beam hurt here?
#
# The toy that counted was cursed because it gave END 0.02 everywhere. Our model
# was trained with label smoothing, which asks for END at every place too,
# though for less of it: $\epsilon / V$, with $\epsilon = 0.1$ here
# ([chapter 6](06_training_well.ipynb)). Is that enough for the curse? We count
# the sources for which the empty answer is more probable than what the widest
# beam found, and compare with a search that normalises.

# %%
silent = np.mean(empty_totals > found[8][1] + 1e-3)
normalised = np.mean(translate(4, alpha=0.6)[0] == references)
print(f"silence preferred: {silent:.1%}; alpha = 0.6: {normalised:.1%} right")
if not FAST:
    assert silent < 0.02 and blame[8]["empty"] < 0.02
    assert abs(blame[8]["right"] - blame[2]["right"]) < 0.03
    assert abs(normalised - blame[4]["right"]) < 0.03

# %% [markdown]
# A bigger beam does not hurt, and it does not help either. From a beam of 2 to
# one of 8, and from $\alpha = 0$ to 0.6, the share of right translations
# changes by less than 3 percentage points. That is a finding about `phrases`,
# whose sentences are short and have one right translation each. Where many good
# translations of a long sentence share the probability, each of them gets
# little. END keeps its share, and the curse is real. So look at the length of
# your outputs when you widen a beam.
#
# ## What to take away
#
# - A model gives probabilities of tokens; which sentence to write is a separate
#   question.
# - Greedy search never goes back on a token and can miss the best sentence; a
#   beam of $N$ is greedy for $N = 1$, exact for $N = V^T$, and in between
#   promises nothing, but wins most of what there is to win.
# - The most probable sentence is not always the one you want: sums of
#   log-probabilities favour what is short, and length normalisation repairs
#   that.
# - Sampling draws each sentence with its own probability; a low temperature
#   turns it into greedy search, not into the best one.
# - Before you tune a search, ask the model for the log-probabilities of the
#   references, and count whose fault the errors are. (It is this simple where
#   only one translation is right.)
#
# ## Your turn
#
# Write one step of beam search. There are $N$ unfinished sentences, and each
# has its log-probability so far. Each is extended by every token. Which
# candidates are kept?

# %% tags=["alone"]
import your_turn


def beam_step(totals, log_p, num_beams):
    """totals [N], log_p [N, V] -> pairs (parent, token), the best first."""
    ...


your_turn.check(7, beam_step)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def beam_step(totals, log_p, num_beams):
#     extended = totals[:, None] + log_p  # [N, V]
#     best = np.argsort(-extended, axis=None)[:num_beams]
#     return [divmod(place, log_p.shape[1]) for place in best.tolist()]
#
#
# your_turn.check(7, beam_step)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: A beam of 4 extends its sentences by 400 pieces. How many candidates does
#   it have?
# - b: There are 40 pieces and END. How many sentences have up to three tokens,
#   END included?
# - c: A sentence of 7 tokens has the log-probability -6. What is its score with
#   $\alpha = 1$?

# %% tags=["alone"]
your_turn.quiz(7, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: Each of 4 sentences has 400 candidates.
# - b: END alone, one piece and END, two pieces and END.
# - c: The divisor is $(5 + 7) / (5 + 1) = 2$.
#
# ```python
# your_turn.quiz(7, a=4 * 400, b=1 + 40 + 40**2, c=-6 / 2)
# ```
#
# </details>
#
# ## Exercises
#
# 1. Write a table for which a beam of 2 is wrong and a beam of 3 is right.
#
# <details><summary>Solution</summary>
#
# Let the third best beginning be the only one that goes on well:
#
# ```python
# table = log_table(
#     {
#         "[START]": (0.40, 0.33, 0.25, 0.02),
#         "▁zwanzig": (0.25, 0.15, 0.20, 0.40),
#         "▁einund": (0.15, 0.25, 0.20, 0.40),
#         "zwanzig": (0.01, 0.01, 0.01, 0.97),
#     }
# )
# best = next(iter(distribution(table)))
# found = {n: beam_by_hand(table, n, LONGEST)[0][0][0] for n in (1, 2, 3)}
# assert best == (6, END) == found[3]
# assert found[1] == found[2] == (4, END)
# ```
#
# $0.25 \cdot 0.97 = 0.2425$ against $0.40 \cdot 0.40 = 0.16$.
#
# </details>
#
# 2. A model that counts gives the next number a probability of 0.9 and END 0.01
#    at each step. From which number on does it prefer to say nothing? Which
#    beams find that out, if its other numbers have 0.05 and 0.04?
#
# <details><summary>Solution</summary>
#
# From $n = 44$ on, as $\log 0.01 / \log 0.9 = 43.7$. END is the fourth of the
# candidates for the first token: beams of 4 and more.
#
# ```python
# NEXT_NUMBERS = (0.90, 0.05, 0.04)
# for n, last_width in ((43, 99), (44, 3)):
#     table = counting_table(n, most=50)
#     for num_beams in (1, 3, 4, 8):
#         answer = beam_by_hand(table, num_beams, n + 3)[0][0][0]
#         assert (answer == (END,)) == (num_beams > last_width)
# ```
#
# </details>
#
# 3. Too much length normalisation makes a model ramble. One that says "zwanzig"
#    and after each "zwanzig" stops or says it again, with probability 0.5 each,
#    should stop after the first. With $\alpha = 2$, from how many words on is a
#    long answer better than a single word?
#
# <details><summary>Solution</summary>
#
# $k$ words and END have $k \log 0.5$ and $|Y| = k + 1$, so the score is
# $36\, k \log 0.5 / (6 + k)^2$. It is above that of one word,
# $36 \log 0.5 / 49$, if $49 k < (6 + k)^2$, that is $(k - 1)(k - 36) > 0$: from
# 37 words on.
#
# ```python
# row = (0.5, 0.0, 0.0, 0.5)
# with np.errstate(divide="ignore"):
#     table = log_table({"[START]": (1.0, 0.0, 0.0, 0.0), "▁zwanzig": row})
# table = np.maximum(table, IMPOSSIBLE)
# for words, answer in ((35, 1), (37, 37), (60, 60)):
#     result = ka.decoding.beam_search(
#         **problem(table[None], words + 1), num_beams=64, alpha=2.0
#     )
#     assert result.lengths[0, 0] == answer + 1
# ```
#
# </details>
#
# Next, in [chapter 8](08_your_own_pair.ipynb): training and search, for a pair
# of languages of your own.
