"""The table and the picture of `story.md`, from `story.yaml` and the catalogue.

    python docs/story.py

writes both. Each row is a system, and each figure in it links the page that has
it. A model of the catalogue that `story.yaml` does not name gets a row without
figures, and has no place in the picture.
"""

import collections
import pathlib

import yaml

from keras_attention.models import catalog
from keras_attention.plotting import drawing

DOCS = pathlib.Path(__file__).parent
ROOT = DOCS.parent
PAGE = DOCS / "story.md"
PICTURE = DOCS / "pictures" / "story.png"
FIGURES = ("known", "published", "ours")
LANES = ("a state", "in order", "soft search", "among words", "all at once")
START, END = "<!-- rows of story.yaml -->\n", "<!-- end of the rows -->\n"
# The site has no source files, so these are linked on GitHub.
REPOSITORY = "https://github.com/keras-attention/keras_attention/blob/main/"
# Inches of the picture: of a name, of a year's margin, and of a lane.
LINE, MARGIN, LANE = 0.165, 0.07, 1.38


def rows() -> list[dict]:
    """All rows, oldest first; those of a year in the order of the file."""
    found = yaml.safe_load((DOCS / "story.yaml").read_text("utf-8"))
    named = {row.get("model") for row in found}
    found += [
        {"system": entry.class_name, "model": name}
        for name, entry in catalog.CATALOG.items()
        if name not in named
    ]
    for row in found:
        if "model" in row:
            entry = catalog.entry(row["model"])
            row["year"], row["paper"] = entry.year, entry.paper
            row["file"] = f"keras_attention/models/{row['model']}.py"
    return sorted(found, key=lambda row: row["year"])


def notebook(chapter: int | str) -> str:
    """The path of a chapter's notebook: of 3, or of "11b".

    Raises:
        ValueError: If there is no such chapter.
    """
    found = sorted((ROOT / "tutorials").glob(f"{chapter:0>2}_*.ipynb"))
    if len(found) != 1:
        raise ValueError(f"tutorials/ has {len(found)} chapters {chapter}.")
    return found[0].relative_to(ROOT).as_posix()


def link(text, path: str) -> str:
    """A text that links a file of the repository."""
    if path.startswith("docs/"):
        return f"[{text}]({path.removeprefix('docs/')})"
    if path.startswith("tutorials/"):  # Readers want the notebook.
        path = path.replace(".py", ".ipynb")
    return f"[{text}]({REPOSITORY}{path})"


def table(of_rows) -> str:
    """The rows as Markdown."""
    head = [
        "year", "system", "paper", "file", "chapter",
        "where the answer is known", "the paper's figure", "ours",
    ]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for row in of_rows:
        path, chapter = row["file"], row.get("chapter")
        name = path.removeprefix("keras_attention/")
        lines.append(
            [
                str(row["year"]),
                row["system"],
                row["paper"],
                link(f"`{name}`", path),
                "" if chapter is None else link(chapter, notebook(chapter)),
                *(link(*row[one]) if one in row else "" for one in FIGURES),
            ]
        )
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def page(text: str, of_rows) -> str:
    """The page with its table made anew; the prose stays."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{table(of_rows)}\n{END}{after}"


def timeline(of_rows):
    """The picture: years downwards, and a lane for each kind of answer."""
    years = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in of_rows:
        if "lane" in row:
            name = row.get("short", row["system"])
            years[row["year"]][row["lane"]].append(name)
    heights = [
        max(map(len, lanes.values())) * LINE + MARGIN
        for lanes in years.values()
    ]
    size = 0.6 + LANE * len(LANES), sum(heights) + 0.35
    figure = drawing.Figure(figsize=size)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, size[0]), ylim=(-size[1], 0))
    axes.set_axis_off()
    lefts = {lane: 0.6 + LANE * place for place, lane in enumerate(LANES)}
    # Blue, orange and green as in the chapters: see `drawing.LOOKS`.
    looks = (0, 4, 1, 5, 2)
    colors = {
        lane: drawing.COLORS[look]
        for lane, look in zip(LANES, looks, strict=True)
    }
    small = {"fontsize": 9, "va": "center"}
    for lane, left in lefts.items():
        axes.text(
            left - 0.06, -0.17, lane, weight="bold", va="center",
            color=colors[lane],
        )  # fmt: skip
        axes.vlines(left, -size[1], -0.35, color=colors[lane], alpha=0.35)
    top = -0.35
    for (year, lanes), height in zip(years.items(), heights, strict=True):
        axes.axhline(top, color="#E4E4E4", linewidth=0.8)
        middle = top - (MARGIN + LINE) / 2
        axes.text(0.06, middle, str(year), **small)
        for lane, names in lanes.items():
            for place, name in enumerate(names):
                y, color = middle - place * LINE, colors[lane]
                axes.plot(lefts[lane], y, "o", color=color, markersize=4)
                axes.text(lefts[lane] + 0.09, y, name, **small)
        top -= height
    return figure


def main():
    of_rows = rows()
    text = page(PAGE.read_text("utf-8"), of_rows)
    PAGE.write_text(text, "utf-8")
    with drawing.style():
        drawing.save(timeline(of_rows), PICTURE)


if __name__ == "__main__":
    main()
