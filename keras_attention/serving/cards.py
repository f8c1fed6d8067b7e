"""Model cards: the README.md that stands beside an exported model's versions.

`plain` writes what a model knows of itself. A training adds what it knows, in
`tasks.run_cards`.
"""

import os
import pathlib

TAKES_TEXT = """\
This SavedModel takes text and gives text. It loads with `tensorflow` and
`tensorflow_text` alone.
"""
UNKNOWN = "- Data, training and scores: "
_USE = """\
```python
import tensorflow as tf
import tensorflow_text  # registers the ops

model = tf.saved_model.load("VERSION").signatures["serving_default"]
model(text=tf.constant(["..."]))["{output}"]
```
"""
SIGNATURES = """\
## Signatures

| name | inputs | outputs |
|---|---|---|
| `serving_default` | `text` | `translation` |
| `greedy` | `text` | `translation` |
| `with_attention` | `text` | `translation`, `score`, `truncated`, \
`source_tokens`, `target_tokens`, `attention` |
| `n_best` | `text` | `translations`, `scores` |
| `score` | `text`, `reference` | `log_probability`, `num_tokens`, \
`truncated` |
| `align` | `text`, `reference` | `source_tokens`, `target_tokens`, \
`attention`, `num_tokens`, `truncated` |
| `num_tokens` | `text` | `num_tokens`, `limit` |

`attention` holds one row of weights for each target token. A row sums to 1 over
the source tokens. Padding has weight 0, and so has everything that
`with_attention` gives for a blank text. A Transformer's weights are the mean of
the last layer's heads. A model without attention puts all weight on the token
that it read last: END, or the first token for `lstm_encoder_decoder`, which
reads backwards. `extended_neural_gpu` puts the same weight on each token.

`score` and `scores` are log-probabilities divided by the length penalty.
`log_probability` is not divided. Where a beam found fewer hypotheses than it
has places, the remaining `translations` are "" and their `scores` are -inf.

""" + _USE.format(output="translation")
CONTINUATION_SIGNATURES = """\
## Signatures

| name | inputs | outputs |
|---|---|---|
| `serving_default` | `text` | `continuation` |
| `score` | `text` | `log_probability`, `num_tokens`, `truncated` |
| `num_tokens` | `text` | `num_tokens`, `limit` |

`continuation` is what follows `text`. It begins with a blank where a word
begins. The model begins a blank text itself. `log_probability` is the sum over
the tokens of `text`, END included. The perplexity of a text is
exp(-`log_probability` / `num_tokens`).

""" + _USE.format(output="continuation")
LABEL_SIGNATURES = """\
## Signatures

| name | inputs | outputs |
|---|---|---|
| `serving_default` | {inputs} | `label`, `probabilities` |
| `with_attention` | {inputs} | `label`, `probabilities`, `truncated`, \
{attention} |
| `num_tokens` | {inputs} | `num_tokens`, `limit` |

`probabilities` holds one probability for each label, in this order: {labels}.
{meaning}

"""
_OF_TEXT = (
    "The last axis of `attention` is the source's tokens: each row of weights "
    "sums to 1 over\nthem. Padding has weight 0."
)
_OF_PAIR = (
    "`attention` has a row of weights over the pair's tokens for each token of "
    "the text,\n`attention_pair` one over the text's tokens for each of the "
    "pair. Padding has weight 0."
)


def signatures(servable) -> str:
    """The signatures of what is exported, and how to call them.

    Args:
        servable: a `Translator`, a `Continuer` or a `Labeller`.
    """
    if servable.output == "continuation":
        return CONTINUATION_SIGNATURES
    if servable.output == "label":
        return _label_signatures(servable)
    return SIGNATURES


def _label_signatures(servable) -> str:
    is_pair = len(servable.inputs) == 2
    attention = ("source_tokens", "attention")
    if is_pair:
        attention = ("source_tokens", "pair_tokens", *attention[1:])
        attention = (*attention, "attention_pair")
    text = LABEL_SIGNATURES.format(
        inputs=_names(servable.inputs),
        attention=_names(attention),
        labels=_names(servable.classes),
        meaning=_OF_PAIR if is_pair else _OF_TEXT,
    )
    use = _USE.format(output="label")
    if is_pair:
        text_input = 'text=tf.constant(["..."])'
        use = use.replace(
            text_input, text_input + ', text_pair=tf.constant(["..."])'
        )
    return text + use


def _names(names) -> str:
    return ", ".join(f"`{name}`" for name in names)


def facts(servable) -> str:
    """Size, limits and search of what is exported, as a Markdown list.

    Args:
        servable: a `Translator`, a `Continuer` or a `Labeller`.
    """
    model = servable.model
    num_bytes = sum(
        variable.shape.num_elements() * variable.dtype.size
        for variable in servable.variables
    )
    if servable.output == "continuation":
        limits = _continuation_limits(servable)
    elif servable.output == "label":
        limits = _label_limits(servable)
    else:
        limits = _translation_limits(servable)
    return f"""\
- Parameters: {model.count_params():,}, {num_bytes / 1e6:.2f} MB as stored \
(in {servable.stored_precision}). The model computes in {model.compute_dtype}.
{limits}"""


def _translation_limits(translate) -> str:
    limits = translate.limits
    return f"""\
- Longest input: {limits.max_source_length} tokens, END included. The Python API
  and the command line reject longer texts. The bare SavedModel translates the
  part that fits. `with_attention`, `score` and `align` report this in
  `truncated`, and `num_tokens` lets you check first.
- Longest translation: {limits.max_target_factor:g} tokens for each token of \
the text, and {limits.max_target_offset} more.
  A translation that reaches this length ends there. Nothing reports this.
- Search: beam {translate.num_beams}, length penalty {translate.length_penalty}
"""


def _continuation_limits(proceed) -> str:
    return f"""\
- Longest input: {proceed.max_length} tokens, END included. The Python API and
  the command line reject longer texts. Of a longer text, the bare SavedModel
  continues the last tokens and scores the first ones. `score` reports this in
  `truncated`, and `num_tokens` lets you check first.
- Longest continuation: {proceed.max_new_tokens} tokens, END included.
- Search: greedy
"""


def _label_limits(label) -> str:
    return f"""\
- Labels: {len(label.classes)}
- Longest input: {label.max_length} tokens of a text, END included. The Python
  API and the command line reject longer texts. Of a longer text, the bare
  SavedModel reads the first tokens. `with_attention` reports this in
  `truncated`, and `num_tokens` lets you check first.
"""


def plain(servable) -> str:
    """The whole card of a model of which nothing else is known.

    Args:
        servable: the `Translator` or the `Continuer` that is exported.
    """
    return f"""# {type(servable.model).__name__}

{TAKES_TEXT}
{UNKNOWN}unknown. Give `export` a card that states them.
{facts(servable)}
{signatures(servable)}"""


def plain_if_none(servable, folder: str | os.PathLike) -> str:
    """A plain card, or "" where a README.md with more in it is to stay.

    Args:
        servable: the `Translator` or the `Continuer` that is exported.
        folder: `savedmodels/NAME`.
    """
    path = pathlib.Path(os.path.expanduser(folder)) / "README.md"
    if path.exists() and UNKNOWN not in path.read_text("utf-8", "replace"):
        return ""
    return plain(servable)
