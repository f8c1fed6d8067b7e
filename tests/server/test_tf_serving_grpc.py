"""The behaviours that TensorFlow Serving's own tests of gRPC ask for.

Each row has what TensorFlow Serving answers: a code, and outputs or a part of
the message. A row with a reason is one where this server answers something
else.
"""

import shutil
import time

import numpy as np
import pytest
import tensorflow as tf

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import tf_serving_models  # noqa: E402
from tensorflow_serving.apis import (  # noqa: E402
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    input_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from keras_attention.server import model_configs  # noqa: E402

HALF = tf_serving_models.HALF


def row(name, request, code, answer=None, reason=None):
    return pytest.param(request, code, answer, reason, id=name)


def spec_of(request, name, signature="", version=None, label=""):
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    if label:
        request.model_spec.version_label = label
    return request


def predict(name, inputs, signature="", outputs=(), **spec):
    request = predict_pb2.PredictRequest(output_filter=outputs)
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return spec_of(request, name, signature, **spec)


def half(value=(2.0,), **options):
    return predict(HALF, {"x": value}, **options)


def unknown_shape():
    request = half()
    request.inputs["x"].tensor_shape.dim[0].size = -1
    return request


def tensor_content():
    request = predict("any", {}, "float")
    values = np.array([np.inf, 1], np.float32)
    proto = request.inputs["x"]
    proto.dtype = tf.float32.as_datatype_enum
    proto.tensor_shape.dim.add(size=2)
    proto.tensor_content = values.tobytes()
    return request


PREDICT = [
    row("no spec", predict_pb2.PredictRequest(), "INVALID_ARGUMENT", "Missing"),
    row("no inputs", predict(HALF, {}), "INVALID_ARGUMENT", "0!=1"),
    row(
        "other inputs",
        predict(HALF, {"unknown_key1": [1.0], "unknown_key2": [1.0]}),
        "INVALID_ARGUMENT",
        "Sent extra: {unknown_key1,unknown_key2}. Missing but required: {x}",
    ),
    row("bool", half([True]), "INVALID_ARGUMENT"),
    row(
        "string",
        half(["a"]),
        "INVALID_ARGUMENT",
        "to be float but string is provided",
    ),
    row(
        "unknown output",
        half(outputs=["dup"]),
        "INVALID_ARGUMENT",
        "output tensor alias not found in signature",
    ),
    row(
        "an output twice",
        half(outputs=["y", "y"]),
        "INVALID_ARGUMENT",
        "duplicate output tensor alias: y",
    ),
    row("an output", half(outputs=["y"]), "OK", {"y": [3.0]}),
    row("unknown signature", half(signature="nope"), "FAILED_PRECONDITION"),
    row("a scalar", half(2.0), "OK", {"y": 3.0}),
    row("another shape", half([2.0]), "OK", {"y": [3.0]}),
    row("a version", half([[2.0]], version=123), "OK", {"y": [[3.0]]}),
    row("a label", half(label="label"), "OK", {"y": [3.0]}),
    row(
        "unknown label",
        half(label="nope"),
        "INVALID_ARGUMENT",
        "Unrecognized servable version label: nope",
    ),
    row(
        "unknown version",
        half(version=99),
        "NOT_FOUND",
        "Servable not found for request: Specific(",
    ),
    row(
        "unknown model",
        predict("foo", {}),
        "NOT_FOUND",
        "Servable not found for request: Latest(foo)",
    ),
    row(
        "a signature for regression",
        predict(
            HALF,
            {
                "inputs": [
                    tf.train.Example(
                        features=tf.train.Features(
                            feature={
                                "x": tf.train.Feature(
                                    float_list=tf.train.FloatList(value=[80])
                                )
                            }
                        )
                    ).SerializeToString()
                ]
            },
            "regress_x_to_y",
        ),
        "OK",
        {"outputs": [[42.0]]},
    ),
    row("float", predict("any", {"x": 12.0}, "float"), "OK", {"x": 12.0}),
    row(
        "a text", predict("any", {"s": "hello"}, "text"), "OK", {"s": b"hello"}
    ),
    row(
        "a text beside rows",
        predict("any", {"i": [1, 2], "s": "a"}, "named"),
        "OK",
        {"i": [1, 2], "s": b"a"},
    ),
    row(
        "complex",
        predict("any", {"x": [1.0]}, "complex"),
        "OK",
        {"y": [1 + 1j]},
    ),
    row(
        "outputs of other lengths",
        predict("any", {"x": [1.0, 2.0]}, "uneven"),
        "OK",
        {"a": [1, 2], "b": [1, 2, 1, 2]},
    ),
    row(
        "an output without rows",
        predict("any", {"x": [1.0, 2.0]}, "empty"),
        "OK",
        {"y": []},
    ),
    row(
        "an input without rows",
        predict("any", {"x": np.zeros(0, np.float32)}, "logarithm"),
        "OK",
        {"y": []},
    ),
    row("tensor_content", tensor_content(), "OK", {"x": [np.inf, 1]}),
    row("a shape that is not known", unknown_shape(), "INVALID_ARGUMENT"),
    row(
        "5 MiB",
        predict("any", {"s": "a" * 5 * 2**20}, "text"),
        "RESOURCE_EXHAUSTED",
        None,
        "TensorFlow Serving has no limit. This server has --max_body_bytes.",
    ),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def channel(run_server, root):
    folders = tf_serving_models.write(root)
    configs = [
        model_configs.ModelConfig(
            HALF, folders[HALF], num_latest=None, labels={"label": 123}
        ),
        model_configs.ModelConfig("any", folders["any"]),
    ]
    with run_server(configs, reload_root=root) as server:
        address = f"127.0.0.1:{server.grpc_port}"
        with grpc.insecure_channel(address) as channel:
            yield channel


def called(method, request):
    """Code and answer, or the message of an error."""
    try:
        return "OK", method(request)
    except grpc.RpcError as error:
        return error.code().name, error.details()


@pytest.mark.parametrize("request_, code, answer, reason", PREDICT)
def test_predict(channel, request_, code, answer, reason):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    found, response = called(stub.Predict, request_)
    assert found == code, response
    if code != "OK":
        assert (answer or "") in response
        return
    outputs = {n: tf.make_ndarray(p) for n, p in response.outputs.items()}
    assert {n: array.tolist() for n, array in outputs.items()} == answer
    spec = request_.model_spec
    assert response.model_spec.name == spec.name
    expected = {"any": 1, HALF: 124}[spec.name]
    if spec.version_label or spec.version.value:
        expected = 123
    assert response.model_spec.version.value == expected


def examples(*values):
    found = input_pb2.Input()
    for value in values:
        example = found.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(value)
    return found


def classification(signature="classify_x_to_y", given=None):
    request = classification_pb2.ClassificationRequest(
        input=examples(2.0) if given is None else given
    )
    return spec_of(request, HALF, signature)


def regression(signature="regress_x_to_y"):
    request = regression_pb2.RegressionRequest(input=examples(2.0, 4.0))
    return spec_of(request, HALF, signature)


def test_classify_and_regress(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    response = stub.Classify(classification())
    (classes,) = response.result.classifications
    assert [(one.label, one.score) for one in classes.classes] == [("", 3.0)]
    assert response.model_spec.version.value == 124
    response = stub.Regress(regression())
    assert [one.value for one in response.result.regressions] == [3.0, 4.0]
    for method, request in (
        (stub.Classify, classification("regress_x_to_y")),
        (stub.Regress, regression("classify_x_to_y")),
        (stub.Classify, classification(given=input_pb2.Input())),
    ):
        assert called(method, request)[0] == "INVALID_ARGUMENT"
    code, message = called(stub.Classify, classification("serving_default"))
    assert code == "INVALID_ARGUMENT" and message.startswith(
        "Expected classification signature method_name to be "
        "tensorflow/serving/classify. Was: tensorflow/serving/predict"
    )


def inference(*tasks):
    request = inference_pb2.MultiInferenceRequest(input=examples(2.0))
    for name, signature, method in tasks:
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        spec_of(task, name, signature)
    return request


def test_multi_inference(channel):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    regress = (HALF, "regress_x_to_y", "regress")
    classify = (HALF, "classify_x_to_y", "classify")
    response = stub.MultiInference(inference(regress, classify))
    one, two = response.results
    assert one.regression_result.regressions[0].value == 3.0
    classes = two.classification_result.classifications[0].classes
    assert classes[0].score == 3.0
    assert two.model_spec.signature_name == "classify_x_to_y"
    for tasks, code in (
        ([], "INVALID_ARGUMENT"),
        ([regress, regress], "INVALID_ARGUMENT"),
        ([regress, ("any", *classify[1:])], "INVALID_ARGUMENT"),
        ([(HALF, "serving_default", "predict")], "UNIMPLEMENTED"),
    ):
        assert called(stub.MultiInference, inference(*tasks))[0] == code


def test_one_version_answers_all_of_a_multi_inference(
    run_server, slow_model, tmp_path
):
    versions = tf_serving_models.write(tmp_path / "all")[HALF]
    folder = tmp_path / "served"
    shutil.copytree(versions / "123", folder / "123")
    config = model_configs.ModelConfig(HALF, folder)
    tasks = [
        (HALF, "regress_x_to_y", "regress"),
        (HALF, "classify_x_to_y", "classify"),
    ]
    with run_server([config], poll_seconds=0.05) as server:
        address = f"127.0.0.1:{server.grpc_port}"
        with grpc.insecure_channel(address) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            asked = stub.MultiInference.future(inference(*tasks))
            while not slow_model.batches:
                time.sleep(0.01)
            # A new version comes while the first task is computed.
            shutil.copytree(versions / "124", tmp_path / "124")
            (tmp_path / "124").rename(folder / "124")
            model = server.application.predictor.models.by_name[HALF]
            while model.available != [124]:
                time.sleep(0.01)
            slow_model.may_end.set()
            found = [
                one.model_spec.version.value for one in asked.result().results
            ]
    assert found == [123, 123]


@pytest.mark.parametrize(
    "name, kinds, code",
    [
        (HALF, ["signature_def"], "OK"),
        (HALF, ["signature_def", "signature_def"], "OK"),
        (HALF, [], "INVALID_ARGUMENT"),
        (HALF, ["other"], "INVALID_ARGUMENT"),
        ("", ["signature_def"], "INVALID_ARGUMENT"),
    ],
)
def test_metadata(channel, name, kinds, code):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.metadata_field.extend(kinds)
    found, response = called(stub.GetModelMetadata, spec_of(request, name))
    assert found == code
    if code == "OK":
        assert response.model_spec.version.value == 124
        assert [*response.metadata] == ["signature_def"]


@pytest.mark.parametrize(
    "name, version, code, versions",
    [
        ("", None, "INVALID_ARGUMENT", []),
        ("foo", None, "NOT_FOUND", []),
        (HALF, None, "OK", [124, 123]),
        (HALF, 99, "NOT_FOUND", []),
        (HALF, 123, "OK", [123]),
    ],
)
def test_status(channel, name, version, code, versions):
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    request = get_model_status_pb2.GetModelStatusRequest()
    request = spec_of(request, name, version=version)
    found, response = called(stub.GetModelStatus, request)
    assert found == code
    if code == "OK":
        statuses = response.model_version_status
        assert [one.version for one in statuses] == versions


@pytest.mark.parametrize(
    "folders, code",
    [
        # TensorFlow Serving loads whatever it is told. Here, a SavedModel is
        # code, and anybody may ask.
        ({"x": "/etc"}, "PERMISSION_DENIED"),
        ({"x": "{root}/../x"}, "PERMISSION_DENIED"),
        ({"bad": "{root}/bad"}, "FAILED_PRECONDITION"),
        ({"a": "{root}/any", "A": "{root}/any"}, "INVALID_ARGUMENT"),
        ({}, "INVALID_ARGUMENT"),
    ],
)
def test_a_bad_reload_changes_nothing(channel, root, folders, code):
    request = model_management_pb2.ReloadConfigRequest()
    for name, folder in folders.items():
        request.config.model_config_list.config.add(
            name=name, base_path=folder.format(root=root)
        )
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    assert called(stub.HandleReloadConfigRequest, request)[0] == code
    predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    assert called(predictions.Predict, half())[0] == "OK"
