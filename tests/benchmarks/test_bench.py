"""What the benchmark counts, and that each measure prints its figures."""

import json
import math
import os
import pathlib
import subprocess
import sys

import bench
import numpy as np
import pytest
import tensorflow as tf

from keras_attention.models import catalog

ROOT = pathlib.Path(bench.__file__).parents[1]


def products_in(graph):
    """FLOPs of the matrix products in a graph of known shapes."""
    total = 0
    for node in graph.get_operations():
        if node.type in ("MatMul", "BatchMatMulV2"):
            turned = "transpose_a" if node.type == "MatMul" else "adj_x"
            first = node.inputs[0].shape.as_list()
            summed = first[-2] if node.get_attr(turned) else first[-1]
            total += 2 * math.prod(node.outputs[0].shape.as_list()) * summed
    return total


def test_flops_are_those_of_the_graph():
    model = catalog.create(
        "transformer", "tiny", vocabulary_size=101, num_layers=2
    )
    model.build()
    rows, source, target = 3, 5, 7
    graph = tf.function(
        lambda source_ids, target_ids: model(
            {"source_ids": source_ids, "target_ids": target_ids}
        ),
        autograph=False,
    ).get_concrete_function(
        tf.TensorSpec([rows, source], tf.int32),
        tf.TensorSpec([rows, target], tf.int32),
    )
    expected = 3 * products_in(graph.graph)
    assert bench.matrix_flops(model, rows, source, target) == expected


def test_size_s_takes_14_mflop_a_token():
    model = catalog.create("transformer", "tiny", vocabulary_size=8000)
    flops = bench.matrix_flops(model, 1, 16, 16) / 16
    assert flops == pytest.approx(14.2e6, rel=0.02)


def test_sizes_can_be_made():
    for name in ("S", "B", "R"):
        model, size, arguments = bench.SIZES[name]
        made = catalog.create(model, size, vocabulary_size=8000, **arguments)
        flops = bench.matrix_flops(made, 1, 16, 16) / 16
        # What the forward and backward pass of a weight takes at least: not
        # all embeddings are multiplied.
        made.build()
        assert flops < 6.5 * made.count_params(), name
        assert flops > 3 * made.count_params(), name


def test_the_first_call_with_each_input_is_not_counted(monkeypatch):
    """As by a clock that the calls move."""
    clock, seen = [0.0], []
    monkeypatch.setattr(bench.time, "perf_counter", lambda: clock[0])

    def function(turn):
        clock[0] += 2.0 if turn in seen else 60.0
        seen.append(turn)

    inputs = ["short", "long", "longer"]
    assert bench._median_ms(function, inputs, seconds=0.1) == 2000
    assert seen[:6] == ["short", "short", "long", "long", "longer", "longer"]


def run_program(name, *arguments):
    """What a program in `benchmarks/` prints."""
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / name, *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments, field",
    [
        (["train"], "tokens_per_second"),
        (["train", "--size", "R"], "tokens_per_second"),
        (["decode", "--batch_size", "8"], "sentences_per_second"),
        (
            ["decode", "--size=R", "--num_beams=4", "--batch_size=8"],
            "text_median_ms",
        ),
        (["pipeline"], "pairs_per_second"),
    ],
)
def test_each_measure_prints_one_object(tmp_path, arguments, field):
    for split, count in (("train", 400), ("validation", 16)):
        for language, word in (("en", "one"), ("de", "eins")):
            lines = [f"{word} {index}\n" for index in range(count)]
            path = tmp_path / f"{split}.{language}"
            path.write_text("".join(lines), "utf-8")
    output = run_program(
        "bench.py", *arguments, "--corpus", tmp_path, "--seconds", 0.1
    )
    result = json.loads(output.splitlines()[-1])
    assert result["benchmark"] == arguments[0]
    assert result[field] > 0
    assert result["cores"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "what, point",
    [("train", (2, 4, 300)), ("beam", (2, 4, 300)), ("corpus", (500,))],
)
def test_a_point_of_the_costs_prints_one_object(what, point):
    output = run_program("costs.py", what, "--point", *point)
    result = json.loads(output.splitlines()[-1])
    assert list(result.values())[: len(point)] == list(point)
    assert all(value > 0 for value in result.values())


@pytest.mark.slow
def test_memory_is_that_of_the_process_alone():
    """On Linux a process begins with its parent's `ru_maxrss`."""
    big = np.ones(300_000_000, "int8")
    code = "import bench\nprint(bench.peak_memory_mb())"
    places = f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}"
    output = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": places},
    ).stdout
    own = bench.peak_memory_mb()
    assert big.any() and 0 < float(output.splitlines()[-1]) < own - 150
