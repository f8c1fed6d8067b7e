"""The Transformer without a source: one stack that continues a text."""

import math

import keras
from keras import ops

from keras_attention import layers
from keras_attention.layers import learned_positions
from keras_attention.models import language_model


def _normal(stddev):
    return keras.initializers.RandomNormal(stddev=stddev)


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerLanguageModel(language_model.LanguageModel):
    """A stack of causal self-attention (Radford et al. 2018, section 3.1).

    ```
    h^0    = D(E x + P)                                 tokens, positions
    h^l    = layer(h^{l-1})                             l = 1 ... L
    p(x_t+1 | x_<=t) = softmax(E h^L_t)
    ```

    | paper | here |
    |---|---|
    | L, layers | `num_layers` |
    | n_embd, n_head | `hidden_dim`, `num_heads` |
    | n_ctx | `max_length` |
    | W_e, W_p (2018, equation 2) | E, P |
    | the post-norm of 2018; the pre-norm of 2019 | `norm_first` False; True |

    A layer is `layers.SelfAttentionLayer`. With pre-norm one more
    normalisation stands after the last (Radford et al. 2019, section 2.3).
    `step` keeps the keys and the values of the tokens so far in a cache.

    P is learned where `max_length` is given. Without it, P are the sinusoids
    of Vaswani et al. 2017, which have no end. E x is then multiplied by
    sqrt(hidden_dim), so that the two are of one size.

    Deviations: the kernels start as Glorot's. GPT-2 draws them with a
    deviation of 0.02, and those before a sum with 0.02 / sqrt(2 L). Dropout
    acts on the embeddings and on each sublayer's output, and not on the
    attention weights. By default, the epsilon of a normalisation is 1e-6, where
    the papers' code has 1e-5. START is a token of its own, where in GPT-2 one
    token ends a text and begins the next.

    Args:
        vocabulary_size: words, or other tokens.
        num_layers: layers.
        hidden_dim: width.
        intermediate_dim: width of the feed-forward networks.
        num_heads: heads; must divide `hidden_dim`.
        max_length: the most tokens, each with a learned position. None gives
            sinusoids, and no limit.
        dropout: rate.
        norm_first: pre-norm or post-norm.
        num_key_value_heads: heads of keys and values, which query heads share;
            must divide `num_heads`. The cache is smaller by this factor. None
            gives each query head its own.
        activation: of the feed-forward networks, by name.
        epsilon: what a normalisation adds to the variance.
        control_ids: the ids of PAD, START and END, if not ours; see
            `PaperModel`.

    Raises:
        ValueError: If there is no layer, if `num_key_value_heads` does not
            divide `num_heads`, or if the tokens are known to be more than
            `max_length`. A graph that does not know how many there are gives
            NaN behind them.

    References: Radford et al. 2018, Improving Language Understanding by
    Generative Pre-Training; Radford et al. 2019, Language Models are
    Unsupervised Multitask Learners
    """

    sizes = {
        # 2 layers, 128 wide: for the embedded `sentences`.
        "mini": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 256,
            "num_heads": 4,
        },
        # 4 layers, 256 wide, with much dropout: for small data.
        "tiny": {
            "num_layers": 4,
            "hidden_dim": 256,
            "intermediate_dim": 1024,
            "num_heads": 4,
            "dropout": 0.3,
        },
        # 12 layers, 768 wide, post-norm (Radford et al. 2018, section 4.1).
        "gpt": {"max_length": 512, "norm_first": False},
        # The smallest of four sizes (Radford et al. 2019, table 2).
        "gpt2": {"max_length": 1024},
    }
    maps = {"decoder": ("target", "input")}

    def __init__(
        self,
        vocabulary_size,
        num_layers=12,
        hidden_dim=768,
        intermediate_dim=3072,
        num_heads=12,
        max_length=None,
        dropout=0.1,
        norm_first=True,
        num_key_value_heads=None,
        activation="tanh_gelu",
        epsilon=1e-6,
        control_ids=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._check_layers(num_layers)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "intermediate_dim": intermediate_dim,
            "num_heads": num_heads,
            "max_length": max_length,
            "dropout": dropout,
            "norm_first": norm_first,
            "num_key_value_heads": num_key_value_heads,
            "activation": activation,
            "epsilon": epsilon,
            "control_ids": control_ids,
        }
        if control_ids is not None:
            self.control_ids = control_ids
        self.max_length = max_length
        policy = {"dtype": self.dtype_policy}
        self._add_embeddings(vocabulary_size, hidden_dim, **policy)
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        names = ("num_heads", "intermediate_dim", "dropout", "norm_first")
        names += ("num_key_value_heads", "activation", "epsilon")
        same = {name: self.config[name] for name in names}
        self.stack = [
            layers.SelfAttentionLayer(name=f"layer_{index}", **same, **policy)
            for index in range(num_layers)
        ]
        if norm_first:
            self.norm = keras.layers.LayerNormalization(
                epsilon=epsilon, name="norm", **policy
            )

    def _add_embeddings(self, vocabulary_size, hidden_dim, **policy):
        if self.max_length is None:
            self.embedding_scale, stddev = math.sqrt(hidden_dim), 0.5
            stddev *= hidden_dim**-0.5
        else:
            self.embedding_scale, stddev = 1.0, 0.02
            self.position_embedding = keras.layers.Embedding(
                self.max_length,
                hidden_dim,
                _normal(0.01),
                name="position_embedding",
                **policy,
            )
        self.embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=_normal(stddev),
            name="embedding",
            **policy,
        )

    def _embed(self, token_ids, start=0, training=None):
        x = self.embedding(token_ids) * self.embedding_scale  # [B, T, D]
        positions = start + ops.arange(ops.shape(token_ids)[1])
        if self.max_length is None:
            encoded = layers.sinusoidal_positions(positions, x.shape[-1])
            x = x + ops.cast(encoded, x.dtype)
        else:
            x = x + learned_positions.vectors_at(
                self.position_embedding, positions, self.max_length
            )
        return self.dropout(x, training=training)

    def _logits(self, x):
        x = self.norm(x) if self.config["norm_first"] else x
        return layers.logits(self.embedding, x)

    def initial_state(self, batch_size, max_length):
        """Empty caches and position 0."""
        learned_positions.check_length(max_length, self.max_length)
        return {
            "caches": [
                layer.initial_cache(batch_size, max_length)
                for layer in self.stack
            ],
            "position": ops.zeros((batch_size,), dtype="int32"),
        }

    def step(self, token_ids, state):
        """One token, with the keys and values of those before it cached."""
        # All rows are at one position; the sum lets a batch be empty.
        position = ops.sum(state["position"][:1])
        x = self._embed(token_ids[:, None], start=position)[:, 0]  # [B, D]
        caches = []
        for layer, cache in zip(self.stack, state["caches"], strict=True):
            x, _, cache = layer.step(x, cache, position)
            caches.append(cache)
        state = {"caches": caches, "position": state["position"] + 1}
        return self._logits(x), state

    def read(self, token_ids, training=None):
        """What the stack makes of a text, and where its heads look.

        Args:
            token_ids: int [B, T].
            training: whether dropout acts.

        Returns:
            `(outputs, attention_weights)`: [B, T, D] after the last layer, and
            for each layer float32 [B, H, T, T].
        """
        learned_positions.check_length(token_ids.shape[1], self.max_length)
        x = self._embed(token_ids, training=training)
        attention_weights = []
        for layer in self.stack:
            x, layer_weights = layer(x, use_causal_mask=True, training=training)
            attention_weights.append(layer_weights)
        return x, attention_weights

    def call(self, token_ids, training=None):
        x, _ = self.read(token_ids, training)
        return self._logits(x)  # [B, T, V]

    def call_with_maps(self, token_ids, training=None):
        """See `PaperModel`."""
        x, attention_weights = self.read(token_ids, training)
        return self._logits(x), self.as_maps(ops.stack(attention_weights, 1))

    def get_config(self):
        return {**super().get_config(), **self.config}
