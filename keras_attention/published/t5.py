"""T5 (Raffel et al. 2020), its version 1.1 and mT5 as our `T5`."""

import functools

from keras_attention.published import rules as rule

MODEL = "t5"
PREFIX = ""
# Older files hold a table that the model does not use.
NOT_WEIGHTS = r"EncDecAttention\.relative_attention_bias\.weight$"


def _is_tied(config: dict) -> bool:
    """Whether the embedding is the matrix of the logits, which are scaled."""
    if config["model_type"] == "mt5":
        return False
    # Files of transformers 5 call every model tied, and name the scale.
    tied = config.get("tie_word_embeddings", True)
    return config.get("scale_decoder_outputs", tied)


def _network(config: dict) -> tuple[str, bool]:
    """Activation of the feed-forward networks, and whether they are gated."""
    name = config.get("feed_forward_proj", "relu")
    if name == "gated-gelu":
        return "tanh_gelu", True
    is_gated = name.startswith("gated-")
    return rule.activation(name.removeprefix("gated-")), is_gated


def _num_decoder_layers(config: dict) -> int:
    return config.get("num_decoder_layers") or config["num_layers"]


def arguments(config: dict) -> dict:
    """Those of our class, from what config.json says."""
    activation, is_gated = _network(config)
    pad = config.get("pad_token_id", 0)
    return {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["num_layers"],
        "num_decoder_layers": _num_decoder_layers(config),
        "hidden_dim": config["d_model"],
        "intermediate_dim": config["d_ff"],
        "num_heads": config["num_heads"],
        "key_dim": config["d_kv"],
        "dropout": config.get("dropout_rate", 0.1),
        "num_buckets": config.get("relative_attention_num_buckets", 32),
        "max_distance": config.get("relative_attention_max_distance", 128),
        "activation": activation,
        "gated": is_gated,
        "tied": _is_tied(config),
        "epsilon": config.get("layer_norm_epsilon", 1e-6),
        "control_ids": {
            "pad_id": pad,
            "start_id": config.get("decoder_start_token_id", pad),
            "end_id": config.get("eos_token_id", 1),
        },
    }


def _query_kernel(key_dim: int, tensor):
    """Our scores are divided by sqrt(d_kv), theirs are not."""
    return tensor.T * key_dim**0.5


def _attention(ours: str, theirs: str, key_dim: int):
    query = functools.partial(_query_kernel, key_dim)
    yield f"{ours}/query_kernel", f"{theirs}.q.weight", query
    for part in ("key", "value", "output"):
        name = f"{theirs}.{part[0]}.weight"
        yield f"{ours}/{part}_kernel", name, rule.turned


def _norm(ours: str, theirs: str):
    yield f"{ours}/scale", f"{theirs}.layer_norm.weight", rule.same


def _layer(config: dict, side: str, index: int):
    """One layer of the "encoder" or the "decoder"."""
    ours, theirs = f"{side}_{index}", f"{side}.block.{index}.layer"
    attentions = {"self": "SelfAttention"}
    if side == "decoder":
        attentions["cross"] = "EncDecAttention"
    # All layers have the table of the first.
    table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias"
    yield (
        f"{ours}/self_attention/bucketed_bias/bias_table",
        f"{table}.weight",
        rule.same,
    )
    for number, (name, there) in enumerate(attentions.items()):
        yield from _attention(
            f"{ours}/{name}_attention",
            f"{theirs}.{number}.{there}",
            config["d_kv"],
        )
        yield from _norm(
            f"{ours}/{name}_attention_residual/norm", f"{theirs}.{number}"
        )
    last = f"{theirs}.{len(attentions)}"
    yield from _norm(f"{ours}/feed_forward_residual/norm", last)
    names = {"expand": "wi", "contract": "wo"}
    if _network(config)[1]:
        names = {"expand": "wi_0", "gate": "wi_1", "contract": "wo"}
    for here, there in names.items():
        name = f"{last}.DenseReluDense.{there}.weight"
        yield f"{ours}/feed_forward/{here}/kernel", name, rule.turned


def rules(config: dict):
    """`(our name, their name, change)` of each weight."""
    yield "embedding/embeddings", "shared.weight", rule.same
    if not _is_tied(config):
        # Some files leave out a matrix that is equal.
        names = "lm_head.weight or shared.weight"
        yield "embedding/reverse_embeddings", names, rule.turned
    for index in range(config["num_layers"]):
        yield from _layer(config, "encoder", index)
    for index in range(_num_decoder_layers(config)):
        yield from _layer(config, "decoder", index)
    for side in ("encoder", "decoder"):
        name = f"{side}.final_layer_norm.weight"
        yield f"{side}_norm/scale", name, rule.same


def copies(config: dict) -> dict:
    """Both embeddings are one, and the matrix of the logits may be it, too."""
    names = ["encoder.embed_tokens", "decoder.embed_tokens"]
    if _is_tied(config):
        names.append("lm_head")
    return {f"{name}.weight": "shared.weight" for name in names}
