"""Files of lines come out as `translate` would print them."""

import pathlib
import re
import subprocess
import time

import pytest

from keras_attention import cli

LINES = ["one two", "", "three", "nine " * 300, "four", "five six", "seven"]


@pytest.fixture(scope="module")
def model(random_translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("savedmodel") / "luong"
    random_translator("luong").export(folder)
    return folder


@pytest.fixture
def inputs(tmp_path):
    paths = [tmp_path / "first.txt", tmp_path / "second.txt"]
    paths[0].write_text("\n".join(LINES[:3]) + "\n")
    paths[1].write_text("\n".join(LINES[3:]) + "\n")
    return paths


def written(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.txt")))


@pytest.mark.slow
def test_two_workers_write_what_one_prints(
    command, environment, model, inputs, tmp_path, capsys
):
    """A line that is too long stays empty, and is named when it goes on."""
    with pytest.raises(SystemExit) as plain:
        cli.main(["translate", str(model), *LINES])
    printed, error = capsys.readouterr().out.encode(), str(plain.value).encode()
    assert error.endswith(b"301 tokens in line 4; 1 such lines in all")
    told = ["translate", str(model), "--input", *map(str, inputs)]
    told += ["--output", str(tmp_path / "out"), "--shards=3", "--workers=2"]
    sharded = subprocess.run(
        command(told), capture_output=True, env=environment
    )
    assert sharded.stderr.splitlines()[-1] == error
    assert sharded.returncode == 1
    assert b"7 of 7 lines" in sharded.stdout
    assert written(tmp_path / "out") == printed
    again = subprocess.run(command(told), capture_output=True, env=environment)
    assert again.stderr.splitlines()[-1] == error
    assert written(tmp_path / "out") == printed


def children(pid):
    """The processes of Python that a process has begun, but for trackers."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
            parent = re.search(r"PPid:\s*(\d+)", (path / "status").read_text())
        except OSError:
            continue
        if int(parent.group(1)) == pid and b"spawn_main" in words:
            found.append(int(path.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(
    not pathlib.Path("/proc/self/status").is_file(), reason="needs /proc"
)
def test_the_others_do_the_work_of_a_killed_worker(
    command, environment, model, tmp_path
):
    source, out = tmp_path / "lines.txt", tmp_path / "out"
    words = "one two three four five six seven eight nine".split()
    lines = [f"{a} {b} {c}" for a in words for b in words for c in words]
    source.write_text("\n".join(lines) + "\n")
    told = ["translate", str(model), "--input", str(source), "--workers=2"]
    told += ["--shards=81", "--output", str(out)]
    with subprocess.Popen(command(told), env=environment) as process:
        try:
            while not [*out.glob("*.txt")]:
                assert process.poll() is None
                time.sleep(0.1)
            workers = children(process.pid)
            assert len(workers) == 2
            subprocess.run(["kill", "-9", str(workers[0])], check=True)
            assert len([*out.glob("*.txt")]) < 81
            assert process.wait(600) == 0
        finally:
            process.kill()
    plain = subprocess.run(
        command(["translate", str(model)]),
        input=source.read_bytes(),
        stdout=subprocess.PIPE,
        env=environment,
        check=True,
    )
    assert written(out) == plain.stdout


@pytest.mark.parametrize(
    "more",
    [
        ["--output={tmp}/out"],
        ["--input", "{tmp}/first.txt"],
        ["a", "--input", "{tmp}/first.txt", "--output={tmp}/out"],
        ["--input", "{tmp}/first.txt", "--output=x", "--attention=a.png"],
    ],
)
def test_files_need_a_folder_and_nothing_else(model, inputs, tmp_path, more):
    told = [word.format(tmp=tmp_path) for word in more]
    with pytest.raises(SystemExit, match="Expected --input with --output"):
        cli.main(["translate", str(model), *told])


def test_a_file_that_is_not_there_is_named(model, tmp_path):
    told = ["--input", str(tmp_path / "none"), "--output", str(tmp_path)]
    with pytest.raises(SystemExit, match="Expected a file as --input"):
        cli.main(["translate", str(model), *told])
