"""Some requests answered in one call of a model.

An answer is the same as if its request had been alone: outputs are cut to the
request's own rows and tokens, and a request that fails does not fail others.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_attention.server import errors
from keras_attention.serving import kinds

Arrays = dict[str, np.ndarray]


def split_on_failure(
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
    parts = [[*range(len(requests))]]
    while parts:
        part = parts.pop(0)
        try:
            found = run_batch(version, signature, [requests[p] for p in part])
        except Exception as error:
            if len(part) > 1:
                # Halves find one bad request among N in 2 log N calls.
                middle = len(part) // 2
                halves = part[:middle], part[middle:]
                alive = [[p for p in half if not is_gone(p)] for half in halves]
                parts = [half for half in alive if half] + parts
                continue
            found = [_explained(error)]
        for place, result in zip(part, found, strict=True):
            results[place] = result
    return results


def run_batch(version, signature, requests: Sequence[Arrays]) -> list:
    """What `split_on_failure` gives, if nothing fails."""
    results = _length_errors(version, signature, requests)
    # The graph would cut a text that is too long, without a word.
    kept = [place for place, error in enumerate(results) if error is None]
    if kept:
        outputs = _outputs(version, signature, [requests[p] for p in kept])
        for place, output in zip(kept, outputs, strict=True):
            results[place] = output
    return results


def _length_errors(version, signature, requests) -> list:
    """For each request None, or the error that names its first long text."""
    results = [None] * len(requests)
    if not version.may_be_too_long(signature, requests):
        return results
    counts = version.count_tokens(_merge(requests))
    for place, rows in enumerate(_slice(counts, requests)):
        long_rows = np.flatnonzero(rows["num_tokens"] > rows["limit"])
        if long_rows.size:
            row = long_rows[0]
            results[place] = errors.invalid(
                f"The text in row {{row}} has {rows['num_tokens'][row]} "
                f"tokens, and the model takes at most {rows['limit'][row]}. "
                "Split it into sentences.",
                row,
            )
    return results


def _outputs(version, signature, requests) -> list:
    """The outputs of each request, from one call."""
    outputs = signature(_merge(requests))
    if signature.can_merge(requests[0]):
        total = sum(map(_num_rows, requests))
        if all(array.shape[:1] == (total,) for array in outputs.values()):
            return [
                _checked(version, signature, rows)
                for rows in _slice(outputs, requests)
            ]
        if len(requests) > 1:
            # Nobody knows whose values they are. So each is asked by itself.
            raise ValueError("The outputs do not have the inputs' rows.")
    return [outputs]


def _slice(outputs, requests) -> list[Arrays]:
    """The rows of each request."""
    ends = np.cumsum([_num_rows(request) for request in requests])
    rows = [np.split(array, ends[:-1]) for array in outputs.values()]
    return [
        dict(zip(outputs, arrays, strict=True))
        for arrays in zip(*rows, strict=True)
    ]


def _checked(version, signature, rows):
    """The rows of one request without padding, if no reference was too long.

    A text that is too long was refused before. What is truncated now is the
    end of a reference.
    """
    truncated = rows.get("truncated")
    if version.has_text_limit(signature) and truncated is not None:
        lines = np.flatnonzero(truncated)
        if lines.size:
            return errors.invalid(
                "The reference in row {row} is longer than any answer can be. "
                "Split the pair into sentences.",
                lines[0],
            )
    return kinds.cut(rows, signature.padded)


def split(arrays: Arrays, most: int) -> list[Arrays]:
    """A request in parts of so many rows."""
    places = range(most, _num_rows(arrays), most)
    parts = [np.split(array, places) for array in arrays.values()]
    return [
        dict(zip(arrays, values, strict=True))
        for values in zip(*parts, strict=True)
    ]


def join(parts: Sequence[Arrays]) -> Arrays:
    """The outputs of a request that was answered in parts.

    What is padded to the longest row of its part is padded to that of all, by
    "" or 0, as the model does it.
    """
    return {name: _stack([part[name] for part in parts]) for name in parts[0]}


def _stack(arrays) -> np.ndarray:
    sizes = np.max([array.shape[1:] for array in arrays], axis=0)
    # Without further axes, NumPy takes the sizes, which are none, for floats.
    shape = (sum(map(len, arrays)), *sizes.astype(int))
    blank = b"" if arrays[0].dtype == object else 0
    result, start = np.full(shape, blank, arrays[0].dtype), 0
    for array in arrays:
        index = [slice(start, start + len(array))]
        index += [slice(length) for length in array.shape[1:]]
        result[tuple(index)] = array
        start += len(array)
    return result


def _merge(requests) -> Arrays:
    # It may have scalars, which cannot be joined.
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

    One line of TensorFlow's message helps a client. The others name places in
    the graph.
    """
    if isinstance(error, errors.RequestError):
        return error
    if isinstance(error, tf.errors.OpError):
        # The reason is the last line before the list of nodes.
        reason = (error.message or "").partition("\n\t [[")[0].strip()
        line = reason.rpartition("\n")[2][:500]
        explained = errors.RequestError(errors.Code(error.error_code), line)
    else:
        explained = errors.RequestError(
            errors.Code.INTERNAL, "The model failed. The server's log says more"
        )
    explained.__cause__ = error
    return explained
