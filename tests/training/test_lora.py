"""Trainings that change attention alone: `train --lora_rank`."""

import numpy as np
import pytest
import tiny

from keras_attention import config, runs
from keras_attention.training import checkpoints, initial_weights, lora

SIZES = {
    "num_layers": 1,
    "hidden_dim": 14,
    "intermediate_dim": 13,
    "num_heads": 7,
}
CHANGED = ("query_kernel", "key_kernel", "value_kernel", "output_kernel")
CHOICES = {"max_tokens": 64, "epochs": 1, "warmup_steps": 1}


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split, count in (("train", 40), ("validation", 5)):
        rows = "".join(
            f"one {'two ' * (i % 4)}three\teins {'zwei ' * (i % 4)}drei\n"
            for i in range(count)
        )
        (folder / f"{split}.tsv").write_text(rows)
    return str(folder)


def train(corpus, output, resume=False, **choices):
    choices = config.make(
        corpus=corpus,
        source="en",
        target="de",
        output=str(output),
        **CHOICES | choices,
    )
    return runs.train(choices, resume)


def weights(directory):
    arrays, _ = checkpoints.load(directory.weights)
    return arrays


@pytest.fixture
def first(corpus, tmp_path):
    parts = train(
        corpus,
        tmp_path / "first",
        model="transformer",
        model_arguments=SIZES,
        vocabulary_type="word",
    )
    return parts.directory


def test_a_run_changes_attention_and_is_a_plain_model(
    first, corpus, tmp_path, capsys
):
    parts = train(
        corpus,
        tmp_path / "second",
        init=str(first.path),
        lora_rank=2,
        learning_rate=0.1,
    )
    count = len(weights(first))
    assert f"with {count} of its {count} weights" in capsys.readouterr().out
    before, after = weights(first), weights(parts.directory)
    assert [*before] == [*after]
    for name in before:
        is_changed = np.abs(after[name] - before[name]).max() > 1e-4
        assert is_changed == name.endswith(CHANGED), name
    # Loaded, it is the model that was trained.
    loaded = runs.load(parts.directory.path)
    ids = {
        "source_ids": np.array([[4, 5, 6, 3]]),
        "target_ids": np.array([[2, 5, 4]]),
    }
    np.testing.assert_allclose(loaded.model(ids), parts.model(ids), atol=1e-5)
    change = parts.model.encoder_layers[0].self_attention
    a, b = change.lora_kernels["query"]
    (name,) = (n for n in before if "encoder_0/" in n and "query_k" in n)
    np.testing.assert_allclose(
        after[name], before[name] + a.numpy() @ b.numpy(), atol=1e-5
    )


def test_a_run_goes_on_as_if_it_had_not_stopped(first, corpus, tmp_path):
    choices = {"init": str(first.path), "lora_rank": 2, "learning_rate": 0.1}
    whole = train(corpus, tmp_path / "whole", **choices, epochs=2)
    train(corpus, tmp_path / "parts", **choices)
    resumed = train(
        corpus, tmp_path / "parts", resume=True, **choices, epochs=2
    )
    expected = weights(whole.directory)
    for name, array in weights(resumed.directory).items():
        np.testing.assert_array_equal(array, expected[name])


def test_a_checkpoint_with_changes_apart_is_refused(first, corpus, tmp_path):
    choices = {"init": str(first.path), "lora_rank": 2}
    parts = train(corpus, tmp_path / "second", **choices)
    with pytest.raises(ValueError, match="apart from the kernels.*weights.npz"):
        initial_weights.take(parts.model, str(parts.directory.checkpoint))


def test_without_weights_to_begin_with_it_is_refused(corpus, tmp_path):
    with pytest.raises(ValueError, match="Name them: --init RUN"):
        train(corpus, tmp_path / "run", lora_rank=2)


def test_weights_that_would_stay_random_are_refused(first, corpus, tmp_path):
    deeper = SIZES | {"num_layers": 2}
    with pytest.raises(ValueError, match="no weights for encoder_1/"):
        train(
            corpus,
            tmp_path / "run",
            init=str(first.path),
            model_arguments=deeper,
            lora_rank=2,
        )


def test_a_model_without_attention_heads_is_refused():
    model = tiny.create("rnnsearch", 31)
    model.build()
    with pytest.raises(ValueError, match="RNNSearch has none"):
        lora.enable(model, 2)


@pytest.mark.parametrize("name", ["transformer", "t5", "vision_transformer"])
def test_plain_weights_are_in_the_order_of_a_plain_model(name):
    model, plain = tiny.create(name, 31), tiny.create(name, 31)
    model.build()
    plain.build()
    names = [one.path.partition("/")[2] for one in plain.trainable_weights]
    assert [
        one.path.partition("/")[2] for one, _ in lora.plain_weights(plain)
    ] == names
    lora.enable(model, 2)
    assert [
        one.path.partition("/")[2] for one, _ in lora.plain_weights(model)
    ] == names
    assert len(model.trainable_weights) % 8 == 0
