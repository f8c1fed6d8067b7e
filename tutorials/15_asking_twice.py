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
# # 15. Asking twice
#
# [![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-attention/keras_attention/blob/main/tutorials/15_asking_twice.ipynb)
# (there, first `!git clone https://github.com/keras-attention/keras_attention`,
# `%cd keras_attention/tutorials` and `%pip install ..`)
#
# *Ben took the cup. Anna walked to the hall. Ben ran to the barn. Where is the
# cup?* You look for the cup, and find that Ben took it. Then you look for Ben,
# and find the barn. You cannot look for Ben at once: the question does not name
# him. The second look needs what the first one has found.
#
# Attention is one look. This chapter asks several times:
#
# 1. A chain of two links, and how far one look can get.
# 2. A memory network from scratch, which takes a second look.
# 3. Stories, and where each look goes.
# 4. Looks that choose one sentence, and what it is worth to be told which one.
# 5. A memory that is written to.
#
# Takes about 3 minutes on two cores, with 11 trainings. The text before each
# says what is trained, and a line is printed when its model is ready. Pictures
# are shown here and kept in the folder `pictures`. Vectors are columns in the
# equations of this chapter, as in $A x$, and rows in the code. In a map a row
# asks (a look) and a column is asked (a sentence).

# %%
from keras_attention import on_demand

on_demand.import_tensorflow()  # Without its lines about this machine.

import collections
import itertools
import os
import pathlib
import string

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_attention as ka
from keras_attention.data.embedded import stories
from keras_attention.plotting import drawing
from keras_attention.tokens import END, PAD

# With KERAS_ATTENTION_FAST=1 everything runs, but little is learned.
FAST = os.environ.get("KERAS_ATTENTION_FAST") == "1"
# Where pictures go.
PICTURES = pathlib.Path(os.environ.get("KERAS_ATTENTION_PICTURES", "pictures"))
RATE, BATCH, WIDTH = 5e-3, 128, 32
# Each new model is traced anew, which TensorFlow would warn of.
tf.get_logger().setLevel("ERROR")

# %% [markdown]
# ## A chain of two links
#
# Here is the barest chain. A *story* has eight sentences of two letters. The
# sentence "a c" says that c comes after a. Each of the eight letters stands
# first in one sentence, and second in one. So a story is a permutation $\pi$ of
# the letters, and "a c" says that $\pi(\mathrm a) = \mathrm c$. A letter may
# come after itself, as in "b b". The sentences stand in any order.
#
# The question is a letter $x$. Let $y = \pi(x)$ be the letter after it. The
# answer is the letter after $y$, that is $\pi(y)$. It is two links away from
# the question.
#
# `draw` makes such stories, as numbers from 0 to 7.

# %%
LETTERS = "abcdefgh"
SIZE = len(LETTERS)


def draw(count, seed):
    """`{"story" [B, 8, 2], "question" [B, 1]}`, and the answers [B]."""
    rng = np.random.default_rng(seed)
    after = rng.permuted(np.tile(np.arange(SIZE), (count, 1)), axis=1)
    first = rng.permuted(np.tile(np.arange(SIZE), (count, 1)), axis=1)
    second = np.take_along_axis(after, first, axis=1)
    rows, asked = np.arange(count), rng.integers(SIZE, size=count)
    inputs = {
        "story": np.stack([first, second], axis=2),
        "question": asked[:, None],
    }
    return inputs, after[rows, after[rows, asked]]


train_chains = draw(1_000 if FAST else 20_000, seed=1)
test_chains = draw(4_000, seed=2)
# The first story whose chain does not come back to where it began.
example = np.flatnonzero(test_chains[1] != test_chains[0]["question"][:, 0])[0]
story, (asked,) = (one[example] for one in test_chains[0].values())
pairs = [LETTERS[one] + LETTERS[two] for one, two in story]
print("story:", ", ".join(pairs))
print("what comes after what comes after", LETTERS[asked], end="? ")
print(LETTERS[test_chains[1][example]])

# %% [markdown]
# Suppose that one look reads one sentence. It should read the sentence that
# begins with $x$, because the question names nothing else. It finds $y$. Now
# somebody knows $x$ and $y$, and nothing else. How often can they guess the
# answer?
#
# If $y = x$, the answer is $x$, too. That happens once in eight times. If not,
# the answer cannot be $y$, which already comes after $x$. The seven other
# letters are equally likely. The best guess is right in
#
# $$\frac18 + \frac78 \cdot \frac17 = \frac28$$
#
# of all stories. The next cell counts instead of reasoning. It goes through all
# 40,320 permutations. Those in which the looks find the same letters go on one
# pile. For each pile, the best guess is its most frequent answer.


# %%
def ceiling(num_looks, num_links):
    """How often the best guess is right, by what the looks have found."""
    piles = collections.defaultdict(collections.Counter)
    for after in itertools.permutations(range(SIZE)):
        chain = [0]  # What is asked for. By symmetry it may be any letter.
        for _ in range(num_links):
            chain.append(after[chain[-1]])
        piles[tuple(chain[: num_looks + 1])][chain[-1]] += 1
    right = sum(max(pile.values()) for pile in piles.values())
    return right / sum(pile.total() for pile in piles.values())


print("looks  ", *(f"{looks:6}" for looks in range(4)))
for links in (1, 2, 3):
    row = [ceiling(looks, links) for looks in range(4)]
    print(links, "links", *(f"{value:6.3f}" for value in row))
assert ceiling(1, num_links=2) == 2 / 8
assert ceiling(2, num_links=2) == 1

# %% [markdown]
# A chain needs as many looks as it has links. With one look less, the last link
# is a guess. (For two links, one look is no better than none. Always to answer
# with the letter $x$ is right in 2/8 of all stories, too.)
#
# ## A memory network
#
# The *end-to-end memory network* (Sukhbaatar et al. 2015) is attention that is
# asked $K$ times. The picture shows $K = 2$. The text below it explains the
# letters.

# %% tags=["hide-input", "alone"]
import diagrams

diagrams.memory_hops(path=PICTURES / "15_memory_hops.png")

# %% [markdown]
# A story has $N$ sentences. Sentence $i$ has the words $x_{i1}, x_{i2}, \dots$,
# as one-hot vectors. The matrix $A$ has a column of $d$ numbers for each word,
# so $A x_{ij}$ is the embedding of a word. (In the code, $A$ is a table with a
# row for each word.) With $A$, a sentence becomes the vector $m_i$, by which it
# can be found. With a second matrix, $C$, it becomes $c_i$, which is what it
# tells. Chapter 4 called the two key and value. With a third matrix, $B$, the
# words $q_j$ of the question become the vector $u$.
#
# $$m_i = \sum_j l_j \odot A x_{ij} + T_A(i) \qquad
# c_i = \sum_j l_j \odot C x_{ij} + T_C(i) \qquad
# u = \sum_j l_j \odot B q_j$$
#
# The vectors $l_j$ and $T(i)$ are new, and explained below. One look, which the
# paper calls a *hop*, is a softmax over the sentences. It finds $o$, a weighted
# sum of what they tell. The next question $u'$ is the old question plus what
# was found:
#
# $$p_i = \mathrm{softmax}_i(u^\top m_i) \qquad o = \sum_i p_i c_i \qquad
# u' = u + o$$
#
# In the picture, $u$ is $u^1$, then $u'$ is $u^2$, and so on. After $K$ hops,
# $W u^{K+1}$ are the logits of the answers. $W$ has a row for each answer.
#
# Hops can share their matrices in two ways:
#
# - *Adjacent*: the $C$ of one hop is the $A$ of the next, and $B$ is the first
#   $A$. The same goes for $T_C$ and $T_A$. So the $c_i$ of one hop are the
#   $m_i$ of the next, and $K$ hops need $K + 1$ matrices. This chapter's
#   networks are adjacent.
# - *Layer-wise*: all hops have the same $A$ and $T_A$, and the same $C$ and
#   $T_C$. $B$ is a matrix of its own. In each hop, the old question goes
#   through a learned matrix $H$: $u' = H u + o$.
#
# (In the paper, the adjacent $W$ is the last $C$, transposed: each answer is a
# word. Here $W$ is a matrix of its own.)
#
# Two things in these lines are new.
#
# *Position encoding*, $l_j$: with a plain sum of embeddings, "a c" and "c a"
# would be the same vector. So each word is weighted by its place. Each
# component has its own weight, and $\odot$ multiplies component by component.
# For word $j$ of $J$ and component $k$ of $d$, both counted from 1:
#
# $$l_{kj} = \Big(1 - \frac jJ\Big) - \frac kd \Big(1 - \frac{2j}J\Big)$$
#
# Of two words, the first has the weight 1/2 everywhere, and the second has
# weights that rise from $1/d$ to 1.
#
# *Temporal encoding*, $T_A$ and $T_C$: two tables of learned vectors. $T_A(i)$
# is the row for the place of sentence $i$. Places are counted from the end, so
# the last sentence always has the first row. In the chains the order of
# sentences says nothing. In stories, it tells what happened last.
#
# Chapters 11 and 14 have hops, too. The hops of chapter 11 are asked side by
# side, and none knows what another one finds. The hops of chapter 14 are two
# layers of a stack, in which each word looks. Here only the question looks.
#
# That is all. The next cell says the same in code.


# %%
def position_weights(num_words, width):
    """l_kj of each word and component: [J, D]."""
    j = np.arange(1, num_words + 1)[:, None] / num_words
    k = np.arange(1, width + 1) / width
    return ((1 - j) - k * (1 - 2 * j)).astype("float32")


class MemoryNetwork(keras.Model):
    """Hops over sentences of equal length (Sukhbaatar et al. 2015)."""

    def __init__(self, num_words, num_answers, num_hops):
        super().__init__()
        small = keras.initializers.RandomNormal(stddev=0.1)

        def tables(size):
            """A of the first hop, then C of each, which is A of the next."""
            return [
                keras.layers.Embedding(size, WIDTH, small)
                for _ in range(num_hops + 1)
            ]

        self.tables, self.times = tables(num_words), tables(SIZE)
        self.answers = keras.layers.Dense(
            num_answers, use_bias=False, kernel_initializer=small
        )

    def sentences(self, table, words):
        """sum_j l_j * A x_j: [..., J] -> [..., D]."""
        x = table(words)
        return ops.sum(position_weights(*x.shape[-2:]) * x, axis=-2)

    def attend(self, inputs):
        """Logits [B, C], and the weights of each hop [B, K, N]."""
        story, question = inputs["story"], inputs["question"]
        ages = ops.arange(story.shape[1] - 1, -1, -1)  # The last one is 0.
        memories = [
            self.sentences(table, story) + time(ages)  # [B, N, D]
            for table, time in zip(self.tables, self.times, strict=True)
        ]
        u = self.sentences(self.tables[0], question)  # [B, D]
        of_hops = []
        for m, c in itertools.pairwise(memories):
            p = ops.softmax(ops.sum(u[:, None] * m, axis=-1))  # [B, N]
            o = ops.sum(p[..., None] * c, axis=1)  # [B, D]
            u = u + o
            of_hops.append(p)
        return self.answers(u), ops.stack(of_hops, axis=1)

    def call(self, inputs):
        return self.attend(inputs)[0]


# %% [markdown]
# Is it the paper's? The package has this model, too, and its tests compare it
# with the equations. The package's model reads a story as one row of ids with
# END behind each sentence, so that sentences may have any length. END is no
# word: it adds nothing, and $J$ does not count it. `memory_size` is the number
# of rows of $T_A$. Sentences that are older have the weight 0. With the same
# weights both models must say the same.

# %%
ours = MemoryNetwork(SIZE, SIZE, num_hops=3)
some = {name: ids[:5] for name, ids in test_chains[0].items()}
logits, weights = ours.attend(some)
theirs = ka.models.EndToEndMemoryNetwork(
    END + 1 + SIZE, SIZE, embedding_dim=WIDTH, num_hops=3, memory_size=SIZE
)
theirs.build()
for mine, other in zip(ours.tables, theirs.embeddings, strict=True):
    # Their first ids are padding, END and the like.
    other.set_weights([np.pad(mine.get_weights()[0], [[END + 1, 0], [0, 0]])])
for mine, other in zip(ours.times, theirs.times, strict=True):
    other.set_weights(mine.get_weights())
theirs.output_projection.set_weights(ours.answers.get_weights())
ended = [[0, 0], [0, 0], [0, 1]]
as_text = {
    "story_ids": np.pad(
        some["story"] + END + 1, ended, constant_values=END
    ).reshape(5, -1),
    "question_ids": np.pad(
        some["question"] + END + 1, ended[1:], constant_values=END
    ),
}
their_logits, their_weights = theirs.attend(as_text)
np.testing.assert_allclose(their_logits, logits, atol=1e-5)
# The package puts a sentence's weight at its END.
np.testing.assert_allclose(their_weights[..., 2::3], weights, atol=1e-5)

# %% [markdown]
# ### One hop, two, three
#
# Three networks learn from the same 20,000 stories. Adam trains them, with a
# rate of 0.005 and its usual settings otherwise.
#
# The next cell trains the three for ten epochs each. They are three of the 11
# trainings that share the 3 minutes of the chapter.


# %%
def fit(model, inputs, labels, epochs):
    """Trains by cross-entropy."""
    model.compile(
        keras.optimizers.Adam(RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    epochs = 1 if FAST else epochs
    model.fit(inputs, labels, BATCH, epochs, verbose=0)


def accuracy(model, inputs, labels):
    logits = model.predict(inputs, batch_size=500, verbose=0)
    return float(np.mean(logits.argmax(axis=1) == labels))


networks, right = {}, {}
for num_hops in (1, 2, 3):
    keras.utils.set_random_seed(1)
    networks[num_hops] = MemoryNetwork(SIZE, SIZE, num_hops)
    fit(networks[num_hops], *train_chains, epochs=10)
    right[num_hops] = accuracy(networks[num_hops], *test_chains)
    known = accuracy(networks[num_hops], *train_chains)
    print(f"hops: {num_hops}, {100 * right[num_hops]:5.1f} % right, "
          f"{100 * known:5.1f} % of what it was trained on")  # fmt: skip
if not FAST:
    assert right[1] < 0.3
    assert right[2] > 0.9 and right[3] > 0.9

# %% [markdown]
# One hop does not get beyond 2/8, not even on the stories that it was trained
# on. (It gets less than the 2/8 of always answering $x$. Training lowers the
# cross-entropy, and that need not make more answers right.) Two hops and three
# follow the chain.
#
# Where do they look? Here is the network of two hops on the story above. The
# frame in the first row marks the sentence of the first link, and the frame in
# the second row that of the second link. The cell below the picture takes means
# over all test stories whose answer is not the letter that was asked for.

# %%
inputs, answers = test_chains
_, weights = networks[2].attend(inputs)
weights = weights.numpy()  # [4000, 2, 8]
first, second = inputs["story"][..., 0], inputs["story"][..., 1]  # [4000, 8]
is_link_1 = first == inputs["question"]
is_link_2 = second == answers[:, None]
ka.plotting.attention_heat_map(
    pairs,
    ["hop 1", "hop 2"],
    weights[example],
    path=PICTURES / "15_chain.png",
    links=[(is_link_1[example].argmax(), 0), (is_link_2[example].argmax(), 1)],
    axis_names=("sentences", "hops"),
)

# %%
goes_on = answers != inputs["question"][:, 0]
for hop, is_link in ((0, is_link_1), (1, is_link_2)):
    on_link = np.sum(weights[:, hop] * is_link, axis=1)[goes_on].mean()
    print(f"hop {hop + 1} puts {on_link:.2f} on link {hop + 1}")
    assert FAST or on_link > 2 / SIZE  # Equal weights put 1 / 8 on each.

# %% [markdown]
# Each hop prefers its own link: it puts more than twice as much there as equal
# weights would. It need not put all its weight there, as long as what it finds
# is enough to tell the answer.
#
# ### What a soft look cannot do, whatever its size
#
# The ceiling of 2/8 is that of a look that reads one sentence. A soft look
# reads a little of each. Could it not put all of them together? Write down the
# logit of an answer $r$ after one hop. It is $w_r^\top (u + o)$, where $w_r$ is
# the row of $W$ for $r$. Put in $o = \sum_i p_i c_i$. The $p_i$ sum to 1, so
# $u$ may stand inside the sum, too. Then multiply by $Z = \sum_i e^{u^\top
# m_i}$, by which the softmax divides:
#
# $$Z\, \mathrm{logit}_r = \sum_i e^{u^\top m_i}\; w_r^\top (c_i + u)$$
#
# Each term of the sum depends on the question and on *one* sentence with its
# place. Call it the hint of this sentence. $Z$ is the same for all answers, so
# it changes nothing in their order. One hop is a sum of hints, one for each
# sentence, like the bag of [chapter 11](11_whose_is_his.ipynb).
#
# Now take four stories, and the question a. In two of them c comes after a, and
# d after b. In the two others it is the other way round. In two of them e comes
# after c, and f after d. In the two others it is the other way round. The rest
# is the same in all four. The table has the answers:
#
# | | ce, df | cf, de |
# |---|---|---|
# | **ac, bd** | e | f |
# | **ad, bc** | f | e |
#
# That is XOR. Take the hints for e, and subtract the hints for f. The sum must
# be positive in the two corners of e, and negative in the two corners of f. But
# the two stories of one diagonal have, together, the same sentences at the same
# places as the two stories of the other diagonal. So both diagonals have the
# same sum. It cannot be positive for one and negative for the other. A network
# of one hop has at most three of these four stories right, at any width, after
# any training.
#
# The next cell asks the network of one hop, which was trained above, and the
# network of three. It prints the logit of e minus the logit of f. For one hop,
# it multiplies this by $Z$, which differs from story to story.

# %%
parts = itertools.product(("ac bd", "ad bc"), ("ce df", "cf de"))
corners = np.array(
    [
        [[LETTERS.index(letter) for letter in pair] for pair in text.split()]
        for text in (f"{one} {two} ea fb gh hg" for one, two in parts)
    ]
)  # [4, 8, 2]
asked = {"story": corners, "question": np.zeros((4, 1), int)}
E, F = LETTERS.index("e"), LETTERS.index("f")
one_hop = networks[1]
u = one_hop.sentences(one_hop.tables[0], asked["question"])  # [4, D]
m = one_hop.sentences(one_hop.tables[0], corners)  # [4, 8, D]
m += one_hop.times[0](np.arange(SIZE)[::-1])
z = np.exp(np.sum(u[:, None] * m, axis=-1)).sum(axis=1)  # [4]
for_e = {}
for num_hops, factor in ((1, z), (3, 1)):
    logits = networks[num_hops](asked).numpy()
    for_e[num_hops] = factor * (logits[:, E] - logits[:, F])
    print(f"hops: {num_hops}, for e against f:", for_e[num_hops].round(2))
first, second, third, fourth = for_e[1]
rounding = 1e-4 * np.abs(for_e[1]).max()
assert abs((first + fourth) - (second + third)) < rounding
if not FAST:
    assert ((for_e[3] > 0) == [True, False, False, True]).all()

# %% [markdown]
# With one hop the first and the last number sum to what the two in the middle
# sum to, so they cannot be positive, negative, negative, positive. With three
# hops they are.
#
# (A sum of hints can still get above 2/8, by a bet. Let a be asked for. The bet
# is that c comes after a. The sentence that begins with c is a weak hint for
# its second letter. If the bet is lost, the sentence that begins with a is a
# strong hint for a. The rule is right if a comes after a, if the bet is won,
# and otherwise in one case of seven, by chance. That is $\frac18 + \frac18 +
# \frac68 \cdot \frac17 = \frac5{14}$ of all stories. Our training did not
# find such a rule.)
#
# ## Stories
#
# The package's corpus `stories` has chains in words. They are like those of
# bAbI (Weston et al. 2015), made-up stories with questions, on which the paper
# tests its network. A person who took a thing carries it along. A person who
# leaves a thing leaves it where they are.

# %%
rows = stories.generate(train=1_000 if FAST else 20_000)
answer, story, question = rows["test"][1]
print(f"{story}\n-> {question}? {answer}")

# %% [markdown]
# One sentence says where a person is: the last one that moves the person. Two
# sentences say where a thing is. One says who had it last. The other says where
# that person is, or was when the thing was left. So a thing needs two looks. Of
# many sentences about Ben only the *last* one counts. That is what temporal
# encoding is for.
#
# These sentences are the *facts* that support the answer. `stories.facts` gives
# their numbers, counted from the end of the story: the last sentence is 1. We
# keep them for later, and the first networks do not get them. The next cell
# turns texts into ids, with END behind each sentence. It has no new idea.


# %%
words = sorted({word for row in rows["train"] for word in
                " ".join(row[1:]).split()})  # fmt: skip
place = {word: number for number, word in enumerate(words, END + 1)}
V = END + 1 + len(words)


def ids(texts):
    """Ids [B, S] of texts whose sentences stand on lines."""
    rows = []
    for text in texts:
        row = []
        for line in text.split("\n"):
            row += [*(place[word] for word in line.split()), END]
        rows.append(row)
    return keras.utils.pad_sequences(rows, padding="post", value=PAD)


def examples(split):
    """Inputs, labels [B] and facts [B, 2]; a single fact stands twice."""
    answers, told, asked = zip(*split, strict=True)
    inputs = {"story_ids": ids(told), "question_ids": ids(asked)}
    facts = [(2 * stories.facts(*row[1:]))[:2] for row in split]
    labels = [stories.PLACES.index(answer) for answer in answers]
    return inputs, np.array(labels), np.array(facts, "float32")


train_inputs, train_labels, train_facts = examples(rows["train"])
test_inputs, test_labels, test_facts = examples(rows["test"])
last_words = [question.split()[-1] for *_, question in rows["test"]]
is_thing = np.isin(last_words, stories.THINGS)
print(f"{is_thing.mean():.0%} of the test questions ask for a thing")

# %% [markdown]
# Two networks of the package learn from these stories: one with one hop, and
# one with three. (In training, a place in $T_A$ is skipped now and then, by
# chance. This is the paper's *random noise*.) Two rules stand beside them. *The
# last place* always answers with the last place that the story names. *People
# alone* knows where each person is. If it is asked for a thing, it answers with
# the last place.
#
# The next cell trains the two for six epochs each: two of the 11 trainings that
# share the 3 minutes of the chapter.


# %%
def last_place(story, who):
    """The last place that one of these people went to."""
    moves = [line.split() for line in story.split("\n") if " to the " in line]
    return [move[-1] for move in moves if move[0] in who][-1]


def people_alone(story, question):
    asked = question.split()[-1]
    knows = asked in stories.PEOPLE
    return last_place(story, [asked] if knows else stories.PEOPLE)


def report(name, is_right):
    parts = {"right": slice(None), "people": ~is_thing, "things": is_thing}
    shares = [f"{one} {100 * is_right[part].mean():5.1f} %"
              for one, part in parts.items()]  # fmt: skip
    print(f"{name:14}", ", ".join(shares))


rules = {
    "the last place": lambda story, _: last_place(story, stories.PEOPLE),
    "people alone": people_alone,
}
for name, rule in rules.items():
    found = [rule(story, question) == answer
             for answer, story, question in rows["test"]]  # fmt: skip
    report(name, np.array(found))


def make_reader(num_hops):
    keras.utils.set_random_seed(1)
    return ka.models.EndToEndMemoryNetwork(
        V, len(stories.PLACES), WIDTH, num_hops, memory_size=8
    )


readers, is_right = {}, {}
for num_hops in (1, 3):
    readers[num_hops] = make_reader(num_hops)
    fit(readers[num_hops], train_inputs, train_labels, epochs=6)
    logits = readers[num_hops].predict(test_inputs, batch_size=500, verbose=0)
    is_right[num_hops] = logits.argmax(axis=1) == test_labels
    report(f"hops: {num_hops}", is_right[num_hops])
if not FAST:
    assert is_right[3].mean() > 0.97
    assert is_right[1][~is_thing].mean() > 0.97
    assert is_right[1][is_thing].mean() < 0.75

# %% [markdown]
# One hop is enough for people and not for things. It does about as well as the
# rule that follows people alone.
#
# ### One map a hop
#
# Here is a story of the test set, about a thing. A row is a hop, and sums to 1.
# A column is a sentence. Frames mark the same two sentences in each row: the
# facts that support the answer.

# %%
_, weights = readers[3].attend(test_inputs)
weights = weights.numpy()  # [2000, 3, S]
ends = [np.flatnonzero(row == END) for row in test_inputs["story_ids"]]
in_order = (test_facts[:, 0] > test_facts[:, 1] + 1) & is_thing
has_eight = [len(row) == 8 for row in ends]
# A map cuts words that are longer.
is_narrow = [max(map(len, row[1].split("\n"))) <= 24 for row in rows["test"]]
chosen = np.flatnonzero(in_order & has_eight & is_narrow)[0]
answer, story, question = rows["test"][chosen]
print(f"{question}? {answer}")
lines = story.split("\n")
ka.plotting.attention_heat_map(
    lines,
    ["hop 1", "hop 2", "hop 3"],
    weights[chosen][:, ends[chosen]],
    path=PICTURES / "15_story.png",
    links=[(len(lines) - int(fact), hop) for hop in range(3)
           for fact in test_facts[chosen]],
    axis_names=("story", "hops"),
)  # fmt: skip

# %% [markdown]
# One story is an anecdote. The next cell measures all test questions about
# things. How much weight has each hop on the sentence that says who had the
# thing (the first fact)? And how much on the one that says where that person
# was (the second)?

# %%
of_facts = np.array(
    [
        weights[row][:, [ends[row][-int(fact)] for fact in test_facts[row]]]
        for row in np.flatnonzero(is_thing)
    ]
).mean(axis=0)  # [3, 2]
print("       who had it, where that person was")
for hop, (who, where) in enumerate(of_facts, 1):
    print(f"hop {hop}: {who:10.2f}  {where:21.2f}")
if not FAST:
    assert of_facts[0, 0] > 0.7 and of_facts[0, 1] < 0.3
    assert of_facts[1:, 1].max() > 0.7

# %% [markdown]
# The first hop finds who had the thing, and cannot know more. A later hop finds
# the place. Nobody has told the network that there are two steps, nor which
# sentences they need: it has learned this from the answers alone. (Such a
# training can get stuck. Against that, the paper trains without the softmax
# first, and puts it back later. It calls this *linear start*. With
# `is_linear=True` the package's network has no softmax.)
#
# **To play with:** [Hops over a
# story](https://github.com/keras-attention/keras_attention/blob/main/docs/play/hops.html).
# It runs this network. Strike out a sentence, and see what it answers then. In
# a clone, open `docs/play/hops.html` with a browser.
#
# ## Looks that choose
#
# The first memory network (Weston et al. 2014) has no softmax. A look takes the
# *one* sentence with the highest score $s_O$. The next look asks with the
# question and that sentence together, which is written $[x, m_{o_1}]$:
#
# $$o_1 = \arg\max_i s_O(x, m_i) \qquad
# o_2 = \arg\max_i s_O([x, m_{o_1}], m_i) \qquad
# r = \arg\max_w s_R([x, m_{o_1}, m_{o_2}], w)$$
#
# Here $x$ is the question and $m_i$ is sentence $i$. $o_1$ and $o_2$ are the
# numbers of the sentences that were found. $w$ runs over the answers, and $r$
# is the best one. A score is a product of two sums of word vectors. Written out
# for the second look:
#
# $$s_O([x, m_{o_1}], m_i) =
# \big(\mathrm{asked}(x) + \mathrm{found}(m_{o_1})\big)^\top\,
# \mathrm{told}(m_i)$$
#
# Each of the three sums the vectors of its words, from a table of its own. So a
# word has three vectors: one in the question, one in a sentence that was found,
# and one in a sentence that may be found. Found and told also add a learned
# vector for the place of the sentence, counted from the end, again each from
# its own table. Without it, no look could prefer the last sentence about Ben.
# $s_R$ asks with the question and both found sentences, without places. It has
# two more tables for their words, and a vector for each answer $w$.
#
# (The paper writes $s(a, b) = \Phi_a(a)^\top U^\top U\, \Phi_b(b)$. $\Phi$
# counts words, the columns of $U$ are their vectors, and $s_O$ and $s_R$ each
# have a $U$. It tells the order of sentences in another way.)
#
# This is chapter 4's cold end, the look-up. But an $\arg\max$ has no gradient:
# if a look was wrong, nothing says which way would have been better. So the
# training has to be told the facts, the numbers $f_1$ and $f_2$ of the
# sentences that support the answer. Then each look is a *ranking* on its own:
# the right sentence must be ahead of every other one by a margin $\gamma$. The
# second look has the loss
#
# $$\sum_{i \ne f_2} \max\big(0,\; \gamma - s_O([x, m_{f_1}], m_{f_2})
# + s_O([x, m_{f_1}], m_i)\big)$$
#
# In training it asks with the *right* first sentence $f_1$, whatever the first
# look would have found. The first look has the same loss with $f_1$ in place of
# $f_2$, and asks with $x$ alone. The answer has it with $s_R$, and $i$ runs
# over the wrong answers. The loss of a story is the sum of the three. The
# package takes $\gamma = 0.1$. If there is only one fact, it stands for both.
#
# What does it buy to be told? Each training text has to be marked by somebody.
# In return, the network need not find out by itself what a chain is. The next
# cell gives few stories to a network of each kind, for the same number of
# epochs. (Being told is not the only difference. The network that is told has
# two hard looks, and the other one has three soft ones.)
#
# These are six of the 11 trainings that share the 3 minutes of the chapter.
# Each prints its row when it is ready.


# %%
def told(inputs, labels, facts, epochs):
    """A trained `MemoryNetwork`, which got the facts."""
    keras.utils.set_random_seed(1)
    model = ka.models.MemoryNetwork(
        V, len(stories.PLACES), WIDTH, memory_size=8
    )
    model.build()
    # The package's trainer takes the loss that the model brings.
    trainer = ka.training.trainer.Trainer(model, objective=model.objective)
    trainer.compile(keras.optimizers.Adam(RATE), jit_compile=False)
    trainer.fit(
        {**inputs, "facts": facts}, labels, BATCH, 1 if FAST else epochs,
        sample_weight=np.ones(len(labels)), verbose=0,
    )  # fmt: skip
    return model


def not_told(inputs, labels, facts, epochs):
    """A trained network of three hops, which did not."""
    model = make_reader(num_hops=3)
    fit(model, inputs, labels, epochs)
    return model


score = {}
for count, epochs in ((250, 240), (1_000, 15), (1_000, 60)):
    few = {name: ids[:count] for name, ids in train_inputs.items()}
    for training in (not_told, told):
        model = training(few, train_labels[:count], train_facts[:count], epochs)
        share = accuracy(model, test_inputs, test_labels)
        score[count, epochs, training.__name__] = share
        print(f"{count:5} stories, {epochs:3} epochs, "
              f"{training.__name__.replace('_', ' '):8} "
              f"{100 * share:5.1f} % right")  # fmt: skip
if not FAST:
    assert score[250, 240, "told"] > score[250, 240, "not_told"] + 0.05
    assert score[1_000, 15, "told"] > score[1_000, 15, "not_told"] + 0.1
    both = score[1_000, 60, "told"], score[1_000, 60, "not_told"]
    assert min(both) > 0.9 and abs(both[0] - both[1]) < 0.05

# %% [markdown]
# To be told buys examples and time. With 250 stories, or with 15 epochs, the
# network that is told is far ahead. With 1,000 stories and 60 epochs the two
# are about equal: by then the other one has found the chain by itself. And it
# needs nobody who marks sentences. Its way, the softmax, has become the usual
# one.
#
# ## A memory that is written to
#
# So far the memory was the text. The *Neural Turing Machine* (Graves et al.
# 2014) has a memory of its own, a matrix $M$ with a row $M_i$ for each cell. A
# network, the *controller*, reads from it and writes to it, at each step with
# weights $w$ over the cells:
#
# $$r = \sum_i w_i M_i \qquad
# M_i' = M_i \odot (1 - w_i\, e) + w_i\, a$$
#
# $r$ is what is read. Reading is attention. Writing is new, and turns $M$ into
# $M'$. Each cell is multiplied by $1 - w_i e$. So a cell that is looked at
# forgets its numbers where the *erase vector* $e$ is near 1. Then it gets $w_i$
# times the *add vector* $a$. Both vectors are as wide as a cell, and the
# numbers of $e$ lie between 0 and 1. As $w$ is soft, reading and writing have
# gradients.
#
# The weights $w$ are called the *address*. Four steps make it from what the
# controller says. $w^-$ is the address of the step before:
#
# $$w^c_i = \mathrm{softmax}_i\Big(\beta\, \frac{k \cdot M_i}
# {\lVert k \rVert\, \lVert M_i \rVert}\Big) \qquad
# w^g = g\, w^c + (1 - g)\, w^- \qquad
# \tilde w_i = \sum_j w^g_j\, s_{i - j} \qquad
# w_i = \frac{\tilde w_i^\gamma}{\sum_j \tilde w_j^\gamma}$$
#
# 1. *Content.* The key $k$ is compared with each cell, by the cosine of the
#    angle between them. $\beta > 0$ is one over chapter 4's temperature. There
#    we set it by hand; here the controller sets it, at each step.
# 2. *Gate.* With $g = 1$ the content decides. With $g = 0$ the content is
#    ignored, and the address stays where it was.
# 3. *Shift.* $s_{-1}$, $s_0$ and $s_1$ are the weights of a step back, of none,
#    and of a step on. They sum to 1. The cells form a ring: the last one is
#    followed by the first.
# 4. *Sharpen.* A soft shift blurs. After many of them the address would be
#    nearly everywhere. $\gamma = 1$ leaves it as it is, and a larger $\gamma$
#    makes it sharp again.
#
# The controller's output goes through a dense layer, and functions keep each
# number in its range: a softplus, $\ln(1 + e^z)$, for $\beta$ and for
# $\gamma - 1$, a sigmoid for $g$ and $e$, a softmax for $s$, and (in the
# package) a tanh for $a$. The machine writes first and then reads, with an
# address for each. The next step gets $r$ as an input. (In the package, both
# addresses begin at the first cell, and each number of $M$ as $10^{-6}$.)
#
# Content finds a cell by what is in it. The shift goes from a cell to its
# neighbour, whatever is in it: this is a tape.


# %%
def address(memory, before, key, beta, gate, shift, gamma):
    """The four steps of an address, each [N] (Graves et al. 2014, 5 to 9)."""
    lengths = np.linalg.norm(memory, axis=1) * np.linalg.norm(key) + 1e-8
    scores = np.exp(beta * (memory @ key / lengths))
    content = scores / scores.sum()
    gated = gate * content + (1 - gate) * before
    shifted = sum(
        weight * np.roll(gated, step)
        for step, weight in zip((-1, 0, 1), shift, strict=True)
    )
    sharp = shifted**gamma / np.sum(shifted**gamma)
    return content, gated, shifted, sharp


def write(memory, weights, erase, add):
    """The memory after a step [N, D] (equations 3 and 4)."""
    kept = memory * (1 - weights[:, None] * erase)
    return kept + weights[:, None] * add


# %% [markdown]
# No training is needed to see what this can do. We play the controller, with
# one address for writing and reading. Each letter is a random vector. First we
# write a text to the tape. Before each letter we step on by one cell: the gate
# is 0, and the shift has 0.9 of its weight on one cell on. All numbers of the
# erase vector are 1, so a cell forgets its old letter to the degree to which it
# gets the new one.

# %%
TEXT = "keras"
rng = np.random.default_rng(3)
vectors = {letter: rng.normal(size=16) for letter in string.ascii_lowercase}
STEP_ON = (0.05, 0.05, 0.9)
memory = np.full((8, 16), 1e-3)
weights = np.eye(8)[-1]  # One cell before the first.
for letter in TEXT:
    *_, weights = address(
        memory, weights, vectors[letter],
        beta=1, gate=0, shift=STEP_ON, gamma=20,
    )  # fmt: skip
    memory = write(memory, weights, erase=np.ones(16), add=vectors[letter])


def nearest(vector):
    """The letter that a vector resembles most."""
    names, rows = list(vectors), np.stack([*vectors.values()])
    return names[np.argmax(rows @ vector / np.linalg.norm(rows, axis=1))]


on_tape = "".join(map(nearest, memory[: len(TEXT)]))
print("on the tape:", on_tape)
assert on_tape == TEXT

# %% [markdown]
# Now we read, and use both ways to look: *what comes after the letter e?* The
# content finds the cell of this letter, and the shift goes on by one. The
# controller asks with the letter only. It need not know where the letter is,
# nor what follows it. The address of the step before was the last cell that was
# written. The gate is 0.8, so 0.2 of that address stays. The shift moves it,
# too, and sharpening removes it.

# %%
asked = "e"
steps = address(
    memory, weights, vectors[asked], beta=3, gate=0.8, shift=STEP_ON, gamma=4
)
names = ("content", "gate", "shift", "sharpen")
for name, step in zip(names, steps, strict=True):
    print(f"{name:8}", step.round(2))
found = nearest(steps[-1] @ memory)
print(f"after {asked} comes {found}")
# The second look starts where the first one stands, and only goes on.
*_, further = address(
    memory, steps[-1], vectors[asked], beta=3, gate=0, shift=STEP_ON, gamma=4
)
print(f"and after that comes {nearest(further @ memory)}")
assert found + nearest(further @ memory) == "ra"
assert steps[0].argmax() == 1 and steps[-1].argmax() == 2
assert steps[2].max() < steps[-1].max()

# %% tags=["hide-input"]
titles = (
    rf"content: $k$ = {asked}, $\beta = 3$", "gate: $g = 0.8$",
    "shift: mostly one on", r"sharpen: $\gamma = 4$",
)  # fmt: skip
with drawing.style():
    figure = drawing.Figure(figsize=(9.6, 2.4), layout="constrained")
    panels = figure.subplots(1, 4, sharey=True)
    for axes, step, title in zip(panels, steps, titles, strict=True):
        axes.bar(range(8), step, color=drawing.COLORS[0])
        axes.set_xticks(range(8), [*TEXT, "", "", ""])
        axes.set_title(title)
        axes.set_ylim(0, 1.03)
        drawing.finish(axes)
    panels[1].plot(
        range(8), weights, "_", color=drawing.COLORS[1], markersize=14,
        markeredgewidth=2,
    )  # fmt: skip
    panels[0].set_ylabel("weight")
    figure.supxlabel("cells, and what is written in them")
    drawing.save(figure, PICTURES / "15_address.png")
figure

# %% [markdown]
# *The four steps of one address, from left to right. The orange marks in the
# second panel are the address of the step before.* All four steps have
# gradients. So a controller can learn to play as we did. The paper's controller
# learns to copy, to sort, and to recall what came next.
#
# ## What to take away
#
# - One look follows one link. A chain needs as many looks as it has links, and
#   with one look less the last link is a guess.
# - A soft look is a sum of hints, one for each sentence. No width makes two
#   sentences meet in it.
# - Hops can be learned from answers alone, if there are enough of them. A
#   network that is told the supporting sentences needs fewer examples, and its
#   looks can be hard.
# - Attention over a matrix that is written to is a memory. Content finds a
#   cell, and a shift finds its neighbour.
#
# ## Your turn
#
# Write $K$ hops. Each asks the sentences of its own memory, and the next
# question is the old one plus what was found. Here the sentences are vectors
# already.

# %% tags=["alone"]
import your_turn


def hops(u, m, c):
    """u [d]; m and c [K, N, d], one memory for each hop -> the last u."""
    for m_k, c_k in zip(m, c, strict=True):  # [N, d] each
        u = ...
    return u


your_turn.check(15, hops)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def hops(u, m, c):
#     for m_k, c_k in zip(m, c, strict=True):  # [N, d] each
#         p = np.exp(m_k @ u)
#         p = p / p.sum()
#         u = u + p @ c_k
#     return u
#
#
# your_turn.check(15, hops)
# ```
#
# </details>
#
# **Questions.** Put numbers in the place of the dots.
#
# - a: A chain of two links has eight letters. How often is one look right, if
#   it does the best it can?
# - b: An adjacent network has three hops. How many matrices $A$ and $C$ does it
#   have, if shared ones count once?
# - c: A sentence has $J = 4$ words, and $d = 4$. What is the weight $l_{kj}$ of
#   the first word for $k = 2$?

# %% tags=["alone"]
your_turn.quiz(15, a=..., b=..., c=...)

# %% [markdown]
# <details><summary>Answers</summary>
#
# - a: In one of eight stories $y = x$. In the others it guesses among seven
#   letters.
# - b: The $C$ of one hop is the $A$ of the next.
# - c: $(1 - \frac14) - \frac24 (1 - \frac24)$.
#
# ```python
# your_turn.quiz(15, a=2 / 8, b=3 + 1, c=0.75 - 0.5 * 0.5)
# ```
#
# </details>
#
# ## Exercises
#
# 1. What is the ceiling of one look at a chain of two links, for $n$ letters?
#
# <details><summary>Solution</summary>
#
# With the probability $1/n$, $y = x$, and the answer is certain. Otherwise it
# is one of $n - 1$ letters. That is $1/n + (n-1)/n \cdot 1/(n-1) = 2/n$.
#
# ```python
# for n in (2, 3, 5, 7):
#     piles = collections.defaultdict(collections.Counter)
#     for after in itertools.permutations(range(n)):
#         piles[after[0]][after[after[0]]] += 1
#     best = sum(max(pile.values()) for pile in piles.values())
#     total = sum(pile.total() for pile in piles.values())
#     assert best / total == 2 / n
# ```
#
# </details>
#
# 2. What can the network no longer tell apart without position encoding?
#
# <details><summary>Solution</summary>
#
# It cannot tell "a c" from "c a". If each sentence is turned round, the chain
# runs backwards, but the network gives the same answer.
#
# ```python
# some = {name: ids[:100] for name, ids in test_chains[0].items()}
# turned = {**some, "story": some["story"][..., ::-1]}
# before = networks[3](some) - networks[3](turned)
# assert np.abs(before).max() > 1e-3
# kept = position_weights
# position_weights = lambda *shape: np.ones(shape, "float32")
# np.testing.assert_allclose(networks[3](some), networks[3](turned), atol=1e-3)
# position_weights = kept
# ```
#
# </details>
#
# 3. Let the address of the tape step on twenty times, with $\gamma = 1$ and
#    with $\gamma = 20$. Where is it then?
#
# <details><summary>Solution</summary>
#
# Without sharpening it is nearly everywhere. With it, it is in one cell. The
# tape is a ring of eight cells, so twenty steps from cell 0 end in cell 4.
#
# ```python
# for gamma, least, most in ((1, 0, 0.3), (20, 0.99, 1.001)):
#     here = np.eye(8)[0]
#     for _ in range(20):
#         *_, here = address(memory, here, vectors["e"], 1, 0, STEP_ON, gamma)
#     print(gamma, here.round(2))
#     assert least < here.max() < most
# assert here.argmax() == 20 % 8
# ```
#
# </details>
#
# ## References
#
# - Sukhbaatar et al. 2015, [End-To-End Memory
#   Networks](https://arxiv.org/abs/1503.08895)
# - Weston et al. 2015, [Memory Networks](https://arxiv.org/abs/1410.3916)
# - Graves et al. 2014, [Neural Turing
#   Machines](https://arxiv.org/abs/1410.5401)
# - Weston et al. 2015, [Towards AI-Complete Question Answering: A Set of
#   Prerequisite Toy Tasks](https://arxiv.org/abs/1502.05698)
