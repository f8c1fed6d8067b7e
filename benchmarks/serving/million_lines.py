"""Many lines, translated by two workers, one of which is killed.

    python benchmarks/serving/million_lines.py --lines 1000000

The lines are one to three words. `keras-attention translate --input` splits
them into 100 shards. When half of the shards are there, SIGKILL ends one
worker. One worker alone then translates each text that occurs.

Expected: the command ends with status 0. Each line has one answer, at its
place, and it is the one that one worker alone gives.
"""

import argparse
import itertools
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import servers

_COMMAND = [sys.executable, "-m", "keras_attention", "translate"]
_SHARDS = 100
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
    """Text -> its translation by one worker."""
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


def workers(pid):
    """The process ids of the workers of a command (Linux)."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
            parent = re.search(r"PPid:\s*(\d+)", (path / "status").read_text())
        except OSError:
            continue  # It has ended by now.
        if int(parent[1]) == pid and b"spawn_main" in words:
            found.append(int(path.name))
    return found


def by_two(path, folder):
    """Translates a file by two workers, and kills one at half.

    Returns:
        The status of the command, the number of shards that were there when
        the worker was killed, and the seconds in all.
    """
    start = time.monotonic()
    command = [*_COMMAND, servers.PHRASES, "--input", path, "--output", folder]
    command += [f"--shards={_SHARDS}", "--workers=2"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env=_environment()
    )
    try:
        while len(shards(folder)) < _SHARDS / 2 and process.poll() is None:
            time.sleep(0.05)
        num_done = len(shards(folder))
        for pid in workers(process.pid)[:1]:
            os.kill(pid, signal.SIGKILL)
        status = process.wait()
    finally:
        process.kill()
    return status, num_done, time.monotonic() - start


def shards(folder):
    """The files of the shards that are there, in their order."""
    return sorted(folder.glob("*.txt"))


def answers(folder):
    """The lines of all shards."""
    for path in shards(folder):
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
        status, num_done, seconds = by_two(
            folder / "lines.txt", folder / "shards"
        )
        print(
            f"A worker was killed when {num_done} of {_SHARDS} shards were "
            f"there. The command took {seconds:.0f} s and ended with status "
            f"{status}.",
            flush=True,
        )
        found = [*answers(folder / "shards")]
    expected = by_one(lines)
    pairs = itertools.zip_longest(lines, found)
    num_wrong = sum(expected.get(line) != answer for line, answer in pairs)
    print(
        f"{len(lines)} lines of {len(expected)} texts, {len(found)} answers, "
        f"{num_wrong} of them not as one worker gives them"
    )
    is_good = not status and not num_wrong and num_done < _SHARDS
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
