"""Many lines, translated by two workers, one of which is killed.

    python benchmarks/serving/million_lines.py --lines 1000000

The lines are one to three words. `keras-attention predict --workers 2`
answers them on Ray, in parts of 1,000 lines. When half of the parts are there,
SIGKILL ends one worker. One process alone then answers each text that occurs.

Expected: the command ends with status 0. Each line has one answer, at its
place, and it is the one that one process alone gives.
"""

import argparse
import itertools
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import servers

_COMMAND = [sys.executable, "-m", "keras_attention", "predict"]
_PART = 1000
_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve twenty "
    "thirty"
).split()


def write_lines(path, count):
    """Writes lines of random words, and gives them."""
    draw = random.Random(0)
    lines = [
        " ".join(draw.choices(_WORDS, k=draw.randint(1, 3)))
        for _ in range(count)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return lines


def by_one(lines):
    """Text -> its translation by one process."""
    texts = sorted({*lines})
    done = subprocess.run(
        [*_COMMAND, servers.PHRASES],
        input="".join(f"{text}\n" for text in texts),
        stdout=subprocess.PIPE,
        env=_environment(),
        text=True,
        check=True,
    )
    return dict(zip(texts, done.stdout.splitlines(), strict=True))


def workers():
    """The ids of Ray's processes that have a model (Linux)."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::MapWorker"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # It has ended by now.
    return found


def by_two(path, folder, num_parts):
    """Translates a file by two workers, and kills one at half.

    Returns:
        The status of the command, the number of parts that were there when
        the worker was killed, and the seconds in all.
    """
    start = time.monotonic()
    command = [*_COMMAND, servers.PHRASES, "--input", path, "--output", folder]
    command += ["--workers=2"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env=_environment()
    )
    try:
        while len(parts(folder)) < num_parts / 2 and process.poll() is None:
            time.sleep(0.05)
        num_done = len(parts(folder))
        for pid in workers()[:1]:
            os.kill(pid, signal.SIGKILL)
        status = process.wait()
    finally:
        process.kill()
    return status, num_done, time.monotonic() - start


def parts(folder):
    """The files of the parts that are there, in their order."""
    return sorted(folder.glob("*.txt"))


def answers(folder):
    """The lines of all parts."""
    for path in parts(folder):
        with path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")


def _environment():
    return {**os.environ, "PYTHONPATH": str(servers.ROOT)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        lines = write_lines(folder / "lines.txt", options.lines)
        num_parts = -(-options.lines // _PART)
        status, num_done, seconds = by_two(
            folder / "lines.txt", folder / "parts", num_parts
        )
        print(
            f"A worker was killed when {num_done} of {num_parts} parts were "
            f"there. The command took {seconds:.0f} s and ended with status "
            f"{status}.",
            flush=True,
        )
        found = [*answers(folder / "parts")]
    expected = by_one(lines)
    pairs = itertools.zip_longest(lines, found)
    num_wrong = sum(expected.get(line) != answer for line, answer in pairs)
    print(
        f"{len(lines)} lines of {len(expected)} texts, {len(found)} answers, "
        f"{num_wrong} of them not as one worker gives them"
    )
    is_good = not status and not num_wrong and num_done < num_parts
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
