"""Search: greedy, beam, sampling and forced, over any model's `step`.

Each search takes functions and tensors and knows no model:

- `step(token_ids, memory, state)` -> `(logits [B, V], state,
  attention_weights [B, S] or [B, H, S])`, see `models.Seq2Seq`;
- `memory`: a structure whose leaves are [B, ...]; it does not change;
- `state`: a structure whose leaves are [B, ...], before the first step;
- `source_mask`: bool [B, S], True at real source tokens;
- `max_lengths`: int [B], at least 1: the most tokens of each answer, END
  included. At its limit a hypothesis can only end, so each ends in END.
  `ValueError` for another rank.

Weights of several heads are averaged. A row's result does not depend on the
other rows.
"""

from keras_attention.decoding.beam import beam_search
from keras_attention.decoding.one_path import (
    forced_search,
    greedy_search,
    sampling_search,
    truncate_distribution,
)
from keras_attention.decoding.scores import (
    SearchResult,
    coverage_penalty,
    length_penalty,
    sequence_log_probability,
)

__all__ = [
    "SearchResult",
    "beam_search",
    "coverage_penalty",
    "forced_search",
    "greedy_search",
    "length_penalty",
    "sampling_search",
    "sequence_log_probability",
    "truncate_distribution",
]
