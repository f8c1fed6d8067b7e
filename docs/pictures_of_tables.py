"""The pictures that only draw tables of `docs/experiments`.

    python docs/pictures_of_tables.py

reads the tables, draws them, and writes into `docs/pictures`:

- BLEU by the length of the source, of four and of eleven translators;
- the accuracy of decomposable attention by the number of its pairs of SNLI, and
  the line through its means.
"""

import pathlib

import numpy as np

from keras_attention import plotting
from keras_attention.plotting import drawing

DOCS = pathlib.Path(__file__).parent
EXPERIMENTS = DOCS / "experiments"
# Picture -> the page whose table it draws.
BY_LENGTH = {
    "results_ladder": "multi30k",
    "results_every_translator": "every_translator",
}
LENGTHS, PAIRS = "tokens of the source", "pairs"
# The pairs of SNLI, and what Parikh et al. 2016 have on them.
ALL_PAIRS, PUBLISHED = 550_000, 86.3


def table(page: str, corner: str) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table whose first cell is `corner`.

    Raises:
        ValueError: If the page has no such table, or two.
    """
    lines = (EXPERIMENTS / f"{page}.md").read_text("utf-8").splitlines()
    starts = [
        number
        for number, line in enumerate(lines)
        if line.startswith(f"| {corner} |")
    ]
    if len(starts) != 1:
        raise ValueError(f"{page}.md has {len(starts)} tables of {corner!r}.")
    rows = []
    for line in lines[starts[0] :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    head, _, *rows = rows
    return head, rows


def by_length(page: str) -> dict[str, list[dict]]:
    """The rows of `plotting.scores_by_length`, by the name of the system."""
    (_, *bins), ((_, *counts), *systems) = table(page, LENGTHS)
    found = {}
    for name, *cells in systems:
        # A longer name would make one column of the legend.
        label = name.replace("`", "").replace(", in both", ", both")
        rows = found[label] = []
        for limits, count, cell in zip(bins, counts, cells, strict=True):
            low, high = map(int, limits.split("–"))
            bleu, interval = map(float, cell.split(" ± "))
            rows.append(
                {
                    "low": low,
                    "high": high,
                    "sentences": int(count),
                    "bleu": bleu,
                    "interval": interval,
                }
            )
    return found


def snli() -> dict[int, list[float]]:
    """The accuracy of each seed, in percent, by the number of pairs."""
    _, rows = table("sentences", PAIRS)
    return {
        int(count.replace(",", "")): [float(share) for share in shares]
        for count, *shares, _ in rows
    }


def line_through(points: dict[int, list[float]]) -> tuple[float, float]:
    """Points of accuracy for twice the pairs, and the accuracy of one pair.

    The line of least squares through the means, over the logarithm to base 2.
    """
    slope, start = np.polyfit(
        np.log2(list(points)),
        [np.mean(shares) for shares in points.values()],
        1,
    )
    return float(slope), float(start)


def draw_snli(path=None) -> drawing.Figure:
    """Draws accuracy by the number of pairs, up to all of SNLI.

    Args:
        path: Where to write the picture, if anywhere.
    """
    points = snli()
    slope, start = line_through(points)
    measured = max(points)
    with drawing.style():
        figure = drawing.Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.subplots()
        color, other = drawing.COLORS[2], drawing.COLORS[6]
        for ends, dash, label in (
            ((min(points), measured), "-", "a line through the means"),
            ((measured, ALL_PAIRS), "--", "the same, if it went on"),
        ):
            heights = [start + slope * np.log2(end) for end in ends]
            axes.plot(ends, heights, dash, color=color, label=label)
        for count, shares in points.items():
            axes.plot(
                [count] * len(shares), shares, "^", color=color,
                label="a seed" if count == measured else None,
            )  # fmt: skip
        axes.plot(ALL_PAIRS, PUBLISHED, "*", color=other, markersize=11,
                  label="Parikh et al. 2016")  # fmt: skip
        reached = start + slope * np.log2(ALL_PAIRS)
        for height in (reached, PUBLISHED):
            axes.annotate(
                f"{height:.3g}", (ALL_PAIRS, height), (-8, 0), ha="right",
                va="center" if height == PUBLISHED else "bottom",
                textcoords="offset points",
            )  # fmt: skip
        axes.set_xscale("log")
        ticks = [*points, 100_000, ALL_PAIRS]
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
        axes.set(
            xlabel=f"pairs for training (SNLI has {ALL_PAIRS:,})",
            ylabel="right of the test, in %",
            ylim=(40, 90),
        )
        drawing.finish(axes)
        return drawing.save(figure, path)


def main():
    pictures = DOCS / "pictures"
    for name, page in BY_LENGTH.items():
        plotting.scores_by_length(by_length(page), pictures / f"{name}.png")
    draw_snli(pictures / "results_snli.png")


if __name__ == "__main__":
    main()
