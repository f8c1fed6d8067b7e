"""Many lines in shards: each is locked, answered, and written whole.

A folder of shards holds

- `00000-of-00016.txt` and so on: the answers, in the order of the lines,
- `shards.json`: what the folder was made of,
- `.lines/`: the lines of the shards that wait,
- `.too_long/`: which lines of a shard were too long, if any were,
- `.locks/`: a file for each shard that is being answered: its worker locks it.

Several processes may work on one folder, also from several machines that share
it. A process that is killed costs its shard alone: the lock ends with it.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from keras_attention import files
from keras_attention.data.readers import lines

# Lines of a shard, if nobody says how many shards there are.
LINES_OF_A_SHARD = 1000
_MANIFEST = "shards.json"


@dataclasses.dataclass(frozen=True)
class Shards:
    """The files of a folder of shards.

    Args:
        folder: the folder.
        num_lines: of all shards together.
        count: the number of shards.
    """

    folder: pathlib.Path
    num_lines: int
    count: int

    def _name(self, index: int) -> str:
        """By name, the shards are in their order, however many they are."""
        width = max(5, len(str(self.count)))
        return f"{index:0{width}d}-of-{self.count:0{width}d}.txt"

    def answers(self, index: int) -> pathlib.Path:
        """The answers of a shard; the file is there when all of them are."""
        return self.folder / self._name(index)

    def lines(self, index: int) -> pathlib.Path:
        """The lines of a shard, until its answers are there."""
        return self.folder / ".lines" / self._name(index)

    def too_long(self, index: int) -> pathlib.Path:
        """Of a shard's lines that are too long, if any: `[line, tokens, limit]`
        of each, where `line` counts through all shards from 1."""
        return self.folder / ".too_long" / self._name(index)

    def lock(self, index: int):
        """The lock of the worker on a shard, see `files.lock`."""
        return files.lock(self.folder / ".locks", self._name(index))

    def start(self, index: int) -> int:
        """How many lines the shards before this one hold."""
        return self.num_lines * index // self.count

    def missing(self) -> list[int]:
        """The shards without answers."""
        there = {*os.listdir(self.folder)}
        return [i for i in range(self.count) if self._name(i) not in there]

    def num_done(self) -> int:
        """The number of lines whose answers are there."""
        left = (self.start(i + 1) - self.start(i) for i in self.missing())
        return self.num_lines - sum(left)

    def lines_too_long(self) -> list[list[int]]:
        """`[line, tokens, limit]` of all lines that are too long, in order."""
        paths = [self.too_long(index) for index in range(self.count)]
        return [
            row
            for path in paths
            if path.is_file()
            for row in json.loads(path.read_text())
        ]


def is_split(folder: str | os.PathLike) -> bool:
    """Whether a folder holds the shards of an earlier call of `split`."""
    return (pathlib.Path(folder) / _MANIFEST).is_file()


def split(
    inputs: Sequence,
    folder: str | os.PathLike,
    count: int | None = None,
    choices: dict | None = None,
) -> Shards:
    """Splits the lines of files into shards, or finds those of an earlier call.

    Where another process splits lines in the folder now, it waits for it.

    Args:
        inputs: paths of text files, plain or compressed. Their lines are
            numbered through.
        folder: where the shards are to be; it is made if it is not there.
        count: the number of shards. By default that of an earlier call, or one
            for each `LINES_OF_A_SHARD` lines.
        choices: what decides the answers, such as the model. It is kept beside
            the shards.

    Raises:
        ValueError: If the folder holds other lines, other choices or another
            number of shards.
    """
    folder = pathlib.Path(folder)
    num_lines, checksum = _count(inputs)
    content = {"lines": num_lines, "checksum": checksum, **(choices or {})}
    with files.lock(folder, wait=True):
        if is_split(folder):
            begun = json.loads((folder / _MANIFEST).read_text())
            content["shards"] = begun["shards"] if count is None else count
            _check_equal(begun, content, folder)
            shards = Shards(folder, num_lines, content["shards"])
            # Those of answers that somebody has deleted.
            _write_lines(
                shards,
                inputs,
                {i for i in shards.missing() if not shards.lines(i).is_file()},
            )
            return shards
        count = count or max(1, -(-num_lines // LINES_OF_A_SHARD))
        content["shards"] = count
        shards = Shards(folder, num_lines, count)
        for name in (".lines", ".too_long"):
            # Those of a call that was stopped may be others.
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir()
        _write_lines(shards, inputs, set(range(count)))
        text = json.dumps(content, indent=1)
        files.write_atomically(folder / _MANIFEST, text.encode())
    return shards


def _write_lines(shards: Shards, inputs, indices: set[int]) -> None:
    """Writes the lines of some of the shards."""
    if not indices:
        return
    left = _read(inputs)
    for index in range(shards.count):
        size = shards.start(index + 1) - shards.start(index)
        part = b"".join(itertools.islice(left, size))
        if index in indices:
            shards.lines(index).parent.mkdir(exist_ok=True)
            files.write_atomically(shards.lines(index), part)


def _read(inputs) -> Iterator[bytes]:
    for path in inputs:
        for line in lines.read_bytes(path):
            yield line + b"\n"


def _count(inputs) -> tuple[int, str]:
    """The number of lines, and a checksum of them."""
    number, checksum = 0, hashlib.sha256()
    for line in _read(inputs):
        number += 1
        checksum.update(line)
    return number, checksum.hexdigest()


def _check_equal(begun: dict, content: dict, folder) -> None:
    for name in {**begun, **content}:
        old, new = begun.get(name), content.get(name)
        if old != new:
            raise ValueError(
                f"Expected {name}={old!r}, as the shards in this folder began: "
                "give the same again to go on, or choose another --output. "
                f"Received: {name}={new!r}, {folder}"
            )


def work(
    shards: Shards, answer: Callable[[list[str]], tuple[Iterable[str], dict]]
) -> None:
    """Answers shards that nobody else works on, until none is missing.

    It waits for the shards of others, and takes one whose worker was killed.

    Args:
        shards: from `split`.
        answer: a function of lines. It returns their answers, as lines without
            ends, and the lines that were too long: line, from 1 ->
            `(num_tokens, limit)`.
    """
    while missing := shards.missing():
        answered = [_answer_one(shards, index, answer) for index in missing]
        if not any(answered):
            time.sleep(0.5)


def _answer_one(shards, index, answer) -> bool:
    """Answers a shard, unless another worker does."""
    path = shards.answers(index)
    if path.is_file():
        return False
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(shards.lock(index))
        except (ValueError, FileExistsError):
            # Another one holds it, or takes the folder of locks away.
            return False
        if path.is_file():
            return False
        # What a worker has left that was killed on this shard.
        for unfinished in shards.folder.glob(f".{path.name}.writing-*"):
            unfinished.unlink(missing_ok=True)
        texts = [
            line.decode("utf-8", "replace")
            for line in lines.read_bytes(shards.lines(index))
        ]
        answers, too_long = answer(texts)
        if too_long:
            first = shards.start(index)
            rows = [[first + line, *sizes] for line, sizes in too_long.items()]
            content = json.dumps(rows)
            files.write_atomically(shards.too_long(index), content.encode())
        text = "".join(f"{line}\n" for line in answers)
        files.write_atomically(path, text.encode())
        # Another call may have seen the answers, and removed all lines.
        shards.lines(index).unlink(missing_ok=True)
    return True
