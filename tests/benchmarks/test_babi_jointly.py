"""`benchmarks/babi_jointly.py` takes the paper's steps, and goes on."""

import json
import sys

import babi_jointly
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models

PLACES = ("kitchen", "garden", "attic")
PEOPLE = ("Mary", "John")


def write(folder):
    """Twenty tasks, of two questions in each split."""
    for task in range(1, 21):
        for place, split in enumerate(("train", "valid", "test")):
            first = PLACES[(task + place) % 3]
            second = PLACES[(task * 2 + place) % 3]
            lines = [
                f"1 Mary went to the {first}.",
                f"2 John went back to the {second}.",
                f"3 Where is Mary?\t{first}\t1",
                f"4 Where is John?\t{second}\t2",
            ]
            path = folder / f"qa{task}_{split}.txt"
            path.write_text("\n".join(lines) + "\n")
    return folder


def test_the_published_columns_have_the_published_means():
    """And as many failed tasks as the papers count."""
    for name, mean, failed in (
        ("end_to_end_memory_network", 12.4, 11),
        ("memory_network", 6.7, 4),
    ):
        column = babi_jointly.PUBLISHED[name]
        # 6.65 is rounded up.
        assert abs(sum(column) / 20 - mean) < 0.051
        assert sum(error > babi_jointly.FAILED for error in column) == failed
        text = babi_jointly.table(name, [0.0] * 20)
        assert f"| failed tasks | 0 | {failed} |" in text
        assert f"| 17 | 0.0 | {column[16]:.1f} |" in text


@pytest.mark.parametrize(
    "linear, softmax, expected",
    [
        (0, 0, ("linear", 1)),
        (29, 0, ("linear", 30)),
        (30, 0, ("softmax", 1)),
        (30, 59, ("softmax", 60)),
        (30, 60, None),
    ],
)
def test_the_softmax_comes_after_30_epochs(linear, softmax, expected):
    epochs = [{"stage": "linear"}] * linear + [{"stage": "softmax"}] * softmax
    assert babi_jointly.next_epoch(["linear", "softmax"], epochs) == expected
    assert babi_jointly.next_epoch(["ranking"], []) == ("ranking", 1)


def test_a_task_without_a_file_is_named(tmp_path):
    write(tmp_path)
    (tmp_path / "qa7_valid.txt").unlink()
    with pytest.raises(ValueError, match="has 0 files such as qa7_valid.txt"):
        babi_jointly.read(tmp_path)


def test_the_last_of_the_best_epochs_is_kept():
    errors = [("linear", 1), ("softmax", 3), ("softmax", 2), ("softmax", 2)]
    epochs = [
        {"stage": stage, "validation_error": error, "epoch": number}
        for number, (stage, error) in enumerate(errors)
    ]
    assert babi_jointly.best(epochs, "softmax")["epoch"] == 3
    assert babi_jointly.best(epochs[:1], "softmax") is None


def test_rows_are_cut_and_encoded():
    rows = [("c", "a b\na", "b", [1]), ("d,e", "\n".join("ab" * 26), "x", [])]
    encoder = babi_jointly.Encoder(rows[:1])
    arrays = encoder.arrays(rows)
    a, b, unknown, end = 4, 5, 1, 3
    assert arrays["story_ids"][0, :6].tolist() == [a, b, end, a, end, 0]
    assert arrays["story_ids"][1].tolist() == [a, end, b, end] * 25
    assert arrays["question_ids"].tolist() == [[b, end], [unknown, end]]
    assert arrays["facts"].tolist() == [[1, 1, 1], [0, 0, 0]]
    assert arrays["labels"].tolist() == [0, -1]


@pytest.mark.parametrize(
    "scaled, factor",
    [("embeddings", 1), ("embeddings", 300), ("output_projection", 300)],
)
def test_a_step_sums_gradients_and_clips_them(tmp_path, scaled, factor):
    """As plain gradient descent on the whole batch in one part does.

    The gradient is large in the output, or in the words, many of which stand
    in the batch more than once.
    """
    rows = sum(babi_jointly.read(write(tmp_path))["train"].values(), [])
    encoder = babi_jointly.Encoder(rows)
    arrays = encoder.arrays(rows)
    model = models.EndToEndMemoryNetwork(
        4 + len(encoder.words), 3, 5, noise=0.0, memory_size=3
    )
    model.build()
    weight = {
        "embeddings": model.embeddings[0].embeddings,
        "output_projection": model.output_projection.kernel,
    }[scaled]
    weight.assign(factor * weight)
    (halves,) = babi_jointly.batches(arrays, np.random.default_rng(1))
    batch = {
        name: tf.concat([half[name] for half in halves], 0)
        for name in halves[0]
    }
    assert len(batch["labels"]) == 32
    with tf.GradientTape() as tape:
        logits = model({name: batch[name] for name in model.text_names})
        log_p = tf.nn.log_softmax(logits)
        loss = -tf.reduce_sum(tf.gather(log_p, batch["labels"], batch_dims=1))
    values = [variable.value for variable in model.trainable_variables]
    gradients = [
        np.array(tf.convert_to_tensor(g)) for g in tape.gradient(loss, values)
    ]
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    assert (norm > 40) == (factor > 1)
    scale = min(1, 40 / norm)
    expected = [
        np.array(value) - 0.1 * scale * g
        for value, g in zip(values, gradients, strict=True)
    ]
    update, _ = babi_jointly.functions(model)
    np.testing.assert_allclose(update(*halves, 0.1), loss, rtol=1e-4)
    for value, right in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, right, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["end_to_end_memory_network", "memory_network"]
)
def test_a_training_that_was_stopped_goes_on(tmp_path, monkeypatch, name):
    folder = write(tmp_path)
    monkeypatch.setattr("LINEAR_EPOCHS", 1)

    def run(output, epochs, seed=1):
        monkeypatch.setattr("EPOCHS", epochs)
        arguments = [str(folder), str(tmp_path / output)]
        arguments += ["--model", name, "--seed", str(seed)]
        monkeypatch.setattr(sys, "argv", ["babi_jointly.py", *arguments])
        babi_jointly.main()
        *_, scores = (
            json.loads(line)
            for line in (tmp_path / output / "log.txt").read_text().split("\n")
            if line.startswith("{")
        )
        with np.load(tmp_path / output / "state.npz") as arrays:
            return scores, {n: arrays[n] for n in arrays if n != "state"}

    run("stopped", 1)
    scores, weights = run("stopped", 2)
    expected, others = run("whole", 2)
    assert scores["test_errors"] == expected["test_errors"]
    for key, weight in weights.items():
        np.testing.assert_array_equal(weight, others[key])
    assert (tmp_path / "whole" / "hops.png").is_file()
    with pytest.raises(SystemExit, match="another training"):
        run("whole", 2, seed=2)
