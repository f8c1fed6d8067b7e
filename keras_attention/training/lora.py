"""Low-rank changes of attention, trained in place of all weights."""

import keras


def _attentions(model) -> list:
    """The layers whose projections can be changed, in the model's order."""
    # Keras's own layers have `enable_lora` too, and `layers` is not known here.
    return [
        layer
        for layer in model._flatten_layers()
        if hasattr(layer, "plain_weights")
    ]


def enable(model: keras.Model, rank: int) -> None:
    """Lets a model learn changes of its attentions' kernels alone.

    See `layers.MultiHeadAttention.enable_lora` (Hu et al. 2022).

    Args:
        model: with weights, all of which remain as they are.
        rank: of the changes.

    Raises:
        ValueError: If the model has no multi-head attention.
    """
    attentions = _attentions(model)
    if not attentions:
        raise ValueError(
            "lora_rank is for models with multi-head attention. "
            f"{type(model).__name__} has none: leave it out."
        )
    for weight in model.trainable_weights:
        weight.trainable = False
    for attention in attentions:
        attention.enable_lora(rank)


def is_enabled(model: keras.Model) -> bool:
    """Whether `enable` was called."""
    return any(layer.lora_rank for layer in _attentions(model))


def plain_weights(model: keras.Model) -> list:
    """What a model without changes trains: `(weight, value)`.

    With changes of LoRA, the values hold them. So a run's weights are those of
    its model, however it was trained.
    """
    if not is_enabled(model):
        return [(weight, weight) for weight in model.trainable_variables]
    changed, added = {}, set()
    for attention in _attentions(model):
        plain = attention.plain_weights()
        changed |= {id(weight): value for weight, value in plain}
        added |= {id(weight) for weight in attention.weights} - {
            id(weight) for weight, _ in plain
        }
    return [
        (weight, changed.get(id(weight), weight))
        for weight in model.weights
        if id(weight) not in added
    ]
