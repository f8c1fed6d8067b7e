"""Many lines on Ray Data: each worker has the model, and answers parts.

This module imports TensorFlow and Ray only in its functions.
"""

import importlib.util
import logging
import os
from collections.abc import Iterator

from keras_attention.commands import arguments, many_lines


def check() -> None:
    """Checks that Ray Data is installed.

    Raises:
        ImportError: If it is not.
    """
    if importlib.util.find_spec("ray") is None:
        raise ImportError(
            "Several workers run on Ray, which is not installed. In a clone of "
            'the package: python -m pip install -e ".[ray]". Or leave '
            "--workers and --ray_address out."
        )


def leave_gpus() -> None:
    """Leaves the GPUs to the workers: TensorFlow would take their memory."""
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")


class Worker:
    """A process of Ray with the model: it answers parts.

    Args:
        parts, model, checksum, options: as for `write_parts`.
        cores: how many of them are this worker's.

    Call arguments:
        row: a dict with the number `part`.

    Returns:
        A dict with the number of `lines` that were answered.
    """

    def __init__(self, parts, model, checksum, options, cores):
        arguments.import_tensorflow()
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(cores)
        self.parts, self.options = parts, options
        self.model = many_lines.load(model, checksum, options)

    def __call__(self, row: dict) -> dict:
        from keras_attention.data.readers import lines

        part = int(row["part"])
        texts = many_lines.texts(lines.read_bytes(self.parts.lines(part)))
        # Ray asks again for what a worker that was killed has answered.
        if not self.parts.written(part).is_file():
            self.parts.write(part, self.model, texts, self.options)
        return {"lines": len(texts)}


def write_parts(
    parts: many_lines.Parts, missing, model: str, checksum: str, options
) -> Iterator[int]:
    """Writes the missing parts; yields the number of lines of each.

    Args:
        parts: their folder, with the lines of the missing ones. All machines
            have it at this place.
        missing: numbers of parts.
        model: the folder of a model.
        checksum: from `runs.checksum`.
        options: `commands.predict.Options`.

    Raises:
        ValueError: If the machines have not enough cores or GPUs, or if a
            worker fails for another reason than that it was killed.
    """
    # Its news are not the user's.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    import ray

    logging.disable(logging.WARNING)
    count = min(options.workers, len(missing))
    cores = _start_ray(ray, options.ray_address, count)
    try:
        rows = ray.data.from_items(
            [{"part": part} for part in missing],
            # Each is sent to a worker as a whole.
            override_num_blocks=min(len(missing), 100 * count),
        )
        done = rows.map(
            Worker,
            fn_constructor_args=[
                *(parts, os.path.abspath(model), checksum, options, cores)
            ],
            compute=ray.data.ActorPoolStrategy(size=count),
            num_cpus=cores,
            num_gpus=1 if _num_gpus(ray) else None,
        )
        for row in done.iter_rows():
            yield row["lines"]
    except ray.exceptions.RayError as error:
        raise ValueError(
            "A worker failed: "
            f"{str(error).strip().splitlines()[-1].rstrip('.')}. Run the same "
            "command again to continue."
        ) from error
    finally:
        ray.shutdown()
        logging.disable(logging.NOTSET)


def _start_ray(ray, address: str | None, count: int) -> int:
    """Starts Ray on this machine, or joins a cluster; the cores of a worker.

    Raises:
        ValueError: If there are not enough cores or GPUs.
    """
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    cores = 1
    if address is None:
        from keras_attention import devices

        cores = max(1, devices.num_cores() // count)
        ray.init(
            # One more reads: Ray would wait for it for ever.
            num_cpus=count * cores + 1,
            address="local",
            # Other machines need not reach it.
            _node_ip_address="127.0.0.1",
            include_dashboard=False,
            **quiet,
        )
    else:
        ray.init(address=address, **quiet)
    ray.data.DataContext.get_current().enable_progress_bars = False
    have = ray.cluster_resources()
    needed = {"CPU": count * cores + 1}
    if _num_gpus(ray):
        needed["GPU"] = count
    for kind, number in needed.items():
        if have.get(kind, 0) < number:
            ray.shutdown()
            reader = ", one of which reads the lines" if kind == "CPU" else ""
            raise ValueError(
                f"{count} workers need {number} {kind}s{reader}. Ray has "
                f"{have.get(kind, 0):.0f}. Give a smaller --workers."
            )
    return cores


def _num_gpus(ray) -> int:
    return int(ray.cluster_resources().get("GPU", 0))
