"""The catalogue: one list, which the files of the models keep to."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tiny

from keras_attention import models
from keras_attention.models import catalog

ROOT = pathlib.Path(__file__).parents[2]
NOT_PAPERS = {"__init__", "catalog", "seq2seq", "language_model"}
NOT_PAPERS |= {"classifier", "ensemble", "paper_model", "self_critical"}
NOT_PAPERS |= {"pretrained"}
# Models of pictures have labels in place of words.
NUM_OUTPUTS = {"vision_transformer": "num_classes"}
every_name = pytest.mark.parametrize("name", catalog.CATALOG)


def module(name):
    return importlib.import_module(f"keras_attention.models.{name}")


def run_in_a_fresh_python(program):
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_every_file_of_a_paper_is_listed():
    files = {
        path.stem for path in pathlib.Path(models.__path__[0]).glob("*.py")
    }
    assert files - NOT_PAPERS == set(catalog.CATALOG)


@every_name
def test_entry_agrees_with_the_file(name):
    entry = catalog.CATALOG[name]
    model_class = getattr(module(name), entry.class_name)
    assert issubclass(model_class, keras.Model)
    assert getattr(models, entry.class_name) is model_class
    assert getattr(models, name) is module(name)
    assert entry.sizes == tuple(model_class.sizes) == catalog.sizes(name)
    assert entry.paper.split()[0].strip(",") in model_class.__doc__
    assert str(entry.year) in model_class.__doc__


@pytest.mark.fast_for("transformer", "rnnsearch", "bag_of_vectors", "lstmn")
@every_name
def test_a_size_gives_the_arguments_of_its_name(name):
    given = {NUM_OUTPUTS.get(name, "vocabulary_size"): 23}
    for size in catalog.sizes(name):
        model = catalog.create(name, size, **given)
        config = json.loads(json.dumps(model.get_config()))
        arguments = type(model).sizes[size] | given
        for argument, value in json.loads(json.dumps(arguments)).items():
            assert config[argument] == value


def test_arguments_replace_those_of_the_size():
    model = catalog.create("luong", "mini", vocabulary_size=23, units=14)
    config = model.get_config()
    assert (config["units"], config["embedding_dim"]) == (14, 128)


@pytest.mark.parametrize(
    "name, size, message",
    [
        ("gpt", "tiny", "Expected a model's name: one of transformer, .*'gpt'"),
        ("luong", "huge", "Luong has the sizes mini, tiny, base. .*'huge'"),
    ],
)
def test_unknown_names_are_refused(name, size, message):
    with pytest.raises(ValueError, match=message):
        catalog.create(name, size, vocabulary_size=23)


def test_sizes_of_an_unknown_model_are_refused():
    with pytest.raises(ValueError, match="Received: 'gpt'"):
        catalog.sizes("gpt")


def test_the_tests_have_tiny_sizes_of_every_model():
    """A model that `models` exports and no test makes is found here."""
    classes = (getattr(models, name) for name in dir(models))
    papers = {
        one.__module__.rpartition(".")[2]
        for one in classes
        if isinstance(one, type) and issubclass(one, keras.Model)
    }
    assert papers - NOT_PAPERS == set(tiny.SIZES)
    assert set(tiny.TRAININGS) == set(tiny.names("translation"))


def test_the_catalogue_needs_no_keras():
    program = (
        "import sys\n"
        "from keras_attention.models import catalog\n"
        "catalog.sizes('transformer')\n"
        "print({'keras', 'numpy', 'tensorflow'} & {*sys.modules})\n"
    )
    assert run_in_a_fresh_python(program) == "set()\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Luong", "transformer", "Seq2Seq"])
def test_the_first_use_of_a_name_registers_every_class(name):
    program = (
        "import keras, keras_attention as ka\n"
        f"ka.models.{name}\n"
        "for entry in ka.models.catalog.CATALOG.values():\n"
        "    name = f'keras_attention>{entry.class_name}'\n"
        "    assert keras.saving.get_registered_object(name), name\n"
    )
    run_in_a_fresh_python(program)


def test_a_name_that_no_model_has_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'GPT'"):
        _ = models.GPT
    assert {"Luong", "Seq2Seq", "catalog"} <= set(dir(models))


@pytest.mark.usefixtures("without_garbage_search")
@pytest.mark.filterwarnings("ignore:.*a `quantize` method")
@pytest.mark.fast_for("transformer", "rnnsearch", "bag_of_vectors")
@every_name
def test_a_model_in_int8_is_saved_and_loaded(name, tmp_path):
    keras.utils.set_random_seed(0)
    model = tiny.create(name, 23)
    model.build()
    model.quantize("int8")
    ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]], "int32")
    inputs = ids
    if isinstance(model, models.VisionTransformer):
        inputs = np.random.default_rng(1).random((2, 14, 2, 1), "float32")
    elif not isinstance(model, models.LanguageModel):
        both = ("source_ids", "target_ids")
        inputs = dict.fromkeys(getattr(model, "text_names", both), ids)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert any(weight.dtype == "int8" for weight in loaded.weights)
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
