"""Versions that come, fail, are replaced and go."""

import asyncio
import dataclasses
import gc
import io
import json
import pathlib
import shutil
import threading
import weakref

import pytest

from keras_attention.server import (
    counters,
    logs,
    model_configs,
    registry,
    served_model,
    versions,
)
from keras_attention.server.errors import Code, RequestError
from keras_attention.server.served_model import State
from keras_attention.serving import manifest

collect = registry._collect


@pytest.fixture(autouse=True)
def no_collection(monkeypatch):
    """Looking for garbage takes long where TensorFlow is loaded."""
    monkeypatch.setattr(registry, "_collect", int)
    gc.unfreeze()
    yield
    gc.unfreeze()


@dataclasses.dataclass
class Fake:
    number: int
    has_manifest: bool = True
    warmed: list = dataclasses.field(default_factory=list)

    def warm(self):
        self.warmed.append(self.number)


def load(path, number, in_parts=False):
    """A version is bad if its file says so."""
    text = (path / "saved_model.pb").read_text()
    if text == "bad":
        raise ValueError("This is a bad one")
    return Fake(number)


def put(folder, number, text="good"):
    version = folder / str(number)
    version.mkdir(parents=True, exist_ok=True)
    (version / "saved_model.pb").write_text(text)
    return version


def scenario(test, *configs, load=load):
    async def main():
        served = registry.Models(configs, counters.Metrics(), load)
        await served.update()
        try:
            await test(served)
        finally:
            await served.stop()

    asyncio.run(main())


def test_a_server_is_ready_before_all_is_warm_and_a_new_version_is_warm(
    tmp_path,
):
    may_warm = threading.Event()

    class Slow(Fake):
        def warm(self):
            assert may_warm.wait(20)
            super().warm()

    async def test(served):
        first = served.by_name["m"].statuses[1].loaded
        assert served.are_ready and first.warmed == []
        served.warm()
        assert served.is_reading
        may_warm.set()
        put(tmp_path / "m", 2)
        await served.update()
        second = served.by_name["m"].statuses[2].loaded
        # One thread does both, in order.
        assert (first.warmed, second.warmed) == ([1], [2])

    put(tmp_path / "m", 1)
    scenario(
        test, config(tmp_path / "m"), load=lambda _, number, *__: Slow(number)
    )


def test_a_model_is_loaded_in_parts_at_the_start_alone(tmp_path):
    seen = []

    def watched(path, number, in_parts):
        seen.append((number, in_parts))
        return Fake(number)

    async def test(served):
        put(tmp_path / "m", 2)
        await served.update()
        assert seen == [(1, True), (2, False)]

    put(tmp_path / "m", 1)
    scenario(test, config(tmp_path / "m"), load=watched)


def test_what_waits_behind_a_warm_up_does_not_hide_it(tmp_path):
    may_warm = threading.Event()

    class Slow(Fake):
        def warm(self):
            assert may_warm.wait(20)

    async def test(served):
        served.warm()
        poll = asyncio.create_task(served.update())
        await asyncio.sleep(0.05)
        await served.stop()  # The poll has not begun: it is cancelled.
        assert served.is_reading
        may_warm.set()
        while served.is_reading:
            await asyncio.sleep(0.01)
        poll.cancel()

    put(tmp_path / "m", 1)
    scenario(
        test, config(tmp_path / "m"), load=lambda _, number, *__: Slow(number)
    )


def test_the_first_part_of_a_model_does_not_stay_in_memory(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(registry, "_collect", collect)

    class InParts(Fake):
        def __init__(self, number):
            super().__init__(number)
            self.part = threading.Event()
            self.part.itself = self.part

        def warm(self):
            self.part = None

    async def test(served):
        part = weakref.ref(served.by_name["m"].statuses[1].loaded.part)
        gc.freeze()  # As `application.run` does.
        served.warm()
        while served.is_reading:
            await asyncio.sleep(0.01)
        assert part() is None

    put(tmp_path / "m", 1)
    scenario(
        test,
        config(tmp_path / "m"),
        load=lambda _, number, *__: InParts(number),
    )


def test_a_warm_up_that_fails_is_logged_and_the_version_answers(tmp_path):
    class Broken(Fake):
        def warm(self):
            raise RuntimeError("no such thing")

    async def test(served):
        served.warm()
        while served.is_reading:
            await asyncio.sleep(0.01)
        assert states(served) == {1: State.AVAILABLE}

    put(tmp_path / "m", 1)
    lines = io.StringIO()
    handler = logs.begin(lines)
    try:
        scenario(
            test,
            config(tmp_path / "m"),
            load=lambda _, number, *__: Broken(number),
        )
    finally:
        logs.end(handler)
    events = [json.loads(line) for line in lines.getvalue().splitlines()]
    (failure,) = (one for one in events if one["event"] == "warm-up")
    assert failure["exception"] == "RuntimeError"
    assert (failure["model"], failure["version"]) == ("m", 1)


def config(folder, **options):
    return model_configs.ModelConfig("m", folder, **options)


def states(served, name="m"):
    return {n: s.state for n, s in served.by_name[name].statuses.items()}


async def freed(served):
    while State.UNLOADING in states(served).values():
        await asyncio.sleep(0.01)


def test_a_new_version_takes_the_place_of_the_old_one(tmp_path):
    put(tmp_path, 1)

    async def test(served):
        model = served.get("m")
        assert served.are_ready and model.available == [1]
        with served_model.in_use(model.find(None, "")) as version:
            put(tmp_path, 2)
            await served.update()
            assert model.find(None, "").loaded.number == 2
            # The old one still answers what it has.
            assert version.number == 1
            assert states(served)[1] == State.UNLOADING
            assert model.statuses[1].loaded is not None
        await freed(served)
        assert model.statuses[1].loaded is None
        assert states(served) == {1: State.END, 2: State.AVAILABLE}

    scenario(test, config(tmp_path))


def test_what_was_frozen_is_freed_too():
    version = Fake(1)
    version.itself = version
    seen = weakref.ref(version)
    gc.freeze()
    del version
    gc.collect()
    assert seen() is not None
    collect()
    assert seen() is None


def test_a_bad_version_is_refused_and_tried_again_when_it_changes(tmp_path):
    put(tmp_path, 1)

    async def test(served):
        model = served.get("m")
        put(tmp_path, 2, "bad")
        for _ in range(2):
            await served.update()
            assert model.available == [1]
        assert "a bad one" in model.statuses[2].error
        text = served._metrics.text(0)
        assert f'model_path="{tmp_path / "2"}",status="fail"}} 1' in text
        put(tmp_path, 2, "good now")
        await served.update()
        assert model.available == [2]

    scenario(test, config(tmp_path))


@pytest.mark.parametrize(
    "message, told",
    [
        ("{root}/m/1/x is missing", "m/1/x is missing"),
        ("{root}/m has no manifest\nIt needs one", "m has no manifest"),
        (
            "[Errno 2] No such file: '{root}/m/1'",
            "[Errno 2] No such file: 'm/1'",
        ),
        ("Not at:/etc/other/a.txt; try 1/2", "Not at:a.txt; try 1/2"),
        ("See https://example.org/a/b", "See https://example.org/a/b"),
    ],
)
def test_no_client_is_told_where_files_are(tmp_path, message, told):
    root = tmp_path / "a folder"
    put(root / "m", 1)

    def fail(path, number, in_parts):
        raise ValueError(message.format(root=root))

    async def test(served):
        assert served.get("m").statuses[1].error == told

    scenario(test, config(root / "m"), load=fail)


def test_an_older_version_is_served_if_the_newest_is_bad_at_the_start(tmp_path):
    put(tmp_path, 1), put(tmp_path, 2, "bad")

    async def test(served):
        assert served.get("m").available == [1]

    scenario(test, config(tmp_path))


def test_a_deleted_version_answers_until_it_is_replaced(tmp_path):
    version = put(tmp_path, 2)

    async def test(served):
        model = served.get("m")
        (version / "saved_model.pb").unlink()
        version.rmdir()
        await served.update()
        assert model.available == [2]
        # Also by an older one: so a version is taken back.
        put(tmp_path, 1)
        await served.update()
        assert model.available == [1]
        await freed(served)

    scenario(test, config(tmp_path))


@pytest.mark.parametrize(
    "options, available",
    [
        ({}, [3]),
        ({"num_latest": 2}, [2, 3]),
        ({"num_latest": None}, [1, 2, 3]),
        ({"specific": (1, 3, 9)}, [1, 3]),
    ],
)
def test_policies(tmp_path, options, available):
    for number in (1, 2, 3):
        put(tmp_path, number)
    (tmp_path / "4.tmp").mkdir()

    async def test(served):
        assert served.get("m").available == available

    scenario(test, config(tmp_path, **options))


def test_labels_and_what_is_not_there(tmp_path):
    put(tmp_path, 1), put(tmp_path, 2)

    async def test(served):
        model = served.get("m")
        assert model.find(None, "old").loaded.number == 1
        assert model.find(1, "").loaded.number == 1
        for number, label, code in (
            (3, "", Code.NOT_FOUND),
            (None, "gone", Code.NOT_FOUND),
            (None, "unknown", Code.INVALID_ARGUMENT),
        ):
            with pytest.raises(RequestError) as refused:
                model.find(number, label)
            assert refused.value.code == code
        with pytest.raises(RequestError):
            served.get("../m")

    labels = {"old": 1, "gone": 7}
    scenario(test, config(tmp_path, num_latest=2, labels=labels))


def test_a_reload_changes_the_models_or_nothing(tmp_path):
    put(tmp_path / "a", 1), put(tmp_path / "b", 1)
    put(tmp_path / "b", 2), put(tmp_path / "bad", 1, "bad")

    def made(name, **options):
        return model_configs.ModelConfig(name, tmp_path / name, **options)

    async def test(served):
        first = served.get("a")
        for bad in (made("bad"), made("b", labels={"x": 5})):
            with pytest.raises(RequestError) as refused:
                await served.reload([made("a"), bad])
            assert refused.value.code == Code.FAILED_PRECONDITION
            assert [*served.by_name] == ["a"] and first.available == [1]
        assert gc.get_freeze_count() == 0
        labels = {"old": 1}
        await served.reload([made("b", num_latest=2, labels=labels)])
        assert [*served.by_name] == ["b"]
        assert served.get("b").find(None, "old").loaded.number == 1
        assert first.available == []
        # No garbage is looked for in what was added.
        assert gc.get_freeze_count() > 0

    scenario(test, made("a"))


def test_nothing_of_a_reload_is_seen_before_its_end(tmp_path):
    put(tmp_path / "a", 1), put(tmp_path / "a", 2)
    put(tmp_path / "b", 1)
    seen = []

    def watched(path, number, in_parts):
        if seen_of:
            model = seen_of[0].get("a")
            seen.append((model.config.labels, model.available))
        return load(path, number)

    seen_of = []

    async def main():
        old = model_configs.ModelConfig("a", tmp_path / "a")
        served = registry.Models([old], counters.Metrics(), watched)
        await served.update()
        seen_of.append(served)
        new = dataclasses.replace(old, labels={"old": 1}, specific=(1,))
        other = model_configs.ModelConfig("b", tmp_path / "b")
        # A client that is gone stops nothing half-way.
        task = asyncio.create_task(served.reload([new, other]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        while "b" not in served.by_name:
            await asyncio.sleep(0.01)
        assert served.get("a").find(None, "old").loaded.number == 1
        await served.stop()

    asyncio.run(main())
    assert seen == [({}, [2])] * 2


def test_a_version_that_failed_by_accident_is_tried_again(
    tmp_path, monkeypatch
):
    put(tmp_path, 1)
    attempts = []

    def load_later(path, number, in_parts):
        attempts.append(number)
        if len(attempts) < 3:
            raise OSError(24, "Too many open files")
        return load(path, number)

    now = [0.0]
    monkeypatch.setattr(served_model.time, "monotonic", lambda: now[0])

    async def main():
        served = registry.Models(
            [config(tmp_path)], counters.Metrics(), load_later
        )
        found = []
        # It waits for 2 seconds, and then for 4.
        for now[0] in (0, 1, 3, 5, 8):
            await served.update()
            found.append(len(attempts))
        assert found == [1, 1, 2, 2, 3] and served.are_ready
        await served.stop()

    asyncio.run(main())


def test_a_model_that_is_still_loaded_is_unavailable(tmp_path):
    put(tmp_path, 1)
    served = registry.Models([config(tmp_path)], counters.Metrics(), load)
    with pytest.raises(RequestError) as refused:
        served.get("m").find(None, "")
    assert refused.value.code == Code.UNAVAILABLE
    assert refused.value.http_status == 503


def test_a_linked_version_has_the_manifest_of_its_target(shouter, tmp_path):
    target = pathlib.Path(shouter(tmp_path / "exported"))
    (tmp_path / "model").mkdir()
    link = tmp_path / "model" / "1"
    link.symlink_to(target)
    assert versions.load(link, 1).has_manifest
    before = served_model.fingerprint(link)
    (data,) = (target / "variables").glob("*.data*")
    data.write_bytes(b"")
    assert served_model.fingerprint(link) != before
    with pytest.raises(ValueError, match="changed or damaged"):
        versions.load(link, 1)


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/*.data*"])
def test_half_a_version_without_a_manifest_is_refused(shouter, tmp_path, name):
    first = pathlib.Path(shouter(tmp_path, "a mark of some length "))
    (tmp_path / manifest.NAME).unlink()

    async def test(served):
        model = served.get("m")
        assert not model.statuses[1].loaded.has_manifest
        second = shutil.copytree(first, tmp_path / "2")
        (path,) = second.glob(name)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        await served.update()
        assert model.available == [1] and model.statuses[2].error
        # Whole again.
        shutil.copytree(first, second, dirs_exist_ok=True)
        await served.update()
        assert model.available == [2]

    scenario(test, config(tmp_path), load=versions.load)
