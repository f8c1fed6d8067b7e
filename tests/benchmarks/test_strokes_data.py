"""Drawings of strokes: what is read, and of which kind a stroke is."""

import hashlib
import os
import pathlib

import few_strokes
import numpy as np
import pytest
import strokes_data


@pytest.fixture
def splits(rng):
    return few_strokes.make_splits(rng)


@pytest.fixture
def options(splits, tmp_path):
    return few_strokes.make_options(splits, tmp_path)


def test_reading_leaves_out_what_is_known(splits, options):
    splits["valid"][1] = splits["train"][3]
    few_strokes.write_file(options.folder, splits)
    found, checksum = strokes_data.read(options.folder)
    content = (options.folder / strokes_data.FILE).read_bytes()
    assert checksum == hashlib.sha256(content).hexdigest()
    del splits["valid"][1]
    for split, rows in splits.items():
        for one, other in zip(found[split], rows, strict=True):
            np.testing.assert_array_equal(one, other.astype("float32"))


class Harm:
    """What a pickle of a stranger may hold."""

    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_a_pickle_of_anything_else_is_not_run(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few_strokes.write_file(options.folder, {"train": [Harm()]})
    with pytest.raises(ValueError, match=r"holds \w+.mkdir, which is no array"):
        strokes_data.read(options.folder)
    assert not pathlib.Path("harm").exists()


@pytest.mark.parametrize(
    "rows, says",
    [
        ([[1.0, 2.0]], "Drawing 0 of train in .* must be"),
        ([[0, 0, 0], [1, 0, 2]], "numbers that are no strokes"),
        ([[0, 0, 0], [np.nan, 0, 1]], "numbers that are no strokes"),
        ([[0, 0, 0], [1, 0, 1], [1, 0, 0]], "or one that does not end"),
        ([[0, 0, 0], [1, 0, 1], [1, 0, 1]], "has a stroke of one point"),
    ],
)
def test_what_is_no_drawing_is_named(options, splits, rows, says):
    splits["train"] = [np.array(rows, "float64")]
    few_strokes.write_file(options.folder, splits)
    with pytest.raises(ValueError, match=says):
        strokes_data.read(options.folder)


def test_a_folder_without_the_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="has no kanji.rdp200.npz. Download"):
        strokes_data.read(tmp_path)


def test_strokes_begin_where_the_lifted_pen_went():
    rows = [[1, 2, 0], [3, 0, 1], [-2, 5, 0], [0, 1, 0], [1, 1, 1], [4, 4, 0]]
    first, second = strokes_data.strokes(np.array(rows))
    assert first.tolist() == [[1, 2], [4, 2]]
    assert second.tolist() == [[2, 7], [2, 8], [3, 9]]


@pytest.mark.parametrize(
    "points, expected",
    [
        ([(0, 0), (9, 1)], "→"),
        ([(0, 0), (9, 8)], "↘"),
        ([(5, 0), (5, 4), (5, 9)], "↓"),
        ([(9, 0), (0, 9)], "↙"),
        ([(0, 0), (-9, 1)], "←"),
        ([(0, 0), (-9, -1)], "←"),
        ([(0, 0), (0, -9)], "↑"),
        # 1.9 and 2.1 from a line of 10.
        ([(0, 0), (5, 1.9), (10, 0)], "→"),
        ([(0, 0), (2.1, 2.1), (10, 0)], "↘→"),
        ([(0, 0), (9, 0), (9, 9)], "→↓"),
        # A hook at the end.
        ([(0, 0), (0, 20), (-3, 18)], "↓"),
        ([(3, 4)], ""),
    ],
)
def test_a_kind_is_one_or_two_arrows(points, expected):
    assert strokes_data.kind(np.array(points)) == expected


def test_the_inventory_begins_with_what_is_frequent(rng):
    made = [
        few_strokes.drawing(n.split(), rng) for n in ("↓ →", "↓ ↙ ↓", "→↓", "→")
    ]
    assert strokes_data.inventory(made, 2) == ["↓", "→", "·"]
    assert strokes_data.encode(["↓", "→", "·"], ["→", "↙", ""]) == [1, 2, -1]


def test_a_batch_has_each_point_as_input_and_as_label(rng):
    first, second = (
        few_strokes.drawing(["→↓", "→"], rng),
        few_strokes.drawing(["↓"], rng),
    )
    inputs, labels, weights = strokes_data.batch(
        [first, second], few_strokes.NAMES, 4.0
    )
    assert inputs["kinds"].tolist() == [[3, 0, -1], [1, -1, -1]]
    assert weights.tolist() == [[1] * 4, [1, 0, 0, 0]]
    np.testing.assert_array_equal(inputs["points"][:, 0], np.zeros((2, 3)))
    np.testing.assert_allclose(labels[0] * [4, 4, 1], first[1:], rtol=1e-6)
    np.testing.assert_array_equal(labels[0, :-1], inputs["points"][0, 1:])
    np.testing.assert_allclose(labels[1, 0] * [4, 4, 1], second[1], rtol=1e-6)


def test_each_epoch_has_each_drawing_once(rng):
    made = few_strokes.drawings(20, rng)
    found = [
        one.tobytes()
        for _, labels, weights in strokes_data.batches(
            made, few_strokes.NAMES, 1.0, 3, rng
        )
        for one in (row[w > 0] for row, w in zip(labels, weights, strict=True))
    ]
    assert sorted(found) == sorted(
        one[1:].astype("float32").tobytes() for one in made
    )


def test_the_published_drawings():
    folder = os.environ.get("KERAS_ATTENTION_SKETCH")
    if not folder:
        pytest.skip(
            "KERAS_ATTENTION_SKETCH names no folder with kanji.rdp200.npz"
        )
    splits, checksum = strokes_data.read(folder)
    assert checksum.startswith("64d6775231d7868b")
    # 12 and 6 drawings of training are left out.
    sizes = {"train": 10358, "valid": 600 - 12, "test": 500 - 6}
    assert {split: len(rows) for split, rows in splits.items()} == sizes
    names = strokes_data.inventory(splits["train"], 100)
    assert len(names) == 20 and names[:5] == ["→", "↓", "↘", "↙", "→↓"]
