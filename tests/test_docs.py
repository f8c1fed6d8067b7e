"""The reference's examples run, and each public name is in one of them."""

import doctest
import importlib
import inspect
import io
import itertools
import pathlib
import re

import pytest

import keras_attention
from keras_attention import evaluation, serving, tasks, training

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "reference"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(page):
    """A page's pycon blocks at their lines, and blank lines elsewhere."""
    lines, inside = [], False
    for line in page.read_text("utf-8").splitlines():
        inside = inside and line != "```"
        lines.append(line if inside else "")
        inside = inside or line == "```pycon"
    return "\n".join(lines) + "\n"


PAGES = {page: examples(page) for page in sorted(FOLDER.glob("*.md"))}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page, text in PAGES.items() if text.strip()],
    ids=lambda page: page.stem,
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser = doctest.DocTestParser()
    test = parser.get_doctest(PAGES[page], {}, page.stem, page.name, 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    failed, _ = runner.run(test, out=report.write)
    assert not failed, report.getvalue()


def public_names(module):
    """Names in `__all__`, or else of the module's own functions and classes.

    Constants, which need no example, are left out.
    """
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.isupper()]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]


def used():
    """The ids of what the examples name.

    As `ka.data.join`, as `data.join`, or as `loop.fit` of a package.
    """
    prompts = re.findall(r"^(?:>>>|\.\.\.) .*", "".join(PAGES.values()), re.M)
    for path in re.findall(r"[^\W\d]\w*(?:\.\w+)*", "\n".join(prompts)):
        names = path.removeprefix("ka.").split(".")
        for root in (keras_attention, training, evaluation, tasks):
            for thing in itertools.accumulate(
                names,
                lambda thing, name: getattr(thing, name, None),
                initial=root,
            ):
                yield id(thing)


def test_every_public_name_has_an_example():
    documented = re.findall(
        r"^\.\. automodule:: (\S+)",
        "".join(page.read_text("utf-8") for page in PAGES),
        re.M,
    )
    modules = {
        getattr(package, name).__name__
        for package in (keras_attention, serving, training)
        for name in package.__all__
        if inspect.ismodule(getattr(package, name))
    }
    # The first in words, the others module by module.
    undocumented = {
        f"keras_attention.{name}" for name in ("tokens", "serving", "training")
    }
    assert modules - set(documented) == undocumented
    modules = [importlib.import_module(name) for name in documented]
    found = set(used())
    missing = [
        f"{module.__name__}.{name}"
        for module in modules
        for name in public_names(module)
        if id(getattr(module, name)) not in found
    ]
    assert not missing, f"no example uses {missing}"
