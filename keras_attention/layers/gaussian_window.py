"""Graves's window: a few Gaussians that only move forward over the keys."""

import math

import keras
from keras import ops

from keras_attention.layers import attention, masks, weights


@keras.saving.register_keras_serializable(package="keras_attention")
class GaussianWindow(attention.Attention):
    """Attention by place: a mixture of K Gaussians along the keys.

    Graves 2013, section 5.1:

    ```
    (a_t, b_t, k_t) = W h_t + b                        equation 48
    alpha_t = exp(a_t),  beta_t = exp(b_t)             equations 49, 50
    kappa_t = kappa_{t-1} + exp(k_t)                   equation 51
    phi(t, u) = sum_K alpha_t exp(-beta_t (kappa_t - u)^2)   equation 46
    w_t = sum_u phi(t, u) c_u                          equation 47
    ```

    The window cannot go back, and it reads no key: only the place counts.

    | paper | here |
    |---|---|
    | h_t, c_u | `query`, `value` |
    | W, b | `kernel`, `bias` |
    | kappa_t | `places` |
    | phi(t, u), w_t | `attention_weights`, `context` |

    The weights of a row need not sum to one, as in the paper.

    Deviations: places count from 0 and begin at -1, so that a window with steps
    of one meets each key in turn. `step_size` multiplies the steps, so that an
    untrained window can move at about the right speed.

    Args:
        num_components: K, the Gaussians; the paper has 10.
        step_size: the step of each Gaussian for W = 0 and b = 0.

    Call arguments, masking and returns: see `Attention`. Places count the keys
    themselves, masked ones included. `attend` takes `places`, as the method
    `places` gives them. A decoder that goes token by token carries the last
    ones.

    Raises:
        ValueError: If an argument is not positive, and as `Attention` does.

    Reference: https://arxiv.org/abs/1308.0850
    """

    def __init__(self, num_components=10, step_size=1.0, **kwargs):
        super().__init__(**kwargs)
        if num_components < 1 or not step_size > 0:
            raise ValueError(
                "`num_components` and `step_size` must be positive. Received: "
                f"num_components={num_components}, step_size={step_size}"
            )
        self.num_components = num_components
        self.step_size = step_size

    def build(self, query_shape, value_shape, key_shape=None):
        self.kernel = self.add_weight(
            name="kernel", shape=(query_shape[-1], 3 * self.num_components)
        )
        self.bias = self.add_weight(
            name="bias",
            shape=(3 * self.num_components,),
            initializer="zeros",
        )

    def _mixture(self, query):
        """Logarithms of alpha, beta and the steps: float32 [B, T, K] each."""
        weights.check_ready(self, query)
        parameters = ops.matmul(query, self._cast(self.kernel))
        # Places grow over a long text: half precision would lose the last keys.
        parameters = ops.cast(parameters, "float32")
        parameters += ops.cast(self.bias, "float32")
        return ops.split(parameters, 3, axis=-1)

    def places(self, query, previous=None):
        """kappa_t for each query.

        Args:
            query: [B, T, Dq].
            previous: [B, K], the places of the query before; by default there
                is none.

        Returns:
            float32 [B, T, K].
        """
        _, _, log_steps = self._mixture(query)
        steps = ops.exp(log_steps + math.log(self.step_size))
        before = -1.0 if previous is None else previous[:, None]
        return before + ops.cumsum(steps, axis=1)

    def score(self, query, projected_key, places=None):
        """log phi(t, u); its softmax over u makes phi sum to one.

        Args:
            query: [B, T, Dq].
            projected_key: [B, S, Dk]; only S counts.
            places: float32 [B, T, K], by default `places(query)`.

        Returns:
            float32 [B, T, S].
        """
        log_alpha, log_beta, _ = self._mixture(query)  # [B, T, K]
        places = self.places(query) if places is None else places
        keys = ops.arange(ops.shape(projected_key)[1])
        distances = places[..., None] - ops.cast(keys, "float32")
        beta = ops.exp(log_beta)[..., None]
        exponents = log_alpha[..., None] - beta * distances**2  # [B, T, K, S]
        return ops.logsumexp(exponents, axis=2)

    def attend(
        self,
        query,
        projected_key,
        value,
        padding_mask=None,
        attention_mask=None,
        places=None,
    ):
        mask = masks.combine_masks(padding_mask, attention_mask)
        phi = ops.exp(self.score(query, projected_key, places))  # [B, T, S]
        if mask is not None:
            phi = ops.where(ops.cast(mask, "bool"), phi, 0.0)
        return attention.weighted_sum(phi, value), phi

    def get_config(self):
        return {
            **super().get_config(),
            "num_components": self.num_components,
            "step_size": self.step_size,
        }
