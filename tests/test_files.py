"""Files are whole or the old ones; one writes in a folder at a time."""

import contextlib
import fcntl
import os
import stat
import threading
import time

import pytest

from keras_attention import files


def test_what_is_written_replaces_what_was(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    files.write_atomically(path, b"new")
    assert path.read_text() == "new"
    other = tmp_path / "b"
    other.write_text("x")
    # As `open` makes a file, not to its owner alone.
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(
        other.stat().st_mode
    )


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, function):
    path = tmp_path / "a"
    path.write_text("old")

    def fail(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="No space left"):
        files.write_atomically(path, b"new")
    assert os.listdir(tmp_path) == ["a"]
    assert path.read_text() == "old"


def test_a_lock_holds_until_its_block_ends(tmp_path):
    folder = tmp_path / "a" / "b"
    with files.lock(folder):
        with pytest.raises(ValueError, match="writes in .*b now"):
            with files.lock(folder):
                pass
    with files.lock(folder):
        assert folder.is_dir()


def test_a_lock_is_a_file_while_it_is_held(tmp_path):
    """Network file systems lock files, not folders."""
    with files.lock(tmp_path):
        assert os.listdir(tmp_path) == [".lock"]
    assert os.listdir(tmp_path) == []
    # A killed process leaves it.
    (tmp_path / ".lock").write_text("")
    with files.lock(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_one_at_a_time_holds_a_lock(tmp_path):
    """Although each of them takes its file away."""
    inside, most = [], []

    def count():
        done = 0
        while done < 50:
            with contextlib.suppress(ValueError), files.lock(tmp_path):
                inside.append(1)
                time.sleep(0.0005)
                most.append(len(inside))
                inside.pop()
                done += 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 200


def test_a_file_that_was_renamed_is_no_lock(tmp_path, monkeypatch):
    """As NFS renames a file that is removed while others have it open."""
    flock = fcntl.flock

    def renamed(*arguments):
        monkeypatch.undo()
        os.rename(tmp_path / ".lock", tmp_path / ".nfs1")
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", renamed)
    with files.lock(tmp_path):
        assert sorted(os.listdir(tmp_path)) == [".lock", ".nfs1"]


def test_other_users_may_open_a_file_that_is_left(tmp_path):
    with files.lock(tmp_path):
        mode = (tmp_path / ".lock").stat().st_mode
    assert stat.S_IMODE(mode) == 0o666


def test_only_temporaries_are_removed(tmp_path):
    for name in ("checkpoint.npz", ".hidden", ".a.npz.writing-x1", "b"):
        (tmp_path / name).write_text("")
    files.remove_temporaries(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hidden", "b", "checkpoint.npz"]
