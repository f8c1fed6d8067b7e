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
CHAR_CNN = {
    "character_dim": 3,
    "filters": ((1, 5), (2, 7)),
    "units": 11,
    "max_word_length": 4,
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
        "learned_positions": layers.LearnedPositions(5),
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
        "causal_convolution": layers.CausalConvolution(11, 3, 2),
        "conv_seq2seq": models.ConvSeq2Seq(
            V, num_layers=2, embedding_dim=7, hidden_dim=11
        ),
        "bytenet": models.ByteNet(V, num_sets=1, hidden_dim=5),
        "transformer": models.Transformer(V, **TRANSFORMER),
        "extended_neural_gpu": models.ExtendedNeuralGPU(
            V, filters=7, height=2, num_layers=2
        ),
        "roformer": models.RoFormer(V, **TRANSFORMER),
        **{
            f"language_model_{cell}": models.RNNLanguageModel(
                V, **SIZES, cell=cell
            )
            for cell in ("rnn", "gru", "lstm")
        },
        "language_model_transformer": models.TransformerLanguageModel(
            V, **TRANSFORMER
        ),
        "language_model_gpt": models.TransformerLanguageModel(
            V, **TRANSFORMER, max_length=5, norm_first=False
        ),
        "bag_of_vectors": models.BagOfVectors(V, 5, **SIZES),
        "self_attentive_embedding": models.SelfAttentiveEmbedding(
            V, 5, **SIZES, attention_units=13, num_hops=2, hidden_dim=17
        ),
        "encoder_classifier": models.EncoderClassifier(V, 5, **TRANSFORMER),
        "decomposable_attention": models.DecomposableAttention(V, 5, **SIZES),
        "bag_of_vector_pairs": models.BagOfVectorPairs(
            V, 5, **SIZES, projection_dim=13
        ),
        "vision": models.VisionTransformer(
            5, **TRANSFORMER, image_shape=(D, 2, 1), patch_size=2
        ),
        "lstmn": models.LSTMN(V, **SIZES),
        "char_cnn": models.CharCNNLanguageModel(V, **CHAR_CNN),
        "char_cnn_projected": models.CharCNNLanguageModel(
            V, **CHAR_CNN, embedding_dim=7, projection_dim=5
        ),
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
    if isinstance(part, models.Classifier):
        part.build()
        # Any two texts are a pair.
        ids = [INPUTS["source_ids"], INPUTS["target_ids"]]
        names = ("source_ids", "pair_ids")[: part.num_texts]
        return part.attend(dict(zip(names, ids, strict=False)))
    rng = np.random.default_rng(1)
    if name == "vision":
        return part(rng.normal(size=(2, D, 2, 1)).astype("float32"))
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
