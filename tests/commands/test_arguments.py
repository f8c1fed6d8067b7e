"""The command line's arguments: flags, files and constructors alike."""

import subprocess
import sys

import pytest

from keras_attention import cli, config


def answer(capsys, *argv):
    cli.main(list(argv))
    return capsys.readouterr().out


def mistake(*argv):
    with pytest.raises(SystemExit) as error:
        cli.main(list(argv))
    return str(error.value)


@pytest.mark.parametrize(
    "name, wrong, words",
    [
        ("dropout", 1.5, "a finite number, at least 0, below 1"),
        ("dropout", -0.1, "a finite number, at least 0, below 1"),
        ("learning_rate", 0, "a finite number, above 0"),
        ("epochs", 0, "a whole number, at least 1"),
        ("epochs", 1.5, "a whole number, at least 1"),
        ("epochs", "three", "a whole number, at least 1"),
        ("seed", True, "a whole number, at least 0"),
        ("schedule", "foo", "one of cosine, inverse_sqrt, constant"),
        ("model_arguments", [1], "a mapping such as '{\"num_layers\": 2}'"),
    ],
)
def test_a_wrong_choice_has_one_answer(name, wrong, words, tmp_path):
    """By constructor, flag and file, with groups and without."""
    expected = f"Expected {name} to be {words}. Received: {wrong}"
    with pytest.raises(ValueError) as error:
        config.make(**{name: wrong})
    assert str(error.value) == expected
    assert mistake("train", f"--{name}={wrong}").endswith(f": {expected}")
    for text in (f"{name}: {wrong}", f"run: {{}}\n{name}: {wrong}"):
        path = tmp_path / "choices.yaml"
        path.write_text(text)
        message = mistake("train", "--config", str(path))
        assert message == f"keras-attention train: {path}: {expected}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("optimizer: {epoch: 3}", "Received: epoch"),
        ("data: {source: no}", "source to be text"),
        ("[1]", "Received: [1]"),
        ("a: [", "Expected YAML"),
    ],
)
def test_a_file_with_a_mistake_is_named(text, message, tmp_path):
    path = tmp_path / "choices.yaml"
    path.write_text(text)
    answer = mistake("train", f"--config={path}")
    assert message in answer and str(path) in answer and "\n" not in answer


def test_flags_win_over_the_file_wherever_they_stand(capsys, tmp_path):
    path = tmp_path / "choices.yaml"
    path.write_text("regularization: {dropout: 3e-1}\nrun: {epochs: 7}")
    for argv in (
        ["--dropout=0.2", "--config", str(path)],
        ["--config", str(path), "--dropout", "0.2"],
    ):
        out = answer(capsys, "train", *argv)
        assert "dropout=0.2" in out and "epochs=7" in out
    out = answer(capsys, "train", "--config", str(path))
    assert "dropout=0.3" in out


def test_a_resumed_run_has_its_choices_below_file_and_flags(
    capsys, tmp_path, monkeypatch
):
    """Its folder is known from corpus, languages and model."""
    monkeypatch.chdir(tmp_path)
    begun = config.make(model="luong", seed=5, num_beams=2, epochs=3)
    folder = tmp_path / config.output_folder(begun)
    folder.mkdir(parents=True)
    config.write(config.resolve(begun), folder / "config.yaml")
    (tmp_path / "more.yaml").write_text("run: {epochs: 4}")
    out = answer(
        capsys,
        "train",
        "--resume",
        "--model=luong",
        "--config=more.yaml",
        "--num_beams",
        "1",
    )
    for words in ("seed=5", "epochs=4", "num_beams=1", "model='luong'"):
        assert words in out
    assert "seed=1" in answer(capsys, "train", "--model=luong")


def test_recipes_are_read():
    for name in config.RECIPES:
        choices = config.read(name)
        assert config.flat(config.make(**choices)).items() >= choices.items()


@pytest.mark.parametrize(
    "argv, texts",
    [
        (["a", "b"], ["a", "b"]),
        (["a", "--n_best", "3", "b", "--scores", "c"], ["a", "b", "c"]),
        (["- well", "-- Yes, I will.", "--a=b c"], None),
        (["- well", "-- Yes, I will."], ["- well", "-- Yes, I will."]),
        (["-5", "--", "-b", "--scores"], ["-5", "-b", "--scores"]),
    ],
)
def test_texts_stand_anywhere(argv, texts, capsys):
    if texts is None:
        assert "Received: --a=b c" in mistake("translate", "RUN", *argv)
    else:
        assert f"RUN {texts} " in answer(capsys, "translate", "RUN", *argv)


@pytest.mark.parametrize(
    "argv, message",
    [
        (["trian"], "did you mean train?"),
        (["train", "--epochz", "3"], "did you mean --epochs?"),
        (["translate", "RUN", "--num_baems=3"], "did you mean --num_beams?"),
        (["translate"], "Expected a value of MODEL"),
        (["train", "--epochs"], "Expected a value of epochs"),
        (["train", "--resume=maybe"], "Expected resume to be true or false"),
        (["train", "stray"], "Received: stray"),
        (["train", "--joint_vocabulary", "false"], "--NAME=false"),
        (["train", "--config=nowhere"], "one of the recipes"),
    ],
)
def test_a_mistake_is_one_line(argv, message):
    answer = mistake(*argv)
    assert message in answer and "\n" not in answer
    assert answer.startswith("keras-attention")


@pytest.mark.parametrize("verb", [[], *([verb] for verb in cli.VERBS)])
def test_help_lists_every_choice_without_tensorflow(verb):
    code = (
        "import sys; from keras_attention import cli; "
        f"cli.main({[*verb, '--help']}); "
        "sys.exit(bool({'tensorflow', 'keras', 'numpy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, check=True, capture_output=True).stdout
    if verb == ["train"]:
        for name in config.GROUP_OF:
            assert f"--{name}" in out.decode()
