"""Hard RNNsearch: look up one annotation, drawn by chance."""

import math

import keras
from keras import ops

from keras_attention import layers
from keras_attention.layers.attention import MASKED_SCORE
from keras_attention.models import rnnsearch


@keras.saving.register_keras_serializable(package="keras_attention")
class HardRNNSearch(rnnsearch.RNNSearch):
    """RNNsearch that looks at one place at a time (Xu et al. 2015).

    The place is drawn, not averaged (section 4.1, equations 8 and 9):

    ```
    alpha_i = softmax_j(e_ij)
    s_i     ~ alpha_i
    c_i     = h_{s_i}
    ```

    What is drawn has no gradient. Training raises a lower bound of
    log p(y | x), the mean of log p(y | s, x) over all draws (equation 10), by
    its estimated gradient: see `objective`. Whatever decides takes the place
    with the greatest alpha: the search, scores, and the loss on validation
    data. All else is as in `RNNSearch`: the other arguments, the sizes and the
    deviations.

    Deviations: the paper describes images with LSTMs. The reward of a place is
    the log-probability of the tokens from there on, as no place changes those
    before. So the baseline is one for each of these tokens. Labels are not
    smoothed.

    Args:
        vocabulary_size, source_vocabulary_size: see `RNNSearch`.
        embedding_dim, units, readout_dim, dropout: see `RNNSearch`.
        soft_share: the share of texts, chosen by chance, whose context in
            training is the mean by alpha_i, not a draw. The paper has 0.5.
        reward_weight: lambda_r. 1 is the gradient of equation 11.
        entropy_weight: lambda_e, how much the entropy of alpha_i counts.

    Reference: https://arxiv.org/abs/1502.03044
    """

    def __init__(
        self,
        *arguments,
        soft_share=0.5,
        reward_weight=1.0,
        entropy_weight=0.01,
        **kwargs,
    ):
        super().__init__(*arguments, **kwargs)
        self.config |= {
            "soft_share": soft_share,
            "reward_weight": reward_weight,
            "entropy_weight": entropy_weight,
        }
        self.seeds = keras.random.SeedGenerator()
        self.baseline = self.add_weight(
            name="baseline",
            shape=(),
            # log p of a blind guess.
            initializer=keras.initializers.Constant(
                -math.log(self.config["vocabulary_size"])
            ),
            trainable=False,
            aggregation="mean",
        )

    def initial_state(self, memory, max_length=None):
        """s_0; nothing has been drawn."""
        zeros = ops.zeros_like(memory["mask"][:, 0], dtype="float32")
        state = super().initial_state(memory)
        return {**state, "log_alpha": zeros, "entropy": zeros}

    def _advance(self, embedded, memory, state, chance=None):
        """With chance [B, S + 1], a draw; without, the greatest weight."""
        scores = self.attention.score(
            query=state["hidden"][:, None], projected_key=memory["keys"]
        )[:, 0]  # [B, S]
        scores = ops.cast(scores, "float32")
        mask = memory["mask"]
        log_alpha = ops.log_softmax(ops.where(mask, scores, MASKED_SCORE))
        alpha = ops.exp(log_alpha)
        # The greatest of log p + Gumbel noise is a draw from p.
        noise = 0.0 if chance is None else chance[:, :-1]
        place = ops.argmax(log_alpha + noise, axis=-1)[:, None]
        drawn = ops.equal(ops.arange(ops.shape(mask)[1]), place)  # [B, S]
        attention_weights = ops.cast(drawn, "float32")
        log_chosen = ops.sum(attention_weights * log_alpha, axis=-1)
        if chance is not None:
            is_soft = chance[:, -1:] > 0
            attention_weights = ops.where(is_soft, alpha, attention_weights)
            log_chosen = ops.where(is_soft[:, 0], 0.0, log_chosen)
        attention_weights = ops.where(mask, attention_weights, 0.0)
        context = layers.weighted_sum(
            attention_weights[:, None], memory["annotations"]
        )
        state = {
            **self._read(embedded, context[:, 0], state),
            "log_alpha": log_chosen,  # [B], 0 where nothing was drawn.
            "entropy": -ops.sum(alpha * log_alpha, axis=-1),  # [B]
        }
        return state, attention_weights

    def _unroll(self, embedded, memory, training):
        if not training:
            return super()._unroll(embedded, memory, training)
        batch_size, num_tokens, width = ops.shape(embedded)
        size = (batch_size, num_tokens, ops.shape(memory["mask"])[1])
        seed, dtype = self.seeds, "float32"
        # Drawn before the loop: on JAX, what a loop draws has no seed.
        uniform = keras.random.uniform(size, 1e-6, 1 - 1e-6, dtype, seed)
        gumbel = -ops.log(-ops.log(uniform))
        is_soft = keras.random.uniform((batch_size, 1, 1), 0, 1, dtype, seed)
        is_soft = ops.cast(is_soft < self.config["soft_share"], dtype)
        is_soft = ops.broadcast_to(is_soft, (batch_size, num_tokens, 1))
        # One tensor: of several of unknown length, TensorFlow makes no scan.
        inputs = ops.concatenate(
            [ops.cast(embedded, dtype), gumbel, is_soft], axis=-1
        )
        return layers.unroll(
            lambda x, state: self._advance(
                ops.cast(x[:, :width], embedded.dtype),
                memory,
                state,
                x[:, width:],
            )[0],
            self.initial_state(memory),
            inputs,
        )

    def objective(self, batch, training):
        """The estimated gradient of the mean over draws, by one draw.

        Xu et al. 2015, section 4.1, the last equation, of one text with one
        draw of its places s (N = 1):

        ```
        d L = d log p(y | s, x) + lambda_e d H[s]
              + lambda_r sum_i (R_i - b_i) d log alpha_{i, s_i}
        R_i = sum_{k >= i} log p(y_k | y_<k, s, x)
        b_i = b |{k >= i}|,  b <- 0.9 b + 0.1 mean log p(y_k | y_<k, s, x)
        ```

        b comes from the batches before, so that it changes no mean, and makes
        the estimate less noisy.

        Returns:
            The loss of each token, -log p(y_k | y_<k, s, x). Its gradient is
            -d L. The other terms are 0, and only their gradients are not.
        """
        inputs, labels, weights = batch
        real = ops.cast(weights > 0, "float32")  # [B, T]
        memory = self.encode(inputs["source_ids"], training)
        embedded = self.dropout(
            self.target_embedding(inputs["target_ids"]), training=training
        )
        states = self._unroll(embedded, memory, training)
        logits = self._logits(embedded, states, training)
        log_p = ops.take_along_axis(
            ops.log_softmax(logits), labels[..., None], axis=-1
        )[..., 0]
        log_p = ops.where(real > 0, log_p, 0.0)
        if not training:
            return {"loss": (-log_p, real)}
        reward = _sum_from_here(log_p) - self.baseline * _sum_from_here(real)
        estimated = (
            self.config["reward_weight"]
            * ops.stop_gradient(reward)
            * states["log_alpha"]
            + self.config["entropy_weight"] * states["entropy"]
        )
        mean = ops.sum(log_p) / ops.maximum(ops.sum(real), 1.0)
        has_tokens = ops.any(real > 0)
        mean = ops.where(has_tokens, ops.stop_gradient(mean), self.baseline)
        self.baseline.assign(0.9 * self.baseline + 0.1 * mean)
        loss = -log_p - (estimated - ops.stop_gradient(estimated))
        return {"loss": (loss, real)}


def _sum_from_here(x):
    """For each token, the sum over it and all later ones: [B, T]."""
    return ops.flip(ops.cumsum(ops.flip(x, axis=1), axis=1), axis=1)
