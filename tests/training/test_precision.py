"""What `--precision auto` chooses, and that a run keeps it."""

import pytest

from keras_attention import config as configuration
from keras_attention.tasks import models
from keras_attention.training import precision, run_directory


@pytest.fixture
def auto(tmp_path):
    return configuration.resolve(
        configuration.make(precision="auto", output=str(tmp_path / "run"))
    )


def measured(monkeypatch, float32, bfloat16):
    times = {"float32": float32, "bfloat16": bfloat16}
    monkeypatch.setattr(precision, "_seconds", lambda name, _: times[name])


@pytest.mark.parametrize(
    ("bfloat16", "expected"),
    [(0.001, "bfloat16"), (0.0019, "float32"), (0.01, "float32")],
)
def test_the_faster_one_is_chosen(
    monkeypatch, capsys, auto, bfloat16, expected
):
    measured(monkeypatch, 0.002, bfloat16)
    config = precision.decided(auto, resume=False)
    assert config.architecture.precision == expected
    (line,) = capsys.readouterr().out.splitlines()
    assert f"Precision: {expected}." in line
    assert "2.0 ms in float32" in line
    assert f"{1000 * bfloat16:.1f} ms in bfloat16" in line


def test_a_run_keeps_what_it_began_with(monkeypatch, auto):
    measured(monkeypatch, 0.002, 0.001)
    directory = run_directory.start(precision.decided(auto, resume=False))
    measured(monkeypatch, 0.001, 0.002)  # Another machine.
    config = precision.decided(auto, resume=True)
    assert config.architecture.precision == "bfloat16"
    run_directory.check_resumable(run_directory.read_config(directory), config)


def test_a_choice_is_not_measured(monkeypatch, auto):
    monkeypatch.setattr(precision, "choose", None)
    for name in ("float32", "bfloat16"):
        config = configuration.replace(auto, precision=name)
        assert precision.decided(config, resume=False) is config


def test_no_model_is_made_before(auto):
    with pytest.raises(ValueError, match="A model needs a precision"):
        models.create(auto.architecture)


def test_several_workers_are_refused(auto):
    with pytest.raises(ValueError, match="one machine"):
        precision.decided(auto, resume=False, num_workers=2)


def test_widths():
    def widths(**choices):
        config = configuration.resolve(configuration.make(**choices))
        return precision.widths(config.architecture)

    assert widths(model="transformer", size="base") == (512, 2048)
    assert widths(model="transformer", size="tiny") == (128, 256)
    assert widths(model="rnnsearch", size="base") == (500, 1000)
    assert widths(
        model="transformer", size="tiny", model_arguments={"hidden_dim": 64}
    ) == (64, 256)
    assert precision.choose(None)[0] == "float32"


def test_times_are_measured():
    assert 0 < precision._seconds("float32", (16, 32)) < 5
