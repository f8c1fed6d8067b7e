"""The one list of models: names, papers, tasks and sizes.

It needs no Keras: the command line reads it before any backend is imported.
"""

import dataclasses
import importlib
import typing

from keras_attention import suggestions


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is known of a model before it is imported.

    Args:
        class_name: its class, in the file of the model's name.
        paper: authors and title.
        year: when the paper appeared.
        task: what the model is trained for.
        corpus: the embedded corpus that it learns if no other is named.
        sizes: the names in its class's `sizes`.
    """

    class_name: str
    paper: str
    year: int
    task: str
    corpus: str
    sizes: tuple[str, ...]


# Name -> entry; the name is that of the paper's file.
CATALOG = {
    "transformer": Entry(
        "Transformer",
        "Vaswani et al., Attention Is All You Need",
        2017,
        "translation",
        "phrases",
        ("mini", "tiny", "base", "big"),
    ),
    "roformer": Entry(
        "RoFormer",
        "Su et al., RoFormer: Enhanced Transformer with Rotary Position "
        "Embedding",
        2021,
        "translation",
        "phrases",
        ("mini", "tiny", "base", "big"),
    ),
    "marian": Entry(
        "Marian",
        "Junczys-Dowmunt et al., Marian: Fast Neural Machine Translation in "
        "C++",
        2018,
        "translation",
        "phrases",
        ("mini", "tiny", "base", "big"),
    ),
    "t5": Entry(
        "T5",
        "Raffel et al., Exploring the Limits of Transfer Learning with a "
        "Unified Text-to-Text Transformer",
        2020,
        "translation",
        "phrases",
        ("mini", "tiny", "small", "base"),
    ),
    "rnnsearch": Entry(
        "RNNSearch",
        "Bahdanau et al., Neural Machine Translation by Jointly Learning to "
        "Align and Translate",
        2014,
        "translation",
        "phrases",
        ("mini", "tiny", "base"),
    ),
    "structured_rnnsearch": Entry(
        "StructuredRNNSearch",
        "Kim et al., Structured Attention Networks",
        2017,
        "translation",
        "pronunciations",
        ("mini", "tiny", "base"),
    ),
    "monotonic_rnnsearch": Entry(
        "MonotonicRNNSearch",
        "Raffel et al., Online and Linear-Time Attention by Enforcing "
        "Monotonic Alignments",
        2017,
        "translation",
        "pronunciations",
        ("mini", "tiny", "base"),
    ),
    "hard_rnnsearch": Entry(
        "HardRNNSearch",
        "Xu et al., Show, Attend and Tell: Neural Image Caption Generation "
        "with Visual Attention",
        2015,
        "translation",
        "pronunciations",
        ("mini", "tiny", "base"),
    ),
    "window_rnnsearch": Entry(
        "WindowRNNSearch",
        "Graves, Generating Sequences With Recurrent Neural Networks",
        2013,
        "translation",
        "pronunciations",
        ("mini", "tiny", "base"),
    ),
    "diagonal_rnnsearch": Entry(
        "DiagonalRNNSearch",
        "Bahdanau, hard-coded attention before RNNsearch (unpublished)",
        2014,
        "translation",
        "pronunciations",
        ("mini", "tiny", "base"),
    ),
    "luong": Entry(
        "Luong",
        "Luong et al., Effective Approaches to Attention-based Neural Machine "
        "Translation",
        2015,
        "translation",
        "phrases",
        ("mini", "tiny", "base"),
    ),
    "gnmt": Entry(
        "GNMT",
        "Wu et al., Google's Neural Machine Translation System: Bridging the "
        "Gap between Human and Machine Translation",
        2016,
        "translation",
        "phrases",
        ("mini", "tiny", "base"),
    ),
    "rnn_encoder_decoder": Entry(
        "RNNEncoderDecoder",
        "Cho et al., Learning Phrase Representations using RNN "
        "Encoder-Decoder for Statistical Machine Translation",
        2014,
        "translation",
        "phrases",
        ("mini", "tiny", "base"),
    ),
    "lstm_encoder_decoder": Entry(
        "LSTMEncoderDecoder",
        "Sutskever et al., Sequence to Sequence Learning with Neural Networks",
        2014,
        "translation",
        "phrases",
        ("mini", "tiny", "base"),
    ),
    "conv_seq2seq": Entry(
        "ConvSeq2Seq",
        "Gehring et al., Convolutional Sequence to Sequence Learning",
        2017,
        "translation",
        "phrases",
        ("mini", "tiny", "base"),
    ),
    "bytenet": Entry(
        "ByteNet",
        "Kalchbrenner et al., Neural Machine Translation in Linear Time",
        2016,
        "translation",
        "phrases",
        ("mini", "tiny", "base"),
    ),
    "extended_neural_gpu": Entry(
        "ExtendedNeuralGPU",
        "Kaiser and Bengio, Can Active Memory Replace Attention?",
        2016,
        "translation",
        "addition",
        ("mini", "tiny", "base"),
    ),
    "diagonal_neural_gpu": Entry(
        "DiagonalNeuralGPU",
        "Freivalds and Liepins, Improving the Neural GPU Architecture for "
        "Algorithm Learning",
        2017,
        "translation",
        "addition",
        ("mini", "tiny", "base"),
    ),
    "rnn_transducer": Entry(
        "RNNTransducer",
        "Graves, Sequence Transduction with Recurrent Neural Networks",
        2012,
        "translation",
        "pronunciations",
        ("mini", "tiny", "base"),
    ),
    "intra_attention_summarizer": Entry(
        "IntraAttentionSummarizer",
        "Paulus et al., A Deep Reinforced Model for Abstractive Summarization",
        2017,
        "translation",
        "mentions",
        ("mini", "tiny", "base"),
    ),
    "neural_turing_machine": Entry(
        "NeuralTuringMachine",
        "Graves et al., Neural Turing Machines",
        2014,
        "translation",
        "copying",
        ("mini", "tiny", "base"),
    ),
    "rnn_language_model": Entry(
        "RNNLanguageModel",
        "Mikolov et al., Recurrent neural network based language model",
        2010,
        "language_modelling",
        "sentences",
        ("mini", "tiny", "small", "medium", "large"),
    ),
    "transformer_language_model": Entry(
        "TransformerLanguageModel",
        "Radford et al., Improving Language Understanding by Generative "
        "Pre-Training",
        2018,
        "language_modelling",
        "sentences",
        ("mini", "tiny", "gpt", "gpt2"),
    ),
    "encoder_classifier": Entry(
        "EncoderClassifier",
        "Vaswani et al., Attention Is All You Need",
        2017,
        "classification",
        "referents",
        ("mini", "tiny", "base"),
    ),
    "self_attentive_embedding": Entry(
        "SelfAttentiveEmbedding",
        "Lin et al., A Structured Self-attentive Sentence Embedding",
        2017,
        "classification",
        "colours",
        ("mini", "tiny", "base"),
    ),
    "bag_of_vectors": Entry(
        "BagOfVectors",
        "Iyyer et al., Deep Unordered Composition Rivals Syntactic Methods for "
        "Text Classification",
        2015,
        "classification",
        "colours",
        ("mini", "tiny", "base"),
    ),
    "decomposable_attention": Entry(
        "DecomposableAttention",
        "Parikh et al., A Decomposable Attention Model for Natural Language "
        "Inference",
        2016,
        "entailment",
        "multisets",
        ("mini", "tiny", "base"),
    ),
    "bag_of_vector_pairs": Entry(
        "BagOfVectorPairs",
        "Bowman et al., A large annotated corpus for learning natural language "
        "inference",
        2015,
        "entailment",
        "multisets",
        ("mini", "tiny", "base"),
    ),
    "vision_transformer": Entry(
        "VisionTransformer",
        "Dosovitskiy et al., An Image is Worth 16x16 Words: Transformers for "
        "Image Recognition at Scale",
        2021,
        "image_classification",
        "digits",
        ("mini", "base"),
    ),
    "memory_network": Entry(
        "MemoryNetwork",
        "Weston et al., Memory Networks",
        2014,
        "question_answering",
        "stories",
        ("mini", "tiny", "base"),
    ),
    "end_to_end_memory_network": Entry(
        "EndToEndMemoryNetwork",
        "Sukhbaatar et al., End-To-End Memory Networks",
        2015,
        "question_answering",
        "stories",
        ("mini", "tiny", "base"),
    ),
    "lstmn": Entry(
        "LSTMN",
        "Cheng et al., Long Short-Term Memory-Networks for Machine Reading",
        2016,
        "language_modelling",
        "sentences",
        ("mini", "tiny", "base"),
    ),
    "char_cnn_language_model": Entry(
        "CharCNNLanguageModel",
        "Kim et al., Character-Aware Neural Language Models",
        2016,
        "language_modelling",
        "sentences",
        ("mini", "tiny", "small", "large", "big"),
    ),
}


# Language models that go on from a state of one size: those with `advance`.
CARRIED = ("rnn_language_model", "char_cnn_language_model")
# Translators that can be told where to look: `call_with_attention`.
GUIDED = ("transformer", "roformer", "marian", "t5", "rnnsearch")
GUIDED += ("structured_rnnsearch", "monotonic_rnnsearch", "window_rnnsearch")
GUIDED += ("luong", "gnmt", "conv_seq2seq")
# Task -> the embedded corpus that is learned if no other is named, and the
# models that learn it beside their own task.
OTHER_TASKS = {
    "question_answering": (
        "stories",
        ("encoder_classifier", "self_attentive_embedding", "bag_of_vectors"),
    ),
}


def entry(name: str) -> Entry:
    """The entry of a model.

    Raises:
        ValueError: If the catalogue has no such model.
    """
    if name not in CATALOG:
        raise ValueError(
            f"Expected a model's name: one of {', '.join(CATALOG)}. "
            f"Received: {name!r}{suggestions.closest(name, CATALOG)}"
        )
    return CATALOG[name]


def sizes(name: str) -> tuple[str, ...]:
    """The named sizes of a model.

    Raises:
        ValueError: If the catalogue has no such model.
    """
    return entry(name).sizes


def create(name: str, size: str, /, **arguments) -> typing.Any:
    """Builds a model of a named size; this imports Keras.

    Args:
        name: of the model.
        size: of its sizes.
        arguments: of the model's class, such as `vocabulary_size`. They
            replace those of the size.

    Returns:
        The model, without weights until it is built or called.

    Raises:
        ValueError: If the catalogue has no such model, or the model no such
            size.
    """
    return model_class(name).from_size(size, **arguments)


def model_class(name: str) -> typing.Any:
    """The class of a model; this imports Keras.

    Raises:
        ValueError: If the catalogue has no such model.
    """
    class_name = entry(name).class_name
    module = importlib.import_module(f"keras_attention.models.{name}")
    return getattr(module, class_name)
