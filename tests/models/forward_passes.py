"""Runs layers and small models on whatever backend Keras has.

    python forward_passes.py 0 weights.npz outputs.npz

reads the weights of share 0 as `run` returned them and writes the outputs. The
test beside this file runs it on two backends.
"""

import sys

import keras
import numpy as np
import tiny

from keras_attention import layers, models
from keras_attention.models import catalog

# Into how many shares layers and models are dealt. JAX compiles a share for a
# minute or two.
SHARES = 4
V, SOURCE_V, D = 23, 19, 14
INPUTS = {
    # As a story, the first has two sentences.
    "source_ids": np.array([[5, 3, 11, 13, 3], [17, 6, 3, 0, 0]], "int32"),
    "target_ids": np.array([[2, 19, 5, 9], [2, 22, 4, 0]], "int32"),
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
        "gaussian_window": layers.GaussianWindow(3),
        "monotonic": layers.MonotonicAttention(11),
        "diagonal": layers.DiagonalAttention(),
        "structured": layers.StructuredAttention(),
        "multi_head": layers.MultiHeadAttention(3, 11),
        "multi_head_shared": layers.MultiHeadAttention(
            6, 11, num_key_value_heads=2
        ),
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
        # All: as no gate is trained, backends choose others.
        "mixture_of_experts": layers.MixtureOfExperts(5, 11, num_chosen=5),
        "maxout": layers.Maxout(11),
        "position": layers.PositionEncoding(),
        "learned_positions": layers.LearnedPositions(5),
        "encoder": layers.TransformerEncoderLayer(7, 11),
        "decoder": layers.TransformerDecoderLayer(7, 11, **norm_first),
        "causal_convolution": layers.CausalConvolution(11, 3, 2),
        **{name: tiny.create(name, V) for name in catalog.CATALOG},
        "rnnsearch": tiny.create("rnnsearch", V, SOURCE_V),
        "luong_bidirectional": tiny.create(
            "luong", V, units=12, bidirectional=True
        ),
        "rnn_transducer_adds": tiny.create("rnn_transducer", V, joint_dim=None),
        "neural_turing_machine_feed_forward": tiny.create(
            "neural_turing_machine", V, controller="feed_forward"
        ),
        "language_model_rnn": tiny.create("rnn_language_model", V, cell="rnn"),
        "language_model_gru": tiny.create("rnn_language_model", V, cell="gru"),
        "language_model_factorized": tiny.create(
            "rnn_language_model", V, cell="factorized_lstm_5"
        ),
        "language_model_groups": tiny.create(
            "rnn_language_model",
            V,
            embedding_dim=6,
            units=12,
            cell="group_lstm_2",
        ),
        "language_model_gpt": tiny.create(
            "transformer_language_model", V, max_length=5, norm_first=False
        ),
        "memory_network_layer_wise": tiny.create(
            "end_to_end_memory_network",
            V,
            tying="layer_wise",
            sentence_encoding="bag",
        ),
        "char_cnn_projected": tiny.create(
            "char_cnn_language_model", V, embedding_dim=7, projection_dim=5
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
        # Any two texts are a pair, or a story and a question.
        ids = [INPUTS["source_ids"], INPUTS["target_ids"]]
        return part.attend(dict(zip(part.text_names, ids, strict=False)))
    rng = np.random.default_rng(1)
    if name == "vision_transformer":
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


def attend_in_blocks():
    """The context of an online softmax."""
    heads = np.random.default_rng(1).normal(size=(2, 3, 5, 7))
    heads = keras.ops.convert_to_tensor(heads.astype("float32"))
    return layers.online_softmax_attention(
        heads, heads, heads, use_causal_mask=True, block_size=2
    )


def run(share, weights=None):
    """Weights and outputs of a share, as two dictionaries of arrays."""
    used, outputs = {}, {}
    for name, part in list(models_and_layers().items())[share::SHARES]:
        forward(name, part)  # Builds it.
        if weights is not None:
            part.set_weights(
                [weights[f"{name}/{i}"] for i in range(len(part.weights))]
            )
        for i, weight in enumerate(part.get_weights()):
            used[f"{name}/{i}"] = weight
        for i, x in enumerate(keras.tree.flatten(forward(name, part))):
            outputs[f"{name}/{i}"] = keras.ops.convert_to_numpy(x)
    if share == 0:
        blocks = attend_in_blocks()
        outputs["online_softmax"] = keras.ops.convert_to_numpy(blocks)
    return used, outputs


if __name__ == "__main__":
    share, weights, outputs = sys.argv[1:]
    with np.load(weights) as given:
        _, results = run(int(share), dict(given))
    np.savez(outputs, **results)
