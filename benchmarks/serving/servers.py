"""Servers as processes of their own, all of them on this machine.

`ours` is `keras-attention serve`, `triton` and `litserve` are the programs in
`benchmarks/peers/`. Each is a context: at its end, the server and all that it
has started are killed.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "benchmarks" / "peers"
PHRASES = ROOT / "savedmodels" / "phrases_en_de"


@dataclasses.dataclass
class Server:
    """A server that answers.

    Attributes:
        process: the process that was started.
        url: where it translates a text.
        body: function of a text to the bytes of a request.
        grpc: its address for gRPC, or "".
        log: the file with its standard error.
    """

    process: subprocess.Popen
    url: str
    body: Callable
    grpc: str = ""
    log: pathlib.Path | None = None

    @property
    def megabytes(self) -> float:
        """The memory that it has now (Linux)."""
        return self._status("VmRSS")

    @property
    def most_megabytes(self) -> float:
        """The most memory that it has had (Linux)."""
        return self._status("VmHWM")

    def _status(self, name):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) / 1000

    def events(self, name: str) -> list[dict]:
        """The lines of its log that tell of one kind of event."""
        lines = self.log.read_text().split("\n")
        events = [json.loads(line) for line in lines if line[:1] == "{"]
        return [event for event in events if event["event"] == name]


def v1_body(text: str) -> bytes:
    """A request as TensorFlow Serving takes it."""
    return json.dumps({"instances": [text]}).encode()


def v2_body(text: str) -> bytes:
    """A request as KServe's second protocol has it."""
    tensor = {"name": "text", "shape": [1, 1], "datatype": "BYTES"}
    return json.dumps({"inputs": [tensor | {"data": [text]}]}).encode()


@contextlib.contextmanager
def ours(log: pathlib.Path, *arguments):
    """`keras-attention serve` on free ports.

    Args:
        log: the file for its standard error.
        *arguments: those of the command line, the first model first.
    """
    command = [sys.executable, "-m", "keras_attention", "serve"]
    command += [*map(str, arguments), "--port=0", "--rest_api_port=0"]
    with _process(command, log, subprocess.PIPE) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        if not lines[0].startswith("Models: "):
            sys.exit(log.read_text()[-2000:])
        name = re.split("[ ,\n]", lines[0])[1]
        rest_port, grpc_port = (
            int(re.search(r"port: (\d+)", line)[1]) for line in lines[1:]
        )
        url = f"http://127.0.0.1:{rest_port}/v1/models/{name}:predict"
        grpc = f"127.0.0.1:{grpc_port}"
        yield Server(process, url, v1_body, grpc, log)


@contextlib.contextmanager
def triton(
    log: pathlib.Path,
    python: str,
    version: pathlib.Path,
    signatures: tuple[str, ...] = ("serving_default",),
):
    """Triton, by an interpreter of an environment that has it.

    Args:
        log: the file for its standard error.
        python: the interpreter.
        version: the folder of a SavedModel.
        signatures: what is served, each as a model, one that translates first.
    """
    port, grpc_port = _free_port(), _free_port()
    program = PEERS / "serve_triton.py"
    command = [python, program, version, port, grpc_port, *signatures]
    with _process(command, log) as process:
        url = f"http://127.0.0.1:{port}/v2/models/{signatures[0]}/infer"
        server = Server(process, url, v2_body, f"127.0.0.1:{grpc_port}", log)
        yield _ready(server)


@contextlib.contextmanager
def litserve(log: pathlib.Path, python: str, version: pathlib.Path):
    """LitServe, by an interpreter of an environment that has it."""
    port = _free_port()
    command = [python, PEERS / "serve_litserve.py", version, port]
    with _process(command, log) as process:
        url = f"http://127.0.0.1:{port}/predict"
        yield _ready(Server(process, url, v1_body, log=log))


@contextlib.contextmanager
def _process(command, log, stdout=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Whoever ends the program ends its servers.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with open(log, "w") as file:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=stdout or file,
            stderr=file,
            env=environment,
            text=True,
            # A group of its own, so that its children end with it.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def _ready(server: Server) -> Server:
    """Waits until a server translates."""
    end = time.monotonic() + 600
    while server.process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            ask(server, "one")
            return server
        time.sleep(0.5)
    sys.exit(f"{server.url} does not answer\n{server.log.read_text()[-2000:]}")


def ask(server: Server, text: str) -> dict:
    """One answer.

    Raises:
        OSError: If there is none, or if it is an error.
    """
    request = urllib.request.Request(
        server.url, server.body(text), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def phrases(count: int = 1000) -> list[str]:
    """English texts like those that the model `phrases_en_de` has learned."""
    from keras_attention.data.embedded import phrases

    pairs = phrases.generate(train=101, validation=1, test=count)["test"]
    return [pair.source for pair in pairs]
