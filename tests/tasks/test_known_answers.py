"""Models on the embedded corpora, whose right answers are known."""

import collections
import itertools
import json

import numpy as np
import pytest

from keras_attention import cli, runs
from keras_attention.data.embedded import colours, copying, pronunciations

pytestmark = pytest.mark.slow


def accuracy(folder, model, **arguments):
    """Of a model that `train` has trained without another argument."""
    cli.main(
        ["train", f"--model={model}", f"--output={folder}"]
        + ["--model_arguments", json.dumps(arguments)]
    )
    return json.loads((folder / "scores.json").read_text())["accuracy"]


def ceiling(rows):
    """The best accuracy of who knows only how often each word occurs.

    Of a list's colours, n_c times c, those of "my" are a and b with a
    probability proportional to n_a n_b: as many ways there are to choose
    which of them are mine.
    """
    total = 0
    for _, text in rows:
        counts = collections.Counter(
            word for word in text.split() if word in colours.COLOURS
        )
        ways = [a * b for a, b in itertools.combinations(counts.values(), 2)]
        total += max(ways) / sum(ways)
    return 100 * total / len(rows)


def test_reading_first_and_asking_then_binds_colours(tmp_path):
    found = accuracy(tmp_path / "run", "self_attentive_embedding")
    assert found >= 99.5


@pytest.mark.parametrize(
    "model", ["end_to_end_memory_network", "memory_network"]
)
def test_memory_networks_know_where_things_are(model, tmp_path):
    assert accuracy(tmp_path / "run", model) >= 98


def test_a_bag_does_not_know_which_colours_are_mine(tmp_path):
    rows = colours.generate()["test"]
    best = ceiling(rows)
    found = accuracy(tmp_path / "run", "bag_of_vectors")
    deviation = 100 * np.sqrt(0.25 / len(rows))
    assert best - 10 < found < best + 3 * deviation


@pytest.mark.parametrize(
    "num_layers, least, most", [(0, 0, 10), (1, 20, 65), (2, 99.5, 100)]
)
def test_two_layers_find_the_referent(num_layers, least, most, tmp_path):
    """At the word "it". Without a layer, it knows nothing: 5 % by chance.

    One layer may find the two animals, and then guesses.
    """
    found = accuracy(
        tmp_path / "run",
        "encoder_classifier",
        num_layers=num_layers,
        answer_position=-4,
    )
    assert least <= found <= most


@pytest.mark.parametrize(
    "model, least, most",
    [("decomposable_attention", 99.5, 100), ("bag_of_vector_pairs", 45, 90)],
)
def test_words_compared_one_by_one_decide_inclusion(
    model, least, most, tmp_path
):
    assert least <= accuracy(tmp_path / "run", model) <= most


def test_a_machine_copies_twice_the_length_of_its_training(tmp_path):
    """It reads the slots in the order in which it has written them."""
    run = tmp_path / "run"
    cli.main(["train", "--model=neural_turing_machine", f"--output={run}"])
    scores = json.loads((run / "scores.json").read_text())
    assert scores["exact_match"] >= 99
    texts = [text for text, _ in copying.generate()["test"][:20]]
    for shown in runs.load(run).with_attention(texts):
        places = np.argmax(shown["attention"], axis=1)
        # Some machines write a letter one step after they have read it. Then
        # the last place is asked for twice.
        assert places[0] <= 1 and (np.diff(places)[:-1] == 1).all()


def test_a_transducer_writes_in_the_order_in_which_it_reads(tmp_path):
    """Each sound at its letters: nobody said which letters make a sound."""
    cli.main(["train", "--model=rnn_transducer", f"--output={tmp_path}/run"])
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert scores["exact_match"] >= 99
    translator = runs.load(tmp_path / "run")
    words = [word for word, _ in pronunciations.generate()["test"][:100]]
    for shown in translator.with_attention(words):
        places = np.argmax(shown["attention"], axis=1)
        assert (np.diff(places) >= 0).all()
    (taxi,) = translator.with_attention(["taxi"])
    places = np.argmax(taxi["attention"], axis=1)
    assert [taxi["source_tokens"][place] for place in places] == [
        *"taxxi",
        "[END]",
    ]
