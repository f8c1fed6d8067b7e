"""The command line from end to end, on a corpus of a few lines."""

import functools
import io
import json
import pathlib
import shutil
import subprocess
import traceback

import numpy as np
import pytest
import tensorflow as tf
import yaml
from sentencepiece import sentencepiece_model_pb2

import keras_attention
from keras_attention import cli, config, evaluation, files, runs, tasks
from keras_attention.serving import translator
from keras_attention.tasks import translation
from keras_attention.training import loop, report, run_directory

PACKAGE = pathlib.Path(keras_attention.__file__).parent
# Our functions from the command line to the gradient.
WAY = []


@pytest.fixture(scope="module")
def run(corpus, train_arguments, tmp_path_factory):
    """A run whose corpus was named from where it lies."""
    output = tmp_path_factory.mktemp("runs") / "digits"
    gradient = tf.GradientTape.gradient

    def traced(*args, **options):
        if not WAY:
            WAY.extend(traceback.extract_stack()[:-1])
        return gradient(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(corpus.parent)
        patch.setattr(tf.GradientTape, "gradient", traced)
        cli.main(train_arguments(corpus.name, output))
    return output


@pytest.fixture(scope="module", autouse=True)
def loaded_once():
    """What one test has loaded and traced, the next need not."""
    load = functools.cache(runs.load)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            runs,
            "load",
            lambda path, *search, **by: load(str(path), *search, **by),
        )
        yield


def test_five_functions_from_the_command_line_to_the_gradient(run):
    way = [
        f"{pathlib.Path(frame.filename).stem}.{frame.name}"
        for frame in WAY
        if pathlib.Path(frame.filename).is_relative_to(PACKAGE)
    ]
    assert way == [
        "cli.main",
        "train.train",
        "loop.train",
        "loop.fit",
        "trainer.train_step",
    ]


def test_train_leaves_everything_behind(run):
    names = {path.name for path in run.iterdir()}
    assert names >= {
        "config.yaml",
        "history.json",
        "weights.npz",
        "scores.json",
        "attention.png",
        "learning_curve.png",
        "bleu_by_length.png",
        "savedmodel",
    }
    history = json.loads((run / "history.json").read_text())
    assert len(history) == 2
    assert history[1]["loss"] < history[0]["loss"]


def test_a_corpus_is_known_from_anywhere(run, corpus):
    kept = run_directory.read_config(run_directory.at(run))
    assert kept.data.corpus == str(corpus)


def test_evaluate_ends_with_one_json_object(run, corpus, capsys):
    scores = []
    for model in (run, run / "savedmodel"):
        cli.main(
            [
                "evaluate",
                str(model),
                f"--source={corpus / 'test.en'}",
                f"--reference={corpus / 'test.de'}",
            ]
        )
        last = capsys.readouterr().out.strip().splitlines()[-1]
        scores.append(json.loads(last))
        for name in ("bleu", "bleu_lc", "chrf"):
            # And a note, where no translation has four words.
            assert {"score", "signature"} <= scores[-1][name].keys()
        assert scores[-1].pop("sentences_per_second") > 0
    assert scores[0] == scores[1]


def held_out(run):
    """What the run's corpus has held out."""
    choices = run_directory.read_config(run_directory.at(run))
    task = tasks.get(choices.task)
    return task.held_out(task.load(choices.data))


def test_a_run_is_scored_on_its_held_out_pairs(run, capsys, tmp_path):
    """Beside another model; both are drawn."""
    picture = tmp_path / "by_length.png"
    other = run / "savedmodel"
    cli.main(
        ["evaluate", str(run), "--by_length", str(picture)]
        + ["--beside", str(other)]
    )
    lines = capsys.readouterr().out.strip().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["model"] for row in rows] == [str(other), str(run)]
    assert rows[0]["bleu"] == rows[1]["bleu"]
    same = {"difference": 0.0, "p_value": 1.0}
    assert rows[1]["compared_with"] == {
        "model": f"{run.name}/savedmodel",
        "bleu": same,
        "bleu_lc": same,
    }
    saved = json.loads((run / "scores.json").read_text())
    assert rows[1]["bleu"] == saved["bleu"]
    assert rows[0]["by_length"] == rows[1]["by_length"]
    lengths = runs.load(run).num_tokens(held_out(run).sources)
    for row in rows[0]["by_length"]:
        inside = [row["low"] <= n <= (row["high"] or n) for n in lengths]
        assert row["sentences"] == sum(inside) > 0
        assert row["interval"] >= 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_model_beside_itself_has_a_line_each_time(run, capsys):
    cli.main(["evaluate", str(run), "--beside", str(run)])
    lines = capsys.readouterr().out.strip().splitlines()
    first, second = (json.loads(line) for line in lines)
    assert "compared_with" not in first
    assert second["compared_with"]["bleu"]["difference"] == 0


@pytest.mark.parametrize(
    "models, labels",
    [
        (["runs/a"], ["runs/a"]),
        (["a", "runs/b"], ["a", "runs/b"]),
        (["runs/a/savedmodel/1", "runs/b"], ["savedmodel/1", "runs/b"]),
        (["x/a/s/1", "x/b/s/1"], ["a/s/1", "b/s/1"]),
        (["x/a/s/1", "x/a/s/1"], ["s/1", "s/1"]),
    ],
)
def test_models_are_told_apart(models, labels):
    assert runs.labels(models) == labels


@pytest.mark.parametrize(
    "models, names",
    [
        (["runs/a"], ["a"]),
        (["runs/a", "savedmodels/b/"], ["a", "b"]),
        (["x/a", "y/a"], ["x/a", "y/a"]),
        (["runs/a/savedmodel", "runs/b"], ["a/savedmodel", "runs/b"]),
        (["b/1", "runs/c"], ["b/1", "runs/c"]),
    ],
)
def test_a_picture_has_names_and_no_paths(models, names):
    assert runs.folders(models) == names


def test_translate_keeps_the_order_of_lines(run, monkeypatch, capsys, tmp_path):
    texts = ["1 2 3", "", "7", "1 2 3"]
    cli.main(["translate", str(run / "savedmodel"), *texts])
    from_arguments = capsys.readouterr().out.split("\n")[:-1]
    lines = io.BytesIO("\n".join([*texts, ""]).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(lines))
    picture = tmp_path / "attention.png"
    cli.main(["translate", str(run), "--attention", str(picture)])
    from_lines = capsys.readouterr().out.split("\n")[:-1]
    assert from_arguments == from_lines
    assert len(from_lines) == 4
    assert from_lines[1] == "" and from_lines[0] == from_lines[3]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_run_beside_itself_is_that_run(run, capsys):
    for more in ([], [f"--ensemble={run}"]):
        cli.main(["translate", str(run), "1 2", "3 4 5", *more])
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 4 and out[:2] == out[2:]
    for more in ([], [f"--ensemble={run}"]):
        cli.main(["evaluate", str(run), *more])
    found = [
        json.loads(line)
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("{")
    ]
    one, other = ({**row, "sentences_per_second": 0} for row in found)
    assert one == other


def test_an_ensemble_has_one_vocabulary(run, tmp_path):
    """Pieces of the same number, one of them with another score."""
    copy = shutil.copytree(run, tmp_path / "copy")
    for path in copy.glob("vocabulary.*.model"):
        proto = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
        proto.pieces[-1].score -= 1
        path.write_bytes(proto.SerializeToString())
    message = "copy has another vocabulary than .*digits"
    with pytest.raises(SystemExit, match=message):
        cli.main(["translate", str(run), "1", f"--ensemble={copy}"])


def test_n_best_with_scores_is_sorted(run, capsys):
    model = str(run / "savedmodel")
    cli.main(["translate", model, "--n_best", "3", "1 2", "3", "--scores"])
    lines = capsys.readouterr().out.splitlines()
    scores = [float(line.split("\t")[1]) for line in lines]
    assert len(scores) == 6
    for start in (0, 3):
        assert scores[start] >= scores[start + 1] >= scores[start + 2]


@pytest.mark.slow
def test_standard_error_is_empty(run, command, environment):
    """TensorFlow's own lines say nothing that a reader could do about."""
    name = "TF_CPP_MIN_LOG_LEVEL"
    quiet = {key: environment[key] for key in environment if key != name}
    done = subprocess.run(
        command(["translate", str(run / "savedmodel"), "1 2"]),
        check=True,
        capture_output=True,
        text=True,
        env=quiet,
    )
    assert done.stdout.splitlines() == runs.load(run)(["1 2"])
    assert done.stderr == ""


def test_lines_that_are_too_long_stay_empty(run, capsys, monkeypatch):
    """The others are translated, and the first such line is named."""
    texts = ["1 2", "1 " * 500, "3", "2 " * 500]
    content = io.BytesIO("\n".join(texts).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content))
    with pytest.raises(SystemExit, match="2 of 4 lines .* line 2: .* tokens"):
        cli.main(["translate", str(run)])
    first, third = runs.load(run)(["1 2", "3"])
    assert capsys.readouterr().out == f"{first}\n\n{third}\n\n"
    cli.main(["translate", str(run), *texts, "--truncate"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == runs.load(run)(texts, truncate=True)


@pytest.mark.slow
def test_no_piece_comes_twice_where_none_may(run, tmp_path, capsys):
    """Neither in a run's answers, nor in those of an ensemble or an export."""
    size = "--no_repeat_ngram_size=1"
    texts = ["1 2 3 4", "5 5 5 5 5", "7"]
    cli.main(["translate", str(run), *texts, size])
    translate = runs.load(run, no_repeat_ngram_size=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines == translate(texts)
    assert lines != runs.load(run)(texts)
    for row in translate.with_attention(texts):
        assert len({*row["target_tokens"]}) == len(row["target_tokens"])
    cli.main(["translate", str(run), *texts, size, f"--ensemble={run}"])
    assert capsys.readouterr().out.splitlines() == lines
    cli.main(["export", str(run), "--to", str(tmp_path / "digits"), size])
    assert runs.load(tmp_path / "digits")(texts) == lines
    cli.main(["evaluate", str(run), size])
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    saved = json.loads((run / "scores.json").read_text())
    assert saved["no_repeat_ngram_size"] == 0
    assert scores["chrf"] != saved["chrf"]


def test_rouge_stands_beside_bleu(run, capsys):
    pytest.importorskip("rouge_score")
    cli.main(["evaluate", str(run), "--rouge"])
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    test_set = held_out(run)
    answers = runs.load(run)(test_set.sources)
    found = evaluation.rouge_scores(answers, test_set.references)
    assert len(found) == 3 and scores.items() >= found.items()
    assert (
        scores["bleu"] == json.loads((run / "scores.json").read_text())["bleu"]
    )


@pytest.mark.slow
def test_the_other_ways_to_a_translation(run, capsys):
    """What is most like the others, and what holds a prefix and a term."""
    texts, drawn = ["1 2 3 4", "7"], ["--temperature=2", "--num_beams=3"]
    cli.main(["translate", str(run), *texts, "--mbr", *drawn])
    lines = capsys.readouterr().out.splitlines()
    found = runs.load(run, temperature=2.0, num_beams=3).n_best(texts)
    candidates = [[text for text, _ in row] for row in found]
    chosen = evaluation.minimum_bayes_risk(candidates)
    assert lines == [" ".join(text.splitlines()) for text in chosen]
    cli.main(["evaluate", str(run), "--mbr", *drawn])
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    test_set = held_out(run)
    found = runs.load(run, temperature=2.0, num_beams=3).n_best(
        test_set.sources
    )
    chosen = evaluation.minimum_bayes_risk(
        [[text for text, _ in row] for row in found]
    )
    more = evaluation.more_scores(chosen, test_set.references)
    assert scores.items() >= more.items()
    held = ["--prefix=eins", "--terms=neun; acht"]
    cli.main(["translate", str(run), *texts, *held])
    for line in capsys.readouterr().out.splitlines():
        assert line.startswith("eins") and "neun" in line and "acht" in line


@pytest.mark.slow
def test_export_writes_the_next_version(run, tmp_path):
    digits = shutil.copytree(run / "savedmodel", tmp_path / "digits")
    # Of another search the scores have to be found.
    other = ["--num_beams=2", "--length_penalty=0.5"]
    cli.main(["export", str(run), "--to", str(digits), *other])
    assert (digits / "2" / "saved_model.pb").is_file()
    card = (digits / "README.md").read_text("utf-8")
    assert "Search: beam 2, length penalty 0.5" in card
    exported, same, without = (
        [score for _, score in translate.n_best(["1 2 3"])[0]]
        for translate in (
            runs.load(digits),
            runs.load(run, num_beams=2, length_penalty=0.5),
            runs.load(run, num_beams=2),
        )
    )
    np.testing.assert_allclose(exported, same, rtol=1e-5)
    assert same != without
    # Exported with two beams, it has no other search.
    runs.load(digits, num_beams=2)
    for search in ({"num_beams": 1}, {"length_penalty": 0.5}):
        with pytest.raises(ValueError, match="exported with, here 2 beams"):
            runs.load(digits, **search)


@pytest.mark.slow
def test_export_writes_the_files_of_ctranslate2(run, tmp_path):
    pytest.importorskip("ctranslate2", reason="It writes the files.")
    to = ["--to", str(tmp_path / "new"), "--format=ctranslate2"]
    cli.main(["export", str(run), *to])
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names >= {"model.bin", "config.json", "source.spm", "target.spm"}
    with pytest.raises(SystemExit, match="new is not empty"):
        cli.main(["export", str(run), *to])


def test_a_savedmodel_searches_greedily_too(run, capsys):
    cli.main(["translate", str(run / "savedmodel"), "1 2", "--num_beams=1"])
    (line,) = capsys.readouterr().out.splitlines()
    assert [line] == runs.load(run)(["1 2"], num_beams=1)


@pytest.mark.slow
def test_what_is_cut_is_counted(run, capsys):
    """Of what the corpus held out; a file with such a text is refused."""
    cli.main(
        ["evaluate", str(run), "--num_beams=1"]
        + ["--beside", str(run / "savedmodel")]
    )
    lines = capsys.readouterr().out.strip().splitlines()
    assert [json.loads(line)["truncated"] for line in lines] == [0, 0]
    translate = runs.load(run)
    texts = ["1 2", "1 " * 500]
    assert translate.num_truncated(texts) == 1
    assert translate.num_truncated([]) == 0
    alone, beside = (
        [text for text, _ in hypotheses[0]]
        for hypotheses in (
            translate.n_best(texts[:1]),
            translate.n_best(texts, truncate=True),
        )
    )
    assert alone == beside
    result = translation.Translation().evaluate(
        translate, tasks.TestSet("test", texts, texts), truncate=True
    )
    assert result.scores["truncated"] == 1


def test_a_card_needs_no_corpus(run, capsys, monkeypatch):
    def fail(*arguments):
        pytest.fail("the corpus may be gone: the run has its scores")

    monkeypatch.setattr(translation.Translation, "load", fail)
    monkeypatch.setattr(
        translator.Translator, "export", lambda self, to, card: card
    )
    cli.main(["export", str(run), "--to=nowhere"])
    card = capsys.readouterr().out
    scores = json.loads((run / "scores.json").read_text())
    assert f"| bleu | {scores['bleu']['score']:.2f} | " in card
    assert str(run.parent) not in card
    choices = card.partition("```yaml\n")[2].partition("```")[0]
    assert yaml.safe_load(choices)["vocabulary"]["vocabulary_size"] == 320


def test_scores_on_a_card_are_those_of_the_rounded_weights(
    run, capsys, monkeypatch
):
    scores = json.loads((run / "scores.json").read_text())
    others = scores | {"exact_match": 12.34}

    def evaluate(task, servable, test_set, **options):
        assert servable.graph.stored_precision == "float16"
        assert options == {"truncate": True}
        return tasks.Evaluation(test_set, [], others, 0.0)

    monkeypatch.setattr(translation.Translation, "evaluate", evaluate)
    monkeypatch.setattr(
        translator.Translator, "export", lambda self, to, card: card
    )
    export = ["export", str(run), "--to=nowhere"]
    cli.main(export)
    card = capsys.readouterr().out
    assert "(in float32)" in card and "| 12.34 % |" not in card
    cli.main([*export, "--stored_precision=float16"])
    card = capsys.readouterr().out
    assert "(in float16)" in card and "| 12.34 % |" in card


@pytest.mark.slow
def test_an_export_may_take_half_the_room(run, tmp_path):
    to = ["export", str(run), "--to", str(tmp_path)]
    cli.main(to)
    cli.main([*to, "--stored_precision=float16"])
    weights = "variables/variables.data-00000-of-00001"
    first, second = ((tmp_path / n / weights).stat().st_size for n in "12")
    assert second < 0.6 * first
    card = (tmp_path / "README.md").read_text("utf-8")
    parameters = runs.load(run).model.count_params()
    megabytes = f"{2 * parameters / 1e6:.2f}"
    assert f"{parameters:,}, {megabytes} MB as stored (in float16)" in card


def test_the_program_on_a_card_runs(run):
    (version,) = (run / "savedmodel").glob("1")
    card = (version.parent / "README.md").read_text("utf-8")
    program = card.partition("```python\n")[2].partition("```")[0]
    names = {}
    exec(program.replace("VERSION", str(version)), names)
    outputs = names["model"](text=names["tf"].constant(["1 2"]))
    expected = runs.load(run)(["1 2"])
    assert outputs["translation"].numpy()[0].decode() == expected[0]


@pytest.fixture
def moved(run, corpus, tmp_path):
    """The run, as if its corpus had moved, and where that is now."""
    directory = run_directory.at(shutil.copytree(run, tmp_path / "a run"))
    begun = run_directory.read_config(directory)
    choices = config.replace(begun, corpus=str(tmp_path / "before"))
    run_directory.write_config(directory, choices)
    return directory, shutil.copytree(corpus, tmp_path / "now")


def test_a_corpus_that_moved_is_found_by_evaluate(moved, capsys):
    run, place = moved
    with pytest.raises(SystemExit, match="There is no corpus .*before"):
        cli.main(["evaluate", str(run.path)])
    cli.main(["evaluate", str(run.path), f"--corpus={place}"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["bleu"] == json.loads(run.scores.read_text())["bleu"]


@pytest.mark.slow
def test_a_corpus_that_moved_is_found_by_export(moved, tmp_path, capsys):
    run, place = moved
    export = ["export", str(run.path), "--to", str(tmp_path / "model")]
    rounded = [*export, "--stored_precision", "float16"]
    with pytest.raises(SystemExit, match="There is no corpus .*before"):
        cli.main(rounded)
    cli.main([*rounded, "--corpus", str(place)])
    assert capsys.readouterr().out.endswith("model/1\n")


@pytest.mark.slow
def test_a_corpus_that_moved_is_trained_on(
    moved, monkeypatch, tmp_path, capsys
):
    """And its new place is kept; other pairs are refused there."""
    run, place = moved
    monkeypatch.chdir(tmp_path)
    go_on = ["train", f"--output={run.path}", "--resume", "--corpus=now"]
    lines = (place / "train.en").read_text("utf-8").splitlines()
    (place / "train.en").write_text("\n".join([*lines[1:], lines[0]]), "utf-8")
    with pytest.raises(SystemExit, match="now no longer gives the examples"):
        cli.main([*go_on, "--epochs=3"])
    before = run_directory.read_config(run)
    assert before.data.corpus == str(tmp_path / "before")
    assert before.training.epochs == 2
    (place / "train.en").write_text("\n".join(lines), "utf-8")
    cli.main([*go_on, "--epochs=3"])
    assert run_directory.read_config(run).data.corpus == str(place)
    assert len(run_directory.read_history(run)) == 3
    assert run.scores.is_file()
    # Nothing is left to do, from anywhere.
    monkeypatch.chdir(place)
    cli.main(["train", f"--output={run.path}", "--resume"])
    out = capsys.readouterr().out
    assert "This run is finished. To train longer" in out
    # The command can be copied, though the folder's name has a blank.
    assert f"keras-attention export '{run.path}' --to" in out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["translate", "{tmp}", "a"], "holds neither a run"),
        (["translate", "{run}", "1 " * 500], "line 1: 1001 tokens"),
        (
            ["translate", "{run}/savedmodel", "a", "--num_beams=7"],
            "not with 7",
        ),
        (["translate", "{run}", "a", "--n_best=0"], "n_best=0"),
        (
            ["translate", "{run}", "a", "--ensemble", "{run}/savedmodel"],
            "--ensemble takes the folders of runs",
        ),
        (
            ["translate", "{run}", "--input={run}/config.yaml"]
            + ["--output=x", "--ensemble={run}"],
            "or leave out --input",
        ),
        (
            ["translate", "{run}/savedmodel", "a", "--length_penalty=0"],
            "length_penalty=0",
        ),
        (
            ["translate", "{run}/savedmodel", "a", "--no_repeat_ngram_size=2"],
            "Received: no_repeat_ngram_size=2",
        ),
        (
            ["translate", "{run}/savedmodel", "a", "--n_best=9"],
            "--n_best=9 is too many",
        ),
        (
            ["translate", "{run}/savedmodel", "a", "--num_beams=1", "--scores"],
            "4 beams, not of 1",
        ),
        (
            ["translate", "{run}/savedmodel", "a", "--num_beams=1"]
            + ["--attention=a.png"],
            "4 beams, not of 1",
        ),
        (
            ["translate", "{run}", "", "--attention=a.png"],
            "--attention needs a text",
        ),
        (
            ["evaluate", "{run}/savedmodel", "--source={run}/config.yaml"],
            "--source and --reference",
        ),
        (["translate", "{run}", "a", "--top_p=0.5"], "Add a temperature"),
        (
            ["translate", "{run}", "a", "--mbr", "--n_best=2"],
            "--n_best and --mbr find translations in two ways",
        ),
        (
            ["translate", "{run}", "a", "--mbr", "--num_beams=1"],
            "several beams or samples, here 1",
        ),
        (["evaluate", "{run}", "--mbr", "--num_beams=1"], "here 1"),
        (
            ["translate", "{run}/savedmodel", "a", "--prefix=1"],
            "takes no prefix and no terms",
        ),
        (["train", "--num_groups=3"], "be a multiple of num_groups"),
        (["evaluate", "{run}", "--source", "{run}/x"], "no file {run}/x"),
        (
            ["evaluate", "{run}", "--source", "{run}/config.yaml"],
            "--source and --reference",
        ),
        (["export", "{tmp}", "--to", "{tmp}/x"], "is not the folder of a run"),
        (
            ["export", "{run}", "--to", "{tmp}/x", "--format=ctranslate2"]
            + ["--stored_precision=float16"],
            "Leave stored_precision out",
        ),
        (
            ["export", "{run}", "--to", "{tmp}/x", "--format=ctranslate2"]
            + ["--num_beams=2"],
            "Leave num_beams out",
        ),
        (
            ["export", "{run}", "--to", "{tmp}/x", "--per_request=true"]
            + ["--coverage_penalty=500"],
            "coverage_penalty must be from 0 to 100 with per_request. "
            "Received: coverage_penalty=500",
        ),
        (
            ["train", "--per_request=true", "--length_penalty=11"],
            "length_penalty must be from 0 to 10 with per_request",
        ),
        (["train", "--corpus", "{tmp}/nothing"], "There is no corpus"),
        (["train", "--corpus", "{tmp}"], "has no train.en and train.de"),
        (["align", "{run}"], "align needs runs"),
        (["train", "--output", "{run}"], "Add --resume"),
        (
            ["train", "--output", "{run}", "--resume", "--seed", "7"],
            "Expected seed=1",
        ),
    ],
)
def test_mistakes_are_one_clear_line(
    arguments, message, run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    filled = [text.format(tmp=tmp_path, run=run) for text in arguments]
    with pytest.raises(SystemExit) as error:
        cli.main(filled)
    assert message.format(run=run) in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "x").exists()  # Nothing is exported.


def test_python_trains_as_the_command_line_does(run):
    choices = run_directory.read_config(run_directory.at(run))
    with pytest.raises(ValueError, match="Add --resume"):
        runs.train(choices)
    trained = runs.train(choices, resume=True)
    assert trained.directory.path == run and trained.config == choices
    with pytest.raises(ValueError, match="There is no corpus nowhere"):
        runs.train(config.make(corpus="nowhere"))


def test_the_report_is_written_while_nobody_else_trains(
    moved, monkeypatch, capsys
):
    run, place = moved
    run.scores.unlink()

    def finish(parts):
        with pytest.raises(ValueError, match="Another process writes in"):
            with files.lock(run.path):
                pass
        parts.directory.scores.write_text("{}")

    monkeypatch.setattr(report, "finish", finish)
    go_on = ["train", f"--output={run.path}", "--resume"]
    cli.main([*go_on, f"--corpus={place}"])
    assert run.scores.read_text() == "{}"


def test_an_interrupted_training_says_how_it_goes_on(
    corpus, train_arguments, tmp_path, monkeypatch, capsys
):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "fit", interrupt)
    with pytest.raises(SystemExit) as end:
        cli.main(train_arguments(corpus, tmp_path / "run"))
    assert end.value.code == 130
    line = "keras-attention train: interrupted; it goes on with --resume\n"
    assert capsys.readouterr().err.endswith(line)
