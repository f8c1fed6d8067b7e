"""Translates in a bare session: graph mode, what TF Serving does.

python session.py VERSION SIGNATURE [OUTPUT] < texts.json > translations.json
"""

import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401

tf.compat.v1.disable_eager_execution()
texts = json.load(sys.stdin)
translations = []
with tf.compat.v1.Session() as session:
    meta_graph = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = meta_graph.signature_def[sys.argv[2]]
    text = signature.inputs["text"].name
    output = sys.argv[3] if len(sys.argv) > 3 else "translation"
    translation = signature.outputs[output].name
    for start in range(0, len(texts), 50):
        batch = texts[start : start + 50]
        translations += session.run(translation, {text: batch}).tolist()
assert "keras_attention" not in sys.modules
json.dump([text.decode() for text in translations], sys.stdout)
