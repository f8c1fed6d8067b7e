"""Some requests answered in one call of a model.

An answer is the same as if its request had been alone: outputs are cut to the
request's own rows and tokens, and a request that fails does not fail others.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_attention.server import errors
from keras_attention.serving import padding

Arrays = dict[str, np.ndarray]


def answers(
    version,
    signature,
    requests: Sequence[Arrays],
    is_gone: Callable[[int], bool] = lambda place: False,
) -> list[Arrays | errors.RequestError | None]:
    """The outputs of each request, or why it has none.

    If a call fails, each half of its requests is tried again, down to the
    request that is to blame. So no message tells of another request's texts.

    Args:
        version: a `versions.LoadedVersion`.
        signature: one of its signatures. If it is not batched, or if a
            request leaves an input out, there is one request.
        requests: inputs that fit the signature.
        is_gone: function of a request's place to whether nobody waits for it
            any more. It is not tried again, and its answer is None.
    """
    results = [None] * len(requests)

    def answer(places):
        try:
            found = _answers(version, signature, [requests[p] for p in places])
        except Exception as error:
            if len(places) > 1:
                middle = len(places) // 2
                for half in (places[:middle], places[middle:]):
                    answer([place for place in half if not is_gone(place)])
                return
            found = [_explained(error)]
        for place, result in zip(places, found, strict=True):
            results[place] = result

    answer([*range(len(requests))])
    return results


def _answers(version, signature, requests) -> list:
    """What `answers` gives, if nothing fails."""
    results = _length_errors(version, signature, requests)
    kept = [place for place, error in enumerate(results) if error is None]
    if kept:
        outputs = _outputs(version, signature, [requests[p] for p in kept])
        for place, output in zip(kept, outputs, strict=True):
            results[place] = output
    return results


def _length_errors(version, signature, requests) -> list:
    """For each request None, or the error that names its first long text."""
    if not requests or not version.has_text_limit(signature):
        return [None] * len(requests)
    counts = version.count_tokens(_merged(requests))
    results, start = [], 0
    for request in requests:
        end = start + _num_rows(request)
        lengths = counts["num_tokens"][start:end]
        limits = counts["limit"][start:end]
        long_rows = np.flatnonzero(lengths > limits)
        results.append(None)
        if long_rows.size:
            row = long_rows[0]
            results[-1] = errors.invalid(
                f"Expected texts of at most {limits[row]} tokens: split the "
                f"text into sentences. Received: {lengths[row]} tokens in "
                f"line {row + 1}"
            )
        start = end
    return results


def _outputs(version, signature, requests) -> list:
    is_alone = requests[0].keys() != signature.inputs.keys()
    if is_alone or not signature.is_batched:
        return [signature(requests[0])]
    outputs = signature(_merged(requests))
    total = sum(map(_num_rows, requests))
    for name, array in outputs.items():
        if array.shape[:1] != (total,):
            raise errors.RequestError(
                errors.Code.INTERNAL,
                f"Expected an output {name!r} with one value for each of "
                f"{total} rows. Received: shape {list(array.shape)}",
            )
    results, start = [], 0
    for request in requests:
        end = start + _num_rows(request)
        rows = {name: array[start:end] for name, array in outputs.items()}
        results.append(_checked(version, signature, rows))
        start = end
    return results


def _checked(version, signature, rows):
    """The rows of one request without padding, if no reference was too long.

    A text that is too long was refused before. What is truncated now is the
    end of a reference.
    """
    truncated = rows.get("truncated")
    if version.has_text_limit(signature) and truncated is not None:
        lines = np.flatnonzero(truncated)
        if lines.size:
            most = rows.get("num_tokens", {})
            received = f"more than {most[lines[0]]}" if len(most) else "more"
            return errors.invalid(
                "Expected references that an answer can be as long as: split "
                f"the pair into sentences. Received: {received} tokens in "
                f"line {lines[0] + 1}"
            )
    return padding.cut(rows, signature.padded)


def _merged(requests) -> Arrays:
    if len(requests) == 1:
        return requests[0]
    return {
        name: np.concatenate([request[name] for request in requests])
        for name in requests[0]
    }


def _num_rows(request) -> int:
    return len(next(iter(request.values())))


def _explained(error: Exception) -> errors.RequestError:
    """An exception as an answer.

    Of TensorFlow's message, one line helps a client. The others name places
    in the graph.
    """
    if isinstance(error, errors.RequestError):
        return error
    if isinstance(error, tf.errors.OpError):
        reason = (error.message or "").partition("\n\t [[")[0].strip()
        line = reason.rpartition("\n")[2][:500]
        explained = errors.RequestError(errors.Code(error.error_code), line)
    else:
        explained = errors.RequestError(
            errors.Code.INTERNAL, "The model failed. The server's log says more"
        )
    explained.__cause__ = error
    return explained
