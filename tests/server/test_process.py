"""`keras-attention serve` as a process: reloads, signals and clients."""

import concurrent.futures
import contextlib
import http.client
import itertools
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

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

import keras_attention

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytestmark = pytest.mark.slow

# Requests that come together would be answered together otherwise.
ONE_AT_A_TIME = ("--num_batch_threads=1", "--max_batch_size=1")


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
            assert server.predict(["a"]) == ["third A"]
            # The one before takes its place.
            shutil.rmtree(truncated)
            until(lambda: server.predict(["a"]) == ["second A"])
        finally:
            is_over.set()
        # No request has failed: that would be raised here.
        answers = [one for task in asking for one in task.result()]
    assert {*answers} <= {"A", "second A", "third A"}
    states = server.states()
    assert "was changed or damaged" in states[4]["status"]["error_message"]
    assert states[1]["state"] == "END"
    assert {one["version"] for one in server.events("refused")} >= {4}


def test_sigterm_answers_what_is_in_flight(serve, folder):
    server = serve(folder, *ONE_AT_A_TIME)
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


def test_sigterm_loses_no_request(serve, folder):
    server = serve(folder)
    address = f"127.0.0.1:{server.grpc_port}"
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "shout"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a"]))
    path, body = "/v1/models/shout:predict", '{"instances": ["a"]}'

    def rest():
        """How many are answered on one connection until the port is closed."""
        connection = http.client.HTTPConnection("127.0.0.1", server.rest_port)
        with contextlib.closing(connection):
            for number in itertools.count():
                try:
                    connection.request("POST", path, body)
                except ConnectionRefusedError:
                    return number
                response = connection.getresponse()
                assert response.status == 200
                assert json.load(response) == {"predictions": ["A"]}

    def by_grpc():
        with grpc.insecure_channel(address) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            for number in itertools.count():
                try:
                    stub.Predict(request)
                except grpc.RpcError as error:
                    assert error.code() == grpc.StatusCode.UNAVAILABLE
                    # Any other one was taken and lost.
                    assert re.search(
                        "^The server ends$|onnection refused", error.details()
                    )
                    return number

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        asking = [threads.submit(ask) for ask in (rest, by_grpc) * 8]
        time.sleep(2)
        server.process.send_signal(signal.SIGTERM)
        num_answers = sum(task.result() for task in asking)
    assert server.process.wait() == 0
    codes = [event["code"] for event in server.events("request")]
    assert codes.count("OK") == num_answers > 16
    # The others came too late.
    assert {*codes} <= {"OK", "UNAVAILABLE"}


def _num_queued(server):
    """Rows that wait while another one is computed."""
    url = f"http://127.0.0.1:{server.rest_port}/monitoring/prometheus/metrics"
    with urllib.request.urlopen(url) as response:
        text = response.read().decode()
    return int(re.search(r"queued_rows (\d+)", text)[1])


def test_a_second_sigterm_ends_at_once(serve, folder):
    server = serve(folder, *ONE_AT_A_TIME)
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
    server = serve(folder, *ONE_AT_A_TIME, "--drain_seconds=1")
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
from keras_attention.server import application, model_configs, registry
from keras_attention.server import settings, versions

def load(path, number, in_parts=False):
    if "second" in str(path):
        time.sleep(600)
    return versions.load(path, number)

registry.Models.__init__.__defaults__ = (load,)
configs = [model_configs.from_folder(path) for path in sys.argv[1:]]
ports = {"rest_port": 0, "grpc_port": 0}
application.run(configs, settings.Settings(**ports), settings.Limits(), print)
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


FROZEN = """
import gc, os, signal, sys
from keras_attention.server import application, model_configs, settings

def end(server):
    print(gc.get_freeze_count())
    os.kill(os.getpid(), signal.SIGTERM)

configs = [model_configs.from_folder(sys.argv[1])]
ports = {"rest_port": 0, "grpc_port": 0}
application.run(configs, settings.Settings(**ports), settings.Limits(), end)
"""


def test_models_are_not_searched_for_garbage(folder):
    root = str(pathlib.Path(keras_attention.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", FROZEN, folder],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        check=True,
    )
    # TensorFlow alone has some hundred thousand objects.
    assert int(done.stdout) > 100_000


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
