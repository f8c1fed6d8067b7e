"""A server's start, what it refuses, and what it logs if it is asked to."""

import io
import json
import socket

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention.server import limits, logs, model_configs  # noqa: E402

PREDICT = "/v1/models/shout:predict"
HEAD = b"POST /v1/models/shout:predict HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture
def configs(model_folders):
    return [model_configs.ModelConfig("shout", model_folders["shout"])]


def test_more_than_may_wait_is_refused_for_now(run_server, configs):
    bounds = limits.Limits(max_queued_rows=1)
    with run_server(configs, bounds) as server:
        status, headers, _ = server.predict("shout", instances=["a", "b"])
        assert (status, headers["retry-after"]) == (429, "1")
        assert server.predict("shout", instances=["a"])[0] == 200
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "shout"
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a", "b"]))
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            with pytest.raises(grpc.RpcError) as refused:
                stub.Predict(request)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_slow_client_is_not_waited_for(run_server, configs):
    with run_server(configs, limits.Limits(timeout=0.2)) as server:
        # Nothing, half a head, and half a body.
        assert server.raw(b"") == b""
        assert server.raw(HEAD) == b""
        answer = server.raw(HEAD + b"Content-Length: 9\r\n\r\n{")
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_model_that_cannot_be_loaded_ends_the_start(run_server, tmp_path):
    version = tmp_path / "bad" / "3"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"no graph")
    bad = model_configs.ModelConfig("bad", tmp_path / "bad")
    with pytest.raises(ValueError, match="Expected a version of bad") as error:
        with run_server([bad]):
            pass
    assert "version 3: " in str(error.value)


@pytest.mark.parametrize(
    "port, flag", [("rest_port", "rest_api_port"), ("grpc_port", "port")]
)
def test_a_port_that_is_taken_ends_the_start(run_server, configs, port, flag):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"and --{flag} "):
            with run_server(configs, **{port: number}):
                pass


def test_texts_are_logged_if_asked_for(run_server, configs):
    stream = io.StringIO()
    handler = logs.begin(stream)
    try:
        with run_server(configs, log_texts=True) as server:
            headers = {"X-Request-Id": "mine"}
            server.request(
                PREDICT, {"instances": ["öffentlich"]}, None, headers
            )
    finally:
        logs.end(handler)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (line,) = [line for line in lines if line.get("id") == "mine"]
    assert line["texts"] == {"instances": ["öffentlich"]}
    events = [line["event"] for line in lines]
    assert events[0] == "load" and events[-1] == "stopped"
