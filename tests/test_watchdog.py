"""A worker that waits for a lost one ends, and says why."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from keras_attention import watchdog

# One of several workers, and what it does when all have met.
WORKER = """
import ctypes, os, signal, sys, time
from keras_attention import workers

rank, deed, *addresses = sys.argv[1:]
with workers.Workers(tuple(addresses), int(rank)).meeting(minutes=0.5):
    print("met", flush=True)
    if deed == "waits":  # As TensorFlow: Python hears nothing.
        lock = ctypes.PyDLL(None).pthread_mutex_lock
        mutex = ctypes.create_string_buffer(64)  # Zeros: glibc's initial one.
        lock(mutex)
        lock(mutex)
    sys.stdin.readline()
    if deed == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif deed == "fails":
        raise RuntimeError("no start")
    elif deed == "is slow":
        for _ in range(20):
            time.sleep(0.1)
    elif deed == "sleeps":
        time.sleep(60)
"""


def hear():
    """Ctrl+C, which a shell's background jobs ignore; SIGHUP under nohup."""
    for cause in (signal.SIGINT, signal.SIGHUP):
        signal.signal(cause, signal.SIG_DFL)


@pytest.fixture
def start():
    """A function of what each worker does: their processes, all met."""
    with contextlib.ExitStack() as stack:

        def processes(*deeds, before=(), stderr=subprocess.PIPE):
            sockets = [socket.create_server(("127.0.0.1", 0)) for _ in deeds]
            addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
            for one in sockets:
                one.close()
            started = []
            for rank, deed in enumerate(deeds):
                opened = subprocess.Popen(
                    [*before, sys.executable, "-c", WORKER]
                    + [str(rank), deed, *addresses],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    text=True,
                    preexec_fn=hear,
                    start_new_session=True,
                )
                started.append(stack.enter_context(opened))
                stack.callback(opened.kill)
            for process in started:
                assert process.stdout.readline() == "met\n"
            for process, deed in zip(started, deeds, strict=True):
                if deed != "waits":  # Such a one may have ended.
                    process.stdin.write("go on\n")
                    process.stdin.flush()
            return started

        yield processes


def errors(process):
    """What it prints, when it and its watchdog have ended."""
    return process.communicate(timeout=30)[1]


def test_workers_that_start_go_on(start):
    processes = start("is slow", "starts", "starts")
    assert [errors(process) for process in processes] == ["", "", ""]
    assert [process.returncode for process in processes] == [0, 0, 0]


@pytest.mark.parametrize("deed", ["is killed", "fails"])
@pytest.mark.parametrize("lost", [0, 1])
def test_a_worker_that_waits_for_a_lost_one_ends(start, deed, lost):
    deeds = ["waits", "waits"]
    deeds[lost] = deed
    processes = start(*deeds)
    words = errors(processes[1 - lost])
    assert words.startswith("Expected TensorFlow to start on all workers")
    assert f"Received: worker {lost} at 127.0.0.1:" in words
    assert words.endswith(" has ended\n")
    assert processes[1 - lost].returncode == 1
    assert ("no start" in errors(processes[lost])) == (deed == "fails")


def test_all_end_when_one_of_three_is_lost(start):
    """The second hears of the third by the leader."""
    processes = start("waits", "waits", "is killed")
    words = [errors(process) for process in processes]
    assert "Received: worker 2 at" in words[0]
    assert "Received: worker 0 at" in words[1]
    assert [one.returncode for one in processes] == [1, 1, -signal.SIGKILL]


def test_the_first_process_of_a_container_ends_too(start):
    """It does not hear SIGKILL from inside."""
    before = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    before += ["--mount-proc", "--kill-child"]
    found = subprocess.run([*before, "true"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"No namespaces here: {found.stderr.decode()}")
    processes = start("waits", "fails", before=before)
    assert "Received: worker 1 at" in errors(processes[0])
    assert "no start" in errors(processes[1])
    assert processes[0].returncode == 1


@pytest.mark.parametrize("readers", [0, 1])
def test_a_worker_ends_though_nobody_reads_why(start, readers):
    """A reader has ended, or it does not read what fills the pipe."""
    reader, writer = os.pipe()
    if readers:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
    else:
        os.close(reader)
    processes = start("waits", "is killed", stderr=writer)
    os.close(writer)
    assert processes[0].wait(timeout=30) == 1
    if readers:
        os.close(reader)


@pytest.mark.parametrize(
    ("deed", "other", "end"),
    [("is slow", "sleeps", 0), ("waits", "is killed", -signal.SIGKILL)],
)
def test_a_worker_that_ignores_hangups_goes_on(start, deed, other, end):
    """As under nohup. If it waits for a lost one, SIGKILL ends it."""
    before = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]
    processes = start(deed, other, before=before)
    processes[0].send_signal(signal.SIGHUP)
    errors(processes[0])
    assert processes[0].returncode == end


def test_a_hangup_has_its_meaning_again():
    libc = ctypes.CDLL(None)
    libc.signal.restype = ctypes.c_void_p
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with watchdog.watch({}, 60):
            pass
        # What it returns is the handler until now: None is the default.
        assert libc.signal(signal.SIGHUP, None) is None
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("cause", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("deed", ["waits", "sleeps"])
@pytest.mark.parametrize("seconds", [0, 0.5])
def test_a_worker_that_waits_can_be_ended(start, deed, cause, seconds):
    """As by Ctrl+C twice, which all processes of a terminal hear."""
    processes = start(deed, "waits")
    time.sleep(seconds)
    for _ in range(2):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(processes[0].pid, cause)
        time.sleep(0.1)
    assert "Expected" not in errors(processes[0])
    # By the signal, or by the watchdog if Python does not run.
    assert processes[0].returncode in (-cause, 1)
    assert "Received: worker 0 at" in errors(processes[1])


def test_workers_that_were_frozen_together_go_on(start):
    processes = start("is slow", "is slow")
    for cause in (signal.SIGSTOP, signal.SIGCONT):
        for process in processes:
            os.killpg(process.pid, cause)
        time.sleep(watchdog._SILENCE + 2 if cause == signal.SIGSTOP else 0)
    assert [errors(process) for process in processes] == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]


def test_nothing_begins_without_a_watchdog(monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")
    with (
        pytest.raises(ChildProcessError, match="Received: exit status 1"),
        watchdog.watch({}, 60),
    ):
        pytest.fail("The block began.")


@pytest.fixture
def watched(monkeypatch):
    """Two sockets to watchdogs, the other ends, and our process's pipe."""
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(2)]
        for one in (*pairs[0], *pairs[1]):
            stack.enter_context(one)
        out, into = os.pipe()
        monkeypatch.setattr(sys, "stdin", stack.enter_context(os.fdopen(out)))
        names = {pair[0]: f"worker {n}" for n, pair in enumerate(pairs)}
        pipe = stack.enter_context(os.fdopen(into, "wb", buffering=0))
        yield names, [pair[1] for pair in pairs], pipe


class Watch(threading.Thread):
    """`_keep_watch`, in a thread."""

    def __init__(self, pid, seconds, names):
        super().__init__(daemon=True)
        self.arguments, self.result = (pid, seconds, names, []), "none yet"
        self.start()

    def run(self):
        self.result = watchdog._keep_watch(*self.arguments)

    def end(self):
        self.join(timeout=20)
        assert not self.is_alive()
        return self.result


def test_others_are_told_once_a_second_that_this_one_runs(watched):
    names, others, pipe = watched
    watch = Watch(os.getpid(), 60, names)
    time.sleep(2.5)
    for other in others:
        assert other.recv(100) in (b".", b"..", b"...")  # By the machine.
        other.sendall(b".")
    pipe.write(b"!")
    assert watch.end() is None
    for other in others:
        assert other.recv(100).endswith(b"!")


def test_others_are_not_told_that_a_process_started_which_has_ended(watched):
    names, others, pipe = watched
    watch = Watch(os.getpid(), 60, names)
    assert others[0].recv(100) == b"."
    pipe.close()
    assert watch.end() is None
    others[0].settimeout(0.5)
    with pytest.raises(TimeoutError):
        others[0].recv(100)


def test_a_silent_worker_is_lost(watched, monkeypatch):
    """One that has started may be silent."""
    names, others, _ = watched
    monkeypatch.setattr(watchdog, "_SILENCE", 2)
    watch = Watch(os.getpid(), 60, names)
    others[0].sendall(b".!")
    others[0].close()
    for _ in range(3):
        time.sleep(1)
        others[1].sendall(b".")
        assert watch.is_alive()
    assert watch.end().endswith("Received: worker 1 is silent for 2 seconds\n")


def test_a_frozen_process_is_not_said_to_run(watched):
    names, others, pipe = watched
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            process.send_signal(signal.SIGSTOP)
            while not watchdog._is_stopped(process.pid):
                time.sleep(0.01)
            watch = Watch(process.pid, 60, names)
            others[0].settimeout(2.5)
            with pytest.raises(TimeoutError):
                others[0].recv(100)
            process.send_signal(signal.SIGCONT)
            assert others[0].recv(100) == b"."
            pipe.write(b"!")
            assert watch.end() is None
        finally:
            process.kill()
    assert not watchdog._is_stopped(process.pid)


def test_a_start_has_an_end(watched):
    names, others, _ = watched
    watch = Watch(os.getpid(), 2, names)
    for _ in range(3):
        others[0].sendall(b".")
        time.sleep(0.5)
    assert watch.end().endswith("Received: no start in 2 seconds\n")
