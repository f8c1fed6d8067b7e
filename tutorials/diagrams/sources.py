"""What attention may read: words, the parts of a picture, moments of sound."""

import os
from collections.abc import Sequence

import numpy as np
from matplotlib import patches as shapes
from matplotlib import patheffects

from diagrams import matrices
from keras_attention.plotting import drawing

ORANGE = drawing.COLORS[1]


def three_sources(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws one search over words, over a picture and over sound.

    The weights are made up.

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    with drawing.style():
        sheet = matrices.Sheet(
            4.8, 4.6,
            "Three things to read: five words, a picture of a bird that is cut "
            "into sixteen squares, and the sound of a word that is cut into "
            "moments. Each part has a vector h. One search gives each part a "
            "weight, drawn in orange, and their weighted sum is the context "
            "from which the next word is written.",
        )  # fmt: skip
        _words(sheet, top=0.55)
        _picture(sheet, top=1.45)
        _sound(sheet, top=3.45)
        arrow = {"arrowstyle": "-|>", "color": drawing.INK}
        for start in ((2.5, 0.7), (1.7, 2.15), (2.45, 3.8)):
            sheet.axes.annotate("", (3.0, 2.15), start, arrowprops=arrow)
        for x, width, label, color in (
            (3.05, 0.75, "search", "#FBE3D3"),
            (4.0, 0.75, "$c_i$, then\na word", "white"),
        ):
            sheet.axes.add_patch(
                shapes.Rectangle(
                    (x, 1.85), width, 0.6, facecolor=color,
                    edgecolor=ORANGE if x < 4 else "#888888",
                )
            )  # fmt: skip
            sheet.text(x + width / 2, 2.15, label, fontsize=9.5)
        sheet.axes.annotate("", (4.0, 2.15), (3.8, 2.15), arrowprops=arrow)
        return sheet.save(path)


def _cell(sheet, x, y, width, height, weight):
    """A part, the more orange the more it is looked at."""
    sheet.axes.add_patch(
        shapes.Rectangle(
            (x, y), width, height, facecolor=ORANGE, alpha=0.75 * weight,
            edgecolor="none", zorder=3,
        )
    )  # fmt: skip
    sheet.axes.add_patch(
        shapes.Rectangle(
            (x, y), width, height, facecolor="none", edgecolor="#999999",
            linewidth=0.8, zorder=4,
        )
    )  # fmt: skip


def _words(sheet, top):
    sheet.text(0.1, top - 0.3, "words of a sentence", ha="left")
    weights = (0.05, 0.8, 0.1, 0.05, 0.0)
    for place, (word, weight) in enumerate(
        zip(("a", "bird", "flies", "over", "water"), weights, strict=True)
    ):
        x = 0.1 + 0.47 * place
        _cell(sheet, x, top, 0.47, 0.3, weight)
        sheet.text(x + 0.235, top + 0.15, word, fontsize=9, zorder=5)


def _picture(sheet, top):
    sheet.text(0.1, top - 0.18, "parts of a picture", ha="left")
    size, grid = 0.38, 4
    y, x = np.mgrid[0:64, 0:64] / 16
    picture = np.where(y > 3.0, 0.55, 0.95)  # Water below the sky.
    for left in (1.15, 1.85):  # Two wings.
        arc = 1.55 - 0.45 * np.sin(np.clip((x - left) / 0.7, 0, 1) * np.pi)
        wing = (x >= left) & (x <= left + 0.7) & (abs(y - arc) < 0.09)
        picture = np.where(wing, 0.1, picture)
    side = size * grid
    sheet.axes.imshow(
        picture, cmap="gray", vmin=0, vmax=1,
        extent=(0.1, 0.1 + side, top + side, top), zorder=1, aspect="auto",
    )  # fmt: skip
    for row, column in np.ndindex(grid, grid):
        weight = 0.45 if row == 1 and column in (1, 2) else 0.0
        _cell(sheet, 0.1 + column * size, top + row * size, size, size, weight)


def _sound(sheet, top):
    sheet.text(0.1, top - 0.18, "moments of a sound", ha="left")
    moments, bands, width, height = 12, 6, 0.19, 0.12
    generator = np.random.default_rng(4)
    loud = generator.random((bands, moments)) ** 2
    loud[:, 3:6] = np.maximum(loud[:, 3:6], 0.6)
    side = moments * width
    sheet.axes.imshow(
        1 - loud, cmap="gray", vmin=-0.2, vmax=1,
        extent=(0.1, 0.1 + side, top + bands * height, top), zorder=1,
        aspect="auto",
    )  # fmt: skip
    for moment in range(moments):
        weight = {3: 0.2, 4: 0.5, 5: 0.2}.get(moment, 0.0)
        _cell(sheet, 0.1 + moment * width, top, width, bands * height, weight)


def picture_patches(
    picture: np.ndarray,
    size: int = 2,
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws how a picture becomes a sentence (Dosovitskiy et al. 2021).

    Args:
        picture: [height, width], from 0 for white to 1 for black.
        size: Pixels of a patch, in either direction.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    rows, columns = (length // size for length in picture.shape)
    with drawing.style():
        sheet = matrices.Sheet(
            4.8, 3.75,
            "A small picture of a digit, cut into squares of two by two "
            "pixels that are numbered row by row. Below it the sentence: "
            "first a class token, then the squares in their order. Each of "
            "them gets a learned position.",
        )  # fmt: skip
        left, top, side = 1.2, 0.15, 2.4
        sheet.axes.imshow(
            picture, cmap="Greys", vmin=0, vmax=1.3, aspect="auto",
            extent=(left, left + side, top + side, top),
        )  # fmt: skip
        step = side / columns
        for row, column in np.ndindex(rows, columns):
            corner = left + column * step, top + row * step
            sheet.axes.add_patch(
                shapes.Rectangle(
                    corner, step, step, facecolor="none", edgecolor=ORANGE
                )
            )
            sheet.text(
                corner[0] + 0.1, corner[1] + 0.12,
                str(row * columns + column + 1), fontsize=9, color=ORANGE,
                weight="bold",
                path_effects=[
                    patheffects.withStroke(linewidth=2.5, foreground="white")
                ],
            )  # fmt: skip
        _sentence(sheet, [str(n + 1) for n in range(rows * columns)])
        return sheet.save(path)


def _sentence(sheet, names: Sequence[str]):
    """The class token and the patches, each with its position."""
    width = 4.6 / (len(names) + 1)
    for place, name in enumerate(["c", *names]):
        x = 0.1 + place * width
        _cell(sheet, x, 2.75, width, 0.3, 0.3 if place == 0 else 0.0)
        sheet.text(x + width / 2, 2.9, name, fontsize=9, zorder=5)
    sheet.text(0.1, 3.25, "c: the class token, learned. 1 to 16: four pixels "
               "times $E$.", ha="left", fontsize=9.5)  # fmt: skip
    sheet.text(0.1, 3.5, "Each gets the learned vector of its position.",
               ha="left", fontsize=9.5)  # fmt: skip
