"""Two SavedModels that compute next to nothing."""

import pathlib

import tensorflow as tf


class Capitals(tf.Module):
    """Texts in capitals."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text):
        """[B] to [B]."""
        return {"translation": tf.strings.upper(text)}


class Numbers(tf.Module):
    """Inputs of two types and two ranks."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 3], tf.float32, "x"),
            tf.TensorSpec([None], tf.int64, "k"),
        ]
    )
    def serve(self, x, k):
        """[B, 3] and [B] to [B, 3]."""
        return {"y": x * tf.cast(k, tf.float32)[:, tf.newaxis]}


def write(folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes version 1 of both, and gives their folders."""
    models = {"capitals": Capitals(), "numbers": Numbers()}
    for name, model in models.items():
        tf.saved_model.save(
            model, str(folder / name / "1"), signatures=model.serve
        )
    return [folder / name for name in models]
