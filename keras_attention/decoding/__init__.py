"""Search: greedy, beam, sampling and forced, over any model's `step`.

Each search takes functions and tensors and knows no model:

- `step(token_ids, memory, state)` -> `(logits [B, V], state,
  attention_weights [B, S] or [B, H, S])`, see `models.Seq2Seq`;
- `memory`: a structure whose leaves are tensors [B, ...]; it does not change;
- `state`: the same, before the first step;
- `source_mask`: bool [B, S], True at real source tokens;
- `max_lengths`: int [B], at least 1: the most tokens of each answer, END
  included. At its limit a hypothesis can only end, so each ends in END.
  `ValueError` for another rank;
- `prefix_ids`: int [B, P] or None, the tokens that each answer begins with,
  then `pad_id`. They are part of the answer and of its length. Its
  log-probability and its length penalty are about the tokens after them. A
  prefix that leaves no room for END is cut;
- `no_repeat_ngram_size`: n, or 0. No answer holds the same n tokens in a row
  twice (Paulus et al. 2017, section 2.5, with n = 3): a token that would write
  them again has log 0, and the others are not normalised again. END is always
  possible. The tokens of a prefix count, and are never refused. With 1, no
  token comes twice;
- `settle`: None, or a function `settle(memory, state, length, N)` -> `(memory,
  state)` of a beam search. The N hypotheses of a text then share one row of
  `memory`, which is [B, ...] where `state` is [B * N, ...]. Now and then, the
  first `length` tokens of all hypotheses of each text are the same. `settle`
  moves what the state holds of them into the memory. `Seq2Seq.settling` gives
  all three;
- `min_lengths`: int, or int [B], or None: the fewest tokens of each answer,
  END included. END has log 0 before, and the others are not normalised again.
  The limit goes before it, and so does a row that can only end. The tokens of
  a prefix count;
- `room`: int or None, the most tokens of any answer, none of `max_lengths`
  being more. XLA compiles a search that knows it: all tensors then keep their
  shapes, and all rows are computed to the end.

Weights of several heads are averaged. A row's result does not depend on the
other rows.

A graph of TensorFlow may not know the size of the batch. Rows that have
stopped are then left out of the step: it gets fewer tokens, and the rows of
`memory` and `state` that go with them. So whatever belongs to a row has to be
in these two. XLA cannot compile such a graph: see `room`.

A language model has no source. Its searches take
`without_source(model.step)`, an empty `memory` and `None` as `source_mask`:

```
greedy_search(
    without_source(model.step),
    memory=(),
    state=model.initial_state(batch_size, max_length),
    source_mask=None,
    max_lengths=max_lengths,
    prefix_ids=prompt_ids,
)
```

A step with a source may look nowhere. It then returns None as its weights, and
the result's weights are 0.
"""

from keras_attention.decoding.beam import beam_search
from keras_attention.decoding.beam_tree import BeamTree, beam_tree
from keras_attention.decoding.constrained import constrained_beam_search
from keras_attention.decoding.diverse import diverse_beam_search
from keras_attention.decoding.forced import (
    forced_search,
    sequence_log_probability,
)
from keras_attention.decoding.greedy import greedy_search
from keras_attention.decoding.penalties import coverage_penalty, length_penalty
from keras_attention.decoding.sampling import (
    sampling_search,
    truncate_distribution,
)
from keras_attention.decoding.search_result import SearchResult
from keras_attention.decoding.source import without_source

__all__ = [
    "BeamTree",
    "SearchResult",
    "beam_search",
    "beam_tree",
    "constrained_beam_search",
    "coverage_penalty",
    "diverse_beam_search",
    "forced_search",
    "greedy_search",
    "length_penalty",
    "sampling_search",
    "sequence_log_probability",
    "truncate_distribution",
    "without_source",
]
