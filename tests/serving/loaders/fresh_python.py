"""Translates with TensorFlow and tensorflow-text alone, as a user would.

python fresh_python.py VERSION SIGNATURE < texts.json > translations.json
"""

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401

loaded = tf.saved_model.load(sys.argv[1])
translate = loaded.signatures[sys.argv[2]]
texts = json.load(sys.stdin)
translations = []
for start in range(0, len(texts), 50):
    batch = tf.constant(texts[start : start + 50])
    translations += translate(text=batch)["translation"].numpy().tolist()
assert "keras_attention" not in sys.modules
json.dump([text.decode() for text in translations], sys.stdout)
