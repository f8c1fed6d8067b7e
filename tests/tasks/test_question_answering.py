"""Stories of three columns: trained, answered, exported, learned."""

import csv
import io
import itertools
import json
import random

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention import cli, config, runs, tasks
from keras_attention.data.embedded import stories
from keras_attention.serving import loading
from keras_attention.tokens import END
from keras_attention.training import report

SIZES = {"embedding_dim": 16, "units": 8, "attention_units": 8}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    rows = stories.generate(train=300, validation=30, test=30)
    patch.setattr(stories, "generate", lambda: rows)
    folder = tmp_path_factory.mktemp("stories") / "run"
    choices = config.make(
        model="self_attentive_embedding",
        learns="question_answering",
        model_arguments=SIZES,
        # Shorter than the longest stories, which keep their end.
        max_length=30,
        epochs=1,
        output=str(folder),
    )
    trained = ka.train(config.resolve(choices))
    yield trained, folder, rows
    patch.undo()


@pytest.fixture(scope="module")
def live(run):
    return ka.load(run[1])


def test_long_stories_are_cut_and_not_dropped(run):
    trained, _, rows = run
    report = trained.pipeline.report
    lengths = [
        len(story.split()) + story.count("\n") + 1
        for _, story, _ in rows["train"]
    ]
    assert (report.kept, report.dropped) == (300, 0)
    assert report.cut == sum(length > 30 for length in lengths) > 0


def test_a_story_and_its_question_are_one_row(run):
    trained, _, rows = run
    tokenizer, answers = trained.tokenizers
    found = set()
    for inputs, labels, _ in trained.pipeline.training(0):
        assert list(inputs) == ["source_ids"]
        for ids, label in zip(
            inputs["source_ids"].numpy(), labels.numpy(), strict=True
        ):
            ends = np.flatnonzero(ids == END)
            question = tokenizer.detokenize([ids[ends[-2] + 1 : ends[-1]]])
            found.add((answers[label], question.numpy()[0].decode()))
    assert found == {(answer, asked) for answer, _, asked in rows["train"]}


def test_a_run_and_its_savedmodel_answer_alike(run, live):
    """And the report has a picture, titled with the answer."""
    trained, folder, rows = run
    pairs = [(story, question) for _, story, question in rows["test"]]
    assert report.finish(trained)["sentences"] == len(pairs)
    assert (folder / "attention.png").is_file()
    loaded = loading.load(folder / "savedmodel")
    answers = live(pairs, truncate=True)
    assert answers == loaded(pairs, truncate=True)
    assert set(answers) <= set(stories.PLACES)
    # By the model itself, with the rows of training.
    (inputs, _, _), *_ = trained.pipeline.validation()
    tokenizer, classes = trained.tokenizers
    logits = live.graph.model(inputs)
    expected = [classes[place] for place in keras.ops.argmax(logits, -1)]
    texts = []
    for ids in inputs["source_ids"].numpy():
        ends = np.flatnonzero(ids == END)
        parts = np.split(ids[: ends[-1]], ends[:-1])
        *story, asked = tokenizer.detokenize(
            [part.tolist() for part in parts]
        ).numpy()
        texts.append(("\n".join(one.decode() for one in story), asked.decode()))
    assert live(texts) == expected


TINY = {"embedding_dim": 4}


def pipeline_of(model, folder, **choices):
    return ka.train(
        config.resolve(
            config.make(
                model=model,
                model_arguments=TINY,
                steps=1,
                output=str(folder / model),
                **choices,
            )
        )
    ).pipeline


@pytest.mark.slow
def test_models_of_stories_read_them_in_columns(run, tmp_path):
    """One of them is told which sentences support the answer."""
    names = {"story_ids", "question_ids"}
    (inputs, _, _), *_ = pipeline_of(
        "end_to_end_memory_network", tmp_path
    ).training(0)
    assert set(inputs) == names
    _, _, rows = run
    expected = set()
    for _, story, question in rows["train"]:
        facts = stories.facts(story, question)
        # The last one fills the row.
        expected.add((*facts, *facts[-1:] * 3)[:3])
    found = set()
    for inputs, _, _ in pipeline_of("memory_network", tmp_path).training(0):
        assert set(inputs) == names | {"facts"}
        found |= set(map(tuple, inputs["facts"].numpy().astype(int).tolist()))
    assert found == expected and any(len({*row}) > 1 for row in found)


def test_stories_without_facts_are_no_lesson_for_a_memory_network(tmp_path):
    table = tmp_path / "own.jsonl"
    names = ("answer", "story", "question")
    table.write_text(
        "".join(
            json.dumps(dict(zip(names, row, strict=True))) + "\n"
            for row in STORIES
        )
    )
    with pytest.raises(ValueError, match="does not say which they are"):
        pipeline_of("memory_network", tmp_path, corpus=str(table))


STORIES = [
    (f"answer {number % 2}", f"one {number}\ntwo", f"which {number}")
    for number in range(60)
]


def as_csv(rows):
    file = io.StringIO()
    csv.writer(file).writerows([("answer", "story", "question"), *rows])
    return file.getvalue()


def as_json(rows):
    """A list of sentences in a row, a text with line breaks in the next."""
    objects = [
        {"answer": answer, "question": question, "story": story.split("\n")}
        for answer, story, question in rows
    ]
    for row in objects[::2]:
        row["story"] = "\n".join(row["story"])
    return "".join(f"{json.dumps(row)}\n" for row in objects)


@pytest.mark.parametrize("name, write", [("csv", as_csv), ("jsonl", as_json)])
@pytest.mark.parametrize("in_splits", [False, True])
def test_own_stories_are_read(tmp_path, name, write, in_splits):
    path = tmp_path / f"all.{name}"
    path.write_text(write(STORIES))
    if in_splits:
        path.rename(tmp_path / f"train.{name}")
        (tmp_path / f"dev.{name}").write_text(write(STORIES[:9]))
        path = tmp_path
    task = tasks.get("question_answering")
    corpus = task.load(config.make(corpus=str(path)).data)
    read = {
        split: [
            *zip(
                *(corpus.texts(split, c) for c in ("answer", *task.texts)),
                strict=True,
            )
        ]
        for split in corpus.splits
    }
    if in_splits:
        assert read == {"train": STORIES, "validation": STORIES[:9]}
    else:
        assert sorted(sum(read.values(), [])) == sorted(STORIES)
        assert {*read} == {"train", "validation", "test"}


def test_a_place_without_stories_is_refused(tmp_path):
    task = tasks.get("question_answering")
    for name in ("none", "."):
        choices = config.make(corpus=str(tmp_path / name)).data
        with pytest.raises(ValueError, match="no corpus|lacks train.tsv"):
            task.load(choices)


def test_lines_of_json_are_answered_and_scored(
    run, live, tmp_path, monkeypatch, capsys
):
    _, folder, rows = run
    pairs = [(story, asked) for _, story, asked in rows["test"]]
    expected = live(pairs, truncate=True)
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text(as_json(rows["test"]))
    reference.write_text("".join(f"{answer}\n" for answer in expected))
    lines = io.TextIOWrapper(io.BytesIO(source.read_bytes()))
    monkeypatch.setattr("sys.stdin", lines)
    # The run is loaded and traced already: no command need do so again.
    monkeypatch.setattr(runs, "load", lambda *_, **__: live)
    cli.main(["predict", str(folder), "--truncate"])
    assert capsys.readouterr().out.splitlines() == expected
    files = [f"--source={source}", f"--reference={reference}"]
    cli.main(["evaluate", str(folder), "--truncate", *files])
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (scores["accuracy"], scores["sentences"]) == (100, 30)


def test_a_line_without_a_question_is_named(tmp_path):
    (tmp_path / "source").write_text('a\tb\n{"story": ["a"]}\n')
    (tmp_path / "reference").write_text("c\nd\n")
    task = tasks.get("question_answering")
    with pytest.raises(
        ValueError, match="source, line 2: the JSON object must"
    ):
        task.read_test_set(tmp_path / "source", tmp_path / "reference")


def test_a_model_that_cannot_learn_it_is_refused():
    choices = config.make(model="transformer", learns="question_answering")
    with pytest.raises(ValueError, match="another --model: encoder_class"):
        config.resolve(choices)
    with pytest.raises(ValueError, match="question_answering [(]enc"):
        config.resolve(config.make(model="transformer", learns="dancing"))


def slots():
    """Who, where and what: a sentence for each, in any order.

    The question says which of the three sentences answers. With the story
    alone, one answer in three is right.
    """
    rows = []
    for person, place, thing in itertools.product(
        stories.PEOPLE, stories.PLACES, stories.THINGS
    ):
        told = {
            f"{person} sat down": ("who was there", person),
            f"all were in the {place}": ("where were they", place),
            f"they had a {thing}": ("what did they have", thing),
        }
        for sentences in itertools.permutations(told):
            story = "\n".join(sentences)
            rows += [(answer, story, asked) for asked, answer in told.values()]
    random.Random(0).shuffle(rows)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stories_are_learned(seed, tmp_path):
    """The sentence that answers is found: in stories not seen in training."""
    rows = slots()
    splits = {"validation": rows[:100], "test": rows[100:300]}
    for split, part in (splits | {"train": rows[300:]}).items():
        (tmp_path / f"{split}.jsonl").write_text(as_json(part))
    options = ["--epochs=10", "--max_tokens=512", "--warmup_steps=100"]
    cli.main(
        ["train", "--model=encoder_classifier", "--learns=question_answering"]
        + [f"--corpus={tmp_path}", f"--output={tmp_path / 'run'}"]
        + [f"--seed={seed}", *options]
    )
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert scores["sentences"] == 200
    assert scores["accuracy"] > 95
