"""Pictures: trained, answered, exported, read from lines and files."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention import cli, config, tasks
from keras_attention.data.embedded import digits
from keras_attention.data.readers import labelled_images, lines
from keras_attention.serving import kinds, loading
from keras_attention.training import report

SIZES = {"num_layers": 2, "hidden_dim": 8, "intermediate_dim": 8}
PICTURE = [[0.0] * 8] * 8


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    rows = {
        split: of_split[:60] for split, of_split in digits.generate().items()
    }
    patch.setattr(digits, "generate", lambda: rows)
    folder = tmp_path_factory.mktemp("digits") / "run"
    choices = config.make(
        model="vision_transformer",
        model_arguments=SIZES | {"num_heads": 2},
        epochs=1,
        output=str(folder),
    )
    trained = ka.train(config.resolve(choices))
    scores = report.finish(trained)
    yield trained, folder, rows, scores
    patch.undo()


@pytest.fixture(scope="module")
def live(run):
    return ka.load(run[1])


@pytest.fixture(scope="module")
def loaded(run):
    return loading.load(run[1] / "savedmodel")


def test_the_digits_are_those_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    found = datasets.load_digits()
    rows = digits.generate()
    sizes = {split: len(of_split) for split, of_split in rows.items()}
    assert sizes == {"train": 1350, "validation": 150, "test": 297}
    labels, pictures = zip(*sum(rows.values(), []), strict=True)
    assert list(map(int, labels)) == found.target.tolist()
    np.testing.assert_array_equal(np.array(pictures) * 16, found.images)


def test_training_reads_the_pictures_with_their_labels(run):
    trained, _, rows, _ = run
    (classes,) = trained.tokenizers
    assert classes == sorted({label for label, _ in rows["train"]})
    found = set()
    for inputs, labels, weights in trained.pipeline.training(0):
        assert list(inputs) == ["image"] and inputs["image"].shape[1] == 64
        # 2,048 numbers a batch are 32 pictures.
        assert len(labels) <= 32
        np.testing.assert_allclose(weights.numpy().sum(), 1, rtol=1e-5)
        for image, label in zip(inputs["image"], labels, strict=True):
            found.add((classes[label], tuple(image.numpy().tolist())))
    assert found == {
        (label, tuple(np.ravel(image).tolist()))
        for label, image in rows["train"]
    }


def test_a_run_and_its_savedmodel_answer_alike(run, live, loaded):
    trained, folder, rows, scores = run
    labels, pictures = zip(*rows["test"], strict=True)
    answers = loaded(pictures)
    assert live(np.array(pictures)) == answers
    # By the model itself, with pictures that have channels.
    images = np.array(pictures, "float32")[..., None]
    logits = live.model(images).numpy()
    assert answers == [loaded.labels[place] for place in logits.argmax(-1)]
    np.testing.assert_allclose(
        loaded.probabilities(pictures),
        np.exp(logits) / np.exp(logits).sum(-1, keepdims=True),
        atol=1e-5,
    )
    right = sum(a == b for a, b in zip(answers, labels, strict=True))
    assert scores["sentences"] == 60
    assert scores["accuracy"] == pytest.approx(100 * right / 60)
    assert (folder / "attention.png").is_file()


def test_the_heads_of_all_layers_are_shown(run, loaded):
    _, _, rows, _ = run
    (shown,) = loaded.with_attention([rows["test"][0][1]])
    assert shown["attention"].shape == (2, 2, 17, 17)
    np.testing.assert_allclose(shown["attention"].sum(-1), 1, atol=1e-5)
    assert shown["label"] in shown["labels"] == list(loaded.labels)


def test_the_card_speaks_of_pictures(run):
    _, folder, _, _ = run
    card = (folder / "savedmodel" / "README.md").read_text()
    assert "takes pictures and gives text" in card
    assert "- Input: 8 x 8 numbers as `image`." in card
    assert 'image=tf.zeros([1, 8, 8]))["label"]' in card
    assert "(60 pictures)" in card and "of a text" not in card


def test_a_declaration_keeps_its_numbers(run, loaded):
    _, folder, _, _ = run
    text = (folder / "savedmodel" / "1" / kinds.ASSET).read_text()
    assert kinds.from_json(text) == loaded.kind
    assert loaded.kind.numbers == {"image": (8, 8)}
    assert loaded.kind.texts == ()


def test_lines_of_pictures_are_answered(run, loaded, tmp_path, capsys):
    """Lists in JSON, with a name or without; bad lines are named."""
    _, folder, rows, _ = run
    pictures = [picture for _, picture in rows["test"][:2]]
    one, other = pictures
    words = [json.dumps(one), json.dumps({"image": other}), "[[1]]", "x"]
    message = "2 of 4 lines .* line 3: image must be 8 x 8 numbers"
    with pytest.raises(SystemExit, match=message):
        cli.main(["predict", str(folder / "savedmodel"), *words])
    out = capsys.readouterr().out
    assert out.split("\n")[:4] == [*loaded(pictures), "", ""]


def test_evaluate_reads_files(run, loaded, tmp_path, capsys):
    _, folder, rows, _ = run
    (tmp_path / "pictures").write_text(
        "".join(f"{json.dumps(image)}\n" for _, image in rows["test"])
    )
    (tmp_path / "labels").write_text(
        "".join(f"{label}\n" for label, _ in rows["test"])
    )
    arguments = ["--source", tmp_path / "pictures"]
    arguments += ["--reference", tmp_path / "labels"]
    cli.main(["evaluate", str(folder / "savedmodel"), *map(str, arguments)])
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    expected = json.loads((folder / "scores.json").read_text())
    assert scores["accuracy"] == pytest.approx(expected["accuracy"])


@pytest.mark.parametrize(
    "rows", [[[[1.0]]], [PICTURE, "text"], [[[float("nan")] * 8] * 8]]
)
def test_what_is_no_picture_is_refused(rows, loaded):
    with pytest.raises(ValueError, match=f"line {len(rows)} is something else"):
        loaded(rows)


@pytest.mark.parametrize(
    "value",
    [None, "1", [[1, 2]], [[1], [2, 3]], [["1"], ["2"]], [[True], [False]]],
)
def test_numbers_of_another_shape(value):
    assert lines.numbers_of(value, (2, 1)) is None


def test_numbers_of_a_shape():
    found = lines.numbers_of([[1], [0.5]], (2, 1))
    assert found.dtype == "float32" and found.tolist() == [[1], [0.5]]


def test_pictures_of_ones_own(tmp_path):
    for split in ("train", "val", "test"):
        row = {"label": split, "image": PICTURE}
        (tmp_path / f"{split}.jsonl").write_text(f"{json.dumps(row)}\n\n")
    found = tasks.get("image_classification").load(
        config.make(model="vision_transformer", corpus=str(tmp_path)).data
    )
    assert found.sizes == {"train": 1, "validation": 1, "test": 1}
    assert list(found.texts("validation", "label")) == ["val"]


@pytest.mark.parametrize(
    "row, message",
    [
        ({"image": PICTURE}, "line 1 must have a label"),
        ({"label": "a", "image": [[1]]}, "an image of 8 x 8 numbers"),
    ],
)
def test_files_without_pictures_are_refused(row, message, tmp_path):
    for split in ("train", "validation"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(row))
    with pytest.raises(ValueError, match=message):
        labelled_images.load(tmp_path, (8, 8))
    with pytest.raises(ValueError, match="has no train.jsonl"):
        labelled_images.load(tmp_path / "nowhere", (8, 8))


def test_a_size_has_patches_that_fit_the_picture(tmp_path):
    choices = config.make(model="vision_transformer", corpus=str(tmp_path))
    assert config.resolve(choices).architecture.size == "mini"
    task = tasks.get("image_classification")
    with pytest.raises(ValueError, match="has patches of 16 pixels"):
        task.create_model(
            config.make(model="vision_transformer", size="base"), [["a", "b"]]
        )
