"""Queries and keys of a few heads of a SavedModel in the repository."""

import pathlib
from unittest import mock

import keras
import numpy as np
import sentencepiece
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import keras_attention as ka
from keras_attention.layers import attention
from keras_attention.serving import savedmodel
from keras_attention.tokens import END, START

SAVED = (
    pathlib.Path(__file__).parents[2]
    / "savedmodels"
    / "multi30k_en_de_transformer"
)
SENTENCE = "Two dogs are playing in the snow."
NUM_PADS = 3
DECIMALS = 5
# What is shown: the attention, its layer and head from 0, and a name.
HEADS = (
    ("decoder", 1, 3),
    ("decoder", 0, 0),
    ("encoder", 3, 3),
    ("encoder", 1, 1),
    ("cross", 2, 3),
)


def read_model():
    """The SavedModel's weights in the package's model."""
    savedmodel.register_text_operations()
    # The variables are the model's, in its order.
    variables = tf.saved_model.load(str(SAVED / "1"))._variables
    model = ka.models.Transformer.from_size("tiny", variables[0].shape[0])
    model.build()
    for ours, theirs in zip(model.variables, variables, strict=True):
        ours.assign(tf.cast(theirs, ours.dtype))
    return model


def read_vocabulary():
    """The SentencePiece model in the SavedModel's graph."""
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((SAVED / "1" / "saved_model.pb").read_bytes())
    library = saved.meta_graphs[0].graph_def.library
    (piece_model,) = {
        node.attr["model"].s
        for function in library.function
        for node in function.node_def
        if node.op == "SentencepieceOp"
    }
    return sentencepiece.SentencePieceProcessor(model_proto=piece_model)


def recorded(model, inputs):
    """Query, key and weights of each attention, in the order of the calls."""
    calls = []
    original = attention.dot_product_attention

    def record(query, key, value, mask=None, dropout=None):
        context, weights = original(query, key, value, mask, dropout)
        calls.append((query[0], key[0], weights[0]))  # [H, T, d], [H, T, S]
        return context, weights

    with mock.patch.object(attention, "dot_product_attention", record):
        model(inputs)
    number = len(model.encoder_layers)
    return {
        "encoder": calls[:number],
        "decoder": calls[number::2],
        "cross": calls[number + 1 :: 2],
    }


def shown(token):
    """A token as a reader sees it."""
    return token.replace("▁", "").strip("[]") or token


def data() -> dict:
    """What the page is given."""
    model, vocabulary = read_model(), read_vocabulary()
    (answer,) = ka.load(SAVED).with_attention([SENTENCE])
    source, target = answer["source_tokens"], answer["target_tokens"]
    source_ids = [*map(vocabulary.piece_to_id, source[:-1]), END]
    target_ids = [START, *map(vocabulary.piece_to_id, target[:-1])]
    calls = recorded(
        model,
        {
            "source_ids": np.array([source_ids + NUM_PADS * [0]]),
            "target_ids": np.array([target_ids + NUM_PADS * [0]]),
        },
    )
    check(calls, answer)
    pads = NUM_PADS * ["PAD"]
    texts = {
        "source": [*map(shown, source), *pads],
        "target": ["START", *map(shown, target[:-1]), *pads],
    }
    return {
        "sentence": SENTENCE,
        "translation": answer["translation"],
        "numPads": NUM_PADS,
        "texts": texts,
        "heads": [head(calls, *one) for one in HEADS],
        "origin": {
            "model": "savedmodels/multi30k_en_de_transformer",
            "seed": 1,
            "data": "Multi30k, English to German",
        },
    }


def check(calls, answer):
    """The last layer's mean must be what the SavedModel answers."""
    weights = answer["attention"]
    num_rows, num_columns = weights.shape
    mean = keras.ops.convert_to_numpy(calls["cross"][-1][2]).mean(axis=0)
    np.testing.assert_allclose(
        mean[:num_rows, :num_columns], weights, atol=1e-4
    )


def head(calls, name, layer, number):
    """Queries, keys and the model's own weights of one head."""
    query, key, weights = (
        np.array(one[number], "float64").round(DECIMALS).tolist()
        for one in calls[name][layer]
    )
    return {
        "attention": name,
        "layer": layer + 1,
        "head": number + 1,
        "query": query,
        "key": key,
        "weights": weights,
    }
