"""`ka.BatchTranslator` on Ray Data, as the guide to several machines has it."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from keras_attention.serving import savedmodel

# Ray listens on loopback alone.
PROGRAM = """
import json, sys
import ray
import keras_attention as ka

model, lines = sys.argv[1:]
# One core more than workers: reading takes one, too.
ray.init(
    num_cpus=3,
    address="local",
    _node_ip_address="127.0.0.1",
    include_dashboard=False,
)
ray.data.DataContext.get_current().execution_options.preserve_order = True
translated = ray.data.read_text(lines, drop_empty_lines=False).map_batches(
    ka.BatchTranslator,
    fn_constructor_args=[model],
    batch_size=4,
    concurrency=2,
    num_cpus=1,
)
print(json.dumps([row["translation"] for row in translated.take_all()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs the extra `ray`"
)
def test_two_workers_of_ray_translate_in_order(random_translator, tmp_path):
    texts = ["one two", "", "three", *(f"four {n}" for n in range(8))]
    (tmp_path / "lines").write_text("".join(f"{text}\n" for text in texts))
    model = tmp_path / "luong"
    random_translator("luong").export(model)
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, model, tmp_path / "lines"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    found = json.loads(process.stdout.splitlines()[-1])
    assert found == savedmodel.load(model)(texts)
