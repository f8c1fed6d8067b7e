"""Models of every task of the package, answered in batches of strangers."""

import keras
import numpy as np
import pytest

from keras_attention import models
from keras_attention.server import execution, versions
from keras_attention.serving import continuer, labeller

pytestmark = pytest.mark.slow
TEXTS = [["one two"], ["three four five six", ""], ["zwölf"], ["nine  eight"]]
CLASSES = ["high", "low", "odd"]


def classifier(tokenizer):
    size = tokenizer.vocabulary_size
    model = models.EncoderClassifier(
        size, 3, 2, 16, 13, 2, answer_position=None
    )
    model.build()
    return labeller.Labeller(model, tokenizer, CLASSES, 20)


def hops(tokenizer):
    size = tokenizer.vocabulary_size
    model = models.SelfAttentiveEmbedding(
        size, 3, 16, 16, attention_units=16, num_hops=2, hidden_dim=16
    )
    model.build()
    return labeller.Labeller(model, tokenizer, CLASSES, 20)


def pairs(tokenizer):
    model = models.DecomposableAttention(tokenizer.vocabulary_size, 3, 7, 11)
    model.build()
    return labeller.PairLabeller(model, tokenizer, CLASSES, 20)


def language_model(tokenizer):
    model = models.TransformerLanguageModel(
        tokenizer.vocabulary_size, 2, 16, 32, 2
    )
    model.build()
    return continuer.Continuer(model, tokenizer, 20, 7)


@pytest.fixture(
    scope="module",
    params=[
        "transformer",
        "rnnsearch",
        classifier,
        hops,
        pairs,
        language_model,
    ],
)
def version(request, random_translator, tokenizers, tmp_path_factory):
    if isinstance(request.param, str):
        live = random_translator(request.param, max_source_length=40)
    else:
        keras.utils.set_random_seed(2)
        live = request.param(tokenizers[0])
    folder = tmp_path_factory.mktemp("exported")
    return versions.load(live.export(folder / "model"), 1)


def test_an_answer_is_that_of_its_request_alone(version):
    for signature in version.signatures.values():
        assert signature.is_batched
        requests = [
            {
                name: np.array([text.encode() for text in texts], object)
                for name in signature.inputs
            }
            for texts in TEXTS
        ]
        together = execution.answers(version, signature, requests)
        for request, answer in zip(requests, together, strict=True):
            (alone,) = execution.answers(version, signature, [request])
            for name, expected in alone.items():
                if expected.dtype.kind == "f":
                    np.testing.assert_allclose(
                        answer[name], expected, rtol=1e-4, atol=1e-4
                    )
                else:
                    np.testing.assert_array_equal(answer[name], expected)


def test_long_texts_are_refused(version):
    for name, signature in version.signatures.items():
        request = {
            name: np.array([b"one " * 60], object) for name in signature.inputs
        }
        (answer,) = execution.answers(version, signature, [request])
        if name == "num_tokens":
            assert answer["num_tokens"] > answer["limit"]
        else:
            assert "in line 1" in answer.message
