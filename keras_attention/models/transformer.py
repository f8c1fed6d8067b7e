"""The Transformer: attention is all you need."""

import functools
import math

import keras
from keras import ops

from keras_attention import layers
from keras_attention.layers import caches as layer_caches
from keras_attention.models import seq2seq


def _serialized(layer):
    """A layer as a dict; what is none stays as it is."""
    if isinstance(layer, keras.Layer):
        return keras.saving.serialize_keras_object(layer)
    return layer


def _embedding(size, hidden_dim, **kwargs):
    """One matrix for tokens in and, turned round, for logits out."""
    return keras.layers.ReversibleEmbedding(
        size,
        hidden_dim,
        embeddings_initializer=keras.initializers.RandomNormal(
            stddev=0.5 * hidden_dim**-0.5
        ),
        **kwargs,
    )


@keras.saving.register_keras_serializable(package="keras_attention")
class Transformer(seq2seq.Seq2Seq):
    """Encoder and decoder of attention alone (Vaswani et al. 2017, fig. 1).

    | paper | here |
    |---|---|
    | N | `num_layers` |
    | d_model, d_ff | `hidden_dim`, `intermediate_dim` |
    | h | `num_heads` |
    | P_drop | `dropout`: on each sublayer's output and on the embeddings |

    With one joint vocabulary the two embeddings and the output share one
    matrix (3.4); with `source_vocabulary_size` given, the source has its
    own. Embeddings are multiplied by sqrt(d_model) (3.4).

    Deviations: embeddings start at half of 1/sqrt(d_model), so that the
    first loss is ln V; `norm_first=True` (the default here) normalises
    before each sublayer and once at the end, which trains without care
    about warm-up. `norm_first=False` is the paper's.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: own vocabulary of the source, or None.
        num_layers: layers of the encoder, and of the decoder.
        hidden_dim: width.
        intermediate_dim: width of the feed-forward networks.
        num_heads: heads; must divide `hidden_dim`.
        dropout: rate.
        norm_first: pre-norm or post-norm.
        feed_forward: a layer in place of the feed-forward networks, such as a
            `MixtureOfExperts`, or the dict by which Keras serializes it. Each
            layer gets one of its own. `intermediate_dim` has no meaning then.
        num_decoder_layers: layers of the decoder, if not `num_layers`.
        activation: of the feed-forward networks, by name.
        epsilon: what a normalisation adds to the variance.
        control_ids: the ids of PAD, START and END, if not ours; see
            `PaperModel`.

    Raises:
        ValueError: If encoder or decoder has no layer, or if `feed_forward`
            names none.

    Reference: https://arxiv.org/abs/1706.03762
    """

    sizes = {
        # 2+2 layers, 128 wide: learns `phrases` in minutes on two cores.
        "mini": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 256,
            "num_heads": 4,
            "dropout": 0.1,
        },
        # 4+4 layers, 128 wide: for small data. The tiny model of Wu et al.
        # 2021, https://arxiv.org/abs/2105.14462
        "tiny": {
            "num_layers": 4,
            "hidden_dim": 128,
            "intermediate_dim": 256,
            "num_heads": 4,
            "dropout": 0.3,
        },
        # The paper's base model (Vaswani et al. 2017, table 3).
        "base": {"norm_first": False},
        # The paper's big model (Vaswani et al. 2017, table 3).
        "big": {
            "hidden_dim": 1024,
            "intermediate_dim": 4096,
            "num_heads": 16,
            "dropout": 0.3,
            "norm_first": False,
        },
    }
    maps = {
        "encoder": ("source", "source"),
        "decoder": ("target", "input"),
        "cross": ("target", "source"),
    }
    # Those of a `TransformerLanguageModel`.
    language_model_names = {"layer_": "decoder_", "norm/": "decoder_norm/"}

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        num_layers=6,
        hidden_dim=512,
        intermediate_dim=2048,
        num_heads=8,
        dropout=0.1,
        norm_first=True,
        feed_forward=None,
        num_decoder_layers=None,
        activation="relu",
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
            "dropout": dropout,
            "norm_first": norm_first,
            "feed_forward": _serialized(feed_forward),
            "num_decoder_layers": num_decoder_layers,
            "activation": activation,
            "epsilon": epsilon,
            "control_ids": control_ids,
        }
        if control_ids is not None:
            self.control_ids = control_ids
        self.norm_first = norm_first
        self._add_embeddings(vocabulary_size, source_vocabulary_size)
        self.position_encoding = self._word_positions()
        self.dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )
        self.encoder_layers = [
            self._layer(layers.TransformerEncoderLayer, f"encoder_{index}")
            for index in range(num_layers)
        ]
        self.decoder_layers = [
            self._layer(layers.TransformerDecoderLayer, f"decoder_{index}")
            for index in range(num_decoder_layers)
        ]
        if norm_first:
            self.encoder_norm = self._norm("encoder_norm")
            self.decoder_norm = self._norm("decoder_norm")
        network = self.encoder_layers[0].feed_forward
        if isinstance(network, layers.MixtureOfExperts):
            self.maps = MAPS_WITH_EXPERTS

    def _add_embeddings(self, vocabulary_size, source_vocabulary_size):
        hidden_dim, policy = self.config["hidden_dim"], self.dtype_policy
        self.embedding_scale = math.sqrt(hidden_dim)
        self.target_embedding = _embedding(
            vocabulary_size, hidden_dim, dtype=policy, name="embedding"
        )
        self.source_embedding = self.target_embedding
        if source_vocabulary_size is not None:
            self.source_embedding = _embedding(
                source_vocabulary_size, hidden_dim, dtype=policy, name="source"
            )

    def _norm(self, name):
        return keras.layers.LayerNormalization(
            epsilon=self.config["epsilon"], dtype=self.dtype_policy, name=name
        )

    def _layer(self, layer_class, name):
        names = ("num_heads", "intermediate_dim", "dropout", "norm_first")
        names += ("activation", "epsilon")
        return layer_class(
            **{name: self.config[name] for name in names},
            positions=self._attention_positions(),
            feed_forward=self._feed_forward(),
            dtype=self.dtype_policy,
            name=name,
        )

    def _feed_forward(self):
        """What a layer has in place of its feed-forward network, or None."""
        given = self.config["feed_forward"]
        if given is None:
            return None
        if not isinstance(given, dict) or "class_name" not in given:
            raise ValueError(
                "`feed_forward` needs the `class_name` of a layer, such as "
                "keras_attention>MixtureOfExperts, and the `config` of its "
                f"arguments. Received: feed_forward={given!r}"
            )
        config = {
            "dtype": self.dtype_policy.name,
            **given.get("config", {}),
            "name": "feed_forward",  # The same in every process.
        }
        return keras.saving.deserialize_keras_object(
            {**given, "config": config}
        )

    def _word_positions(self):
        """What adds positions to the words (3.5), or None."""
        return layers.PositionEncoding(
            dtype=self.dtype_policy, name="position_encoding"
        )

    def _attention_positions(self):
        """What each self-attention knows of positions: here nothing."""
        return None

    def _embed(self, embedding, token_ids, start=0, training=None):
        x = embedding(token_ids) * self.embedding_scale  # [B, T, D]
        if self.position_encoding is not None:
            x = self.position_encoding(x, start=start)
        return self.dropout(x, training=training)

    def _logits(self, x, kernel=None):
        x = self.decoder_norm(x) if self.norm_first else x
        if kernel is None:
            return layers.logits(self.target_embedding, x)
        return ops.cast(ops.matmul(x, kernel), "float32")

    def _encode(self, source_ids, training):
        mask = layers.padding_mask(source_ids, self.control_ids["pad_id"])
        x = self._embed(self.source_embedding, source_ids, training=training)
        for layer in self.encoder_layers:
            x, _ = layer(x, padding_mask=mask, training=training)
        return (self.encoder_norm(x) if self.norm_first else x), mask

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

    def settling(self, memory, state, num_hypotheses):
        """See `Seq2Seq`."""
        step = self.prepared_step()
        pairs = zip(self.decoder_layers, state["caches"], strict=True)
        if num_hypotheses < 2 or not all(
            layer.self_attention.can_settle(cache) for layer, cache in pairs
        ):
            return memory, step, None
        memory = {**memory, "settled": state["caches"]}
        step = functools.partial(step, num_hypotheses=num_hypotheses)
        return memory, step, self._settle

    def _settle(self, memory, state, length, num_hypotheses):
        pairs = [
            layer_caches.settle(settled, cache, length, num_hypotheses)
            for settled, cache in zip(
                memory["settled"], state["caches"], strict=True
            )
        ]
        settled, caches = (list(one) for one in zip(*pairs, strict=True))
        return {**memory, "settled": settled}, {**state, "caches": caches}

    def prepared_step(self):
        """`step`, with the output's matrix turned round before the loop."""
        if self.target_embedding.quantization_mode:
            return self._step  # An int8 matrix has scales, known to its layer.
        kernel = ops.transpose(self.target_embedding.embeddings)
        kernel = ops.cast(kernel, self.compute_dtype)  # [D, V]
        return functools.partial(self._step, output_kernel=kernel)

    def step(self, token_ids, memory, state):
        """One token, with the keys and values of those before it cached.

        The attention weights are the last decoder layer's.
        """
        return self._step(token_ids, memory, state)

    def _step(
        self, token_ids, memory, state, output_kernel=None, num_hypotheses=1
    ):
        # All rows are at one position; the sum lets a batch be empty.
        position = ops.sum(state["position"][:1])
        x = self._embed(
            self.target_embedding, token_ids[:, None], start=position
        )[:, 0]  # [B, D]
        caches = []
        not_settled = [None] * len(self.decoder_layers)
        for layer, projected_memory, cache, settled in zip(
            self.decoder_layers,
            memory["layers"],
            state["caches"],
            memory.get("settled", not_settled),
            strict=True,
        ):
            x, attention_weights, cache = layer.step(
                x,
                projected_memory,
                memory["mask"],
                cache,
                position,
                settled,
                num_hypotheses,
            )
            caches.append(cache)
        state = {"caches": caches, "position": state["position"] + 1}
        return self._logits(x, output_kernel), state, attention_weights

    def call(self, inputs, training=None):
        logits, _ = self.call_with_attention(inputs, training)
        return logits  # [B, T, V]

    def call_with_attention(self, inputs, training=None):
        """See `Seq2Seq`. The attention weights are the last layer's."""
        target_ids = inputs["target_ids"]
        memory, mask = self._encode(inputs["source_ids"], training)
        masks = self._decoder_masks(mask, target_ids)
        x = self._embed(self.target_embedding, target_ids, training=training)
        for layer in self.decoder_layers:
            x, attention_weights = layer(x, memory, **masks, training=training)
        return self._logits(x), attention_weights

    def _decoder_masks(self, memory_mask, target_ids):
        """The masks of a decoder layer's call.

        No token attends to a later one, so padding at the end needs no mask.
        But experts would count it.
        """
        if self.config["feed_forward"] is None:
            return {"memory_mask": memory_mask}
        return {
            "memory_mask": memory_mask,
            "padding_mask": layers.padding_mask(
                target_ids, self.control_ids["pad_id"]
            ),
        }

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`."""
        source_ids, target_ids = inputs["source_ids"], inputs["target_ids"]
        mask = layers.padding_mask(source_ids, self.control_ids["pad_id"])
        encoder, decoder = [], []
        x = self._embed(self.source_embedding, source_ids, training=training)
        for layer in self.encoder_layers:
            x, maps = layer.call_with_maps(x, mask, training)
            encoder.append(maps)  # [B, H, S, S], [B, 1, S, n]
        memory = self.encoder_norm(x) if self.norm_first else x
        masks = self._decoder_masks(mask, target_ids)
        x = self._embed(self.target_embedding, target_ids, training=training)
        for layer in self.decoder_layers:
            x, maps = layer.call_with_maps(
                x, memory, **masks, training=training
            )
            decoder.append(maps)  # [B, H, T, T], [B, H, T, S], [B, 1, T, n]
        stacks = *zip(*encoder, strict=True), *zip(*decoder, strict=True)
        maps = self.as_maps(*(ops.stack(one, axis=1) for one in stacks))
        return self._logits(x), maps

    def get_config(self):
        return {**super().get_config(), **self.config}


# In the order of encoder and decoder, and in each that of a layer.
MAPS_WITH_EXPERTS = {
    "encoder": ("source", "source"),
    "encoder_experts": ("source", "experts"),
    "decoder": ("target", "input"),
    "cross": ("target", "source"),
    "decoder_experts": ("target", "experts"),
}
