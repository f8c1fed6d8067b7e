"""Four logical devices, one thread an operation, and small translators."""

import contextlib
import dataclasses
import functools
import gc
import os
import sys

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def pytest_configure(config):
    """Sets TensorFlow up before a test computes.

    The process that only hands out the tests needs none: its import takes
    seconds, for which the others would wait.
    """
    is_tester = hasattr(config, "workerinput") or config.option.collectonly
    if is_tester or config.getoption("dist", "no") == "no":
        set_tensorflow_up()


def set_tensorflow_up():
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration() for _ in range(4)],
    )
    # Two processes test at a time.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    # Most graphs here run once: to optimise one takes longer than it saves.
    # The programs that tests start and the tutorials do optimise, as users' do.
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": True}
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests marked `fast_for` some parameters are slow with all others.

    The layers have many small files. They come last, so that the processes end
    together.
    """
    items.sort(key=lambda item: item.path.parent.name == "layers")
    for item in items:
        mark = item.get_closest_marker("fast_for")
        if mark and not set(mark.args) & set(item.callspec.params.values()):
            item.add_marker(pytest.mark.slow)


# Tracing makes many objects and little garbage, and Python's threshold of 700
# objects lets it look for garbage all the time.
gc.set_threshold(100_000, 10, 10)

ENGLISH = "zero one two three four five six seven eight nine".split()
GERMAN = "null eins zwei drei vier fünf sechs sieben acht neun".split()


def lines(words, count=1000):
    """Lines of one to eight random words."""
    generator = np.random.default_rng(0)
    return [
        " ".join(generator.choice(words, generator.integers(1, 9)))
        for _ in range(count)
    ]


@pytest.fixture
def without_garbage_search(monkeypatch):
    """Keras looks for garbage at each weight that a quantized layer deletes.

    Among the objects of all tests before, that takes seconds a layer.
    """
    monkeypatch.setattr(gc, "collect", lambda *_: 0)


@pytest.fixture
def without_pydantic(monkeypatch):
    """No command imports it. Where a test beside has, Cyclopts asks it first.

    Mistakes on a command line are then in its words.
    """
    monkeypatch.delitem(sys.modules, "pydantic", raising=False)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture
def without_memory():
    """A context in which weights are only shapes: to count the great ones."""
    import keras
    import tensorflow as tf

    @contextlib.contextmanager
    def scope():
        with keras.StatelessScope(initialize_variables=False):
            with tf.Graph().as_default():
                yield

    yield scope
    # Keras would initialize them all as soon as a later scope wants weights.
    # No search for garbage, which takes longer than the test.
    keras.utils.clear_session(free_memory=False)


@pytest.fixture(scope="session")
def tokenizers():
    """Two vocabularies that read each other's text as letters."""
    from keras_attention import data

    return tuple(
        data.Tokenizer(data.train_vocabulary(lines(words), 300), name)
        for name, words in (("source", ENGLISH), ("target", GERMAN))
    )


@pytest.fixture(scope="session")
def random_translator(tokenizers):
    """A function of a model's name: its translator, before any training.

    The same one each time: what one test has traced, the next need not.
    """
    import keras
    import tiny

    from keras_attention.serving.translator import Translator

    @functools.cache
    def create(name, **options):
        keras.utils.set_random_seed(3)
        source, target = (one.vocabulary_size for one in tokenizers)
        model = tiny.create(name, target, source)
        model.build()
        for variable in model.trainable_variables:
            # Larger logits: one answer is clearly the best.
            variable.assign(3 * variable)
        return Translator(model, *tokenizers, **options)

    return create


@pytest.fixture(scope="session")
def export_some():
    """A function of a live model, a folder and names: its export.

    It has the signatures of these names: to trace one takes a second.
    """

    def export(live, folder, names):
        graph = live.graph
        some = {name: graph.kind.signatures[name] for name in names}
        kind = dataclasses.replace(graph.kind, signatures=some)
        functions = {name: graph.signatures[name] for name in names}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graph, "kind", kind)
            patch.setattr(graph, "signatures", functions)
            return live.export(folder)

    return export


ODD = ["", "  ", "zwölf", "日本語", "nine\nnine", "\u202etwo", "one" * 15]


@pytest.fixture(scope="session")
def sentences():
    """200 texts to translate, blank and odd ones among them."""
    return lines(ENGLISH, 193) + ODD


@pytest.fixture(scope="session")
def thousand_sentences():
    """The same with more of them."""
    return lines(ENGLISH, 993) + ODD
