"""Files of lines come out as `translate` would print them."""

import multiprocessing
import pathlib
import re
import shutil
import subprocess
import time
import types

import pytest

from keras_attention import cli, runs

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
    command, environment, model, inputs, tmp_path, capsys, random_translator
):
    """A line that is too long stays empty, and is named when it goes on."""
    with pytest.raises(SystemExit) as plain:
        cli.main(["translate", str(model), *LINES])
    printed, error = capsys.readouterr().out.encode(), str(plain.value).encode()
    assert error.endswith(b"301 tokens in line 4; 1 such lines in all")
    line = ["translate", str(model), "--input", *map(str, inputs)]
    line += ["--output", str(tmp_path / "out"), "--shards=3", "--workers=2"]
    sharded = subprocess.run(
        command(line), capture_output=True, env=environment
    )
    assert sharded.stderr.splitlines()[-1] == error
    assert sharded.returncode == 1
    assert b"7 of 7 lines" in sharded.stdout
    assert written(tmp_path / "out") == printed
    again = subprocess.run(command(line), capture_output=True, env=environment)
    assert again.stderr.splitlines()[-1] == error
    assert written(tmp_path / "out") == printed
    # The model is known by its files, wherever they lie.
    line[1] = str(shutil.copytree(model, tmp_path / "copy"))
    with pytest.raises(SystemExit, match="301 tokens in line 4"):
        cli.main(line)
    random_translator("rnnsearch").export(tmp_path / "copy")
    with pytest.raises(SystemExit, match="Expected model='sha256:"):
        cli.main(line)


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
    line = ["translate", str(model), "--input", str(source), "--workers=2"]
    line += ["--shards=81", "--output", str(out)]
    with subprocess.Popen(command(line), env=environment) as process:
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


@pytest.mark.slow
@pytest.mark.skipif(
    not pathlib.Path("/proc/self/status").is_file(), reason="needs /proc"
)
def test_workers_end_with_a_killed_command(
    command, environment, model, tmp_path
):
    """Also in the middle of a shard, here one that takes minutes."""
    source, out = tmp_path / "lines.txt", tmp_path / "out"
    source.write_text("one two three four five six seven\n" * 100_000)
    line = ["translate", str(model), "--input", str(source), "--shards=1"]
    line += ["--output", str(out)]
    with subprocess.Popen(command(line), env=environment) as process:
        try:
            while not [*out.glob(".locks/*")]:
                assert process.poll() is None
                time.sleep(0.1)
            (worker,) = children(process.pid)
        finally:
            process.kill()
    status = pathlib.Path(f"/proc/{worker}/cmdline")
    start = time.monotonic()
    # A process that has ended has no words any more, or no file.
    while status.is_file() and status.read_bytes():
        assert time.monotonic() - start < 30
        time.sleep(0.1)
    assert not [*out.glob("*.txt")]


@pytest.mark.slow
def test_two_commands_share_a_folder(
    command, environment, model, tmp_path, capsys
):
    source, out = tmp_path / "lines.txt", tmp_path / "out"
    source.write_text("one two\nthree\n\nfour\n")
    cli.main(["translate", str(model), "one two", "three", "", "four"])
    line = ["translate", str(model), "--input", str(source), "--shards=3"]
    line += ["--output", str(out)]
    processes = [
        subprocess.Popen(command(line), env=environment) for _ in range(2)
    ]
    assert [process.wait(600) for process in processes] == [0, 0]
    assert written(out) == capsys.readouterr().out.encode()
    assert {path.name for path in out.glob(".*")} == {".too_long"}


@pytest.mark.slow
def test_options_are_refused_before_the_lines_are_split(
    model, inputs, tmp_path
):
    line = ["translate", str(model), "--input", str(inputs[0])]
    line += ["--output", str(tmp_path / "out"), "--num_beams=3"]
    with pytest.raises(SystemExit, match="Received: num_beams=3"):
        cli.main(line)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def start_workers(monkeypatch):
    """Has a function of a model and a pipe in place of each worker."""

    def use(work):
        def process(args, **_):
            model, *_, pipe = args
            return types.SimpleNamespace(
                start=lambda: work(model, pipe),
                join=lambda: None,
                exitcode=-9,
            )

        context = types.SimpleNamespace(
            Pipe=multiprocessing.Pipe, Process=process
        )
        monkeypatch.setattr(multiprocessing, "get_context", lambda _: context)

    return use


@pytest.mark.parametrize("shards, ends", [(1, "[-9]"), (3, "[-9, -9]")])
def test_workers_that_are_killed_while_they_load_are_reported(
    start_workers, model, inputs, tmp_path, shards, ends
):
    """There are no more of them than shards."""
    start_workers(lambda model, pipe: None)
    line = ["translate", str(model), "--input", str(inputs[0]), "--workers=2"]
    line += [f"--shards={shards}", "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match=f"exit status {re.escape(ends)}$"):
        cli.main(line)
    assert not (tmp_path / "out").exists()


def test_a_model_that_changes_while_it_is_loaded_is_refused(
    start_workers, model, inputs, tmp_path
):
    def train_on(model, pipe):
        with open(pathlib.Path(model) / "saved_model.pb", "ab") as file:
            file.write(b"more")
        pipe.send("")

    start_workers(train_on)
    copy = shutil.copytree(model, tmp_path / "copy")
    line = ["translate", str(copy), "--input", str(inputs[0])]
    line += ["--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit, match="Expected a model that stays as it"):
        cli.main(line)
    assert not (tmp_path / "out").exists()


def test_a_run_is_known_by_the_names_of_its_files_and_its_labels(tmp_path):
    checksums = []
    for name in ("config.yaml", "vocabulary.joint.model", "classes.txt"):
        (tmp_path / name).write_text("x")
        checksums.append(runs.checksum(tmp_path))
    (tmp_path / "vocabulary.joint.model").rename(
        tmp_path / "vocabulary.source.model"
    )
    checksums.append(runs.checksum(tmp_path))
    (tmp_path / "classes.txt").write_text("y")
    checksums.append(runs.checksum(tmp_path))
    assert len({*checksums}) == 5


@pytest.mark.parametrize(
    "more",
    [
        ["--output={tmp}/out"],
        ["--input", "{tmp}/first.txt"],
        ["--shards=3"],
        ["--workers=2"],
        ["a", "--input", "{tmp}/first.txt", "--output={tmp}/out"],
        ["--input", "{tmp}/first.txt", "--output=x", "--attention=a.png"],
    ],
)
def test_files_need_a_folder_and_nothing_else(model, inputs, tmp_path, more):
    line = [word.format(tmp=tmp_path) for word in more]
    with pytest.raises(SystemExit, match="Expected --input with --output"):
        cli.main(["translate", str(model), *line])


def test_a_file_that_is_not_there_is_named(model, tmp_path):
    line = ["--input", str(tmp_path / "none"), "--output", str(tmp_path)]
    with pytest.raises(SystemExit, match="Expected a file as --input"):
        cli.main(["translate", str(model), *line])
