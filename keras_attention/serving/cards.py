"""Model cards: the README.md that stands beside an exported model's versions.

`plain` is all that a translator knows of itself. What a training knows besides
is added by `reporting.model_card`.
"""

import pathlib

TAKES_TEXT = """\
A SavedModel that takes text and gives text. It loads with `tensorflow` and
`tensorflow_text` alone.
"""
UNKNOWN = (
    "- Data, training and scores: not said. Give `export` a card that does."
)
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

`attention` has for each target token a row of weights over the source tokens,
which sums to 1; where either is padding, and in `with_attention` for a blank
text, it is 0. A Transformer's is the mean of the last layer's heads. A model
without attention has its 1 on the token that it read last: END, or for
`lstm_encoder_decoder`, which reads backwards, the first one. `score` and
`scores` are log-probabilities divided by the length penalty; where fewer
hypotheses exist than the beam has, the rest are "" with -inf.
`log_probability` is not divided.

```python
import tensorflow as tf
import tensorflow_text  # registers the ops

model = tf.saved_model.load("VERSION").signatures["serving_default"]
model(text=tf.constant(["..."]))["translation"]
```
"""


def facts(translate) -> str:
    """Size, limits and search of a translator, as a list.

    Args:
        translate: a `Translator`.
    """
    model = translate.model
    num_bytes = sum(
        variable.shape.num_elements() * variable.dtype.size
        for variable in translate.variables
    )
    return f"""\
- Parameters: {model.count_params():,}, {num_bytes / 1e6:.2f} MB as stored \
(in {translate.stored_precision}); it computes in {model.compute_dtype}
- Longest input: {translate.max_source_length} tokens, END included.
  The bare SavedModel translates what fits, and says so in `truncated` or, asked
  beforehand, by `num_tokens`; the Python API and the command line refuse longer
  texts.
- Longest translation: {translate.max_target_factor:g} tokens for each token of
  the text, and {translate.max_target_offset} more. One that would be longer
  ends there, and nothing says so.
- Search: beam {translate.num_beams}, length penalty {translate.length_penalty}
"""


def plain(translate) -> str:
    """The card of a translator of which nothing else is known.

    Args:
        translate: the `Translator` that is exported.
    """
    return f"""# {type(translate.model).__name__}

{TAKES_TEXT}
{UNKNOWN}
{facts(translate)}
{SIGNATURES}"""


def plain_if_none(translate, folder) -> str:
    """A plain card, or "" where a README.md with more in it is to stay.

    Args:
        translate: the `Translator` that is exported.
        folder: `savedmodels/NAME`.
    """
    path = pathlib.Path(folder) / "README.md"
    kept = path.exists() and UNKNOWN not in path.read_text("utf-8", "replace")
    return "" if kept else plain(translate)
