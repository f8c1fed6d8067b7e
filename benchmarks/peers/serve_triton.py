"""Serves a SavedModel of this package by Triton, in batches of at most 32.

    python serve_triton.py VERSION HTTP_PORT GRPC_PORT

Triton calls the model in Python, on a thread for each core.
"""

import os
import sys
import sysconfig

libraries = sysconfig.get_config_var("LIBDIR")
if libraries not in os.environ.get("LD_LIBRARY_PATH", ""):
    # Triton's Python backend looks for the interpreter's library there.
    os.environ["LD_LIBRARY_PATH"] = libraries
    os.execv(sys.executable, [sys.executable, *sys.argv])
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_text  # noqa: E402, F401
from pytriton.decorators import batch  # noqa: E402
from pytriton.model_config import ModelConfig, Tensor  # noqa: E402
from pytriton.triton import Triton, TritonConfig  # noqa: E402

version, http_port, grpc_port = sys.argv[1:]
loaded = tf.saved_model.load(version)
translate = loaded.signatures["serving_default"]


@batch
def answer(text):
    """Texts [B, 1] to translations [B, 1]."""
    translations = translate(text=tf.constant(text[:, 0]))["translation"]
    return {"translation": translations.numpy()[:, np.newaxis]}


config = TritonConfig(
    http_address="127.0.0.1",
    http_port=int(http_port),
    grpc_address="127.0.0.1",
    grpc_port=int(grpc_port),
    allow_metrics=False,
)
with Triton(config=config) as triton:
    triton.bind(
        model_name="translator",
        infer_func=[answer] * len(os.sched_getaffinity(0)),
        inputs=[Tensor(name="text", dtype=bytes, shape=(1,))],
        outputs=[Tensor(name="translation", dtype=bytes, shape=(1,))],
        config=ModelConfig(max_batch_size=32),
    )
    triton.serve()
