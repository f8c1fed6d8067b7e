"""The way from a list of texts to a step of the search is short."""

import pathlib
import traceback

import pytest

import keras_attention
from keras_attention import Translator, cli, runs

PACKAGE = pathlib.Path(keras_attention.__file__).parent


class Reached(Exception):
    """The search has come to its first step."""


SEARCHES = {
    1: ["greedy.greedy_search", "positions.body"],
    4: ["beam.beam_search", "positions.body"],
}


def way_to_the_step(translator, start):
    """Each of the package's functions on the stack when a step is traced."""
    stack = []

    def step(*arguments, **options):
        stack.extend(traceback.extract_stack()[:-1])
        raise Reached

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translator.model, "prepared_step", lambda: step)
        with pytest.raises(Reached):
            start()
    return [
        f"{pathlib.Path(frame.filename).stem}.{frame.name}"
        for frame in stack
        if pathlib.Path(frame.filename).is_relative_to(PACKAGE)
    ]


@pytest.mark.fast_for("transformer")
@pytest.mark.parametrize("num_beams", SEARCHES)
@pytest.mark.parametrize("name", ["transformer", "rnnsearch"])
def test_five_functions_from_the_call_to_the_step(
    name, num_beams, random_translator
):
    whole = random_translator(name)
    translator = Translator(
        whole.model, whole.graph.source_tokenizer, num_beams=num_beams
    )
    way = way_to_the_step(translator, lambda: translator(["one two", "three"]))
    assert way == [
        "translator.__call__",
        "translation_graph._answer",
        "translation_graph._search",
        *SEARCHES[num_beams],
    ]


@pytest.mark.parametrize(
    "num_beams, options, answer",
    [
        (1, ["--num_beams=1"], "__call__"),
        (4, ["--num_beams=4"], "__call__"),
        (4, ["--num_beams=4", "--n_best=2"], "n_best"),
    ],
)
def test_seven_functions_from_the_command_line_to_the_step(
    num_beams, options, answer, random_translator, tmp_path, monkeypatch
):
    whole = random_translator("transformer")
    (tmp_path / "config.yaml").write_text("")

    def load(path, num_beams, *others):
        return Translator(
            whole.model, whole.graph.source_tokenizer, num_beams=num_beams
        )

    monkeypatch.setattr(runs, "load", load)
    argv = ["translate", str(tmp_path), "one two", *options]
    way = way_to_the_step(whole, lambda: cli.main(argv))
    assert way == [
        "cli.main",
        "translate.translate",
        f"translator.{answer}",
        "translation_graph._answer",
        "translation_graph._search",
        *SEARCHES[num_beams],
    ]
