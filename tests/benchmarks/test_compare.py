"""Systems in turn, what disturbs them, and the plan of all measures."""

import argparse
import json
import pathlib
import subprocess
import sys

import compare
import growth
import machine
import measure
import pytest

from keras_attention.models import catalog


@pytest.fixture
def quiet(monkeypatch):
    """A machine of which nobody else takes a part."""
    monkeypatch.setattr(machine, "gflops", lambda: 100.0)
    monkeypatch.setattr(machine, "_times", lambda: None)


def test_gflops_count_a_multiplication_and_an_addition(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    # Each product takes a second of this clock.
    assert machine.gflops(64, 2) == pytest.approx(2 * 64**3 / 1e9)


def test_what_others_used_is_neither_ours_nor_stolen(monkeypatch):
    # All, busy, stolen and our own seconds, before and after.
    times = iter([(0.0, 0.0, 0.0, 0.0), (20.0, 10.0, 1.0, 4.0)])
    monkeypatch.setattr(machine, "_times", lambda: next(times))
    speeds = iter([200.0, 150.0])
    monkeypatch.setattr(machine, "gflops", lambda: next(speeds))
    with machine.watch() as moment:
        pass
    assert moment == machine.Moment(gflops=150.0, others=0.3, stolen=0.05)
    assert "others used 30%" in moment.warning
    assert "5% was stolen" in moment.warning
    assert machine.Moment(100.0, 0.04, 0.01).warning == ""
    assert machine.Moment().warning == ""  # Where nobody can know.


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/stat")
def test_the_time_of_a_child_is_our_own():
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    before = machine._times()
    subprocess.run([sys.executable, "-c", burn], check=True)
    total, busy, stolen, own = (
        last - first
        for first, last in zip(before, machine._times(), strict=True)
    )
    assert 0.45 <= own <= busy + 0.1  # The kernel counts in hundredths.
    assert busy + stolen <= total


@pytest.fixture
def commands(tmp_path):
    """Two systems; a file each gets a line at each run."""
    script = tmp_path / "system.py"
    script.write_text(
        "import json, sys\n"
        "print(1, file=open(sys.argv[1], 'a'))\n"
        "runs = len(open(sys.argv[1]).readlines())\n"
        "print(json.dumps({'ms': float(sys.argv[2]) * runs}))\n"
    )
    return {
        name: f"{sys.executable} {script} {tmp_path / name} {factor}"
        for name, factor in (("ours", 2), ("peer", 3))
    }


def test_systems_run_in_turn_and_medians_are_compared(quiet, commands):
    lines = list(compare.run(commands, rounds=3))
    assert [(one["name"], one["round"]) for one in lines] == [
        ("ours", 1),
        ("peer", 1),
        ("ours", 2),
        ("peer", 2),
        ("ours", 3),
        ("peer", 3),
    ]
    assert [one["result"]["ms"] for one in lines] == [2, 3, 4, 6, 6, 9]
    found = compare.collect(commands, 1, ["tokens", "ms"])
    assert found["ours"].median == 8
    found["ours"].values, found["peer"].values = [2, 4, 100], [6, 1, 7]
    assert compare.ratios(found, "ms") == {"ours": 1.0, "peer": 1.5}
    assert compare.ratios(found, "tokens") == {"ours": 1.0, "peer": 4 / 6}
    assert "| peer | 6.0 | 1.50 x | 100 | 0 of 3 |" in compare.table(
        found, "ms"
    )


def test_one_round_is_enough_for_some(quiet, commands):
    found = compare.collect(commands, 3, ["ms"], once=["peer"])
    assert found["ours"].values == [2, 4, 6]
    assert found["peer"].values == [3]


def test_what_was_stopped_goes_on(quiet, commands, tmp_path):
    path = tmp_path / "results.jsonl"
    runs = compare.run(commands, rounds=2, path=path)
    for _ in range(3):
        next(runs)
    runs.close()
    with open(path, "a") as file:
        file.write('\n{"command": "torn')
    lines = list(compare.run(commands, rounds=2, path=path))
    assert [one["result"]["ms"] for one in lines] == [2, 3, 4, 6]
    # None of them ran twice.
    for name in commands:
        assert len((tmp_path / name).read_text().splitlines()) == 2
    again = list(compare.run(commands, rounds=2, path=path))
    assert [one["result"] for one in again] == [one["result"] for one in lines]


def test_a_system_that_fails_does_not_stop_the_others(quiet, commands, capfd):
    commands["broken"] = f'{sys.executable} -c "raise SystemExit(1)"'
    found = compare.collect(commands, 2, ["ms"])
    assert found["peer"].values == [3, 6] and found["broken"].values == []
    # It is tried once, and named.
    assert capfd.readouterr().err.count("raise SystemExit") == 1
    assert "| broken | nan | nan x | nan | 0 of 0 |" in compare.table(
        found, "ms"
    )


@pytest.fixture
def plan(tmp_path):
    options = argparse.Namespace(
        corpus="phrases", seconds=1.0, peers=tmp_path / "peers"
    )
    works = {size: tmp_path / size for size in "SBR"}
    return measure.Commands(options, works), tmp_path / "peers"


def translators():
    return [
        name
        for name, entry in catalog.CATALOG.items()
        if entry.task == "translation"
    ]


def test_every_translator_has_its_rows(plan):
    found = measure.groups(plan[0], translators())
    for name in ("train", "beam1", "beam4"):
        _, systems = found[f"translators_{name}"]
        assert [*systems] == translators()
        assert all(f"--size={model}" in systems[model] for model in systems)


def test_a_peer_without_its_environment_is_left_out(plan):
    commands, peers = plan
    fields, systems = measure.groups(commands, [])["train_B"]
    assert [*measure.present(systems)] == ["ours", "ours_bfloat16"]
    python = peers / "pytorch/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    _, systems = measure.groups(commands, [])["train_B"]
    assert systems == measure.present(systems)
    assert [*systems][2:] == [
        "pytorch",
        "pytorch_bfloat16",
        "pytorch_compiled",
        "pytorch_compiled_bfloat16",
    ]
    assert fields == ("tokens_per_second",)
    for command in systems.values():
        program = command.split()[1]
        assert pathlib.Path(program).is_file()


def test_one_round_may_be_asked_of_a_peer_without_its_environment(
    tmp_path, monkeypatch, capsys
):
    given = ["measure.py", str(tmp_path), "--peers", str(tmp_path), "--list"]
    monkeypatch.setattr(sys, "argv", [*given, "--once", "pytorch_compiled"])
    measure.main()
    assert "pytorch_compiled" not in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*given, "--once", "pytorch_complied"])
    with pytest.raises(SystemExit, match="no system pytorch_complied"):
        measure.main()


def test_each_panel_has_its_points(tmp_path):
    figures = {
        f"{what} {rows} {length} {system}": compare.Figures([rows * length])
        for (what, _), points in growth.POINTS.items()
        for rows, length in points
        for system in ("ours", growth.PEERS[what])
    }
    assert growth.lines_of(figures, "greedy", "tokens") == {
        system: [(16, 128), (64, 512), (256, 2048), (1024, 8192)]
        for system in ("ours", "CTranslate2")
    }
    growth.draw(figures, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    row = "| beam | 8 | 256 | ours | 2,048.0 |"
    assert row in growth.table(figures)


@pytest.mark.slow
def test_the_start_prints_one_object():
    program = pathlib.Path(compare.__file__).with_name("start.py")
    done = subprocess.run(
        [sys.executable, program], check=True, stdout=subprocess.PIPE
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["mistake_seconds"] < result["predict_seconds"]
    assert (
        0 < result["serve_ready_seconds"] < result["serve_first_answer_seconds"]
    )
