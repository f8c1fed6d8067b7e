"""Model cards: the README.md that stands beside an exported model's versions.

`plain` writes what a translator knows of itself. A training adds what it knows,
in `training.report`.
"""

import pathlib

TAKES_TEXT = """\
This SavedModel takes text and gives text. It loads with `tensorflow` and
`tensorflow_text` alone.
"""
UNKNOWN = "- Data, training and scores: "
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
reads backwards.

`score` and `scores` are log-probabilities divided by the length penalty.
`log_probability` is not divided. Where a beam found fewer hypotheses than it
has places, the remaining `translations` are "" and their `scores` are -inf.

```python
import tensorflow as tf
import tensorflow_text  # registers the ops

model = tf.saved_model.load("VERSION").signatures["serving_default"]
model(text=tf.constant(["..."]))["translation"]
```
"""


def facts(translate) -> str:
    """Size, limits and search of a translator, as a Markdown list.

    Args:
        translate: a `Translator`.
    """
    model, limits = translate.model, translate.limits
    num_bytes = sum(
        variable.shape.num_elements() * variable.dtype.size
        for variable in translate.variables
    )
    return f"""\
- Parameters: {model.count_params():,}, {num_bytes / 1e6:.2f} MB as stored \
(in {translate.stored_precision}). The model computes in {model.compute_dtype}.
- Longest input: {limits.max_source_length} tokens, END included. The Python API
  and the command line reject longer texts. The bare SavedModel translates the
  part that fits. `with_attention`, `score` and `align` report this in
  `truncated`, and `num_tokens` lets you check first.
- Longest translation: {limits.max_target_factor:g} tokens for each token of \
the text, and {limits.max_target_offset} more.
  A translation that reaches this length ends there. Nothing reports this.
- Search: beam {translate.num_beams}, length penalty {translate.length_penalty}
"""


def plain(translate) -> str:
    """The whole card of a translator of which nothing else is known.

    Args:
        translate: the `Translator` that is exported.
    """
    return f"""# {type(translate.model).__name__}

{TAKES_TEXT}
{UNKNOWN}unknown. Give `export` a card that states them.
{facts(translate)}
{SIGNATURES}"""


def plain_if_none(translate, folder) -> str:
    """A plain card, or "" where a README.md with more in it is to stay.

    Args:
        translate: the `Translator` that is exported.
        folder: `savedmodels/NAME`.
    """
    path = pathlib.Path(folder) / "README.md"
    if path.exists() and UNKNOWN not in path.read_text("utf-8", "replace"):
        return ""
    return plain(translate)
