"""The tutorials run, and their notebooks are what they run to."""

import ast
import builtins
import dis
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import execute
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


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_cell_that_is_alone_needs_the_first_one_only(path):
    """And makes no name that the rest of the chapter uses."""
    first, *others = (
        cell for cell in jupytext.read(path).cells if cell.cell_type == "code"
    )
    known = set(dir(builtins)) | names(first.source)
    rest = set().union(
        *(names(cell.source) for cell in others if not execute.is_alone(cell))
    )
    for cell in filter(execute.is_alone, others):
        made, imported = made_by(cell.source)
        assert not used_by(cell.source) - known, cell.source
        assert not made & (rest | names(first.source)), cell.source
        known |= made | imported


def names(source):
    """All names in some code."""
    nodes = list(ast.walk(ast.parse(source)))
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    return found.union(*imported_by(nodes))


def imported_by(nodes):
    """The names that imports make, for each import."""
    return [
        {(name.asname or name.name).split(".")[0] for name in node.names}
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def made_by(source):
    """The names that code makes outside of its functions; those it imports."""
    code = compile(source, "cell", "exec")
    imported = set().union(*imported_by(ast.parse(source).body))
    made = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("STORE_NAME", "STORE_GLOBAL")
    }
    return made - imported, imported


def used_by(source):
    """The names that code takes from outside."""

    def loads(code):
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
                yield instruction.argval
        for constant in code.co_consts:
            if inspect.iscode(constant):
                yield from loads(constant)

    made, imported = made_by(source)
    return set(loads(compile(source, "cell", "exec"))) - made - imported


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_list_has_the_minutes_of_the_chapter(path):
    text = " ".join(path.read_text("utf-8").replace("\n# ", " ").split())
    (minutes,) = re.findall(r"[Tt]akes about (\d+) minutes? on two cores", text)
    readme = (FOLDER / "README.md").read_text("utf-8")
    (row,) = [line for line in readme.splitlines() if path.stem in line
              and line.startswith("|")]  # fmt: skip
    assert row.split("|")[-2].strip() == minutes


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_chapter_begins_without_lines_of_tensorflow(path):
    first = next(
        cell for cell in jupytext.read(path).cells if cell.cell_type == "code"
    )
    assert first.source.startswith(
        "from keras_attention import on_demand\n\non_demand.import_tensorflow()"
    )


@pytest.mark.slow
def test_cells_that_are_alone_run_without_the_others(tmp_path):
    """The others keep what they printed, but they must be the same."""
    pytest.importorskip("nbclient", reason="the extra `docs` is not installed")
    first = "# %%\nimport math\n\n"
    trained = "# %%\nprint('trained for an hour')\n\n"
    path = tmp_path / "00_new.py"
    path.write_text(first + trained)
    execute.execute(path)
    alone = '# %% tags=["alone"]\nprint(math.sqrt(4))\n\n'
    untrained = trained.replace("print(", "assert False and print(")
    path.write_text(first + alone + untrained)
    with pytest.raises(ValueError, match="has changed"):
        execute.run_alone(path)
    path.write_text(first + alone + trained)
    execute.run_alone(path)
    cells = nbformat.read(path.with_suffix(".ipynb"), as_version=4).cells
    assert [cell.execution_count for cell in cells] == [1, 2, 3]
    assert [cell.outputs[0].text for cell in cells[1:]] == [
        "2.0\n",
        "trained for an hour\n",
    ]


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
