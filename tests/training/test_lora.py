"""Trainings that change attention alone: `train --lora_rank`."""

import shutil

import numpy as np
import pytest
import tiny

from keras_attention import Translator, config, runs
from keras_attention.training import checkpoints, initial_weights, lora

SIZES = {
    "num_layers": 1,
    "hidden_dim": 14,
    "intermediate_dim": 13,
    "num_heads": 7,
}
CHANGED = ("query_kernel", "key_kernel", "value_kernel", "output_kernel")
CHOICES = {"max_tokens": 64, "epochs": 1, "warmup_steps": 1}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
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


@pytest.fixture(scope="module")
def first(corpus, tmp_path_factory):
    """The folder of a run of all weights."""
    parts = train(
        corpus,
        tmp_path_factory.mktemp("runs") / "first",
        model="transformer",
        model_arguments=SIZES,
        vocabulary_type="word",
    )
    return parts.directory


@pytest.fixture(scope="module")
def second(first, corpus):
    """What a training of changes has left: one epoch, from the first run."""
    return train(corpus, first.path.with_name("second"), **changing(first))


def changing(first):
    choices = {"init": str(first.path), "lora_rank": 2, "learning_rate": 0.1}
    # Of another number of epochs, the rate is the same.
    return choices | {"schedule": "constant"}


@pytest.mark.slow
def test_a_run_changes_attention_and_is_a_plain_model(first, second):
    before, after = weights(first), weights(second.directory)
    assert [*before] == [*after]
    for name in before:
        is_changed = np.abs(after[name] - before[name]).max() > 1e-4
        assert is_changed == name.endswith(CHANGED), name
    # Loaded, it is the model that was trained.
    loaded = runs.load(second.directory.path)
    ids = {
        "source_ids": np.array([[4, 5, 6, 3]]),
        "target_ids": np.array([[2, 5, 4]]),
    }
    np.testing.assert_allclose(loaded.model(ids), second.model(ids), atol=1e-5)
    change = second.model.encoder_layers[0].self_attention
    a, b = change.lora_kernels["query"]
    (name,) = (n for n in before if "encoder_0/" in n and "query_k" in n)
    np.testing.assert_allclose(
        after[name], before[name] + a.numpy() @ b.numpy(), atol=1e-5
    )


@pytest.mark.slow
def test_a_run_goes_on_as_if_it_had_not_stopped(first, second, corpus):
    choices = changing(first) | {"epochs": 2}
    whole = train(corpus, first.path.with_name("whole"), **choices)
    copy = first.path.with_name("copy")
    shutil.copytree(second.directory.path, copy)
    resumed = train(corpus, copy, resume=True, **choices)
    expected = weights(whole.directory)
    for name, array in weights(resumed.directory).items():
        np.testing.assert_array_equal(array, expected[name])


@pytest.mark.slow
def test_an_export_scores_as_the_model_that_was_trained(second, tmp_path):
    pairs = ["one three", "one two three"], ["eins drei", "zwei zwei"]
    live = Translator(second.model, *second.tokenizers)
    exported = runs.load(second.directory.path).export(tmp_path / "model")
    np.testing.assert_allclose(
        runs.load(exported).score(*pairs), live.score(*pairs), rtol=1e-5
    )


@pytest.mark.slow
def test_a_checkpoint_with_changes_apart_is_refused(second):
    with pytest.raises(ValueError, match="apart from the kernels.*weights.npz"):
        initial_weights.take(second.model, str(second.directory.checkpoint))


def test_without_weights_to_begin_with_it_is_refused(corpus, tmp_path):
    with pytest.raises(ValueError, match="Name them: --init RUN"):
        train(corpus, tmp_path / "run", lora_rank=2)


@pytest.mark.slow
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
