"""From pairs to batches: nothing lost, nothing cut, the same order again."""

import functools
import random

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import data, models
from keras_attention.data import batches as batches_module
from keras_attention.data import columns
from keras_attention.tokens import END, PAD, START
from keras_attention.training import losses


class Characters:
    """A tokenizer that can be read: "a" is 4, "b" is 5, ..."""

    def tokenize(self, texts):
        codes = tf.strings.unicode_decode(texts, "UTF-8")
        return codes - ord("a") + 4

    def sample(self, texts, seed, alpha):
        generator = random.Random(seed)
        return [
            np.array(
                [
                    ord(c) - ord("a") + 4 + 26 * generator.randrange(2)
                    for c in t
                ],
                "int32",
            )
            for t in texts
        ]


def ids_of(string):
    return [ord(c) - ord("a") + 4 for c in string]


def corpus(num_pairs=157, seed=0):
    """Different pairs of 1 to 12 letters."""
    generator = random.Random(seed)
    pairs = set()
    while len(pairs) < num_pairs:
        pairs.add(
            tuple(
                "".join(
                    generator.choices("abcdefgh", k=generator.randint(1, 12))
                )
                for _ in range(2)
            )
        )
    return sorted(pairs)


def dataset_of(pairs):
    sources, targets = zip(*pairs, strict=True)
    return tf.data.Dataset.from_tensor_slices(
        {"source": list(sources), "target": list(targets)}
    )


def blocks_of(pairs, max_length=100, block_size=10):
    """Blocks of the rows that fit."""
    return (
        dataset_of(pairs)
        .apply(data.tokenize(Characters(), block_size=block_size))
        .apply(data.filter_by_length(max_length))
    )


def pipeline(
    pairs,
    seed=1,
    epoch=0,
    max_length=100,
    max_tokens=40,
    multiple_of=1,
    block_size=10,
    pool_size=1000,
):
    # The order is a function of the global seed, too.
    tf.random.set_seed(1)
    return (
        blocks_of(pairs, max_length, block_size)
        .apply(data.shuffle(seed, epoch, pool_size, block_size))
        .apply(data.batch_by_tokens(max_tokens, multiple_of, seed, epoch))
        .apply(data.to_examples())
    )


@functools.cache
def batches_of(**options):
    """The batches of `corpus()`, which several tests look at."""
    return list(pipeline(corpus(), **options))


def rows_of(batches):
    """Pairs of texts, as training sees them."""
    pairs = []
    for inputs, labels, _ in batches:
        for source, target in zip(
            inputs["source_ids"].numpy(), labels.numpy(), strict=True
        ):
            if target.any():
                pairs.append(
                    tuple(
                        "".join(chr(i - 4 + ord("a")) for i in ids if i > END)
                        for ids in (source, target)
                    )
                )
    return pairs


def arrays_of(batches):
    return [
        [
            tensor.numpy()
            for tensor in (
                inputs["source_ids"],
                inputs["target_ids"],
                labels,
                weights,
            )
        ]
        for inputs, labels, weights in batches
    ]


def assert_equal_batches(first, second):
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for array, other_array in zip(one, other, strict=True):
            np.testing.assert_array_equal(array, other_array)


def test_one_pair_by_hand():
    [(inputs, labels, weights)] = pipeline([("ab", "cda")])
    assert inputs["source_ids"].numpy().tolist() == [[4, 5, END]]
    assert inputs["target_ids"].numpy().tolist() == [[START, 6, 7, 4]]
    assert labels.numpy().tolist() == [[6, 7, 4, END]]
    np.testing.assert_allclose(weights, [[0.25] * 4])
    assert inputs["source_ids"].dtype == labels.dtype == tf.int32


def test_the_end_of_a_line_is_an_input_and_that_of_the_text_is_none():
    ids = [[START, 5, END, 6, END], [START, 7, END, PAD, PAD]]
    batch = {"source_ids": tf.constant(ids), "target_ids": tf.constant(ids)}
    batches = tf.data.Dataset.from_tensors(batch).apply(data.to_examples())
    [(inputs, labels, _)] = batches.as_numpy_iterator()
    assert labels.tolist() == [[5, END, 6, END], [7, END, PAD, PAD]]
    assert inputs["target_ids"].tolist() == [
        [START, 5, END, 6],
        [START, 7, PAD, PAD],
    ]


def test_labels_are_inputs_shifted_by_one():
    for inputs, labels, _ in batches_of():
        source_ids = inputs["source_ids"].numpy()
        for source, before, after in zip(
            source_ids,
            inputs["target_ids"].numpy(),
            labels.numpy(),
            strict=True,
        ):
            length = int((after != PAD).sum())
            assert before[0] == START
            assert after[length - 1] == END
            assert before[1:length].tolist() == after[: length - 1].tolist()
            assert not before[length:].any()
            assert not after[length:].any()
            real = int((source != PAD).sum())
            assert source[real - 1] == END
            assert not source[real:].any()


@pytest.mark.fast_for(30)
@pytest.mark.parametrize("pool_size", [1000, 30, 1])
def test_every_pair_once_an_epoch(pool_size):
    pairs = corpus()
    for epoch in range(2):
        batches = batches_of(epoch=epoch, pool_size=pool_size)
        assert sorted(rows_of(batches)) == pairs


def test_long_pairs_are_dropped_never_cut():
    pairs = corpus()
    # The source ends in END; the target has START as well.
    kept = [(s, t) for s, t in pairs if len(s) + 1 <= 9 and len(t) + 2 <= 9]
    assert 0 < len(kept) < len(pairs)
    assert sorted(rows_of(batches_of(max_length=9))) == kept


@pytest.mark.fast_for(14)
@pytest.mark.parametrize("max_tokens", [14, 40, 100])
def test_the_token_budget_holds(max_tokens):
    sizes = []
    for inputs, labels, _ in batches_of(max_tokens=max_tokens):
        rows, length = labels.shape
        # The budget counts START and END.
        assert rows * (length + 1) <= max_tokens
        assert inputs["source_ids"].shape[1] * rows <= 2 * max_tokens
        sizes.append(rows)
    # And it is used.
    assert max(sizes) >= max_tokens // 14


def test_a_row_above_the_budget_is_a_batch_of_its_own():
    pairs = [("a" * 30, "b"), ("a", "b" * 30), ("a", "b")]
    batches = list(pipeline(pairs, max_tokens=10))
    assert sorted(rows_of(batches)) == sorted(pairs)
    assert [len(labels) for _, labels, _ in batches] == [1, 1, 1]


def test_weights_sum_to_one_over_the_real_labels():
    for _, labels, weights in batches_of(multiple_of=3):
        real = labels.numpy() != PAD
        np.testing.assert_allclose(weights.numpy().sum(), 1, rtol=1e-5)
        assert not weights.numpy()[~real].any()
        np.testing.assert_allclose(weights.numpy()[real], 1 / real.sum())


@pytest.mark.fast_for(3)
@pytest.mark.parametrize("multiple_of", [2, 3, 4])
def test_added_rows_are_padding(multiple_of):
    pairs = corpus()
    added = 0
    batches = list(pipeline(pairs, multiple_of=multiple_of, max_tokens=30))
    for inputs, labels, weights in batches:
        assert labels.shape[0] % multiple_of == 0
        empty = ~labels.numpy().any(axis=1)
        added += int(empty.sum())
        assert not inputs["target_ids"].numpy()[empty].any()
        assert not weights.numpy()[empty].any()
        # A recurrent kernel must see a real token.
        source = inputs["source_ids"].numpy()[empty]
        assert (source[:, 0] == END).all() and not source[:, 1:].any()
    assert added > 0
    assert sorted(rows_of(batches)) == pairs


def test_seed_and_epoch_give_the_batches():
    first = arrays_of(batches_of())
    # Another pipeline of the same seed, and a dataset that is read again.
    batches = pipeline(corpus())
    for _ in range(2):
        assert_equal_batches(first, arrays_of(batches))
    for options in ({"epoch": 1}, {"seed": 2}):
        other = arrays_of(batches_of(**options))
        labels = [batch[2].tolist() for batch in other]
        assert labels != [batch[2].tolist() for batch in first]


def test_skip_goes_on_where_training_stopped():
    batches = arrays_of(batches_of(pool_size=30))
    again = pipeline(corpus(), pool_size=30)
    for step in (3, len(batches) - 1):
        rest = arrays_of(again.skip(step))
        assert_equal_batches(rest, batches[step:])


def test_a_shuffle_moves_rows_and_batches():
    orders = [rows_of(batches_of(epoch=epoch)) for epoch in range(2)]
    assert orders[0] != orders[1]
    lengths = [len(labels[0]) for _, labels, _ in batches_of()]
    assert lengths != sorted(lengths)


def test_without_a_seed_batches_come_shortest_first():
    batches = (
        dataset_of(corpus())
        .apply(data.tokenize(Characters(), block_size=1000))
        .apply(data.batch_by_tokens(40))
    )
    lengths = [batch["target_ids"].shape[1] for batch in batches]
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 1


@pytest.mark.slow
def test_a_pool_smaller_than_the_corpus_still_mixes():
    pairs = corpus()
    orders = [
        rows_of(pipeline(pairs, epoch=epoch, pool_size=30, max_tokens=1))
        for epoch in range(2)
    ]
    assert sorted(orders[0]) == sorted(orders[1]) == pairs
    assert orders[0] != orders[1]


def test_a_block_may_be_filtered_to_nothing():
    pairs = [("a" * 50, "b")] * 10 + [("ab", "cd")] + [("a", "b" * 50)] * 10
    for pool_size in (1000, 10):
        batches = pipeline(pairs, max_length=20, pool_size=pool_size)
        assert rows_of(batches) == [("ab", "cd")]


def test_a_corpus_filtered_to_nothing_gives_no_batches():
    assert rows_of(pipeline([("a" * 50, "b")] * 25, max_length=20)) == []


# White space, no-break and ideographic blanks, zero-width characters, controls.
BLANKS = ["", " ", "\t ", "\u00a0", "\u3000", "\u200b\u200d", "\ufeff", "\x00"]


def test_pairs_blank_on_a_side_are_dropped_and_counted():
    pairs = [("a", "b"), ("c" * 50, "d"), ("", "e" * 50), ("f", "g")]
    pairs += [("a", blank) for blank in BLANKS]
    pairs += [(blank, "b") for blank in BLANKS]
    pairs += [("", ""), ("h", "\u00e9")]

    tokenized = dataset_of(pairs).apply(
        data.tokenize(Characters(), block_size=10)
    )
    kept = [("a", "b"), ("f", "g"), ("h", "\u00e9")]
    assert sorted(rows_of(pipeline(pairs, max_length=20))) == kept
    num_blank = data.count_blank(tokenized)
    assert num_blank == 2 * len(BLANKS) + 2
    report = data.report(
        tokenized.apply(data.filter_by_length(20)),
        len(pairs),
        40,
        num_blank=num_blank,
    )
    assert (report.kept, report.too_long) == (3, 1)
    assert report.dropped == len(pairs) - 3


def test_blank_texts_have_no_tokens_when_drawn(subwords):
    pairs = [(blank, "groß") for blank in BLANKS]
    rows = drawn(subwords[0], pairs, seed=1, epoch=0)
    assert [source_ids for source_ids, _ in rows] == [[END]] * len(BLANKS)


# How many batches there are.


@pytest.fixture
def model():
    """A model of a small vocabulary, to be fitted."""
    sizes = {"embedding_dim": 4, "units": 4, "num_layers": 1}
    model = models.LSTMEncoderDecoder.from_size("mini", 500, **sizes)
    model.compile("sgd", loss=losses.TokenCrossEntropy())
    return model


@pytest.mark.slow
def test_fit_is_told_of_the_end(model):
    """No warning that the input ran out: warnings are errors here."""
    batches = (
        blocks_of(corpus(60))
        .apply(data.shuffle(1, block_size=10))
        .apply(data.batch_by_tokens(40, seed=1))
        .apply(data.to_examples())
        .prefetch(2)
    )
    count = len(list(batches))
    assert batches.cardinality() == count > 1
    model.fit(batches, epochs=2, validation_data=batches, verbose=0)
    assert model.optimizer.iterations == 2 * count


@pytest.mark.fast_for(30)
@pytest.mark.parametrize("pool_size", [1000, 30])
def test_batches_are_counted_where_pairs_are_not(pool_size):
    """As of text lines, whose number TensorFlow does not know."""
    pairs = corpus(80)
    uncounted = dataset_of(pairs).filter(lambda pair: True)
    blocks = (
        uncounted.apply(data.tokenize(Characters(), block_size=10))
        .apply(data.filter_by_length(100))
        .apply(data.join(pool_size, block_size=10))
    )
    assert blocks.cardinality() == tf.data.UNKNOWN_CARDINALITY
    batches = blocks.apply(data.batch_by_tokens(40))
    assert len(list(batches)) == batches.cardinality()
    assert sorted(rows_of(batches.apply(data.to_examples()))) == pairs


def test_a_number_of_batches_that_is_known_is_not_counted(monkeypatch):
    monkeypatch.delattr(batches_module, "report")
    blocks = dataset_of(corpus(20)).apply(data.tokenize(Characters()))
    known = blocks.apply(data.batch_by_tokens(40, num_batches=3))
    assert known.cardinality() == 3
    unknown = blocks.apply(
        data.batch_by_tokens(40, num_batches=tf.data.UNKNOWN_CARDINALITY)
    )
    assert unknown.cardinality() == tf.data.UNKNOWN_CARDINALITY
    endless = blocks.repeat().apply(data.batch_by_tokens(40))
    assert len(list(endless.take(50))) == 50


def test_two_tokenizers():
    class Shifted(Characters):
        def tokenize(self, texts):
            return super().tokenize(texts) + 100

    [block] = dataset_of([("ab", "cd")]).apply(
        data.tokenize(Characters(), Shifted())
    )
    assert block["source_ids"].to_list() == [[4, 5, END]]
    assert block["target_ids"].to_list() == [[START, 106, 107, END]]


# Segmentations that are drawn.


@pytest.fixture(scope="module")
def subwords():
    generator = random.Random(0)
    words = ["groß", "straße", "zwanzig", "hundert", "katzen", "häuser"]
    lines = [" ".join(generator.choices(words, k=4)) for _ in range(300)]
    return data.Tokenizer(data.train_vocabulary(lines, 330)), lines


def drawn(tokenizer, pairs, seed, epoch):
    blocks = dataset_of(pairs).apply(
        columns.encode_by_sampling(
            columns.PAIR,
            dict.fromkeys(columns.PAIR, tokenizer),
            seed=seed,
            epoch=epoch,
            block_size=10,
        )
    )
    assert blocks.element_spec["source_ids"].dtype == tf.int32
    rows = []
    for block in blocks:
        rows += zip(
            block["source_ids"].to_list(),
            block["target_ids"].to_list(),
            strict=True,
        )
    return rows


def test_seed_and_epoch_draw_the_segmentations(subwords):
    tokenizer, lines = subwords
    pairs = [*zip(lines[:25], lines[25:50], strict=True)]
    pairs[3] = ("", pairs[3][1])
    pairs[7] = (pairs[7][0], "")
    first = drawn(tokenizer, pairs, seed=1, epoch=0)
    assert drawn(tokenizer, pairs, seed=1, epoch=0) == first
    assert drawn(tokenizer, pairs, seed=1, epoch=1) != first
    assert drawn(tokenizer, pairs, seed=2, epoch=0) != first
    for (source, target), (source_ids, target_ids) in zip(
        pairs, first, strict=True
    ):
        assert source_ids[-1] == target_ids[-1] == END
        assert target_ids[0] == START
        ids = tf.ragged.constant([source_ids, target_ids], tf.int32)
        again = [t.decode() for t in tokenizer.detokenize(ids).numpy()]
        assert again == [source, target]
    assert first[3][0] == [END]
    assert first[7][1] == [START, END]


def test_blocks_and_sides_draw_apart(subwords):
    # One line over and over: were the draws alike, blocks would repeat.
    tokenizer, lines = subwords
    rows = drawn(tokenizer, [(lines[0], lines[0])] * 40, seed=1, epoch=0)
    assert rows[:10] != rows[10:20]
    assert [s[:-1] for s, _ in rows] != [t[1:-1] for _, t in rows]


@pytest.mark.parametrize("pairs", [[("", "groß")], [("", "")], [("groß", "")]])
def test_a_block_of_empty_lines_is_drawn(subwords, pairs):
    [(source_ids, target_ids)] = drawn(subwords[0], pairs, seed=1, epoch=0)
    assert (source_ids == [END]) == (pairs[0][0] == "")
    assert (target_ids == [START, END]) == (pairs[0][1] == "")


def test_drawn_blocks_go_through_the_pipeline():
    pairs = corpus(53)
    batches = (
        dataset_of(pairs)
        .apply(
            columns.encode_by_sampling(
                columns.PAIR,
                dict.fromkeys(columns.PAIR, Characters()),
                seed=1,
                epoch=0,
                block_size=10,
            )
        )
        .apply(data.filter_by_length(100))
        .apply(data.shuffle(1, 0, block_size=10))
        .apply(data.batch_by_tokens(40, seed=1))
        .apply(data.to_examples())
    )
    seen = [
        (int((source > END).sum()), int((target > END).sum()))
        for inputs, labels, _ in batches
        for source, target in zip(
            inputs["source_ids"].numpy(), labels.numpy(), strict=True
        )
    ]
    assert sorted(seen) == sorted((len(s), len(t)) for s, t in pairs)


# The plan of a pool's batches.

lengths = st.lists(
    st.tuples(st.integers(1, 40), st.integers(2, 40)), min_size=0, max_size=60
)


@hypothesis.settings(deadline=None, max_examples=200)
@hypothesis.given(lengths, st.integers(1, 120), st.integers(1, 5))
def test_a_plan_holds_every_row_once_within_the_budget(
    rows, max_tokens, multiple_of
):
    source, target = np.array(rows, "int64").reshape(-1, 2).T
    order, ends = data.plan_batches(source, target, max_tokens, multiple_of)
    assert sorted(order.tolist()) == list(range(len(rows)))
    sorted_rows = [(target[i], source[i], i) for i in order]
    assert sorted_rows == sorted(sorted_rows)
    starts = [0, *ends[:-1].tolist()]
    assert all(start < end for start, end in zip(starts, ends, strict=False))
    assert (ends[-1] if len(ends) else 0) == len(rows)
    for start, end in zip(starts, ends, strict=False):
        batch = order[start:end]
        size = end - start

        def fits(batch):
            return (
                len(batch) * target[batch].max() <= max_tokens
                and len(batch) * ((source[batch].max() + 1) // 2) <= max_tokens
            )

        assert size == 1 or fits(batch)
        if end == len(rows):
            continue
        # As many rows as fit, down to a multiple.
        if size >= multiple_of:
            assert size % multiple_of == 0
            assert not fits(order[start : start + size + multiple_of])
        else:
            assert not fits(order[start : end + 1])


def test_a_plan_by_hand():
    # Costs max(ceil(source / 2), target), by target: 2, 3 | 5, 4 | 9.
    order, ends = data.plan_batches(
        np.array([2, 8, 1, 9, 3]), np.array([9, 4, 2, 3, 3]), max_tokens=10
    )
    # By target then source: (2, 1), (3, 3), (3, 9), (4, 8), (9, 2), whose
    # costs 2, 3, 5, 4, 9 allow 2 x 3 | 2 x 5 | 1 x 9.
    assert order.tolist() == [2, 4, 3, 1, 0]
    assert ends.tolist() == [2, 4, 5]


# The report.


@pytest.mark.fast_for(9)
@pytest.mark.parametrize(
    "multiple_of", [pytest.param(1, marks=pytest.mark.slow), 3]
)
@pytest.mark.parametrize("max_length", [100, 9])
def test_the_report_counts_what_training_sees(multiple_of, max_length):
    pairs = corpus()
    pools = blocks_of(pairs, max_length).apply(data.shuffle(1, block_size=10))
    report = data.report(pools, len(pairs), 40, multiple_of)
    batches = arrays_of(
        batches_of(max_length=max_length, multiple_of=multiple_of)
    )
    real = sum(int((labels != PAD).sum()) for _, _, labels, _ in batches)
    kept = sum(int(labels.any(1).sum()) for _, _, labels, _ in batches)
    # Rows that were added for replicas are no padding of the corpus.
    places = sum(
        labels.any(1).sum() * labels.shape[1] for _, _, labels, _ in batches
    )
    assert report == data.Report(
        kept=kept,
        dropped=len(pairs) - kept,
        batches=len(batches),
        tokens=real,
        padding_share=pytest.approx(1 - real / places),
        checksum=report.checksum,
    )
    assert 0 < report.padding_share < 1


def test_the_checksum_is_that_of_the_pairs():
    def checksum(pairs):
        blocks = dataset_of(pairs).apply(data.tokenize(Characters()))
        return data.report(blocks, len(pairs), 40).checksum

    pairs = corpus()
    assert checksum(pairs) == checksum(corpus())
    others = [pairs[::-1], [*pairs[:-1], (pairs[-1][0], "z")]]
    # The same letters, cut elsewhere.
    assert checksum([("ab", "c"), ("d", "e")]) != checksum(
        [("a", "c"), ("bd", "e")]
    )
    assert checksum(pairs) not in map(checksum, others)


def test_the_report_of_nothing():
    report = data.report(blocks_of([("a" * 30, "b")], 5), 1, 40)
    assert (report.kept, report.dropped) == (0, 1)
    assert (report.batches, report.tokens) == (0, 0)
    assert "0.0 % padding" in str(report)


@pytest.mark.fast_for(5)
@pytest.mark.parametrize("pool_size, batches", [(100, 3), (15, 3), (5, 5)])
def test_the_report_counts_pool_by_pool(pool_size, batches):
    """3 tokens a row, 10 rows a batch; pools of 15 and 10, or of 5 rows."""
    pairs = [("a", "b")] * 25
    blocks = blocks_of(pairs, block_size=5)
    pools = blocks.apply(data.join(pool_size, block_size=5))
    assert data.report(pools, 25, 30).batches == batches
    assert len(list(pools.apply(data.batch_by_tokens(30)))) == batches


def test_a_block_of_which_all_was_dropped():
    pairs = [("a", "b")] * 10 + [("a" * 30, "b")]
    blocks = blocks_of(pairs, max_length=5)
    assert data.report(blocks, 11, 30).batches == 1
    assert len(list(blocks.apply(data.batch_by_tokens(30)))) == 1


def test_the_report_can_be_read():
    report = data.Report(12_345, 1_008, 789, 1_000_000, 0.0567, 1, blank=1_002)
    assert str(report) == (
        "12,345 rows kept, 6 too long, 1,002 blank; 1,000,000 tokens in 789 "
        "batches, 5.7 % padding"
    )


@pytest.mark.slow
def test_the_cache_may_stand_before_the_shuffle():
    pairs = corpus()
    blocks = blocks_of(pairs).cache()
    for epoch in range(2):
        tf.random.set_seed(1)
        batches = blocks.apply(data.shuffle(1, epoch, 1000, 10)).apply(
            data.batch_by_tokens(40, seed=1, epoch=epoch)
        )
        cached = arrays_of(batches.apply(data.to_examples()))
        assert_equal_batches(cached, arrays_of(pipeline(pairs, epoch=epoch)))
