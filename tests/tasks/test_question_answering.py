"""Stories of three columns: trained, answered, exported, learned."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention import config
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


def test_a_run_and_its_savedmodel_answer_alike(run):
    """And the report has a picture, titled with the answer."""
    trained, folder, rows = run
    pairs = [(story, question) for _, story, question in rows["test"]]
    assert report.finish(trained)["sentences"] == len(pairs)
    assert (folder / "attention.png").is_file()
    live = ka.load(folder)
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


def test_a_model_that_cannot_learn_it_is_refused():
    choices = config.make(model="transformer", learns="question_answering")
    with pytest.raises(ValueError, match="These models do: encoder_class"):
        config.resolve(choices)
    with pytest.raises(ValueError, match="one of question_answering"):
        config.resolve(config.make(model="transformer", learns="dancing"))
