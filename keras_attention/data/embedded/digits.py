"""Handwritten digits of 8 x 8 pixels: the embedded `digits`.

1,797 pictures by 13 people, as scikit-learn's `load_digits` gives them: the
test set of E. Alpaydin and C. Kaynak 1998, Optical Recognition of Handwritten
Digits, UCI Machine Learning Repository, https://archive.ics.uci.edu/dataset/80.
`digits.txt.xz` has a line for each: the digit, and a letter for the shade of
each pixel, row by row, from a (white) to q (16, black).

The pictures stand in the order of their writers, so that the last ones are by
others than the first ones.
"""

import pathlib

from keras_attention.data.readers import lines

# Rows and columns.
SHAPE = (8, 8)
DARKEST = 16
_FILE = pathlib.Path(__file__).with_name("digits.txt.xz")


def generate(
    train: int = 1350, validation: int = 150
) -> dict[str, list[tuple[str, list[list[float]]]]]:
    """Reads the corpus.

    Args:
        train: the first pictures.
        validation: those that follow. All others are the test.

    Returns:
        Split -> rows of a digit and its picture: 8 lists of 8 shades, from 0
        (white) to 1 (black).
    """
    rows = [(line[0], _picture(line[1:])) for line in lines.read_lines(_FILE)]
    held_out = train + validation
    return {
        "train": rows[:train],
        "validation": rows[train:held_out],
        "test": rows[held_out:],
    }


def _picture(letters: str) -> list[list[float]]:
    shades = [(ord(letter) - ord("a")) / DARKEST for letter in letters]
    height, width = SHAPE
    return [shades[row * width :][:width] for row in range(height)]
