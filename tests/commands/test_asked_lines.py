"""A line without an answer costs no other line its answer."""

import io
import types

import pytest

from keras_attention import cli, config, runs
from keras_attention.commands import asked_lines, predict
from keras_attention.training import run_directory


class Model:
    """It answers with the number of its texts, and takes five letters each."""

    num_beams = 1

    def __init__(self, *inputs):
        self.task = "entailment" if len(inputs) > 1 else "translation"
        self.kind = types.SimpleNamespace(inputs=inputs, numbers={})

    def too_long(self, rows):
        lengths = [len("".join(row)) for row in rows]
        return {n: (size, 5) for n, size in enumerate(lengths, 1) if size > 5}

    def n_best(self, rows, truncate):
        raise NotImplementedError

    def __call__(self, rows, truncate=False):
        assert truncate or not self.too_long(rows)
        assert len(self.kind.inputs) == 1 or all(map(" ".join, rows))
        return ["+".join(row).upper() for row in rows]


PAIRS = ["a\tb", "", "no tab", "c\td", "a\tb\tc", "eeeee\teeeee", "\t", "x\ty"]


@pytest.mark.parametrize(
    "inputs, lines, expected, problems",
    [
        (["text"], ["ab", "", "abcdef"], ["A+B", "", ""], {3: "6 tokens"}),
        (
            ["text", "text_pair"],
            PAIRS,
            ["A+B", "", "", "C+D", "", "", "+", "X+Y"],
            {2: "blank", 3: "the line must", 5: "the line", 6: "10 tokens"},
        ),
        (["text", "text_pair"], [], [], {}),
        (
            ["text", "text_pair"],
            ["", "x"],
            ["", ""],
            {1: "blank", 2: "the line must"},
        ),
    ],
)
def test_the_other_lines_have_their_answers(inputs, lines, expected, problems):
    asked = asked_lines.of(Model(*inputs), lines, predict.DEFAULTS)
    groups, found = asked.written(asked.ask(asked.rows)), asked.problems
    assert [line for group in groups for line in group] == expected
    assert found.keys() == problems.keys()
    assert all(found[line].startswith(problems[line]) for line in problems)


def test_sentences_and_what_is_kept():
    """What is too long is a sentence with its stand-ins, not the line."""
    options = predict.Options(split_sentences=True)
    lines = ["Aa. Bb.  Cc?", "a. abcdef", ""]
    asked = asked_lines.of(Model("text"), lines, options)
    found = asked.ask(asked.rows)
    assert found == ["A+A+. B+B+.  C+C+?", ""]
    assert asked.problems.keys() == {2}
    options = predict.Options(keep="url; x+ ;", split_sentences=True)
    assert options.kept == ["url", "x+"]

    class Translator(Model):
        signatures = ()

        def __call__(self, rows, num_beams, batch_size, truncate):
            assert not self.too_long(rows)
            return [row.upper() for row in rows]

    lines = ["a http://x.org.", "Bb! B www.x.org/abcdef ", "abcdef"]
    asked = asked_lines.of(Translator("text"), lines, options)
    found = asked.ask(asked.rows)
    assert found == ["A http://x.org.", "BB! B www.x.org/abcdef "]
    assert asked.problems.keys() == {3}


def test_a_mistyped_pattern_is_named(capsys):
    calls = []

    def texts():
        calls.append(1)
        return iter(["abc", "5 numbrs"])

    # Names, what finds something, and what is close to no name.
    asked_lines.name_mistyped(["url", "numbrs", "Zyrblatt"], texts)
    assert calls == [1]
    assert capsys.readouterr().err == ""
    asked_lines.name_mistyped(["numbr", "numbers", "tags"], texts)
    assert capsys.readouterr().err == (
        "numbers finds nothing (did you mean number?).\n"
        "tags finds nothing (did you mean tag?).\n"
    )


def test_a_mistyped_pattern_is_named_by_the_command(
    monkeypatch, tmp_path, capsys
):
    class Translator(Model):
        signatures = ()

        def __call__(self, rows, num_beams=None, **options):
            return [row.upper() for row in rows]

    (tmp_path / "config.yaml").write_text("corpus: gone\n")
    loaded = Translator("text")
    monkeypatch.setattr(runs, "load", lambda *_, **choices: loaded)
    cli.main(["predict", str(tmp_path), "a 5", "b", "--keep", "numbr; x"])
    found = capsys.readouterr()
    assert found.out == "A 5\nB\n"
    assert found.err == "numbr finds nothing (did you mean number?).\n"


def test_a_stand_in_is_of_what_is_kept(tmp_path):
    (tmp_path / "config.yaml").write_text("corpus: gone\n")
    words = [str(tmp_path), "a", "--stand_in", "X{}"]
    with pytest.raises(SystemExit, match="Add --keep, or leave --stand_in"):
        cli.main(["predict", *words])


def test_a_sentence_does_not_end_in_what_is_kept():
    class Translator(Model):
        signatures = ()

        def __call__(self, rows, num_beams, batch_size, truncate):
            assert not self.too_long(rows)
            return [row.upper() for row in rows]

    options = predict.Options(keep="tag", split_sentences=True)
    line = 'a <i alt="Dogs. A cat."> b. <b>C'
    asked = asked_lines.of(Translator("text"), [line], options)
    assert asked.problems.keys() == {1}  # "a 71 b."
    line = line.replace(" b.", "!")
    asked = asked_lines.of(Translator("text"), [line], options)
    assert not asked.problems
    assert asked.ask(asked.rows) == [
        line.upper()
        .replace("<B>", "<b>")
        .replace('<I ALT="DOGS. A CAT.">', '<i alt="Dogs. A cat.">')
    ]


@pytest.mark.parametrize("num_beams", [1, 2])
def test_what_is_kept_may_be_asked_with_other_beams(num_beams):
    class Translator(Model):
        signatures, num_beams = (), 4

        def __call__(self, rows, num_beams, batch_size, truncate):
            return [f"{num_beams} {row}" for row in rows]

    options = predict.Options(keep="tag", num_beams=num_beams)
    asked = asked_lines.of(Translator("text"), ["<b>"], options)
    assert asked.ask(asked.rows) == [f"{num_beams} <b>"]


def test_a_bad_line_has_as_many_lines_as_any_other():
    class Translator(Model):
        num_beams = 2

        def n_best(self, rows, truncate):
            return [[(row.upper(), -1.0)] for row in rows]

    options = predict.Options(n_best=2)
    asked = asked_lines.of(Translator("text"), ["a", "abcdef", "b"], options)
    groups = asked.written(asked.ask(asked.rows))
    assert [*groups] == [["A", ""], ["", ""], ["B", ""]]


@pytest.mark.parametrize("verb", ["predict", "translate"])
def test_bad_lines_of_standard_input_are_named_at_the_end(
    monkeypatch, tmp_path, capsys, verb
):
    (tmp_path / "config.yaml").write_text("corpus: gone\n")
    monkeypatch.setattr(runs, "load", lambda *_: Model("premise", "hypothesis"))
    content = io.BytesIO("\n".join(PAIRS).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content))
    with pytest.raises(SystemExit) as error:
        cli.main([verb, str(tmp_path)])
    assert capsys.readouterr().out == "A+B\n\n\nC+D\n\n\n+\nX+Y\n"
    message = str(error.value)
    assert message.startswith(f"keras-attention {verb}: 4 of 8 lines could")
    assert "line 3: the line must hold 2 texts (premise TAB hyp" in message


def test_an_error_names_a_few_of_many_lines():
    problems = dict.fromkeys(range(1, 1001), "blank")
    with pytest.raises(ValueError, match="1000 of 2000 .* and 995 more") as e:
        asked_lines.refuse(problems, 2000)
    assert len(str(e.value)) < 200
    asked_lines.refuse({}, 0)


@pytest.mark.parametrize(
    "way", [{"terms": "a"}, {"prefix": "a"}, {"n_best": 1}]
)
def test_a_savedmodel_has_its_own_beams(way):
    asked_lines.of(Model("text"), [], predict.Options(num_beams=1, **way))
    with pytest.raises(ValueError, match="own 1 beams, not of 16"):
        asked_lines.of(Model("text"), [], predict.Options(num_beams=16, **way))


def test_who_draws_is_said():
    options = predict.Options(temperature=1.0)
    with pytest.raises(ValueError, match="Only translation and language mod"):
        asked_lines.of(Model("a", "b"), [], options)


@pytest.mark.parametrize("options", [{"n_best": 2}, {"length_penalty": 0}])
def test_a_search_is_for_translators(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"translation models take --{name};"):
        asked_lines.of(Model("a", "b"), [], predict.Options(**options))


@pytest.mark.parametrize(
    "options, names",
    [
        ({}, {"serving_default"}),
        ({"num_beams": 1}, {"serving_default", "greedy"}),
        ({"n_best": 2}, {"n_best"}),
        ({"scores": True, "num_beams": 4}, {"n_best"}),
        ({"attention": "a.png"}, {"serving_default", "with_attention"}),
    ],
)
def test_the_signatures_that_are_loaded_are_those_asked(options, names):
    assert asked_lines.signatures(predict.Options(**options)) == names


def test_one_beam_of_a_run_that_draws_is_not_greedy():
    """The run has been loaded with the beam, and is asked as it is."""
    options = predict.Options(num_beams=1, temperature=1.0)
    asked = asked_lines.of(Model("text"), ["ab"], options)
    assert asked.ask.keywords == {"truncate": False}


@pytest.mark.parametrize(
    ("model", "more", "expected"),
    [
        ("transformer", {}, True),
        ("transformer", {"num_beams": 1}, True),
        ("transformer", {"temperature": 1.0}, False),
        ("rnn_language_model", {}, False),
    ],
)
def test_nobody_reads_of_constraints_who_asked_to_keep(
    tmp_path, monkeypatch, model, more, expected
):
    choices = config.resolve(config.make(model=model))
    run_directory.write_config(run_directory.at(tmp_path), choices)
    loaded = Model("text")
    loaded.task, given = choices.task, []
    monkeypatch.setattr(
        runs, "load", lambda path, **search: given.append(search) or loaded
    )
    options = predict.Options(keep="tag", **more)
    arguments = predict.app, str(tmp_path), ["a"], (), options
    if choices.task == "translation":
        predict.read(*arguments)
    else:
        with pytest.raises(ValueError, match="models take --keep; this"):
            predict.read(*arguments)
    assert given == [more | ({"constraints": True} if expected else {})]
