"""Calls by curl, over both protocols of REST. See `callers/calls.py`."""

import json
import subprocess

from callers import calls


def _get(url):
    """The body that a GET has for an answer."""
    command = ["curl", "--silent", "--show-error", "--fail-with-body", url]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _post(url, document):
    """The answer to a POST of JSON."""
    command = ["curl", "--silent", "--show-error", url, "--data-binary", "@-"]
    body = json.dumps(document).encode()
    done = subprocess.run(command, input=body, capture_output=True, check=True)
    return json.loads(done.stdout)


def v1(base, model):
    """A function of calls to answers, over TensorFlow Serving's protocol."""
    url = f"{base}/v1/models/{model}"

    def ask(name, inputs):
        if name == "status":
            (version,) = json.loads(_get(url))["model_version_status"]
            return version["state"]
        if name == "metadata":
            found = json.loads(_get(f"{url}/metadata"))["metadata"]
            signatures = found["signature_def"]["signature_def"]
            return {
                key: {
                    side: {
                        tensor: info["dtype"]
                        for tensor, info in signature[side].items()
                    }
                    for side in ("inputs", "outputs")
                }
                for key, signature in signatures.items()
            }
        document = {"signature_name": name, "instances": [inputs]}
        answer = _post(f"{url}:predict", document)
        return answer["predictions"][0] if "predictions" in answer else answer

    return lambda asked: [ask(*call) for call in asked]


def v2(base, signatures):
    """The same over KServe's second protocol; a signature is a model."""
    url = f"{base}/v2/models"

    def ask(name, inputs):
        if name == "status":
            # Curl ends with an error if one of them is not ready.
            for signature in signatures:
                _get(f"{url}/{signature}/ready")
            return "AVAILABLE"
        if name == "metadata":
            found = {
                key: json.loads(_get(f"{url}/{key}")) for key in signatures
            }
            return {
                key: {
                    side: {
                        one["name"]: calls.TYPES[one["datatype"]]
                        for one in sides
                    }
                    for side, sides in model.items()
                    if side in ("inputs", "outputs")
                }
                for key, model in found.items()
            }
        tensors = [
            {"name": key, "shape": [1, 1], "datatype": "BYTES", "data": [value]}
            for key, value in inputs.items()
        ]
        answer = _post(f"{url}/{name}/infer", {"inputs": tensors})
        if "outputs" not in answer:
            return answer
        return {
            one["name"]: calls.shaped(one["data"], one["shape"])[0]
            for one in answer["outputs"]
        }

    return lambda asked: [ask(*call) for call in asked]
