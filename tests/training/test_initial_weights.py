"""Which weights a training takes from another one, and which it refuses."""

import keras
import numpy as np
import pytest
import tiny

from keras_attention import config
from keras_attention.models import catalog
from keras_attention.training import (
    checkpoints,
    initial_weights,
    run_directory,
)


def create(name, vocabulary=31, **arguments):
    model = tiny.create(name, vocabulary, **arguments)
    model.build()
    return model


def write(path, model):
    weights = model.trainable_variables
    arrays = checkpoints.variables_to_arrays("model", weights)
    checkpoints.save(path, arrays, {})
    return str(path)


def values(model):
    return [one.numpy() for one in model.trainable_variables]


@pytest.mark.fast_for("transformer", "luong")
@pytest.mark.parametrize("name", sorted(catalog.CATALOG))
def test_every_model_takes_all_its_weights(name, tmp_path, capsys):
    """The names of a second model of a process are those of the first."""
    first, second = create(name), create(name)
    path = write(tmp_path / "weights.npz", first)
    checksums = [initial_weights.take(second, path) for _ in range(2)]
    assert checksums[0] == checksums[1]
    for one, other in zip(values(first), values(second), strict=True):
        np.testing.assert_array_equal(one, other)
    count = len(first.trainable_variables)
    assert f"with {count} of its {count} weights, " in capsys.readouterr().out


def test_a_classifier_takes_the_encoder_of_a_translator(tmp_path, capsys):
    translator = create("transformer")
    classifier = create("encoder_classifier")
    before = {one.path: one.numpy() for one in classifier.trainable_variables}
    path = write(tmp_path / "weights.npz", translator)
    initial_weights.take(classifier, path)
    printed = capsys.readouterr().out
    theirs = {
        one.path.partition("/")[2]: one.numpy()
        for one in translator.trainable_variables
    }
    taken = 0
    for one in classifier.trainable_variables:
        name = one.path.partition("/")[2]
        taken += name in theirs
        expected = theirs.get(name, before[one.path])
        np.testing.assert_array_equal(one.numpy(), expected)
    assert 10 < taken < len(before)
    assert f"with {taken} of its {len(before)} weights (fresh: " in printed
    assert "(not taken: decoder_0/" in printed


@pytest.mark.parametrize("name", ["model.keras", "model.weights.h5"])
def test_files_of_keras_are_read(tmp_path, name):
    first = create("rnnsearch")
    if name.endswith(".keras"):
        first.save(tmp_path / name)
    else:
        first.save_weights(tmp_path / name)
    second = create("rnnsearch")
    initial_weights.take(second, str(tmp_path / name))
    for one, other in zip(values(first), values(second), strict=True):
        np.testing.assert_array_equal(one, other)
    other = create("luong")
    with pytest.raises(ValueError, match="not hold the weights of this model"):
        initial_weights.take(other, str(tmp_path / name))


def test_weights_that_do_not_fit_are_refused(tmp_path):
    path = write(tmp_path / "w.npz", create("rnnsearch"))
    larger = create("rnnsearch", vocabulary=32)
    before = values(larger)
    with pytest.raises(ValueError, match=r"the shape \[31, 7\] .*\[32, 7\]"):
        initial_weights.take(larger, path)
    for one, other in zip(before, values(larger), strict=True):
        np.testing.assert_array_equal(one, other)
    other = keras.Sequential([keras.layers.Dense(2)], name="other")
    other.build([None, 3])
    with pytest.raises(ValueError, match="No weight name in .* matches"):
        initial_weights.take(other, path)


@pytest.mark.parametrize(
    "name, deeper",
    [("conv_seq2seq", {"num_layers": 3}), ("bytenet", {"num_sets": 2})],
)
def test_layers_of_one_name_take_no_weights_of_others(tmp_path, name, deeper):
    """The second layer of a stack may be the first of the next stack there."""
    path = write(tmp_path / "weights.npz", create(name))
    model = create(name, **deeper)
    before = values(model)
    with pytest.raises(ValueError, match="Several weights are called"):
        initial_weights.take(model, path)
    for one, other in zip(before, values(model), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["none", "config.yaml", "empty"])
def test_what_holds_no_weights_is_refused(tmp_path, name):
    (tmp_path / "config.yaml").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="Give (--init the|a run's) folder"):
        initial_weights.take(None, str(tmp_path / name))


def test_the_vocabulary_of_a_run_is_taken_over(tmp_path):
    choices = config.resolve(config.make(output=str(tmp_path / "first")))
    first = run_directory.start(choices)
    first.vocabulary("joint").write_bytes(b"pieces")
    init = str(first.path)
    later = {"init": init, "corpus": "folder", "output": str(tmp_path / "new")}
    new = config.resolve(config.make(**later))
    # Not the defaults of another corpus.
    assert new.vocabulary.vocabulary_size == 550
    assert new.architecture.size == "mini"
    directory = run_directory.start(new)
    for path in (init, str(first.weights)):
        initial_weights.take_vocabulary(path, directory, new.vocabulary)
        assert directory.vocabulary("joint").read_bytes() == b"pieces"
    other = config.resolve(config.make(**later, normalization="nfkc"))
    other = other.vocabulary
    with pytest.raises(ValueError, match="whose normalization is"):
        initial_weights.take_vocabulary(init, directory, other)
    # Weights alone have none.
    initial_weights.take_vocabulary(str(tmp_path / "w.npz"), directory, other)


def test_weights_are_drawn_evenly_around_their_middle():
    model = create("char_cnn_language_model", vocabulary=997)
    spelling = model.spelling.numpy()
    initial_weights.draw(model, 0.05, seed=1)
    lstm = [w for w in model.trainable_variables if "lstm" in w.path]
    assert len(lstm) >= 3  # Forget gates too: their bias is 1 by default.
    for weight in model.trainable_variables:
        around = weight.numpy()
        if weight.path.endswith("gate/bias"):
            around = around + 2  # The highways are almost closed.
        assert 0 < np.abs(around).max() < 0.0501, weight.path
    output = model.output_projection.kernel.numpy()
    assert abs(output.mean()) < 0.05 * 4 / np.sqrt(3 * output.size)
    assert output.std() == pytest.approx(0.05 / np.sqrt(3), rel=0.05)
    np.testing.assert_array_equal(model.spelling, spelling)
    again, other = (
        create("char_cnn_language_model", vocabulary=997) for _ in range(2)
    )
    initial_weights.draw(again, 0.05, seed=1)
    initial_weights.draw(other, 0.05, seed=2)
    for first, second in zip(values(model), values(again), strict=True):
        np.testing.assert_array_equal(first, second)
    assert np.abs(other.output_projection.kernel - output).max() > 0.01
