"""Pictures: attention heat maps, learning curves, scores by length.

Every function returns a `matplotlib.figure.Figure` that belongs to no window
and leaves no global state changed, so it works in a server, in a thread
(one draws at a time) and in a notebook.
Given a `path` it also writes a PNG there, whole or not at all.
"""

import contextlib
import math
import os
import pathlib
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import figure as mpl_figure
from matplotlib import font_manager, ticker

# Okabe and Ito's palette, which readers of any colour vision can tell apart.
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK = "#333333"
# The first font draws most alphabets; the others, if installed, fill its gaps.
FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK JP", "Noto Sans Arabic",
    "Noto Sans Devanagari", "Arial Unicode MS", "Hiragino Sans",
)  # fmt: skip
STYLE = {
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.labelsize": 12,
    "axes.titlesize": 11,
    "font.size": 11,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 5.5,
    "text.color": INK,
    "xtick.color": INK,
    "xtick.major.size": 0,
    "ytick.color": INK,
    "ytick.major.size": 0,
}
SCORE_NAMES = {
    "bleu": "BLEU",
    "bleu_lc": "BLEU, lower-cased",
    "chrf": "chrF",
    "exact_match": "exact match",
}
SCORE_KEYS = ("bleu", "chrf", "accuracy", "exact_match")


def attention_heat_map(
    source_tokens: Sequence[str | bytes],
    target_tokens: Sequence[str | bytes],
    attention_weights: Any,
    path: str | os.PathLike | None = None,
    title: str | None = None,
) -> mpl_figure.Figure:
    """Draws what each target token attended to, one panel per head.

    Sources run along the top and targets down the side, as in figure 3 of
    Bahdanau et al. (2015). The palest blue is 0 and the darkest is 1
    in every picture, so pictures can be compared.

    Args:
        source_tokens: The S tokens read. Long ones are cut to 24 characters.
        target_tokens: The T tokens written.
        attention_weights: Weights `[T, S]`, or `[H, T, S]` for H heads.
        path: Where to write a PNG, if anywhere.
        title: A line above the picture.

    Raises:
        ValueError: If the weights do not fit the tokens, or are not finite.
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
    sources = [_label(token) for token in source_tokens]
    targets = [_label(token) for token in target_tokens]
    with _style():
        result = _draw_heads(sources, targets, heads)
        if title is not None:
            result.suptitle(_printable(title), parse_math=False, wrap=True)
        return _save(result, path)


def learning_curve(
    history: Mapping[str, Sequence[float | None]],
    path: str | os.PathLike | None = None,
) -> mpl_figure.Figure:
    """Draws losses, and beside them BLEU and accuracy where there are any.

    Args:
        history: What `fit` returns as `.history`: a list per name, one value
            per epoch. None or NaN stands for an epoch without a value, as of
            a validation that runs at every other epoch. Names that end in
            `loss` go left; names with `bleu`, `chrf`, `accuracy` or
            `exact_match` go right, accuracies in percent; others are left out.
        path: Where to write a PNG, if anywhere.

    Raises:
        ValueError: If there is nothing to draw or the lists differ in length.
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
    with _style():
        result = mpl_figure.Figure(
            figsize=(4.8 * len(panels), 3.8), layout="constrained"
        )
        axes = result.subplots(1, len(panels), squeeze=False)[0]
        for panel, (drawn, label) in zip(axes, panels, strict=True):
            _draw_series(panel, drawn)
            panel.set_ylabel(label)
        return _save(result, path)


def scores_by_length(
    rows_by_label: Mapping[str, Sequence[Mapping[str, Any]]],
    path: str | os.PathLike | None = None,
    metric: str = "bleu",
) -> mpl_figure.Figure:
    """Draws how scores change with the length of the source.

    This is figure 2 of Bahdanau et al. (2015), which showed what attention is
    good for: without it, long sentences score lower.

    Args:
        rows_by_label: What `evaluation.bleu_by_length` returned, by the name
            of the system.
        path: Where to write a PNG, if anywhere.
        metric: Which column of the rows to draw, `bleu` or `exact_match`.

    Raises:
        ValueError: If there are no rows, or they lack the metric.
    """
    rows = [row for rows in rows_by_label.values() for row in rows]
    if not rows or any(metric not in row for row in rows):
        raise ValueError(
            f"Expected rows of `bleu_by_length` with a column {metric!r}. "
            f"Received: {dict(rows_by_label)}"
        )
    bins = sorted(
        {(row["low"], row["high"]) for row in rows},
        key=lambda limits: (limits[0], limits[1] or math.inf),
    )
    with _style():
        result = mpl_figure.Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = result.subplots()
        for index, (label, rows) in enumerate(rows_by_label.items()):
            axes.plot(
                [bins.index((row["low"], row["high"])) for row in rows],
                [row[metric] for row in rows],
                color=COLORS[index % len(COLORS)],
                marker=MARKERS[index % len(MARKERS)],
                label=_printable(label),
            )
        axes.set_xticks(
            range(len(bins)),
            [_bin_name(limits, rows_by_label) for limits in bins],
        )
        axes.set_xlabel("tokens in the source (number of sentences)")
        axes.set_ylabel(SCORE_NAMES.get(metric, metric))
        axes.set_ylim(bottom=0)
        _finish(axes)
        return _save(result, path)


def _head_panels(sources, targets, num_heads):
    """An empty panel per head, with room for the tokens, and their size."""
    num_sources, num_targets = len(sources), len(targets)
    num_columns = min(4, math.ceil(num_heads / math.isqrt(num_heads)))
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
    result = mpl_figure.Figure(
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


def _draw_heads(sources, targets, heads):
    """One panel per head, tokens on the left and upper sides only."""
    num_heads = len(heads)
    result, panels, size = _head_panels(sources, targets, num_heads)
    num_columns = panels.shape[1]
    for index, panel in enumerate(panels.flat):
        if index >= num_heads:
            panel.set_axis_off()
            continue
        image = _draw_head(panel, heads[index])
        first_row, first_column = index < num_columns, not index % num_columns
        panel.tick_params(
            labelsize=size,
            labeltop=first_row,
            labelbottom=False,
            labelleft=first_column,
        )
        if num_heads > 1:
            panel.set_title(f"head {index + 1}", y=0, pad=-8, va="top")
        if first_row:
            panel.xaxis.set_label_position("top")
            panel.set_xlabel("source", labelpad=7)
        if first_column:
            panel.set_ylabel("target", labelpad=7)
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


def _draw_series(panel, series):
    """A line per name: training dashed, validation solid, a color a pair."""
    stems = list(dict.fromkeys(name.removeprefix("val_") for name in series))
    for name, values in series.items():
        stem = name.removeprefix("val_")
        color = COLORS[stems.index(stem) % len(COLORS)]
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
    _finish(panel)


def _finish(axes):
    """A light grid, two open sides and a legend that hides no line."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    legend = axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2,
        columnspacing=1.4, handlelength=2.4,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


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


def _label(token):
    """A token that leaves room for the picture beside it."""
    text = _printable(token)
    return text if len(text) <= 24 else text[:23] + "…"


def _printable(token):
    """A token as text, with what cannot be seen (a newline, say) escaped."""
    if isinstance(token, bytes):
        token = token.decode("utf-8", "replace")
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in str(token)
    )


# Matplotlib's settings and the filters of warnings belong to all threads.
_ONE_DRAWS = threading.RLock()


@contextlib.contextmanager
def _style() -> Iterator[None]:
    """Our look, and no complaint about an alphabet that no font here has."""
    installed = set(font_manager.get_font_names())
    fonts = [name for name in FONTS if name in installed]
    style = {**STYLE, "font.family": fonts or ["sans-serif"]}
    with _ONE_DRAWS, mpl.rc_context(style), warnings.catch_warnings():
        for message in ("Glyph .* missing from", "Matplotlib currently does"):
            warnings.filterwarnings("ignore", message=message)
        yield


def _save(result, path):
    """Writes `result` beside `path` and moves it there in one step."""
    if path is None:
        return result
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        result.savefig(partial, format="png", dpi=200, facecolor="white")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return result
