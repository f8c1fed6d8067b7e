"""Runs tutorials from scratch and writes their notebooks beside them.

    python -m pip install -e ".[docs,backends]"
    python tutorials/execute.py            # all, or the names of some
    python tutorials/execute.py --text     # after a change of text alone
    python tutorials/execute.py --alone    # of text, and of cells tagged alone

A cell is tagged `alone` if it needs nothing but the first code cell and other
such cells before it, draws no random numbers of Keras, and makes no name that
the rest of the chapter uses: a diagram, say, or a formula with numbers. With
`--alone` these cells run, and the others keep what they printed.

A tutorial is a script, NAME.py; NAME.ipynb is made from it, with what it
printed and drew. Pictures go to docs/pictures, all else to a folder that is
deleted. Prints the minutes that each took. Chapter 10 computes on each backend
that it finds: JAX, NumPy (with JAX and SciPy) and, if installed, PyTorch.
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile
import time

import jupytext
import nbformat

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent
# Lines of TensorFlow's logs.
_LOG = re.compile(
    r"WARNING: All log messages before|[IWEF]\d{4} \d|INFO:tensorflow:"
)
# Folders of this machine, and how a reader shall see them.
_PLACES = {f"{ROOT}/": "", sys.prefix: "VENV"}


def _as_seen(text):
    """Of a line written over (a progress bar), the last; no folders of ours."""
    lines = (line.rstrip("\r") for line in text.split("\n"))
    text = "\n".join(line.rpartition("\r")[2] for line in lines)
    for place, name in _PLACES.items():
        text = text.replace(place, name)
    return text


def _without_logs(text):
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not _LOG.match(line))


def _read(path):
    """A script's cells."""
    notebook = jupytext.read(path)
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index}"  # The same each time: small differences.
    return notebook


def _joined(outputs):
    """What was printed in one stream in a row, as one output."""
    result = []
    for output in outputs:
        name = output.get("name")
        if name:
            output.text = _without_logs(output.text)
            if not output.text:
                continue
            if result and result[-1].get("name") == name:
                result[-1].text += output.text
                continue
        result.append(output)
    for output in result:
        if output.get("name"):
            output.text = _as_seen(output.text)
    return result


def _write(notebook, path):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    partial = path.with_suffix(".partial")
    nbformat.write(notebook, partial)
    os.replace(partial, path)


def execute(path):
    """Runs one tutorial; a cell that fails raises its error."""
    notebook = _read(path)
    _run(notebook)
    _write(notebook, path.with_suffix(".ipynb"))


def _run(notebook):
    import nbclient  # Not for those who only read a tutorial's cells.

    # Not in the clone, where an earlier run's models would be found.
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(
            notebook,
            timeout=None,
            startup_timeout=600,  # A busy machine starts slowly.
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # Times of day.


def rewrite_text(path):
    """Takes a script's text over; its code has to be what was executed."""
    notebook = _read(path)
    executed = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    old = [cell for cell in executed.cells if cell.cell_type == "code"]
    new = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.source for cell in old] != [cell.source for cell in new]:
        raise ValueError(
            "Expected the code that the notebook was executed with: run "
            f"`python tutorials/execute.py {path.stem}`. Received: other code "
            f"in {path}"
        )
    for cell, done in zip(new, old, strict=True):
        cell.execution_count, cell.outputs = done.execution_count, done.outputs
    notebook.metadata = executed.metadata
    _write(notebook, path.with_suffix(".ipynb"))


def run_alone(path):
    """Runs the cells that stand alone; the others keep what they printed."""
    notebook = _read(path)
    executed = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    old, new = (
        [cell for cell in one.cells if cell.cell_type == "code"]
        for one in (executed, notebook)
    )
    kept = [cell for cell in new[1:] if not is_alone(cell)]
    before = [cell for cell in old[1:] if not is_alone(cell)]
    if [cell.source for cell in kept] != [cell.source for cell in before]:
        raise ValueError(
            "Code that is not tagged `alone` has changed. Run `python "
            f"tutorials/execute.py {path.stem}` to execute all of it."
        )
    part = nbformat.v4.new_notebook(
        cells=[new[0], *(cell for cell in new[1:] if is_alone(cell))],
        metadata=notebook.metadata,
    )
    _run(part)
    for cell, done in zip(kept, before, strict=True):
        cell.outputs = done.outputs
    for count, cell in enumerate(new, start=1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    notebook.metadata = executed.metadata
    _write(notebook, path.with_suffix(".ipynb"))


def is_alone(cell):
    """Whether a cell says that it needs the first one only."""
    return "alone" in cell.metadata.get("tags", ())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="such as 03_soft_search")
    parser.add_argument(
        "--text", action="store_true", help="run nothing: take text over"
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="run the cells tagged `alone`, and take text over",
    )
    arguments = parser.parse_args()
    paths = [FOLDER / f"{name}.py" for name in arguments.names]
    os.environ.pop("KERAS_ATTENTION_FAST", None)
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{FOLDER}"
    os.environ["KERAS_ATTENTION_PICTURES"] = str(ROOT / "docs" / "pictures")
    for path in paths or sorted(FOLDER.glob("[0-9]*.py")):
        if arguments.text:
            rewrite_text(path)
            continue
        if arguments.alone:
            run_alone(path)
            continue
        start = time.monotonic()
        execute(path)
        print(f"{path.stem}: {(time.monotonic() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
