"""From a request's arrays to its outputs, for both protocols."""

import asyncio
import concurrent.futures
import dataclasses
import math
import time
from collections.abc import Callable, Mapping

import numpy as np

from keras_attention.server import (
    batcher,
    counters,
    errors,
    execution,
    logs,
    registry,
    served_model,
    signatures,
    versions,
)
from keras_attention.server import settings as server_settings

# What has fewer bytes is converted at once, without a thread. To go to a thread
# and back takes longer than the JSON of a short text.
_FEW_BYTES = 2**16


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """Which model, version and signature a request names.

    Attributes:
        name: of the model.
        version: its number, or None.
        label: of a version, or "".
        signature_name: or "" for `serving_default`.
    """

    name: str
    version: int | None = None
    label: str = ""
    signature_name: str = ""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The outputs of a request.

    Attributes:
        outputs: name -> array.
        version: the version that answered.
        signature_name: the signature that did.
        num_rows: the request's rows.
    """

    outputs: Mapping[str, np.ndarray]
    version: int
    signature_name: str
    num_rows: int

    @property
    def num_bytes(self) -> int:
        """The size of the outputs."""
        return sum(map(_num_bytes, self.outputs.values()))


@dataclasses.dataclass(frozen=True)
class _Request:
    """What a job of the queue asks for: a request, or some rows of it."""

    model: str
    version: versions.LoadedVersion
    signature: signatures.Signature
    arrays: Mapping[str, np.ndarray]
    first_row: int = 0


class Predictor:
    """Answers requests with the models that are served.

    Attributes:
        models: what it answers with.
        queue: the `batcher.Batcher`.
    """

    def __init__(
        self,
        models: registry.Models,
        limits: server_settings.Limits,
        metrics: counters.Metrics,
        num_threads: int,
    ):
        self.models = models
        self._limits = limits
        self._metrics = metrics
        self.queue = batcher.Batcher(
            self._compute,
            limits.max_batch_size,
            limits.max_queued_rows,
            limits.max_queued_bytes,
            num_threads,
        )
        # One at a time, so that the event loop has its turn.
        self._converter = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix="convert"
        )

    async def predict(
        self,
        spec: ModelSpec,
        to_arrays: Callable,
        num_bytes: int = 0,
        deadline: float = math.inf,
        status: served_model.Status | None = None,
    ) -> Answer:
        """The outputs that a model gives.

        Args:
            spec: which model.
            to_arrays: function of a signature to the request's arrays.
            num_bytes: the size of the request.
            deadline: when the client stops waiting, by `time.monotonic`.
            status: the version, if it was found before.

        Raises:
            RequestError: If the request is wrong, refused or too late, or if
                the model fails.
        """
        # A reload that comes now frees the version when this is answered.
        with served_model.in_use(status or self.find(spec)) as version:
            signature = find_signature(version, spec.signature_name)
            arrays, num_rows = await self.convert(
                num_bytes, self._arrays, to_arrays, version, signature
            )
            request = _Request(spec.name, version, signature, arrays)
            outputs = await self._outputs(request, num_rows, deadline)
            return Answer(outputs, version.number, signature.name, num_rows)

    async def _outputs(self, request, num_rows, deadline) -> Mapping:
        """The answer to a request; in parts, if it has more rows than a batch.

        Between the parts, other requests have their turn.
        """
        most = self._limits.max_batch_size
        if num_rows > most and request.signature.can_merge(request.arrays):
            arrays = execution.split(request.arrays, most)
            parts = [
                dataclasses.replace(request, arrays=a, first_row=place * most)
                for place, a in enumerate(arrays)
            ]
            jobs = [_job(part, deadline, num_rows) for part in parts]
            found = await self.queue.submit(*jobs)
            have_rows = all(
                array.shape[:1] == (job.num_rows,)
                for job, outputs in zip(jobs, found, strict=True)
                for array in outputs.values()
            )
            # Otherwise nobody knows whose values they are: all is asked again,
            # in one call.
            if have_rows:
                return execution.join(found)
        (outputs,) = await self.queue.submit(_job(request, deadline, num_rows))
        return outputs

    async def convert(self, num_bytes: int, function: Callable, *args):
        """Calls a function; in a thread, if it has much to do.

        Args:
            num_bytes: the size of what it converts.
            function: what to call.
            *args: its arguments.
        """
        if num_bytes <= _FEW_BYTES:
            return function(*args)
        return await asyncio.get_running_loop().run_in_executor(
            self._converter, function, *args
        )

    def _arrays(self, to_arrays, version, signature) -> tuple[Mapping, int]:
        """A request's arrays, if they fit the signature, and their rows."""
        arrays = to_arrays(signature)
        num_rows = signature.check(
            arrays, self._limits.max_rows, self._limits.max_text_bytes
        )
        if version.kind and signature.name in version.kind.signatures:
            # Its inputs are texts. The graphs of older exports read NUL as a
            # byte that no model knows.
            arrays = {name: _without_nul(a) for name, a in arrays.items()}
        return signature.whole(arrays, num_rows), num_rows

    def find(self, spec: ModelSpec) -> served_model.Status:
        """The version that a request names.

        Raises:
            RequestError: If there is none.
        """
        return self.models.get(spec.name).find(spec.version, spec.label)

    def _compute(self, jobs) -> list:
        """Answers jobs of one group; in a thread."""
        first = jobs[0].payload
        start = time.monotonic()
        results = execution.split_on_failure(
            first.version,
            first.signature,
            [job.payload.arrays for job in jobs],
            # Asked in a thread: a client that goes now is noticed later.
            lambda place: jobs[place].result.done(),
        )
        for job, result in zip(jobs, results, strict=True):
            if getattr(result, "row", None) is not None:
                # The client counts the rows of its request, not of a part.
                result.row += job.payload.first_row
        self._metrics.count_batch(
            first.model,
            sum(job.num_rows for job in jobs),
            time.monotonic() - start,
            [job.started - job.queued for job in jobs],
        )
        return results

    def record(
        self, fields: Mapping, api: str, code: errors.Code, start: float
    ) -> None:
        """Counts a request and logs it.

        Args:
            fields: what else the log says of it: its protocol, "REST" or
                "GRPC", its model, and so on.
            api: such as "predict".
            code: how it ended.
            start: when it came, by `time.monotonic`.
        """
        seconds = time.monotonic() - start
        name = fields.get("model", "")
        # A counter for each name that a client invents would fill the memory.
        known = name if name in self.models.by_name else ""
        self._metrics.count_request(
            known, code.name, api, fields["protocol"], seconds
        )
        logs.event(
            "request",
            **fields,
            api=api,
            code=code.name,
            seconds=round(seconds, 6),
        )

    def stop(self) -> None:
        """Converts no more."""
        self._converter.shutdown(wait=False, cancel_futures=True)


def _job(request: _Request, deadline: float, num_rows: int) -> batcher.Job:
    """A place in the queue for a request, or for a part of it.

    Args:
        request: the request or its part.
        deadline: when the client stops waiting.
        num_rows: the rows of the whole.
    """
    signature, arrays = request.signature, request.arrays
    group, num_own = None, num_rows
    if signature.can_merge(arrays):
        shapes = [arrays[name].shape[1:] for name in signature.inputs]
        # Not its number: a reload may put another version under the same one.
        # The request keeps the version, so no other one gets its id.
        group = id(request.version), signature.name, *shapes
        num_own = len(next(iter(arrays.values())))
    num_bytes = sum(map(_num_bytes, arrays.values()))
    return batcher.Job(
        request.model, group, request, num_own, num_bytes, deadline, num_rows
    )


def _without_nul(texts: np.ndarray) -> np.ndarray:
    if texts.dtype != object or not any(b"\0" in text for text in texts.flat):
        return texts
    result = np.empty(texts.shape, object)
    result.flat = [text.replace(b"\0", b"") for text in texts.flat]
    return result


def _num_bytes(array: np.ndarray) -> int:
    texts = sum(map(len, array.flat)) if array.dtype == object else 0
    return array.nbytes + texts


def find_signature(version, name: str) -> signatures.Signature:
    """A version's signature, by default `serving_default`.

    Raises:
        RequestError: If it has none of this name.
    """
    name = name or signatures.DEFAULT
    if name not in version.signatures:
        raise errors.RequestError(
            errors.Code.FAILED_PRECONDITION,
            f'Serving signature name: "{name[:200]}" not found in signature '
            f"def. It has {sorted(version.signatures)}.",
        )
    return version.signatures[name]
