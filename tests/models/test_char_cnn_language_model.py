"""The character-aware language model: its equations and its papers' sizes."""

import numpy as np
import pytest

from keras_attention import models
from keras_attention.models import char_cnn_language_model

V, UNITS = 23, 11
SIZES = {
    "character_dim": 3,
    "filters": ((1, 5), (3, 7)),
    "num_highways": 2,
    "units": UNITS,
    "max_word_length": 4,
}
TOKEN_IDS = np.array([[2, 19, 5, 9, 7], [2, 22, 4, 0, 0]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def word_vector(model, token):
    """Kim et al. 2016, equations 6 to 8, letter by letter."""
    q = model.embedding.get_weights()[0]
    letters = [q[index] for index in model.spelling.numpy()[token]]
    features = []
    for convolution in model.convolutions:
        kernel, bias = convolution.get_weights()
        width = len(kernel)
        places = [
            np.tanh(
                sum(letters[start + k] @ kernel[k] for k in range(width)) + bias
            )
            for start in range(len(letters) - width + 1)
        ]
        features.append(np.max(places, axis=0))
    y = np.concatenate(features)
    for highway in model.highways:
        w_h, b_h = highway.transform.get_weights()
        w_t, b_t = highway.gate.get_weights()
        t = sigmoid(y @ w_t + b_t)
        y = t * np.maximum(0, y @ w_h + b_h) + (1 - t) * y
    if model.word_projection is not None:
        y = y @ model.word_projection.get_weights()[0]
    return y


def read(model, tokens, projection_dim):
    """Logits of one text."""
    width = projection_dim or UNITS
    states = [(np.zeros(width), np.zeros(UNITS)) for _ in range(2)]
    logits = []
    for token in tokens:
        x = word_vector(model, token)
        for index, layer in enumerate(model.recurrent_layers):
            w, u, b, *w_r = layer.get_weights()
            h, c = states[index]
            i, f, g, o = np.split(x @ w + h @ u + b, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            x = h @ w_r[0] if projection_dim else h
            states[index] = x, c
        w, b = model.output_projection.get_weights()
        logits.append(x @ w + b)
    return logits


@pytest.mark.parametrize(
    "embedding_dim, projection_dim", [(None, None), (7, 5)]
)
def test_equals_the_equations(embedding_dim, projection_dim, randomize):
    model = randomize(
        models.CharCNNLanguageModel(
            V,
            **SIZES,
            embedding_dim=embedding_dim,
            projection_dim=projection_dim,
        )
    )
    logits = model(TOKEN_IDS)
    for row, tokens in enumerate(TOKEN_IDS):
        expected = read(model, tokens, projection_dim)
        np.testing.assert_allclose(logits[row], expected, atol=1e-5)


def test_words_are_without_dropout_and_outputs_with():
    model = models.CharCNNLanguageModel(V, **SIZES, dropout=0.5)
    begin = model.initial_state(len(TOKEN_IDS))
    _, calm = model.advance(TOKEN_IDS, begin, training=False)
    _, first = model.advance(TOKEN_IDS, begin, training=True)
    for after, expected in zip(first[0], calm[0], strict=True):
        np.testing.assert_allclose(after, expected, atol=1e-6)
    assert np.abs(first[1][0] - calm[1][0]).max() > 1e-3


def test_words_differ_before_any_training():
    # With Keras's own initial weights it is 0.15, with these 2.3.
    model = models.CharCNNLanguageModel.from_size("small", 1000)
    words = np.array(model.words(np.arange(1000)[None])[0])
    assert np.linalg.norm(words - words.mean(0), axis=-1).mean() > 1


def test_filters_of_one_width_have_names_of_their_own():
    filters = ((2, 5), (3, 7), (2, 11))
    model = models.CharCNNLanguageModel(V, **{**SIZES, "filters": filters})
    model.build()
    paths = [variable.path for variable in model.variables]
    assert len(set(paths)) == len(paths)


def test_a_word_is_spelt_in_bytes_between_two_signs():
    spell = char_cnn_language_model.spell
    assert spell("ab", 4) == [1, 3 + 97, 3 + 98, 2, 0, 0]
    assert spell("\u2581\u00e9", 4) == [1, 3 + 32, 3 + 0xC3, 3 + 0xA9, 2, 0]
    assert spell("abcde", 2) == [1, 3 + 97, 3 + 98, 2]
    assert max(spell("\u00ff", 3)) < char_cnn_language_model.NUM_CHARACTERS


def test_before_it_is_told_words_are_spelt_by_their_numbers():
    model = models.CharCNNLanguageModel(V, **SIZES)
    expected = [
        char_cnn_language_model.spell(f"{number:02}", 4) for number in range(V)
    ]
    np.testing.assert_array_equal(model.spelling, expected)


def test_words_that_are_spelt_alike_are_one_word(randomize):
    model = randomize(models.CharCNNLanguageModel(5, **SIZES))
    before = model.words(np.arange(5)[None])[0].numpy()
    assert len(np.unique(before.round(4), axis=0)) == 5
    model.read_vocabulary(["a", "b", "a", "ab", "b"])
    after = model.words(np.arange(5)[None])[0].numpy()
    np.testing.assert_allclose(after[0], after[2], atol=1e-6)
    np.testing.assert_allclose(after[1], after[4], atol=1e-6)
    assert len(np.unique(after.round(4), axis=0)) == 3


def test_another_number_of_words_is_refused():
    model = models.CharCNNLanguageModel(V, **SIZES)
    with pytest.raises(ValueError, match=r"\(23, 6\)"):
        model.read_vocabulary(["a", "b"])


def formula(v, d, filters, highways, embedding, units, projection, num_layers):
    """Weights: letters, filters, highways, LSTMs, softmax."""
    total = (3 + 256) * d
    total += sum((width * d + 1) * number for width, number in filters)
    features = sum(number for _, number in filters)
    total += highways * 2 * (features + 1) * features
    if embedding:
        total += features * embedding
        features = embedding
    output = projection or units
    for _ in range(num_layers):
        total += 4 * (features + output + 1) * units
        total += units * projection if projection else 0
        features = output
    return total + (output + 1) * v


@pytest.mark.fast_for("mini", "small", "big")
@pytest.mark.parametrize(
    "size, vocabulary_size, printed",
    [
        ("mini", V, None),
        ("tiny", 10_000, None),
        ("small", 10_000, 5e6),
        ("large", 10_000, 19e6),
        ("big", 793_471, 1.04e9),
    ],
)
def test_sizes(size, vocabulary_size, printed, without_memory):
    """Kim et al. 2016, table 3; Jozefowicz et al. 2016, table 1."""
    with without_memory():
        model = models.CharCNNLanguageModel.from_size(size, vocabulary_size)
        model.build()
    config = model.get_config()
    names = ("character_dim", "filters", "num_highways", "embedding_dim")
    names += ("units", "projection_dim", "num_layers")
    count = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    assert count == formula(vocabulary_size, *(config[n] for n in names))
    if printed:
        digit = 1e7 if printed > 1e9 else 1e6
        assert round(count / digit) == round(printed / digit)


def test_the_filters_of_big_are_those_of_the_published_graph():
    """`char_embedding/cnn_0/kernel` to `cnn_7/kernel`; a highway's width."""
    widths, numbers = zip(
        *models.CharCNNLanguageModel.sizes["big"]["filters"], strict=True
    )
    assert widths == (1, 2, 3, 4, 5, 6, 7, 7)
    assert numbers == (32, 32, 64, 128, 256, 512, 1024, 2048)
    assert sum(numbers) == 4096


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_layers": 0}, "at least 1.* Received: num_layers=0"),
        ({"filters": ()}, r"there must be a filter.* filters=\(\)"),
        ({"filters": ((7, 2),)}, "characters wide. Received: 7"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        models.CharCNNLanguageModel(V, **{**SIZES, **arguments})
