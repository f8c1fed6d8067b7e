"""A SavedModel as a function of columns."""

import numpy as np
import pytest

from keras_attention.serving import batch_translator, loading


@pytest.fixture(scope="module")
def folder(random_translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("savedmodel") / "luong"
    random_translator("luong").export(folder)
    return folder


@pytest.mark.slow
def test_a_batch_gets_two_columns(folder):
    texts = ["one two", "", "nine " * 300, "three"]
    batch = {"id": np.arange(4), "text": np.array(texts, object)}
    translate = loading.load(folder)
    expected = translate([texts[0], texts[1], texts[3]])
    found = batch_translator.BatchTranslator(folder)(batch)
    assert [*found] == ["id", "text", "translation", "too_long"]
    answers = [*found["translation"]]
    assert answers == [*expected[:2], "", expected[2]]
    assert found["too_long"].tolist() == [False, False, True, False]
    assert [*batch] == ["id", "text"]
    cut = batch_translator.BatchTranslator(
        folder, column="text", output="de", truncate=True
    )(batch)
    assert [*cut["de"]] == translate(texts, truncate=True)
    assert cut["too_long"].tolist() == found["too_long"].tolist()
    with pytest.raises(ValueError, match=r"with \['line'\]"):
        batch_translator.BatchTranslator(folder)({"line": batch["text"]})
