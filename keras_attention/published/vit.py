"""ViT (Dosovitskiy et al. 2021) as our `VisionTransformer`."""

from keras_attention.published import rules as rule

MODEL = "vision_transformer"
PREFIX = "vit."
# What only pre-training uses.
NOT_WEIGHTS = r"(^|\.)pooler\.|mask_token$"


def arguments(config: dict) -> dict:
    """Those of our class, from what config.json says."""
    rule.check(config, qkv_bias=True)
    labels = config.get("id2label")
    size = config["image_size"]
    return {
        # Two, where a configuration names no labels.
        "num_classes": len(labels) if labels else config.get("num_labels", 2),
        "image_shape": [size, size, config["num_channels"]],
        "patch_size": config["patch_size"],
        "num_layers": config["num_hidden_layers"],
        "hidden_dim": config["hidden_size"],
        "intermediate_dim": config["intermediate_size"],
        "num_heads": config["num_attention_heads"],
        "dropout": config.get("hidden_dropout_prob", 0.0),
        "activation": rule.activation(config["hidden_act"]),
        "epsilon": config["layer_norm_eps"],
    }


def _patch_kernel(tensor):
    """A convolution [D, C, P, P] as our matrix [P * P * C, D]."""
    return tensor.transpose(2, 3, 1, 0).reshape(-1, len(tensor))


def _layer(ours: str, theirs: str):
    names = [f"attention.{name}" for name in ("query", "key", "value")]
    yield from rule.attention(
        f"{ours}/self_attention",
        f"{theirs}.attention",
        (*names, "output.dense"),
    )
    yield from rule.norm(
        f"{ours}/self_attention_residual/norm", f"{theirs}.layernorm_before"
    )
    yield from rule.norm(
        f"{ours}/feed_forward_residual/norm", f"{theirs}.layernorm_after"
    )
    yield from rule.dense(
        f"{ours}/feed_forward/expand", f"{theirs}.intermediate.dense"
    )
    yield from rule.dense(
        f"{ours}/feed_forward/contract", f"{theirs}.output.dense"
    )


def rules(config: dict):
    """`(our name, their name, change)` of each weight."""
    patches = "embeddings.patch_embeddings.projection"
    yield "class_token", "embeddings.cls_token", rule.only
    yield "position_embeddings", "embeddings.position_embeddings", rule.only
    yield "patch_embedding/kernel", f"{patches}.weight", _patch_kernel
    yield "patch_embedding/bias", f"{patches}.bias", rule.same
    for index in range(config["num_hidden_layers"]):
        yield from _layer(f"layer_{index}", f"encoder.layer.{index}")
    yield from rule.norm("norm", "layernorm")
    yield from rule.dense("head", "classifier")


def copies(config: dict) -> dict:
    """None."""
    return {}
