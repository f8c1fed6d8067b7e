"""TensorFlow Serving's gRPC services: predictions and models."""

import asyncio
import functools
import math
import pathlib
import time
from collections.abc import Callable

import grpc
from google.protobuf import message
from tensorflow_serving.apis import (
    classification_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from keras_attention.server import (
    errors,
    examples,
    logs,
    model_configs,
    protos,
    served_model,
)
from keras_attention.server import settings as server_settings
from keras_attention.server.errors import Code, RequestError
from keras_attention.server.predictor import ModelSpec, Predictor

# A reload loads so many at most: it is answered when all are there.
_MOST_MODELS = 100
_RESPONSES = {
    "classify": classification_pb2.ClassificationResponse,
    "regress": regression_pb2.RegressionResponse,
}
# gRPC's own codes are pairs of a number and a text.
_STATUS = {code.value[0]: code for code in grpc.StatusCode}


class Parsing(grpc.aio.ServerInterceptor):
    """Gives our services None for a message that cannot be parsed.

    gRPC itself would answer that the server failed.
    """

    async def intercept_service(self, continuation, handler_call_details):
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        # The health service is gRPC's own, and knows nothing of None.
        if handler is None or not method.startswith("/tensorflow.serving."):
            return handler

        def parse(data):
            try:
                return handler.request_deserializer(data)
            except message.DecodeError:
                return None

        return grpc.unary_unary_rpc_method_handler(
            handler.unary_unary, parse, handler.response_serializer
        )


class Calls:
    """What all services do around a call: its id, its log, its errors.

    Attributes:
        num_running: calls that are answered now.
        is_stopping: whether calls are refused, as the server is about to end.
    """

    def __init__(
        self,
        predictor: Predictor,
        limits: server_settings.Limits,
        log_texts: bool = False,
    ):
        self.predictor = predictor
        self.limits = limits
        self._log_texts = log_texts
        self.num_running = 0
        self.is_stopping = False

    async def run(self, request, context, api: str, function: Callable):
        """Answers a call, logs it and counts it.

        Args:
            request: its message, or None if it cannot be parsed.
            context: of gRPC.
            api: the method's name.
            function: function of the request, the context and the log's
                fields, to the answer.
        """
        start = time.monotonic()
        given = dict(context.invocation_metadata() or ()).get("x-request-id")
        request_id = logs.request_id(given if isinstance(given, str) else None)
        fields = {"id": request_id, "protocol": "GRPC"}
        if hasattr(request, "model_spec"):
            fields["model"] = request.model_spec.name[:200]
        code, details, response = Code.OK, "", None
        # The server's end waits until none runs.
        self.num_running += 1
        try:
            if self.is_stopping:
                raise RequestError(Code.UNAVAILABLE, "The server ends")
            if request is None:
                raise errors.invalid("The bytes are not such a message.")
            response = await function(request, context, fields)
        except RequestError as error:
            code, details = error.code, error.message
            if code == Code.INTERNAL:
                logs.failure("request_failed", error, **fields)
        except asyncio.CancelledError:
            # The client is gone, or its deadline is over.
            code = Code.CANCELLED
            raise
        except Exception as error:
            logs.failure("request_failed", error, **fields)
            code, details = Code.INTERNAL, "The server failed"
        finally:
            self.num_running -= 1
            if self._log_texts and hasattr(request, "inputs"):
                fields["texts"] = {
                    name: [text.decode("utf-8", "replace") for text in texts]
                    for name, proto in request.inputs.items()
                    if (texts := proto.string_val)
                }
            self.predictor.record(fields, api, code, start)
        # Behind the log: to abort a call is to raise an error.
        context.set_trailing_metadata((("x-request-id", request_id),))
        if code != Code.OK:
            await context.abort(_STATUS[int(code)], details)
        return response


def _answered(api: str) -> Callable:
    """Makes a service's method of one that gets the log's fields, too."""

    def decorate(method):
        async def call(self, request, context):
            function = functools.partial(method, self)
            return await self._calls.run(request, context, api, function)

        return call

    return decorate


def _spec(proto) -> ModelSpec:
    """A request's `ModelSpec`, from its message."""
    if not proto.name:
        raise errors.invalid("Missing ModelSpec: name a model.")
    choice = proto.WhichOneof("version_choice")
    return ModelSpec(
        proto.name,
        proto.version.value if choice == "version" else None,
        proto.version_label if choice == "version_label" else "",
        proto.signature_name,
    )


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Predictions and the signatures of models."""

    def __init__(self, calls: Calls):
        self._calls = calls

    @_answered("predict")
    async def Predict(self, request, context, fields):
        spec = _spec(request.model_spec)
        names = [*request.output_filter]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise errors.invalid(f"duplicate output tensor alias: {name}")

        def to_arrays(signature):
            # Now: an unknown name has no `Spec` for the arrays below.
            signature.check_names(request.inputs)
            unknown = sorted({*names} - {*signature.outputs})
            if unknown:
                raise errors.invalid(
                    f"output tensor alias not found in signature: {unknown[0]} "
                    f"Outputs expected to be in the set "
                    f"{sorted(signature.outputs)}."
                )
            return {
                name: protos.to_array(
                    proto,
                    signature.inputs[name],
                    name,
                    self._calls.limits.max_rows,
                    self._calls.limits.max_body_bytes,
                )
                for name, proto in request.inputs.items()
            }

        predictor = self._calls.predictor
        answer = await predictor.predict(
            spec, to_arrays, request.ByteSize(), _deadline(context)
        )
        fields |= {
            "version": answer.version,
            "signature": answer.signature_name,
            "rows": answer.num_rows,
        }
        # A filter without names asks for all outputs.
        return await predictor.convert(
            answer.num_bytes, _response, spec, answer, names or answer.outputs
        )

    @_answered("metadata")
    async def GetModelMetadata(self, request, context, fields):
        spec = _spec(request.model_spec)
        kinds = {*request.metadata_field}
        if kinds != {"signature_def"}:
            raise errors.invalid("The only metadata_field is signature_def.")
        return protos.metadata(self._calls.predictor, spec)

    @_answered("classify")
    async def Classify(self, request, context, fields):
        return await self._examine("classify", request, context, fields)

    @_answered("regress")
    async def Regress(self, request, context, fields):
        return await self._examine("regress", request, context, fields)

    async def _examine(self, api, request, context, fields, status=None):
        """What a model says of examples."""
        spec = _spec(request.model_spec)
        predictor, limits = self._calls.predictor, self._calls.limits
        answer = await predictor.predict(
            spec,
            lambda signature: examples.to_arrays(
                signature, api, request.input, limits
            ),
            request.ByteSize(),
            _deadline(context),
            status,
        )
        fields |= {"version": answer.version, "rows": answer.num_rows}
        result = await predictor.convert(
            answer.num_bytes,
            examples.result,
            api,
            answer.outputs,
            answer.num_rows,
        )
        response = _RESPONSES[api](result=result)
        _fill_spec(response.model_spec, spec, answer)
        return response

    @_answered("multi_inference")
    async def MultiInference(self, request, context, fields):
        """Some methods for the same examples, by the first task's version."""
        tasks = request.tasks
        names = {task.model_spec.name for task in tasks}
        signature_names = {task.model_spec.signature_name for task in tasks}
        if not tasks or len(names) > 1 or len(signature_names) < len(tasks):
            raise errors.invalid(
                "The tasks must be for one model, each with another signature."
            )
        apis = [
            task.method_name.removeprefix("tensorflow/serving/")
            for task in tasks
        ]
        unknown = {*apis} - {*_RESPONSES}
        if unknown:
            raise RequestError(
                Code.UNIMPLEMENTED,
                f"Unsupported signature method_name: {min(unknown)[:200]}",
            )
        response = inference_pb2.MultiInferenceResponse()
        # Once: a newer version may come between two tasks.
        status = self._calls.predictor.find(_spec(tasks[0].model_spec))
        with served_model.in_use(status):
            for api, task in zip(apis, tasks, strict=True):
                single = classification_pb2.ClassificationRequest(
                    model_spec=task.model_spec, input=request.input
                )
                found = await self._examine(
                    api, single, context, fields, status
                )
                result = response.results.add(model_spec=found.model_spec)
                field = examples.METHODS[api][0] + "_result"
                getattr(result, field).CopyFrom(found.result)
        return response


def _response(spec, answer, names):
    response = predict_pb2.PredictResponse()
    _fill_spec(response.model_spec, spec, answer)
    for name in names:
        response.outputs[name].CopyFrom(protos.from_array(answer.outputs[name]))
    return response


def _fill_spec(proto, spec, answer) -> None:
    proto.name = spec.name
    proto.version.value = answer.version
    proto.signature_name = answer.signature_name


def _deadline(context) -> float:
    remaining = context.time_remaining()
    return math.inf if remaining is None else time.monotonic() + remaining


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """The states of versions, and another choice of models.

    Args:
        calls: what all services do.
        folders: folders that a client may name in a reload.
        root: a folder below which a client may name any, too. None: no client
            may ask for a reload.
    """

    def __init__(
        self,
        calls: Calls,
        folders: frozenset[pathlib.Path],
        root: pathlib.Path | None = None,
    ):
        self._calls = calls
        self._folders = folders
        self._root = root

    @_answered("status")
    async def GetModelStatus(self, request, context, fields):
        spec = _spec(request.model_spec)
        return protos.status(self._calls.predictor, spec)

    @_answered("reload")
    async def HandleReloadConfigRequest(self, request, context, fields):
        if self._root is None:
            raise RequestError(
                Code.PERMISSION_DENIED,
                "Reloads are refused. Start the server with --reload_root to "
                "accept them from every client.",
            )
        num_models = len(request.config.model_config_list.config)
        if num_models > _MOST_MODELS:
            raise errors.invalid(
                f"A reload names at most {_MOST_MODELS} models, and this one "
                f"names {num_models}."
            )
        try:
            configs = model_configs.from_proto(request.config)
        except ValueError as error:
            raise errors.invalid(str(error)) from error
        for config in configs:
            if not self._is_allowed(config.folder):
                raise RequestError(
                    Code.PERMISSION_DENIED,
                    f"The base_path of {config.name[:200]!r} is neither one "
                    "that the server was started with nor below its "
                    "--reload_root.",
                )
        if len({config.folder for config in configs}) < num_models:
            raise errors.invalid(
                "Two models have one base_path. Each takes memory: name it "
                "once."
            )
        await self._calls.predictor.models.reload(configs)
        response = model_management_pb2.ReloadConfigResponse()
        response.status.error_code = int(Code.OK)
        return response

    def _is_allowed(self, folder: pathlib.Path) -> bool:
        """By its name alone, as long as the name is not that of a root."""
        if folder in self._folders:
            return True
        if ".." in folder.parts:
            return False
        # The disk comes last: a folder elsewhere is refused whether it is there
        # or not. A link below the root may lead out of it.
        return folder.is_relative_to(
            self._root
        ) and folder.resolve().is_relative_to(self._root.resolve())
