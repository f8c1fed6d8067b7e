"""Four logical devices, one thread an operation, and small translators."""

import functools
import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import tensorflow as tf  # noqa: E402

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration() for _ in range(4)],
)

# Two processes test at a time.
tf.config.threading.set_intra_op_parallelism_threads(1)

from keras_attention import data, models  # noqa: E402
from keras_attention.models import catalog  # noqa: E402
from keras_attention.serving.translator import Translator  # noqa: E402


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
SMALL = {"embedding_dim": 16, "units": 16}
SMALL_TRANSFORMER = {
    "num_layers": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "num_heads": 2,
}
# Arguments of every model in the catalogue: fast, and of no use.
SMALL_SIZES = {
    "transformer": SMALL_TRANSFORMER,
    "roformer": SMALL_TRANSFORMER,
    "rnnsearch": SMALL | {"readout_dim": 16},
    "luong": SMALL | {"num_layers": 2},
    "rnn_encoder_decoder": SMALL | {"readout_dim": 16},
    "lstm_encoder_decoder": SMALL | {"num_layers": 2},
    "conv_seq2seq": {"num_layers": 2, "embedding_dim": 16, "hidden_dim": 16},
    "bytenet": {"num_sets": 1, "hidden_dim": 8},
    "rnn_language_model": SMALL | {"num_layers": 2},
    "transformer_language_model": SMALL_TRANSFORMER,
    "encoder_classifier": SMALL_TRANSFORMER,
    "self_attentive_embedding": SMALL
    | {"attention_units": 16, "num_hops": 2, "hidden_dim": 16},
    "bag_of_vectors": SMALL,
    "decomposable_attention": SMALL,
    "bag_of_vector_pairs": SMALL | {"projection_dim": 16},
    "extended_neural_gpu": {"filters": 16, "height": 2},
    "lstmn": SMALL,
    "char_cnn_language_model": {
        "filters": ((1, 3), (2, 5)),
        "units": 16,
        "projection_dim": 8,
    },
}


def lines(words, count=1000):
    """Lines of one to eight random words."""
    generator = np.random.default_rng(0)
    return [
        " ".join(generator.choice(words, generator.integers(1, 9)))
        for _ in range(count)
    ]


@pytest.fixture(scope="session")
def small_sizes():
    """Name of a model -> the arguments that make it small."""
    return SMALL_SIZES


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(scope="session")
def tokenizers():
    """Two vocabularies that read each other's text as letters."""
    return tuple(
        data.Tokenizer(data.train_vocabulary(lines(words), 300), name)
        for name, words in (("source", ENGLISH), ("target", GERMAN))
    )


@pytest.fixture(scope="session")
def random_translator(tokenizers):
    """A function of a model's name: its translator, before any training.

    The same one each time: what one test has traced, the next need not.
    """

    @functools.cache
    def create(name, **options):
        keras.utils.set_random_seed(3)
        model_class = getattr(models, catalog.CATALOG[name].class_name)
        source, target = (one.vocabulary_size for one in tokenizers)
        model = model_class(target, source, **SMALL_SIZES[name])
        model.build()
        for variable in model.trainable_variables:
            # Larger logits: one answer is clearly the best.
            variable.assign(3 * variable)
        return Translator(model, *tokenizers, **options)

    return create


ODD = ["", "  ", "zwölf", "日本語", "nine\nnine", "\u202etwo", "one" * 15]


@pytest.fixture(scope="session")
def sentences():
    """200 texts to translate, blank and odd ones among them."""
    return lines(ENGLISH, 193) + ODD


@pytest.fixture(scope="session")
def thousand_sentences():
    """The same with more of them."""
    return lines(ENGLISH, 993) + ODD
