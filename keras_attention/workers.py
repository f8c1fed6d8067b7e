"""The processes that train one model together, as TF_CONFIG names them."""

import dataclasses
import json
import os


@dataclasses.dataclass(frozen=True)
class Workers:
    """Which of how many workers this process is.

    Args:
        count: the number of workers; 1 for a process that trains alone.
        rank: this worker's place among them, from 0.
    """

    count: int = 1
    rank: int = 0

    @property
    def leads(self) -> bool:
        """Whether this worker writes what all of them have trained."""
        return self.rank == 0


def from_environment() -> Workers:
    """The workers in the environment variable TF_CONFIG.

    It holds JSON: `cluster` lists the addresses of each kind of worker, and
    `task` says which one this process is. A `chief`, where there is one, comes
    before the workers.

    Raises:
        ValueError: If TF_CONFIG says anything else.
    """
    text = os.environ.get("TF_CONFIG", "")
    if not text.strip():
        return Workers()
    try:
        content = json.loads(text)
        cluster = content.get("cluster", {})
        if not cluster:
            return Workers()
        tasks = [
            (kind, index)
            for kind in ("chief", "worker")
            for index in range(len(cluster.get(kind, ())))
        ]
        task = content["task"]["type"], int(content["task"]["index"])
        if not {*cluster} <= {"chief", "worker"}:
            raise ValueError(f"a cluster of {', '.join(cluster)}")
        return Workers(len(tasks), tasks.index(task))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            "Expected TF_CONFIG to list the workers' addresses, and to say "
            'which one this process is: {"cluster": {"worker": ["HOST:PORT", '
            '...]}, "task": {"type": "worker", "index": 0}}. '
            f"Received: {text} ({error})"
        ) from error
