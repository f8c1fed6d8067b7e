"""The machine: strategies over its devices, its cores, its memory."""

import ctypes
import functools
import os
import signal
import sys
import threading

import tensorflow as tf

from keras_attention import workers


def num_replicas(replicas: int | None = None) -> int:
    """The number of copies of the model, those of all workers together.

    Args:
        replicas: the number, or None for one on each GPU, or one on the CPU, of
            each worker.
    """
    if replicas is not None:
        return replicas
    on_each = max(1, len(tf.config.list_physical_devices("GPU")))
    return on_each * workers.from_environment().count


def make_strategy(replicas: int | None = None) -> tf.distribute.Strategy:
    """A strategy over all GPUs, or over `replicas` devices.

    Where the environment variable TF_CONFIG names several workers, the strategy
    spans them. It has to be made before TensorFlow's first operation. It waits
    ten minutes for the other workers to come. A process has one such strategy:
    a second call returns the first one's.

    Args:
        replicas: copies of the model, on all workers together. By default
            there is one on each GPU, or one on the CPU of each worker. For
            several on a CPU, call `make_logical_devices` before.

    Raises:
        ValueError: If there are fewer devices. If several workers have another
            number of GPUs each, or more than one replica on a CPU. If
            TF_CONFIG is no list of workers.
        ConnectionError: If a worker does not come, or if another program has
            the leader's port.
    """
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    replicas = num_replicas(replicas)
    if workers.from_environment().count > 1:
        return _strategy_of_workers(replicas)
    if replicas == 1:
        return tf.distribute.get_strategy()
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    if len(devices) < replicas:
        raise ValueError(
            f"{replicas} replicas need {replicas} devices of kind {kind}. "
            f"There are {len(devices)}. Ask for fewer replicas or, on a CPU, "
            "call devices.make_logical_devices before TensorFlow's first "
            "operation."
        )
    return tf.distribute.MirroredStrategy(
        devices[:replicas],
        cross_device_ops=tf.distribute.ReductionToOneDevice()
        if kind == "CPU"
        else None,
    )


@functools.cache
def _strategy_of_workers(replicas: int) -> tf.distribute.Strategy:
    here, devices = workers.from_environment(), num_replicas()
    if replicas != devices:
        raise ValueError(
            f"{here.count} workers have {devices} replicas, not {replicas}: "
            "one on each GPU or, on a worker without GPUs, one on the CPU. "
            "Leave --replicas out, or start more or fewer workers."
        )
    here.meet()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    # TensorFlow takes SIGTERM for news, and the process would not end by it.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    return strategy


# Batches of up to this many target tokens are faster with `share_cores`. Those
# of 4,096 are slower, as their matrix products want both cores.
SMALL_BATCH = 1024


def num_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_cores() -> None:
    """On a two-core machine, limits each TensorFlow operation to one core.

    Two operations then run at the same time. This is faster where operations
    are short and do not need each other: in a backward pass, or in the two
    halves of a batch that is translated.

    It does nothing on other machines, after TensorFlow's first operation, and
    if the number of threads of an operation was chosen before.
    """
    chosen = tf.config.threading.get_intra_op_parallelism_threads()
    if chosen or "TF_NUM_INTRAOP_THREADS" in os.environ:
        return
    try:
        if num_cores() == 2:
            tf.config.threading.set_intra_op_parallelism_threads(1)
    except RuntimeError:
        return


def keep_memory() -> None:
    """Keeps the memory of large tensors from step to step.

    By default, a tensor of more than 32 MB is mapped anew each time. The logits
    of a large batch are such a tensor. Each of its pages then faults when it is
    first written, which takes longer than to compute it. On two cores, a step
    of the size S of `benchmarks/bench.py` takes 874 ms with it and 987 ms
    without.

    Call this before TensorFlow's first operation. It works with glibc, and does
    nothing elsewhere.
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
