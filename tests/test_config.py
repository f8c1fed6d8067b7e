"""What a run chooses where nothing is said."""

import pytest

from keras_attention import config


@pytest.mark.parametrize(
    "choices, rate",
    [
        ({"model": "luong"}, 4e-3),
        ({"model": "luong", "learning_rate": 1e-3}, 1e-3),
        ({"model": "luong", "corpus": "folder"}, 2e-3),
        ({"model": "rnnsearch"}, 2e-3),
    ],
)
def test_the_learning_rate_depends_on_model_and_corpus(choices, rate):
    resolved = config.resolve(config.TrainingConfig(**choices))
    assert resolved.learning_rate == rate


def test_what_is_said_is_kept():
    said = config.TrainingConfig(epochs=3, dropout=0.4, output="here")
    resolved = config.resolve(said)
    assert (resolved.epochs, resolved.dropout, resolved.output) == (
        3,
        0.4,
        "here",
    )
    assert resolved.vocabulary_size == 550


def test_steps_leave_the_epochs_open():
    assert config.resolve(config.TrainingConfig(steps=7)).epochs is None
