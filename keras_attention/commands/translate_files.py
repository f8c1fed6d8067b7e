"""Files of lines, translated by several processes into a folder of shards.

This module imports TensorFlow only in its functions: a worker first silences
what TensorFlow prints when it is imported.
"""

import multiprocessing
import os
import pathlib
import shutil
import sys
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
        ValueError: If the folder holds other shards, if workers ended before
            their time, or if lines were too long.
    """
    is_told = "TF_CPP_MIN_LOG_LEVEL" in os.environ
    arguments.import_tensorflow()
    from keras_attention.serving import shards

    choices = {name: getattr(options, name) for name in CHOICES}
    choices["model"] = str(pathlib.Path(model).expanduser().resolve())
    split = shards.split(inputs, options.output, options.shards, choices)
    if not is_told:
        # A worker asks the same question.
        del os.environ["TF_CPP_MIN_LOG_LEVEL"]
    place = (split.folder, split.num_lines, split.count)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(
            target=_work, args=(model, options, place, number), daemon=True
        )
        for number in range(min(options.workers, len(split.missing())))
    ]
    for process in processes:
        process.start()
    _watch(split, processes)
    if left := len(split.missing()):
        ends = [process.exitcode for process in processes]
        raise ValueError(
            "Expected workers that work to the end: give the command again, "
            f"and it goes on. Received: {left} of {split.count} shards left, "
            f"from workers with the exit status {ends}"
        )
    for name in (".lines", ".locks"):
        shutil.rmtree(split.folder / name, ignore_errors=True)
    rows = split.lines_too_long()
    answers.refuse({line: (tokens, limit) for line, tokens, limit in rows})


def _work(model, options, place, number) -> None:
    """A worker: loads the model, and answers shards until none is missing."""
    _take_cores(number, options.workers)
    arguments.import_tensorflow()
    from keras_attention.commands import runs
    from keras_attention.serving import shards

    try:
        loaded = runs.load(model, *arguments.search(model, options))
        answers.check(loaded, options)
        ask = answers.method(loaded, options)
        starter = multiprocessing.parent_process()

        def answer(lines):
            if not starter.is_alive():
                sys.exit("Expected the command that began this worker to run.")
            short, too_long = answers.short_lines(loaded, lines, options)
            groups = answers.groups(ask(short), len(lines), too_long, options)
            return (line for group in groups for line in group), too_long

        shards.work(shards.Shards(*place), answer)
    except (ValueError, OSError) as error:
        sys.exit(f"keras-attention translate: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _take_cores(number: int, count: int) -> None:
    """Gives a worker its share of the cores, where there is one for each."""
    if hasattr(os, "sched_setaffinity"):
        share = sorted(os.sched_getaffinity(0))[number::count]
        if share:
            os.sched_setaffinity(0, share)


def _watch(split, processes) -> None:
    """Prints one line on all workers, until they have ended."""
    ending = "\r" if sys.stdout.isatty() else "\n"
    begun, at_first, shown = time.monotonic(), split.num_done(), None
    while True:
        running = any(process.is_alive() for process in processes)
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
