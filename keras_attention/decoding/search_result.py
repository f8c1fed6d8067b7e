"""What every search returns."""

import collections

SearchResult = collections.namedtuple(
    "SearchResult",
    ["ids", "lengths", "log_probability", "score", "attention_weights"],
)
SearchResult.__doc__ = """Hypotheses of a search, best first.

- `ids`: int32 [B, N, L], END included, then PAD.
- `lengths`: int32 [B, N], END included; 0 where there is no N-th hypothesis,
  whose log-probability and score are then -1e9.
- `log_probability`: float32 [B, N], sum of the tokens' log p, END included.
- `score`: float32 [B, N], the log-probability after the penalties.
- `attention_weights`: float32 [B, N, L, S], 0 after END; S is 0 without a
  source.
"""
