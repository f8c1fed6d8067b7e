"""Projections to heads and back: what multi-head attention learns."""

import itertools

import keras
from keras import ops

from keras_attention.layers import weights

# The four projections, by the beginnings of their weights' names.
PARTS = ("query", "key", "value", "output")


def check_key_value_heads(num_heads, num_key_value_heads):
    """Raises `ValueError` where the heads do not share keys evenly."""
    count = num_heads if num_key_value_heads is None else num_key_value_heads
    if count < 1 or num_heads % count:
        raise ValueError(
            "`num_key_value_heads` must divide `num_heads`, so that as many "
            "heads share each. Received: "
            f"num_key_value_heads={num_key_value_heads}, num_heads={num_heads}"
        )


class HeadProjections(keras.layers.Layer):
    """The four projections of a multi-head attention: abstract.

    Args:
        num_heads: number of heads.
        key_dim: width of each head; d_model / num_heads in the paper.
        use_bias: whether the four projections add a bias.
        kernel_initializer: initializer of the four kernels.
        num_key_value_heads: heads of keys and values; None for `num_heads`.

    Raises:
        ValueError: If `num_heads` or `key_dim` is not positive, or if
            `num_key_value_heads` does not divide `num_heads`.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        num_key_value_heads=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or key_dim < 1:
            raise ValueError(
                "`num_heads` and `key_dim` must be positive integers. "
                f"Received: num_heads={num_heads}, key_dim={key_dim}"
            )
        check_key_value_heads(num_heads, num_key_value_heads)
        self.num_heads = num_heads
        self.num_key_value_heads = num_key_value_heads or num_heads
        self.key_dim = key_dim
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.lora_rank = None

    def build(self, query_shape, value_shape=None, key_shape=None):
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        query_dim, inner_dim = query_shape[-1], self.num_heads * self.key_dim
        shared_dim = self.num_key_value_heads * self.key_dim
        self.query_kernel = self._add_kernel(
            "query_kernel", query_dim, inner_dim
        )
        self.query_bias = self._add_bias("query_bias", inner_dim)
        self.key_kernel = self._add_kernel(
            "key_kernel", key_shape[-1], shared_dim
        )
        self.key_bias = self._add_bias("key_bias", shared_dim)
        self.value_kernel = self._add_kernel(
            "value_kernel", value_shape[-1], shared_dim
        )
        self.value_bias = self._add_bias("value_bias", shared_dim)
        self.output_kernel = self._add_kernel(
            "output_kernel", inner_dim, query_dim
        )
        self.output_bias = self._add_bias("output_bias", query_dim)

    def _add_kernel(self, name, input_dim, output_dim):
        return self.add_weight(
            name=name,
            shape=(input_dim, output_dim),
            initializer=weights.another(self.kernel_initializer),
        )

    def _add_bias(self, name, output_dim):
        if not self.use_bias:
            return None
        return self.add_weight(
            name=name, shape=(output_dim,), initializer="zeros"
        )

    def enable_lora(self, rank, lora_alpha=None):
        """Trains small changes of the kernels, and nothing else of the layer.

        `W = W_0 + (alpha / r) A B`, with A [in, r] random and B [r, out] zero
        at first (Hu et al. 2022, section 4.1). Files of the layer hold W.

        Args:
            rank: r.
            lora_alpha: alpha; None for r.

        Raises:
            ValueError: If the rank is not positive, if the layer is not built,
                or if it has such changes already.

        Reference: https://arxiv.org/abs/2106.09685
        """
        weights.check_ready(self)
        if rank < 1 or self.lora_rank is not None:
            raise ValueError(
                "`rank` must be a positive integer, and LoRA can be enabled "
                f"once. Received: rank={rank}, after {self.lora_rank}"
            )
        self.lora_rank, self.lora_scale = rank, (lora_alpha or rank) / rank
        for weight in self.trainable_weights:
            weight.trainable = False
        self._tracker.unlock()
        self.lora_kernels = {}
        for part in PARTS:
            inputs, outputs = getattr(self, f"{part}_kernel").shape
            a = self.add_weight(
                name=f"{part}_lora_a",
                shape=(inputs, rank),
                initializer="he_uniform",
            )
            b = self.add_weight(
                name=f"{part}_lora_b",
                shape=(rank, outputs),
                initializer="zeros",
            )
            self.lora_kernels[part] = (a, b)
        self._tracker.lock()

    def _kernel(self, part):
        """The kernel of a projection, with its change if there is one."""
        kernel = getattr(self, f"{part}_kernel")
        if self.lora_rank is None:
            return kernel
        a, b = self.lora_kernels[part]
        return kernel + self.lora_scale * ops.matmul(a, b)

    def plain_weights(self):
        """`(weight, value)` of each weight, changes of LoRA in the values."""
        found = []
        for weight in self.weights:
            part, _, kind = weight.name.partition("_")
            if kind == "kernel" and part in PARTS:
                found.append((weight, self._kernel(part)))
            elif kind not in ("lora_a", "lora_b"):
                found.append((weight, weight))
        return found

    def _own_plain_weights(self):
        """Without those of a layer of positions, which a file holds apart."""
        own = {id(weight) for weight in self._trainable_variables}
        return [pair for pair in self.plain_weights() if id(pair[0]) in own]

    def save_own_variables(self, store):
        """A file holds no changes: they are in the kernels."""
        if self.lora_rank is None:
            super().save_own_variables(store)
            return
        for number, (_, value) in enumerate(self._own_plain_weights()):
            store[str(number)] = ops.convert_to_numpy(value)

    def load_own_variables(self, store):
        """Kernels of a file; changes begin anew."""
        if self.lora_rank is None:
            super().load_own_variables(store)
            return
        for number, (weight, _) in enumerate(self._own_plain_weights()):
            weight.assign(store[str(number)])
        for _, b in self.lora_kernels.values():
            b.assign(ops.zeros(b.shape))

    def _linear(self, inputs, kernel, bias):
        """`inputs W + b`."""
        # Keras casts by itself in `call`, but not in `project` and `step`.
        outputs = ops.matmul(inputs, ops.cast(kernel, self.compute_dtype))
        if self.use_bias:
            outputs += ops.cast(bias, self.compute_dtype)
        return outputs

    def _joined_linear(self, inputs, kernels, biases):
        """One matrix product for several projections of `inputs`."""
        outputs = self._linear(
            inputs,
            ops.concatenate(kernels, axis=1),
            ops.concatenate(biases, axis=0) if self.use_bias else None,
        )
        ends = itertools.accumulate(kernel.shape[1] for kernel in kernels)
        return ops.split(outputs, list(ends)[:-1], axis=-1)

    def _split_heads(self, inputs):
        """[B, T, heads * key_dim] -> [B, heads, T, key_dim]."""
        batch, length = ops.shape(inputs)[:2]
        num_heads = inputs.shape[-1] // self.key_dim
        heads = (batch, length, num_heads, self.key_dim)
        return ops.transpose(ops.reshape(inputs, heads), (0, 2, 1, 3))

    def _heads_of_one(self, inputs):
        """[B, heads * key_dim] -> [B, heads, 1, key_dim]."""
        num_heads = inputs.shape[-1] // self.key_dim
        return ops.reshape(inputs, (-1, num_heads, 1, self.key_dim))

    def _join_heads(self, context):
        """`Concat(...) W_O`: [B, H, T, key_dim] -> [B, T, query width]."""
        context = ops.transpose(context, (0, 2, 1, 3))
        batch, length = ops.shape(context)[:2]
        joined = (batch, length, self.num_heads * self.key_dim)
        return self._linear(
            ops.reshape(context, joined),
            self._kernel("output"),
            self.output_bias,
        )

    def _join_heads_of_one(self, context):
        """[B, H, 1, key_dim] -> [B, query width]."""
        joined = (-1, self.num_heads * self.key_dim)
        return self._linear(
            ops.reshape(context, joined),
            self._kernel("output"),
            self.output_bias,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "num_key_value_heads": self.num_key_value_heads,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
