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


def prose(path):
    """A chapter's text in one line."""
    text = re.sub(r"^# ?", "", path.read_text("utf-8"), flags=re.M)
    return " ".join(text.split())


def minutes_of(path):
    """The minutes that a chapter's head says: the source of all others."""
    found = re.findall(
        r"[Tt]akes about (\d+) minutes? on two cores", prose(path)
    )
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_list_has_the_minutes_of_the_chapter(path):
    readme = (FOLDER / "README.md").read_text("utf-8")
    (row,) = [line for line in readme.splitlines() if path.stem in line
              and line.startswith("|")]  # fmt: skip
    assert row.split("|")[-2].strip() == minutes_of(path)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_chapter_repeats_the_minutes_of_its_head(path):
    for words in (r"(\d+) minutes of the chapter", r"chapter's (\d+) minutes"):
        assert {*re.findall(words, prose(path))} <= {minutes_of(path)}


def test_the_readme_has_the_minutes_of_the_first_training():
    """Chapter 0 trains what `keras-attention train` trains."""
    readme = (FOLDER.parent / "README.md").read_text("utf-8")
    (minutes,) = re.findall(r"about (\w+) minutes\s+on two cores", readme)
    assert NUMBERS[minutes] == int(minutes_of(TUTORIALS[0]))


NUMBERS = dict(
    zip("one two three four five six seven eight nine ten".split(),
        range(1, 11), strict=True)
) | {"first": 1, "last": 1}  # fmt: skip


def number_in(words):
    """3 of "the last three"; 24 of "24"; 1 of "the first"."""
    last = words.split()[-1]
    return NUMBERS[last] if last in NUMBERS else int(last)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_trainings_of_a_chapter_add_up(path):
    """Each cell's text says how many of how many it trains."""
    found = re.findall(
        r"((?:the )?(?:first |last )?\w+) of the (\w+) trainings that share",
        prose(path),
    )
    parts = [number_in(part) for part, _ in found]
    assert {number_in(total) for _, total in found} <= {sum(parts)}


def called(node):
    """Names of the functions and methods that some code calls."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = part.func
            yield part, getattr(name, "attr", getattr(name, "id", None))


def is_silent_training(call, name):
    options = {
        option.arg: ast.unparse(option.value) for option in call.keywords
    }
    return name == "train_on_batch" or (
        name == "fit" and options.get("verbose") == "0"
    )


def that_call(tree, is_meant):
    """Names of a chapter's functions that make such a call, or lead to one."""
    found = set()
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    ]
    while True:
        more = {
            function.name
            for function in functions
            if any(
                is_meant(*one) or one[1] in found for one in called(function)
            )
        }
        if more == found:
            return found
        found = more


def silent_parts(source):
    """Lines where several models are trained before anything is printed."""
    tree = ast.parse(source)
    trains = that_call(tree, is_silent_training)
    prints = that_call(tree, lambda _, name: name == "print") | {"print"}
    # Loops and collections outside of functions, none within another one.
    queue, found = [*tree.body], []
    while queue:
        node = queue.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        calls = [*called(node)]
        if not any(
            is_silent_training(*one) or one[1] in trains for one in calls
        ):
            continue
        is_loop = isinstance(node, ast.For | ast.While)
        if isinstance(
            node, ast.ListComp | ast.DictComp | ast.Dict | ast.List | ast.Tuple
        ) or (is_loop and not any(name in prints for _, name in calls)):
            found.append(node.lineno)
        elif not is_loop:
            queue += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_no_chapter_trains_many_models_and_prints_nothing(path):
    assert silent_parts(path.read_text("utf-8")) == []


def test_what_a_silent_training_is():
    learn = "def learn(x):\n    x.fit(verbose=0)\n    return x\n"
    loud = "def learn(x):\n    x.fit(verbose=2)\n    return x\n"
    for part in (
        "a = [learn(x) for x in y]",
        "a = {x: learn(x) for x in y}",
        "a = {1: learn(1), 2: learn(2)}",
        "for x in y:\n    learn(x)",
        "for x in y:\n    x.fit(a, verbose=0)",
        "if y:\n    a = [learn(x) for x in y]",
    ):
        assert silent_parts(learn + part) != [], part
        if "x.fit" not in part:
            assert silent_parts(loud + part) == [], part
    for part in ("learn(1)", "for x in y:\n    learn(x)\n    print(x)"):
        assert silent_parts(learn + part) == [], part


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_chapter_says_where_its_pictures_are(path):
    if "PICTURES" in path.read_text("utf-8"):
        assert "the folder `pictures`" in prose(path)


@pytest.mark.parametrize(
    "path",
    [path for path in TUTORIALS if path.stem >= "10"],
    ids=lambda path: path.stem,
)
def test_a_chapter_says_whether_vectors_are_rows(path):
    found = re.findall(
        r"Vectors are (rows|columns) in the equations of this chapter",
        prose(path),
    )
    assert len(found) == 1


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
