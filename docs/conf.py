"""The documentation's build: `sphinx-build -W docs docs/_build`."""

import inspect
import pathlib
import re
import shutil

import nbformat

import keras_attention

REPOSITORY = "https://github.com/keras-attention/keras_attention/blob/main/"
# Chapters link a page to play with on GitHub. The site has it, too.
PLAY = re.compile(rf"\[([^]]+)\]\({REPOSITORY}docs/play/(\w+\.html)\)")
# Sphinx reads what lies below this folder; the tutorials lie beside it.
ROOT = pathlib.Path(__file__).parents[1]
PAGES = ROOT / "docs" / "tutorials"
shutil.rmtree(PAGES, ignore_errors=True)
PAGES.mkdir()
shutil.copy(ROOT / "tutorials" / "README.md", PAGES)
for page in (ROOT / "tutorials").glob("[0-9]*.ipynb"):
    notebook = nbformat.read(page, as_version=4)
    for cell in notebook.cells:
        # In Markdown, a link to a file would be a download.
        cell.source = PLAY.sub(r'<a href="../play/\2">\1</a>', cell.source)
        for output in cell.get("outputs", ()):
            # MyST looks for the words about a picture at the cell.
            picture = output.get("metadata", {}).get("image/png", {})
            if "alt" in picture:
                cell.metadata["mystnb"] = {"image": {"alt": picture["alt"]}}
    nbformat.write(notebook, PAGES / page.name)
with open(PAGES / "README.md", "a") as index:
    index.write("\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n")

project = "keras_attention"
author = "the keras_attention authors"
copyright = author  # Sphinx's own name for it.
release = version = keras_attention.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # Formulas without a network.
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "keras_attention"

# The notebooks come executed: see tutorials/execute.py.
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath", "colon_fence", "html_image"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
# `name` in our docstrings is code.
default_role = "code"
napoleon_use_rtype = False
napoleon_custom_sections = [("Call arguments", "params_style")]


def _table(rows):
    """A Markdown table as a list-table."""
    cells = [
        [cell.strip() for cell in row.strip().strip("|").split("|")]
        for row in rows
        if not re.fullmatch(r"[\s|:-]+", row)
    ]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in cells:
        for index, cell in enumerate(row):
            lines.append(f"   {'* -' if index == 0 else '  -'} {cell}")
    return [*lines, ""]


def to_restructured_text(app, what, name, obj, options, lines):
    """Docstrings are Markdown; autodoc wants reStructuredText.

    Of Markdown they use fences, tables, inline code and lists: the first two
    are translated here, the others read the same (`default_role`).
    """
    result, table, fence = [], [], False
    for line in [*lines, ""]:
        stripped = line.strip()
        if stripped.startswith("```"):
            fence = not fence
            result += ["", ".. code-block:: text", ""] if fence else [""]
        elif fence:
            result.append(f"   {line}")
        elif stripped.startswith("|") and stripped.endswith("|"):
            table.append(stripped)
        else:
            if table:
                result += ["", *_table(table)]
                table = []
            result.append(line)
    lines[:] = result


def own_arguments(app, what, name, obj, options, arguments, returns):
    """A layer's arguments, which Keras's `__new__` hides."""
    if what == "class" and arguments == "(*args, **kwargs)":
        parameters = inspect.signature(obj.__init__).parameters.values()
        return str(inspect.Signature([*parameters][1:])), returns


def copy_pages_to_play_with(app, exception):
    """The pages of `play/` as they are."""
    if exception is None and app.builder.format == "html":
        for page in (ROOT / "docs" / "play").glob("*.html"):
            (app.outdir / "play").mkdir(exist_ok=True)
            shutil.copy(page, app.outdir / "play")


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", own_arguments)
    # Before napoleon, which reads what this has written.
    app.connect("autodoc-process-docstring", to_restructured_text, priority=100)
    app.connect("build-finished", copy_pages_to_play_with)
