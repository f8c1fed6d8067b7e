"""A language model by the verbs: trained, scored, exported, continued."""

import json
import math

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention import cli, config, tasks
from keras_attention.data.embedded import sentences
from keras_attention.data.readers import streams
from keras_attention.serving.continuer import Continuer
from keras_attention.tokens import END, PAD, START
from keras_attention.training import run_directory

TRANSFORMER = (
    '{"num_layers": 1, "hidden_dim": 8, "intermediate_dim": 8, "num_heads": 2}'
)
SIZES = '{"embedding_dim": 8, "units": 8}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts in the files of a published corpus; one is blank."""
    path = tmp_path_factory.mktemp("texts")
    splits = sentences.generate(train=200, validation=10, test=12)
    for split, name in (("train", "train"), ("validation", "valid")):
        text = "\n".join(splits[split]) + "\n"
        (path / f"small.{name}.txt").write_text(text)
    (path / "small.test.txt").write_text("\n".join(splits["test"]) + "\n\n")
    return path


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "texts"
    cli.main(
        ["train", "--model=rnn_language_model", f"--corpus={folder}"]
        + ["--model_arguments", SIZES, "--steps=3", f"--output={output}"]
    )
    return output


def last_line(capsys):
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_perplexity_is_that_of_the_models_own_probabilities(
    run, folder, capsys
):
    cli.main(["evaluate", str(run)])
    scores = last_line(capsys)
    lines = (folder / "small.test.txt").read_text().splitlines()[:-1]
    scored = ka.load(run).score(lines)
    tokens = sum(len(line.split()) + 1 for line in lines)  # END counts.
    assert scores["tokens"] == tokens == sum(count for _, count in scored)
    total = sum(log_probability for log_probability, _ in scored)
    assert scores["perplexity"] == pytest.approx(math.exp(-total / tokens))
    assert scores["sentences"] == len(lines) == 12
    # Files of others have no known truth.
    assert "entropy_perplexity" not in scores


@pytest.mark.slow
def test_the_report_says_how_many_lines_were_cut(folder, tmp_path, capsys):
    output = tmp_path / "run"
    cli.main(
        ["train", "--model=rnn_language_model", f"--corpus={folder}"]
        + ["--model_arguments", SIZES, "--steps=1", "--max_length=7"]
        + [f"--output={output}"]
    )
    lines = (folder / "small.test.txt").read_text().splitlines()
    cut = sum(len(line.split()) + 1 > 7 for line in lines)
    assert 0 < cut < 12
    note = f"12 held-out sentences; {cut} of them were cut to 7 tokens\n"
    assert capsys.readouterr().out.endswith(note)
    card = (output / "savedmodel" / "README.md").read_text("utf-8")
    assert f"(12 sentences, {cut} of them cut to the limit)" in card


def test_a_savedmodel_has_the_scores_and_the_continuations_of_its_run(
    run, folder, capsys
):
    savedmodel = run / "savedmodel"
    card = (savedmodel / "README.md").read_text("utf-8")
    assert "# Language model: rnn_language_model" in card
    file = str(folder / "small.test.txt")
    perplexities = []
    for model in (run, savedmodel):
        cli.main(["evaluate", str(model), "--source", file])
        perplexities.append(last_line(capsys)["perplexity"])
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-6)
    answers = []
    for model in (run, savedmodel):
        cli.main(["translate", str(model), "the king", "", "every girl"])
        answers.append(capsys.readouterr().out.split("\n"))
    assert answers[0] == answers[1] and len(answers[0]) == 4


@pytest.fixture(scope="module")
def stream_run(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "stream"
    cli.main(
        ["train", "--model=transformer_language_model", f"--corpus={folder}"]
        + ["--context=stream", "--max_length=40", "--steps=3"]
        + ["--model_arguments", TRANSFORMER, f"--output={output}"]
    )
    return output


@pytest.mark.slow
def test_a_stream_is_scored_after_the_lines_before(stream_run, folder, capsys):
    """Each line once, by the logits of the model after all that it has seen."""
    cli.main(["evaluate", str(stream_run)])
    scores = last_line(capsys)
    lines = (folder / "small.test.txt").read_text().splitlines()[:-1]
    continuer = ka.load(stream_run)
    assert continuer.reads_lines
    lengths = [len(line.split()) + 1 for line in lines]
    total, seen = 0.0, 0
    for first, start, end in streams.windows(lengths, 40):
        ids = [START]
        for line in lines[first:end]:
            ids += [*continuer.graph.tokenizer.tokenize(line).numpy(), END]
        log_probs = np.array(
            keras.ops.log_softmax(continuer.model(np.array([ids[:-1]])))
        )
        labels = ids[1:]
        for place in range(sum(lengths[first:start]), len(labels)):
            total += log_probs[0, place, labels[place]]
            seen += 1
    assert scores["tokens"] == sum(lengths) == seen
    assert scores["perplexity"] == pytest.approx(
        math.exp(-total / seen), rel=1e-4
    )


@pytest.mark.slow
def test_a_stream_trains_on_every_line_after_the_end_of_the_one_before(
    stream_run, folder
):
    directory = run_directory.at(stream_run)
    choices = run_directory.read_config(directory)
    task = tasks.get(choices.task)
    corpus, tokenizers = (
        task.load(choices.data),
        task.load_tokenizers(directory),
    )
    pipeline = task.pipeline(choices, corpus, tokenizers, replicas=1)
    lines = (folder / "small.train.txt").read_text().splitlines()
    num_ends = 0
    for inputs, labels, _ in pipeline.training(0).as_numpy_iterator():
        num_ends += (labels == END).sum()
        # As a text is scored: each token is the input after it is the label.
        following = np.where(labels[:, 1:] == PAD, PAD, labels[:, :-1])
        np.testing.assert_array_equal(inputs[:, 1:], following)
    assert num_ends == len(lines) == 200


@pytest.mark.slow
def test_a_stream_is_continued_on_its_last_line(stream_run, tmp_path, capsys):
    cli.main(["export", str(stream_run), "--to", str(tmp_path / "model")])
    for model in (ka.load(stream_run), ka.load(tmp_path / "model")):
        assert model.reads_lines
        first, second = model(["a king sleeps\nthe king", "the king"])
        assert first == second


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["translate", "{run}", "a", "--n_best=2"], "models take --n_best"),
        (["translate", "{run}", "a", "--length_penalty=0"], "length_penalty"),
        (
            ["translate", "{run}/savedmodel", "a", "--length_penalty=0"],
            "length_penalty can be given to translators only",
        ),
        (
            ["export", "{run}", "--to=x", "--num_beams=2"],
            "given to translators only",
        ),
        (["evaluate", "{run}", "--num_beams=2"], "given to translators only"),
        (["evaluate", "{run}", "--rouge"], "models take --rouge"),
        (
            ["evaluate", "{run}", "--no_repeat_ngram_size=2"],
            "scored without a search. Leave --no_repeat_ngram_size out",
        ),
        (
            ["predict", "{run}/savedmodel", "a", "--no_repeat_ngram_size=2"],
            "exported with, here greedy search.* no_repeat_ngram_size=2",
        ),
        (
            ["evaluate", "{run}/savedmodel", "--source={file}"]
            + ["--num_beams=2", "--tokenize=char"],
            "models take --num_beams and --tokenize; ",
        ),
        (
            ["evaluate", "{run}", "--beside", "{run}"],
            "translation models take --beside",
        ),
        (["evaluate", "{run}", "--by_length=a.png"], "models take --by_length"),
        (
            ["evaluate", "{run}", "--source={file}", "--reference={file}"],
            "no --reference",
        ),
    ],
)
def test_what_belongs_to_translators_is_refused(
    arguments, message, run, folder
):
    file = folder / "small.test.txt"
    arguments = [text.format(run=run, file=file) for text in arguments]
    with pytest.raises(SystemExit, match=message):
        cli.main(arguments)


@pytest.fixture
def train_16(folder, tmp_path):
    """The command that trains a model with 16 learned positions."""
    arguments = json.dumps(json.loads(TRANSFORMER) | {"max_length": 16})
    return [
        *["train", "--model=transformer_language_model", f"--corpus={folder}"],
        *["--model_arguments", arguments, "--steps=2"],
        f"--output={tmp_path / 'run'}",
    ]


def test_texts_longer_than_the_learned_positions_are_refused(
    train_16, tmp_path
):
    with pytest.raises(SystemExit, match="16 learned .*--max_length=16 or les"):
        cli.main([*train_16, "--max_length=17"])
    assert not (tmp_path / "run" / "checkpoint.npz").exists()


@pytest.mark.slow
def test_texts_as_long_as_the_learned_positions_are_answered(
    train_16, tmp_path
):
    cli.main([*train_16, "--max_length=16"])
    run = ka.load(tmp_path / "run")
    assert len(run(["the", " ".join(["the"] * 15)])) == 2


def test_a_test_set_may_have_a_name_and_blank_lines(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    named = tmp_path / "test_2016.txt"
    (tmp_path / "small.test.txt").rename(named)
    named.write_text("  the king talks\n\n")
    task = tasks.get("language_modelling")
    choices = config.make(model="rnn_language_model", corpus=tmp_path)
    held_out = task.held_out(task.load(choices.data))
    assert held_out.name == "test_2016"
    read = task.read_test_set(named, None)
    assert held_out.sources == read.sources == ["the king talks"]
    named.write_text("\n")
    with pytest.raises(ValueError, match="has no text"):
        task.read_test_set(named, None)


def test_the_truth_of_the_embedded_sentences_is_known():
    """A model that is the source itself has the source's perplexity."""

    class Source:
        """Scores a text by its true probability."""

        reads_lines = False

        def score(self, texts, truncate=False):
            return [
                (sentences.log_probability(text), len(text.split()) + 1)
                for text in texts
            ]

        def num_truncated(self, texts):
            return 0

    lines = sentences.generate(train=1, validation=1, test=500)["test"]
    test_set = tasks.TestSet("test", lines, lines, embedded="sentences")
    task = tasks.get("language_modelling")
    scores = task.evaluate(Source(), test_set, truncate=True).scores
    assert scores["perplexity"] == pytest.approx(scores["source_perplexity"])
    expected = math.exp(sentences.entropy_rate())
    assert scores["entropy_perplexity"] == expected
    assert scores["perplexity"] == pytest.approx(expected, rel=0.03)


class Die(ka.models.LanguageModel):
    """Throws a loaded die for each token, whatever stands before."""

    def __init__(self, log_probabilities):
        super().__init__()
        self.log_probabilities = keras.ops.array(log_probabilities, "float32")
        self.built = True

    def call(self, token_ids):
        return keras.ops.zeros_like(token_ids[..., None], "float32") + (
            self.log_probabilities
        )


def test_words_that_a_vocabulary_misses_count_one_by_one():
    """The source's entropy is known: independent words, each line's end too."""
    words = [f"w{number}" for number in range(20)]
    chances = 0.9 * 0.8 ** np.arange(20)
    chances *= 0.9 / chances.sum()
    generator = np.random.default_rng(0)
    drawn = generator.choice([*words, "\n"], 30_000, p=[*chances, 0.1])
    lines = [line.strip() for line in " ".join(drawn).split("\n")]
    lines = [line for line in lines if line][:-1]
    tokenizer = ka.data.Tokenizer(
        ka.data.train_vocabulary(lines, vocabulary_size=8, model_type="word")
    )
    assert tokenizer.vocabulary_size == 8  # Four of the words are known.
    probabilities = np.zeros(8)
    probabilities[[1, 3]] = chances[4:].sum(), 0.1
    known = tokenizer.tokenize(words[:4]).numpy()[:, 0]
    probabilities[known] = chances[:4]
    log_probabilities = np.log(np.maximum(probabilities, 1e-30))
    servable = Continuer(Die(log_probabilities), tokenizer, max_length=1000)
    scores = (
        tasks.get("language_modelling")
        .evaluate(servable, tasks.TestSet("test", lines, lines))
        .scores
    )
    assert scores["tokens"] == sum(len(line.split()) + 1 for line in lines)
    classes = np.array([*chances[:4], chances[4:].sum(), 0.1])
    entropy = -(classes * np.log(classes)).sum()
    # A line of 10 tokens on average; lines without words are left out.
    rate = (entropy / 0.1 + 0.1 * np.log(0.1)) / (1 / 0.1 - 0.1)
    assert scores["perplexity"] == pytest.approx(math.exp(rate), rel=0.01)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "model, percent",
    [
        ("rnn_language_model", 1),
        ("transformer_language_model", 2),
        ("lstmn", 2),
        ("char_cnn_language_model", 2),
    ],
)
def test_the_embedded_corpus_is_learned(model, percent, tmp_path):
    """The perplexity is as near to the source's, and not below it."""
    output = tmp_path / "run"
    cli.main(["train", f"--model={model}", f"--output={output}"])
    scores = json.loads((output / "scores.json").read_text())
    most = (1 + percent / 100) * scores["entropy_perplexity"]
    assert scores["source_perplexity"] < scores["perplexity"] < most
