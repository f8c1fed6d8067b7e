"""What both protocols say of a model: its versions and its signatures."""

from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
)

from keras_attention.server.errors import Code, RequestError
from keras_attention.server.predictor import ModelSpec, Predictor


def status(predictor: Predictor, spec: ModelSpec):
    """The states of a model's versions, newest first.

    Returns:
        `GetModelStatusResponse`.

    Raises:
        RequestError: If there is no such model or version.
    """
    model = predictor.models.by_name.get(spec.name)
    statuses = {} if model is None else model.statuses
    if spec.label and model is not None:
        # A label that is not there is refused.
        model.find(None, spec.label)
        number = model.config.labels[spec.label]
    else:
        number = spec.version
    if number is not None:
        statuses = {n: s for n, s in statuses.items() if n == number}
    if not statuses:
        name = spec.name[:200]
        what = "any versions" if number is None else f"version {number}"
        raise RequestError(
            Code.NOT_FOUND, f"Could not find {what} of model {name}"
        )
    response = get_model_status_pb2.GetModelStatusResponse()
    for version, found in sorted(statuses.items(), reverse=True):
        entry = response.model_version_status.add(
            version=version, state=int(found.state)
        )
        entry.status.error_code = int(Code.UNKNOWN if found.error else Code.OK)
        entry.status.error_message = found.error
    return response


def metadata(predictor: Predictor, spec: ModelSpec):
    """The signatures of a version.

    Returns:
        `GetModelMetadataResponse`.

    Raises:
        RequestError: If there is no such model or version.
    """
    version = predictor.find(spec).loaded
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = spec.name
    response.model_spec.version.value = version.number
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, definition in version.definitions.items():
        signatures.signature_def[name].CopyFrom(definition)
    response.metadata["signature_def"].Pack(signatures)
    return response


def as_json(message) -> dict:
    """A message as the REST API writes it, with its own names."""
    return json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
