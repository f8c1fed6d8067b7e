"""What a model did inside: its maps of attention, its choices, its beam."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from keras_attention.serving import kinds

NAME = "inspect"
# So many best tokens has each step; Python shows fewer of them.
MOST_CHOICES = 10
# What rows and columns of a map are, if a text has them.
_TEXTS = ("source", "pair", "input", "target")
_MAP = ("layers", "heads")
STEPS = {
    "input_tokens": ("input_tokens",),
    "target_tokens": ("target_tokens",),
    "token_log_probabilities": ("target_tokens",),
    "best_tokens": ("target_tokens", "choices"),
    "best_log_probabilities": ("target_tokens", "choices"),
}
TREE = {
    "nodes": ("nodes",),
    "node_parents": ("nodes",),
    "node_log_probabilities": ("nodes",),
    "node_scores": ("nodes",),
    "node_is_finished": ("nodes",),
}
# What a row can have -> the attribute that has it.
_TOKENS = {name: f"{name}_tokens" for name in _TEXTS}


@dataclasses.dataclass(frozen=True, eq=False)
class Map:
    """Where each layer and head looks.

    Attributes:
        weights: float32 [layers, heads, rows, columns].
        rows: the name of each row, such as a token.
        columns: the name of each column.
        axes: what rows and columns are, such as ("target", "source").
    """

    weights: np.ndarray = dataclasses.field(repr=False)
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    axes: tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Node:
    """A token that stood in the beam.

    Attributes:
        token: its piece.
        parent: the place in the tree of the token before; None for the first.
        log_probability: of all tokens from the first to this one.
        score: the log-probability after the penalties, where it has ended a
            hypothesis; else None.
    """

    token: str
    parent: int | None
    log_probability: float
    score: float | None

    @property
    def is_finished(self) -> bool:
        """Whether it has ended a hypothesis."""
        return self.score is not None


@dataclasses.dataclass(frozen=True, eq=False)
class Inspection:
    """What a model did with one row of texts.

    Attributes:
        answer: the text that was looked at, or the label.
        source_tokens: the tokens that the model has read, END included.
        pair_tokens: those of the second text, if there is one.
        input_tokens: what each step of a decoder reads: START, and then the
            tokens before its own.
        target_tokens: what each step writes. A label is a single step.
        num_given: how many of these were a language model's prompt.
        probabilities: float32 [steps], those of `target_tokens`.
        best: for each step its k best `(token, probability)`, best first.
        maps: name -> `Map`, such as "encoder", "decoder" and "cross"; {} for
            a model that looks nowhere.
        tree: the beam of the model's own search, each `Node` after its parent;
            () for a model without a beam.
    """

    answer: str
    source_tokens: tuple[str, ...]
    pair_tokens: tuple[str, ...]
    input_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    num_given: int
    probabilities: np.ndarray = dataclasses.field(repr=False)
    best: tuple[tuple[tuple[str, float], ...], ...] = dataclasses.field(
        repr=False
    )
    maps: Mapping[str, Map] = dataclasses.field(repr=False)
    tree: tuple[Node, ...] = dataclasses.field(repr=False)

    def path(self, place: int) -> tuple[Node, ...]:
        """The hypothesis that ends at a place of the tree, from its start."""
        nodes, at = [], place
        while at is not None:
            nodes.insert(0, self.tree[at])
            at = nodes[0].parent
        return tuple(nodes)


def declared(
    kind: kinds.Kind,
    inputs: Sequence[str],
    outputs: Mapping[str, kinds.Axes],
    maps: Mapping[str, tuple[str, str]],
) -> kinds.Kind:
    """The kind of a model that can be inspected.

    Args:
        kind: what it is.
        inputs: of the signature `inspect`.
        outputs: likewise, but for the maps.
        maps: those that the model declares.
    """
    axes = {
        name: (*_MAP, *(_TOKENS.get(word, word) for word in words))
        for name, words in maps.items()
    }
    signature = kinds.Signature(tuple(inputs), {**outputs, **axes})
    return dataclasses.replace(
        kind, signatures={**kind.signatures, NAME: signature}
    )


def question(
    kind: kinds.Kind, answer: str | None, k: int
) -> dict[str, list[str]]:
    """What `inspect` is asked beside the texts.

    Raises:
        ValueError: If there are not so many choices, or if a model of this
            kind writes no text.
    """
    if not 1 <= k <= MOST_CHOICES:
        raise ValueError(
            f"`inspect` has from 1 to {MOST_CHOICES} choices. Received: k={k}"
        )
    if "answer" in kind.signatures[NAME].inputs:
        return {"answer": [answer or ""]}
    if answer is not None:
        raise ValueError(
            f"A {kind.name} model writes no text that could be given: leave "
            "`answer` out."
        )
    return {}


def of_row(kind: kinds.Kind, row: Mapping, k: int) -> Inspection:
    """What the signature has answered, as Python has it.

    Args:
        kind: of the model.
        row: name of an output -> value, without padding.
        k: choices of each step.
    """
    answer = row[kind.output]
    best, probabilities = _choices(row, answer, k)
    tokens = {name: tuple(row.get(name, ())) for name in _TOKENS.values()}
    if "probabilities" in row:
        tokens["target_tokens"] = (answer,)
    return Inspection(
        answer=answer,
        num_given=int(row.get("num_given", 0)),
        probabilities=probabilities,
        best=best,
        maps={
            name: _map(row, name, axes[2:])
            for name, axes in kind.signatures[NAME].outputs.items()
            if axes[:2] == _MAP
        },
        tree=_tree(row),
        **tokens,
    )


def _choices(row, answer, k):
    """The best tokens of each step, or labels, and p of the target."""
    if "probabilities" in row:
        of_label = dict(zip(row["labels"], row["probabilities"], strict=True))
        steps = [(row["labels"], row["probabilities"])]
        probabilities = np.array([of_label[answer]])
    else:
        probabilities = np.exp(row["token_log_probabilities"])
        best = np.exp(row["best_log_probabilities"])
        steps = zip(row["best_tokens"], best, strict=True)
    best = []
    for tokens, values in steps:
        order = np.argsort(-values, kind="stable")[:k]
        best.append(tuple((tokens[i], float(values[i])) for i in order))
    return tuple(best), probabilities


def _map(row, name, axes) -> Map:
    weights = row[name]
    rows, columns = (
        _names(axis, size, row)
        for axis, size in zip(axes, weights.shape[2:], strict=True)
    )
    row_axis, column_axis = (axis.removesuffix("_tokens") for axis in axes)
    return Map(weights, rows, columns, (row_axis, column_axis))


def _names(axis, size, row) -> tuple[str, ...]:
    """The names of an axis: tokens, or such as "hop 1" and "slot 0"."""
    if axis in _TOKENS.values():
        return tuple(row[axis])
    first = 1 if axis == "hops" else 0
    return tuple(f"{axis[:-1]} {first + place}" for place in range(size))


def _tree(row) -> tuple[Node, ...]:
    columns = (row.get(name, ()) for name in TREE)
    return tuple(
        Node(
            token,
            None if parent < 0 else int(parent),
            float(log_probability),
            float(score) if is_finished else None,
        )
        for token, parent, log_probability, score, is_finished in zip(
            *columns, strict=True
        )
    )
