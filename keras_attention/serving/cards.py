"""Model cards: the README.md that stands beside an exported model's versions.

`plain` writes what a model knows of itself. A training adds what it knows, in
`tasks.run_cards`.
"""

import json
import os
import pathlib
from collections.abc import Sequence

from keras_attention.config import search as searches
from keras_attention.serving import kinds

UNKNOWN = "- Data, training and scores: "
_DATA, _EXAMPLES = "- Data: ", "- Examples: "
# More examples, or longer ones, would fill the card.
_MOST_EXAMPLES, _MOST_LETTERS = 3, 100
_TRANSLATION = """\
`attention` holds one row of weights for each target token. A row sums to 1 over
the source tokens. Padding has weight 0, and so has everything that
`with_attention` gives for a blank text. A Transformer's weights are the mean of
the last layer's heads. A model without attention puts all weight on the token
that it read last: END, or the first token for `lstm_encoder_decoder`, which
reads backwards. `extended_neural_gpu` and `diagonal_neural_gpu` put the same
weight on each token.

`score` and `scores` are log-probabilities divided by the length penalty, if the
search has one. `log_probability` is not divided. Where a beam found fewer
hypotheses than it has places, the remaining `translations` are "" and their
`scores` are -inf.
"""
_CONTINUATION = """\
`continuation` is what follows `text`. It begins with a space where a word
begins. The model begins a blank text itself. `log_probability` is the sum over
the tokens of `text`, END included. The perplexity of a text is
exp(-`log_probability` / `num_tokens`). A text over the
limit is continued from its last tokens, and scored by its first ones.
"""
_STREAM = """\
`score_stream` scores a text of any number of lines. Each line is scored from
the state after the lines before it.
"""
_INSPECT = """\
`inspect` shows all layers and heads, and the best tokens of each step, for
`answer`, or for the model's own answer if that is "".
"""
_CHOICES = """
`search` and `sample` take choices of a search with each text. One that is left
out has the value of this export, where the server knows defaults.
"""
_IMAGE = """\
`image` holds rows of pixels, from 0 (white) to 1 (black). Each row of
`attention` sums to 1 over the places: the class token, then the patches.
"""
_ATTENTION = """\
The last axis of `attention` is the source's tokens: each row of weights sums to
1 over them. Padding has weight 0.
"""
_PAIR_ATTENTION = """\
`attention` has a row of weights over the pair's tokens for each token of the
text, `attention_pair` one over the text's tokens for each of the pair. Padding
has weight 0.
"""
# An output, or numbers that are read -> what it means. The first that a model
# has says it all.
_MEANINGS = {
    "image": _IMAGE,
    "translation": _TRANSLATION,
    "continuation": _CONTINUATION,
    "attention_pair": _PAIR_ATTENTION,
    "attention": _ATTENTION,
}


def noun(kind: kinds.Kind) -> str:
    """What a model reads: "text" or "picture"."""
    return "text" if kind.texts else "picture"


def introduction(kind: kinds.Kind) -> str:
    """What a SavedModel takes and gives, and what it needs."""
    return f"""\
This SavedModel takes {noun(kind)}{"" if kind.texts else "s"} and gives text. It
loads with `tensorflow` and `tensorflow_text` alone.
"""


def signatures(kind: kinds.Kind) -> str:
    """The signatures of what is exported, and how to call them."""
    rows = "\n".join(
        f"| `{name}` | {_names(signature.inputs)} | "
        f"{_names(signature.outputs)} |"
        for name, signature in kind.signatures.items()
    )
    found = {
        name
        for signature in kind.signatures.values()
        for name in (*signature.outputs, *kind.numbers)
    }
    meaning, *_ = [*(_MEANINGS[n] for n in _MEANINGS if n in found), ""]
    if kind.labels:
        meaning = (
            "`probabilities` holds one probability for each label, in this "
            f"order: {_names(kind.labels)}.\n{meaning}"
        )
    if "score_stream" in kind.signatures:
        meaning += _STREAM
    if any("answer" in one.inputs for one in kind.signatures.values()):
        meaning += _INSPECT
    if any(one.choices for one in kind.signatures.values()):
        meaning += _CHOICES
    inputs = ", ".join(f"{name}={_example(kind, name)}" for name in kind.inputs)
    return f"""\
## Signatures

| name | inputs | outputs |
|---|---|---|
{rows}

{meaning}
```python
import tensorflow as tf
import tensorflow_text  # registers the ops

model = tf.saved_model.load("VERSION").signatures["{kinds.DEFAULT}"]
model({inputs})["{kind.output}"]
```
"""


def _example(kind, name: str) -> str:
    """An input of one row, as Python."""
    if name in kind.numbers:
        return f"tf.zeros({[1, *kind.numbers[name]]})"
    return 'tf.constant(["..."])'


def _names(names) -> str:
    return ", ".join(f"`{name}`" for name in names)


def facts(graph) -> str:
    """Size, limits and search of what is exported, as a Markdown list.

    Args:
        graph: `graph.Graph`.
    """
    model = graph.model
    num_bytes = sum(
        variable.shape.num_elements() * variable.dtype.size
        for variable in graph.weights.variables
    )
    return f"""\
- Parameters: {model.count_params():,}, {num_bytes / 1e6:.2f} MB as stored \
(in {graph.stored_precision}). The model computes in {model.compute_dtype}.
{_limits(graph.kind)}{graph.facts}"""


def of_search(search: searches.Search, limits) -> str:
    """What a translator's card says of its search, as a Markdown list.

    Args:
        search: without a choice that is None.
        limits: `text_limits.Limits`.
    """
    how, more = f"beam {search.num_beams}", ""
    how += f", length penalty {search.length_penalty}"
    if search.samples:
        how = f"sampling, {search.num_beams} for `n_best`"
        more = "  Scores are plain log-probabilities.\n"
    return f"""\
- Longest translation: {limits.max_target_factor:g} tokens for each token of \
the text, and {limits.max_target_offset} more.
  A translation that reaches this length ends there. Nothing reports this.
- Search: {how}{more_of(search)}
{more}"""


def more_of(search: searches.Search) -> str:
    """What a search's line adds where it has rarer choices, or nothing.

    Args:
        search: without a choice that is None.
    """
    said = {
        "coverage_penalty": "coverage penalty {}",
        "no_repeat_ngram_size": "no {} tokens in a row twice",
        "min_length": "at least {} tokens",
        "num_groups": "{} groups",
        "diversity": "which lose {} for a token of another",
        "temperature": "tokens drawn at temperature {}",
        "top_k": "of the {} most probable",
        "top_p": "of the most probable with a share of {}",
        "min_p": "of those with {} of the greatest probability",
    }
    values = {name: getattr(search, name) for name in said}
    if search.num_groups == 1:
        del values["num_groups"]
    return "".join(
        f", {said[name].format(one)}" for name, one in values.items() if one
    )


def _limits(kind) -> str:
    """What the inputs may be, as a Markdown list."""
    shapes = "".join(
        f"- Input: {' x '.join(map(str, shape))} numbers as `{name}`.\n"
        for name, shape in kind.numbers.items()
    )
    if not kind.texts:
        return shapes
    reporting = [
        name
        for name, signature in kind.signatures.items()
        if "truncated" in signature.outputs
    ]
    return f"""\
{shapes}- Longest input: {kind.limit} tokens of a text, END included. The Python
  API and the command line reject longer texts. The bare SavedModel cuts them.
  `truncated` of {_names(reporting)} reports this, and
  `num_tokens` lets you check first.
"""


def examples(rows: Sequence) -> str:
    """A card's line with the first short rows, "" if there are none.

    Args:
        rows: texts, or tuples of texts.
    """
    short = [
        text
        for row in rows
        if len(text := json.dumps(row, ensure_ascii=False)) <= _MOST_LETTERS
        and "`" not in text
    ]
    listed = ", ".join([*dict.fromkeys(short)][:_MOST_EXAMPLES])
    return f"{_EXAMPLES}`[{listed}]`\n" if listed else ""


def read(folder: str | os.PathLike) -> dict:
    """What a card says to whoever wants to try its model.

    Args:
        folder: that of the model's versions, with README.md.

    Returns:
        "data", what the model learned from, and "examples", rows of these; as
        far as the card has them.
    """
    try:
        text = (pathlib.Path(folder) / "README.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    found = {}
    for line in text.splitlines():
        if line.startswith(_DATA):
            found["data"] = line.removeprefix(_DATA).replace("`", "")
        elif line.startswith(_EXAMPLES):
            try:
                rows = line.removeprefix(_EXAMPLES).strip("` ")
                found["examples"] = json.loads(rows)
            except ValueError:
                pass  # Somebody wrote it by hand.
    return found


def plain(graph) -> str:
    """The whole card of a model of which nothing else is known.

    Args:
        graph: what is exported, such as `Translator.graph`.
    """
    return f"""# {type(graph.model).__name__}

{introduction(graph.kind)}
{UNKNOWN}unknown. Give `export` a card that states them.
{facts(graph)}
{signatures(graph.kind)}"""


def plain_if_none(graph, folder: str | os.PathLike) -> str:
    """A plain card, or "" where a README.md with more in it is to stay.

    Args:
        graph: what is exported.
        folder: `savedmodels/NAME`.
    """
    path = pathlib.Path(os.path.expanduser(folder)) / "README.md"
    if path.exists() and UNKNOWN not in path.read_text("utf-8", "replace"):
        return ""
    return plain(graph)
