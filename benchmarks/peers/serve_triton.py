"""Serves signatures of a SavedModel by Triton, each as a model of its own.

    python serve_triton.py VERSION HTTP_PORT GRPC_PORT SIGNATURE...

All inputs of a signature are texts. An output [B] is [B, 1] here, as a model of
Triton's has an axis behind the batch. Batches have at most 32 texts. Triton
calls a signature in Python, on a thread for each core.
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

version, http_port, grpc_port, *names = sys.argv[1:]
loaded = tf.saved_model.load(version)


def tensor_of(name, spec):
    """The description of an input or an output."""
    dtype = spec.dtype.as_numpy_dtype
    shape = tuple(size or -1 for size in spec.shape[1:]) or (1,)
    return Tensor(
        name=name, dtype=bytes if dtype is object else dtype, shape=shape
    )


def function_of(signature):
    """What answers a batch."""

    @batch
    def answer(**texts):
        """Texts [B, 1] to outputs [B, ...]."""
        outputs = signature(
            **{name: tf.constant(text[:, 0]) for name, text in texts.items()}
        )
        arrays = {name: value.numpy() for name, value in outputs.items()}
        return {
            name: array if array.ndim > 1 else array[:, np.newaxis]
            for name, array in arrays.items()
        }

    return answer


config = TritonConfig(
    http_address="127.0.0.1",
    http_port=int(http_port),
    grpc_address="127.0.0.1",
    grpc_port=int(grpc_port),
    allow_metrics=False,
)
with Triton(config=config) as triton:
    for name in names:
        signature = loaded.signatures[name]
        inputs = signature.structured_input_signature[1]
        triton.bind(
            model_name=name,
            infer_func=[function_of(signature)] * len(os.sched_getaffinity(0)),
            inputs=[tensor_of(*one) for one in inputs.items()],
            outputs=[
                tensor_of(*one) for one in signature.structured_outputs.items()
            ],
            config=ModelConfig(max_batch_size=32),
        )
    triton.serve()
