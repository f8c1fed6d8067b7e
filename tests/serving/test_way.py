"""The way from a list of texts to a step of the search is short."""

import pathlib
import traceback

import pytest

import keras_attention
from keras_attention import Translator

PACKAGE = pathlib.Path(keras_attention.__file__).parent


class Reached(Exception):
    """The search has come to its first step."""


@pytest.mark.parametrize("name", ["transformer", "rnnsearch"])
def test_five_functions_from_the_call_to_the_step(name, random_translator):
    """Each of the package's functions on the stack when a step is traced."""
    whole = random_translator(name)
    translator = Translator(
        whole.model, whole.source_tokenizer, whole.target_tokenizer
    )
    stack = []

    def step(*arguments):
        stack.extend(traceback.extract_stack()[:-1])
        raise Reached

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole.model, "prepared_step", lambda: step)
        with pytest.raises(Reached):
            translator(["one two", "three"])
    way = [
        f"{pathlib.Path(frame.filename).stem}.{frame.name}"
        for frame in stack
        if pathlib.Path(frame.filename).is_relative_to(PACKAGE)
    ]
    assert way == [
        "text_to_text.__call__",
        "translator._answer",
        "translator._search",
        "beam.beam_search",
        "beam._advance",
    ]
