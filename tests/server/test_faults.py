"""`keras-attention serve` when the machine around it fails."""

import concurrent.futures
import glob
import json
import shutil
import signal
import subprocess
import time
import urllib.request

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytestmark = pytest.mark.slow


def until(condition):
    """Waits, for as long as the test may take."""
    while not condition():
        time.sleep(0.05)


def by_grpc(server, timeout=None):
    """A request's code and answer."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "shout"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a"]))
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        try:
            response = stub.Predict(request, timeout)
        except grpc.RpcError as error:
            return error.code().name, None
        return "OK", tf.make_ndarray(response.outputs["translation"])[0]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]
    if shutil.which("mount") is None or subprocess.run(command).returncode:
        pytest.skip("only root may mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_stops_nothing(serve, shouter, small_disk):
    folder = small_disk / "shout"
    shouter(folder)
    server = serve(folder, log=small_disk / "log")
    with open(small_disk / "filling", "wb", buffering=0) as file:
        with pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(1000))
    # Nothing of an export is left, and a part of a copy is refused.
    with pytest.raises((OSError, tf.errors.OpError)):
        shouter(folder, "new ")
    with pytest.raises(OSError):
        shutil.copytree(folder / "1", folder / "2")
    until(lambda: server.states().get(2, {}).get("state") == "END")
    assert server.states()[1]["state"] == "AVAILABLE"
    # The log cannot be written either.
    for _ in range(50):
        assert server.predict(["a"]) == ["A"]
    assert len(server.events("request")) < 50
    (small_disk / "filling").unlink()
    shutil.rmtree(folder / "2")
    shouter(folder, "new ")
    until(lambda: server.predict(["a"]) == ["new A"])


def test_a_clock_that_jumps_changes_nothing(serve, shouter, tmp_path):
    libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not libraries:
        pytest.skip("libfaketime is not installed")
    shouter(tmp_path / "shout")
    clock = tmp_path / "clock"
    clock.write_text("+0")
    server = serve(
        tmp_path / "shout",
        LD_PRELOAD=libraries[0],
        FAKETIME_TIMESTAMP_FILE=str(clock),
        FAKETIME_NO_CACHE="1",
        # As in a machine whose clock is set.
        FAKETIME_DONT_FAKE_MONOTONIC="1",
    )
    for jump, mark in (("+2d", "b"), ("-400d", "c"), ("+0", "d")):
        clock.write_text(jump)
        assert by_grpc(server, timeout=20)[0] == "OK"
        shouter(tmp_path / "shout", mark)
        until(lambda mark=mark: server.predict(["a"]) == [f"{mark}A"])
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=60) == 0
    times = [event["time"] for event in server.events("request")]
    # 400 days back is another year: the server saw the clock jump.
    assert len({moment[:4] for moment in times}) > 1


def test_a_server_that_stood_still_goes_on(serve, shouter, tmp_path):
    shouter(tmp_path / "shout")
    server = serve(tmp_path / "shout")
    assert server.predict(["a"]) == ["A"]
    with concurrent.futures.ThreadPoolExecutor(30) as threads:
        server.process.send_signal(signal.SIGSTOP)
        try:
            start = time.monotonic()
            rest = [threads.submit(server.predict, ["a"]) for _ in range(10)]
            patient = [threads.submit(by_grpc, server) for _ in range(10)]
            hasty = [threads.submit(by_grpc, server, 2) for _ in range(10)]
            for task in hasty:
                assert task.result()[0] == "DEADLINE_EXCEEDED"
            time.sleep(max(0, start + 10 - time.monotonic()))
        finally:
            server.process.send_signal(signal.SIGCONT)
        assert [task.result() for task in rest] == [["A"]] * 10
        assert [task.result() for task in patient] == [("OK", b"A")] * 10
    assert server.predict(["a"]) == ["A"]
    assert by_grpc(server, timeout=20)[0] == "OK"


def test_a_version_that_is_deleted_answers_with_all_signatures(
    serve, shouter, tmp_path
):
    shouter(tmp_path / "shout")
    server = serve(tmp_path / "shout")
    shutil.rmtree(tmp_path / "shout")
    time.sleep(0.5)
    for signature in ("serving_default", "n_best", "with_attention"):
        assert len(server.predict(["a", "b"], signature)) == 2
    url = f"http://127.0.0.1:{server.rest_port}/readyz"
    with urllib.request.urlopen(url) as response:
        assert json.load(response)["models"] == {"shout": [1]}
