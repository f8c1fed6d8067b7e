"""What a run chooses where nothing is said, and where choices come from."""

import os
import pathlib
import re

import pytest
import yaml

from keras_attention import config
from keras_attention.models import catalog


def resolved(**choices):
    return config.flat(config.resolve(config.make(**choices)))


def test_a_choice_has_one_name_in_one_group():
    names = [
        name
        for group in config.GROUPS
        for name in vars(getattr(config.DEFAULTS, group))
    ]
    assert sorted(names) == sorted(config.GROUP_OF)
    assert list(config.flat(config.DEFAULTS)) == names
    assert config.make(dropout=0.2).architecture.dropout == 0.2
    assert config.make(dropout=0.2).data == config.DEFAULTS.data


@pytest.mark.parametrize(
    "choices, rate",
    [
        ({"model": "luong"}, 4e-3),
        ({"model": "luong", "learning_rate": 1e-3}, 1e-3),
        ({"model": "luong", "corpus": "folder"}, 2e-3),
        ({"model": "lstm_encoder_decoder"}, 4e-3),
        ({"model": "diagonal_neural_gpu"}, 5e-3),
        ({"model": "extended_neural_gpu"}, 2e-3),
        ({"model": "rnnsearch"}, 2e-3),
    ],
)
def test_the_learning_rate_depends_on_model_and_corpus(choices, rate):
    assert resolved(**choices)["learning_rate"] == rate


@pytest.mark.parametrize(
    "corpus, expected",
    [
        (
            "phrases",
            {
                "size": "mini",
                "epochs": 8,
                "vocabulary_size": 550,
                "max_piece_length": 9,
                "max_tokens": 512,
                "dropout": 0.1,
                "label_smoothing": 0.1,
                "target_vocabulary_type": None,
                "output": "runs/phrases_en_de_transformer",
            },
        ),
        (
            "addition",
            {
                "size": "mini",
                "vocabulary_type": "char",
                "label_smoothing": 0.0,
                "dropout": None,
                "output": "runs/addition_terms_sum_transformer",
            },
        ),
        (
            "pronunciations",
            {
                "size": "mini",
                "vocabulary_type": "char",
                "target_vocabulary_type": "word",
                "label_smoothing": 0.0,
                "output": "runs/pronunciations_letters_sounds_transformer",
            },
        ),
        (
            "copying",
            {
                "size": "mini",
                "vocabulary_type": "char",
                "label_smoothing": 0.0,
                "output": "runs/copying_text_copy_transformer",
            },
        ),
        (
            "tfds:ted/de_to_en",
            {
                "size": "tiny",
                "epochs": 30,
                "vocabulary_size": 4000,
                "max_piece_length": 16,
                "max_tokens": 2048,
                "dropout": None,
                "data_note": "Its licence is not stated.",
                "output": "runs/tfds_ted_de_to_en_en_de_transformer",
            },
        ),
    ],
)
def test_the_corpus_decides_what_is_not_said(corpus, expected):
    choices = resolved(corpus=corpus)
    assert choices.items() >= expected.items()
    assert choices["corpus"] == corpus
    # Nothing is left to fill in.
    assert config.resolve(config.make(**choices)) == config.make(**choices)


@pytest.mark.parametrize(
    "model, names",
    [
        (
            "transformer",
            {"source", "target", "num_beams", "length_penalty"}
            | {"no_repeat_ngram_size"},
        ),
        ("rnn_language_model", {"source", "no_repeat_ngram_size"}),
        ("encoder_classifier", set()),
        ("decomposable_attention", set()),
    ],
)
def test_a_task_has_no_choices_that_it_does_not_read(model, names):
    """Neither where a run of an older version has them."""
    older = {"model": model, "source": "en", "target": "de", "num_beams": 4}
    older |= {"length_penalty": 1.0, "no_repeat_ngram_size": 3}
    choices = config.resolve(config.make(**older))
    found = yaml.safe_load(config.text(choices))
    written = {*found["data"], *found.get("search", {})}
    everything = {"source", "target", "num_beams", "length_penalty"}
    everything |= {"no_repeat_ngram_size"}
    assert written & everything == names


def test_what_is_said_is_kept():
    said = {"epochs": 3, "dropout": 0.4, "output": "here"}
    choices = resolved(**said)
    assert choices.items() >= said.items()
    assert choices["vocabulary_size"] == 550


def test_steps_leave_the_epochs_open():
    assert resolved(steps=7)["epochs"] is None


def test_a_size_is_one_of_the_model():
    with pytest.raises(ValueError, match="those of rnnsearch") as error:
        resolved(model="rnnsearch", size="huge")
    assert "tiny" in str(error.value)
    assert "size='huge'" in str(error.value)


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("clip_norm", float("nan"), "a finite number, at least 0"),
        ("learning_rate", float("inf"), "a finite number, above 0"),
        ("learning_rate", 0.0, "a finite number, above 0"),
        ("dropout", "0.1", "a finite number, at least 0, below 1"),
        ("label_smoothing", 1.0, "a finite number, at least 0, below 1"),
        ("length_penalty", -1.0, "a finite number, at least 0"),
        ("epochs", 2.5, "a whole number, at least 1"),
        ("epochs", 0, "a whole number, at least 1"),
        ("steps", 0, "a whole number, at least 1"),
        ("replicas", 0, "a whole number, at least 1"),
        ("num_beams", 0, "a whole number, at least 1"),
        ("no_repeat_ngram_size", -1, "a whole number, at least 0"),
        ("no_repeat_ngram_size", 1.5, "a whole number, at least 0"),
        ("max_piece_length", 0, "a whole number, at least 1"),
        ("max_length", 1, "a whole number, at least 2"),
        ("seed", -1, "a whole number, at least 0"),
        ("seed", True, "a whole number, at least 0"),
        ("joint_vocabulary", 1, "true or false"),
        ("precision", "bf16", "one of float32, bfloat16, auto"),
        (
            "schedule",
            "cosin",
            "one of cosine, inverse_sqrt, constant, decay, plateau",
        ),
        ("model", "bert", f"one of {', '.join(catalog.CATALOG)}"),
        (
            "source",
            False,
            "text (in YAML, put values such as no or 5 in quotes)",
        ),
    ],
)
def test_a_choice_that_cannot_be_meant(name, value, expected):
    with pytest.raises(ValueError) as error:
        config.make(**{name: value})
    words = str(error.value).partition(" (did you mean ")[0]
    assert words == (
        f"Expected {name} to be {expected}. Received: {name}={value!r}"
    )


@pytest.mark.parametrize(
    "choices, name",
    [
        ({"model": "transformr"}, "transformer"),
        ({"schedule": "cosin"}, "cosine"),
        ({"vocabulary_type": "unigramm"}, "unigram"),
        ({"size": "minni"}, "mini"),
        ({"epochz": 3}, "epochs"),
    ],
)
def test_a_mistyped_choice_has_a_suggestion(choices, name):
    with pytest.raises(ValueError, match=rf" \(did you mean {name}\?\)"):
        resolved(**choices)


def test_each_embedded_corpus_is_named_once():
    assert len({*config.EMBEDDED}) == len(config.EMBEDDED)
    assert {"phrases", "stories"} < {*config.EMBEDDED}


def test_a_task_that_no_model_learns():
    with pytest.raises(ValueError) as error:
        resolved(model="transformer", learns="clasification")
    message = str(error.value)
    expected = (
        "No model learns clasification (did you mean classification?). Leave "
        "--learns out: transformer then learns translation. Or choose a task, "
        "and a --model that learns it: translation (transformer, "
    )
    assert message.startswith(expected)
    assert "entailment (decomposable_attention, bag_of_vector_pairs)" in message
    # The models that learn it beside their own task stand there, too.
    (able,) = re.findall(r"question_answering \(([^)]*)\)", message)
    assert {"memory_network", "bag_of_vectors"} < {*able.split(", ")}


def test_a_task_of_other_models():
    with pytest.raises(ValueError) as error:
        resolved(model="transformer", learns="question_answering")
    expected = "transformer does not learn question_answering. Leave --learns"
    assert str(error.value).startswith(expected)


def test_mistyped_recipes_and_corpora_have_suggestions():
    with pytest.raises(ValueError, match="did you mean ptb_lstmn"):
        config.read("ptb_lstm")
    with pytest.raises(ValueError, match="did you mean phrases"):
        config.check_corpus("phrase")
    with pytest.raises(ValueError, match="no corpus /no/such/folder[.]"):
        config.check_corpus("/no/such/folder")


def test_a_corpus_in_a_folder_is_absolute(tmp_path, monkeypatch):
    """The run can be used from anywhere."""
    monkeypatch.chdir(tmp_path)
    choices = resolved(corpus="data/pairs")
    assert choices["corpus"] == str(tmp_path / "data/pairs")
    assert choices["output"] == "runs/pairs_en_de_transformer"
    assert resolved()["corpus"] == "phrases"


def test_home_and_path_objects(tmp_path, monkeypatch):
    """`~` means the same in a file, in Python and behind a flag's `=`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "choices.yaml"
    path.write_text("corpus: ~/pairs\nrun: {output: ~/runs/1}\n")
    for choices in (
        config.read("~/choices.yaml"),
        config.read(path),
        {"corpus": pathlib.Path("~/pairs"), "output": "~/runs/1"},
        {"corpus": tmp_path / "pairs", "output": tmp_path / "runs" / "1"},
    ):
        made = resolved(**choices)
        assert made["corpus"] == os.fspath(tmp_path / "pairs")
        assert made["output"] == os.fspath(tmp_path / "runs" / "1")


def test_what_is_written_is_read(tmp_path):
    choices = config.make(
        model="luong", source="no", target="日本", model_arguments={"a": 1}
    )
    path = tmp_path / "config.yaml"
    path.write_text(config.text(choices), "utf-8")
    assert config.make(**config.read(path)) == choices


def test_numbers_are_written_as_people_write_them(tmp_path):
    path = tmp_path / "choices.yaml"
    path.write_text("learning_rate: 3e-3\nclip_norm: 1\n")
    assert config.read(path) == {"learning_rate": 0.003, "clip_norm": 1}


def test_a_group_may_be_empty(tmp_path):
    path = tmp_path / "choices.yaml"
    path.write_text("data:\noptimizer: {}\ntraining: {epochs: 2}\nseed: 3\n")
    assert config.read(path) == {"epochs": 2, "seed": 3}


@pytest.mark.parametrize("name", sorted(config.RECIPES))
def test_a_recipe_trains_the_model_that_it_names(name):
    choices = config.read(name)
    recipe = config.resolve(config.make(**choices))
    if "model" in choices:
        assert recipe.run.output == f"runs/{name}"
    else:
        # For any translator.
        assert name in ("multi30k_en_de_ladder", "sigmorphon2021")
    # Who made the data, and in which year.
    assert re.search(r"\b(19|20)\d\d\b", recipe.data.data_note)
    size = recipe.vocabulary.vocabulary_size
    model = catalog.create(
        recipe.architecture.model,
        recipe.architecture.size,
        vocabulary_size=size,
        **recipe.architecture.model_arguments,
    )
    model.build()
    assert model.count_params() > 1e5


def test_pieces_of_two_kinds_make_two_vocabularies():
    assert config.make().vocabulary.is_joint
    assert not config.make(joint_vocabulary=False).vocabulary.is_joint
    choices = config.make(target_vocabulary_type="word")
    assert not choices.vocabulary.is_joint


def test_a_run_hands_on_that_its_vocabulary_has_one_kind(tmp_path):
    """Also to a corpus whose recipe has two."""
    older = config.resolve(
        config.make(model="rnn_transducer", corpus="phrases")
    )
    (tmp_path / "config.yaml").write_text(config.text(older))
    (tmp_path / "weights.npz").touch()
    choices = resolved(init=str(tmp_path), corpus="pronunciations")
    assert choices["vocabulary_type"] == "unigram"
    assert choices["target_vocabulary_type"] is None


def test_a_model_without_a_target_has_no_pieces_of_it():
    choices = config.make(model="lstmn", target_vocabulary_type="word")
    with pytest.raises(ValueError, match="translators only.*out for lstmn"):
        config.resolve(choices)


def test_a_translator_has_no_stream():
    choices = config.make(model="luong", context="stream")
    with pytest.raises(
        ValueError, match="context=stream is for.*out for luong"
    ):
        config.resolve(choices)


@pytest.mark.parametrize(
    "choices, message",
    [
        ({"model": "luong"}, "context=carry is for language models only"),
        (
            {"model": "lstmn"},
            "lstmn does not.* --model rnn_language_model or c",
        ),
        ({"replicas": 2}, "--replicas=1. Received: replicas=2"),
        ({"subword_sampling": 0.1}, "Leave subword_sampling out"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_where_no_state_is_carried(choices, message):
    choices = {"model": "rnn_language_model", "context": "carry", **choices}
    with pytest.raises(ValueError, match=message):
        config.resolve(config.make(**choices))


def test_only_language_models_have_a_plateau():
    choices = config.make(model="luong", schedule="plateau")
    with pytest.raises(ValueError, match="another schedule for luong"):
        config.resolve(choices)


def test_columns_without_a_corpus_of_ones_own_are_refused():
    for corpus in (None, "stories", "tfds:glue/sst2"):
        choices = config.make(
            model="bag_of_vectors", corpus=corpus, columns="a,b"
        )
        with pytest.raises(ValueError, match="--columns needs --corpus with"):
            config.resolve(choices)


def test_a_task_of_other_models_names_them():
    choices = config.make(model="transformer", learns="entailment")
    with pytest.raises(ValueError, match="choose another --model: decomposab"):
        config.resolve(choices)


def test_a_translator_finds_its_columns_in_the_header(tmp_path):
    choices = config.make(model="luong", corpus=str(tmp_path), columns="a,b")
    with pytest.raises(ValueError, match="source and target, or the codes"):
        config.resolve(choices)


def test_an_autoencoder_names_its_language_twice():
    """A single flag that meets the other side's default is a mistake."""
    for one in ({"source": "de"}, {"target": "en"}):
        with pytest.raises(ValueError, match="An autoencoder, .* both flags"):
            config.resolve(config.make(**one))
    resolved = config.resolve(config.make(source="de", target="de"))
    assert resolved.run.output == "runs/phrases_de_de_transformer"
    # A run that goes on has both in its file.
    saved = config.flat(resolved)
    assert config.resolve(config.make(**saved)) == resolved


def test_plain_gradient_descent_is_given_its_learning_rate():
    choices = config.make(model="rnn_language_model", optimizer="sgd")
    with pytest.raises(ValueError, match="sgd needs a learning_rate"):
        config.resolve(choices)
    resolved = config.resolve(config.replace(choices, learning_rate=30.0))
    assert resolved.optimizer.learning_rate == 30.0


def test_a_language_model_has_no_translations_to_distil():
    choices = config.make(model="rnn_language_model", distillation_epochs=1)
    with pytest.raises(ValueError, match="for translators only. Leave it out"):
        config.resolve(choices)
