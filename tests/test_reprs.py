"""What tokenizers, corpora, runs and models say of themselves, in one line."""

import pathlib
import types

import pytest
from sentencepiece import sentencepiece_model_pb2

from keras_attention import config, data
from keras_attention.data import corpora
from keras_attention.data.vocabularies import line_tokenizer
from keras_attention.serving import labeller
from keras_attention.training import parts, run_directory


@pytest.mark.parametrize("kind", ["unigram", "bpe", "word", "char"])
def test_a_tokenizer_says_its_type_and_size(kind):
    words = data.train_vocabulary(["a b", "a c", "a b a d"], 300, kind)
    proto = sentencepiece_model_pb2.ModelProto.FromString(words)
    size = len(proto.pieces)
    assert repr(data.Tokenizer(words)) == (
        f"<Tokenizer: tokenizer, {kind}, {size} pieces>"
    )
    lines = line_tokenizer.LineTokenizer(words, "source")
    assert repr(lines) == f"<LineTokenizer: source, {kind}, {size} pieces>"


def test_a_published_tokenizer_says_its_ids():
    letters = data.PublishedTokenizer(None, None, 3, 5, adds_end=True)
    assert repr(letters) == "<PublishedTokenizer: padding 3, end 5>"


def test_a_corpus_says_its_columns_and_sizes():
    rows = {"train": [("yes", "one")] * 1234, "test": [("no", "two")] * 2}
    corpus = corpora.Corpus.of_rows("mine", ("answer", "text"), rows)
    assert repr(corpus) == (
        "<Corpus: mine; columns answer, text; train 1,234; test 2>"
    )
    assert repr(corpora.Corpus.of_rows("none", (), {})) == "<Corpus: none>"


def test_a_live_model_says_its_class_and_size(random_translator):
    translator = random_translator("luong")
    count = sum(int(weight.numpy().size) for weight in translator.model.weights)
    assert repr(translator) == (
        f"<Translator: translation, Luong, {count:,} parameters, "
        f"4 beams, at most {translator.kind.limit} tokens>"
    )
    assert "\n" not in repr(translator)


def test_the_parts_of_a_training_say_where_it_is(random_translator):
    model = random_translator("luong").model
    choices = config.resolve(config.make(model="luong"))
    rest = dict.fromkeys(
        "task corpus tokenizers pipeline trainer validate team".split()
    )
    made = parts.Parts(
        config=choices,
        directory=run_directory.RunDirectory(pathlib.Path("runs/mine")),
        model=model,
        **rest,
    )
    assert repr(made) == (
        "<Parts: runs/mine, translation, luong mini, "
        f"{model.count_params():,} parameters>"
    )


def test_a_model_without_a_graph_says_its_kind_alone():
    kind = types.SimpleNamespace(
        name="marks", labels=("a", "b"), num_beams=1, limit=0
    )
    made = labeller.Labeller.__new__(labeller.Labeller)
    made.kind, made.path, made._graph = kind, None, None
    assert repr(made) == "<Labeller: marks, labels ['a', 'b']>"
