"""Kanji as strokes, and the kind of each stroke.

A drawing is [N, 3]: a row (dx, dy, up) moves the pen, and lifts it afterwards
where `up` is 1. The first row of a stroke moves the lifted pen to the stroke's
first point. x grows to the right and y downwards.

The data have drawings alone. The kind of a stroke is computed from its points:
an arrow such as "→", or two such as "→↓" if the stroke has a corner. So the
kinds are a shorthand of the drawing, as a text is of its handwriting.
"""

import collections
import hashlib
import io
import pathlib
import pickle
import zipfile

import numpy as np

FILE = "kanji.rdp200.npz"
SPLITS = ("train", "valid", "test")
# Directions in steps of 45 degrees, clockwise from the right.
ARROWS = "→↘↓↙←↖↑↗"
# A corner is farther from the straight line between the ends than this share
# of that line. Hooks at the end of a stroke are less.
CORNER = 0.2
# The kind of strokes whose own kind is rare.
OTHER = "·"


class _Arrays(pickle.Unpickler):
    """Unpickles arrays alone: any other pickle could run a stranger's code."""

    def find_class(self, module, name):
        if module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            if name == "_reconstruct":
                return np.empty(0).__reduce__()[0]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):
            # Pickles of Python 2 have their bytes so.
            return lambda text, _: text.encode("latin1")
        raise ValueError(
            f"{FILE} holds {module}.{name}, which is no array. Download it "
            "again."
        )


def read(folder):
    """Reads the drawings of all splits.

    Args:
        folder: Where `kanji.rdp200.npz` of
            https://github.com/hardmaru/sketch-rnn-datasets lies.

    Returns:
        `(splits, checksum)`: a list of drawings for each name of a split, and
        the SHA-256 of the file. What is a training drawing, too, is left out of
        the other splits.

    Raises:
        ValueError: If the file is not there, or holds something else.
    """
    path = pathlib.Path(folder) / FILE
    if not path.is_file():
        raise ValueError(
            f"{folder} has no {FILE}. Download it from "
            "https://github.com/hardmaru/sketch-rnn-datasets, folder kanji."
        )
    content, splits = path.read_bytes(), {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for split in SPLITS:
            with archive.open(f"{split}.npy") as member:
                np.lib.format.read_magic(member)
                np.lib.format.read_array_header_1_0(member)
                drawings = _Arrays(member, encoding="latin1").load()
            splits[split] = [np.array(one, "float32") for one in drawings]
    for split, drawings in splits.items():
        for place, drawing in enumerate(drawings):
            _check(drawing, f"Drawing {place} of {split} in {path}")
    known = {drawing.tobytes() for drawing in splits["train"]}
    for split in SPLITS[1:]:
        splits[split] = [
            drawing
            for drawing in splits[split]
            if drawing.tobytes() not in known
        ]
    return splits, hashlib.sha256(content).hexdigest()


def _check(drawing, name):
    if drawing.ndim != 2 or drawing.shape[1] != 3 or not len(drawing):
        raise ValueError(f"{name} must be [N, 3]. Received: {drawing.shape}")
    up = drawing[:, 2]
    if not (np.isfinite(drawing).all() and np.isin(up, (0, 1)).all()):
        raise ValueError(f"{name} has numbers that are no strokes.")
    if not up[-1] or min(map(len, strokes(drawing))) < 2:
        raise ValueError(
            f"{name} has a stroke of one point, or one that does not end."
        )


def strokes(drawing):
    """The points [n, 2] of each stroke that ends."""
    points = np.cumsum(drawing[:, :2], axis=0)
    ends = np.flatnonzero(drawing[:, 2]) + 1
    return np.split(points, ends)[: len(ends)]


def kind(points):
    """One or two arrows for the points [n, 2] of a stroke; "" for a dot."""
    if len(points) < 2:
        return ""
    line = points[-1] - points[0]
    length = max(np.hypot(*line), 1e-9)
    dx, dy = (points - points[0]).T
    distances = np.abs(line[0] * dy - line[1] * dx) / length
    corner = np.argmax(distances)
    if distances[corner] <= CORNER * length:
        return _arrow(line)
    first, second = points[corner] - points[0], points[-1] - points[corner]
    return _arrow(first) + _arrow(second)


def _arrow(vector):
    turns = np.arctan2(vector[1], vector[0]) / (2 * np.pi)
    return ARROWS[round(8 * turns) % 8]


def kinds(drawing):
    """The kind of each stroke."""
    return [kind(points) for points in strokes(drawing)]


def inventory(drawings, fewest):
    """The kinds that at least `fewest` strokes have, most frequent first.

    `OTHER` stands for the rest and is the last.
    """
    counts = collections.Counter(k for one in drawings for k in kinds(one))
    names = [name for name, n in counts.most_common() if n >= fewest]
    return [*names, OTHER]


def encode(names, asked):
    """Places of `asked` kinds in the inventory `names`; -1 for a dot."""
    known = {name: place for place, name in enumerate(names)} | {"": -1}
    return [known.get(k, known[OTHER]) for k in asked]


def scale(drawings):
    """The standard deviation of the offsets, in the data's own unit."""
    # The first row says where the drawing begins.
    return float(np.std(np.concatenate([one[1:, :2] for one in drawings])))


def batch(drawings, names, unit):
    """Arrays of drawings of any lengths.

    Args:
        drawings: A list of [N, 3].
        names: The inventory of kinds.
        unit: What the offsets are divided by.

    Returns:
        `(inputs, labels, weights)`: `inputs` has "points" [B, T, 3] and
        "kinds" [B, S], `labels` [B, T, 3] are the next points, and `weights`
        [B, T] are 1 at real ones. The first point is 0 (Graves 2013, section
        2). Kinds of padding are -1, and each row has at least one.
    """
    asked = [encode(names, kinds(one)) for one in drawings]
    points = np.zeros((len(drawings), max(map(len, drawings)), 3), "float32")
    ids = np.full((len(drawings), max(map(len, asked)) + 1), -1, "int32")
    weights = np.zeros(points.shape[:2], "float32")
    for row, (drawing, own) in enumerate(zip(drawings, asked, strict=True)):
        points[row, 1 : len(drawing)] = drawing[1:] / [unit, unit, 1]
        weights[row, 1 : len(drawing)] = 1
        ids[row, : len(own)] = own
    inputs = {"points": points[:, :-1], "kinds": ids}
    return inputs, points[:, 1:], weights[:, 1:]


def batches(drawings, names, unit, size, seed=None):
    """Batches of drawings that are about as long; with a seed, shuffled."""
    lengths = np.array([len(drawing) for drawing in drawings], "float64")
    rng = np.random.default_rng(seed)
    if seed is not None:
        # Drawings meet others in each epoch.
        lengths += rng.uniform(0, 4, len(lengths))
    order = np.argsort(lengths, kind="stable")
    parts = [order[i : i + size] for i in range(0, len(order), size)]
    if seed is not None:
        rng.shuffle(parts)
    for part in parts:
        yield batch([drawings[i] for i in part], names, unit)
