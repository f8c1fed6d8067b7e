"""The tutorials run, and their notebooks are what they run to."""

import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import jupytext
import nbformat
import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "tutorials"
TUTORIALS = sorted(FOLDER.glob("[0-9]*.py"))


def test_there_are_tutorials():
    assert TUTORIALS


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_notebook_has_the_cells_of_its_script(path):
    script = jupytext.read(path)
    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == [
        (cell.cell_type, cell.source) for cell in script.cells
    ], "make it anew: python tutorials/execute.py " + path.stem
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in code]
    assert counts == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert "error" not in {output.output_type for output in outputs}
    # Progress bars, logs and folders of the machine that it ran on.
    unwanted = re.compile(r"\r|^INFO:|^[IWE]\d{4} |/(root|home|Users)/", re.M)
    printed = [output.text for output in outputs if "text" in output]
    assert not [text for text in printed if unwanted.search(text)]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_chapter_imports_what_there_is(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                assert importlib.util.find_spec(name.name), name.name
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name) or importlib.util.find_spec(
                    f"{node.module}.{name.name}"
                ), f"{node.module}.{name.name}"


def with_solutions(path):
    """A script and behind it the code of its exercises' solutions."""
    text = path.read_text("utf-8")
    folded = re.findall(r"<details>.*?</details>", text, re.S)
    comments = [re.sub(r"^#", "", one, flags=re.M) for one in folded]
    found = [
        textwrap.dedent(code)
        for one in comments
        for code in re.findall(r"^ *```python\n(.*?)^ *```", one, re.S | re.M)
    ]
    assert found, path
    return "\n".join([text, *found])


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_in_its_fast_mode(path, tmp_path):
    """Then the solutions of its exercises, in their order."""
    program = tmp_path / path.name
    program.write_text(with_solutions(path), "utf-8")
    environment = {
        **os.environ,
        "KERAS_ATTENTION_FAST": "1",
        "KERAS_ATTENTION_PICTURES": str(tmp_path / "pictures"),
        "PYTHONPATH": f"{FOLDER.parent}{os.pathsep}{FOLDER}",
    }
    result = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not result.returncode, result.stderr[-2000:]
