"""The Transformer's step as a search takes it: the same, in fewer operations.

`Transformer.step` says what a step is. A step of few rows has little
arithmetic: on a CPU its time is that of TensorFlow's operations, whatever they
compute. This step gives the same numbers with a third of them. It computes
once, before the first step, what no step changes:

- A normalisation's gain and bias are parts of the product after it:
  `(g x + b) W + c = x (diag(g) W) + (b W + c)`.
- A normalisation subtracts the mean of x, and x is a sum. So each term gets
  the mean 0 beforehand, by its matrix, and x has the mean 0.
- The matrices of query, key and value are one, with 1 / sqrt(d_k) in it.

What remains of a normalisation is `x / sqrt(mean(x^2) + epsilon)`.
"""

import collections
import functools
import math

from keras import ops

from keras_attention import layers

# A decoder layer, each field a pair of a kernel and a bias.
_Layer = collections.namedtuple(
    "_Layer",
    "query_key_value output memory_query memory_output expand contract",
)


def prepare(model):
    """The step of a pre-norm `Transformer` with weights of float32.

    Args:
        model: it is built, and no part of it is quantized.

    Returns:
        `step(token_ids, memory, state)`, see `Seq2Seq`. A source has at least
        one token.
    """
    embeddings = ops.convert_to_tensor(model.target_embedding.embeddings)
    return functools.partial(
        step,
        model,
        embeddings,
        ops.transpose(embeddings),
        [_prepared(layer) for layer in model.decoder_layers],
    )


def _prepared(layer):
    """The weights of a `TransformerDecoderLayer` as a `_Layer`."""
    own, other = layer.self_attention, layer.cross_attention
    network = layer.feed_forward
    scale = 1.0 / math.sqrt(own.key_dim)
    query_key_value = (
        ops.concatenate(
            [own.query_kernel * scale, own.key_kernel, own.value_kernel], 1
        ),
        ops.concatenate(
            [own.query_bias * scale, own.key_bias, own.value_bias], 0
        ),
    )
    memory_query = (other.query_kernel * scale, other.query_bias * scale)
    expand = (network.expand.kernel, network.expand.bias)
    return _Layer(
        _after(layer.self_attention_residual.norm, *query_key_value),
        _centred(own.output_kernel, own.output_bias),
        _after(layer.cross_attention_residual.norm, *memory_query),
        _centred(other.output_kernel, other.output_bias),
        _after(layer.feed_forward_residual.norm, *expand),
        _centred(network.contract.kernel, network.contract.bias),
    )


def _after(norm, kernel, bias):
    """A product that takes in what a normalisation learned."""
    scaled = ops.reshape(norm.gamma, (-1, 1)) * kernel
    shift = ops.matmul(ops.reshape(norm.beta, (1, -1)), kernel)
    return scaled, ops.reshape(shift, (-1,)) + bias


def _centred(*weights):
    """A product whose outputs have the mean 0 in each row."""
    return [one - ops.mean(one, axis=-1, keepdims=True) for one in weights]


def _linear(x, weights):
    kernel, bias = weights
    # Not `+`: TensorFlow joins a product and `add` to one operation.
    return ops.add(ops.matmul(x, kernel), bias)


def _normalized(x, epsilon=1e-6):
    """`(x - mean(x)) / std(x)` for the mean 0."""
    square = ops.mean(ops.square(x), axis=-1, keepdims=True)
    return x * ops.rsqrt(square + epsilon)


def _attend(query, key, value, bias):
    """Weights [B, H, 1, S] and context [B, H * d_k] of one query."""
    scores = ops.einsum("bhtd,bhsd->bhts", query, key)
    weights = ops.softmax(scores if bias is None else scores + bias)
    context = ops.matmul(weights, value)  # [B, H, 1, d_k]
    _, num_heads, _, key_dim = context.shape
    return weights, ops.reshape(context, (-1, num_heads * key_dim))


def _masked(mask):
    """What is added to scores [B, H, 1, S], or None."""
    if mask is None:
        return None
    return ops.where(mask, 0.0, layers.attention.MASKED_SCORE)[:, None, None]


def step(model, embeddings, output_kernel, prepared, token_ids, memory, state):
    """`Transformer.step` with the weights that `prepare` computed."""
    position = state["position"][:1]  # All rows are at one position.
    x = ops.take(embeddings, token_ids, axis=0) * model.embedding_scale
    x = x + layers.sinusoidal_positions(position, x.shape[-1])  # [B, D]
    x = x - ops.mean(x, axis=-1, keepdims=True)
    caches, memory_bias = [], _masked(memory["mask"])
    num_heads, key_dim = memory["layers"][0][0].shape[1::2]
    for layer, (memory_key, memory_value), cache in zip(
        prepared, memory["layers"], state["caches"], strict=True
    ):
        # Attention to the tokens so far.
        heads = _linear(_normalized(x), layer.query_key_value)
        heads = ops.reshape(heads, (-1, 3 * num_heads, 1, key_dim))
        query, key, value = ops.split(heads, 3, axis=1)
        cache, mask = layers.caches.write(cache, key, value, ops.sum(position))
        _, context = _attend(query, cache.key, cache.value, _masked(mask))
        x = x + _linear(context, layer.output)
        caches.append(cache)
        # Attention to the source.
        query = _linear(_normalized(x), layer.memory_query)
        query = ops.reshape(query, (-1, num_heads, 1, key_dim))
        weights, context = _attend(query, memory_key, memory_value, memory_bias)
        x = x + _linear(context, layer.memory_output)
        # The feed-forward network.
        hidden = ops.relu(_linear(_normalized(x), layer.expand))
        x = x + _linear(hidden, layer.contract)
    x = ops.add(
        _normalized(x) * model.decoder_norm.gamma, model.decoder_norm.beta
    )
    state = {"caches": caches, "position": state["position"] + 1}
    return ops.matmul(x, output_kernel), state, weights[:, :, 0]
