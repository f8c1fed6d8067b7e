"""Lines in a row: joined into texts, and scored after each other."""

import pytest
import tensorflow as tf

from keras_attention import data
from keras_attention.data.readers import streams
from keras_attention.data.vocabularies import line_tokenizer
from keras_attention.tokens import END

LINES = ["a b c", "d", "e f", "g h i j k l", "m", "n o"]
LENGTHS = [len(line.split()) + 1 for line in LINES]


def test_lines_are_joined_while_there_is_room():
    texts = streams.join(LINES, LENGTHS, limit=7)
    assert texts == ["a b c\nd", "e f", "g h i j k l", "m\nn o"]
    assert "\n".join(texts).split("\n") == LINES


def test_a_line_over_the_limit_stands_alone():
    assert streams.join(LINES[2:5], LENGTHS[2:5], limit=4) == LINES[2:5]


@pytest.mark.parametrize("limit", [1, 4, 7, 11, 100])
def test_windows_score_every_line_once_after_those_before(limit):
    windows = list(streams.windows(LENGTHS, limit))
    scored = [i for _, start, end in windows for i in range(start, end)]
    assert scored == list(range(len(LINES)))
    for first, start, end in windows:
        assert first <= start < end
        alone = first == start and end == start + 1
        assert sum(LENGTHS[first:end]) <= limit or alone
        assert sum(LENGTHS[first:start]) <= limit // 2


def test_windows_by_hand():
    """Of a limit of 10, at most 5 for what stands before."""
    assert list(streams.windows(LENGTHS, 10)) == [
        (0, 0, 3),  # 4 + 2 + 3 tokens
        (2, 3, 4),  # 7, after 3
        (4, 4, 6),  # 2 + 3; the line before is too long to stand before
    ]


@pytest.fixture(scope="module")
def tokenizer():
    model = data.train_vocabulary(LINES * 20, 40, model_type="word")
    return line_tokenizer.LineTokenizer(model)


def test_a_line_break_is_an_end(tokenizer):
    plain = data.Tokenizer(tokenizer.model)
    texts = ["a b\nc", "d", "", "e\n\nf"]
    ids = tokenizer.tokenize(texts).to_list()
    parts = [
        [plain.tokenize(line).numpy().tolist() for line in text.split("\n")]
        for text in texts
    ]
    expected = [sum(([*line, END] for line in text), [])[:-1] for text in parts]
    assert ids == expected
    assert ids[0].count(END) == 1 and ids[3].count(END) == 2
    assert tokenizer.tokenize("a b\nc").numpy().tolist() == expected[0]


def test_it_works_in_a_graph(tokenizer):
    function = tf.function(
        tokenizer.tokenize, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    texts = tf.constant(["a\nb", "c"])
    assert function(texts).to_list() == tokenizer.tokenize(texts).to_list()
    assert function(tf.constant([], tf.string)).to_list() == []


def test_segmentations_are_drawn_line_by_line():
    model = data.train_vocabulary(LINES * 20, 277)
    tokenizer = line_tokenizer.LineTokenizer(model)
    rows = tokenizer.sample(["a b\nc", "d"], seed=1)
    assert [list(row).count(END) for row in rows] == [1, 0]
    assert tokenizer.detokenize([rows[0].tolist()])[0].numpy() == b"a b c"
