"""`BatchTranslator` on Ray Data, as the guide to several machines has it."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from keras_attention.serving import loading

# Ray listens on loopback alone.
PROGRAM = """
import json, os, pathlib, signal, sys
import ray
import keras_attention as ka

model, lines, *notes = sys.argv[1:]


class Mortal(ka.serving.batch_translator.BatchTranslator):
    # Notes its process, which is killed once, in the middle of its lines.
    def __init__(self, model):
        super().__init__(model)
        self.notes = pathlib.Path(*notes)
        (self.notes / str(os.getpid())).touch()

    def __call__(self, batch):
        answers = super().__call__(batch)
        if "one 5" in batch["text"] and not (self.notes / "killed").exists():
            (self.notes / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return answers


# One core more than workers: reading takes one, too.
ray.init(
    num_cpus=3,
    address="local",
    _node_ip_address="127.0.0.1",
    include_dashboard=False,
)
ray.data.DataContext.get_current().execution_options.preserve_order = True
translated = ray.data.read_text(lines, drop_empty_lines=False).map_batches(
    Mortal if notes else ka.serving.batch_translator.BatchTranslator,
    fn_constructor_args=[model],
    batch_size=4,
    concurrency=2,
    num_cpus=1,
)
answers = [row["translation"] for row in translated.take_all()]
ray.shutdown()  # What is printed after this is the program's alone.
print(json.dumps(answers))
"""
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs the extra `ray`"
)


def translations(*arguments):
    """What the program prints at its end."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.slow
@needs_ray
def test_two_workers_of_ray_translate_in_order(random_translator, tmp_path):
    texts = ["one two", "", "three", *(f"four {n}" for n in range(8))]
    (tmp_path / "lines").write_text("".join(f"{text}\n" for text in texts))
    model = tmp_path / "luong"
    random_translator("luong").export(model)
    found = translations(model, tmp_path / "lines")
    assert found == loading.load(model)(texts)


@pytest.mark.slow
@needs_ray
def test_the_lines_of_a_killed_worker_are_translated_once(
    random_translator, tmp_path
):
    """Ray starts another process in its place."""
    names = ["four", "one", "three", "two"]
    texts = [f"{name} {n}" for name in names for n in range(16)]
    lines, notes, model = (tmp_path / n for n in ("lines", "notes", "luong"))
    lines.mkdir()
    notes.mkdir()
    for name in names:  # Several files, so that both workers have some.
        own = "".join(f"{text}\n" for text in texts if name in text)
        (lines / name).write_text(own)
    random_translator("luong").export(model)
    expected = loading.load(model)(texts)
    assert len({*expected}) > len(texts) / 2
    assert translations(model, lines, notes) == expected
    found = {path.name for path in notes.iterdir()}
    assert "killed" in found and len(found - {"killed"}) == 3
