"""Files that are written whole or not at all, and locks on folders."""

import contextlib
import errno
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

    What is locked is a file in the folder, as network file systems lock no
    folders. The folder is made if it is not there. The file is there while the
    lock is held. The lock ends with the process, even if the process is killed.
    The file then stays, and the next one to lock it takes it away.

    Args:
        folder: where others shall not write.

    Raises:
        ValueError: If another process or thread holds the lock.
    """
    folder = pathlib.Path(folder)
    path, handle = folder / ".lock", None
    while handle is None:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = _open_locked(path)
        except BlockingIOError as error:
            raise ValueError(
                f"Another process writes in {folder} now. Wait until it ends, "
                "or choose another folder."
            ) from error
        except OSError as error:
            # Another holder has removed the file, or the folder.
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                raise
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _open_locked(path: pathlib.Path) -> int | None:
    """A handle of a file that is locked, or None if it is another by now."""
    with contextlib.ExitStack() as stack:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        stack.callback(os.close, handle)
        # Where a killed process leaves it, other users have to open it.
        with contextlib.suppress(OSError):
            os.fchmod(handle, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last holder may have removed it after it was opened here. A
        # network file system may only have renamed it.
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            return None
        stack.pop_all()
        return handle


def check_folder(folder: str | os.PathLike) -> None:
    """Checks that a folder is there, or can be made, and takes files.

    Raises:
        ValueError: If something else has its name, or that of a folder above
            it, or if nobody may write there.
    """
    folder = pathlib.Path(folder).expanduser()
    place = next(
        path for path in (folder, *folder.parents) if os.path.lexists(path)
    )
    if not place.is_dir():
        raise ValueError(
            f"{folder} cannot be a folder, because {place} is not a folder."
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(
            f"You have no permission to write in {place}, so {folder} cannot "
            "be used."
        )


def file_mode() -> int:
    """The mode that `open` gives a new file, unlike `mkstemp`."""
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def remove_temporaries(folder: pathlib.Path) -> None:
    """Removes the files that killed writes have left in a folder."""
    for path in pathlib.Path(folder).glob(".*.writing-*"):
        path.unlink(missing_ok=True)
