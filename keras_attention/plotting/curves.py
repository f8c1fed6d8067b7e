"""How scores change: from epoch to epoch, from short to long sources."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import ticker

from keras_attention.plotting import drawing

SCORE_NAMES = {
    "bleu": "BLEU",
    "bleu_lc": "BLEU, lower-cased",
    "chrf": "chrF",
    "exact_match": "exact match",
}
SCORE_KEYS = ("bleu", "chrf", "accuracy", "exact_match")


def learning_curve(
    history: Mapping[str, Sequence[float | None]],
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws losses, and beside them BLEU and accuracy where there are any.

    Args:
        history: What `fit` returns as `.history`: a list per name, one value
            per epoch. None or NaN stands for an epoch without a value, as of
            a validation that runs at every other epoch. Names that end in
            `loss` go left; names with `bleu`, `chrf`, `accuracy` or
            `exact_match` go right, accuracies in percent; others are left out.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.

    Raises:
        ValueError: If there is nothing to draw, or the lists differ in
            length.
    """
    lengths = {name: len(values) for name, values in history.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            "`history` must hold one value per epoch under each name, with "
            f"None for an epoch without one. Received: lengths {lengths}"
        )
    # numpy reads None as NaN.
    series = {k: np.array(v, dtype="float64") for k, v in history.items()}
    series = {k: v for k, v in series.items() if np.isfinite(v).any()}
    losses = {k: v for k, v in series.items() if k.endswith("loss")}
    scores = {
        name: values * 100 if "accuracy" in name else values
        for name, values in series.items()
        if name not in losses and any(key in name for key in SCORE_KEYS)
    }
    panels = [(losses, "loss"), (scores, "score (0 to 100)")]
    panels = [(drawn, label) for drawn, label in panels if drawn]
    if not panels:
        raise ValueError(
            "`history` must hold a loss, or a score among "
            f"{', '.join(SCORE_KEYS)}. Received: {dict(history)}"
        )
    with drawing.style():
        result = drawing.Figure(
            figsize=(5.6 * len(panels), 3.8), layout="constrained"
        )
        axes = result.subplots(1, len(panels), squeeze=False)[0]
        for panel, (drawn, label) in zip(axes, panels, strict=True):
            _draw_series(panel, drawn)
            panel.set_ylabel(label)
        return drawing.save(result, path)


def scores_by_length(
    rows_by_label: Mapping[str, Sequence[Mapping[str, Any]]],
    path: str | os.PathLike | None = None,
    metric: str = "bleu",
) -> drawing.Figure:
    """Draws how scores change with the length of the source.

    This is figure 2 of Bahdanau et al. (2015), which showed what attention is
    good for: without it, long sentences score lower. Rows with an interval
    of BLEU get an error bar.

    Args:
        rows_by_label: What `evaluation.bleu_by_length` returned, by the name
            of the system.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
        metric: Which column of the rows to draw, `bleu` or `exact_match`.

    Raises:
        ValueError: If there are no rows, or they lack the metric.
    """
    _check_rows(rows_by_label, metric)
    with drawing.style():
        result, axes = _by_length(rows_by_label, lambda row: row[metric])
        highest = 0.0
        for line, rows in zip(
            axes.get_lines(), rows_by_label.values(), strict=True
        ):
            values = [row[metric] for row in rows]
            intervals = [row.get("interval", 0) for row in rows]
            if metric != "bleu" or not any(intervals):
                intervals = [0] * len(rows)
            else:
                axes.errorbar(
                    line.get_xdata(), values, intervals, fmt="none",
                    ecolor=line.get_color(), capsize=2, elinewidth=0.8,
                )  # fmt: skip
            highest = max(
                highest, *map(sum, zip(values, intervals, strict=True))
            )
        axes.set_ylabel(SCORE_NAMES.get(metric, metric))
        axes.set_ylim(0, 1.04 * highest or 1)
        drawing.finish(axes)
        return drawing.save(result, path)


def errors_by_length(
    rows_by_label: Mapping[str, Sequence[Mapping[str, Any]]],
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws how many translations are wrong, on a logarithmic scale.

    It tells systems apart that are nearly always right, where the lines of
    `scores_by_length` all lie near 100. Below 1 % the scale is linear, down
    to no error at all.

    Args:
        rows_by_label: What `evaluation.bleu_by_length` returned, by the name
            of the system.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.

    Raises:
        ValueError: If there are no rows, or they lack `exact_match`.
    """
    _check_rows(rows_by_label, "exact_match")
    with drawing.style():
        result, axes = _by_length(
            rows_by_label, lambda row: 100 - row["exact_match"]
        )
        axes.set_yscale("symlog", linthresh=1, linscale=0.5)
        axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
        axes.set_ylim(-0.25, 115)  # A line at 0 does not lie on the axis.
        axes.set_ylabel("wrong translations in %")
        drawing.finish(axes)
        return drawing.save(result, path)


def _check_rows(rows_by_label, metric):
    rows = [row for rows in rows_by_label.values() for row in rows]
    if not rows or any(metric not in row for row in rows):
        raise ValueError(
            f"Give rows of `bleu_by_length`, each with a column {metric!r}. "
            f"Received: {dict(rows_by_label)}"
        )


def _by_length(rows_by_label, height):
    """A figure and its axes with a line for each system, length by length."""
    bins = sorted(
        {
            (row["low"], row["high"])
            for rows in rows_by_label.values()
            for row in rows
        },
        key=lambda limits: (limits[0], limits[1] or math.inf),
    )
    labels = [drawing.printable(label) for label in rows_by_label]
    # A long legend leaves the lines their room.
    num_rows = math.ceil(len(labels) / drawing.num_columns(labels))
    size = (6.4, 4.0 + 0.23 * max(0, num_rows - 4))
    result = drawing.Figure(figsize=size, layout="constrained")
    axes = result.subplots()
    looks = drawing.looks(rows_by_label)
    for index, rows in enumerate(rows_by_label.values()):
        turn, index_of_color = divmod(looks[index], len(drawing.COLORS))
        # Side by side, so that no interval hides another.
        shift = 0.06 * (index - (len(rows_by_label) - 1) / 2)
        axes.plot(
            [bins.index((row["low"], row["high"])) + shift for row in rows],
            [height(row) for row in rows],
            color=drawing.COLORS[index_of_color],
            marker=drawing.MARKERS[index_of_color],
            linestyle=drawing.DASHES[turn % len(drawing.DASHES)],
            label=labels[index],
            clip_on=False,  # At 0 and at 100 the frame would halve it.
        )
    axes.set_xticks(
        range(len(bins)), [_bin_name(limits, rows_by_label) for limits in bins]
    )
    axes.set_xlabel("tokens in the source (number of sentences)")
    return result, axes


def _draw_series(panel, series):
    """A line per name: training dashed, validation solid, a color a pair."""
    stems = list(dict.fromkeys(name.removeprefix("val_") for name in series))
    for name, values in series.items():
        stem = name.removeprefix("val_")
        color = drawing.COLORS[stems.index(stem) % len(drawing.COLORS)]
        text = SCORE_NAMES.get(stem, stem.replace("_", " "))
        training = name == stem and "val_" + stem in series
        if name != stem:
            text = f"validation {text}"
        elif training or stem == "loss":
            text = f"training {text}"
        epochs = np.flatnonzero(np.isfinite(values))
        panel.plot(
            epochs + 1,
            values[epochs],
            color=color,
            linestyle="--" if training else "-",
            marker=None if training and len(epochs) > 1 else "o",
            markevery=max(1, len(epochs) // 20),
            label=text,
        )
    panel.set_xlabel("epoch")
    panel.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    panel.margins(x=0.03)
    drawing.finish(panel)


def _bin_name(limits, rows_by_label):
    """`6–10`, and below it how many sentences, if all systems had as many."""
    low, high = limits
    if high is None:
        name = f"> {low - 1}"
    else:
        name = f"≤ {high}" if low == 0 else f"{low}–{high}"
    counts = {
        row.get("sentences")
        for rows in rows_by_label.values()
        for row in rows
        if (row["low"], row["high"]) == limits
    }
    count = counts.pop() if len(counts) == 1 else None
    return name if count is None else f"{name}\n({count:,})"
