"""Classifiers by the verbs: trained, scored, exported, asked."""

import json

import pytest
import small_runs

import keras_attention as ka
from keras_attention import cli, tasks
from keras_attention.data.embedded import colours, multisets
from keras_attention.serving import kinds
from keras_attention.training import checkpoints

RUNS = {
    "classification": (
        "self_attentive_embedding",
        '{"embedding_dim": 8, "units": 8, "hidden_dim": 8}',
        colours,
    ),
    "entailment": (
        "decomposable_attention",
        '{"embedding_dim": 8, "units": 8}',
        multisets,
    ),
}


@pytest.fixture(scope="module", params=RUNS)
def task(request):
    return request.param


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    """The embedded corpus, fewer of it, as tables."""
    path = tmp_path_factory.mktemp(task)
    splits = RUNS[task][2].generate(train=200, validation=20, test=30)
    for split, rows in splits.items():
        table = "".join("\t".join(row) + "\n" for row in rows)
        (path / f"{split}.tsv").write_text(table)
    return path


def train(task, folder, output, *options):
    model, sizes, _ = RUNS[task]
    cli.main(
        ["train", f"--model={model}", f"--corpus={folder}", "--epochs=2"]
        + ["--model_arguments", sizes, f"--output={output}", *options]
    )


@pytest.fixture(scope="module")
def run(task, folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / task
    train(task, folder, output)
    return output


def read(folder, split):
    rows = [
        line.split("\t")
        for line in (folder / f"{split}.tsv").read_text().splitlines()
    ]
    return [row[0] for row in rows], ["\t".join(row[1:]) for row in rows]


def in_python(texts):
    """Rows as Python gives them: a pair of texts is a tuple, not a line."""
    return [tuple(text.split("\t")) if "\t" in text else text for text in texts]


def progress(folder):
    """The epoch of a run's checkpoint, and how many of its batches are done."""
    _, content = checkpoints.load(folder / "checkpoint.npz")
    return [content["epoch"], content["step"]]


def last_line(capsys):
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


@pytest.mark.fast_for("classification")
def test_scores_are_those_of_the_answers(run, folder, capsys):
    cli.main(["evaluate", str(run)])
    scores = last_line(capsys)
    labels, texts = read(folder, "test")
    answers = ka.load(run)(in_python(texts))
    right = sum(a == b for a, b in zip(answers, labels, strict=True))
    assert scores["sentences"] == 30
    assert scores["accuracy"] == pytest.approx(100 * right / 30)
    assert scores["error"] == pytest.approx(100 - scores["accuracy"])
    f1 = []
    for label in set(labels):
        pairs = list(zip(answers, labels, strict=True))
        both = sum(a == b == label for a, b in pairs)
        said = sum(a == label for a in answers)
        precision = both / said if said else 0
        recall = both / labels.count(label)
        total = precision + recall
        f1.append(2 * precision * recall / total if total else 0)
    assert scores["macro_f1"] == pytest.approx(100 * sum(f1) / len(f1))


@pytest.mark.fast_for("classification")
def test_a_savedmodel_has_the_scores_and_labels_of_its_run(
    task, run, folder, tmp_path, capsys
):
    model = run / "savedmodel"
    card = (model / "README.md").read_text("utf-8")
    assert f"# {task.capitalize()}: {RUNS[task][0]}" in card
    assert "| accuracy | " in card
    labels, texts = read(folder, "test")
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "labels").write_text("".join(f"{one}\n" for one in labels))
    rows = []
    for path in (run, model):
        cli.main(
            ["evaluate", str(path), "--source", str(tmp_path / "texts")]
            + ["--reference", str(tmp_path / "labels")]
        )
        rows.append(last_line(capsys))
        del rows[-1]["sentences_per_second"]
    assert rows[0] == rows[1]
    printed = []
    for path in (run, model):
        cli.main(["translate", str(path), *texts[:3]])
        printed.append(capsys.readouterr().out.split("\n")[:-1])
    assert printed[0] == printed[1] == ka.load(run)(in_python(texts[:3]))


@pytest.mark.fast_for("classification")
def test_labels_that_the_model_does_not_have_are_refused(
    run, folder, tmp_path, monkeypatch
):
    """By the run, by its export, and by one that does not declare them."""
    savedmodel = run / "savedmodel"
    labels, texts = read(folder, "test")
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in texts))
    known = ", ".join(map(repr, ka.load(run).kind.labels[:3]))
    for wrong, message in (
        (
            [str(number % 2) for number in range(30)],
            f"no label '0', '1'. .*{known}",
        ),
        ([label.upper() for label in labels], "in capital letters alone"),
        ([*labels[:-1], "-"], "no label '-'"),
    ):
        (tmp_path / "labels").write_text("".join(f"{one}\n" for one in wrong))
        for model in (run, savedmodel, "old"):
            with monkeypatch.context() as patch:
                if model == "old":
                    patch.setattr(kinds, "ASSET", "none")
                    model = savedmodel
                with pytest.raises(SystemExit, match=message):
                    cli.main(
                        ["evaluate", str(model)]
                        + ["--source", str(tmp_path / "texts")]
                        + ["--reference", str(tmp_path / "labels")]
                    )


@pytest.mark.fast_for("classification")
def test_a_run_has_its_pictures_and_its_labels(run, folder):
    assert (run / "attention.png").is_file()
    labels, _ = read(folder, "train")
    expected = sorted(set(labels))
    assert (run / "classes.txt").read_text().splitlines() == expected


@pytest.mark.slow
def test_no_separator_in_a_text_or_label_loses_a_training(
    task, tmp_path, capsys
):
    """Tabs, line ends and byte order marks, in every split."""
    odd = ("a\tb", "a\nb", "\ufeffa b", "a\rb", "a\0b")
    for split, count in (("train", 40), ("validation", 10), ("test", 10)):
        rows = [
            {
                "label": ("\ufeffyes", "no\nno", None)[number % 3],
                "premise": odd[number % 5],
                "hypothesis": odd[number // 5 % 5],
            }
            for number in range(count)
        ]
        table = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{split}.jsonl").write_text(table)
    run = tmp_path / "run"
    train(task, tmp_path, run)
    # A third of 40, 10 and 10 rows.
    assert "19 without a label" in capsys.readouterr().out
    assert (run / "classes.txt").read_text() == "no no\nyes\n"
    cli.main(["evaluate", str(run)])
    assert last_line(capsys)["sentences"] == 7
    train(task, tmp_path, run, "--resume")
    cli.main(["export", str(run), "--to", str(tmp_path / "model")])


def is_in_its_second_epoch(path):
    return path.is_file() and progress(path.parent) == [1, 1]


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_exactly(task, folder, tmp_path):
    """Killed in the second epoch, it ends with the same bytes."""
    options = ["--checkpoint_steps=1", "--dropout=0.2", "--max_tokens=1000"]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train(task, folder, whole, *options)
    assert progress(whole) == [2, 0]
    with small_runs.killed("checkpoint.npz", counts=is_in_its_second_epoch):
        train(task, folder, stopped, *options)
    assert progress(stopped) == [1, 1]
    train(task, folder, stopped, *options, "--resume")
    for name in ("weights.npz", "checkpoint.npz"):
        expected, expected_meta = checkpoints.load(whole / name)
        resumed, resumed_meta = checkpoints.load(stopped / name)
        assert resumed_meta == expected_meta
        # In order: in one process, each optimizer has a name of its own.
        for key, ours, theirs in zip(
            expected, resumed.values(), expected.values(), strict=True
        ):
            assert ours.tobytes() == theirs.tobytes(), key
    histories = [path / "history.json" for path in (whole, stopped)]
    assert histories[0].read_bytes() == histories[1].read_bytes()
    names = {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert set(json.loads(histories[0].read_bytes())[-1]) == names


@pytest.mark.fast_for("classification")
@pytest.mark.parametrize(
    "arguments, message",
    [
        (("translate", "{run}", "a\tb", "--n_best=2"), "models take --n_best"),
        (("export", "{run}", "--to=x", "--num_beams=2"), "num_beams"),
        (("evaluate", "{run}", "--num_beams=2"), "given to translators only"),
        (
            ("predict", "{run}", "a", "--no_repeat_ngram_size=2"),
            "translators and language models only",
        ),
        (("evaluate", "{run}", "--source={run}/classes.txt"), "--reference"),
        (
            ("train", "--model=bag_of_vectors", "--subword_sampling=0.1")
            + ("--output={run}2",),
            "drawn from a unigram vocabulary only",
        ),
    ],
)
def test_what_a_classifier_has_not_is_refused(arguments, message, run):
    with pytest.raises(SystemExit, match=message):
        cli.main([text.format(run=run) for text in arguments])


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    (tmp_path / "texts").write_text("one\ntwo\n")
    (tmp_path / "labels").write_text("a\n")
    task = tasks.get("classification")
    with pytest.raises(ValueError, match="2 texts in .*, 1 labels in"):
        task.read_test_set(tmp_path / "texts", tmp_path / "labels")
