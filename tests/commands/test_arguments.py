"""The command line's arguments: flags, files and constructors alike."""

import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

from keras_attention import cli, config
from keras_attention.commands import train as verb

pytestmark = pytest.mark.usefixtures("without_pydantic")


def mistake(*argv):
    with pytest.raises(SystemExit) as error:
        cli.main(list(argv))
    return str(error.value)


@pytest.fixture
def chosen(monkeypatch):
    """A function of `train`'s arguments: the choices that they make."""
    made = []

    def resolve(choices):
        made.append(choices)
        return resolved(choices)

    def import_nothing():
        raise ValueError("it would begin")

    resolved = config.resolve
    monkeypatch.setattr(config, "resolve", resolve)
    monkeypatch.setattr(config, "check_corpus", lambda corpus: None)
    monkeypatch.setattr(verb.arguments, "import_tensorflow", import_nothing)

    def choose(*argv):
        message = mistake("train", *argv)
        assert message == "keras-attention train: it would begin"
        return config.flat(resolved(made[-1]))

    return choose


@pytest.mark.parametrize(
    "name, wrong, words",
    [
        ("dropout", 1.5, "a finite number, at least 0, below 1"),
        ("learning_rate", 0, "a finite number, above 0"),
        ("epochs", "three", "a whole number, at least 1"),
        ("seed", True, "a whole number, at least 0"),
        (
            "schedule",
            "foo",
            "one of cosine, inverse_sqrt, constant, decay, plateau",
        ),
        ("model_arguments", [1], "a mapping such as '{\"num_layers\": 2}'"),
    ],
)
def test_a_wrong_choice_has_one_answer(name, wrong, words, tmp_path):
    """By constructor, flag and file, with groups and without."""
    expected = f"Expected {name} to be {words}. Received: {name}={wrong!r}"
    with pytest.raises(ValueError) as error:
        config.make(**{name: wrong})
    assert str(error.value) == expected
    answer = mistake("train", f"--{name}={wrong}")
    assert answer == f"keras-attention train: {expected}"
    group = config.GROUP_OF[name]
    for text in (f"{name}: {wrong}", f"{group}:\n  {name}: {wrong}"):
        path = tmp_path / "choices.yaml"
        path.write_text(text)
        answer = mistake("train", "--config", str(path))
        assert answer == f"keras-attention train: {path}: {expected}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("optimizer: {epoch: 3}", "no option epoch (did"),
        ("data: {source: no}", "source to be text"),
        ("[1]", "holds no choices: [1]"),
        ("a: [", "is not YAML"),
        ("data: phrases", "no option data (did"),
    ],
)
def test_a_file_with_a_mistake_is_named(text, message, tmp_path):
    path = tmp_path / "choices.yaml"
    path.write_text(text)
    answer = mistake("train", f"--config={path}")
    assert message in answer and str(path) in answer and "\n" not in answer


def test_flags_win_over_the_file_wherever_they_stand(chosen, tmp_path):
    path = tmp_path / "choices.yaml"
    path.write_text("architecture: {dropout: 3e-1}\nepochs: 7")
    for argv in (
        ["--dropout=0.2", "--config", str(path)],
        ["--config", str(path), "--dropout", "0.2"],
    ):
        choices = chosen(*argv)
        assert (choices["dropout"], choices["epochs"]) == (0.2, 7)
    assert chosen("--config", str(path))["dropout"] == 0.3


def test_the_last_of_two_flags_wins(chosen):
    choices = chosen("--epochs=2", "--resume", "--epochs", "20", "--resume")
    assert choices["epochs"] == 20


def test_a_resumed_run_has_its_choices_below_file_and_flags(
    chosen, tmp_path, monkeypatch
):
    """Its folder is known from corpus, languages and model."""
    monkeypatch.chdir(tmp_path)
    begun = config.resolve(
        config.make(model="luong", seed=5, num_beams=2, epochs=3, source="no")
    )
    folder = tmp_path / begun.run.output
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.text(begun), "utf-8")
    (tmp_path / "more.yaml").write_text("training: {epochs: 4}")
    resumed = chosen(
        *["--resume", "--model=luong", "--source=no"],
        *["--config=more.yaml", "--num_beams", "1"],
    )
    expected = config.flat(config.replace(begun, epochs=4, num_beams=1))
    assert resumed == expected
    assert chosen("--model=luong")["seed"] == 1
    # Of the data's new place, the rest is the run's.
    moved = chosen("--resume", f"--output={folder}", "--corpus=elsewhere")
    assert moved == config.flat(begun) | {
        "corpus": str(tmp_path / "elsewhere"),
        "output": str(folder),
    }


@pytest.mark.parametrize("output", [None, "run"])
def test_a_resumed_run_keeps_its_rate_where_its_optimizer_is_named(
    chosen, tmp_path, monkeypatch, output
):
    monkeypatch.chdir(tmp_path)
    begun = config.make(output=output, optimizer="sgd", learning_rate=30.0)
    begun = config.resolve(begun)
    folder = tmp_path / begun.run.output
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.text(begun), "utf-8")
    named = [] if output is None else [f"--output={output}"]
    resumed = chosen("--resume", "--optimizer=sgd", *named)
    assert resumed == config.flat(begun)


def test_a_resumed_run_has_two_languages_where_its_flags_have_one(
    chosen, tmp_path
):
    """The default target is the source that is named again."""
    output = tmp_path / "run"
    begun = config.resolve(
        config.make(source="de", target="en", output=str(output))
    )
    output.mkdir()
    (output / "config.yaml").write_text(config.text(begun), "utf-8")
    resumed = chosen("--resume", f"--output={output}", "--source=de")
    assert resumed == config.flat(begun)


def test_a_run_hands_on_its_model_and_vocabulary(chosen, tmp_path):
    """Below flags and files; to another model its vocabulary alone."""
    made = {"model": "luong", "size": "tiny", "normalization": "nfkc"}
    made |= {"model_arguments": {"units": 16}, "vocabulary_size": 99}
    made |= {"dropout": 0.5, "seed": 7, "output": str(tmp_path)}
    run = config.resolve(config.make(**made))
    (tmp_path / "config.yaml").write_text(config.text(run))
    (tmp_path / "weights.npz").touch()
    init = f"--init={tmp_path}"
    choices = chosen(init, "--corpus=elsewhere", "--vocabulary_size=98")
    expected = {"model": "luong", "size": "tiny", "normalization": "nfkc"}
    expected |= {"model_arguments": {"units": 16}, "vocabulary_size": 98}
    expected |= {"max_piece_length": 9, "dropout": None, "seed": 1}
    expected |= {"init": str(tmp_path)}
    assert choices.items() >= expected.items()
    resumed = ["--resume", f"--output={tmp_path}/new"]
    again = chosen(init, "--corpus=elsewhere", "--vocabulary_size=98", *resumed)
    assert again == choices | {"output": f"{tmp_path}/new"}
    other = chosen(init, "--model=rnnsearch", "--corpus=elsewhere")
    expected = {"model": "rnnsearch", "model_arguments": {}}
    expected |= {"vocabulary_size": 99, "normalization": "nfkc"}
    assert other.items() >= expected.items()


@pytest.mark.parametrize(
    "made",
    [
        {"model": "bag_of_vectors", "learns": "question_answering"},
        {"model": "luong", "model_arguments": {"units": 16}}
        | {"normalization": "nfkc", "joint_vocabulary": False},
    ],
)
def test_python_hands_on_what_the_command_line_does(chosen, tmp_path, made):
    run = config.resolve(config.make(**made))
    (tmp_path / "config.yaml").write_text(config.text(run))
    (tmp_path / "weights.npz").touch()
    in_python = config.flat(config.resolve(config.make(init=str(tmp_path))))
    assert in_python.items() >= made.items()
    assert chosen(f"--init={tmp_path}") == in_python
    other = config.make(init=str(tmp_path), model="transformer")
    assert other.architecture == config.DEFAULTS.architecture


def test_weights_that_are_not_there_are_named_at_once(tmp_path):
    words = mistake("train", f"--init={tmp_path}/nothing")
    assert f"--init found no weights at {tmp_path}/nothing" in words


def test_only_the_worker_that_leads_needs_a_folder_to_write_in(
    chosen, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    output = f"--output={tmp_path}/file/run"
    assert "file is not a folder" in mistake("train", output)
    cluster = {"worker": ["a:1", "b:1"]}
    second = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(second))
    assert chosen(output)["output"].endswith("file/run")


def test_a_recipe_gives_way_to_flags_and_to_a_file_of_its_name(
    chosen, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = "multi30k_en_de_rnnsearch"
    later = chosen("--corpus=a/b", "--config", name, "--seed=3")
    assert (later["model"], later["seed"]) == ("rnnsearch", 3)
    assert later["corpus"] == str(tmp_path / "a/b")
    # Not the name nor the note of another corpus.
    assert later["output"] == "runs/b_en_de_rnnsearch"
    assert "Elliott" not in later["data_note"]
    for corpus in ([], ["--corpus=a/multi30k"]):
        said = chosen(f"--config={name}", *corpus)
        assert "Elliott" in said["data_note"]
    said = chosen("--config", name, "--corpus=a/b", "--data_note=Mine.")
    assert said["data_note"] == "Mine."
    pathlib.Path(name).write_text("model: luong\n", "utf-8")
    assert chosen("--config", name)["model"] == "luong"


def test_a_recipe_that_does_not_exist_is_refused_with_a_list():
    answer = mistake("train", "--config", "multi30k_en_de_long")
    assert "multi30k_en_de_luong" in answer and "en_de_long" in answer


def test_home_is_found_behind_an_equals_sign(chosen, monkeypatch, tmp_path):
    """The shell leaves `--corpus=~/x` as it is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    choices = chosen("--corpus=~/x", "--output=~/y")
    assert choices["corpus"] == str(tmp_path / "x")
    assert choices["output"] == str(tmp_path / "y")


@pytest.fixture
def model(tmp_path):
    """A folder that looks like a run, and in it one like a SavedModel."""
    folder = tmp_path / "model"
    (folder / "savedmodel" / "1").mkdir(parents=True)
    (folder / "savedmodel" / "1" / "saved_model.pb").write_text("")
    (folder / "config.yaml").write_text("corpus: gone\n")
    return str(folder)


@pytest.fixture
def translated(model, monkeypatch):
    """A function of `translate`'s arguments: its texts and options."""
    from keras_attention import runs

    class Echo:
        """A translator that answers with the text."""

        task, num_beams = "translation", 4
        kind = types.SimpleNamespace(inputs=("text",), numbers={})

        def too_long(self, texts):
            return {}

        def __call__(self, texts, **options):
            asked.update(options, texts=texts)
            return texts

    asked = {}

    def load(path, **search):
        asked.clear()
        asked["search"] = search
        return Echo()

    monkeypatch.setattr(runs, "load", load)

    def translate(*argv):
        cli.main(["translate", model, *argv])
        return asked

    return translate


@pytest.mark.parametrize(
    "argv, texts, search",
    [
        (["a", "b"], ["a", "b"], {}),
        (["--num_beams", "1", "a"], ["a"], {"num_beams": 1}),
        (
            ["a", "--length_penalty", "0", "b"],
            ["a", "b"],
            {"length_penalty": 0},
        ),
        (["a", "--no_repeat_ngram_size=3"], ["a"], {"no_repeat_ngram_size": 3}),
        (
            ["a", "--num_beams=3", "--truncate", "c"],
            ["a", "c"],
            {"num_beams": 3},
        ),
        (["- well", "-- Yes, I will."], ["- well", "-- Yes, I will."], {}),
        (["--num_beams=2", "a", "--num_beams=3"], ["a"], {"num_beams": 3}),
        (["-5", "--", "-b", "--scores"], ["-5", "-b", "--scores"], {}),
    ],
)
def test_options_of_translate_stand_anywhere(translated, argv, texts, search):
    asked = translated(*argv)
    assert asked["texts"] == texts
    assert asked["search"] == search
    assert asked["truncate"] == ("--truncate" in argv)


def test_a_word_of_two_dashes_is_no_text(model):
    answer = mistake("translate", model, "a", "--a=b", "--", "--c")
    assert "There is no option --a=b" in answer


@pytest.mark.parametrize(
    "argv, message",
    [
        (["trian"], "did you mean train?"),
        (["train", "--epochz", "3"], "did you mean --epochs?"),
        (["translate", "RUN", "--num_baems=3"], "did you mean --num_beams?"),
        (["translate"], "value of MODEL is missing"),
        (["train", "--epochs"], "value of --epochs is missing"),
        (["train", "--resume=maybe"], "Expected resume to be true or false"),
        (["train", "stray"], "Unexpected argument: stray"),
        (["train", "--joint_vocabulary", "false"], "--NAME=false"),
        (["train", "--config=nowhere"], "The recipes are"),
        (["train", "--model=foo"], "Expected model to be one of transformer"),
    ],
)
def test_a_mistake_is_one_line(argv, message):
    answer = mistake(*argv)
    assert message in answer and "\n" not in answer
    assert answer.startswith("keras-attention")


# Seconds of its own, the first ones from the interpreter's start on: others
# may be busy.
WITHOUT_TENSORFLOW = """
import json, sys, time
from keras_attention import cli
before = 0.0
for argv in json.loads(sys.argv[1]):
    try:
        cli.main(argv)
    except SystemExit as error:
        print(error, file=sys.stderr)
    seconds = time.process_time() - before
    before += seconds
    loaded = {"tensorflow", "keras", "numpy"} & set(sys.modules)
    if loaded or seconds > 1.5:
        sys.exit(f"{argv}: {seconds} seconds, {loaded}")
"""


def answered_at_once(*calls):
    """What a new process answers, each in 1.5 s and without TensorFlow."""
    root = str(pathlib.Path(cli.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, json.dumps(calls)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.returncode == 0, done.stderr
    return done


# Verb -> arguments and what is said of them. All of a verb are one process.
MISTAKES = {
    "completion": [(["fish"], "one of bash, zsh"), (["bahs"], "mean bash?")],
    "train": [
        (["--model=foo"], "Expected model to be one of"),
        (["--corpus=nowhere"], "no corpus nowhere"),
        (["--config=nowhere"], "no recipe nowhere"),
        (["--size=huge"], "Received: size='huge'"),
        (["--target=en"], "are both 'en'"),
        (["--output={model}/config.yaml/a"], "config.yaml is not a folder"),
    ],
    "evaluate": [
        (["nowhere"], "no folder nowhere"),
        (["{model}", "--source=nowhere"], "no file nowhere"),
        (["{model}", "--alignments=nowhere"], "no file nowhere"),
        (["{model}/savedmodel"], "no corpus of its own"),
        (["{model}", "--corpus=nowhere"], "no corpus nowhere"),
        (["{model}", "--corpus=phrases", "--tokenize=foo"], "Received: 'foo'"),
        (["{model}"], "no corpus gone"),
        (["{model}", "--beside", "nowhere"], "no folder nowhere"),
    ],
    "predict": [
        (
            ["{model}", "--input={model}/config.yaml"]
            + ["--output={model}/config.yaml"],
            "config.yaml is not a folder",
        ),
    ],
    "translate": [
        (["nowhere", "a"], "no folder nowhere"),
        (["{model}", "a", "--n_best=0"], "Received: n_best=0"),
    ],
    "export": [
        (["nowhere", "--to=there"], "nowhere is not the folder of a run"),
        (["{model}", "--to=there"], "no corpus gone"),
        (["{model}"], "value of --to is missing"),
        (["{model}", "--to=a", "--corpus=b"], "no corpus b"),
        (["{model}", "--to={model}"], "the folder of a run"),
    ],
    "align": [(["nowhere"], "nowhere is not the folder of a run")],
    "serve": [(["nowhere"], "no folder nowhere")],
}


@pytest.mark.parametrize("verb", cli.VERBS)
def test_help_and_mistakes_are_answered_at_once(verb, model):
    messages = [message for _, message in MISTAKES[verb]]
    mistakes = [
        [verb, *(word.format(model=model) for word in argv)]
        for argv, _ in MISTAKES[verb]
    ]
    done = answered_at_once([verb, "--help"], *mistakes)
    lines = done.stderr.splitlines()
    for line, message in zip(lines, messages, strict=True):
        assert line.startswith(f"keras-attention {verb}: ")
        assert message in line
    if verb == "train":
        for name in config.GROUP_OF:
            assert f"--{name}" in done.stdout


def test_help_lists_every_verb():
    out = answered_at_once(["--help"]).stdout
    assert all(verb in out for verb in cli.VERBS)
