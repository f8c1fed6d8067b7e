"""A language model by the verbs: trained, scored, exported, continued."""

import json
import math

import pytest

import keras_attention as ka
from keras_attention import cli, config, tasks
from keras_attention.data import sentences

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


def test_a_savedmodel_has_the_scores_and_the_continuations_of_its_run(
    run, folder, tmp_path, capsys
):
    cli.main(["export", str(run), "--to", str(tmp_path / "model")])
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    assert "# Language model: rnn_language_model" in card
    file = str(folder / "small.test.txt")
    perplexities = []
    for model in (run, tmp_path / "model"):
        cli.main(["evaluate", str(model), "--source", file])
        perplexities.append(last_line(capsys)["perplexity"])
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-6)
    answers = []
    for model in (run, tmp_path / "model"):
        cli.main(["translate", str(model), "the king", "", "every girl"])
        answers.append(capsys.readouterr().out.split("\n"))
    assert answers[0] == answers[1] and len(answers[0]) == 4


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["translate", "{run}", "a", "--n_best=2"], "Received: n_best"),
        (["translate", "{run}", "a", "--length_penalty=0"], "length_penalty"),
        (
            ["translate", "{run}/savedmodel", "a", "--length_penalty=0"],
            "a model of language_modelling: .* Received: length_penalty",
        ),
        (["export", "{run}", "--to=x", "--num_beams=2"], "Received: num_beams"),
        (["evaluate", "{run}", "--num_beams=2"], "Received: num_beams"),
        (["evaluate", "{run}", "--beside", "{run}"], "Received: beside"),
        (["evaluate", "{run}", "--by_length=a.png"], "Received: by_length"),
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
    with pytest.raises(ValueError, match="without text"):
        task.read_test_set(named, None)


def test_the_truth_of_the_embedded_sentences_is_known():
    """A model that is the source itself has the source's perplexity."""

    class Source:
        """Scores a text by its true probability."""

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


@pytest.mark.slow
def test_the_embedded_corpus_is_learned_to_within_a_percent(tmp_path, capsys):
    output = tmp_path / "run"
    cli.main(["train", "--model=rnn_language_model", f"--output={output}"])
    scores = json.loads((output / "scores.json").read_text())
    assert scores["perplexity"] < 1.01 * scores["entropy_perplexity"]
