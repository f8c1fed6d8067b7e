"""Files of many lines, answered into a folder of parts.

The folder holds

- `000000.txt`, `000001.txt`, ...: the answers to 1,000 lines each, in order,
- `refused/000000.tsv`: lines of a part without an answer, and why,
- `made_of.json`: what the folder was made of.

A part is written whole or not at all, so a command that is given again goes on
with the parts that are missing.

This module imports TensorFlow only in its functions: a worker first silences
what TensorFlow prints when it is imported.
"""

import dataclasses
import hashlib
import itertools
import json
import pathlib
import shutil
import sys
import time
from collections.abc import Iterable, Iterator

from keras_attention.commands import arguments, asked_lines
from keras_attention.config import search

# Lines of a part. A command that is killed has worked on one in vain.
PART = 1000
# Where these differ, the answers would differ.
CHOICES = (*search.NAMES, "n_best", "scores", "truncate")


@dataclasses.dataclass(frozen=True)
class Parts:
    """The files of a folder of parts, which has no `~` in its path."""

    folder: pathlib.Path

    def written(self, part: int) -> pathlib.Path:
        """The answers of a part; the file is there when all of them are."""
        return self.folder / f"{part:06}.txt"

    def refused(self, part: int) -> pathlib.Path:
        """The lines without an answer: number from 1, tab, what is wrong."""
        return self.folder / "refused" / f"{part:06}.tsv"

    def lines(self, part: int) -> pathlib.Path:
        """The lines of a part, where workers on other machines read them."""
        return self.folder / ".lines" / f"{part:06}.txt"

    def write(self, part: int, model, lines: list[str], options) -> None:
        """Answers the lines of a part."""
        from keras_attention import files

        asked = asked_lines.of(model, lines, options)
        groups = asked.written(asked.ask(asked.rows))
        if asked.problems:
            rows = [
                f"{part * PART + line}\t{problem}\n"
                for line, problem in sorted(asked.problems.items())
            ]
            self.refused(part).parent.mkdir(exist_ok=True)
            files.write_atomically(
                self.refused(part), "".join(rows).encode("utf-8")
            )
        text = "".join(f"{line}\n" for group in groups for line in group)
        files.write_atomically(self.written(part), text.encode("utf-8"))

    def problems(self) -> dict[int, str]:
        """Line -> what is wrong, for all lines without an answer."""
        rows = (
            row.split("\t", 1)
            for path in sorted(self.refused(0).parent.glob("*.tsv"))
            for row in path.read_text("utf-8").splitlines()
        )
        return {int(line): problem for line, problem in rows}


def write_parts(model: str, inputs, options) -> None:
    """Answers the lines of files into a folder, and shows how far it has come.

    Args:
        model: the folder of a model.
        inputs: paths of files.
        options: `commands.predict.Options`, with `output`.

    Raises:
        ImportError: If several workers are asked for without Ray.
        ValueError: If the folder was made of something else, if the model
            cannot answer as the options ask or trains on, or if there are
            lines without an answer.
    """
    from keras_attention.commands import on_ray

    with_ray = options.workers > 1 or options.ray_address is not None
    if with_ray:
        on_ray.check()
    arguments.import_tensorflow()
    from keras_attention import files, runs
    from keras_attention.serving import savedmodel

    if not arguments.is_run(model):
        # A version that is exported in the meantime is not meant.
        model = str(savedmodel.newest(model))
    checksum = runs.checksum(model)
    if with_ray:
        on_ray.leave_gpus()
    loaded = load(model, checksum, options)
    parts = Parts(pathlib.Path(options.output).expanduser().absolute())
    num_lines, digest = _count(inputs)
    content = {name: getattr(options, name) for name in CHOICES}
    rarer = ("mbr", "prefix", "terms", "keep", "split_sentences")
    content |= {name: getattr(options, name) or None for name in rarer}
    content["stand_in"] = options.stand_in if options.keep else None
    content |= {"model": checksum, "lines": num_lines, "lines_sha256": digest}
    with files.lock(parts.folder):
        _begin(parts.folder, content)
        files.remove_temporaries(parts.folder)
        missing = [
            part
            for part in range(-(-num_lines // PART))
            if not parts.written(part).is_file()
        ]
        if with_ray and missing:
            _write_lines(parts, missing, inputs)
            done = on_ray.write_parts(parts, missing, model, checksum, options)
        else:
            done = _by_one(parts, missing, inputs, loaded, options)
        left = sum(min(PART, num_lines - part * PART) for part in missing)
        _show(done, num_lines - left, num_lines)
        shutil.rmtree(parts.lines(0).parent, ignore_errors=True)
    asked_lines.name_mistyped(options.kept, lambda: texts(_read(inputs)))
    asked_lines.refuse(parts.problems(), num_lines)


def load(model: str, checksum: str, options):
    """The model, if it can answer as the options ask and is still the same.

    Raises:
        ValueError: If it cannot or is not.
    """
    from keras_attention import runs

    loaded = arguments.load(model, options)
    asked_lines.of(loaded, [], options).ask([])  # It refuses other beams.
    if runs.checksum(model) != checksum:
        raise ValueError(
            f"{model} has changed while it was loaded. Wait until its training "
            "has ended, or export it."
        )
    return loaded


def _begin(folder: pathlib.Path, content: dict) -> None:
    """Notes what the folder is made of, or checks it.

    Raises:
        ValueError: If it is made of something else.
    """
    from keras_attention import files

    path = folder / "made_of.json"
    if not path.is_file():
        if [*folder.glob("[!.]*")]:
            raise ValueError(
                f"{folder} holds other files. Choose an empty folder as "
                "--output."
            )
        text = json.dumps(content, indent=1)
        files.write_atomically(path, text.encode())
        return
    begun = json.loads(path.read_text())
    for name in {**begun, **content}:
        if begun.get(name) != content.get(name):
            raise ValueError(
                f"The answers in {folder} were begun with "
                f"{name}={begun.get(name)}, not {content.get(name)}. Give the "
                "same model, lines and options to go on, or choose another "
                "--output."
            )


def _count(inputs) -> tuple[int, str]:
    """The number of lines, and a checksum of them."""
    number, digest = 0, hashlib.sha256()
    for line in _read(inputs):
        number += 1
        digest.update(line + b"\n")
    return number, digest.hexdigest()


def _read(inputs) -> Iterator[bytes]:
    from keras_attention.data.readers import lines

    return itertools.chain.from_iterable(map(lines.read_bytes, inputs))


def _lines_of(missing, inputs) -> Iterator[tuple[int, list[bytes]]]:
    """The number and lines of each missing part. Memory holds one part."""
    left, wanted = _read(inputs), set(missing)
    for part in itertools.count():
        lines = list(itertools.islice(left, PART))
        if not lines:
            return
        if part in wanted:
            yield part, lines


def texts(lines: Iterable[bytes]) -> list[str]:
    """Lines as a model takes them."""
    return [line.decode("utf-8", "replace") for line in lines]


def _by_one(parts: Parts, missing, inputs, model, options) -> Iterator[int]:
    """Answers the missing parts here; yields the lines of each."""
    for part, lines in _lines_of(missing, inputs):
        parts.write(part, model, texts(lines), options)
        yield len(lines)


def _write_lines(parts: Parts, missing, inputs) -> None:
    """Writes the lines of the missing parts where all workers find them."""
    from keras_attention import files

    parts.lines(0).parent.mkdir(exist_ok=True)
    for part, lines in _lines_of(missing, inputs):
        content = b"".join(line + b"\n" for line in lines)
        files.write_atomically(parts.lines(part), content)


def _show(done: Iterator[int], num_done: int, num_lines: int) -> None:
    """Prints a line on how far the work has come, after each part."""
    ending = "\r" if sys.stdout.isatty() else "\n"
    begun, at_first = time.monotonic(), num_done
    for count in itertools.chain([0], done):
        num_done += count
        rate = (num_done - at_first) / max(time.monotonic() - begun, 1e-9)
        print(
            f"{num_done:,} of {num_lines:,} lines, {rate:,.1f} a second",
            end=ending,
            flush=True,
        )
    if ending == "\r":
        print()
