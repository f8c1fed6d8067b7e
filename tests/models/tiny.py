"""The sizes of each model in the tests: fast, and of no use.

Axes have different sizes, mostly primes, so that none can stand for another.
`tests/models/test_catalog.py` asks for every model.
"""

from keras_attention import models
from keras_attention.models import catalog

RECURRENT = {"embedding_dim": 7, "units": 11}
TRANSFORMER = {
    "num_layers": 2,
    "hidden_dim": 14,
    "intermediate_dim": 13,
    "num_heads": 7,
}
CLASSES = {"num_classes": 5}
# The name of a paper's file -> arguments of its class.
SIZES = {
    "transformer": TRANSFORMER,
    "roformer": TRANSFORMER,
    "marian": TRANSFORMER,
    "t5": TRANSFORMER | {"key_dim": 3},
    "rnnsearch": RECURRENT | {"readout_dim": 5},
    **{
        f"{way}_rnnsearch": RECURRENT | {"readout_dim": 5}
        for way in ("structured", "monotonic", "hard", "diagonal")
    },
    "window_rnnsearch": RECURRENT | {"readout_dim": 5, "num_components": 3},
    "luong": RECURRENT | {"num_layers": 2},
    "gnmt": RECURRENT | {"num_layers": 3},
    "rnn_encoder_decoder": RECURRENT | {"readout_dim": 5},
    "lstm_encoder_decoder": RECURRENT | {"num_layers": 2},
    "conv_seq2seq": {"num_layers": 2, "embedding_dim": 7, "hidden_dim": 11},
    "bytenet": {"num_sets": 1, "hidden_dim": 11, "dilation_rates": [1, 2]},
    "extended_neural_gpu": {"filters": 7, "height": 2, "num_layers": 2},
    "diagonal_neural_gpu": {"filters": 7, "extra_columns": 2},
    "rnn_transducer": RECURRENT | {"num_layers": 2, "joint_dim": 5},
    "intra_attention_summarizer": RECURRENT,
    "neural_turing_machine": RECURRENT | {"num_slots": 13, "slot_dim": 5},
    "rnn_language_model": RECURRENT | {"num_layers": 2},
    "transformer_language_model": TRANSFORMER,
    "lstmn": RECURRENT,
    "char_cnn_language_model": {
        "character_dim": 3,
        "filters": ((1, 5), (2, 7)),
        "units": 11,
        "max_word_length": 4,
    },
    "encoder_classifier": TRANSFORMER | CLASSES,
    "self_attentive_embedding": RECURRENT
    | CLASSES
    | {"attention_units": 13, "num_hops": 2, "hidden_dim": 17},
    "bag_of_vectors": RECURRENT | CLASSES,
    "decomposable_attention": RECURRENT | CLASSES,
    "bag_of_vector_pairs": RECURRENT | CLASSES | {"projection_dim": 13},
    "memory_network": CLASSES | {"embedding_dim": 7},
    "end_to_end_memory_network": CLASSES | {"embedding_dim": 7, "num_hops": 2},
    "vision_transformer": TRANSFORMER
    | CLASSES
    | {"image_shape": (14, 2, 1), "patch_size": 2},
}
# How each translator learns to copy and to reverse: (size, arguments, longest
# sequence, training pairs, epochs, learning rate). Without attention: shorter
# sentences, more training.
LEARNERS = {"embedding_dim": 64, "units": 128}
TRAININGS = {
    "transformer": ("mini", {}, 8, 4000, 12, 1e-3),
    "roformer": ("mini", {}, 8, 8000, 15, 1e-3),
    "marian": ("mini", {}, 8, 4000, 12, 1e-3),
    "t5": ("mini", {}, 8, 8000, 15, 1e-3),
    "rnnsearch": ("tiny", LEARNERS, 8, 4000, 6, 3e-3),
    "structured_rnnsearch": ("tiny", LEARNERS, 8, 4000, 10, 3e-3),
    "monotonic_rnnsearch": ("tiny", LEARNERS, 6, 8000, 14, 3e-3),
    "hard_rnnsearch": ("tiny", LEARNERS, 6, 8000, 8, 3e-3),
    "diagonal_rnnsearch": ("tiny", LEARNERS, 6, 16000, 8, 3e-3),
    "window_rnnsearch": ("tiny", LEARNERS, 6, 16000, 8, 3e-3),
    "luong": ("tiny", LEARNERS, 8, 4000, 12, 3e-3),
    "gnmt": ("mini", {}, 8, 4000, 12, 3e-3),
    "rnn_encoder_decoder": ("tiny", LEARNERS, 6, 16000, 8, 3e-3),
    "lstm_encoder_decoder": ("tiny", LEARNERS, 6, 8000, 12, 3e-3),
    "conv_seq2seq": ("mini", {}, 8, 4000, 12, 1e-3),
    "bytenet": ("mini", {}, 6, 16000, 6, 2e-3),
    "extended_neural_gpu": ("mini", {}, 5, 16000, 20, 2e-3),
    "diagonal_neural_gpu": ("mini", {}, 5, 16000, 10, 3e-3),
    "rnn_transducer": ("mini", {}, 5, 16000, 10, 3e-3),
    "intra_attention_summarizer": ("mini", {}, 8, 4000, 8, 3e-3),
    "neural_turing_machine": ("mini", {}, 5, 16000, 10, 3e-3),
}


def names(*tasks):
    """The models of the catalogue that are trained for one of these tasks."""
    entries = catalog.CATALOG.items()
    return [name for name, entry in entries if entry.task in tasks]


def create(name, *sizes, **arguments):
    """A tiny model; `arguments` replace those of the table.

    Args:
        name: of the paper's file.
        sizes: those of its vocabularies. A model of pictures has none.
    """
    if name in names("image_classification"):
        sizes = ()
    model_class = getattr(models, catalog.CATALOG[name].class_name)
    return model_class(*sizes, **SIZES[name] | arguments)
