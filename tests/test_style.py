"""The limits that keep every file readable: sizes and docstrings."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "keras_attention"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FORBIDDEN_NAMES = {"utils", "helpers", "common", "base"}

each_file = pytest.mark.parametrize(
    "path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix()
)


def num_lines(function):
    """Lines from `def` to the end, the docstring's lines not counted."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def long_functions(source):
    """Names and lengths of the functions that are too long."""
    return [
        (node.name, num_lines(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, FUNCTIONS) and num_lines(node) > MOST_FUNCTION_LINES
    ]


def undocumented(source):
    """Public things without a docstring.

    A method of a class with bases may override one, whose docstring it then
    inherits: such methods are left to the eye.
    """
    tree = ast.parse(source)
    public = [] if not tree.body else [("module", tree)]
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            public.append((node.name, node))
        if isinstance(node, ast.ClassDef) and not node.bases:
            public += [
                (f"{node.name}.{method.name}", method)
                for method in node.body
                if isinstance(method, FUNCTIONS)
            ]
    return [
        name
        for name, node in public
        if not any(part.startswith("_") for part in name.split("."))
        and not ast.get_docstring(node)
    ]


@each_file
def test_file_is_short(path):
    assert len(path.read_text("utf-8").splitlines()) <= MOST_FILE_LINES


@each_file
def test_functions_are_short(path):
    assert long_functions(path.read_text("utf-8")) == []


@each_file
def test_public_names_have_docstrings(path):
    assert undocumented(path.read_text("utf-8")) == []


@each_file
def test_file_name_says_what_is_inside(path):
    assert path.stem not in FORBIDDEN_NAMES


def test_a_long_function_is_found_and_its_docstring_not_counted():
    documented = 'def f():\n  """' + "\n" * 70 + '"""\n'
    assert long_functions(documented + "  x = 1\n" * 59) == []
    assert long_functions(documented + "  x = 1\n" * 60) == [("f", 61)]


def test_missing_docstrings_are_found():
    source = (
        "def f(): pass\n"
        "def _private(): pass\n"
        "class A:\n"
        "  def method(self): pass\n"
        "class B(A):\n"
        '  """Documented."""\n'
        "  def method(self): pass\n"
    )
    assert undocumented(source) == ["module", "f", "A", "A.method"]
