"""One model for each paper, in the file of the paper's name.

`catalog` lists them and needs no Keras. The first use of any other name
imports them all: from then on Keras finds their classes in `.keras` files.
"""

import importlib
import typing

from keras_attention.models import catalog

_CLASSES = {
    "Classifier": "classifier",
    "LanguageModel": "language_model",
    "Seq2Seq": "seq2seq",
    "from_pretrained": "pretrained",
}
_MODULES = (*_CLASSES.values(), "ensemble", "self_critical", *catalog.CATALOG)
_CLASSES |= {entry.class_name: name for name, entry in catalog.CATALOG.items()}
__all__ = [
    "BagOfVectorPairs",
    "BagOfVectors",
    "ByteNet",
    "CharCNNLanguageModel",
    "Classifier",
    "ConvSeq2Seq",
    "DecomposableAttention",
    "DiagonalNeuralGPU",
    "DiagonalRNNSearch",
    "EncoderClassifier",
    "EndToEndMemoryNetwork",
    "ExtendedNeuralGPU",
    "GNMT",
    "HardRNNSearch",
    "IntraAttentionSummarizer",
    "LSTMEncoderDecoder",
    "LSTMN",
    "LanguageModel",
    "Luong",
    "Marian",
    "MemoryNetwork",
    "MonotonicRNNSearch",
    "NeuralTuringMachine",
    "RNNEncoderDecoder",
    "RNNLanguageModel",
    "RNNSearch",
    "RNNTransducer",
    "RoFormer",
    "SelfAttentiveEmbedding",
    "Seq2Seq",
    "StructuredRNNSearch",
    "T5",
    "Transformer",
    "TransformerLanguageModel",
    "VisionTransformer",
    "WindowRNNSearch",
    "catalog",
    "from_pretrained",
]

# As in `keras_attention`: what type checkers see, and what they must not.
if typing.TYPE_CHECKING:
    # `as` says that these are public, too, though `*` does not import them.
    # isort: off
    from keras_attention.models import (
        bag_of_vector_pairs as bag_of_vector_pairs,
        bag_of_vectors as bag_of_vectors,
        bytenet as bytenet,
        char_cnn_language_model as char_cnn_language_model,
        classifier as classifier,
        conv_seq2seq as conv_seq2seq,
        decomposable_attention as decomposable_attention,
        diagonal_neural_gpu as diagonal_neural_gpu,
        diagonal_rnnsearch as diagonal_rnnsearch,
        encoder_classifier as encoder_classifier,
        end_to_end_memory_network as end_to_end_memory_network,
        ensemble as ensemble,
        extended_neural_gpu as extended_neural_gpu,
        gnmt as gnmt,
        hard_rnnsearch as hard_rnnsearch,
        intra_attention_summarizer as intra_attention_summarizer,
        language_model as language_model,
        lstm_encoder_decoder as lstm_encoder_decoder,
        lstmn as lstmn,
        luong as luong,
        marian as marian,
        memory_network as memory_network,
        monotonic_rnnsearch as monotonic_rnnsearch,
        neural_turing_machine as neural_turing_machine,
        pretrained as pretrained,
        rnn_encoder_decoder as rnn_encoder_decoder,
        rnn_language_model as rnn_language_model,
        rnn_transducer as rnn_transducer,
        rnnsearch as rnnsearch,
        roformer as roformer,
        self_attentive_embedding as self_attentive_embedding,
        self_critical as self_critical,
        seq2seq as seq2seq,
        structured_rnnsearch as structured_rnnsearch,
        t5 as t5,
        transformer as transformer,
        transformer_language_model as transformer_language_model,
        vision_transformer as vision_transformer,
        window_rnnsearch as window_rnnsearch,
    )

    # isort: on
    from keras_attention.models.bag_of_vector_pairs import BagOfVectorPairs
    from keras_attention.models.bag_of_vectors import BagOfVectors
    from keras_attention.models.bytenet import ByteNet
    from keras_attention.models.char_cnn_language_model import (
        CharCNNLanguageModel,
    )
    from keras_attention.models.classifier import Classifier
    from keras_attention.models.conv_seq2seq import ConvSeq2Seq
    from keras_attention.models.decomposable_attention import (
        DecomposableAttention,
    )
    from keras_attention.models.diagonal_neural_gpu import DiagonalNeuralGPU
    from keras_attention.models.diagonal_rnnsearch import DiagonalRNNSearch
    from keras_attention.models.encoder_classifier import EncoderClassifier
    from keras_attention.models.end_to_end_memory_network import (
        EndToEndMemoryNetwork,
    )
    from keras_attention.models.extended_neural_gpu import ExtendedNeuralGPU
    from keras_attention.models.gnmt import GNMT
    from keras_attention.models.hard_rnnsearch import HardRNNSearch
    from keras_attention.models.intra_attention_summarizer import (
        IntraAttentionSummarizer,
    )
    from keras_attention.models.language_model import LanguageModel
    from keras_attention.models.lstm_encoder_decoder import LSTMEncoderDecoder
    from keras_attention.models.lstmn import LSTMN
    from keras_attention.models.luong import Luong
    from keras_attention.models.marian import Marian
    from keras_attention.models.memory_network import MemoryNetwork
    from keras_attention.models.monotonic_rnnsearch import MonotonicRNNSearch
    from keras_attention.models.neural_turing_machine import NeuralTuringMachine
    from keras_attention.models.pretrained import from_pretrained
    from keras_attention.models.rnn_encoder_decoder import RNNEncoderDecoder
    from keras_attention.models.rnn_language_model import RNNLanguageModel
    from keras_attention.models.rnn_transducer import RNNTransducer
    from keras_attention.models.rnnsearch import RNNSearch
    from keras_attention.models.roformer import RoFormer
    from keras_attention.models.self_attentive_embedding import (
        SelfAttentiveEmbedding,
    )
    from keras_attention.models.seq2seq import Seq2Seq
    from keras_attention.models.structured_rnnsearch import StructuredRNNSearch
    from keras_attention.models.t5 import T5
    from keras_attention.models.transformer import Transformer
    from keras_attention.models.transformer_language_model import (
        TransformerLanguageModel,
    )
    from keras_attention.models.vision_transformer import VisionTransformer
    from keras_attention.models.window_rnnsearch import WindowRNNSearch
else:

    def __getattr__(name):
        if name not in _MODULES and name not in _CLASSES:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}"
            )
        # The contracts first: the papers' files import them.
        modules = {
            module: importlib.import_module(f"{__name__}.{module}")
            for module in _MODULES
        }
        if name in _CLASSES:
            return getattr(modules[_CLASSES[name]], name)
        return modules[name]

    def __dir__():
        return __all__
