"""MANIFEST.sha256: the digest of each file of each exported version.

`sha256sum -c MANIFEST.sha256` checks it in the folder that holds the versions.
"""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Iterator

from keras_attention import files

NAME = "MANIFEST.sha256"


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
    old = manifest.read_text("utf-8") if manifest.exists() else None
    kept = (old or "").splitlines()
    kept = [line for line in kept if f"  {number}/" not in line]
    text = "\n".join([*kept, *added]) + "\n"
    files.write_atomically(manifest, text.encode())
    try:
        yield
    except BaseException:
        if old is None:
            manifest.unlink()
        else:
            files.write_atomically(manifest, old.encode())
        raise


def check(version: str | os.PathLike) -> None:
    """Compares the files of a version with the manifest beside it.

    A version may have been copied to another number: its files must be those
    of one of the manifest's versions. It may be a symbolic link: the manifest
    stands beside the link or beside what it leads to. Files that the manifest
    does not know are ignored, as `sha256sum -c` ignores them.

    Args:
        version: a version's folder, `savedmodels/NAME/1`.

    Raises:
        ValueError: If there is no manifest, or a file is missing or changed.
            The message names the first such file.
    """
    version = pathlib.Path(os.path.expanduser(version)).absolute()
    listed = _listed(version)
    if not listed:
        raise ValueError(
            f"{version.parent} has no {NAME} with the files of a version: copy "
            "it along with the versions, or export the model again"
        )
    # That of its own number comes first: its problem is the one to tell.
    own = listed.pop(version.name, None)
    problems = []
    for digests in [own, *listed.values()] if own else listed.values():
        problem = _problem(version, digests)
        if problem is None:
            return
        problems.append(problem)
    raise ValueError(
        f"{problems[0]}. The files are not those that were exported: copy or "
        "export the model again"
    )


def places(version: pathlib.Path) -> list[pathlib.Path]:
    """The manifests beside a version and beside what it leads to."""
    folders = {version.absolute().parent: None, version.resolve().parent: None}
    return [folder / NAME for folder in folders if (folder / NAME).is_file()]


def _listed(version) -> dict[str, dict[str, str]]:
    """Number of a version -> name of a file -> digest."""
    listed = {}
    for manifest in places(version):
        for line in manifest.read_text("utf-8", "replace").splitlines():
            digest, _, path = line.partition(" ")
            # As `sha256sum --binary` and `find .` write it.
            path = path.lstrip(" *").removeprefix("./")
            number, _, name = path.partition("/")
            if name:
                listed.setdefault(number, {})[name] = digest
    return listed


def _problem(version, digests) -> str | None:
    """What is wrong with the first file that differs, if one does."""
    for name, digest in digests.items():
        path = version / name
        if not path.is_file():
            return f"{path} is missing"
        if _sha256(path) != digest:
            with open(path, "rb") as file:
                if file.read(100).startswith(b"version https://git-lfs"):
                    return f"{path} is a pointer of Git LFS: run `git lfs pull`"
            return f"{path} was changed or damaged"
    return None


def _sha256(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
