"""What the REST API is, as OpenAPI 3.1: `/openapi.json`.

Requests and answers are those of the signatures that are loaded.
"""

import re
import urllib.parse
from collections.abc import Mapping

from keras_attention import __version__
from keras_attention.server import rewriting, signatures
from keras_attention.server.predictor import Predictor

PATH = "/openapi.json"
# Method of a signature -> what is asked for; "predict" for any other.
_APIS = {
    "tensorflow/serving/classify": "classify",
    "tensorflow/serving/regress": "regress",
}
_ERRORS = {
    400: "The request is wrong.",
    404: "There is no such model, version or path.",
    408: "The body came too late.",
    413: "The body is too large.",
    429: "Too many rows wait. Try again after `Retry-After` seconds.",
    503: "The model is still loading, or the server ends or is full.",
    504: "The answer took too long.",
}
_BYTES = {
    "type": "object",
    "properties": {"b64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["b64"],
    "additionalProperties": False,
}
# Floats that are not finite are bare words, which JSON does not have. As texts,
# requests may have them, too.
_NOT_FINITE = {"enum": ["NaN", "Infinity", "-Infinity"]}


def document(predictor: Predictor) -> dict:
    """The description of the API, with the models that are loaded now."""
    paths, schemas = {}, {"Error": _object({"error": {"type": "string"}})}
    for name, model in sorted(predictor.models.by_name.items()):
        path = f"/v1/models/{urllib.parse.quote(name, safe='')}"
        answers = {}
        if model.available:
            version = model.statuses[model.available[-1]].loaded
            answers = _schemas(name, version, schemas)
        for place, parameters in _places(model.config.labels):
            for item, method, operation in _operations(name, answers):
                paths[f"{path}{place}{item}"] = {
                    method: {"tags": [name], **operation},
                    "parameters": parameters,
                }
    for path, summary in (
        ("/healthz", "Whether the server lives."),
        ("/readyz", "Whether each model has a version; 503 if not."),
        (PATH, "This document."),
    ):
        paths[path] = {"get": _operation(summary, {"type": "object"})}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "keras-attention serve",
            "version": __version__,
            "description": "TensorFlow Serving's REST API.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                str(status): _answer(text, _reference("Error"))
                for status, text in _ERRORS.items()
            },
        },
    }


def _places(labels):
    """What may stand behind a model's name, with its parameters."""
    yield "", []
    number = {"type": "integer", "minimum": 0}
    yield "/versions/{version}", [_parameter("version", number)]
    if labels:
        label = {"enum": sorted(labels)}
        yield "/labels/{label}", [_parameter("label", label)]


def _parameter(name, schema) -> dict:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _operations(name, answers):
    """The ends of a model's paths, with a method and what it does."""
    yield "", "get", _operation(f"The versions of {name}.", {"type": "object"})
    yield (
        "/metadata",
        "get",
        _operation(f"The signatures of {name}.", {"type": "object"}),
    )
    for api, (requests, found) in answers.items():
        operation = _operation(f"{api.capitalize()} by {name}.", _any(found))
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _any(requests)}},
        }
        yield f":{api}", "post", operation


def _operation(summary, schema) -> dict:
    responses = {"200": _answer("The answer.", schema)}
    for status in map(str, _ERRORS):
        responses[status] = {"$ref": f"#/components/responses/{status}"}
    return {"summary": summary, "responses": responses}


def _answer(text, schema) -> dict:
    return {
        "description": text,
        "content": {"application/json": {"schema": schema}},
    }


def _schemas(model, version, schemas: dict) -> dict:
    """Adds the schemas of a model's signatures.

    Returns:
        Name of an API, such as "predict" -> references to the requests and to
        the answers.
    """
    found = {}
    for name, signature in sorted(version.signatures.items()):
        api = _APIS.get(signature.method, "predict")
        if api == "predict":
            is_rewritten = rewriting.are_taken(version.kind, signature)
            more = rewriting.SCHEMA if is_rewritten else {}
            request, answer = _request(signature, more), _of(signature)
        else:
            examples = {"type": "array", "items": {"type": "object"}}
            request = _object(
                {
                    "examples": examples,
                    "context": {"type": "object"},
                    "signature_name": {"const": name},
                },
                ["examples"],
            )
            answer = _object({"results": {"type": "array"}})
        # Other signs than these may not stand in a schema's name.
        key = re.sub(
            r"[^\w.-]",
            lambda sign: f"-x{ord(sign[0]):x}-",
            f"{model}.{name}",
            flags=re.ASCII,
        )
        schemas |= {f"{key}.request": request, f"{key}.answer": answer}
        requests, answers = found.setdefault(api, ([], []))
        requests.append(_reference(f"{key}.request"))
        answers.append(_reference(f"{key}.answer"))
    return found


def _request(signature: signatures.Signature, more: Mapping) -> dict:
    """`instances` are rows, `inputs` are columns; more options are beside."""
    specs = signature.inputs
    required = [name for name in specs if name not in signature.defaults]
    alone = required or [*specs]
    name = {"const": signature.name}
    needed = [] if signature.name == signatures.DEFAULT else ["signature_name"]
    forms = []
    for key, has_rows in (("instances", True), ("inputs", False)):
        if has_rows and not all(spec.has_rows for spec in specs.values()):
            continue
        values = {n: _tensor(s, has_rows, n) for n, s in specs.items()}
        value = _object(values, required)
        if len(alone) == 1:
            value = {"anyOf": [values[alone[0]], value]}
        if has_rows:
            value = {"type": "array", "minItems": 1, "items": value}
        forms.append(
            _object(
                {"signature_name": name, key: value, **more}, [key, *needed]
            )
        )
    return _any(forms)


def _of(signature: signatures.Signature) -> dict:
    """The answers to rows, and to columns."""
    specs = signature.outputs
    forms = []
    for key, has_rows in (("predictions", True), ("outputs", False)):
        if has_rows and not all(spec.has_rows for spec in specs.values()):
            continue
        values = {n: _tensor(s, has_rows, n, True) for n, s in specs.items()}
        value = _object(values)
        if len(values) == 1:
            (value,) = values.values()
        if has_rows:
            value = {"type": "array", "items": value}
        forms.append(_object({key: value}))
    return _any(forms)


def _tensor(spec: signatures.Spec, is_row, name, is_output=False) -> dict:
    """The schema of an input or an output, or of a row of it."""
    if spec.shape is None:
        return {}
    schema = _leaf(spec.dtype, name, is_output)
    for length in reversed(spec.shape[is_row:]):
        schema = {"type": "array", "items": schema}
        # Another model's graph may take more than its signature says.
        if length is not None and (spec.is_exact or is_output):
            schema |= {"minItems": length, "maxItems": length}
    return schema


def _leaf(dtype, name, is_output) -> dict:
    if dtype.is_bool:
        return {"type": "boolean"}
    if dtype.is_integer:
        return {"type": "integer"}
    if dtype.is_floating:
        number = {"type": "number"}
        return number if is_output else {"anyOf": [number, _NOT_FINITE]}
    if not is_output:
        return {"anyOf": [{"type": "string"}, _BYTES]}
    return _BYTES if name.endswith("_bytes") else {"type": "string"}


def _object(properties, required=None) -> dict:
    needed = [*properties] if required is None else required
    return {
        "type": "object",
        "properties": properties,
        **({"required": needed} if needed else {}),
    }


def _any(schemas: list) -> dict:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _reference(name) -> dict:
    return {"$ref": f"#/components/schemas/{name}"}
