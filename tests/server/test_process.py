"""`keras-attention serve` as a process: reloads, signals and clients."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

import keras_attention

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytestmark = pytest.mark.slow


class Process:
    """A server, its ports and its log."""

    def __init__(self, log, *arguments):
        root = str(pathlib.Path(keras_attention.__file__).parents[1])
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "keras_attention", "serve"]
                + [str(one) for one in arguments]
                + ["--port=0", "--rest_api_port=0"]
                + ["--file_system_poll_wait_seconds=0.1"],
                env={**os.environ, "PYTHONPATH": root},
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

    def states(self, name="shout"):
        statuses = self.request(f"/v1/models/{name}")["model_version_status"]
        return {int(one["version"]): one for one in statuses}


@pytest.fixture
def serve(tmp_path):
    """A function of arguments that starts a server."""
    with contextlib.ExitStack() as stack:

        def start(*arguments):
            one = Process(tmp_path / "log", *arguments)
            stack.callback(one.process.stdout.close)
            stack.callback(one.process.wait)
            stack.callback(one.process.kill)
            return one

        yield start


@pytest.fixture
def folder(shouter, tmp_path):
    shouter(tmp_path / "shout", is_slow=True)
    return tmp_path / "shout"


def until(condition):
    """Waits, for as long as the test may take."""
    while not condition():
        time.sleep(0.05)


def test_versions_are_swapped_under_load(serve, folder, shouter):
    server = serve(folder)
    is_over = threading.Event()

    def ask():
        answers = []
        while not is_over.is_set():
            answers += server.predict(["a"])
        return answers

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask) for _ in range(4)]
        try:
            shouter(folder, "second ")
            until(lambda: server.predict(["a"]) == ["second A"])
            truncated = shouter(folder, "third ")
            # Refused as a whole: its manifest was right for a moment only.
            variables = truncated / "variables"
            (data,) = variables.glob("*.data*")
            broken = folder / "4"
            shutil.copytree(truncated, broken)
            (broken / "variables" / data.name).write_bytes(b"")
            until(lambda: server.states().get(4, {}).get("state") == "END")
            until(lambda: server.states()[3]["state"] == "AVAILABLE")
            shutil.rmtree(truncated)
            time.sleep(0.5)
        finally:
            is_over.set()
        answers = [one for task in asking for one in task.result()]
    assert {*answers} <= {"A", "second A", "third A"}
    assert server.predict(["a"]) == ["third A"]
    states = server.states()
    assert "was changed or damaged" in states[4]["status"]["error_message"]
    assert states[1]["state"] == "END"
    lines = server.log.read_text().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    refused = [one for one in events if one["event"] == "refused"]
    assert {one["version"] for one in refused} >= {4}


def test_sigterm_answers_what_is_in_flight(serve, folder):
    server = serve(folder, "--num_batch_threads=1")
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        asking = [
            threads.submit(server.predict, ["x" * 20], "slow") for _ in range(8)
        ]
        until(lambda: _num_queued(server) == 7)
        server.process.send_signal(signal.SIGTERM)
        assert [task.result() for task in asking] == [["X" * 20]] * 8
    assert server.process.wait() == 0
    with pytest.raises(urllib.error.URLError):
        server.request("/healthz")


def _num_queued(server):
    """Rows that wait while another one is computed."""
    url = f"http://127.0.0.1:{server.rest_port}/monitoring/prometheus/metrics"
    with urllib.request.urlopen(url) as response:
        text = response.read().decode()
    return int(re.search(r"queued_rows (\d+)", text)[1])


def test_a_second_sigterm_ends_at_once(serve, folder):
    server = serve(folder, "--num_batch_threads=1")
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        asking = [
            threads.submit(server.predict, ["x" * 60_000], "slow")
            for _ in range(2)
        ]
        until(lambda: _num_queued(server) == 1)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: '"stopping"' in server.log.read_text())
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 128 + signal.SIGTERM
        for task in asking:
            with pytest.raises(OSError):
                task.result()


def test_a_long_batch_is_given_up_after_the_drain(serve, folder):
    server = serve(folder, "--num_batch_threads=1", "--drain_seconds=1")
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        asking = [
            threads.submit(server.predict, ["x" * 60_000], "slow")
            for _ in range(2)
        ]
        until(lambda: _num_queued(server) == 1)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=30) == 0
        for task in asking:
            with pytest.raises(urllib.error.HTTPError, match="503") as error:
                task.result()
            error.value.close()


LOADING = """
import sys, time
from keras_attention.server import limits, model_configs, models, process
from keras_attention.server import settings, versions

def load(path, number):
    if "second" in str(path):
        time.sleep(600)
    return versions.load(path, number)

models.Models.__init__.__defaults__ = (load,)
configs = [model_configs.from_folder(path) for path in sys.argv[1:]]
ports = {"rest_port": 0, "grpc_port": 0}
process.run(configs, settings.Settings(**ports), limits.Limits(), print)
"""


def test_sigterm_while_a_model_is_loaded_ends_cleanly(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "second")
    root = str(pathlib.Path(keras_attention.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", LOADING, folder, tmp_path / "second"],
        env={**os.environ, "PYTHONPATH": root},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        events = []
        for line in server.stderr:
            if line.startswith("{"):
                events.append(json.loads(line))
                if (events[-1]["event"], len(events)) == ("load", 3):
                    server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
    names = [event["event"] for event in events]
    assert names == ["load", "available", "load", "stopping", "stopped"]


def test_a_file_of_models(serve, folder, model_folders, tmp_path):
    config = tmp_path / "models.config"
    config.write_text(
        f'model_config_list {{ config {{ name: "a" base_path: "{folder}" '
        'version_labels { key: "stable" value: 1 } } '
        f'config {{ name: "b" base_path: "{model_folders["numbers"]}" }} }}'
    )
    server = serve(f"--model_config_file={config}")
    answer = server.request(
        "/v1/models/a/labels/stable:predict", {"instances": ["a"]}
    )
    assert answer == {"predictions": ["A"]}
    assert 7 in server.states("b")


def test_curl(serve, folder):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    server = serve(folder)
    url = f"http://127.0.0.1:{server.rest_port}/v1/models/shout:predict"
    done = subprocess.run(
        ["curl", "-s", url, "-d", '{"instances": ["a"]}'],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"predictions": ["A"]}
