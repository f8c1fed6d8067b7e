"""Made-up drawings, in a file such as the published one."""

import argparse
import io
import pickle
import zipfile

import numpy as np
import strokes_data

# Points of strokes that begin at (0, 0).
SHAPES = {
    "→": [(9, 0)],
    "↓": [(0, 9)],
    "↙": [(-7, 7)],
    "→↓": [(6, 0), (6, 8)],
}
NAMES = [*SHAPES, strokes_data.OTHER]
UNITS = 11


def drawing(names, rng):
    """A drawing [N, 3] with strokes of these kinds at random places."""
    rows, pen = [], np.zeros(2)
    for name in names:
        begin = rng.uniform(0, 20, 2)
        points = [begin, *(begin + rng.uniform(1, 2) * np.array(SHAPES[name]))]
        for place, point in enumerate(points, 1):
            rows.append([*(point - pen), place == len(points)])
            pen = point
    return np.array(rows, "float64")


def drawings(count, rng):
    return [
        drawing(rng.choice(list(SHAPES), rng.integers(1, 5)), rng)
        for _ in range(count)
    ]


def write_file(folder, splits):
    """As Python 2 wrote it: pickles of version 2 in a file of NumPy."""
    with zipfile.ZipFile(folder / strokes_data.FILE, "w") as archive:
        for split, rows in splits.items():
            array = np.empty(len(rows), object)
            array[:] = rows
            member = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                member,
                {"descr": "|O", "fortran_order": False, "shape": array.shape},
            )
            pickle.dump(array, member, protocol=2)
            archive.writestr(f"{split}.npy", member.getvalue())
    return folder


def make_splits(rng):
    """A few drawings of each split."""
    sizes = {"train": 12, "valid": 4, "test": 5}
    return {split: drawings(size, rng) for split, size in sizes.items()}


def make_options(splits, folder):
    """Those of the command line, for tiny networks; the data are written."""
    data = folder / "data"
    data.mkdir()
    return argparse.Namespace(
        folder=write_file(data, splits),
        run=folder / "run",
        seed=1,
        epochs=2,
        units=UNITS,
        batch_size=7,
        drawings=None,
        fewest=1,
        columns=2,
    )
