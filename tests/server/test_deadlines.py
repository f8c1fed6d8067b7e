"""Deadlines, clients that go, and calls that are too many."""

import contextlib
import time

import pytest
import tensorflow as tf

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from tensorflow_serving.apis import (  # noqa: E402
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_attention.server import model_configs, settings  # noqa: E402


@pytest.fixture
def start(run_server, model_folders):
    """A function of limits: a server with one thread, as a context."""
    config = model_configs.ModelConfig("shout", model_folders["shout"])

    def create(**bounds):
        bounds = settings.Limits(drain_seconds=1, **bounds)
        return run_server([config], bounds, num_threads=1)

    return create


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextlib.contextmanager
def predictions(server):
    """The service, as a client calls it."""
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


def request_of(text):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "shout"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([text]))
    return request


def translation(response):
    (text,) = tf.make_ndarray(response.outputs["translation"])
    return text.decode()


def texts(slow_model):
    """What the model has begun to compute."""
    return [
        text.decode()
        for batch in slow_model.batches
        for request in batch
        for text in request["text"]
    ]


def counts(server):
    """How many requests ended so: such as {"OK": 1}."""
    _, _, text = server.request("/monitoring/prometheus/metrics")
    begin = ':tensorflow:serving:request_count{model_name="shout",status="'
    found = [
        line.removeprefix(begin).split('"} ')
        for line in text.splitlines()
        if line.startswith(begin)
    ]
    return {code: int(number) for code, number in found}


def test_what_is_not_answered_in_time_is_504(start, slow_model):
    with start(timeout=1) as server:
        # The model computes the first, and the second waits for it.
        for text in ("first", "second"):
            status, _, answer = server.predict("shout", instances=[text])
            assert status == 504
            assert "The deadline is over" in answer["error"]
            assert server.application.predictor.queue.queued_rows == 0
        assert counts(server) == {"DEADLINE_EXCEEDED": 2}
        slow_model.may_end.set()
        assert server.predict("shout", instances=["third"])[0] == 200
    assert texts(slow_model) == ["first", "third"]


@pytest.mark.parametrize("code", ["DEADLINE_EXCEEDED", "CANCELLED"])
def test_a_call_that_nobody_waits_for_is_not_computed(start, slow_model, code):
    with start() as server, predictions(server) as service:
        queue = server.application.predictor.queue
        first = service.Predict.future(request_of("first"))
        until(lambda: queue.is_computing)
        seconds = 1 if code == "DEADLINE_EXCEEDED" else None
        second = service.Predict.future(request_of("second"), seconds)
        until(lambda: queue.queued_rows == 1)
        if code == "CANCELLED":
            second.cancel()
        until(second.done)
        assert second.code().name == code
        until(lambda: queue.queued_rows == 0)
        # gRPC may end a call whose deadline is over before the queue does.
        until(lambda: counts(server) in ({code: 1}, {"CANCELLED": 1}))
        slow_model.may_end.set()
        assert translation(first.result()) == "FIRST"
    assert texts(slow_model) == ["first"]


def test_calls_have_a_limit(start, slow_model):
    with start(max_connections=1) as server, predictions(server) as service:
        first = service.Predict.future(request_of("first"))
        until(lambda: slow_model.batches)
        with pytest.raises(grpc.RpcError) as refused:
            service.Predict(request_of("second"), 20)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        slow_model.may_end.set()
        assert translation(first.result()) == "FIRST"
