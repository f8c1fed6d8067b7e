"""The gRPC services of a server that runs."""

import contextlib
import io
import json

import pytest
import tensorflow as tf

grpc = pytest.importorskip("grpc")
health_pb2 = pytest.importorskip(
    "grpc_health.v1.health_pb2", reason="the extra `serve` is not installed"
)
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from grpc_health.v1 import health_pb2_grpc  # noqa: E402
from tensorflow_serving.apis import (  # noqa: E402
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from keras_attention.server import logs, model_configs  # noqa: E402


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        yield channel


@pytest.fixture(scope="module")
def predictions(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def model_service(channel):
    return model_service_pb2_grpc.ModelServiceStub(channel)


def predict_request(name="shout", signature="", outputs=(), **inputs):
    request = predict_pb2.PredictRequest(output_filter=outputs)
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return request


@contextlib.contextmanager
def refused(code):
    with pytest.raises(grpc.RpcError) as error:
        yield
    assert error.value.code() == code, error.value.details()


def test_predict(predictions):
    response = predictions.Predict(predict_request(text=["a", "b"]))
    assert [*response.outputs] == ["translation"]
    found = tf.make_ndarray(response.outputs["translation"])
    assert found.tolist() == [b"A", b"B"]
    assert response.model_spec.version.value == 1
    assert response.model_spec.signature_name == "serving_default"


def test_named_version_label_signature_and_outputs(predictions):
    request = predict_request("shout", "n_best", ["scores"], text=["a"])
    request.model_spec.version_label = "stable"
    response = predictions.Predict(request)
    assert [*response.outputs] == ["scores"]
    request.model_spec.version.value = 1
    scores = predictions.Predict(request).outputs["scores"]
    assert tf.make_ndarray(scores).shape == (1, 2)


def test_an_empty_batch_has_an_empty_answer(predictions):
    empty = tf.constant([], tf.string).numpy()
    request = predict_request()
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(empty, tf.string))
    response = predictions.Predict(request)
    assert tf.make_ndarray(response.outputs["translation"]).shape == (0,)


@pytest.mark.parametrize(
    "request_, code",
    [
        (predict_request("x", text=["a"]), "NOT_FOUND"),
        (predict_request("", text=["a"]), "INVALID_ARGUMENT"),
        (predict_request("shout", "x", text=["a"]), "FAILED_PRECONDITION"),
        (predict_request(text=[1.0]), "INVALID_ARGUMENT"),
        (predict_request(text=[["a"]]), "INVALID_ARGUMENT"),
        (predict_request(text=["a"] * 51), "INVALID_ARGUMENT"),
        (predict_request(other=["a"]), "INVALID_ARGUMENT"),
        (predict_request(text=["fail"]), "INVALID_ARGUMENT"),
        (predict_request(text=["1 2 3 4 5"]), "INVALID_ARGUMENT"),
        (predict_request(outputs=["x"], text=["a"]), "INVALID_ARGUMENT"),
        (
            predict_request(outputs=["translation"] * 2, text=["a"]),
            "INVALID_ARGUMENT",
        ),
        (predict_request(outputs=["x" * 9999], text=["a"]), "INVALID_ARGUMENT"),
        (predict_request(text=["a" * 30_000]), "RESOURCE_EXHAUSTED"),
    ],
)
def test_wrong_requests_are_refused(predictions, request_, code):
    with refused(getattr(grpc.StatusCode, code)):
        predictions.Predict(request_)


def test_a_message_is_measured_when_it_is_decompressed(predictions):
    request = predict_request(text=["a" * 1_000_000])
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        predictions.Predict(request, compression=grpc.Compression.Gzip)


def test_bytes_that_are_no_message_are_refused(channel):
    for name in ("PredictionService/Predict", "ModelService/GetModelStatus"):
        call = channel.unary_unary(f"/tensorflow.serving.{name}")
        with refused(grpc.StatusCode.INVALID_ARGUMENT):
            call(b"\xff")


def test_methods_for_examples_need_a_model(predictions):
    for method, request in (
        (predictions.Classify, classification_pb2.ClassificationRequest()),
        (predictions.Regress, regression_pb2.RegressionRequest()),
        (predictions.MultiInference, inference_pb2.MultiInferenceRequest()),
    ):
        with refused(grpc.StatusCode.INVALID_ARGUMENT):
            method(request)


def test_metadata(predictions):
    request = get_model_metadata_pb2.GetModelMetadataRequest(
        metadata_field=["signature_def"]
    )
    request.model_spec.name = "numbers"
    response = predictions.GetModelMetadata(request)
    assert response.model_spec.version.value == 7
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    inputs = signatures.signature_def["serving_default"].inputs
    assert sorted(inputs) == ["k", "x"]
    request.metadata_field.append("other")
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        predictions.GetModelMetadata(request)


def test_status(model_service):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "shout"
    (status,) = model_service.GetModelStatus(request).model_version_status
    assert (status.version, status.state) == (1, status.AVAILABLE)
    request.model_spec.version.value = 9
    with refused(grpc.StatusCode.NOT_FOUND):
        model_service.GetModelStatus(request)


def test_a_reload_names_known_folders_alone(
    model_service, model_folders, predictions, tmp_path
):
    def reload(**folders):
        request = model_management_pb2.ReloadConfigRequest()
        for name, folder in folders.items():
            request.config.model_config_list.config.add(
                name=name, base_path=str(folder)
            )
        return model_service.HandleReloadConfigRequest(request)

    with refused(grpc.StatusCode.PERMISSION_DENIED):
        reload(shout=tmp_path)
    with refused(grpc.StatusCode.PERMISSION_DENIED):
        reload(shout=f"{model_folders['shout']}/../numbers")
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        reload()
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        reload(**model_folders, loud=model_folders["shout"])
    assert reload(loud=model_folders["shout"]).status
    predictions.Predict(predict_request("loud", text=["a"]))
    assert reload(**model_folders).status.error_code == 0
    with refused(grpc.StatusCode.NOT_FOUND):
        predictions.Predict(predict_request("loud", text=["a"]))


def test_health_and_the_request_id(channel, predictions):
    check = health_pb2_grpc.HealthStub(channel).Check
    for service in ("", "tensorflow.serving.PredictionService"):
        request = health_pb2.HealthCheckRequest(service=service)
        assert check(request).status == health_pb2.HealthCheckResponse.SERVING
    _, call = predictions.Predict.with_call(
        predict_request(text=["a"]), metadata=[("x-request-id", "mine")]
    )
    assert dict(call.trailing_metadata())["x-request-id"] == "mine"


def test_a_reload_needs_a_flag_and_is_small(
    run_server, model_folders, model_service
):
    request = model_management_pb2.ReloadConfigRequest()
    folder = str(model_folders["shout"])
    for number in range(101):
        request.config.model_config_list.config.add(
            name=f"m{number}", base_path=folder
        )
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        model_service.HandleReloadConfigRequest(request)
    config = model_configs.ModelConfig("shout", model_folders["shout"])
    with run_server([config]) as server:
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            stub = model_service_pb2_grpc.ModelServiceStub(channel)
            with refused(grpc.StatusCode.PERMISSION_DENIED):
                stub.HandleReloadConfigRequest(request)


@pytest.mark.parametrize("log_texts", [False, True])
def test_texts_are_logged_if_asked_for(run_server, model_folders, log_texts):
    config = model_configs.ModelConfig("shout", model_folders["shout"])
    stream = io.StringIO()
    handler = logs.begin(stream)
    try:
        with (
            run_server([config], log_texts=log_texts) as server,
            grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
        ):
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            metadata = [("x-request-id", "mine")]
            stub.Predict(predict_request(text=["private"]), metadata=metadata)
            with refused(grpc.StatusCode.INVALID_ARGUMENT):
                stub.Predict(
                    predict_request(text=["private 2 3 4 5 6"]),
                    metadata=metadata,
                )
    finally:
        logs.end(handler)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    first, second = [line for line in lines if line.get("id") == "mine"]
    assert (first["protocol"], first["code"], first["rows"]) == (
        "GRPC",
        "OK",
        1,
    )
    assert second["code"] == "INVALID_ARGUMENT"
    if log_texts:
        assert first["texts"] == {"text": ["private"]}
        assert second["texts"] == {"text": ["private 2 3 4 5 6"]}
    else:
        assert "private" not in stream.getvalue()


def test_a_name_that_a_client_invents_is_no_counter(server, predictions):
    """Else each such name would stay in the memory."""
    with refused(grpc.StatusCode.NOT_FOUND):
        predictions.Predict(predict_request("invented", text=["a"]))
    assert server.predict("invented", instances=["a"])[0] == 404
    _, _, text = server.request("/monitoring/prometheus/metrics")
    assert "invented" not in text
    assert 'request_count{model_name="",status="NOT_FOUND"}' in text
