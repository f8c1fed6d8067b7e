"""A story and a question in, an answer out."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.serving import kinds, labeller
from keras_attention.tokens import END

ANSWERS = ["one", "two", "three"]
ROWS = [
    ("one two\nthree four", "one"),
    ("three", "two"),
    ("", "nine"),
    ("one\n" * 4 + "two", "one two"),
]


class TwoHops(keras.Model):
    """Looks at the story's tokens twice, by what the question is."""

    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = keras.layers.Embedding(vocabulary_size, 8)
        self.output_projection = keras.layers.Dense(len(ANSWERS))

    def attend(self, inputs, training=None):
        story, question = inputs["story_ids"], inputs["question_ids"]
        mask = ops.cast(question != 0, "float32")[..., None]
        memory = self.embedding(story)
        state = ops.sum(self.embedding(question) * mask, axis=1)
        hops = []
        for _ in range(2):
            scores = ops.einsum("bd,bsd->bs", state, memory)
            # Keras warns of a softmax over one token.
            scores = ops.exp(scores - ops.max(scores, axis=-1, keepdims=True))
            scores *= ops.cast(story != 0, "float32")
            weights = scores / ops.sum(scores, axis=-1, keepdims=True)
            hops.append(weights)
            state += ops.einsum("bs,bsd->bd", weights, memory)
        return self.output_projection(state), ops.stack(hops, axis=1)

    def call(self, inputs, training=None):
        return self.attend(inputs, training)[0]


@pytest.fixture(scope="module")
def live(tokenizers):
    from keras_attention.data.vocabularies import line_tokenizer

    keras.utils.set_random_seed(4)
    lines = line_tokenizer.LineTokenizer(tokenizers[0].model)
    model = TwoHops(lines.vocabulary_size)
    ids = np.ones((1, 2), "int32")
    model({"story_ids": ids, "question_ids": ids})
    for weight in model.weights:
        weight.assign(10 * weight)
    return labeller.Labeller(
        model, lines, ANSWERS, 12, kinds.QUESTION_ANSWERING
    )


@pytest.fixture(scope="module")
def loaded(live, tmp_path_factory):
    return ka.load(live.export(tmp_path_factory.mktemp("stories") / "qa"))


def expected(live, row):
    story, question = (
        [*live.graph.tokenizer.tokenize([text]).numpy()[0], END] for text in row
    )
    inputs = {"story_ids": [story], "question_ids": [question]}
    logits, weights = live.model.attend(
        {name: np.array(ids) for name, ids in inputs.items()}
    )
    return ANSWERS[np.argmax(logits[0])], weights.numpy()[0], len(story)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_an_answer_and_a_row_of_weights_a_hop(live, loaded, is_loaded):
    model = loaded if is_loaded else live
    shown = model.with_attention(ROWS)
    for row, answer, one in zip(ROWS, model(ROWS), shown, strict=True):
        right, weights, length = expected(live, row)
        assert answer == one["answer"] == right
        assert one["labels"] == ANSWERS and len(one["source_tokens"]) == length
        np.testing.assert_allclose(one["attention"], weights, atol=1e-5)
        np.testing.assert_allclose(one["attention"].sum(-1), 1, atol=1e-5)
    # A sentence ends in END.
    assert shown[0]["source_tokens"].count("[END]") == 2
    assert model.labels == tuple(ANSWERS)
    by_name = [
        dict(zip(("story", "question"), row, strict=True)) for row in ROWS
    ]
    assert model(by_name) == model(ROWS)


def test_the_end_of_a_long_story_is_read(live, loaded):
    long = "nine nine\n" * 20 + ROWS[0][0]
    assert live.too_long([("one", "two"), (long, "one")]) == {2: (66, 12)}
    (cut,) = loaded.with_attention([(long, "one")], truncate=True)
    assert cut["truncated"] and len(cut["source_tokens"]) == 12
    whole = live.with_attention([ROWS[0]])[0]["source_tokens"]
    assert cut["source_tokens"][-len(whole) :] == whole


def test_what_it_says_of_itself(loaded):
    path = loaded.path
    assert repr(loaded) == (
        f"<Labeller: question_answering, {path}, labels "
        "['one', 'two', 'three'], at most 12 tokens>"
    )
    card = (path.parent / "README.md").read_text()
    assert "| `serving_default` | `story`, `question` | `answer`, " in card
    assert 'story=tf.constant(["..."]), question=' in card
