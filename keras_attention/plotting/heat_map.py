"""Where each target token looked, as a matrix."""

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib import patches

from keras_attention.plotting import drawing


def attention_heat_map(
    source_tokens: Sequence[str | bytes],
    target_tokens: Sequence[str | bytes],
    attention_weights: Any,
    path: str | os.PathLike | None = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
    links: Iterable[tuple[int, int]] = (),
    axis_names: tuple[str, str] = ("source", "target"),
) -> drawing.Figure:
    """Draws what each target token attended to, one panel per head.

    Sources run along the top and targets down the side, as in figure 3 of
    Bahdanau et al. (2015). The palest blue is 0 and the darkest is 1
    in every picture, so pictures can be compared. Up to four panels stand below
    each other if they are wide and low.

    Args:
        source_tokens: The S tokens read. Long ones are cut to 24 characters.
        target_tokens: The T tokens written.
        attention_weights: Weights `[T, S]`, or `[H, T, S]` for H heads.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
        title: A line above the picture.
        names: What the H panels are called, if not heads: models, say.
        links: (source, target) positions with a frame around them, such as
            those of the true alignment.
        axis_names: What stands along the top and down the side, where it is
            no source and no target: memory and questions, say.

    Raises:
        ValueError: If the weights do not fit the tokens, or are not finite,
            or there is not one name for each panel.
    """
    weights = np.asarray(attention_weights, dtype="float64")
    expected = (len(target_tokens), len(source_tokens))
    if (
        weights.ndim not in (2, 3)
        or weights.shape[-2:] != expected
        or 0 in weights.shape
    ):
        raise ValueError(
            "`attention_weights` must be [T, S] or [H, T, S] with "
            f"T={expected[0]} target and S={expected[1]} source tokens, none "
            f"of them 0. Received: shape={weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise ValueError(
            "`attention_weights` must be finite. "
            f"Received: {weights[~np.isfinite(weights)][0]}"
        )
    heads = weights[np.newaxis] if weights.ndim == 2 else weights
    if names is None and len(heads) > 1:
        names = [f"head {index + 1}" for index in range(len(heads))]
    if names is not None and len(names) != len(heads):
        raise ValueError(
            f"Give one name for each of {len(heads)} panels. "
            f"Received: {list(names)}"
        )
    sources = [_label(token) for token in source_tokens]
    targets = [_label(token) for token in target_tokens]
    with drawing.style():
        result = _draw_heads(
            sources, targets, heads, names, list(links), axis_names
        )
        if title is not None:
            result.suptitle(
                drawing.printable(title), parse_math=False, wrap=True
            )
        return drawing.save(result, path)


def _head_panels(sources, targets, num_heads):
    """An empty panel per head, with room for the tokens, and their size."""
    num_sources, num_targets = len(sources), len(targets)
    num_columns = min(4, math.ceil(num_heads / math.isqrt(num_heads)))
    if num_heads <= 4 and num_sources > 4 * num_targets:
        num_columns = 1  # Side by side, a page would shrink them.
    num_rows = math.ceil(num_heads / num_columns)
    cell = 0.42 if num_heads == 1 else 0.3
    width = float(np.clip(cell * num_sources, 1.6, 11 / num_columns))
    height = float(np.clip(cell * num_targets, 1.2, 14 / num_rows))
    size = 45 * min(width / num_sources, height / num_targets)
    size = float(np.clip(size, 4, 13))
    # Inches that a token takes, and its share when turned by 45 degrees.
    letter = 0.0085 * size
    turned = [0.7 * letter * len(source) for source in sources]
    overhang = max(
        length - width * (1 - (index + 0.5) / num_sources)
        for index, length in enumerate(turned)
    )
    result = drawing.Figure(
        figsize=(
            num_columns * (width + max(overhang, 0))
            + letter * max(map(len, targets))
            + 1.5,
            num_rows * (height + 0.2) + max(turned) + 0.8,
        ),
        layout="constrained",
    )
    panels = result.subplots(
        num_rows, num_columns, sharex=True, sharey=True, squeeze=False
    )
    return result, panels, size


def _draw_heads(sources, targets, heads, names, links, axis_names):
    """One panel per head, tokens on the left and upper sides only."""
    num_heads = len(heads)
    result, panels, size = _head_panels(sources, targets, num_heads)
    num_columns = panels.shape[1]
    for index, panel in enumerate(panels.flat):
        if index >= num_heads:
            panel.set_axis_off()
            continue
        image = _draw_head(panel, heads[index])
        _frame(panel, links)
        first_row, first_column = index < num_columns, not index % num_columns
        panel.tick_params(
            labelsize=size,
            labeltop=first_row,
            labelbottom=False,
            labelleft=first_column,
        )
        if names is not None:
            name = drawing.printable(names[index])
            panel.set_title(name, y=0, pad=-8, va="top", parse_math=False)
        if first_row:
            panel.xaxis.set_label_position("top")
            panel.set_xlabel(axis_names[0], labelpad=7)
        if first_column:
            panel.set_ylabel(axis_names[1], labelpad=7)
    first = panels[0, 0]
    first.set_xticks(range(len(sources)))
    first.set_yticks(range(len(targets)), targets, parse_math=False)
    turn = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
    for panel in panels[0]:
        panel.set_xticklabels(sources, parse_math=False, **turn)
    bar = result.colorbar(image, ax=panels, shrink=0.9, aspect=28, pad=0.02)
    short = len(panels) * len(targets) < 5
    bar.set_label("weight" if short else "attention weight")
    bar.outline.set_visible(False)
    return result


def _draw_head(panel, weights):
    """One matrix of weights with thin white lines between its cells."""
    image = panel.imshow(
        weights, cmap="Blues", vmin=0, vmax=1, aspect="auto",
        interpolation="nearest",
    )  # fmt: skip
    num_targets, num_sources = weights.shape
    if max(weights.shape) <= 60:
        for draw, count, length in (
            (panel.vlines, num_sources, num_targets),
            (panel.hlines, num_targets, num_sources),
        ):
            between = np.arange(1, count) - 0.5
            draw(between, -0.5, length - 0.5, color="white", linewidth=0.8)
    return image


def _frame(panel, links):
    """A frame around each linked cell, in a colour that blue does not hide."""
    for source, target in links:
        panel.add_patch(
            patches.Rectangle(
                (source - 0.42, target - 0.42), 0.84, 0.84,
                fill=False, edgecolor=drawing.COLORS[1], linewidth=1.6,
            )
        )  # fmt: skip


def _label(token):
    """A token that leaves room for the picture beside it."""
    text = drawing.printable(token)
    return text if len(text) <= 24 else text[:23] + "…"
