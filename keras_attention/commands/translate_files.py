"""Files of lines, translated by several processes into a folder of shards.

This module imports TensorFlow only in its functions: a worker first silences
what TensorFlow prints when it is imported.
"""

import contextlib
import dataclasses
import multiprocessing
import multiprocessing.connection
import os
import shutil
import sys
import threading
import time

from keras_attention.commands import answers, arguments

# Where these differ, the lines of a shard would differ.
CHOICES = ("num_beams", "length_penalty", "n_best", "scores", "truncate")


def translate(model: str, inputs, options) -> None:
    """Translates files, and shows how far all workers have come.

    Args:
        model: the folder of a model.
        inputs: paths of files.
        options: `commands.translate.Options`, with `output`.

    Raises:
        ValueError: If the folder holds other shards, if the model cannot
            answer as the options ask or trains on, if workers ended before
            their time, or if lines were too long.
    """
    is_set = "TF_CPP_MIN_LOG_LEVEL" in os.environ
    arguments.import_tensorflow()
    from keras_attention import files, runs
    from keras_attention.serving import savedmodel, shards

    if not is_set:
        # A worker asks the same question.
        del os.environ["TF_CPP_MIN_LOG_LEVEL"]
    if not arguments.is_run(model):
        # A version that is exported while the workers load is not theirs.
        model = str(savedmodel.newest(model))
    choices = {name: getattr(options, name) for name in CHOICES}
    checksum = runs.checksum(model)
    choices["model"] = f"sha256:{checksum}"
    workers = []
    if not shards.is_split(options.output):
        # Nothing is written before the model has taken the options.
        count = min(options.workers, options.shards or options.workers)
        workers = _start(model, checksum, options, count)
    split = shards.split(inputs, options.output, options.shards, choices)
    count = min(options.workers, len(split.missing()))
    workers = workers or _start(model, checksum, options, count)
    for worker in workers:
        worker.begin(split)
    _watch(split, workers)
    if left := len(split.missing()):
        ends = [worker.process.exitcode for worker in workers]
        raise ValueError(
            "Expected workers that work to the end: give the command again, "
            f"and it goes on. Received: {left} of {split.count} shards left, "
            f"from workers with the exit status {ends}"
        )
    with files.lock(split.folder, wait=True):
        # Another command may have split lines again, of shards deleted since.
        if not split.missing():
            for name in (".lines", ".locks"):
                shutil.rmtree(split.folder / name, ignore_errors=True)
    rows = split.lines_too_long()
    answers.refuse({line: (tokens, limit) for line, tokens, limit in rows})


@dataclasses.dataclass(frozen=True)
class _Worker:
    """A process with a model, and the pipe between it and this process."""

    process: multiprocessing.Process
    pipe: multiprocessing.connection.Connection

    def refusal(self) -> str | None:
        """Why the model cannot answer; "" if it can, None without a word."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def begin(self, split) -> None:
        """Lets it answer shards, unless it was killed."""
        with contextlib.suppress(OSError):
            self.pipe.send((split.folder, split.num_lines, split.count))


def _start(model, checksum, options, count) -> list[_Worker]:
    """Workers that have loaded the model, but for those that were killed.

    Raises:
        ValueError: If the model cannot answer as the options ask, if it is
            another one by now, or if all workers were killed.
    """
    from keras_attention import runs

    context = multiprocessing.get_context("spawn")
    workers = []
    for number in range(count):
        here, there = context.Pipe()
        process = context.Process(
            target=_work,
            args=(model, options, number, count, there),
            daemon=True,
        )
        process.start()
        # The worker's end is open in the worker alone: it ends with it.
        there.close()
        workers.append(_Worker(process, here))
    refusals = [worker.refusal() for worker in workers]
    for refusal in filter(None, refusals):
        raise ValueError(refusal)
    if workers and "" not in refusals:
        for worker in workers:
            worker.process.join()
        raise ValueError(
            "Expected workers that load the model: fewer --workers need less "
            "memory. Received: workers with the exit status "
            f"{[worker.process.exitcode for worker in workers]}"
        )
    if runs.checksum(model) != checksum:
        raise ValueError(
            "Expected a model that stays as it is: wait until its training "
            f"has ended, or export it. Received: {model}, which has changed"
        )
    return workers


def _work(model, options, number, count, pipe) -> None:
    """A worker: loads the model, and answers shards until none is missing."""
    _take_cores(number, count)
    arguments.import_tensorflow()
    from keras_attention import runs
    from keras_attention.serving import shards

    try:
        try:
            loaded = runs.load(model, *arguments.search(model, options))
            answers.check(loaded, options)
            ask = answers.method(loaded, options)
            ask([])  # It refuses beams that it does not have.
        except (ValueError, OSError) as error:
            pipe.send(str(error))
            return
        pipe.send("")
        place = pipe.recv()
        threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()

        def answer(lines):
            short, too_long = answers.short_lines(loaded, lines, options)
            groups = answers.groups(ask(short), len(lines), too_long, options)
            return (line for group in groups for line in group), too_long

        shards.work(shards.Shards(*place), answer)
    except EOFError:
        sys.exit(1)  # The command that began this worker has ended.
    except (ValueError, OSError) as error:
        sys.exit(f"keras-attention translate: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _end_with(pipe) -> None:
    """Ends this process when the one that began it has ended, or was killed."""
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()
    os._exit(1)


def _take_cores(number: int, count: int) -> None:
    """Gives a worker its share of the cores, where there is one for each."""
    if hasattr(os, "sched_setaffinity"):
        share = sorted(os.sched_getaffinity(0))[number::count]
        if share:
            os.sched_setaffinity(0, share)


def _watch(split, workers) -> None:
    """Prints one line on all workers, until they have ended."""
    ending = "\r" if sys.stdout.isatty() else "\n"
    begun, at_first, shown = time.monotonic(), split.num_done(), None
    while True:
        running = any(worker.process.is_alive() for worker in workers)
        done = split.num_done()
        if done != shown:
            shown = done
            rate = (done - at_first) / (time.monotonic() - begun)
            print(
                f"{done:,} of {split.num_lines:,} lines, {rate:,.1f} a second",
                end=ending,
                flush=True,
            )
        if not running:
            break
        time.sleep(0.5)
    if ending == "\r":
        print()
