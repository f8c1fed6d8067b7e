"""Small SavedModels, and a server of them that runs in a thread."""

import asyncio
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import browsing
import pytest
import tensorflow as tf

import keras_attention
from keras_attention.serving import savedmodel

TEXT = tf.TensorSpec([None], tf.string, name="text")
REFERENCE = tf.TensorSpec([None], tf.string, name="reference")
LIMIT = 5


def _words(text):
    """The words of each text, END among them: [B, S], "" pads."""
    return tf.strings.split(text + " </s>").to_tensor("")


class Shouter(tf.Module):
    """Answers as a translator does: the words in capitals, last one first."""

    def __init__(self, mark="", is_slow=False):
        super().__init__()
        self.mark = tf.Variable(mark)
        functions = {
            "serving_default": (self._translate, [TEXT]),
            "with_attention": (self._attend, [TEXT]),
            "n_best": (self._n_best, [TEXT]),
            "score": (self._score, [TEXT, REFERENCE]),
            "num_tokens": (self._num_tokens, [TEXT]),
        }
        if is_slow:
            functions["slow"] = (self._wait, [TEXT])
        self._signatures = {
            name: tf.function(function, input_signature=specs, autograph=False)
            for name, (function, specs) in functions.items()
        }

    @property
    def signatures(self):
        return self._signatures

    def _translate(self, text):
        # The text "fail" is one that the model cannot read.
        check = tf.debugging.assert_none_equal(text, "fail", message="I cannot")
        with tf.control_dependencies([check]):
            return {"translation": self.mark + tf.strings.upper(text)}

    def _wait(self, text):
        """It takes long for a long text: for one letter, some milliseconds."""
        steps = 10_000 * tf.reduce_max(tf.strings.length(text))
        (last,) = tf.while_loop(
            lambda i: i < steps, lambda i: [i + 1], [tf.constant(0)]
        )
        with tf.control_dependencies([last]):
            return self._translate(text)

    def _attend(self, text):
        source = _words(text)
        target = tf.strings.upper(source)
        longest = tf.shape(source)[1]
        is_word = tf.cast(source != "", tf.float32)
        weights = is_word[:, None, :] * is_word[:, :, None]
        weights /= tf.reduce_sum(is_word, 1)[:, None, None]
        return {
            **self._translate(text),
            "source_tokens": source,
            "target_tokens": target[:, :longest],
            "attention": weights,
            "truncated": self._lengths(text) > LIMIT,
        }

    def _n_best(self, text):
        best = tf.stack([self.mark + text, tf.zeros_like(text)], 1)
        scores = tf.constant([[-0.1, -float("inf")]])
        return {
            "translations": tf.ensure_shape(best, [None, 2]),
            "scores": tf.tile(scores, [tf.size(text), 1]),
        }

    def _score(self, text, reference):
        lengths = self._lengths(reference)
        return {
            "log_probability": -tf.cast(lengths, tf.float32),
            "num_tokens": tf.minimum(lengths, LIMIT),
            "truncated": (lengths > LIMIT) | (self._lengths(text) > LIMIT),
        }

    def _lengths(self, text):
        return tf.cast(tf.strings.split(text + " </s>").row_lengths(), tf.int32)

    def _num_tokens(self, text):
        lengths = self._lengths(text)
        return {"num_tokens": lengths, "limit": lengths * 0 + LIMIT}


class Numbers(tf.Module):
    """A SavedModel of somebody else: numbers, and rows of any length."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 3], tf.float32, name="x"),
            tf.TensorSpec([None], tf.int64, name="k"),
        ]
    )
    def weighted(self, x, k):
        return {
            "y": x * tf.cast(k, tf.float32)[:, None],
            "raw_bytes": tf.strings.as_string(k),
        }

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")]
    )
    def padded(self, ids):
        # The axis of any length is not one that the server knows.
        return {"doubled": tf.concat([ids, ids], axis=1)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    def scalar(self, x):
        return {"y": x + 1}


@pytest.fixture(scope="session")
def shouter():
    """A function that writes the next version of a translator's likeness."""

    def write(folder, mark="", is_slow=False):
        return savedmodel.export(Shouter(mark, is_slow), folder)

    return write


@pytest.fixture(scope="session")
def model_folders(shouter, tmp_path_factory):
    """Name -> folder of two models with a version each."""
    root = tmp_path_factory.mktemp("models")
    shouter(root / "shout")
    numbers = Numbers()
    tf.saved_model.save(
        numbers,
        str(root / "numbers" / "7"),
        signatures={
            "serving_default": numbers.weighted,
            "padded": numbers.padded,
            "scalar": numbers.scalar,
        },
    )
    return {"shout": root / "shout", "numbers": root / "numbers"}


@dataclasses.dataclass
class Client:
    """What a test needs of a server: its ports, and requests over HTTP."""

    rest_port: int
    grpc_port: int
    application: object

    def request(self, path, body=None, method=None, headers=None):
        """Status, headers and JSON (or text) of an answer."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.rest_port, 60)
        with contextlib.closing(connection):
            method = method or ("GET" if body is None else "POST")
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            text = response.read().decode()
        is_json = "json" in response.headers["content-type"]
        return (
            response.status,
            response.headers,
            json.loads(text) if is_json else text,
        )

    def predict(self, name, **request):
        """The answer to a request of :predict."""
        return self.request(f"/v1/models/{name}:predict", request)

    def raw(self, data, timeout=60):
        """What comes back for some bytes, until the server hangs up."""
        with socket.create_connection(
            ("127.0.0.1", self.rest_port), timeout
        ) as connection:
            connection.sendall(data)
            parts = []
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(65536):
                    parts.append(part)
        return b"".join(parts)


# What was loaded, for other servers with the same files: it takes a second.
_LOADED = {}


def load(path, number, in_parts=False):
    """Loads a version for all servers of the tests."""
    from keras_attention.server import served_model, versions

    key = path, number, served_model.fingerprint(path)
    if key not in _LOADED:
        _LOADED[key] = versions.load(path, number)
    return _LOADED[key]


@contextlib.contextmanager
def running(configs, limits=None, **settings):
    """A server in a thread, which ends sooner than others."""
    from keras_attention.server import application, registry
    from keras_attention.server import settings as server_settings

    ready = threading.Event()
    state = {}

    async def main():
        state["loop"] = asyncio.get_running_loop()
        state["stop"] = asyncio.Event()
        one = application.Application(
            configs,
            server_settings.Settings(
                **{"rest_port": 0, "grpc_port": 0, "num_threads": 2} | settings
            ),
            limits or server_settings.Limits(),
        )
        try:
            await one.start()
            state["application"] = one
        except Exception as error:
            state["error"] = error
            return
        finally:
            ready.set()
        await state["stop"].wait()
        await one.stop()
        # What was given up closes its connection in a later turn of the loop.
        end = time.monotonic() + 2
        while one._http.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(0.01)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry.Models.__init__, "__defaults__", (load,))
        patch.setattr(server_settings, "GRACE", 0.1)
        thread = threading.Thread(target=asyncio.run, args=[main()])
        thread.start()
        ready.wait()
        if "error" in state:
            thread.join()
            raise state["error"]
        one = state["application"]
        try:
            yield Client(one.rest_port, one.grpc_port, one)
        finally:
            state["loop"].call_soon_threadsafe(state["stop"].set)
            thread.join()


@pytest.fixture(scope="session")
def run_server():
    """A function of configurations: a server in a thread, as a context."""
    return running


@dataclasses.dataclass
class SlowModel:
    """Models that compute until they may end, and the batches they began."""

    may_end: threading.Event = dataclasses.field(
        default_factory=threading.Event
    )
    batches: list = dataclasses.field(default_factory=list)


@pytest.fixture
def slow_model(monkeypatch):
    """A `SlowModel`: so are all that are served."""
    from keras_attention.server import execution

    slow, compute = SlowModel(), execution.split_on_failure

    def wait(version, signature, requests, *arguments):
        slow.batches.append(requests)
        assert slow.may_end.wait(60)
        return compute(version, signature, requests, *arguments)

    monkeypatch.setattr(execution, "split_on_failure", wait)
    yield slow
    slow.may_end.set()


@pytest.fixture(scope="module")
def server(model_folders, tmp_path_factory):
    """A server of the two models, and its client."""
    from keras_attention.server import model_configs, settings

    configs = [
        model_configs.ModelConfig(
            "shout", model_folders["shout"], labels={"stable": 1}
        ),
        model_configs.ModelConfig("numbers", model_folders["numbers"]),
    ]
    bounds = settings.Limits(max_rows=50, max_body_bytes=20_000)
    root = tmp_path_factory.mktemp("root")
    with running(configs, bounds, reload_root=root) as client:
        yield client


class Process:
    """A server, its ports and its log."""

    def __init__(self, log, *arguments, **environment):
        root = str(pathlib.Path(keras_attention.__file__).parents[1])
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "keras_attention", "serve"]
                + [str(one) for one in arguments]
                + ["--port=0", "--rest_api_port=0"]
                + ["--file_system_poll_wait_seconds=0.1"],
                env={**os.environ, "PYTHONPATH": root, **environment},
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self.log = log
        lines = [self.process.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("Models: "), log.read_text()
        self.rest_port, self.grpc_port = (
            int(re.search(r"port: (\d+)", line)[1]) for line in lines[1:]
        )

    def predict(self, texts, signature="serving_default", name="shout"):
        body = {"signature_name": signature, "instances": texts}
        answer = self.request(f"/v1/models/{name}:predict", body)
        return answer["predictions"]

    def request(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.rest_port}{path}"
        with urllib.request.urlopen(url, data, timeout=120) as response:
            return json.load(response)

    def events(self, name):
        """The lines of the log that tell of one kind of event."""
        lines = self.log.read_text().split("\n")
        events = [json.loads(line) for line in lines if line[-1:] == "}"]
        return [event for event in events if event["event"] == name]

    def states(self, name="shout"):
        statuses = self.request(f"/v1/models/{name}")["model_version_status"]
        return {int(one["version"]): one for one in statuses}


@pytest.fixture
def serve(tmp_path):
    """A function of arguments that starts a server as a process."""
    with contextlib.ExitStack() as stack:

        def start(*arguments, log=tmp_path / "log", **environment):
            one = Process(log, *arguments, **environment)
            stack.callback(one.process.stdout.close)
            stack.callback(one.process.wait)
            stack.callback(one.process.kill)
            return one

        yield start


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window."""
    with browsing.launched() as browser:
        yield browser


@pytest.fixture
def open_page(chromium, served):
    """A function of a model and a width, where `served` is an address."""
    with browsing.opening(chromium, served) as start:
        yield start
