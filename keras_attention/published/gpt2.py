"""GPT-2 (Radford et al. 2019) as our `TransformerLanguageModel`."""

from keras_attention.published import rules as rule

MODEL = "transformer_language_model"
PREFIX = "transformer."
# The causal masks of older files.
NOT_WEIGHTS = r"\.attn\.(masked_)?bias$"


def arguments(config: dict) -> dict:
    """Those of our class, from what config.json says."""
    rule.check(
        config,
        add_cross_attention=False,
        scale_attn_by_inverse_layer_idx=False,
        scale_attn_weights=True,
        tie_word_embeddings=True,
    )
    hidden_dim = config["n_embd"]
    end = config.get("eos_token_id")
    ids = None
    if end is not None:
        # One token ends a text and begins the next. Nothing is padding.
        start = config.get("bos_token_id")
        ids = {
            "pad_id": end,
            "start_id": end if start is None else start,
            "end_id": end,
        }
    return {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["n_layer"],
        "hidden_dim": hidden_dim,
        "intermediate_dim": config.get("n_inner") or 4 * hidden_dim,
        "num_heads": config["n_head"],
        "max_length": config["n_positions"],
        "dropout": config.get("resid_pdrop", 0.1),
        "activation": rule.activation(
            config.get("activation_function", "gelu_new")
        ),
        "epsilon": config.get("layer_norm_epsilon", 1e-5),
        "control_ids": ids,
    }


def _third(index: int):
    """Queries, keys and values stand side by side in one tensor."""

    def change(tensor):
        width = tensor.shape[-1] // 3
        return tensor[..., index * width : (index + 1) * width]

    return change


def _layer(ours: str, theirs: str):
    # Its matrices are [in, out], as ours.
    attention = f"{ours}/self_attention"
    for index, part in enumerate(("query", "key", "value")):
        name, change = f"{theirs}.attn.c_attn", _third(index)
        yield f"{attention}/{part}_kernel", f"{name}.weight", change
        yield f"{attention}/{part}_bias", f"{name}.bias", change
    for here, there in (
        (f"{attention}/output_", "attn.c_proj"),
        (f"{ours}/feed_forward/expand/", "mlp.c_fc"),
        (f"{ours}/feed_forward/contract/", "mlp.c_proj"),
    ):
        yield f"{here}kernel", f"{theirs}.{there}.weight", rule.same
        yield f"{here}bias", f"{theirs}.{there}.bias", rule.same
    yield from rule.norm(
        f"{ours}/self_attention_residual/norm", f"{theirs}.ln_1"
    )
    yield from rule.norm(f"{ours}/feed_forward_residual/norm", f"{theirs}.ln_2")


def rules(config: dict):
    """`(our name, their name, change)` of each weight."""
    yield "embedding/embeddings", "wte.weight", rule.same
    yield "position_embedding/embeddings", "wpe.weight", rule.same
    for index in range(config["n_layer"]):
        yield from _layer(f"layer_{index}", f"h.{index}")
    yield from rule.norm("norm", "ln_f")


def copies(config: dict) -> dict:
    """The matrix of the logits is the embedding."""
    return {"lm_head.weight": "wte.weight"}
