"""Attention as functions of tensors, then the layer that learns a score."""

import math
import typing

import keras
from keras import ops

from keras_attention.layers import masks, weights

# Below any score that a network produces, far from overflow in float32.
MASKED_SCORE = -1e9


def _softmax(scores):
    if scores.shape[-1] == 1:
        # One key is no mistake here, but Keras warns of a softmax over it.
        return ops.exp(ops.log_softmax(scores, axis=-1))
    return ops.softmax(scores, axis=-1)


def masked_softmax(scores, mask=None):
    """Turns scores into weights that sum to one over the keys.

    `weights[..., s] = exp(scores[..., s]) / sum_r exp(scores[..., r])`, the
    sum running over the unmasked keys r only.

    Args:
        scores: float tensor [..., S].
        mask: bool tensor that broadcasts over `scores`, True = attend.

    Raises:
        ValueError: If the mask holds floats.

    Returns:
        float32 tensor [..., S]. A masked key has weight exactly 0; a row
        with no key at all has weights 0 (not NaN, not uniform).
    """
    scores = ops.cast(scores, "float32")
    if mask is None:
        return _softmax(scores)
    masks.refuse_floats(mask)
    mask = ops.cast(mask, "bool")
    keep = ops.cast(mask, "float32")
    weights = _softmax(scores + (1.0 - keep) * MASKED_SCORE)
    return weights * ops.cast(ops.any(mask, axis=-1, keepdims=True), "float32")


def matmul_of_heads(left, right):
    """`left @ right`, where several heads of `left` may share one of `right`.

    Args:
        left: [..., T, S], or [B, H, T, S].
        right: [..., S, D], or [B, G, S, D] where G divides H.

    Returns:
        [..., T, D].
    """
    if len(left.shape) < 4 or left.shape[-3] == right.shape[-3]:
        return ops.matmul(left, right)
    # The rows of the heads that share are rows of one product.
    batch, num_heads, length, width = ops.shape(left)
    num_shared = right.shape[-3]
    # The number of rows said, and not -1: there may be no keys.
    joined = left.shape[-3] // num_shared * length
    rows = ops.reshape(left, (batch, num_shared, joined, width))
    product = ops.matmul(rows, right)
    shape = (batch, num_heads, length, ops.shape(right)[-1])
    return ops.reshape(product, shape)


def weighted_sum(attention_weights, value):
    """The context `c_t = sum_s attention_weights[t, s] value[s]`.

    Args:
        attention_weights: [..., T, S].
        value: [..., S, D]; heads may share one, as in `matmul_of_heads`.

    Returns:
        [..., T, D], in the dtype of `value`; float32 of integers.
    """
    if not keras.backend.is_float_dtype(value.dtype):
        value = ops.cast(value, attention_weights.dtype)
    return matmul_of_heads(ops.cast(attention_weights, value.dtype), value)


def dot_product_attention(query, key, value, mask=None, dropout=None):
    """`softmax(Q K^T / sqrt(d_k)) V` (Vaswani et al. 2017, equation 1).

    Args:
        query: [..., T, d_k].
        key: [..., S, d_k]; heads may share one, as in `matmul_of_heads`.
        value: [..., S, d_v].
        mask: bool that broadcasts over [..., T, S], True = attend.
        dropout: optional function of the weights, applied before the sum.

    Returns:
        `(context, attention_weights)`: [..., T, d_v], float32 [..., T, S].
    """
    query = query * (1.0 / math.sqrt(query.shape[-1]))
    scores = matmul_of_heads(query, ops.swapaxes(key, -1, -2))
    attention_weights = masked_softmax(scores, mask)
    used_weights = attention_weights
    if dropout is not None:
        used_weights = dropout(attention_weights)
    return weighted_sum(used_weights, value), attention_weights


def output_spec(shapes, dtype):
    """Context and weights as Keras declares them: weights are float32."""
    context_shape, weights_shape = shapes
    return (
        keras.KerasTensor(context_shape, dtype),
        keras.KerasTensor(weights_shape, "float32"),
    )


def check_separate(expected, arguments):
    """Raises `ValueError` for a list of tensors, as Keras's layers take it.

    Args:
        expected: the call as it should be.
        arguments: the arguments of the call.
    """
    for argument in arguments:
        if isinstance(argument, (list, tuple, dict)):
            raise ValueError(
                f"Each tensor goes by keyword: {expected}. Received: a "
                f"{type(argument).__name__} of {len(argument)}"
            )


def check_sequences(**tensors):
    """Raises `ValueError` for what is not [batch, length, width]."""
    for name, tensor in tensors.items():
        if tensor is not None and len(tensor.shape) != 3:
            raise ValueError(
                f"`{name}` must have the shape [batch, length, width]. A batch "
                "of single vectors has length 1. Received: shape "
                f"{tuple(tensor.shape)}"
            )


class Attention(keras.layers.Layer):
    """Soft search of a memory: abstract; a subclass learns the score.

    ```
    e_ts = score(query_t, key_s)
    a_ts = softmax_s(e_ts)
    c_t  = sum_s a_ts value_s
    ```

    A subclass implements `score`, and `project` where its score has a part
    that depends on the keys alone. A decoder calls `project` once for each
    sentence and `attend` at each step. It must build the layer before both.

    Call arguments:
        query: [B, T, Dq].
        value: [B, S, Dv].
        key: [B, S, Dk]; defaults to `value`.
        padding_mask: bool [B, S], True at real keys.
        attention_mask: bool [B, T, S] or [T, S], True where a query may
            attend.
        value_mask, key_mask: bool [B, S]. Keras fills them in.

    Returns:
        `(context, attention_weights)`: [B, T, Dv] and float32 [B, T, S].

    Masking: where `padding_mask` is not given, the mask that Keras passes
    along with value or key takes its place (that of
    `Embedding(mask_zero=True)`, say). Masked keys have weight exactly 0. Their
    values must be finite all the same. A row with every key masked has
    weights and context 0. The context has the mask of the query.

    Raises:
        ValueError: If a query, value or key is not of rank 3, if a mask has
            another rank than these or holds floats, if tensors come in a
            list, or if a method is used before the layer is built.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def __call__(self, *args, **kwargs) -> typing.Any:
        check_separate(
            "layer(query=query, value=value)", [*args, *kwargs.values()]
        )
        return super().__call__(*args, **kwargs)

    def _cast(self, weight):
        # Keras casts by itself in `call`, but not in `project` and `attend`.
        return ops.cast(weight, self.compute_dtype)

    def project(self, key):
        """The part of the score that depends on the keys alone."""
        return key

    def score(self, query, projected_key):
        """Scores [B, T, S] of queries [B, T, Dq] against projected keys."""
        raise NotImplementedError

    def attend(
        self,
        query,
        projected_key,
        value,
        padding_mask=None,
        attention_mask=None,
    ):
        """Like calling the layer, with keys that `project` has seen.

        It reads the masks that it is given, and none that Keras passes along.
        """
        weights.check_ready(self)
        mask = masks.combine_masks(padding_mask, attention_mask)
        scores = self.score(query, projected_key)  # [B, T, S]
        attention_weights = masked_softmax(scores, mask)  # [B, T, S]
        return weighted_sum(attention_weights, value), attention_weights

    def call(
        self,
        query,
        value,
        key=None,
        padding_mask=None,
        attention_mask=None,
        value_mask=None,
        key_mask=None,
    ):
        check_sequences(query=query, value=value, key=key)
        key = value if key is None else key
        if padding_mask is None:
            padding_mask = masks.either_or_both(value_mask, key_mask)
        return self.attend(
            query=query,
            projected_key=self.project(key),
            value=value,
            padding_mask=padding_mask,
            attention_mask=attention_mask,
        )

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        batch, target_length = query_shape[:2]
        return (
            (batch, target_length, value_shape[-1]),
            (batch, target_length, value_shape[1]),
        )

    def compute_output_spec(self, query, value, key=None, *args, **kwargs):
        check_sequences(query=query, value=value, key=key)
        masks.refuse_floats(*args, *kwargs.values())
        shapes = self.compute_output_shape(query.shape, value.shape)
        # `weighted_sum` of integers is float32.
        is_float = keras.backend.is_float_dtype(value.dtype)
        dtype = self.compute_dtype if is_float else "float32"
        return output_spec(shapes, dtype)
