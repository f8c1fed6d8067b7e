"""Sentences and kept strings over REST, of a model that shouts."""

import time

import pytest

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention.server import (  # noqa: E402
    errors,
    model_configs,
    rewriting,
    settings,
)
from keras_attention.serving import placeholders  # noqa: E402


def ask(server, **request):
    status, _, found = server.predict("shout", **request)
    assert status == 200, found
    return found


def refused(server, **request):
    status, _, found = server.predict("shout", **request)
    return status, found["error"]


def test_each_sentence_is_translated_for_itself(server):
    """The model takes five tokens, and the paragraph has more."""
    text = "a dog runs.  It\nbarks. And sleeps!\n"
    status, error = refused(server, instances=[text])
    assert status == 400 and "takes at most 5" in error
    found = ask(server, instances=[text, "", "b"], split_sentences=True)
    assert found == {"predictions": [text.upper(), "", "B"]}
    found = ask(server, inputs={"text": [text]}, split_sentences=True)
    assert found == {"outputs": [text.upper()]}


def test_strings_come_out_as_they_went_in(server):
    texts = ["see www.a.org/x now", "<b>dog</b> z"]
    found = ask(server, instances=texts, keep=["url", "tag", "dog"])
    assert found["predictions"] == ["SEE www.a.org/x NOW", "<b>dog</b> Z"]
    both = [". ".join(texts)]
    found = ask(
        server, instances=both, keep=["url", "tag"], split_sentences=True
    )
    assert found["predictions"] == ["SEE www.a.org/x NOW. <b>DOG</b> Z"]


def test_a_text_to_keep_is_no_expression(server):
    found = ask(server, instances=["a.b axb"], keep=["a.b"])
    assert found["predictions"] == ["a.b AXB"]


def test_what_the_options_may_be(server):
    for wrong in ("url", [1], [""], [["url"]], None):
        status, error = refused(server, instances=["a"], keep=wrong)
        assert status == 400 and "keep is a list of texts" in error
    for wrong in (1, "true", None):
        status, error = refused(server, instances=["a"], split_sentences=wrong)
        assert status == 400 and "true or false" in error
    for wrong in (["a"] * 21, ["a" * 201]):
        status, error = refused(server, instances=["a"], keep=wrong)
        assert status == 400 and "at most 20 texts" in error
    # As if they were not there.
    found = ask(server, instances=["a"], keep=[], split_sentences=False)
    assert found == {"predictions": ["A"]}


def test_what_has_no_options(server):
    status, error = refused(
        server,
        instances=["a"],
        signature_name="with_attention",
        split_sentences=True,
    )
    assert status == 400 and "serving_default, greedy" in error
    status, _, found = server.predict(
        "numbers", instances=[{"x": [1.0, 2.0, 3.0], "k": 1}], keep=["url"]
    )
    assert status == 400 and "are for a translator's" in found["error"]
    status, _, _ = server.predict(
        "nothing", instances=["a"], split_sentences=True
    )
    assert status == 404


def test_errors_name_the_row_of_the_request(server):
    texts = ["Go on. It is.", "So it. One two three four five six."]
    status, error = refused(server, instances=texts, split_sentences=True)
    assert status == 400 and "The text in row 2 has" in error
    texts = ["a", "7 " * 101]
    status, error = refused(server, instances=texts, keep=["number"])
    assert status == 400 and "more than 100 strings in row 2" in error
    texts = ["Go on. " * 60]
    status, error = refused(server, instances=texts, split_sentences=True)
    assert status == 400 and "60 sentences, and at most 50" in error
    status, error = refused(server, instances=["fail"], split_sentences=True)
    assert status == 400 and "I cannot" in error


def test_an_answer_may_come_too_late(run_server, model_folders, slow_model):
    config = model_configs.ModelConfig("shout", model_folders["shout"])
    limits = settings.Limits(timeout=0.3)
    with run_server([config], limits) as client:
        status, _, found = client.predict(
            "shout", instances=["a"], split_sentences=True
        )
        assert status == 504, found
        slow_model.may_end.set()
        assert ask(client, instances=["a"], keep=["url"])


def test_many_at_a_time_are_refused(server, monkeypatch):
    monkeypatch.setattr(rewriting, "_MOST_REQUESTS", 0)
    status, error = refused(server, instances=["a"], split_sentences=True)
    assert status == 429 and "Try again" in error


HARD = {
    "email": ["a" * 60_000, "a@" + "b" * 60_000, "a@b" * 20_000],
    "url": ["http://" + "!" * 60_000, "www." * 15_000, "http://!" * 8000],
    "tag": ["<a" * 30_000, "<a" + "b" * 60_000],
    "field": ["%" + "0" * 60_000, "{" * 60_000, "%(" + "a" * 60_000],
    "number": ["1" * 60_000, "1." * 30_000],
}


def test_no_pattern_takes_long_on_a_long_text():
    """Strangers choose texts, and a pattern may look again and again."""
    assert HARD.keys() == placeholders.PATTERNS.keys()
    for name, texts in HARD.items():
        for text in texts:
            start = time.process_time()
            placeholders.find(text, [name])
            assert time.process_time() - start < 1, (name, text[:9])


def test_the_options_of_a_document():
    found = rewriting.options_of({"keep": ["url", "a+b"]})
    assert found.patterns == ("url", r"a\+b") and not found.split_sentences
    assert rewriting.options_of({"instances": ["a"]}) is None
    with pytest.raises(errors.RequestError):
        rewriting.options_of({"split_sentences": "yes"})
