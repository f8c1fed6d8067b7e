"""Many feed-forward networks, of which each token uses a few."""

import math

import keras
from keras import ops

from keras_attention.layers import masks, weights


@keras.saving.register_keras_serializable(package="keras_attention")
class MixtureOfExperts(keras.layers.Layer):
    """A sparsely gated mixture of feed-forward networks (Shazeer et al. 2017).

    ```
    y = sum_i G(x)_i E_i(x)                                     equation 1
    G(x) = softmax(KeepTopK(H(x), k))                           equation 3
    H(x)_i = (x W_g)_i + normal() * softplus((x W_noise)_i)     equation 4
    KeepTopK(v, k)_i = v_i if it is one of the k largest, else -inf     (5)
    E_i(x) = max(0, x W_1^i + b_1^i) W_2^i + b_2^i
    ```

    Only the k experts that a token chooses read it, so that more experts mean
    more weights, and as much work for a token as before. In training, noise
    chooses too, and two losses (`add_loss`) keep the experts equally busy:

    ```
    Importance(X) = sum of G(x) over the tokens x of the batch  equation 6
    Load(X)_i = sum of P(x, i) over them                        equation 10
    w_importance CV(Importance(X))^2 + w_load CV(Load(X))^2     (7), (11)
    ```

    CV is the coefficient of variation, standard deviation / mean. P(x, i) is
    the probability that x chooses i, see `choice_probability`. Tokens that
    are masked are in neither sum.

    | paper | here |
    |---|---|
    | n, experts; k | `num_experts`; `num_chosen` |
    | W_g, W_noise | `gate_kernel`, `noise_kernel`; 0 at first (appendix A) |
    | W_1^i, b_1^i | rows of `expand_kernel`, `expand_bias` |
    | W_2^i, b_2^i | rows of `contract_kernel`, `contract_bias` |
    | w_importance, w_load | `importance_weight`, `load_weight` |

    The gates are computed in float32. The choices are sorted into blocks, each
    of one expert, and all blocks are computed at once. No token is left out,
    however many choose one expert. The blocks have at most twice as many rows
    as there are choices.

    Deviations: there is no noise but in training. There is one level of gates,
    where appendix B has two. The experts are not spread over devices. What is
    balanced is the part of a batch that is computed at once: that of one
    replica and micro-batch.

    `model.quantize` leaves gates and experts as they are.

    Args:
        num_experts: experts.
        intermediate_dim: width of each expert's hidden layer.
        num_chosen: experts of a token. With 1, its gate is always 1, so that
            W_g learns from the losses of the balance alone.
        importance_weight, load_weight: factors of the two losses.
        activation: that of the hidden layers.

    Call arguments:
        inputs: [..., D].
        padding_mask: bool [...], True at real tokens. The outputs of others
            are 0.
        training: whether there are noise and losses.
        mask: bool [...]. Keras fills it in, where `padding_mask` is missing.

    Returns:
        [..., D].

    Raises:
        ValueError: If a number is not positive, or if there are fewer experts
            than a token chooses.

    Reference: https://arxiv.org/abs/1701.06538
    """

    def __init__(
        self,
        num_experts,
        intermediate_dim,
        num_chosen=2,
        importance_weight=0.1,
        load_weight=0.1,
        activation="relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if intermediate_dim < 1 or not 1 <= num_chosen <= num_experts:
            raise ValueError(
                "`intermediate_dim` and `num_chosen` must be positive "
                "integers, and `num_experts` at least `num_chosen`. Received: "
                f"num_experts={num_experts}, num_chosen={num_chosen}, "
                f"intermediate_dim={intermediate_dim}"
            )
        self.supports_masking = True
        self.num_experts = num_experts
        self.intermediate_dim = intermediate_dim
        self.num_chosen = num_chosen
        self.importance_weight = importance_weight
        self.load_weight = load_weight
        self.activation = keras.activations.get(activation)
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, inputs_shape):
        width, hidden_dim = inputs_shape[-1], self.intermediate_dim
        for name in ("gate_kernel", "noise_kernel"):
            gate = self.add_weight(
                name=name,
                shape=(width, self.num_experts),
                initializer="zeros",
                autocast=False,  # Half precision would change choices.
            )
            setattr(self, name, gate)
        self.expand_kernel = self._add_kernels(
            "expand_kernel", width, hidden_dim
        )
        self.expand_bias = self._add_biases("expand_bias", hidden_dim)
        self.contract_kernel = self._add_kernels(
            "contract_kernel", hidden_dim, width
        )
        self.contract_bias = self._add_biases("contract_bias", width)

    def _add_kernels(self, name, input_dim, output_dim):
        return self.add_weight(
            name=name,
            shape=(self.num_experts, input_dim, output_dim),
            # The widths of one expert decide how large its weights are.
            initializer=keras.initializers.GlorotUniform(
                input_axes=[1], output_axes=[2]
            ),
        )

    def _add_biases(self, name, output_dim):
        return self.add_weight(
            name=name,
            shape=(self.num_experts, 1, output_dim),
            initializer="zeros",
        )

    def gates(self, inputs):
        """G(x) without noise: which experts a token uses, and how much.

        Args:
            inputs: [..., D].

        Returns:
            float32 [..., num_experts]. Each row sums to 1, and the experts
            that are not chosen have 0.

        Raises:
            ValueError: If the layer is not built.
        """
        weights.check_ready(self, inputs)
        logits = ops.matmul(ops.cast(inputs, "float32"), self.gate_kernel)
        gates, choices = _keep_top_k(logits, self.num_chosen)
        return _spread(gates, choices, self.num_experts)

    def call(self, inputs, padding_mask=None, training=None, mask=None):
        if padding_mask is None:
            padding_mask = mask
        masks.refuse_floats(padding_mask)
        tokens = ops.reshape(inputs, (-1, inputs.shape[-1]))  # [N, D]
        is_real = 1.0
        if padding_mask is not None:
            is_real = ops.cast(ops.reshape(padding_mask, (-1, 1)), "float32")
        precise = ops.cast(tokens, "float32")
        logits = ops.matmul(precise, self.gate_kernel)  # [N, n]
        noisy_logits = logits
        if training:
            scale = ops.softplus(ops.matmul(precise, self.noise_kernel))
            scale = scale + 1e-6  # 0 would make the gradient of P NaN.
            noise = keras.random.normal(
                ops.shape(logits), seed=self.seed_generator
            )
            noisy_logits = logits + noise * scale
        gates, choices = _keep_top_k(noisy_logits, self.num_chosen)  # [N, k]
        gates = gates * is_real
        if training:
            spread = _spread(gates, choices, self.num_experts)
            probability = is_real * choice_probability(
                logits, scale, noisy_logits, self.num_chosen
            )
            importance, load = ops.sum(spread, axis=0), ops.sum(probability, 0)
            self.add_loss(
                self.importance_weight * squared_variation(importance)
                + self.load_weight * squared_variation(load)
            )
        outputs = self._outputs_of_choices(tokens, choices)  # [N, k, D]
        outputs = outputs * ops.cast(gates, outputs.dtype)[..., None]
        return ops.reshape(ops.sum(outputs, axis=1), ops.shape(inputs))

    def _outputs_of_choices(self, tokens, choices):
        """E_i(x) of the experts i that each token x chooses: [N, k, D]."""
        width = tokens.shape[-1]
        slots, experts, size = blocks_of_choices(
            ops.reshape(choices, (-1,)), self.num_experts
        )
        # A slot that no choice takes is 0.
        x = ops.scatter(
            slots[:, None],
            ops.repeat(tokens, self.num_chosen, axis=0),
            (ops.shape(experts)[0] * size, width),
        )
        x = ops.reshape(x, (-1, size, width))  # [blocks, size, D]
        x = self.activation(
            ops.matmul(x, ops.take(self.expand_kernel, experts, axis=0))
            + ops.take(self.expand_bias, experts, axis=0)
        )
        x = ops.matmul(x, ops.take(self.contract_kernel, experts, axis=0))
        x = x + ops.take(self.contract_bias, experts, axis=0)
        x = ops.take(ops.reshape(x, (-1, width)), slots, axis=0)
        return ops.reshape(x, (-1, self.num_chosen, width))

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_experts": self.num_experts,
            "intermediate_dim": self.intermediate_dim,
            "num_chosen": self.num_chosen,
            "importance_weight": self.importance_weight,
            "load_weight": self.load_weight,
            "activation": keras.activations.serialize(self.activation),
        }


def squared_variation(values):
    """CV^2: the variance of values by the square of their mean.

    It is 0 where all are equal, n - 1 where one has everything, and 0 where
    all are 0.

    Args:
        values: float [n].

    Returns:
        A scalar.
    """
    # As in the authors' program: without it, nothing but zeros would be NaN.
    epsilon = 1e-10
    return ops.var(values) / (ops.square(ops.mean(values)) + epsilon)


def choice_probability(logits, noise_scale, noisy_logits, num_chosen):
    """P(x, i): does x choose i, if the noise of i alone is drawn again?

    `P(x, i) = Phi(((x W_g)_i - kth_excluding(H(x), k, i)) / softplus((x
    W_noise)_i))` (Shazeer et al. 2017, appendix A, equation 9), where
    kth_excluding is the k-th largest of the others, and Phi the distribution
    function of the normal distribution. It has a gradient, and a count of
    choices has none.

    Args:
        logits: x W_g, float [..., n].
        noise_scale: softplus(x W_noise), float [..., n].
        noisy_logits: H(x), float [..., n].
        num_chosen: k.

    Returns:
        float [..., n]: ones where k = n.
    """
    if num_chosen == logits.shape[-1]:
        return ops.ones_like(logits)
    top, _ = ops.top_k(noisy_logits, num_chosen + 1)
    last, next_one = top[..., -2:-1], top[..., -1:]  # The k-th, the (k+1)-th.
    # A logit that is chosen is not among the others: these have one less.
    others = ops.where(noisy_logits > next_one, next_one, last)
    distance = (logits - others) / noise_scale
    return 0.5 * (1.0 + ops.erf(distance / math.sqrt(2.0)))


def blocks_of_choices(choices, num_experts):
    """Sorts choices into blocks of one size, each of one expert.

    No shape depends on the values, and nothing is left out. An expert that is
    chosen often has several blocks.

    Args:
        choices: int [P], an expert each.
        num_experts: n.

    Returns:
        `(slots, experts, size)`: the slot of each choice, int [P], the expert
        of each block, int [M], and the size of a block. The slots of block m
        are m * size, ..., m * size + size - 1.
    """
    num_choices = ops.shape(choices)[0]
    size = num_choices // num_experts + 1
    # So many at most: each expert fills all its blocks but the last one.
    num_blocks = (num_choices + num_experts * (size - 1)) // size
    is_chosen = ops.one_hot(choices, num_experts, dtype="int32")  # [P, n]
    before = ops.cumsum(is_chosen, axis=0) - is_chosen
    place = ops.sum(before * is_chosen, axis=1)
    counts = ops.sum(is_chosen, axis=0)  # [n]
    ends = ops.cumsum((counts + size - 1) // size)
    starts = ends - (counts + size - 1) // size
    slots = ops.take(starts, choices) * size + place
    passed = ops.arange(num_blocks)[:, None] >= ends[None]  # [M, n]
    experts = ops.sum(ops.cast(passed, "int32"), axis=1)
    # Blocks that stay empty come last, and have some expert.
    return slots, ops.minimum(experts, num_experts - 1), size


def _keep_top_k(logits, num_chosen):
    """Gates and experts of the largest logits: [..., n] -> two of [..., k]."""
    largest, choices = ops.top_k(logits, num_chosen)
    # `ops.softmax` warns of a row of one: k = 1 is meant here.
    powers = ops.exp(largest - largest[..., :1])
    return powers / ops.sum(powers, axis=-1, keepdims=True), choices


def _spread(gates, choices, num_experts):
    """Gates in the order of all experts: two of [..., k] -> [..., n]."""
    is_chosen = ops.one_hot(choices, num_experts, dtype=gates.dtype)
    return ops.sum(is_chosen * gates[..., None], axis=-2)
