"""A Keras model and the functions of tensors that answer with it."""

import contextlib
import functools
import inspect
import os
import pathlib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attention.serving import cards, kinds, savedmodel
from keras_attention.tokens import PAD

PRECISIONS = ("float32", "float16")


class Graph:
    """A Keras model and functions in graph: the signatures of a SavedModel.

    A kind of model is a declaration in `kinds` and functions for its
    signatures. A subclass gives them to `define`.

    Args:
        model: a built Keras model.
        tokenizers: what its functions read and write texts with. The first
            counts the tokens of a text.
        stored_precision: in which weights of float32 are kept. With
            "float16" an exported model is half as large: a copy is kept, which
            each call turns to float32 (for that time it holds both) and
            computes with.

    Attributes:
        model, stored_precision: as given.
        weights: `StoredWeights`. A function computes inside of
            `weights.in_use()`.
        kind: `kinds.Kind`.
        signatures: name -> `tf.function`.
        quick_searches: name of a signature -> what `quick_search` compiles.
        quick_tools: name -> function that goes with them.
        facts: what its card says of it beside its size and its limit, as a
            Markdown list.

    Raises:
        ValueError: If the model is not built, if the precision is another
            one, or if the weights are too large for it.
    """

    kind: kinds.Kind
    signatures: Mapping[str, Callable]
    facts: str = ""
    quick_searches: Mapping[str, Callable] = types.MappingProxyType({})
    quick_tools: Mapping[str, Callable] = types.MappingProxyType({})

    def __init__(
        self,
        model: keras.Model,
        tokenizers: Sequence[tf.Module],
        stored_precision: str = "float32",
    ):
        if not model.built:
            raise ValueError(
                f"{model.name} has no weights yet, as it is not built: train "
                "it, or call its `build()`."
            )
        self.model = model
        self.weights = StoredWeights(model, stored_precision)
        self.stored_precision = stored_precision
        self._tokenizers = tokenizers

    @property
    def model_text(self) -> str:
        """What the model is, in some words."""
        model = self.model
        return f"{type(model).__name__}, {model.count_params():,} parameters"

    def define(
        self, kind: kinds.Kind, functions: Mapping[str, Callable]
    ) -> None:
        """Makes the signatures of a kind.

        Args:
            kind: the declaration.
            functions: name of a signature -> function of its inputs, in their
                order: string tensors [B], or numbers [B, ...], to a dict of
                its outputs. A choice that nobody made is [1], not [B]. That
                of `num_tokens` is here.
        """
        self.kind = kind
        functions = {"num_tokens": self._num_tokens, **functions}
        self.signatures = {
            name: _compiled(
                functions[name], _specs(kind, signature), signature.choices
            )
            for name, signature in kind.signatures.items()
        }

    def _num_tokens(self, *texts):
        """Counts the tokens of the longest text of each row."""
        tokenizer = self._tokenizers[0]
        # A SavedModel's signature does not check the rank by itself.
        texts = [tf.ensure_shape(text, [None]) for text in texts]
        lengths = [tokenizer.tokenize(text).row_lengths() for text in texts]
        longest = tf.cast(tf.reduce_max(tf.stack(lengths), axis=0), tf.int32)
        limit = tf.fill(tf.shape(longest), self.kind.limit)
        return {"num_tokens": longest + 1, "limit": limit}  # and END

    def export(self, folder: str | os.PathLike, card: str = "") -> pathlib.Path:
        """Writes the next version of a SavedModel, see `TextModel.export`."""
        card = card or cards.plain_if_none(self, folder)
        module = _Exported(
            self.weights.variables,
            self._tokenizers,
            self.signatures,
            self.quick_tools,
        )
        return savedmodel.export(
            module, folder, card, self.kind, self.quick_searches
        )


class _Exported(tf.Module):
    """What a SavedModel keeps: variables, vocabularies and functions.

    It does not know the Keras model. `tf.saved_model.save` would follow it,
    and a bare session would then find none of the variables.
    """

    def __init__(self, variables, tokenizers, signatures, tools):
        super().__init__(name="exported")
        for name, function in tools.items():
            setattr(self, name, function)
        self._variables = variables
        self._tokenizers = tokenizers
        self._signatures = signatures

    # TensorFlow refuses to save an object with an attribute of this name.
    @property
    def signatures(self) -> Mapping[str, Callable]:
        return self._signatures


def _specs(kind: kinds.Kind, signature: kinds.Signature) -> list[tf.TensorSpec]:
    """Strings [B] or numbers [B, ...], by their names."""
    types = {
        name: kinds.dtype_of(value) for name, value in signature.choices.items()
    }
    return [
        tf.TensorSpec([None, *kind.numbers[name]], tf.float32, name=name)
        if name in kind.numbers
        else tf.TensorSpec([None], types.get(name, "string"), name=name)
        for name in signature.inputs
    ]


def _compiled(
    function: Callable,
    specs: Sequence[tf.TensorSpec],
    choices: Mapping[str, Any],
):
    """A function in graph whose parameters have the names of its specs.

    `tf.saved_model.save` writes the defaults of parameters to the signature. It
    takes the specs of functions with defaults by their names in order, so the
    inputs of such a signature are declared in this order.
    """
    # Whatever follows a default must have one. None is written nowhere.
    otherwise = None if choices else inspect.Parameter.empty
    parameters = [
        inspect.Parameter(
            spec.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=tf.constant([choices[spec.name]], spec.dtype)
            if spec.name in choices
            else otherwise,
        )
        for spec in specs
    ]
    # A partial function is an object of its own, which may have a signature.
    # A wrapper in Python would stand on the way from a text to a step.
    named = functools.partial(function)
    named.__signature__ = inspect.Signature(parameters)
    return tf.function(named, input_signature=specs, autograph=False)


class StoredWeights:
    """A model's weights as they are exported, and how to compute with them.

    Args:
        model: a built Keras model.
        precision: "float32" leaves the model's own variables, "float16" makes
            copies of those in float32.

    Attributes:
        precision: as given.
        variables: list of `tf.Variable`, one for each of the model's.

    Raises:
        ValueError: If the precision is another one, or if the weights are too
            large for it.
    """

    def __init__(self, model, precision: str):
        if precision not in PRECISIONS:
            raise ValueError(
                f"Expected stored_precision to be one of {PRECISIONS}. "
                f"Received: stored_precision={precision!r}"
            )
        self.precision = precision
        self._model = model
        self._rounded = []
        self.variables = [
            self._stored(variable) for variable in model.variables
        ]

    def _stored(self, variable):
        if self.precision == "float32" or variable.dtype != "float32":
            return variable.value
        value = tf.cast(variable.value, self.precision)
        if not np.isfinite(value).all():
            raise ValueError(
                f"{variable.path} has weights too large for {self.precision}: "
                "keep them in float32."
            )
        stored = tf.Variable(value, trainable=False)
        self._rounded.append((variable, stored))
        return stored

    def in_use(self, values: Sequence[tf.Tensor] | None = None):
        """A context in which the model computes with what is stored.

        Args:
            values: what `values` gave, to compute with these.
        """
        if values is not None:
            pairs = zip(self._model.variables, values, strict=True)
            return keras.StatelessScope([*pairs], initialize_variables=False)
        if not self._rounded:
            return contextlib.nullcontext()
        values = [
            (variable, tf.cast(stored, variable.dtype))
            for variable, stored in self._rounded
        ]
        return keras.StatelessScope(values, initialize_variables=False)

    def values(self) -> list[tf.Tensor]:
        """The weights as the model computes with them."""
        pairs = zip(self._model.variables, self.variables, strict=True)
        return [tf.cast(stored, variable.dtype) for variable, stored in pairs]

    @property
    def specs(self) -> list[tf.TensorSpec]:
        """Those of `values`."""
        return [
            tf.TensorSpec(variable.shape, variable.dtype)
            for variable in self._model.variables
        ]


def side_by_side(search, source_ids, max_lengths):
    """Searches both halves of a batch at the same time.

    A search is one long chain of small operations, which leaves all cores
    but one idle. TensorFlow computes two chains at the same time. (On a GPU
    they wait for each other.)

    Args:
        search: concrete function of ids [b, S] and lengths [b] to a
            `SearchResult`.
        source_ids: int [B, S].
        max_lengths: int [B], the most tokens of each answer.

    Returns:
        `SearchResult` of all rows, in their order.
    """
    longest = tf.maximum(tf.reduce_max(max_lengths), 1)
    batch_size = tf.shape(source_ids)[0]
    half = batch_size // 2

    def answers(rows):
        result = search(source_ids[rows], max_lengths[rows])
        missing = [0, longest - tf.shape(result.ids)[2]]
        return result._replace(
            ids=tf.pad(
                result.ids, [[0, 0], [0, 0], missing], constant_values=PAD
            ),
            attention_weights=tf.pad(
                result.attention_weights, [[0, 0], [0, 0], missing, [0, 0]]
            ),
        )

    def both_halves():
        halves = [answers(slice(half)), answers(slice(half, None))]
        return tf.nest.map_structure(lambda *both: tf.concat(both, 0), *halves)

    return tf.cond(batch_size < 2, lambda: answers(slice(None)), both_halves)
