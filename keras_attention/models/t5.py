"""T5: text to text, with positions in the scores alone."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq


@keras.saving.register_keras_serializable(package="keras_attention")
class T5(seq2seq.Seq2Seq):
    """The text-to-text Transformer (Raffel et al. 2020, section 2.1).

    ```
    z = x + MultiHead(RMSNorm(x))               scores + b[h, bucket(s - t)]
    y = z + W_2 max(0, W_1 RMSNorm(z))
    logits = E RMSNorm(y) / sqrt(d_model)
    ```

    Encoder and decoder are the Transformer's, with these differences: nothing
    is added to the words, and each self-attention has a `BucketedBias`; the
    norm has no mean and no shift; no product has a bias.

    | paper | here |
    |---|---|
    | d_model, d_ff, d_kv | `hidden_dim`, `intermediate_dim`, `key_dim` |
    | embeddings of relative positions, 32 | `num_buckets` |
    | 128, beyond which all is one | `max_distance` |

    T5 1.1, of the same authors, has gated feed-forward networks (Shazeer 2020)
    and a matrix of its own for the logits: `activation="tanh_gelu"`,
    `gated=True`, `tied=False`. Its logits are not divided.

    `ka.models.from_pretrained` reads the weights that the authors publish.

    Deviations: each layer has biases of its own, where all layers of the paper
    share the first one's. Scores are divided by sqrt(d_kv); the paper's weights
    are smaller instead. Embeddings start at a deviation of 0.5, so that the
    first loss is ln V.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: own vocabulary of the source, or None.
        num_layers: layers of the encoder, and of the decoder.
        hidden_dim: width.
        intermediate_dim: width of the feed-forward networks.
        num_heads: heads.
        key_dim: width of each head; None for `hidden_dim / num_heads`.
        dropout: rate, on each sublayer's output and on the embeddings.
        num_decoder_layers: layers of the decoder, if not `num_layers`.
        num_buckets, max_distance: see `layers.BucketedBias`.
        activation, gated: see `layers.FeedForward`.
        tied: whether the embedding is also the matrix of the logits.
        epsilon: what a normalisation adds to the mean square.
        control_ids: the ids of PAD, START and END, if not ours; see
            `PaperModel`.

    Raises:
        ValueError: If encoder or decoder has no layer. When the model is
            built, if `num_heads` does not divide the width and there is no
            `key_dim`.

    Reference: https://arxiv.org/abs/1910.10683
    """

    sizes = {
        # 2+2 layers, 128 wide: learns `phrases` in minutes on two cores.
        "mini": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 256,
            "num_heads": 4,
        },
        # 4+4 layers, 128 wide, with much dropout: for small data.
        "tiny": {
            "num_layers": 4,
            "hidden_dim": 128,
            "intermediate_dim": 256,
            "num_heads": 4,
            "dropout": 0.3,
        },
        # The paper's Small (Raffel et al. 2020, section 3.7).
        "small": {},
        # The paper's Base (Raffel et al. 2020, section 3.1.2).
        "base": {
            "num_layers": 12,
            "hidden_dim": 768,
            "intermediate_dim": 3072,
            "num_heads": 12,
        },
    }
    maps = {
        "encoder": ("source", "source"),
        "decoder": ("target", "input"),
        "cross": ("target", "source"),
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        num_layers=6,
        hidden_dim=512,
        intermediate_dim=2048,
        num_heads=8,
        key_dim=None,
        dropout=0.1,
        num_decoder_layers=None,
        num_buckets=32,
        max_distance=128,
        activation="relu",
        gated=False,
        tied=True,
        epsilon=1e-6,
        control_ids=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_decoder_layers is None:
            num_decoder_layers = num_layers
        self._check_layers(min(num_layers, num_decoder_layers))
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "intermediate_dim": intermediate_dim,
            "num_heads": num_heads,
            "key_dim": key_dim,
            "dropout": dropout,
            "num_decoder_layers": num_decoder_layers,
            "num_buckets": num_buckets,
            "max_distance": max_distance,
            "activation": activation,
            "gated": gated,
            "tied": tied,
            "epsilon": epsilon,
            "control_ids": control_ids,
        }
        if control_ids is not None:
            self.control_ids = control_ids
        self.logit_scale = hidden_dim**-0.5 if tied else 1.0
        self._add_embeddings()
        self.dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )
        self.encoder_layers = [
            self._layer(layers.TransformerEncoderLayer, f"encoder_{index}")
            for index in range(num_layers)
        ]
        self.encoder_norm = self._norm("encoder_norm")
        self.decoder_layers = [
            self._layer(layers.TransformerDecoderLayer, f"decoder_{index}")
            for index in range(num_decoder_layers)
        ]
        self.decoder_norm = self._norm("decoder_norm")

    def _add_embeddings(self):
        tied = self.config["tied"]
        hidden_dim = self.config["hidden_dim"]
        normal = keras.initializers.RandomNormal
        stddev = 0.5 if tied else 0.5 * hidden_dim**-0.5
        self.target_embedding = self.source_embedding = (
            keras.layers.ReversibleEmbedding(
                self.config["vocabulary_size"],
                hidden_dim,
                tie_weights=tied,
                embeddings_initializer=normal(stddev=stddev),
                dtype=self.dtype_policy,
                name="embedding",
            )
        )
        if self.config["source_vocabulary_size"] is not None:
            self.source_embedding = keras.layers.Embedding(
                self.config["source_vocabulary_size"],
                hidden_dim,
                normal(stddev=stddev),
                dtype=self.dtype_policy,
                name="source",
            )

    def _layer(self, layer_class, name):
        config, policy = self.config, self.dtype_policy
        positions = layers.BucketedBias(
            config["num_buckets"],
            config["max_distance"],
            bidirectional=layer_class is layers.TransformerEncoderLayer,
            dtype=policy,
            name="bucketed_bias",
        )
        network = layers.FeedForward(
            config["intermediate_dim"],
            config["activation"],
            use_bias=False,
            gated=config["gated"],
            dtype=policy,
            name="feed_forward",
        )
        return layer_class(
            config["num_heads"],
            config["intermediate_dim"],
            config["dropout"],
            norm_first=True,
            positions=positions,
            feed_forward=network,
            use_bias=False,
            key_dim=config["key_dim"],
            normalization="rms",
            epsilon=config["epsilon"],
            dtype=policy,
            name=name,
        )

    def _norm(self, name):
        return keras.layers.RMSNormalization(
            epsilon=self.config["epsilon"], dtype=self.dtype_policy, name=name
        )

    def _logits(self, x):
        x = self.decoder_norm(x) * self.logit_scale
        return layers.logits(self.target_embedding, x)

    def _encode(self, source_ids, training=None):
        mask = layers.padding_mask(source_ids, self.control_ids["pad_id"])
        x = self.source_embedding(source_ids)
        x = self.dropout(x, training=training)
        for layer in self.encoder_layers:
            x, _ = layer(x, padding_mask=mask, training=training)
        return self.encoder_norm(x), mask

    def encode(self, source_ids, training=None):
        """Reads the source; projects it once for each decoder layer."""
        x, mask = self._encode(source_ids, training)
        return {
            "layers": [
                layer.project_memory(x) for layer in self.decoder_layers
            ],
            "mask": mask,
        }

    def initial_state(self, memory, max_length):
        """Empty caches and position 0."""
        batch_size = ops.shape(memory["mask"])[0]
        return {
            "caches": [
                layer.initial_cache(batch_size, max_length)
                for layer in self.decoder_layers
            ],
            "position": ops.zeros((batch_size,), dtype="int32"),
        }

    def step(self, token_ids, memory, state):
        """One token, with the keys and values of those before it cached.

        The attention weights are the last decoder layer's.
        """
        # All rows are at one position; the sum lets a batch be empty.
        position = ops.sum(state["position"][:1])
        x = self.target_embedding(token_ids)  # [B, D]
        caches = []
        for layer, projected_memory, cache in zip(
            self.decoder_layers, memory["layers"], state["caches"], strict=True
        ):
            x, attention_weights, cache = layer.step(
                x, projected_memory, memory["mask"], cache, position
            )
            caches.append(cache)
        state = {"caches": caches, "position": state["position"] + 1}
        return self._logits(x), state, attention_weights

    def call(self, inputs, training=None):
        logits, _ = self.call_with_attention(inputs, training)
        return logits  # [B, T, V]

    def call_with_attention(self, inputs, training=None):
        """See `Seq2Seq`. The attention weights are the last layer's."""
        memory, mask = self._encode(inputs["source_ids"], training)
        x = self.target_embedding(inputs["target_ids"])
        x = self.dropout(x, training=training)
        for layer in self.decoder_layers:
            x, attention_weights = layer(
                x, memory, memory_mask=mask, training=training
            )
        return self._logits(x), attention_weights

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`."""
        source_ids, target_ids = inputs["source_ids"], inputs["target_ids"]
        mask = layers.padding_mask(source_ids, self.control_ids["pad_id"])
        of_encoder, of_decoder = [], []
        x = self.dropout(self.source_embedding(source_ids), training=training)
        for layer in self.encoder_layers:
            x, weights = layer(x, padding_mask=mask, training=training)
            of_encoder.append(weights)  # [B, H, S, S]
        memory = self.encoder_norm(x)
        x = self.dropout(self.target_embedding(target_ids), training=training)
        for layer in self.decoder_layers:
            x, *weights = layer.call_with_both_weights(
                x, memory, memory_mask=mask, training=training
            )
            of_decoder.append(weights)  # [B, H, T, T], [B, H, T, S]
        stacks = (of_encoder, *zip(*of_decoder, strict=True))
        maps = self.as_maps(*(ops.stack(one, axis=1) for one in stacks))
        return self._logits(x), maps

    def get_config(self):
        return {**super().get_config(), **self.config}
