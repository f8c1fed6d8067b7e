"""Structured attention: which keys are chosen, decided together."""

import keras
from keras import ops

from keras_attention.layers import attention, masks, multiplicative_attention


def chain_marginals(scores, pairwise, mask=None):
    """How probable it is that each key is chosen: `p(z_s = 1)`.

    A chain of choices z_1 ... z_S, each 0 or 1 (Kim et al. 2017, section 3.1):

    ```
    p(z) = softmax_z(sum_s scores_s z_s + sum_s pairwise[z_s, z_{s+1}])
    ```

    The forward-backward algorithm sums over all 2^S choices exactly. A message
    is what the keys on one side say of the next one: its log-odds for 1, beside
    its own score.

    Args:
        scores: [..., S].
        pairwise: [2, 2], from the choice of a key to that of the next one.
        mask: bool that broadcasts over `scores`, True where a key is in the
            chain. The chain skips the others.

    Returns:
        float32 [..., S], 0 at masked keys.

    Raises:
        ValueError: If the mask holds floats.
    """
    scores = ops.cast(scores, "float32")
    pairwise = ops.cast(pairwise, "float32")
    masks.refuse_floats(mask)
    if mask is None:
        mask = ops.ones_like(scores, dtype="bool")
    mask = ops.broadcast_to(ops.cast(mask, "bool"), ops.shape(scores))
    # One tensor, as Keras scans no two of unknown length on TensorFlow.
    keys = ops.stack([scores, ops.cast(mask, "float32")])  # [2, ..., S]
    # The second chain goes from the last key to the first.
    keys = ops.stack([keys, ops.flip(keys, axis=-1)], axis=1)  # [2, 2, ..., S]
    # Its choices follow each other the other way round.
    table = ops.stack([pairwise, ops.transpose(pairwise)])  # [2, 2, 2]
    table = ops.reshape(table, (2, 2, 2, *[1] * (len(scores.shape) - 1)))

    def step(message, key):
        score, in_chain = key[0], key[1] > 0
        odds = score + message
        following = ops.logaddexp(odds + table[:, 1, 1], table[:, 0, 1])
        following -= ops.logaddexp(odds + table[:, 1, 0], table[:, 0, 0])
        return ops.where(in_chain, following, message), message

    # The first key has no neighbour that says anything.
    nothing = ops.zeros_like(keys[0, ..., 0])
    _, messages = ops.scan(step, nothing, ops.moveaxis(keys, -1, 0))
    messages = ops.moveaxis(messages, 0, -1)  # [2, ..., S]
    messages = messages[0] + ops.flip(messages[1], axis=-1)
    chosen = ops.sigmoid(scores + messages)
    return ops.where(mask, chosen, 0.0)


@keras.saving.register_keras_serializable(package="keras_attention")
class StructuredAttention(multiplicative_attention.MultiplicativeAttention):
    """Attention to segments: a chain chooses any number of keys.

    Kim et al. 2017, sections 3.1 and 4.2:

    ```
    p(z | x, q) = softmax(sum_i theta_i(z_i) + theta_{i,i+1}(z_i, z_{i+1}))
    theta_i(1)  = score(q, x_i),  theta_i(0) = 0
    c           = sum_i p(z_i = 1 | x, q) x_i
    ```

    | paper | here |
    |---|---|
    | q, x_i | `query`, `key` and `value` |
    | theta_i(1) | `scoring`, as in `MultiplicativeAttention` |
    | theta_{i,i+1} | `pairwise`, one table [2, 2] for all places |
    | p(z_i = 1) | `attention_weights` |

    A softmax chooses one key. Here each key is chosen or not, and its
    neighbours have a say in it. `pairwise` begins with zeros. Then the keys do
    not hear each other, and each weight is the sigmoid of its score. The
    weights of a row need not sum to one.

    Args:
        scoring: "dot", "general" or "concat".
        normalized: divides the weights of a row by their sum, for models whose
            weights must sum to one. The paper's equation has no such division.
        units: width of W for "concat".
        kernel_initializer: initializer of the weights of the score.

    Call arguments, masking and returns: see `Attention`. The chain skips masked
    keys.

    Raises:
        ValueError: As `MultiplicativeAttention` does.

    Reference: https://arxiv.org/abs/1702.00887
    """

    def __init__(
        self,
        scoring="general",
        normalized=False,
        units=None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(scoring, units, kernel_initializer, **kwargs)
        self.normalized = normalized

    def build(self, query_shape, value_shape, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.pairwise = self.add_weight(
            name="pairwise", shape=(2, 2), initializer="zeros"
        )

    def attend(
        self,
        query,
        projected_key,
        value,
        padding_mask=None,
        attention_mask=None,
    ):
        mask = masks.combine_masks(padding_mask, attention_mask)
        scores = self.score(query, projected_key)  # [B, T, S]
        chosen = chain_marginals(scores, self.pairwise, mask)
        if self.normalized:
            # Not 0 / 0 for a row without a key.
            total = ops.sum(chosen, axis=-1, keepdims=True)
            chosen /= ops.maximum(total, keras.backend.epsilon())
        return attention.weighted_sum(chosen, value), chosen

    def get_config(self):
        return {**super().get_config(), "normalized": self.normalized}
