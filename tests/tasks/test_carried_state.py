"""A language model that carries its state: trained, stopped and scored."""

import json
import math

import numpy as np
import pytest
import small_runs
import tensorflow as tf

import keras_attention as ka
from keras_attention import cli, config, tasks
from keras_attention.data.embedded import sentences
from keras_attention.server import versions
from keras_attention.tasks import language_modelling
from keras_attention.tokens import END, START
from keras_attention.training import checkpoints, loop, run_directory

SIZES = {"embedding_dim": 8, "units": 8, "num_layers": 2, "cell": "lstm"}


class Silent(language_modelling.LanguageModelling):
    """Language modelling without samples, which take long to trace."""

    def validation(self, choices, corpus, servable):
        return lambda epoch, logs: None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts")
    splits = sentences.generate(train=40, validation=10, test=12)
    for split, lines in splits.items():
        (path / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def train(folder):
    """A function: trains in a folder, and returns it."""

    def train(output, resume=False, **choices):
        choices = {
            "model": "rnn_language_model",
            "model_arguments": SIZES,
            "dropout": 0.2,
            "weight_range": 0.3,
            "corpus": str(folder),
            "context": "carry",
            "context_length": 7,
            "max_tokens": 35,
            "max_length": 20,
            "epochs": 3,
            "optimizer": "sgd",
            "learning_rate": 4.0,
            "clip_norm": 0.5,
            "schedule": "decay",
            "constant_epochs": 1,
            "checkpoint_steps": 1,
            "replicas": 1,
            "output": str(output),
            **choices,
        }
        choices = config.resolve(config.make(**choices))
        return loop.train(choices, Silent(), resume).directory

    return train


@pytest.fixture(scope="module")
def run(train, tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def live(run):
    return ka.load(run.path)


@pytest.fixture(scope="module")
def savedmodel(live, tmp_path_factory):
    return live.export(tmp_path_factory.mktemp("exported") / "model").parent


@pytest.mark.slow
def test_a_stopped_run_goes_on_exactly(run, train, tmp_path):
    """Killed amid each of three epochs."""
    state = {}
    for call in (4, 11, 9):
        with small_runs.killed("checkpoint.npz", call=call):
            train(tmp_path / "run", resume=True)
        arrays, content = checkpoints.load(tmp_path / "run" / "checkpoint.npz")
        state[content["epoch"], content["step"]] = [
            array for name, array in arrays.items() if "objective/" in name
        ]
    assert len(state) == 3 and all(
        len(leaves) == 4 for leaves in state.values()
    )
    assert all(leaf.any() for leaves in state.values() for leaf in leaves)
    resumed = train(tmp_path / "run", resume=True)
    for path in (run.weights, run.checkpoint):
        expected, _ = checkpoints.load(path)
        found, _ = checkpoints.load(resumed.path / path.name)
        # Their names count the models of a process.
        for (name, one), other in zip(
            expected.items(), found.values(), strict=True
        ):
            np.testing.assert_array_equal(other, one, name)
    assert run_directory.read_history(run) == run_directory.read_history(
        resumed
    )


def test_the_rate_falls_after_the_first_epoch(run):
    arrays, content = checkpoints.load(run.checkpoint)
    assert content["epoch"] == 3
    (rate,) = (
        array
        for name, array in arrays.items()
        if name.endswith("learning_rate")
    )
    assert rate == 4 / 2 / 2


def whole_stream(model, tokenizer, lines):
    """log p of each label by the model on all lines at once, from zeros."""
    inputs, labels = [], []
    for line in lines:
        ids = [*tokenizer.tokenize(line).numpy()]
        inputs += [START, *ids]
        labels += [*ids, END]
    log_p = tf.nn.log_softmax(model(np.array([inputs], "int32")))[0].numpy()
    return log_p[np.arange(len(labels)), labels]


def test_scores_are_those_of_the_whole_stream(
    run, live, savedmodel, folder, capsys
):
    """The run and its SavedModel agree, over parts of 20 tokens."""
    lines = (folder / "test.txt").read_text().splitlines()
    log_p = whole_stream(live.model, live.graph.tokenizer, lines)
    assert len(log_p) > 60
    expected = math.exp(-log_p.mean())
    source = f"--source={folder / 'test.txt'}"
    for path in (run.path, savedmodel):
        cli.main(["evaluate", str(path), source, "--truncate"])
        scores = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert scores["tokens"] == len(log_p)
        assert scores["sentences"] == len(lines)
        assert scores["perplexity"] == pytest.approx(expected, rel=1e-5)
        assert "truncated" not in scores
    loaded = ka.load(savedmodel)
    assert loaded.reads_lines and loaded.carries_state
    # The second line alone has another probability than behind the first.
    (first, both, second) = (
        one
        for one, _ in loaded.score([lines[0], "\n".join(lines[:2]), lines[1]])
    )
    length = len(lines[0].split()) + 1
    behind = log_p[length : length + len(lines[1].split()) + 1].sum()
    assert both - first == pytest.approx(behind, abs=1e-4)
    assert abs(second - behind) > 1e-4


def test_a_server_takes_a_stream_of_any_length(savedmodel):
    version = versions.load(savedmodel / "1", 1)
    limited = {
        name
        for name, signature in version.signatures.items()
        if version.has_text_limit(signature)
    }
    assert {"serving_default", "score"} <= limited
    assert "score_stream" in version.signatures.keys() - limited


def test_validation_carries_the_state(run, live):
    """With one row, the whole split is one text."""
    choices = config.replace(
        run_directory.read_config(run), max_tokens=7, precision="float32"
    )
    task = tasks.get(choices.task)
    corpus = task.load(choices.data)
    tokenizers = task.load_tokenizers(run)
    objective = task.objective(choices, live.model)
    pipeline = task.pipeline(choices, corpus, tokenizers, replicas=1)
    losses = []
    for batch in pipeline.validation():
        values, _ = objective(live.model, batch, training=False)["loss"]
        losses.extend(values.numpy()[0])
    lines = list(corpus.texts("validation", "target"))
    log_p = whole_stream(live.model, *tokenizers, lines)
    np.testing.assert_allclose(losses, -log_p, atol=1e-4)


def test_a_continuation_begins_anew(live, savedmodel):
    for model in (live, ka.load(savedmodel)):
        first, second = model(["a king sleeps\nthe king", "the king"])
        assert first == second


def test_what_cannot_be_carried_is_refused(folder, train, tmp_path):
    with pytest.raises(ValueError, match="at least context_length.*tokens=35"):
        train(tmp_path / "run", context_length=36)
    task = tasks.get("language_modelling")
    choices = config.resolve(
        config.make(
            model="rnn_language_model", corpus=str(folder), context="carry"
        )
    )
    with pytest.raises(ValueError, match="--replicas=1, .* There are 2 repl"):
        task.pipeline(choices, None, (None,), replicas=2)
