"""The pages of `docs/play/`: trained weights to play with, in one file each.

    python docs/play_pages.py                 # all four, or the names of some
    python docs/play_pages.py --text hops     # only its text or program changed

A page is `play_parts/page.html` with the page's own HTML and JavaScript, and
with the numbers that `play_parts/NAME.py` gives it. All trainings have fixed
seeds, and take some minutes on two cores. With `--text` a page keeps its
numbers, and nothing is trained.
"""

import argparse
import importlib
import json
import os
import pathlib
import re
import subprocess

DOCS = pathlib.Path(__file__).parent
PARTS, PAGES = DOCS / "play_parts", DOCS / "play"
# In their order, with the words of the links between them.
NAMES = {
    "temperature": "Temperature and masks",
    "positions": "Positions",
    "hops": "Hops over a story",
    "lattice": "A lattice of paths",
}


def part(name: str) -> str:
    """The text of a file in `play_parts/`."""
    return (PARTS / name).read_text("utf-8")


def page(name: str, data: dict) -> str:
    """A page's HTML.

    Args:
        name: a page of `NAMES`.
        data: what its program finds as `data`.
    """
    links = [
        f'<a href="{other}.html"'
        + (' aria-current="page"' if other == name else "")
        + f">{title}</a>"
        for other, title in NAMES.items()
    ]
    # No text in the data may end the element that holds it.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    values = {
        "title": f"{NAMES[name]} · keras_attention",
        "style": part("page.css"),
        "links": "\n".join(links),
        "body": part(f"{name}.html"),
        "data": text.replace("<", "\\u003c"),
        "shared": part("page.js"),
        "script": part(f"{name}.js"),
    }
    return re.sub(
        r"\{(" + "|".join(values) + r")\}",
        lambda found: values[found[1]],
        part("page.html"),
    )


def kept_data(name: str) -> dict:
    """The numbers in the page that exists."""
    text = (PAGES / f"{name}.html").read_text("utf-8")
    (found,) = re.findall(r'id="data">(.*?)</script>', text, re.S)
    return json.loads(found)


def commit() -> str:
    """The last commit that changed the package."""
    command = ["git", "log", "-1", "--abbrev=7", "--format=%h", "--"]
    return subprocess.run(
        [*command, "keras_attention"],
        cwd=DOCS.parent,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def new_data(name: str) -> dict:
    """The numbers of a page, computed anew."""
    data = importlib.import_module(f"play_parts.{name}").data()
    data["origin"]["commit"] = commit()
    data["origin"]["command"] = f"python docs/play_pages.py {name}"
    return data


def write(name: str, data: dict):
    """Writes a page, whole or not at all."""
    path = PAGES / f"{name}.html"
    partial = path.with_suffix(".partial")
    partial.write_text(page(name, data), "utf-8")
    os.replace(partial, path)


def main():
    """See the file's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help=", ".join(NAMES))
    parser.add_argument(
        "--text", action="store_true", help="keep the numbers, train nothing"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(NAMES)
    if unknown:
        parser.error(f"no such page: {', '.join(sorted(unknown))}")
    if not arguments.text:
        from keras_attention import on_demand

        on_demand.import_tensorflow()  # Without its lines about this machine.
    for name in arguments.names or NAMES:
        write(name, kept_data(name) if arguments.text else new_data(name))


if __name__ == "__main__":
    main()
