"""What all hypotheses of a text began with, kept once for the text.

The hypotheses of a beam soon descend from one of those that stood in it some
steps before. What that one had written is a part of all of them. A model that
keeps something for each token may then keep it once for the text, beside the
source, where no step copies it.
"""

import collections

from keras import ops

from keras_attention.decoding import buffers

# So many tokens are taken over at once, as joining copies all before them.
BLOCK = 32

Past = collections.namedtuple("Past", "since roots")
Past.__doc__ = """Where the hypotheses stood at an earlier position.

- `since`: int32, that position.
- `roots`: int32 [B, N], which hypothesis of that position each descends from.
"""


def begin(hypotheses):
    """Before the first position, at which all hypotheses are the same."""
    start = ops.convert_to_tensor(0, dtype="int32")
    return Past(start, hypotheses.parents)


def settle(model_settle, past, position, hypotheses, memory, state):
    """Has the model take over what is common to all, from time to time.

    Args:
        model_settle: see the package.
        past: `Past`.
        position: int scalar: so many tokens has each hypothesis read.
        hypotheses: `token_ids`, `parents` and `stopped`, see
            `positions.loop`.
        memory: of the texts that are computed.
        state: of their hypotheses, after each took over what belongs to its
            parent.

    Returns:
        `(past, memory, state)`.
    """
    roots = buffers.pick(past.roots, hypotheses.parents)
    num_hypotheses = roots.shape[1]
    agree = ops.all(roots == roots[:, :1], axis=1)
    is_common = ops.all(agree | hypotheses.stopped)

    def taken_over():
        taken = model_settle(memory, state, past.since, num_hypotheses)
        selves = ops.arange(num_hypotheses, dtype="int32")
        selves = ops.broadcast_to(selves, ops.shape(roots))
        return Past(position, selves), *taken

    return ops.cond(
        is_common & (position - past.since >= BLOCK),
        taken_over,
        lambda: (Past(past.since, roots), memory, state),
    )
