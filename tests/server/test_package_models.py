"""Every model of the catalogue, answered in batches of strangers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention.models import catalog
from keras_attention.server import execution, versions
from keras_attention.serving import continuer, kinds, labeller

pytestmark = pytest.mark.slow
TEXTS = [["one two"], ["three four five six", ""], ["zwölf"], ["nine  eight"]]
CLASSES = ["high", "low", "odd"]
# What shows more of padding than the default does: here, the mean.
CHOICES = {"encoder_classifier": {"answer_position": None}}
KINDS = {
    "classification": kinds.CLASSIFICATION,
    "entailment": kinds.ENTAILMENT,
    "question_answering": kinds.QUESTION_ANSWERING,
}


def pieces(tokenizer):
    ids = tf.range(tokenizer.vocabulary_size)[tf.newaxis]
    return [piece.decode() for piece in tokenizer.pieces(ids).numpy()[0]]


def random_model(name, tokenizer):
    """A model of one text or two, with its tokenizer."""
    keras.utils.set_random_seed(1)
    entry = catalog.entry(name)
    if entry.task == "language_modelling":
        model = tiny.create(name, tokenizer.vocabulary_size)
        model.read_vocabulary(pieces(tokenizer))
        model.build()
        return continuer.Continuer(model, tokenizer, 20, 7)
    model = tiny.create(
        name,
        tokenizer.vocabulary_size,
        num_classes=len(CLASSES),
        **CHOICES.get(name, {}),
    )
    model.build()
    kind = KINDS[entry.task]
    return labeller.Labeller(model, tokenizer, CLASSES, 20, kind)


# `test_pictures.py` has the models of pictures.
OF_TEXTS = [
    name
    for name in catalog.CATALOG
    if name not in tiny.names("image_classification")
]


@pytest.fixture(scope="module", params=OF_TEXTS)
def version(request, random_translator, tokenizers, tmp_path_factory):
    name = request.param
    if catalog.entry(name).task == "translation":
        live = random_translator(name, max_source_length=40)
    else:
        live = random_model(name, tokenizers[0])
    folder = tmp_path_factory.mktemp("exported")
    return versions.load(live.export(folder / "model"), 1)


def request_of(signature, texts):
    """Texts for each input. A second input has longer ones."""
    return {
        name: np.array([f"{text}{end}".encode() for text in texts], object)
        for name, end in zip(signature.inputs, ("", " zero"), strict=False)
    }


def test_an_answer_is_that_of_its_request_alone(version):
    for signature in version.signatures.values():
        assert signature.is_batched
        requests = [request_of(signature, texts) for texts in TEXTS]
        together = execution.split_on_failure(version, signature, requests)
        for request, answer in zip(requests, together, strict=True):
            # The SavedModel itself, without the server's cut.
            alone = signature(request)
            assert answer.keys() == alone.keys()
            for name, expected in alone.items():
                if expected.dtype.kind == "f":
                    np.testing.assert_allclose(
                        answer[name], expected, rtol=1e-4, atol=1e-4
                    )
                else:
                    np.testing.assert_array_equal(answer[name], expected)


def test_the_answers_differ(version):
    """Otherwise it would not be seen if two were mixed up."""
    signature = version.signatures["serving_default"]
    requests = [request_of(signature, texts) for texts in TEXTS]
    answers = execution.split_on_failure(version, signature, requests)
    for name in signature.outputs:
        values = {str(row) for answer in answers for row in answer[name]}
        # A random classifier may well give one label to all, and a random
        # language model one continuation to several.
        least = {"label": 1, "answer": 1, "labels": 1, "continuation": 2}
        assert len(values) >= least.get(name, 3), (name, values)


def test_an_ascii_text_has_few_tokens(version):
    """So short ones are not counted."""
    texts = ["", "x", " a  b ", "1,000.00 $", "".join(map(chr, range(127)))]
    signature = version.signatures["num_tokens"]
    counts = signature(request_of(signature, texts))["num_tokens"]
    extra = len(" zero") * (len(signature.inputs) - 1)
    assert all(
        count <= len(text) + extra + 2
        for count, text in zip(counts, texts, strict=True)
    )


def test_long_texts_are_refused(version):
    for name, signature in version.signatures.items():
        request = {
            name: np.array([b"one " * 60], object) for name in signature.inputs
        }
        (answer,) = execution.split_on_failure(version, signature, [request])
        if name == "num_tokens":
            assert answer["num_tokens"] > answer["limit"]
        else:
            assert "row 1" in answer.message
