"""Serves a SavedModel of this package by LitServe, in batches of at most 32.

    python serve_litserve.py VERSION PORT

LitServe has a process with a copy of the model for each core.
"""

import os
import sys

os.environ["TF_NUM_INTRAOP_THREADS"] = "1"

import litserve  # noqa: E402


class Translate(litserve.LitAPI):
    """Texts to translations, as TensorFlow Serving's protocol has them."""

    def setup(self, device):
        """Loads the model; in each process."""
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        self._loaded = tf.saved_model.load(sys.argv[1])
        self._constant = tf.constant

    def decode_request(self, request):
        """The text of a request."""
        (text,) = request["instances"]
        return text

    def batch(self, inputs):
        """Texts that are answered together."""
        return inputs

    def predict(self, texts):
        """Their translations."""
        translate = self._loaded.signatures["serving_default"]
        found = translate(text=self._constant(texts))["translation"]
        return [text.decode() for text in found.numpy()]

    def unbatch(self, output):
        """The translation of each."""
        return output

    def encode_response(self, output):
        """The answer to a request."""
        return {"predictions": [output]}


if __name__ == "__main__":
    server = litserve.LitServer(
        Translate(max_batch_size=32, batch_timeout=0.001),
        accelerator="cpu",
        workers_per_device=len(os.sched_getaffinity(0)),
    )
    server.run(
        host="127.0.0.1",
        port=int(sys.argv[2]),
        num_api_servers=1,
        generate_client_file=False,
    )
