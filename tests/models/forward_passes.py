"""Runs layers and small models on whatever backend Keras has.

    python forward_passes.py weights.npz outputs.npz

reads weights as `run` returned them and writes the outputs. The test beside
this file runs it on two backends.
"""

import sys

import keras
import numpy as np

from keras_attention import layers, models

V, SOURCE_V, D = 23, 19, 14
INPUTS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]], "int32"),
    "target_ids": np.array([[2, 19, 5, 9], [2, 22, 4, 0]], "int32"),
}
SIZES = {"embedding_dim": 7, "units": 11}
TRANSFORMER = {
    "num_layers": 2,
    "hidden_dim": D,
    "intermediate_dim": 13,
    "num_heads": 7,
}


def models_and_layers():
    """What is compared, by name."""
    norm_first = {"norm_first": True}
    return {
        "additive": layers.AdditiveAttention(11),
        "dot": layers.MultiplicativeAttention("dot"),
        "general": layers.MultiplicativeAttention("general"),
        "concat": layers.MultiplicativeAttention("concat"),
        "local_monotonic": layers.LocalAttention(
            half_width=1, place="monotonic"
        ),
        "local_predictive": layers.LocalAttention(half_width=1),
        "multi_head": layers.MultiHeadAttention(3, 11),
        **{
            f"multi_head_{positions.name}": layers.MultiHeadAttention(
                3, 4, positions=positions
            )
            for positions in (
                layers.RotaryPositions(name="rotary"),
                layers.RelativePositions(2, name="relative"),
                layers.BucketedBias(8, 5, name="bucketed"),
                layers.LinearBias(name="linear"),
            )
        },
        "feed_forward": layers.FeedForward(11),
        "maxout": layers.Maxout(11),
        "position": layers.PositionEncoding(),
        "learned_positions": layers.LearnedPositions(2),
        "encoder": layers.TransformerEncoderLayer(7, 11),
        "decoder": layers.TransformerDecoderLayer(7, 11, **norm_first),
        "rnn_encoder_decoder": models.RNNEncoderDecoder(
            V, **SIZES, readout_dim=5
        ),
        "lstm_encoder_decoder": models.LSTMEncoderDecoder(
            V, **SIZES, num_layers=2
        ),
        "rnnsearch": models.RNNSearch(V, SOURCE_V, **SIZES, readout_dim=5),
        "luong": models.Luong(V, **SIZES, num_layers=2),
        "luong_bidirectional": models.Luong(
            V, embedding_dim=7, units=12, num_layers=2, bidirectional=True
        ),
        "transformer": models.Transformer(V, **TRANSFORMER),
        "roformer": models.RoFormer(V, **TRANSFORMER),
        **{
            f"language_model_{cell}": models.RNNLanguageModel(
                V, **SIZES, cell=cell
            )
            for cell in ("rnn", "gru", "lstm")
        },
    }


def forward(name, part):
    """Outputs of one layer or model, as a structure of tensors."""
    if isinstance(part, models.Seq2Seq):
        part.build()
        memory = part.encode(INPUTS["source_ids"])
        state = part.initial_state(memory, 5)
        first = part.step(INPUTS["target_ids"][:, 0], memory, state)
        return part(INPUTS), first
    if isinstance(part, models.LanguageModel):
        part.build()
        token_ids = INPUTS["target_ids"]
        first = part.step(token_ids[:, 0], part.initial_state(2, 5))
        return part(token_ids), first
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 3, D)).astype("float32")
    y = rng.normal(size=(2, 5, D)).astype("float32")
    mask = INPUTS["source_ids"] > 0
    attentions = (layers.Attention, layers.MultiHeadAttention)
    if isinstance(part, attentions):
        return part(query=x, value=y, padding_mask=mask)
    if name == "decoder":
        return part(x, y, memory_mask=mask)
    return part(y, padding_mask=mask) if name == "encoder" else part(x)


def run(weights=None):
    """Weights and outputs as two dictionaries of arrays."""
    used, outputs = {}, {}
    for name, part in models_and_layers().items():
        forward(name, part)  # Builds it.
        if weights is not None:
            part.set_weights(
                [weights[f"{name}/{i}"] for i in range(len(part.weights))]
            )
        for i, weight in enumerate(part.get_weights()):
            used[f"{name}/{i}"] = weight
        for i, x in enumerate(keras.tree.flatten(forward(name, part))):
            outputs[f"{name}/{i}"] = keras.ops.convert_to_numpy(x)
    return used, outputs


if __name__ == "__main__":
    with np.load(sys.argv[1]) as given:
        _, results = run(dict(given))
    np.savez(sys.argv[2], **results)
