"""Marian's Transformer, which OPUS-MT trains, as our `Marian`."""

from keras_attention.published import rules as rule

MODEL = "marian"
PREFIX = "model."
# Tables of sinusoids, which our model computes.
NOT_WEIGHTS = r"embed_positions\.weight$"


def arguments(config: dict) -> dict:
    """Those of our class, from what config.json says."""
    rule.check(
        config,
        add_final_layer_norm=False,
        normalize_before=False,
        normalize_embedding=False,
        scale_embedding=True,
        static_position_embeddings=True,
        tie_word_embeddings=True,
    )
    for name in ("attention_heads", "ffn_dim"):
        rule.check(config, **{f"decoder_{name}": config[f"encoder_{name}"]})
    shared = config.get("share_encoder_decoder_embeddings", True)
    size = config["vocab_size"]
    return {
        "vocabulary_size": size
        if shared
        else config.get("decoder_vocab_size") or size,
        "source_vocabulary_size": None if shared else size,
        "num_layers": config["encoder_layers"],
        "num_decoder_layers": config["decoder_layers"],
        "hidden_dim": config["d_model"],
        "intermediate_dim": config["encoder_ffn_dim"],
        "num_heads": config["encoder_attention_heads"],
        "dropout": config.get("dropout", 0.1),
        "activation": rule.activation(config["activation_function"]),
        "control_ids": {
            "pad_id": config["pad_token_id"],
            "start_id": config["decoder_start_token_id"],
            "end_id": config["eos_token_id"],
        },
    }


def _attention(ours: str, name: str, theirs: str, there: str):
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    yield from rule.attention(
        f"{ours}/{name}_attention", f"{theirs}.{there}_attn", names
    )
    yield from rule.norm(
        f"{ours}/{name}_attention_residual/norm",
        f"{theirs}.{there}_attn_layer_norm",
    )


def _feed_forward(ours: str, theirs: str):
    yield from rule.dense(f"{ours}/feed_forward/expand", f"{theirs}.fc1")
    yield from rule.dense(f"{ours}/feed_forward/contract", f"{theirs}.fc2")
    yield from rule.norm(
        f"{ours}/feed_forward_residual/norm", f"{theirs}.final_layer_norm"
    )


def _embeddings(config: dict) -> dict:
    """Our name -> theirs."""
    if config.get("share_encoder_decoder_embeddings", True):
        return {"embedding/embeddings": "shared.weight"}
    return {
        "source/embeddings": "encoder.embed_tokens.weight",
        "embedding/embeddings": "decoder.embed_tokens.weight",
    }


def rules(config: dict):
    """`(our name, their name, change)` of each weight."""
    for ours, theirs in _embeddings(config).items():
        yield ours, theirs, rule.same
    yield "output_bias", "final_logits_bias", rule.only
    for index in range(config["encoder_layers"]):
        ours, theirs = f"encoder_{index}", f"encoder.layers.{index}"
        yield from _attention(ours, "self", theirs, "self")
        yield from _feed_forward(ours, theirs)
    for index in range(config["decoder_layers"]):
        ours, theirs = f"decoder_{index}", f"decoder.layers.{index}"
        yield from _attention(ours, "self", theirs, "self")
        yield from _attention(ours, "cross", theirs, "encoder")
        yield from _feed_forward(ours, theirs)


def copies(config: dict) -> dict:
    """The matrix of the logits is the target's embedding."""
    target = _embeddings(config)["embedding/embeddings"]
    names = ("lm_head", "encoder.embed_tokens", "decoder.embed_tokens")
    return {f"{name}.weight": target for name in names}
