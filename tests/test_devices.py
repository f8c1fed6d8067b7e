"""Cores and memory of the machine."""

import os
import platform
import subprocess
import sys

import pytest
import tensorflow as tf

from keras_attention import devices, workers

CORES = """
import os
import tensorflow as tf
from keras_attention import devices
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int("{cores}")])
devices.share_cores()
devices.make_logical_devices(2)
count = len(tf.config.list_logical_devices("CPU"))
print(count, tf.config.threading.get_intra_op_parallelism_threads())
devices.share_cores()
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores that a process can be bound to",
)
@pytest.mark.parametrize("cores, threads", [(2, 1), (1, 0)])
def test_two_cores_are_shared(cores, threads):
    output = subprocess.run(
        [sys.executable, "-c", CORES.format(cores=cores)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    assert output.split() == ["2", str(threads)]


def test_a_choice_of_threads_is_kept(monkeypatch):
    chosen = []
    threading = tf.config.threading
    monkeypatch.setattr(
        threading, "set_intra_op_parallelism_threads", chosen.append
    )
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, False)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    name = "get_intra_op_parallelism_threads"
    monkeypatch.setattr(threading, name, lambda: 2)
    devices.share_cores()
    assert chosen == []
    monkeypatch.setattr(threading, name, lambda: 0)
    devices.share_cores()
    assert chosen == [1]
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "2")
    devices.share_cores()
    assert chosen == [1]


MEMORY = """
import resource
import numpy as np
from keras_attention import devices

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        np.ones(2**24, "float32")  # 64 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
devices.keep_memory()
faults()
print(first, faults())
"""


@pytest.mark.slow
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="glibc's memory is meant"
)
def test_memory_is_kept():
    output = subprocess.run(
        [sys.executable, "-c", MEMORY],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    first, later = map(int, output.split())
    assert later < first / 10


def test_workers_meet_before_tensorflow_waits_for_them(monkeypatch):
    """TensorFlow's own waiting names nobody and cannot be ended."""
    calls = []
    monkeypatch.setenv(
        "TF_CONFIG",
        '{"cluster": {"worker": ["a:1", "b:1"]},'
        ' "task": {"type": "worker", "index": 1}}',
    )
    monkeypatch.setattr(
        workers.Workers,
        "meet",
        lambda here: calls.append(here.rank),
    )
    monkeypatch.setattr(
        tf.distribute,
        "MultiWorkerMirroredStrategy",
        lambda: calls.append("strategy"),
    )
    devices.make_strategy()
    devices._strategy_of_workers.cache_clear()
    assert calls == [1, "strategy"]
