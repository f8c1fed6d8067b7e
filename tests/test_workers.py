"""TF_CONFIG says which of how many workers a process is."""

import json

import pytest

from keras_attention import workers


def told(task, **cluster):
    return json.dumps({"cluster": cluster, "task": task})


@pytest.mark.parametrize(
    "text, count, rank",
    [
        ("", 1, 0),
        ("{}", 1, 0),
        (told({"type": "worker", "index": 0}, worker=["a:1"]), 1, 0),
        (told({"type": "worker", "index": 2}, worker=["a:1"] * 3), 3, 2),
        (
            told({"type": "chief", "index": 0}, worker=["a:1"], chief=["b:1"]),
            2,
            0,
        ),
        (
            told(
                {"type": "worker", "index": "1"},
                chief=["b:1"],
                worker=["a:1", "c:1"],
            ),
            3,
            2,
        ),
    ],
)
def test_a_worker_has_its_place(monkeypatch, text, count, rank):
    monkeypatch.setenv("TF_CONFIG", text)
    found = workers.from_environment()
    assert found == workers.Workers(count, rank)
    assert found.leads == (rank == 0)


def test_a_process_without_it_trains_alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert workers.from_environment() == workers.Workers(1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        told({"type": "worker", "index": 3}, worker=["a:1"] * 3),
        told({"type": "worker"}, worker=["a:1"]),
        told({}, worker=["a:1"]),
        told({"type": "worker", "index": 0}, worker=["a:1"], ps=["b:1"]),
    ],
)
def test_anything_else_is_refused(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="Expected TF_CONFIG to list"):
        workers.from_environment()
