"""Sentences and kept strings over REST, of a model that shouts."""

import http.client
import json
import re
import threading
import time

import pytest
import tensorflow as tf

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention.server import (  # noqa: E402
    errors,
    execution,
    model_configs,
    rewriting,
    settings,
)
from keras_attention.serving import (  # noqa: E402
    placeholders,
    savedmodel,
    sentences,
)


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


def test_a_text_to_keep_is_no_part_of_a_word(server):
    texts = ["usb us used, us2", "usの us。犬us犬"]
    found = ask(server, instances=texts, keep=["us", "us"])
    assert found["predictions"] == ["USB us USED, US2", "usの us。犬us犬"]
    # Beside a sign, and in a script without spaces, it is itself anywhere.
    found = ask(server, instances=["a%b", "犬小屋c"], keep=["%", "小屋"])
    assert found["predictions"] == ["A%B", "犬小屋C"]


@pytest.fixture
def forgetful(monkeypatch):
    """All models leave out digits. It has the number of texts of each call."""
    compute, sizes = execution.split_on_failure, []

    def forget(version, signature, requests, *arguments):
        sizes.extend(len(one["text"]) for one in requests)
        found = compute(version, signature, requests, *arguments)
        for one in found:
            if isinstance(one, Exception):
                continue
            texts = [re.sub(rb"\d", b"", t) for t in one["translation"]]
            one["translation"][:] = texts
        return found

    monkeypatch.setattr(execution, "split_on_failure", forget)
    return sizes


@pytest.mark.parametrize("is_split", [False, True])
def test_a_model_that_copies_nothing(server, forgetful, is_split):
    """The 40 rows have 80 pieces, and the server takes 50 rows."""
    texts = [f"a{chr(97 + n % 26)} {n} b" for n in range(40)]
    found = ask(
        server, instances=texts, keep=["number"], split_sentences=is_split
    )
    assert found["predictions"] == [text.upper() for text in texts]
    # Parts of a batch of 32: 40, then 50 and 30.
    assert sorted(forgetful) == [8, 18, 30, 32, 32]


class Forced(tf.Module):
    """It writes capitals, and digits of a text with "copy" alone.

    Its search that must hold terms writes these alone, the last one first, and
    finds nothing for a text with "hard".
    """

    def __init__(self):
        super().__init__()
        text, prefix, terms = (
            tf.TensorSpec([None], tf.string, name=name)
            for name in ("text", "prefix", "terms")
        )
        functions = {
            "serving_default": (self._translate, [text]),
            "constrained": (self._force, [text, prefix, terms]),
        }
        self._signatures = {
            name: tf.function(function, input_signature=specs, autograph=False)
            for name, (function, specs) in functions.items()
        }

    @property
    def signatures(self):
        return self._signatures

    def _translate(self, text):
        forgotten = tf.strings.regex_replace(text, "[0-9]", "")
        copies = tf.strings.regex_full_match(text, ".*copy.*")
        kept = tf.where(copies, text, forgotten)
        return {"translation": tf.strings.upper(kept)}

    def _force(self, text, prefix, terms):
        turned = tf.reverse(tf.strings.split(terms, "\n"), [1])
        written = tf.strings.reduce_join(turned, axis=1, separator=" < ")
        is_hard = tf.strings.regex_full_match(text, ".*hard.*")
        found = tf.where(is_hard, "", prefix + "FORCED " + written)
        return {
            "translation": found,
            "score": tf.where(is_hard, -float("inf"), -1.0),
        }


@pytest.fixture(scope="module")
def forced(run_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("forced")
    savedmodel.export(Forced(), folder / "shout")
    config = model_configs.ModelConfig("shout", folder / "shout")
    with run_server([config]) as client:
        yield client


@pytest.fixture
def questions(monkeypatch):
    """What the models are asked: signatures and texts."""
    compute, asked = execution.split_on_failure, []

    def note(version, signature, requests, *arguments):
        for one in requests:
            asked.append((signature.name, [t.decode() for t in one["text"]]))
        return compute(version, signature, requests, *arguments)

    monkeypatch.setattr(execution, "split_on_failure", note)
    return asked


def test_a_search_that_must_write_the_strings(forced, questions):
    """Each text is kept by another way: copied, forced and in pieces."""
    texts = ["copy a@b.de", "ask a@b.de and <b>.", "hard a@b.de now"]
    found = ask(forced, instances=texts, keep=["email", "tag"])
    assert found["predictions"] == [
        "COPY a@b.de",
        "FORCED <b> < a@b.de",
        "HARD a@b.de NOW",
    ]
    assert questions == [
        ("serving_default", ["copy 71", "ask 71 and 72.", "hard 71 now"]),
        ("constrained", ["ask 71 and 72.", "hard 71 now"]),
        ("serving_default", ["hard", "now"]),
    ]


def test_each_sentence_is_forced_for_itself(forced, questions):
    text = "Ask a@b.de.  See <b> and <i>!\nGo."
    found = ask(
        forced, instances=[text], keep=["email", "tag"], split_sentences=True
    )
    assert found["predictions"] == ["FORCED a@b.de  FORCED <i> < <b>\nGO."]
    assert questions[1:] == [
        ("constrained", ["Ask 71.", "See 71 and 72!"]),
    ]


def test_a_piece_that_fails(server, forgetful):
    """The model takes the text with a stand-in, and not what is beside it."""
    texts = ["a", "fail 7"]
    status, error = refused(server, instances=texts, keep=["number"])
    assert status == 400 and "I cannot" in error


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


@pytest.fixture
def slow_split(monkeypatch):
    """Two events: that a thread splits a text, and that it may end."""
    began, may_end, split = (
        threading.Event(),
        threading.Event(),
        sentences.split,
    )

    def wait(*arguments):
        began.set()
        assert may_end.wait(60)
        return split(*arguments)

    monkeypatch.setattr(sentences, "split", wait)
    yield began, may_end
    may_end.set()


def until(is_true):
    end = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_thread_counts_until_it_ends(server, slow_split, monkeypatch):
    """Its client is gone before, and the model is not asked for it."""
    monkeypatch.setattr(rewriting, "_MOST_REQUESTS", 1)
    began, may_end = slow_split
    calls, compute = [], execution.split_on_failure

    def count(*arguments):
        calls.append(arguments)
        return compute(*arguments)

    monkeypatch.setattr(execution, "split_on_failure", count)
    body = {"instances": ["a"], "split_sentences": True}
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port)
    path = "/v1/models/shout:predict"
    connection.request("POST", path, json.dumps(body))
    assert began.wait(10)
    connection.close()
    time.sleep(0.2)
    assert server.application.is_busy
    status, error = refused(server, instances=["a"], split_sentences=True)
    assert status == 429 and "Try again" in error
    may_end.set()
    until(lambda: not server.application.is_busy)
    assert not calls
    assert ask(server, instances=["a"], split_sentences=True)


def test_the_deadline_holds_between_rows(
    run_server, model_folders, monkeypatch
):
    rows, find = [], placeholders.find

    def slow_find(*arguments):
        rows.append(arguments)
        time.sleep(0.1)
        return find(*arguments)

    monkeypatch.setattr(placeholders, "find", slow_find)
    config = model_configs.ModelConfig("shout", model_folders["shout"])
    with run_server([config], settings.Limits(timeout=0.3)) as client:
        status, error = refused(client, instances=["a"] * 50, keep=["url"])
        until(lambda: not client.application.is_busy)
    assert status == 504 and "deadline" in error
    assert len(rows) < 10


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


@pytest.mark.parametrize("end", ["", "a"])
@pytest.mark.parametrize("mark", [".", "。", "?!", "！？"])
def test_no_text_is_split_for_long(mark, end):
    text = mark * (65_000 // len(mark)) + end
    start = time.process_time()
    assert "".join(sentences.split(text)) == text
    assert time.process_time() - start < 0.5


def test_many_kept_strings_are_found_soon():
    text = "a" * 65_536
    kept = ["犬", *["a" * n for n in range(1, 20)]]
    for patterns in (kept, ["a"] * 20):
        options = rewriting.Options(False, tuple(patterns))
        start = time.process_time()
        assert len(options.find(text)) == 101
        assert time.process_time() - start < 0.5
    # 71 to 9999 are taken.
    text = " ".join(map(str, range(10_000)))
    start = time.process_time()
    masked = placeholders.mask(text + " <b>" * 90, ["tag"])
    assert [*masked.kept][:2] == ["10000", "10001"]
    assert time.process_time() - start < 0.5


def test_the_options_of_a_document():
    found = rewriting.options_of({"keep": ["url", "a+b"]})
    assert found.patterns[0] == "url" and not found.split_sentences
    assert found.find("www.a.org a+b aab") == [(0, 9), (10, 13)]
    assert rewriting.options_of({"instances": ["a"]}) is None
    with pytest.raises(errors.RequestError):
        rewriting.options_of({"split_sentences": "yes"})
