"""Pictures of written strokes, and of the window by which they were written."""

import numpy as np
import strokes_data
from matplotlib import ticker

from keras_attention.plotting import drawing as plotting


def as_drawing(written):
    """Rows (dx, dy, up) with the start of the pen, as in the data."""
    return np.concatenate([np.zeros((1, 3)), written["points"]])


def draw_strokes(axes, drawing, numbered=False):
    """A line for each stroke, and its number where it begins."""
    for number, points in enumerate(strokes_data.strokes(drawing), 1):
        color = plotting.COLORS[number % 6] if numbered else plotting.INK
        axes.plot(*points.T, color=color, solid_capstyle="round")
        if numbered:
            axes.text(*points[0], str(number), color=color, ha="right")
    axes.set_aspect("equal", "datalim")
    axes.invert_yaxis()
    axes.set_axis_off()


def draw_written(rows, path):
    """A grid: in each row, drawings for the same kinds.

    Args:
        rows: The drawings of each row, by its name.
        path: Where the picture goes.
    """
    with plotting.style():
        width = max(map(len, rows.values()))
        size = (1.1 * width + 0.8, 1.2 * len(rows))
        figure = plotting.Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), width, squeeze=False)
        for axes, (name, drawings) in zip(grid, rows.items(), strict=True):
            for panel, drawing in zip(axes, drawings, strict=True):
                draw_strokes(panel, drawing)
            axes[0].text(
                -0.15, 0.5, name, transform=axes[0].transAxes,
                rotation=90, ha="right", va="center",
            )  # fmt: skip
        return plotting.save(figure, path)


def draw_window(asked, written, path):
    """What was written, kappa beside the kinds, and phi.

    Args:
        asked: The names of the kinds.
        written: What `strokes_network.write` gave for them.
        path: Where the picture goes.
    """
    num_points = len(written["points"])
    labels = [f"{n} {name}" for n, name in enumerate(asked, 1)] + ["end"]
    up = np.flatnonzero(written["points"][:, 2])
    with plotting.style():
        height = 0.27 * len(labels) + 1
        figure = plotting.Figure(
            figsize=(12, max(height, 3)), layout="constrained"
        )
        left, middle, right = figure.subplots(1, 3, width_ratios=(3, 4.5, 4.5))
        draw_strokes(left, as_drawing(written), numbered=True)
        for number, places in enumerate(written["places"].T, 1):
            middle.plot(places, label=f"Gaussian {number}")
        middle.set_ylim(len(labels) - 0.5, -1.2)
        middle.vlines(
            up + 0.5, -1.2, len(labels), color="#BBBBBB", linewidth=0.8
        )
        plotting.finish(middle)
        weights = written["weights"][:, : len(labels)]
        image = right.imshow(
            weights.T, cmap="Blues", vmin=0, aspect="auto",
            interpolation="nearest",
        )  # fmt: skip
        figure.colorbar(image, ax=right, label="weight φ")
        middle.set_ylabel("place κ")
        for axes in (middle, right):
            axes.set_yticks(range(len(labels)), labels)
            axes.set_xlim(-0.5, max(num_points, 1) - 0.5)
            axes.set_xlabel("point")
            axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        return plotting.save(figure, path)
