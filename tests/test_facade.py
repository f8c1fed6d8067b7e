"""The names of `import keras_attention as ka`: few, and each once."""

import ast
import pathlib

import pytest

import keras_attention as ka
from keras_attention import (
    data,
    evaluation,
    models,
    on_demand,
    serving,
    training,
)

LAZY = [ka, data, evaluation, models, serving, training]
LAZY += [data.embedded, data.readers, data.vocabularies]
# One for each paper, and the contracts.
MODULES_OF_MODELS = {"classifier", "ensemble", "language_model", "pretrained"}
MODULES_OF_MODELS |= {"self_critical", "seq2seq", *models.catalog.CATALOG}
OF_DATA = {"carried", "columns", "corpora"}
OF_DATA |= {"embedded", "readers", "vocabularies"}


def names_for_types(module):
    """What a type checker sees that a package imports at first use."""
    tree = ast.parse(pathlib.Path(module.__file__).read_text("utf-8"))
    (body,) = (
        node.body
        for node in tree.body
        if isinstance(node, ast.If)
        and ast.unparse(node.test) == "typing.TYPE_CHECKING"
    )
    return {alias.name for line in body for alias in line.names}


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_a_type_checker_sees_the_names_that_there_are(module):
    expected = {
        data: OF_DATA,
        evaluation: {"alignment", "attribution", "hmm_alignment"},
        models: (set(models.__all__) | MODULES_OF_MODELS) - {"catalog"},
    }.get(module, set(module.__all__) - {"__version__"})
    assert names_for_types(module) == expected
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


def test_there_are_about_fifteen_names_and_each_is_there_once():
    assert ka.__all__ == sorted(ka.__all__) == dir(ka)
    assert len(ka.__all__) <= 16
    assert len({id(getattr(ka, name)) for name in ka.__all__}) == len(
        ka.__all__
    )


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_a_misspelt_name_is_an_error(module):
    with pytest.raises(AttributeError, match="has no attribute 'layres'"):
        module.layres  # noqa: B018


def test_a_module_is_imported_at_first_use():
    get, names = on_demand.modules("keras_attention", ["tokens"])
    assert get("tokens").END_TEXT
    assert "tokens" in names()
    with pytest.raises(AttributeError, match="has no attribute 'layers'"):
        get("layers")
