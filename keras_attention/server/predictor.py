"""From a request's arrays to its outputs, for both protocols."""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping

import numpy as np

from keras_attention.server import (
    batcher,
    errors,
    execution,
    json_inputs,
    limits,
    logs,
    metrics,
    models,
    served_model,
    signatures,
)


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


class Predictor:
    """Answers requests with the models that are served.

    Args:
        served: a `models.Models`.
        bounds: the server's `limits.Limits`.
        meters: a `metrics.Metrics`.
        num_threads: how many batches are computed at the same time.

    Attributes:
        models: as given.
        queue: the `batcher.Batcher`.
    """

    def __init__(
        self,
        served: models.Models,
        bounds: limits.Limits,
        meters: metrics.Metrics,
        num_threads: int,
    ):
        self.models = served
        self._limits = bounds
        self._meters = meters
        self.queue = batcher.Batcher(
            self._answer_batch,
            bounds.max_batch_size,
            bounds.max_queued_rows,
            num_threads,
        )

    async def predict(
        self,
        spec: ModelSpec,
        to_arrays: Callable,
        deadline: float = math.inf,
    ) -> Answer:
        """The outputs that a model gives.

        Args:
            spec: which model.
            to_arrays: function of a signature to the request's arrays.
            deadline: when the client stops waiting, by `time.monotonic`.

        Raises:
            RequestError: If the request is wrong, refused or too late, or if
                the model fails.
        """
        status = self.find(spec)
        with served_model.in_use(status) as version:
            signature = find_signature(version, spec.signature_name)
            arrays = to_arrays(signature)
            num_rows = signature.check(arrays, self._limits.max_rows)
            group = None
            if signature.is_batched:
                shapes = [arrays[name].shape[1:] for name in signature.inputs]
                group = id(version), signature.name, *shapes
            outputs = await self.queue.submit(
                batcher.Job(
                    group,
                    (spec.name, version, signature, arrays),
                    num_rows,
                    deadline,
                )
            )
            return Answer(outputs, version.number, signature.name, num_rows)

    def find(self, spec: ModelSpec) -> served_model.Status:
        """The version that a request names.

        Raises:
            RequestError: If there is none.
        """
        return self.models.get(spec.name).find(spec.version, spec.label)

    def _answer_batch(self, jobs) -> list:
        """Answers jobs of one group; in a thread."""
        name, version, signature, _ = jobs[0].payload
        start = time.monotonic()
        results = execution.answers(
            version, signature, [job.payload[3] for job in jobs]
        )
        self._meters.count_batch(
            name,
            sum(job.num_rows for job in jobs),
            time.monotonic() - start,
            [job.started - job.queued for job in jobs],
        )
        for result in results:
            if (
                isinstance(result, errors.RequestError)
                and result.code == errors.Code.INTERNAL
            ):
                logs.failure(
                    "model",
                    result,
                    model=name,
                    version=version.number,
                    signature=signature.name,
                )
        return results


def find_signature(version, name: str) -> signatures.Signature:
    """A version's signature, by default `serving_default`.

    Raises:
        RequestError: If it has none of this name.
    """
    name = name or json_inputs.DEFAULT_SIGNATURE
    if name not in version.signatures:
        raise errors.invalid(
            f'Serving signature name: "{name[:200]}" not found in signature '
            f"def. Expected one of {sorted(version.signatures)}"
        )
    return version.signatures[name]
