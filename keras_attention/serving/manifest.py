"""MANIFEST.sha256: the digest of each file of each exported version.

`sha256sum -c MANIFEST.sha256` checks it in the folder that holds the versions.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import re
from collections.abc import Iterator

from keras_attention import files

NAME = "MANIFEST.sha256"

# What TensorFlow or a server reads in a version's folder.
_READ_FILES = re.compile(
    r"saved_model\.(pb|pbtxt|cpb)|fingerprint\.pb|keras_metadata\.pb",
    re.IGNORECASE,
)
_READ_FOLDERS = ("assets", "assets.extra", "debug", "variables")
# What systems leave in any folder, hidden files among it.
_STRAY = re.compile(
    r"\..*|(eh)?thumbs\.db|desktop\.ini|icon\r|lost\+found|@eadir|__macosx"
    r"|.*:zone\.identifier",
    re.IGNORECASE,
)


def lines(version: pathlib.Path, number: int) -> list[str]:
    """The manifest's lines of a version that was written, by file name."""
    return [
        f"{_sha256(path)}  {number}/{path.relative_to(version).as_posix()}"
        for path in sorted(version.rglob("*"))
        if path.is_file()
    ]


@contextlib.contextmanager
def with_lines(
    manifest: pathlib.Path, added: list[str], number: int
) -> Iterator[None]:
    """Adds a version's lines, and takes them out if the version fails."""
    old = manifest.read_bytes() if manifest.exists() else None
    prefix = f"  {number}/"
    kept = [
        line
        for line in (old or b"").decode("utf-8", "replace").splitlines()
        if prefix not in line
    ]
    text = "\n".join([*kept, *added]) + "\n"
    files.write_atomically(manifest, text.encode())
    try:
        yield
    except BaseException:
        if old is None:
            manifest.unlink()
        else:
            files.write_atomically(manifest, old)
        raise


def check(version: str | os.PathLike) -> None:
    """Compares the files of a version with the manifest beside it.

    A version may have been renamed or copied to another number: its files
    must be those of one of the manifest's versions. It may be a symbolic
    link: the manifest stands beside the link or beside what it leads to.
    Files that neither TensorFlow nor a server reads, such as those that a
    file manager leaves, are ignored.

    Args:
        version: a version's folder, `savedmodels/NAME/1`.

    Raises:
        ValueError: If there is no manifest, or a file is missing, changed or
            not in the manifest. The message names the first such file.
    """
    version = pathlib.Path(os.path.expanduser(version)).absolute()
    found = places(version)
    if not found:
        raise ValueError(
            f"Expected {NAME} beside the versions: copy it along with "
            f"them, or export the model again. Received: {version.parent}"
        )
    problems = [_problem(place) for place in found]
    if None not in problems:
        raise ValueError(
            "Expected the files that were exported: copy or export the "
            f"model again. Received: {problems[0]}"
        )


def checksum(version: str | os.PathLike) -> str:
    """The SHA-256 of all that TensorFlow or a server reads in a version.

    Args:
        version: a version's folder, `savedmodels/NAME/1`.
    """
    version = pathlib.Path(os.path.expanduser(version)).absolute()
    digests = [
        f"{_sha256(version / name)}  {name}\n"
        for name in sorted({*_read(version)})
    ]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def places(version: pathlib.Path) -> list[pathlib.Path]:
    """Where a version is and has a manifest beside it; [] for no manifest.

    A version that is a symbolic link has a place for each that it leads to.
    """
    found = [version]
    # A ring of links has no end.
    while found[-1].is_symlink() and len(found) < 40:
        found.append(found[-1].parent / found[-1].readlink())
    found.append(pathlib.Path(os.path.realpath(version)))
    return [place for place in found if (place.parent / NAME).is_file()]


def _problem(version: pathlib.Path) -> str | None:
    """The first file that differs, or None for a whole export."""

    @functools.cache
    def digest(name):
        path = version / name
        return _sha256(path) if path.is_file() else None

    def likeness(number):
        pairs = entries[number].items()
        num_equal = sum(digest(name) == expected for name, expected in pairs)
        return num_equal, number == version.name

    entries = _entries(version.parent / NAME)
    numbers = sorted(entries, key=likeness, reverse=True)
    problems = [
        _difference(version, entries[number], digest) for number in numbers
    ]
    if None in problems:
        return None
    if not numbers or not any(likeness(numbers[0])):
        # Nothing in it was ever exported here.
        return _difference(version, {}, digest)
    return problems[0]


def _entries(manifest: pathlib.Path) -> dict[str, dict[str, str]]:
    """Number of a version -> name of a file -> digest."""
    entries = {}
    for line in manifest.read_text("utf-8", "replace").splitlines():
        digest, _, path = line.partition(" ")
        # As `sha256sum --binary` and `find .` write it.
        path = path.lstrip(" *").removeprefix("./")
        number, _, name = path.partition("/")
        if name:
            entries.setdefault(number, {})[name] = digest
    return entries


def _difference(version, expected, digest) -> str | None:
    """What is wrong with the first file that is not as expected."""
    for name in sorted({*expected, *_read(version), "saved_model.pb"}):
        path = version / name
        if not path.is_file():
            leads = "is a link to nothing" if path.is_symlink() else ""
            return f"{path} {leads or 'is missing'}"
        if name not in expected:
            return f"{path} is not in the manifest"
        if digest(name) != expected[name]:
            if _is_pointer(path):
                return f"{path} is a pointer of Git LFS: run `git lfs pull`"
            return f"{path} was changed or damaged"
    return None


def _read(version: pathlib.Path) -> Iterator[str]:
    """The files in a version's folder that something may read."""
    for path in version.glob("*"):
        if _READ_FILES.fullmatch(path.name) and path.is_file():
            yield path.name
    for folder in _READ_FOLDERS:
        for root, _, names in os.walk(version / folder):
            for name in names:
                path = (pathlib.Path(root) / name).relative_to(version)
                if not any(map(_STRAY.fullmatch, path.parts)):
                    yield path.as_posix()


def _is_pointer(path: pathlib.Path) -> bool:
    with open(path, "rb") as file:
        return file.read(100).startswith(b"version https://git-lfs")


def _sha256(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
