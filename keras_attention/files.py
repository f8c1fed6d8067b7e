"""Files that are written whole or not at all, and locks on folders."""

import contextlib
import fcntl
import os
import pathlib
import tempfile


def write_atomically(path: pathlib.Path, data: bytes) -> None:
    """Writes a file so that it is the old or the new one at any moment.

    Args:
        path: the file; its folder exists.
        data: its new content.
    """
    path = pathlib.Path(path)
    handle, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.writing-"
    )
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, file_mode())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def lock(folder: pathlib.Path):
    """Keeps other processes and threads from writing in a folder.

    The folder is made if it is not there. The lock ends with the process,
    even if the process is killed.

    Raises:
        ValueError: If another process or thread holds the lock.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                "Expected a folder that nobody else writes in now: wait for "
                f"the other process, or choose another. Received: {folder}"
            ) from error
        yield
    finally:
        os.close(handle)


def file_mode() -> int:
    """The mode that `open` gives a new file, unlike `mkstemp`."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def remove_temporaries(folder: pathlib.Path) -> None:
    """Removes the files that killed writes have left in a folder."""
    for path in pathlib.Path(folder).glob(".*.writing-*"):
        path.unlink(missing_ok=True)
