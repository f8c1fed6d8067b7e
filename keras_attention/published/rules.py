"""Rules that several families share: our name, their name, what changes."""


def same(tensor):
    """The tensor as it is."""
    return tensor


def turned(tensor):
    """A matrix [out, in], as PyTorch keeps them, as our [in, out]."""
    return tensor.T


def only(tensor):
    """The only row of a tensor [1, ...]."""
    return tensor[0]


def norm(ours: str, theirs: str):
    """Scale and shift of a layer normalisation."""
    yield f"{ours}/gamma", f"{theirs}.weight", same
    yield f"{ours}/beta", f"{theirs}.bias", same


def dense(ours: str, theirs: str):
    """A matrix and its bias."""
    yield f"{ours}/kernel", f"{theirs}.weight", turned
    yield f"{ours}/bias", f"{theirs}.bias", same


def attention(ours: str, theirs: str, names: tuple):
    """The four projections; `names` are theirs of query, key, value, output."""
    parts = ("query", "key", "value", "output")
    for part, name in zip(parts, names, strict=True):
        yield f"{ours}/{part}_kernel", f"{theirs}.{name}.weight", turned
        yield f"{ours}/{part}_bias", f"{theirs}.{name}.bias", same


ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_fast": "tanh_gelu",
    "gelu_new": "tanh_gelu",
    "gelu_pytorch_tanh": "tanh_gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


def activation(name: str) -> str:
    """Our name of an activation.

    Raises:
        ValueError: If we have none such.
    """
    if name not in ACTIVATIONS:
        raise ValueError(
            f"config.json names the activation {name!r}. Those that can be "
            f"read: {', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


def check(config: dict, **expected) -> None:
    """Refuses a model that has something that ours does not.

    Args:
        config: the content of config.json.
        expected: name -> the value that our model has, also where the
            configuration does not name it.

    Raises:
        ValueError: If a value is another one.
    """
    for name, value in expected.items():
        found = config.get(name, value)
        if found != value:
            raise ValueError(
                f"config.json says {name}={found!r}. Our model can only have "
                f"{name}={value!r}."
            )
