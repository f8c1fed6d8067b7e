"""Explanations, against models whose explanation is known."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention.evaluation import attribution
from keras_attention.models import ensemble
from keras_attention.serving.translator import Translator
from keras_attention.tokens import END, PAD, START, UNK

SOURCE_IDS, LABELS = [5, 11, 7, END], [19, 5, 9, 4, END]


class Toy:
    """log p(y_t) of the id 7 is a function of the embeddings, [B, S, D]."""

    compute_dtype = "float32"
    control_ids = {"pad_id": PAD, "start_id": START, "end_id": END}
    maps = {}

    def __init__(self, log_probability):
        table = np.random.default_rng(3).uniform(0.1, 1, (13, 2))
        self.table = np.float32(table)
        self.source_embedding = functools.partial(tf.gather, self.table)
        self.log_probability = log_probability

    def __call__(self, inputs, training):
        x = self.source_embedding(inputs["source_ids"])
        chosen = self.log_probability(x)  # [B, T]
        other = tf.math.log(1 - tf.exp(chosen))
        logits = tf.fill([*chosen.shape, 13], -1e9)
        columns = tf.one_hot([7, 2], 13)
        return tf.where(
            columns[0] > 0,
            chosen[..., None],
            tf.where(columns[1] > 0, other[..., None], logits),
        )


WEIGHTS = np.float32(np.random.default_rng(5).uniform(0.1, 2, (3, 4, 2)))


def linear(x):
    """-1 - sum of w x, for each of three target tokens: [B, T]."""
    return -1 - tf.einsum("bsd,tsd->bt", x, WEIGHTS)


def test_what_a_linear_model_owes_is_known():
    """The weight times the way, whichever place of it is looked at."""
    toy = Toy(linear)
    source_ids = [4, 9, 12, 3]
    expected, lost, unknown = (np.zeros((3, 4)) for _ in range(3))
    for t in range(3):
        for s, token in enumerate(source_ids):
            value = -WEIGHTS[t, s] @ toy.table[token]
            expected[t, s] = value + WEIGHTS[t, s] @ toy.table[10]
            lost[t, s] = value + WEIGHTS[t, s] @ toy.table[PAD]
            unknown[t, s] = value + WEIGHTS[t, s] @ toy.table[UNK]
    pair = toy, source_ids, [7, 7, 7]
    for steps in (1, 3):
        found = attribution.integrated_gradients(*pair, steps, reference=10)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    found = attribution.erasure(*pair, replacement=PAD)
    np.testing.assert_allclose(found, lost, rtol=1e-4)
    # Toys have no attention in an encoder that masks.
    found = attribution.erasure(*pair)
    np.testing.assert_allclose(found, unknown, rtol=1e-4)
    found = attribution.integrated_gradients(*pair)
    np.testing.assert_allclose(found, unknown, rtol=1e-4)


def test_two_tokens_of_a_product_share_it():
    """Of f = -(u + 2)(v + 3), on a straight way: the mean of both orders."""

    def product(x):
        return -(x[:, :1, 0] + 2) * (x[:, 1:, 1] + 3)

    toy = Toy(product)
    (u, _), (_, v) = toy.table[[4, 9]]
    (start_u, start_v) = toy.table[UNK]
    expected = [
        -(u - start_u) * ((v + start_v) / 2 + 3),
        -(v - start_v) * ((u + start_u) / 2 + 2),
    ]
    found = attribution.integrated_gradients(toy, [4, 9], [7])
    np.testing.assert_allclose(found, [expected], rtol=1e-4)
    # Only where one thing is erased at a time does the order matter.
    both = attribution.drops(toy, [4, 9], [7], [[True, True]], UNK)
    np.testing.assert_allclose(both, [[sum(expected)]], rtol=1e-4)


@pytest.mark.parametrize("rows", [1, 40, 512])
def test_no_row_of_a_batch_minds_the_others(rows, monkeypatch):
    pair = Toy(linear), [4, 9, 12, 3], [7, 2, 7]
    expected = attribution.integrated_gradients(*pair)
    monkeypatch.setattr(attribution, "_ROWS", rows)
    found = attribution.integrated_gradients(*pair)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@functools.cache
def model_of(name):
    keras.utils.set_random_seed(3)
    model = tiny.create(name, 23)
    model.build()
    return model


def log_probabilities(model, source_ids):
    """log p of each label, by one call of the model."""
    inputs = {
        "source_ids": np.int32([source_ids]),
        "target_ids": np.int32([[START, *LABELS[:-1]]]),
    }
    log_probs = tf.nn.log_softmax(model(inputs))[0].numpy()
    return np.array([log_probs[t, y] for t, y in enumerate(LABELS)])


@pytest.mark.fast_for("transformer", "rnnsearch")
@pytest.mark.parametrize(
    "name",
    ["transformer", "roformer", "marian", "t5", "rnnsearch", "conv_seq2seq"]
    + ["luong", "gnmt", "rnn_encoder_decoder", "lstm_encoder_decoder"]
    + ["rnn_transducer", "bytenet"]
    + ["diagonal_neural_gpu", "extended_neural_gpu", "neural_turing_machine"],
)
def test_all_tokens_together_have_the_whole(name):
    """Completeness: the sum is F(x) - F(x'), with an error that falls."""
    model = model_of(name)
    whole = log_probabilities(model, SOURCE_IDS)
    empty = log_probabilities(model, [UNK] * len(SOURCE_IDS))
    errors = []
    for steps in (2, 128):
        found = attribution.integrated_gradients(
            model, SOURCE_IDS, LABELS, steps
        )
        assert found.shape == (5, 4)
        errors.append(np.abs(found.sum(axis=1) - (whole - empty)).max())
    scale = np.abs(whole - empty).max()
    assert scale > 1e-3
    # Some models turn sharply on the way.
    assert errors[1] < 0.15 * scale
    assert errors[1] <= errors[0]


TRANSLATORS = tiny.names("translation", "transduction")


@pytest.mark.fast_for("transformer", "lstm_encoder_decoder")
@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_token_that_says_nothing_has_no_gradient(name):
    """Each column is that of its own token."""
    found = attribution.integrated_gradients(
        model_of(name), [UNK, 11, 7, 5, END], [19, END], 4
    )
    np.testing.assert_array_equal(found[:, 0], 0)
    # Near the first target token, a ByteNet does not see all.
    assert np.all(np.any(found[:, 1:] != 0, axis=0))


@pytest.mark.fast_for("transformer", "lstm_encoder_decoder", "luong")
@pytest.mark.parametrize("name", TRANSLATORS)
def test_what_is_erased_is_not_read(name, monkeypatch):
    """Whatever token padding would be, the same is lost."""
    model = model_of(name)
    expected = attribution.erasure(model, SOURCE_IDS, LABELS)
    embedding = model.source_embedding

    def embed(ids):
        ids = np.array(ids)
        asked = ids[:, : len(SOURCE_IDS)]  # Some models add padding.
        ids[:, : len(SOURCE_IDS)] = np.where(asked == PAD, 17, asked)
        return embedding(ids)

    monkeypatch.setattr(model, "source_embedding", embed)
    found = attribution.erasure(model, SOURCE_IDS, LABELS)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.fast_for("transformer")
@pytest.mark.parametrize("name", ["transformer", "rnnsearch", "bytenet"])
def test_erasure_reads_the_source_without_a_token(name):
    model = model_of(name)
    whole = log_probabilities(model, SOURCE_IDS)
    default = PAD if name == "transformer" else UNK
    for replacement in (None, PAD, UNK):
        stands = default if replacement is None else replacement
        found = attribution.erasure(model, SOURCE_IDS, LABELS, replacement)
        for place in range(len(SOURCE_IDS)):
            ids = list(SOURCE_IDS)
            ids[place] = stands
            lost = whole - log_probabilities(model, ids)
            np.testing.assert_allclose(found[:, place], lost, atol=1e-4)
    erased = [[True, False, True, False], [False] * 4]
    found = attribution.drops(model, SOURCE_IDS, LABELS, erased)
    ids = [default, SOURCE_IDS[1], default, END]
    lost = whole - log_probabilities(model, ids)
    np.testing.assert_allclose(found, [lost, np.zeros(5)], atol=1e-4)


def test_rollout_follows_every_path():
    """Shares from node to node, as figure 1 of the paper has them."""
    model = model_of("transformer")
    inputs = {
        "source_ids": np.int32([SOURCE_IDS]),
        "target_ids": np.int32([[START, *LABELS[:-1]]]),
    }
    _, maps = model.call_with_maps(inputs)
    maps = {name: np.mean(one[0], axis=1) for name, one in maps.items()}

    def read(layer, place):
        """Shares of the source's tokens in what the encoder has there."""
        if layer < 0:
            return np.eye(4)[place]
        below = [read(layer - 1, other) for other in range(4)]
        looks = maps["encoder"][layer, place]
        mixed = sum(looks[other] * below[other] for other in range(4))
        return 0.5 * below[place] + 0.5 * mixed

    def written(layer, place):
        """The same in what the decoder has."""
        if layer < 0:
            return np.zeros(4)
        below = [written(layer - 1, other) for other in range(5)]
        looks = maps["decoder"][layer, place]
        mixed = sum(looks[other] * below[other] for other in range(5))
        past = 0.5 * below[place] + 0.5 * mixed
        looks = maps["cross"][layer, place]
        over = sum(looks[other] * read(1, other) for other in range(4))
        return 0.5 * past + 0.5 * over

    found = attribution.rollout(model, SOURCE_IDS, LABELS)
    expected = [written(1, place) for place in range(5)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # The first token has read START alone, whose share is left over: half in
    # each layer.
    np.testing.assert_allclose(found[0].sum(), 0.75, rtol=1e-5)


def test_attention_is_that_of_a_layer():
    model = model_of("transformer")
    inputs = {
        "source_ids": np.int32([SOURCE_IDS]),
        "target_ids": np.int32([[START, *LABELS[:-1]]]),
    }
    _, weights = model.call_with_attention(inputs)  # The last layer's.
    found = attribution.attention(model, SOURCE_IDS, LABELS)
    np.testing.assert_allclose(found, np.mean(weights[0], 0), rtol=1e-5)
    first = attribution.attention(model, SOURCE_IDS, LABELS, layer=0)
    assert np.abs(first - found).max() > 1e-3


def test_what_a_model_has_not_is_refused():
    pair = SOURCE_IDS, LABELS
    with pytest.raises(ValueError, match="RNNSearch has no .* encoder, dec"):
        attribution.rollout(model_of("rnnsearch"), *pair)
    model = model_of("bytenet")
    with pytest.raises(ValueError, match="ByteNet has no .* called cross"):
        attribution.attention(model, *pair)
    toy = Toy(linear)
    del toy.source_embedding
    with pytest.raises(ValueError, match="Toy has no layer `source_embedding`"):
        attribution.integrated_gradients(toy, *pair)


def test_a_model_is_left_as_it_was():
    model = model_of("transformer")
    before = log_probabilities(model, SOURCE_IDS)
    attribution.integrated_gradients(model, SOURCE_IDS, LABELS, 2)
    assert model.source_embedding is model.target_embedding
    with pytest.raises(tf.errors.InvalidArgumentError):
        attribution.integrated_gradients(model, SOURCE_IDS, [99], 2)
    assert model.source_embedding is model.target_embedding
    np.testing.assert_array_equal(log_probabilities(model, SOURCE_IDS), before)


def test_texts_are_explained_as_they_are_aligned(random_translator):
    translator = random_translator("transformer")
    text, answer = "three one", "eins drei drei"
    found = attribution.attribute(translator, text, answer)
    (row,) = translator.align([text], [answer])
    assert found.source_tokens == tuple(row["source_tokens"])
    assert found.target_tokens == tuple(row["target_tokens"])
    assert list(found.weights) == [
        "attention",
        "rollout",
        "integrated gradients",
        "erasure",
    ]
    np.testing.assert_allclose(
        found.weights["attention"], row["attention"], atol=1e-5
    )
    shapes = {weights.shape for weights in found.weights.values()}
    assert shapes == {row["attention"].shape}
    # Without an answer, the model's own.
    (own,) = translator([text])
    (row,) = translator.align([text], [own])
    found = attribution.attribute(translator, text)
    assert found.target_tokens == tuple(row["target_tokens"])


def test_models_without_attention_are_explained(random_translator):
    translator = random_translator("rnn_encoder_decoder")
    found = attribution.attribute(translator, "three one", "eins")
    assert list(found.weights) == ["integrated gradients", "erasure"]


def test_an_ensemble_has_erasure_alone(random_translator, tokenizers):
    """Its maps are those of members, and it embeds nothing itself."""
    members = [
        random_translator(name).model for name in ("transformer", "rnnsearch")
    ]
    together = ensemble.Ensemble(members)
    together.build()
    translator = Translator(together, *tokenizers)
    found = attribution.attribute(translator, "three one", "eins")
    assert list(found.weights) == ["erasure"]
    shape = len(found.target_tokens), len(found.source_tokens)
    assert found.weights["erasure"].shape == shape
