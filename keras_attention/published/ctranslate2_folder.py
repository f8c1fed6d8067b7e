"""Our Transformer in the format of CTranslate2, a fast translator in C++.

Reference: https://github.com/OpenNMT/CTranslate2
"""

import pathlib

import numpy as np

from keras_attention import tokens

# The models of the catalogue that CTranslate2 has, and their classes.
MODELS = {"transformer": "Transformer", "marian": "Marian"}
# Our name of an activation -> theirs.
ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "tanh_gelu": "GELUTanh",
    "silu": "SWISH",
}


def _specs():
    try:
        from ctranslate2 import specs
    except ImportError:
        raise ImportError(
            "The format of CTranslate2 needs its package: "
            "python -m pip install ctranslate2"
        ) from None
    return specs


class _Filler:
    """Gives the parts of a CTranslate2 model our weights, by their names."""

    def __init__(self, weights: dict):
        self.weights = weights

    def linear(self, spec, path, kernels=("/kernel",), biases=("/bias",)):
        # Theirs are [out, in], and several side by side are one.
        spec.weight = np.concatenate(
            [self.weights[f"{path}{name}"].T for name in kernels]
        )
        spec.bias = np.concatenate(
            [self.weights[f"{path}{name}"] for name in biases]
        )

    def norm(self, spec, path):
        spec.gamma = self.weights[f"{path}/gamma"]
        spec.beta = self.weights[f"{path}/beta"]

    def attention(self, spec, layer, name, groups):
        for linear, parts in zip(spec.linear, groups, strict=True):
            self.linear(
                linear,
                f"{layer}/{name}_attention/",
                [f"{part}_kernel" for part in parts],
                [f"{part}_bias" for part in parts],
            )
        self.norm(spec.layer_norm, f"{layer}/{name}_attention_residual/norm")

    def layer(self, spec, layer):
        self.attention(
            spec.self_attention,
            layer,
            "self",
            [("query", "key", "value"), ("output",)],
        )
        if hasattr(spec, "attention"):
            self.attention(
                spec.attention,
                layer,
                "cross",
                [("query",), ("key", "value"), ("output",)],
            )
        self.norm(spec.ffn.layer_norm, f"{layer}/feed_forward_residual/norm")
        self.linear(spec.ffn.linear_0, f"{layer}/feed_forward/expand")
        self.linear(spec.ffn.linear_1, f"{layer}/feed_forward/contract")


def check_folder(folder: pathlib.Path) -> None:
    """Checks that the files can be written to a folder.

    Raises:
        ValueError: If it holds something.
        ImportError: If the package `ctranslate2` is not installed.
    """
    _specs()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"{folder} is not empty. Name a new folder for the files of "
            "CTranslate2."
        )


def check_model(class_name: str, config: dict) -> None:
    """Checks that CTranslate2 has such a model.

    Args:
        class_name, config: of our model.

    Raises:
        ValueError: If it has not.
    """
    if class_name not in MODELS.values():
        raise ValueError(
            f"CTranslate2's format is for {' and '.join(MODELS.values())}. "
            f"This model is a {class_name}: export it as a SavedModel."
        )
    if config["feed_forward"] is not None:
        raise ValueError(
            "CTranslate2's format has the paper's feed-forward networks alone. "
            "Export a model with others as a SavedModel."
        )
    if config["activation"] not in ACTIVATIONS:
        raise ValueError(
            f"CTranslate2's format has the activations {', '.join(ACTIVATIONS)}"
            f". Received: activation={config['activation']!r}"
        )


def write(
    folder: pathlib.Path,
    config: dict,
    weights: dict,
    positions: np.ndarray,
    pieces: dict,
) -> None:
    """Writes the model's files into a folder.

    Args:
        folder: an empty one.
        config: that of our model, which `check_model` takes.
        weights: our name -> an array, of all weights.
        positions: what is added to the words, float32 [most tokens, D].
        pieces: "source" and "target" -> the piece of each id.
    """
    specs = _specs()
    size = config["num_layers"], config["num_decoder_layers"]
    spec = specs.TransformerSpec.from_config(
        size,
        config["num_heads"],
        pre_norm=config["norm_first"],
        activation=specs.Activation[ACTIVATIONS[config["activation"]]],
    )
    fill = _Filler(weights)
    target = weights["embedding/embeddings"]
    source = weights.get("source/embeddings", target)
    spec.encoder.embeddings[0].weight = source
    spec.decoder.embeddings.weight = target
    spec.decoder.projection.weight = target
    if "output_bias" in weights:
        spec.decoder.projection.bias = weights["output_bias"]
    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        side.position_encodings.encodings = positions
        if config["norm_first"]:
            fill.norm(side.layer_norm, f"{name}_norm")
        for index, layer in enumerate(side.layer):
            fill.layer(layer, f"{name}_{index}")
    spec.register_source_vocabulary(pieces["source"])
    spec.register_target_vocabulary(pieces["target"])
    spec.config.layer_norm_epsilon = config["epsilon"]
    spec.config.unk_token = tokens.UNK_TEXT
    spec.config.bos_token = tokens.START_TEXT
    spec.config.decoder_start_token = tokens.START_TEXT
    spec.config.eos_token = tokens.END_TEXT
    spec.config.add_source_eos = True
    spec.validate()
    spec.save(str(folder))
