"""The machine: strategies over its devices, its cores, its memory."""

import ctypes
import os
import sys

import tensorflow as tf


def num_replicas(replicas: int | None = None) -> int:
    """How many copies of the model there are: what is asked for, or one on
    each GPU, or one on the CPU."""
    if replicas is not None:
        return replicas
    return max(1, len(tf.config.list_physical_devices("GPU")))


def make_strategy(replicas: int | None = None) -> tf.distribute.Strategy:
    """A strategy over all GPUs, or over `replicas` devices.

    Args:
        replicas: copies of the model; by default one on each GPU, or one
            on the CPU. On a CPU, `make_logical_devices` comes first.

    Raises:
        ValueError: If there are fewer devices.
    """
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    replicas = num_replicas(replicas)
    if replicas == 1:
        return tf.distribute.get_strategy()
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    if len(devices) < replicas:
        raise ValueError(
            f"Expected at least {replicas} devices of kind {kind}: ask for "
            "fewer replicas, or, on a CPU, call devices.make_logical_devices "
            f"before TensorFlow's first operation. Received: {devices}"
        )
    return tf.distribute.MirroredStrategy(
        devices[:replicas],
        cross_device_ops=tf.distribute.ReductionToOneDevice()
        if kind == "CPU"
        else None,
    )


# Batches of fewer target tokens are faster with `share_cores`; those of 4,096
# are slower, as their matrix products want both cores.
SMALL_BATCH = 1024


def share_cores() -> None:
    """On two cores: two operations at a time, each on one of them.

    Short operations are not worth cutting in two, but many of a backward
    pass do not need each other, nor do the two halves of a batch that is
    translated. On other machines, after TensorFlow's first operation, and
    where the number of threads of an operation was chosen before, this does
    nothing.
    """
    chosen = tf.config.threading.get_intra_op_parallelism_threads()
    if chosen or "TF_NUM_INTRAOP_THREADS" in os.environ:
        return
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count()
    try:
        if cores == 2:
            tf.config.threading.set_intra_op_parallelism_threads(1)
    except RuntimeError:
        return


def keep_memory() -> None:
    """Keeps the memory of large tensors from step to step.

    By default a tensor of more than 32 MB, such as the logits of a large
    batch, is mapped anew each time, and each of its pages faults when it is
    first written: that takes longer than to compute it. To be called before
    TensorFlow's first operation; of use with glibc, elsewhere it does nothing.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in (
            (-4, 0),  # M_MMAP_MAX: nothing is mapped on its own
            (-1, 2**31 - 1),  # M_TRIM_THRESHOLD: up to 2 GiB are kept
            (-8, 1),  # M_ARENA_MAX: all threads share what is kept
        ):
            mallopt(parameter, value)


def make_logical_devices(count: int) -> None:
    """Splits the CPU into logical devices, to try replicas without GPUs.

    Raises:
        RuntimeError: If TensorFlow has run an operation before.
    """
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    )
