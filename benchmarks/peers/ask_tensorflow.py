"""Translates by TensorFlow alone, without a server.

    python ask_tensorflow.py VERSION < TEXTS

TEXTS and what is printed are lists of texts in JSON. This package is not
imported.
"""

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401

sys.modules["keras_attention"] = None  # To import it is an error now.
loaded = tf.saved_model.load(sys.argv[1])
translate = loaded.signatures["serving_default"]
answers = [
    translate(text=tf.constant([text]))["translation"].numpy()[0].decode()
    for text in json.load(sys.stdin)
]
print(json.dumps(answers))
