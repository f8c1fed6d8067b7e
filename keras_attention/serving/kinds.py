"""What each kind of model takes and gives: one declaration a kind.

Live models, SavedModels, cards, the server and its page all read it. It
travels in a SavedModel, as `assets.extra/keras_attention.json`.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Axes = tuple[str, ...]
Shapes = Mapping[
    str, tuple[Sequence[str], Mapping[str, Sequence[int | None] | None]]
]
DEFAULT = "serving_default"
ASSET = "assets.extra/keras_attention.json"


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a function of tensors takes and gives.

    Attributes:
        inputs: the names of its inputs, each strings [B]; or numbers, see
            `Kind` and `choices`.
        outputs: name of an output -> the names of its axes behind the batch.
            An axis with the name of an output has a place for each text that
            this output holds, and is padded. It holds "" at the padding.
        decode: the outputs that Python gives for a row: one of them alone,
            several as a tuple, and without a name all of them as a dict.
        choices: the inputs that may be left out -> what they are then: a text,
            a whole number (int64 [B]) or another one (float32 [B]).
    """

    inputs: tuple[str, ...]
    outputs: Mapping[str, Axes]
    decode: tuple[str, ...] = ()
    choices: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def padded(self) -> dict[str, dict[int, str]]:
        """Name of an output -> axis -> the output with a text for a place."""
        axes = {
            name: {
                place: axis
                for place, axis in enumerate(axes, 1)
                if axis in self.outputs
            }
            for name, axes in self.outputs.items()
        }
        return {name: places for name, places in axes.items() if places}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of model, and what is known of the model that is of it.

    Attributes:
        name: the task, by its name in the catalogue of models.
        signatures: name -> `Signature`; `DEFAULT` is among them.
        num_beams: beams of the search, the N of `n_best`; 1 for none.
        labels: the names of the classes, in the order of the probabilities.
        limit: the most tokens of a text, END included; 0 if it is not known.
        numbers: the inputs that are numbers, float32 [B, ...] -> the shape of
            a row. All others are texts. Where there are no texts, there is no
            signature `num_tokens`.
        search: the choices of the search that it keeps, by the names of
            `config.Search`.
    """

    name: str
    signatures: Mapping[str, Signature]
    num_beams: int = 1
    labels: tuple[str, ...] = ()
    limit: int = 0
    numbers: Mapping[str, tuple[int, ...]] = dataclasses.field(
        default_factory=dict
    )
    search: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The texts and numbers of a row, by the names of the inputs."""
        return self.signatures[DEFAULT].inputs

    @property
    def texts(self) -> tuple[str, ...]:
        """The inputs that are texts."""
        return tuple(name for name in self.inputs if name not in self.numbers)

    @property
    def output(self) -> str:
        """The name of the answer."""
        return self.signatures[DEFAULT].decode[0]


_TEXT, _PAIR = ("text",), ("text", "text_pair")
_STORY = ("story", "question")
_REFERENCE = ("text", "reference")
_COUNTS = {"num_tokens": (), "limit": ()}
_SCORES = {"log_probability": (), "num_tokens": (), "truncated": ()}
_SOURCE = {"source_tokens": ("source_tokens",)}
_ALIGNED = {
    **_SOURCE,
    "target_tokens": ("target_tokens",),
    "attention": ("target_tokens", "source_tokens"),
}
_LABELLED = {"probabilities": ("classes",), "labels": ("classes",)}
_HOPS = {**_SOURCE, "attention": ("hops", "source_tokens")}


def _labels(name: str, inputs: tuple[str, ...], label: str, weights) -> Kind:
    """A kind that chooses one of some labels."""
    outputs = {label: (), **_LABELLED}
    shown = {**outputs, "truncated": (), **weights}
    signatures = {
        DEFAULT: Signature(inputs, outputs, (label,)),
        "with_attention": Signature(inputs, shown),
        "num_tokens": Signature(inputs, _COUNTS),
    }
    return Kind(name, signatures)


TRANSLATION = Kind(
    "translation",
    {
        DEFAULT: Signature(_TEXT, {"translation": ()}, ("translation",)),
        "greedy": Signature(_TEXT, {"translation": ()}, ("translation",)),
        "with_attention": Signature(
            _TEXT, {"translation": (), "score": (), "truncated": (), **_ALIGNED}
        ),
        "n_best": Signature(
            _TEXT, {"translations": ("beams",), "scores": ("beams",)}
        ),
        "score": Signature(_REFERENCE, _SCORES),
        "align": Signature(
            _REFERENCE, {**_ALIGNED, "num_tokens": (), "truncated": ()}
        ),
        "num_tokens": Signature(_TEXT, _COUNTS),
    },
)
LANGUAGE_MODELLING = Kind(
    "language_modelling",
    {
        DEFAULT: Signature(_TEXT, {"continuation": ()}, ("continuation",)),
        "score": Signature(_TEXT, _SCORES, ("log_probability", "num_tokens")),
        "num_tokens": Signature(_TEXT, _COUNTS),
    },
)
# A language model that carries its state has this signature, too.
SCORE_STREAM = Signature(
    _TEXT,
    {"log_probability": (), "num_tokens": ()},
    ("log_probability", "num_tokens"),
)
CLASSIFICATION = _labels("classification", _TEXT, "label", _HOPS)
ENTAILMENT = _labels(
    "entailment",
    _PAIR,
    "label",
    {
        **_SOURCE,
        "pair_tokens": ("pair_tokens",),
        "attention": ("source_tokens", "pair_tokens"),
        "attention_pair": ("pair_tokens", "source_tokens"),
    },
)
QUESTION_ANSWERING = _labels("question_answering", _STORY, "answer", _HOPS)
# The model knows the shape of a picture.
IMAGE_CLASSIFICATION = Kind(
    "image_classification",
    {
        DEFAULT: Signature(("image",), {"label": (), **_LABELLED}, ("label",)),
        "with_attention": Signature(
            ("image",),
            {
                "label": (),
                **_LABELLED,
                "attention": ("layers", "heads", "places", "places"),
            },
        ),
    },
    numbers={"image": ()},
)
# Those that older versions of the package exported without a declaration.
KINDS = (
    TRANSLATION,
    LANGUAGE_MODELLING,
    CLASSIFICATION,
    ENTAILMENT,
    QUESTION_ANSWERING,
)


def with_attention_axes(kind: Kind, rank: int) -> Kind:
    """A kind whose model weighs the tokens of one text.

    Args:
        kind: such as `CLASSIFICATION`.
        rank: of its attention: [B, R, S] of hops, or [B, L, H, S, S], with a
            row of weights for each token in each layer and head.
    """
    if rank <= 3:
        return kind
    # At rank 4, the model has one axis less: that of the layers.
    axes = ("layers", "heads")[5 - rank :] + ("source_tokens",) * 2
    shows = kind.signatures["with_attention"]
    outputs = {**shows.outputs, "attention": axes}
    changed = dataclasses.replace(shows, outputs=outputs)
    return dataclasses.replace(
        kind, signatures={**kind.signatures, "with_attention": changed}
    )


def dtype_of(value: str | int | float) -> str:
    """The type of an input that is a choice, by its value."""
    names = {str: "string", int: "int64", float: "float32"}
    return names[type(value)]


def to_json(kind: Kind) -> str:
    """A declaration as it travels in a SavedModel."""
    return json.dumps(dataclasses.asdict(kind), indent=1) + "\n"


def from_json(text: str | bytes) -> Kind:
    """The declaration that `to_json` has written.

    Raises:
        ValueError: If it is damaged, or is no declaration.
    """
    try:
        found = json.loads(text)
        signatures = {
            name: Signature(
                tuple(signature["inputs"]),
                {
                    key: tuple(axes)
                    for key, axes in signature["outputs"].items()
                },
                tuple(signature["decode"]),
                signature.get("choices", {}),
            )
            for name, signature in found.pop("signatures").items()
        }
        labels = tuple(found.pop("labels"))
        numbers = {
            name: tuple(shape)
            for name, shape in found.pop("numbers", {}).items()
        }
        kind = Kind(
            signatures=signatures, labels=labels, numbers=numbers, **found
        )
        if kind.output not in signatures[DEFAULT].outputs:
            raise LookupError(kind.output)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            "The SavedModel's keras_attention.json does not describe the "
            f"model's inputs and outputs ({error!r}): export the model again"
        ) from None
    return kind


def of(version: pathlib.Path, shapes: Shapes) -> Kind | None:
    """What a SavedModel is; None if it is none of this package.

    A model that an older version of the package exported has no declaration.
    The inputs and outputs of its signatures tell what it is.

    Args:
        version: its folder.
        shapes: name of a signature -> the names of its inputs, and the shape
            of each output: its axes, None for one of any length, or None if
            their number is not known.

    Raises:
        ValueError: If it has a declaration that is not its own.
    """
    path = version / ASSET
    if not path.is_file():
        return _told_by(shapes)
    kind = from_json(path.read_bytes())
    if _narrowed(kind, shapes) != kind:
        raise ValueError(
            f"{path} describes another model than the one beside it: export "
            "the model again"
        )
    return kind


def _told_by(shapes: Shapes) -> Kind | None:
    inputs, outputs = shapes.get(DEFAULT, ((), {}))
    for kind in KINDS:
        if {*kind.inputs} != {*inputs} or kind.output not in outputs:
            continue
        _, shown = shapes.get("with_attention", ((), {}))
        kind = with_attention_axes(kind, len(shown.get("attention") or ()))
        kind = _narrowed(kind, shapes)
        if "n_best" in kind.signatures:
            # The scores are [B, N].
            beams = shapes["n_best"][1]["scores"][1]
            kind = dataclasses.replace(kind, num_beams=beams)
        return kind
    return None


def _narrowed(kind: Kind, shapes: Shapes) -> Kind:
    """A declaration without what the signatures do not have."""
    # Older versions of the package exported less.
    signatures = {}
    for name, signature in kind.signatures.items():
        inputs, found = shapes.get(name, ((), {}))
        outputs = {
            key: axes
            for key, axes in signature.outputs.items()
            if len(found.get(key) or ()) == 1 + len(axes)
        }
        if {*inputs} == {*signature.inputs}:
            signatures[name] = dataclasses.replace(signature, outputs=outputs)
    return dataclasses.replace(kind, signatures=signatures)


def cut(
    outputs: Mapping[str, np.ndarray], padded: Mapping[str, Mapping[int, str]]
) -> dict[str, np.ndarray]:
    """The outputs of some rows without the padding that all of them have.

    Args:
        outputs: name -> array [B, ...].
        padded: `Signature.padded`.
    """
    result = dict(outputs)
    for name, axes in padded.items():
        index = [slice(None)] * outputs[name].ndim
        for axis, texts in axes.items():
            index[axis] = slice(_longest(outputs[texts]))
        result[name] = outputs[name][tuple(index)]
    return result


def _longest(texts: np.ndarray) -> int:
    """The most texts of a row: strings [B, T] with "" as padding."""
    places = np.flatnonzero((texts != b"").any(axis=0))
    return int(places[-1]) + 1 if places.size else 0
