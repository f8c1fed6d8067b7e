"""Files of lines come out as `predict` would print them."""

import functools
import importlib.util
import json
import pathlib
import shutil
import subprocess
import time

import pytest

from keras_attention import cli, files, runs
from keras_attention.commands import many_lines

LINES = ["one two", "", "three", "nine " * 300, "four", "five six", "seven"]


@pytest.fixture(scope="module")
def model(random_translator, export_some, tmp_path_factory):
    folder = tmp_path_factory.mktemp("savedmodel") / "luong"
    names = ["num_tokens", "serving_default", "greedy"]
    export_some(random_translator("luong"), folder, names)
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(many_lines, "PART", 3)


@pytest.fixture(scope="module", autouse=True)
def loaded_once():
    """What one test has loaded and traced, the next need not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "load", functools.cache(runs.load))
        yield


@pytest.fixture
def argv(model, tmp_path):
    """The arguments, without the verb, for two files."""
    paths = [tmp_path / "first.txt", tmp_path / "second.txt"]
    paths[0].write_text("\n".join(LINES[:4]) + "\n")
    paths[1].write_text("\n".join(LINES[4:]) + "\n")
    inputs = ["--input", *map(str, paths)]
    return [str(model), *inputs, "--output", str(tmp_path / "out")]


def written(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.txt")))


def test_parts_hold_what_is_printed(argv, tmp_path, capsys):
    """A line that is too long stays empty, and is named each time."""
    with pytest.raises(SystemExit) as plain:
        cli.main(["predict", argv[0], *LINES])
    printed = capsys.readouterr().out
    for _ in range(2):
        with pytest.raises(SystemExit) as error:
            cli.main(["predict", *argv])
        assert str(error.value) == str(plain.value)
        assert "line 4: 301 tokens" in str(error.value)
        assert "7 of 7 lines" in capsys.readouterr().out
        assert written(tmp_path / "out") == printed.encode()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    parts = {"000000.txt", "000001.txt", "000002.txt"}
    assert names == parts | {"made_of.json", "refused"}
    (refused,) = (tmp_path / "out" / "refused").iterdir()
    assert refused.read_text().startswith("4\t301 tokens")


def test_another_call_answers_only_what_is_missing(argv, tmp_path, monkeypatch):
    write, asked = many_lines.Parts.write, []

    def dying(self, part, model, lines, options):
        asked.append(part)
        if len(asked) == 2:
            raise KeyboardInterrupt
        write(self, part, model, lines, options)

    monkeypatch.setattr(many_lines.Parts, "write", dying)
    with pytest.raises(SystemExit):
        cli.main(["predict", *argv])
    first = tmp_path / "out" / "000000.txt"
    before = first.stat().st_mtime_ns
    with pytest.raises(SystemExit, match="line 4: 301 tokens"):
        cli.main(["predict", *argv])
    assert asked == [0, 1, 1, 2]
    assert first.stat().st_mtime_ns == before
    assert len(written(tmp_path / "out").splitlines()) == len(LINES)


@pytest.mark.parametrize(
    "more, named", [(["--truncate"], "truncate=False"), (["a"], "lines=7")]
)
def test_other_choices_or_lines_are_refused(argv, tmp_path, more, named):
    (tmp_path / "out").mkdir()
    begun = dict.fromkeys(many_lines.CHOICES) | {
        "scores": False,
        "truncate": False,
        "model": runs.checksum(pathlib.Path(argv[0]) / "1"),
        "lines": 7,
        "lines_sha256": many_lines._count(argv[2:4])[1],
    }
    (tmp_path / "out" / "made_of.json").write_text(json.dumps(begun))
    if more == ["a"]:
        with open(argv[3], "a") as file:
            file.write("one more\n")
        more = []
    with pytest.raises(SystemExit, match=f"were begun with {named}, not"):
        cli.main(["predict", *argv, *more])
    assert not written(tmp_path / "out")


def test_a_folder_of_other_files_is_refused(argv, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "shards.json").write_text("{}")
    with pytest.raises(SystemExit, match="holds other files"):
        cli.main(["predict", *argv])


def test_a_folder_is_for_one_command_at_a_time(argv, tmp_path):
    with files.lock(tmp_path / "out"):
        with pytest.raises(SystemExit, match="Another process writes in"):
            cli.main(["predict", *argv])


def test_options_are_refused_before_anything_is_written(argv, tmp_path):
    with pytest.raises(SystemExit, match="or 4 beams, not with 3"):
        cli.main(["predict", *argv, "--num_beams=3"])
    assert not (tmp_path / "out").exists()


def test_a_model_that_changes_while_it_is_loaded_is_refused(
    argv, tmp_path, monkeypatch
):
    load = runs.load

    def train_on(path, *search):
        loaded = load(path, *search)
        with open(pathlib.Path(path) / "saved_model.pb", "ab") as file:
            file.write(b"more")
        return loaded

    argv[0] = str(shutil.copytree(argv[0], tmp_path / "copy"))
    monkeypatch.setattr(runs, "load", train_on)
    with pytest.raises(SystemExit, match="has changed while it was loaded"):
        cli.main(["predict", *argv])
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
        ["--workers=2"],
        ["--ray_address=auto"],
        ["a", "--input", "{tmp}/first.txt", "--output={tmp}/out"],
        ["--input", "{tmp}/first.txt", "--output=x", "--attention=a.png"],
    ],
)
def test_files_need_a_folder_and_nothing_else(model, argv, tmp_path, more):
    line = [word.format(tmp=tmp_path) for word in more]
    with pytest.raises(SystemExit, match="To answer files, give both"):
        cli.main(["predict", str(model), *line])


def test_a_file_that_is_not_there_is_named(model, tmp_path):
    line = ["--input", str(tmp_path / "none"), "--output", str(tmp_path)]
    with pytest.raises(SystemExit, match="--input: there is no file"):
        cli.main(["predict", str(model), *line])


def test_workers_need_ray(argv, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="Ray, which is not installed"):
        cli.main(["predict", *argv, "--workers=2"])
    assert not (tmp_path / "out").exists()


def ray_workers():
    """The processes of Ray that have a model."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::MapWorker"):
                yield path.parent.name
        except OSError:
            continue  # It has ended by now.


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None
    or not pathlib.Path("/proc/self/status").is_file(),
    reason="needs the extra `ray` and /proc",
)
def test_two_workers_of_ray_write_what_one_process_prints(
    command, environment, model, tmp_path
):
    """Also if one of them is killed in the middle of its lines."""
    source, out = tmp_path / "lines.txt", tmp_path / "out"
    words = "one two three four five six seven eight nine".split()
    lines = [f"{a} {b} {c}" for a in words for b in words for c in words]
    source.write_text("\n".join([*lines[:400], "x " * 900, *lines] * 2) + "\n")
    line = ["predict", str(model), "--input", str(source), "--workers=2"]
    line += ["--output", str(out)]
    with subprocess.Popen(
        command(line), env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while not [*out.glob("*.txt")]:
                assert process.poll() is None
                time.sleep(0.1)
            workers = [*ray_workers()]
            assert len(workers) == 2
            subprocess.run(["kill", "-9", workers[0]], check=True)
            assert len([*out.glob("*.txt")]) < 3
            _, error = process.communicate(timeout=600)
        finally:
            process.kill()
    plain = subprocess.run(
        command(["predict", str(model)]),
        input=source.read_text(),
        capture_output=True,
        env=environment,
        text=True,
    )
    assert process.returncode == plain.returncode == 1
    assert written(out).decode() == plain.stdout
    assert error.splitlines()[-1] == plain.stderr.splitlines()[-1]
    assert "line 401: 1801 tokens" in error
    assert not (out / ".lines").exists()
