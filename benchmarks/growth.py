"""How time grows over batch and length, beside the peer: points and picture.

`measure.py` measures the points. Each is a process of its own, ours by
`costs.py`.
"""

import collections

from matplotlib import figure

LENGTHS = (16, 64, 256, 1024)
TRAIN_ROWS, SEARCH_ROWS = (8, 32, 128, 512), (1, 8, 32, 128)
VOCABULARY = 8_000
# Panel -> its points: (rows, tokens of a row).
POINTS = {
    ("train", "rows"): [(rows, 32) for rows in TRAIN_ROWS],
    ("train", "tokens"): [(4096 // length, length) for length in LENGTHS],
    ("greedy", "rows"): [(rows, 32) for rows in SEARCH_ROWS],
    ("greedy", "tokens"): [(8, length) for length in LENGTHS],
    ("beam", "rows"): [(rows, 32) for rows in SEARCH_ROWS],
    ("beam", "tokens"): [(8, length) for length in LENGTHS],
}
TITLES = {
    "train": "a training step",
    "greedy": "greedy search",
    "beam": "a beam of 4",
}
PEERS = {"train": "PyTorch", "greedy": "CTranslate2", "beam": "CTranslate2"}


def commands(programs):
    """ "WHAT ROWS TOKENS SYSTEM" -> command.

    Args:
        programs: `measure.Commands`.
    """
    found = {}
    points = dict.fromkeys(
        (what, *point)
        for (what, _), points in POINTS.items()
        for point in points
    )
    for what, rows, length in points:
        name = f"{what} {rows} {length}"
        point = ("--point", rows, length)
        found[f"{name} ours"] = programs.program(
            "costs.py", what, *point, VOCABULARY
        )
        if what == "train":
            command = programs.peer(
                "pytorch", "train_pytorch.py", *point, VOCABULARY
            )
        else:
            command = programs.peer(
                "ctranslate2",
                "decode_ctranslate2.py",
                *point,
                f"--num_beams={1 if what == 'greedy' else 4}",
                env=("CT2_USE_MKL=0",),
            )
        if command:
            found[f"{name} {PEERS[what]}"] = command
    return found


def table(figures):
    """A table of milliseconds, in Markdown.

    Args:
        figures: "WHAT ROWS TOKENS SYSTEM" -> `compare.Figures`.
    """
    lines = ["| | sentences | tokens | system | ms |", "|---|---|---|---|---|"]
    for name, one in figures.items():
        lines.append(f"| {' | '.join(name.split())} | {one.median:,.1f} |")
    return "\n".join(lines) + "\n"


def lines_of(figures, what, axis):
    """System -> places on an axis and milliseconds, of one panel."""
    found = collections.defaultdict(list)
    for rows, length in POINTS[what, axis]:
        for name, one in figures.items():
            prefix = f"{what} {rows} {length} "
            if name.startswith(prefix):
                place = rows if axis == "rows" else length
                system = name.removeprefix(prefix)
                found[system].append((place, one.median))
    return found


def draw(figures, path):
    """Draws milliseconds over rows and over tokens.

    Args:
        figures: as for `table`.
        path: of the picture.
    """
    drawing = figure.Figure(figsize=(9, 9), layout="constrained")
    axes = drawing.subplots(3, 2)
    for ax, (what, axis) in zip(axes.flat, POINTS, strict=True):
        for system, points in lines_of(figures, what, axis).items():
            ax.loglog(*zip(*points, strict=True), marker="o", label=system)
        ax.set_title(TITLES[what])
        ax.set_xlabel("sentences" if axis == "rows" else "tokens of a sentence")
        ax.set_ylabel("ms")
        ax.legend()
    drawing.savefig(path, dpi=120)
