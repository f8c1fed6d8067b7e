"""A process that ends another one if a worker is lost at TensorFlow's start.

TensorFlow waits for a lost worker for more than half an hour. Python does not
run meanwhile: neither a thread nor a handler of Ctrl+C. Hence each worker has a
process of its own that keeps watch. The leader's is connected to each of the
others. Both sides say once a second that their worker runs.

Usage: python watchdog.py PID SECONDS SOCKET=NAME [SOCKET=NAME ...]

PID is the process that starts TensorFlow. SOCKET is the file descriptor of a
connection to another watchdog. NAME says whose it is. Standard output brings a
byte when the watch begins. Standard input brings a byte when TensorFlow has
started, and ends when PID has ended.
"""

import contextlib
import ctypes
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time

# What a watchdog tells the others, and for how many seconds it may be silent.
_RUNS, _HAS_STARTED = b".", b"!"
_SILENCE = 15


@contextlib.contextmanager
def watch(connections: dict[str, socket.socket], seconds: int):
    """Ends this process if a worker is lost while the block runs.

    Args:
        connections: to the other workers, by their names. They end here.
        seconds: how long the block may run.

    Raises:
        ChildProcessError: If the watchdog does not start.
    """
    command = [sys.executable, "-I", "-S", __file__]
    command += [str(os.getpid()), str(seconds)]
    for name, connection in connections.items():
        command.append(f"{connection.fileno()}={name}")
    with (
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[one.fileno() for one in connections.values()],
        ) as process,
        _ended_by_hangup(),
    ):
        # Only the watchdog has them now, so that they end with it.
        for connection in connections.values():
            connection.close()
        if not process.stdout.read(1):
            raise ChildProcessError(
                "Expected a process that keeps watch over the workers: its "
                "own output says why there is none. Received: exit status "
                f"{process.wait()}"
            )
        yield
        process.communicate(_HAS_STARTED)


@contextlib.contextmanager
def _ended_by_hangup():
    """Lets SIGHUP end this process while Python does not run.

    The status is 1, the number of the signal. SIGKILL would not do: from inside
    a container, it does not end the first process. Where SIGHUP is ignored, as
    under nohup, or has a handler, it remains so.
    """
    if signal.getsignal(signal.SIGHUP) != signal.SIG_DFL:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = ctypes.c_int, ctypes.c_void_p
    libc.signal.restype = ctypes.c_void_p
    end = ctypes.cast(libc._exit, ctypes.c_void_p)
    libc.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        libc.signal(signal.SIGHUP, int(signal.SIG_DFL))


def _main(pid, seconds, *connections):
    """Ends the process if it waits for a worker that is lost."""
    told_to_end = []
    for cause in (signal.SIGINT, signal.SIGTERM):
        # A shell's background jobs ignore Ctrl+C.
        if signal.getsignal(cause) != signal.SIG_IGN:
            signal.signal(cause, lambda *_: told_to_end.append(True))
    names = {}
    for text in connections:
        descriptor, _, name = text.partition("=")
        names[socket.socket(fileno=int(descriptor))] = name
    os.write(sys.stdout.fileno(), _RUNS)
    words = _keep_watch(pid, seconds, names, told_to_end)
    if words is None:
        return
    # Nobody may read it, or nobody now, as where a terminal is stopped.
    with contextlib.suppress(OSError, ValueError):
        if select.select([], [2], [], 1)[1]:
            os.write(2, words.encode())
    for cause in (signal.SIGHUP, signal.SIGKILL):
        if os.getppid() == pid:
            os.kill(pid, cause)
            select.select([sys.stdin], [], [], 1)


def _keep_watch(pid, seconds, names, told_to_end):
    """Why the process is to end, or None if it has started or ended.

    Time is counted in rounds of one second, and so are other workers' silences.
    A process that was frozen, as all may be together, has had no rounds.
    """
    selector = selectors.DefaultSelector()
    for source in (sys.stdin, *names):
        selector.register(source, selectors.EVENT_READ)
    silences = dict.fromkeys(names, 0)
    for _ in range(seconds):
        # The process was told to end, too. It does so unless it waits.
        ends = bool(told_to_end)
        due = time.monotonic() + 1
        while (left := due - time.monotonic()) > 0:
            ready = [key.fileobj for key, _ in selector.select(left)]
            if sys.stdin in ready:
                if os.read(sys.stdin.fileno(), 1):
                    _tell(names, _HAS_STARTED)
                return None
            for connection in ready:
                said = _received(connection)
                if not said:
                    return _lost(f"{names[connection]} has ended")
                silences[connection] = 0
                if _HAS_STARTED in said:  # It ends its watch.
                    selector.unregister(connection)
                    del silences[connection]
        if ends:
            return ""
        if not _is_stopped(pid):
            _tell(names, _RUNS)
        for connection in silences:
            silences[connection] += 1
            if silences[connection] > _SILENCE:
                return _lost(
                    f"{names[connection]} is silent for {_SILENCE} seconds"
                )
    return (
        "Expected TensorFlow to start on all workers: let them reach each "
        "other's ports, and start all of them again. Received: no start in "
        f"{seconds} seconds\n"
    )


def _lost(what):
    return (
        "Expected TensorFlow to start on all workers: one is lost, and its own "
        "output may say why. Start all of them again, as this one ends, too. "
        f"Received: {what}\n"
    )


def _received(connection):
    """What the other side has said, or nothing if it has ended."""
    with contextlib.suppress(OSError):
        return connection.recv(1000)
    return b""


def _tell(connections, word):
    for connection in connections:
        with contextlib.suppress(OSError):  # One that has ended is found.
            connection.sendall(word)


def _is_stopped(pid):
    """Whether the process is frozen, as far as the system tells."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # PID (NAME) STATE ..., and a name may have any character.
            state = file.read().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return state in (b"T", b"t")


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
