"""The checks of `tutorials/your_turn` tell right answers from wrong ones.

The right ones are the solutions that stand folded in the chapters. The wrong
ones are the same solutions with a line changed, as a learner may write it.
"""

import importlib
import json
import pathlib
import re
import textwrap

import numpy as np
import pytest
import your_turn

FOLDER = pathlib.Path(__file__).parents[1] / "tutorials"


def number(path):
    """3 of `03_soft_search.py`, and "11b" of `11b_looking_back.py`."""
    found = path.name.split("_")[0]
    return int(found) if found.isdigit() else found


CHAPTERS = {number(path): path for path in FOLDER.glob("[0-9]*.py")}

# For each chapter: edits of the solution, and words of the rule they break.
BROKEN = {
    0: [
        ({"axis=1": "axis=0"}, "the axis is 1"),
        ({"argmax": "argmin"}, "the smallest"),
        ({"source[position]": "int(position)"}, "These are positions"),
    ],
    1: [
        ({"if is_real:": "if True:"}, "There is no mask"),
        ({"states.append(h)": "states.append(h := h * is_real)"},
         "forgets at padding"),
        ({"h @ u": "np.zeros(len(b))"}, "is not carried"),
        ({"np.tanh": ""}, "no tanh"),
        ({" + b)": ")"}, "no bias"),
        ({"x_t @ w + h @ u": "x_t @ u + h @ w"}, "changed places"),
        ({"x_t @ w + h @ u": "w @ x_t + u @ h"}, "transposed"),
    ],
    2: [
        ({"-(of_labels * mask).sum() / mask.sum()": "-of_labels.mean()"},
         "There is no mask"),
        ({".sum() / mask.sum()": ".mean()"}, "in the number that divides it"),
        ({"(of_labels * mask)": "of_labels"}, "counts in your sum"),
        ({".sum() / mask.sum()": ".sum(1) @ (1 / mask.sum(1)) / len(mask)"},
         "mean of the rows' means"),
        ({" / mask.sum()": ""}, "This is a sum"),
        ({"-(of": "(of"}, "The sign"),
        ({"-(of_labels * mask)": "(np.exp(of_labels) * mask)"},
         "averages -log p"),
    ],
    3: [
        ({"np.where(mask, e, -np.inf)": "e"}, "There is no mask"),
        ({"np.where(mask, e, -np.inf)": "e", ".sum()": ".sum() * mask"},
         "comes after the softmax"),
        ({"-np.inf": "0"}, "masked score of 0"),
        ({"np.where(mask": "np.where(~mask"}, "hides what is real"),
        ({" / np.exp(e).sum()": ""}, "do not sum to 1"),
        ({"np.exp(e) / np.exp(e).sum()": "np.where(mask, e, 0)"},
         "no softmax"),
        ({"np.tanh": ""}, "no tanh"),
        ({"s @ W + ": ""}, "query s is not used"),
    ],
    4: [
        ({" / np.sqrt(query.shape[1])": "",
          "np.where(mask, masked_scores, -np.inf)": "masked_scores"},
         "neither a scale nor a mask"),
        ({" / np.sqrt(query.shape[1])": ""}, "There is no scale"),
        ({"np.sqrt(query.shape[1])": "query.shape[1]"}, "You divide by d."),
        ({"/ np.sqrt(query": "* np.sqrt(query"}, "You multiply"),
        ({"np.sqrt(query.shape[1])": "np.sqrt(len(key))"}, "number of keys"),
        ({"np.where(mask, masked_scores, -np.inf)": "masked_scores"},
         "There is no mask"),
        ({"-np.inf": "0"}, "masked score of 0"),
        ({"axis=1": "axis=0"}, "wrong axis"),
        ({" / np.sqrt(query.shape[1])": "",
          "return look": "return look / np.sqrt(query.shape[1])"},
         "divide the weights"),
    ],
    5: [
        ({"np.where(np.tri(len(q), dtype=bool), look, -np.inf)": "look"},
         "There is no mask"),
        ({"np.tri(len(q), dtype=bool)": "np.tri(len(q), dtype=bool).T"},
         "wrong way round"),
        ({"np.tri(len(q), dtype=bool)": "np.tri(len(q), k=-1, dtype=bool)"},
         "must see itself"),
        ({"-np.inf": "0"}, "masked score of 0"),
        ({" / np.sqrt(q.shape[1])": "",
          "np.where(np.tri(len(q), dtype=bool), look, -np.inf)": "look"},
         "neither a scale nor a mask"),
        ({" / np.sqrt(q.shape[1])": ""}, "There is no scale"),
        ({"np.sqrt(q.shape[1])": "np.sqrt(query.shape[1])"}, "whole width"),
        ({"sum(axis=1": "sum(axis=0"}, "wrong axis"),
    ],
    6: [
        ({"peak * step / warmup": "peak"}, "There is no warm-up:"),
        ({"peak * step / warmup": "peak * np.sqrt(warmup / step)"},
         "lies above the peak"),
        ({"peak * np.sqrt(warmup / step)": "peak"}, "never falls"),
        ({"np.sqrt(warmup / step)": "warmup / step"}, "over its root"),
        ({"np.sqrt(warmup / step)": "np.sqrt(1 / step)"}, "falls at once"),
        ({"peak * ": ""}, "the peak is missing"),
        ({"step <= warmup": "step > warmup"}, "the greater of the two"),
    ],
    7: [
        ({"totals[:, None] + log_p": "log_p"}, "totals are missing"),
        ({"(-extended": "(extended"}, "The worst"),
        ({"totals[:, None] + log_p": "np.exp(totals[:, None]) + np.exp(log_p)"},
         "You add probabilities"),
        ({"totals[:, None] + log_p": "-totals[:, None] * -log_p"},
         "You multiply"),
        ({"[divmod": "list(enumerate(log_p.argmax(axis=1)))\n    [divmod"},
         "keeps its best child"),
        ({"return [": "rows = enumerate(np.argsort(-log_p)[:, :num_beams])\n"
          "    return [(n, token) for n, row in rows for token in row]\n"
          "    return ["}, "keeps its own best children"),
        ({"log_p.shape[1])": "log_p.shape[1])[::-1]"},
         "changed places"),
        ({"divmod(place, log_p.shape[1])": "place"}, "flattened table"),
    ],
    8: [
        ({"(runs & known).total()": "sum(runs[run] for run in known)"},
         "at most as often"),
        ({"/ runs.total()": "/ known.total()"}, "by the runs of the ref"),
        ({"(runs & known).total() / runs.total()":
          "len(runs & known) / len(runs)"}, "different runs"),
        ({"runs.total()": "len(words)"}, "by the number of words"),
        ({"(runs & known)": "(runs - known)"}, "unknown runs"),
        ({" / runs.total()": ""}, "a number of runs"),
    ],
    9: [
        ({"return [dict(zip(columns, row, strict=True)) for row in rows]":
          "return columns", "list(*columns.values())": "columns"},
         "columns still"),
        ({"if len(columns) == 1": "if not columns"}, "its name is left out"),
        ({"dict(zip(columns, row, strict=True))": "list(row)"},
         "names are missing"),
        ({"for row in rows]": "for row in rows][:1]",
          "values())\n    rows": "values())[:1]\n    rows"}, "first row alone"),
    ],
    10: [
        ({"np.where(mask, scores, -np.inf)": "scores"}, "There is no mask"),
        ({"np.where(mask, scores, -np.inf)": "scores",
          "keepdims=True)": "keepdims=True) * mask"}, "after the softmax"),
        ({"-np.inf": "0"}, "masked score of 0"),
        ({"axis=1": "axis=0"}, "wrong axis"),
        ({"axis=1, ": ""}, "has no axis"),
        ({"mask, scores": "mask, 0"}, "mean pooling"),
        ({"return": "shares = scores * mask\n    return"}, "no softmax"),
    ],
    11: [
        ({"sum(axis=0)": "sum(axis=1, keepdims=True)"},
         "alpha has the softmax of beta"),
        ({"axis=1, keepdims=True": "axis=0"}, "beta has the softmax of alpha"),
        ({"axis=1, keepdims=True": "axis=2", "axis=0": "axis=1, keepdims=True",
          "axis=2": "axis=0"}, "axes have changed places"),
        ({"axis=1, keepdims=True": "", "axis=0": ""}, "softmax has no axis"),
        ({" / exponentials.sum(axis=1, keepdims=True)": "",
          " / exponentials.sum(axis=0)": ""}, "do not sum to 1"),
        ({"[beta, alpha]": "[alpha, beta]"}, "alpha stands before beta"),
    ],
    "11b": [
        ({"np.tanh": ""}, "no tanh"),
        ({" + x @ W_x": ""}, "The embedding x is not used"),
        ({" + found @ W_found": ""}, "the word before found is not used"),
        ({"h @ W_h": "np.zeros_like(h)"}, "earlier words are not asked"),
        ({"h @ W_h": "c @ W_h"}, "made from the memories"),
        ({" / np.exp(a).sum()": ""}, "do not sum to 1"),
        ({"np.exp(a) / np.exp(a).sum()": "np.eye(len(a))[a.argmax()]"},
         "the best word alone"),
        ({"s @ c": "s @ h"}, "stands twice"),
        ({"[s @ h, s @ c]": "[s @ c, s @ h]"}, "stands first"),
    ],
    12: [
        ({"t - (len(kernel) - 1 - j) * dilation": "t + j * dilation"},
         "window looks ahead"),
        ({"(len(kernel) - 1 - j)": "(len(kernel) // 2 - j)"},
         "lies around word t"),
        ({"(len(kernel) - 1 - j)": "j"}, "wrong way round"),
        ({" * dilation": ""}, "no gaps"),
        ({" - 1 - j": " - j"}, "ends before word t"),
        ({"j) * dilation": "j) - dilation"}, "add the dilation"),
    ],
    13: [
        ({"places[:": "-places[:"}, "turn the other way"),
        ({" * 10000.0 ** (-2 * np.arange(d // 2) / d)": ""}, "at one speed"),
        ({"-2 * np": "-np"}, "the exponent is -2j/d"),
        ({"-2 * np": "2 * np"}, "The speeds grow"),
        ({"places[:, None] * ": ""}, "places do not count"),
        ({"np.cos(angle) - ": "np.cos(angle) + "}, "no rotation"),
    ],
    14: [
        ({"np.tri(len(tokens), dtype": "np.tri(len(tokens), k=99, dtype"},
         "no causal mask"),
        ({"== before[None, :]": "== tokens[None, :]",
          "[:, 0] = False": "[:] &= ~np.eye(len(tokens), dtype=bool)"},
         "must look at the word after it."),
        ({"== before[None, :]": "== tokens[None, :]", "[:, 0] = False": "[:]"},
         "and at the word itself"),
        ({"np.roll(tokens, 1)": "np.append(tokens[1:], -1)",
          "[:, 0] = False": "[:]"}, "the word before an equal one"),
        ({"[:, 0] = False": "[:]"}, "np.roll"),
        ({"np.tri(len(tokens), dtype": "np.tri(len(tokens), k=-1, dtype"},
         "s = t is allowed"),
        ({" / np.maximum(1, is_found.sum(axis=1, keepdims=True))": " * 1.0"},
         "do not sum to 1"),
    ],
    15: [
        ({"u = u + p": "u = p"}, "question is forgotten"),
        ({"    for ": "    first = u\n    for ", "u = u + p": "u = first + p"},
         "must be the last one plus"),
        ({"    for ": "    first = u\n    for ", "m_k @ u": "m_k @ first"},
         "asks the first question"),
        ({"u = u + p @ c_k": "return u + p @ c_k"}, "one hop only"),
        ({"np.exp(m_k @ u)": "m_k @ u", "p = p / p.sum()": "pass"},
         "There is no softmax"),
        ({"np.exp(m_k @ u)": "np.eye(len(m_k))[np.argmax(m_k @ u)]"},
         "choose one sentence"),
        ({"p @ c_k": "p @ m_k"}, "You sum m"),
        ({"np.exp(m_k @ u)": "np.exp(m_k @ u / np.sqrt(len(u)))"}, "You scale"),
    ],
    16: [
        ({"np.logaddexp(": "max("}, "best path alone"),
        ({"np.logaddexp(log_alpha[j, i], by_token)":
          "by_token + (log_alpha[j, i] if j else 0)"}, "You add logarithms"),
        ({"np.logaddexp(log_alpha[j, i], by_token)": "by_token"}, "overwrites"),
        ({" + log_blank[-1, -1]": ""}, "last blank is missing"),
        ({"log_blank[j - 1, i]": "log_blank[j, i]"}, "The blank is that"),
        ({"return log_alpha[-1, -1] + log_blank[-1, -1]":
          "return np.log(np.exp(log_alpha[-1, -1] + log_blank[-1, -1]))"},
         "get so small"),
        ({"log_token[j, i - 1]": "log_token[j, i]"}, "The token is the one"),
        ({"return log_alpha[-1, -1] + log_blank[-1, -1]":
          "return np.exp(log_alpha[-1, -1] + log_blank[-1, -1])"},
         "This is a probability"),
    ],
    17: [
        ({"np.where(scores >= threshold, np.exp(scores), 0)": "np.exp(scores)"},
         "All experts have a share"),
        ({"exponentials.sum(": "np.exp(scores).sum("}, "do not sum to 1"),
        ({"[:, -k]": "[:, k - 1]", ">=": "<="}, "the smallest"),
        ({"[:, -k]": "[:, -1]"}, "one expert"),
        ({"threshold, np.exp(scores), 0": "threshold, 1, 0"},
         "the same share"),
        ({"def gate_shares(scores, k):":
          "def gate_shares(scores, k):\n    scores, k = scores.T, "
          "min(k, len(scores))", "keepdims=True)": "keepdims=True)).T",
          "return e": "return (e"}, "The axis is wrong"),
        ({" / exponentials.sum(axis=1, keepdims=True)": ""}, "are not divided"),
    ],
    18: [
        ({"np.add.at(p, source_ids, u * looks)": "p[source_ids] += u * looks"},
         "is copied once"),
        ({"(1 - u) * w": "u * w", "u * looks": "(1 - u) * looks"},
         "wrong way round"),
        ({"(1 - u) * w": "1 * w", "u * looks": "looks"}, "switch is missing"),
        ({"    np.add": "    p[source_ids] = 0\n    np.add"}, "can be written"),
        ({"np.add.at(p, source_ids, u * looks)": ""}, "Nothing is copied"),
        ({"(1 - u) * w": "0 * w"}, "Nothing is written"),
        ({"u * looks": "looks"}, "not multiplied by u"),
    ],
}  # fmt: skip
each_chapter = pytest.mark.parametrize("chapter", BROKEN)


def folded_code(chapter, call):
    """The solution in which `your_turn` is called so; the other lines alone."""
    text = CHAPTERS[chapter].read_text("utf-8")
    (found,) = [
        code
        for code in re.findall(r"^# ```python\n(.*?)^# ```", text, re.S | re.M)
        if f"your_turn.{call}(" in code
    ]
    code = textwrap.dedent(re.sub(r"^#", "", found, flags=re.M))
    assert f"your_turn.{call}({json.dumps(chapter)}, " in code
    return code


def cell_with(chapter, call):
    """The cell in which a learner writes."""
    cells = CHAPTERS[chapter].read_text("utf-8").split("\n# %%")
    (found,) = [
        cell for cell in cells if re.search(rf"^your_turn.{call}\(", cell, re.M)
    ]
    assert found.startswith(' tags=["alone"]')
    return found.partition("\n")[2]


def run(code):
    exec(code, {"np": np, "your_turn": your_turn})


def test_every_chapter_has_a_turn():
    assert BROKEN.keys() == CHAPTERS.keys()


@each_chapter
def test_the_solution_of_a_chapter_is_right(chapter, capsys):
    run(folded_code(chapter, "check"))
    assert capsys.readouterr().out.endswith(": Right.\n")


@each_chapter
def test_the_hole_of_a_chapter_is_not_written_yet(chapter, capsys):
    run(cell_with(chapter, "check"))
    assert ": Not written yet." in capsys.readouterr().out


@pytest.mark.parametrize(
    "chapter, edits, rule",
    [(chapter, *row) for chapter, rows in BROKEN.items() for row in rows],
)
def test_a_broken_rule_is_named(chapter, edits, rule, capsys):
    code = folded_code(chapter, "check")
    for old, new in edits.items():
        assert old in code
        code = code.replace(old, new)
    run(code)
    printed = " ".join(capsys.readouterr().out.split())
    rules = vars(importlib.import_module(f"your_turn.chapter_{chapter:0>2}"))
    (named,) = [
        one for one in rules["mistakes"] if printed.endswith(f": {one}")
    ]
    assert rule in named


@each_chapter
def test_each_rule_of_a_chapter_is_broken_once(chapter):
    module = importlib.import_module(f"your_turn.chapter_{chapter:0>2}")
    words = [rule for _, rule in BROKEN[chapter]]
    for rule in module.mistakes:
        assert any(word in rule for word in words), rule


@each_chapter
def test_the_answers_of_a_chapter_are_right(chapter, capsys):
    run(folded_code(chapter, "quiz"))
    printed = capsys.readouterr().out.splitlines()
    module = importlib.import_module(f"your_turn.chapter_{chapter:0>2}")
    assert printed == [f"{letter}: right" for letter in module.answers]
    run(cell_with(chapter, "quiz"))
    assert capsys.readouterr().out.splitlines() == [
        f"{letter}: no answer yet" for letter in module.answers
    ]


def test_a_wrong_answer_is_too_large_or_too_small(capsys):
    your_turn.quiz(2, a=3, b=4.1, c=0.56)
    assert capsys.readouterr().out.splitlines() == [
        "a: 3 is too small",
        "b: 4.1 is too large",
        "c: 0.56 is too large",
    ]
    your_turn.quiz(2, a="4", b=np.float32(3.7), c=0.55)
    assert capsys.readouterr().out.startswith(
        "a: '4' is not a number\nb: right"
    )
    your_turn.quiz(2, b=3.7, c=0.55)
    assert capsys.readouterr().out.splitlines() == [
        "a: no answer yet",
        "b: right",
        "c: right",
    ]


def wrong_shapes(query, key, value, mask):
    return query @ key @ value


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda *inputs: None, "Not written yet"),
        (lambda *inputs: [...], "Not written yet"),
        (lambda query, *others: query @ "key", "It stops with "),
        (lambda query: query, "It stops with TypeError: "),
        (
            wrong_shapes,
            "It stops at `return query @ key @ value` with ValueError",
        ),
        (
            lambda query, key, value, mask: value,
            "For input 1 of 2 the result has the shape (2, 1), and (1, 1)",
        ),
        (
            lambda query, key, value, mask: np.zeros((len(query), 1)),
            "For input 1 of 2 the result is [[0.]], and [[",
        ),
        (lambda *inputs: [[1], [1, 2]], "the result has the shape (2,)"),
        (lambda *inputs: "text", "the result has the shape ()"),
    ],
)
def test_what_no_rule_describes(function, words):
    assert words in your_turn.verdict(4, function)


def test_inputs_stay_as_they_are():
    def spoils(weights, source):
        words = [source[position] for position in weights.argmax(axis=1)]
        weights[:] = 0
        source.clear()
        return words

    assert your_turn.verdict(0, spoils) == "Right."
    assert your_turn.verdict(0, spoils) == "Right."
