"""What a signature takes and gives, and whether a request fits it."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from keras_attention.server import errors

# The signature of a request that names none.
DEFAULT = "serving_default"
_MOST_AXES_SHOWN = 8


@dataclasses.dataclass(frozen=True)
class Spec:
    """An input or an output of a signature.

    Attributes:
        dtype: a `tf.DType`.
        shape: its axes, None for one of any length; or None if their number
            is not known.
        is_exact: whether no other shape is taken. Otherwise, TensorFlow
            judges: a graph often takes more than its signature says.
    """

    dtype: tf.DType
    shape: tuple[int | None, ...] | None
    is_exact: bool = False

    @property
    def has_rows(self) -> bool:
        """Whether the batch is axis 0."""
        return bool(self.shape) and self.shape[0] is None

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether an array of this shape can be it."""
        return self.shape is None or (
            len(shape) == len(self.shape)
            and all(
                expected in (None, length)
                for expected, length in zip(self.shape, shape, strict=True)
            )
        )

    def check(
        self, name: str, shape: Sequence[int], max_rows: float = math.inf
    ) -> None:
        """Refuses a shape that the input of this name cannot have.

        Raises:
            RequestError: If the shape is another one, or has too many rows.
        """
        if self.is_exact and not self.fits(shape):
            raise errors.invalid(
                f"Expected the input {name!r} of shape "
                f"{_shape_text(self.shape)}. Received: {_shape_text(shape)}"
            )
        if self.has_rows and shape and shape[0] > max_rows:
            raise errors.invalid(
                f"The request has {shape[0]} rows, and at most {max_rows} are "
                "taken. Split it."
            )


def specs(tensor_infos, is_exact: bool = False) -> dict[str, Spec]:
    """The inputs or outputs of a `SignatureDef`, by name."""
    found = {}
    # Sorted: a map of Protocol Buffers has no order of its own.
    for name, info in sorted(tensor_infos.items()):
        shape = tf.TensorShape(info.tensor_shape)
        axes = None if shape.rank is None else tuple(shape.as_list())
        found[name] = Spec(tf.dtypes.as_dtype(info.dtype), axes, is_exact)
    return found


class Signature:
    """A function of a SavedModel, from arrays to arrays.

    Args:
        name: such as "serving_default".
        definition: its `SignatureDef`.
        function: what `tf.saved_model.load` gave for it.
        padded: name of an output -> axis -> the output with a text for each
            place, as `kinds.Signature.padded`.
        is_exact: whether its inputs take no other shapes than it says.

    Attributes:
        method: such as "tensorflow/serving/predict".
        inputs, outputs: name -> `Spec`.
        defaults: name -> array, for the inputs that may be left out.
        padded: as given.
        is_batched: whether rows of several requests can be answered in one
            call.
    """

    def __init__(
        self,
        name: str,
        definition,
        function: Callable,
        padded: Mapping[str, Mapping[int, str]],
        is_exact: bool = False,
    ):
        self.name = name
        self.method = definition.method_name
        self._is_exact = is_exact
        self.inputs = specs(definition.inputs, is_exact)
        self.outputs = specs(definition.outputs)
        self.defaults = {
            name: tf.make_ndarray(proto)
            for name, proto in definition.defaults.items()
        }
        self.padded = padded
        self._function = function
        given = (*self.inputs.values(), *self.outputs.values())
        # An axis whose length may depend on the other rows stands in the way,
        # unless it is known to be padding.
        self.is_batched = (
            bool(self.inputs)
            and all(spec.has_rows for spec in given)
            and all(
                length is not None or axis in padded.get(name, ())
                for name, spec in self.outputs.items()
                for axis, length in enumerate(spec.shape[1:], 1)
            )
        )

    def whole(
        self, arrays: Mapping[str, np.ndarray], num_rows: int
    ) -> Mapping[str, np.ndarray]:
        """A request with the defaults of what it leaves out, for each row.

        So it can be answered together with others. What is no default of rows
        is left to the call.

        Args:
            arrays: inputs that fit the signature.
            num_rows: its rows.
        """
        if not self._is_exact:
            return arrays
        missing = {
            name: np.repeat(value, num_rows)
            for name, value in self.defaults.items()
            if name not in arrays
            and value.shape == (1,)
            and self.inputs[name].shape == (None,)
        }
        return {**arrays, **missing}

    def can_merge(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Whether a request can be answered together with others."""
        return (
            self.is_batched
            and arrays.keys() == self.inputs.keys()
            # A shape that TensorFlow alone takes may mean something else.
            and all(self.inputs[n].fits(a.shape) for n, a in arrays.items())
            and len({len(array) for array in arrays.values()}) == 1
        )

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> dict:
        """The outputs, as arrays. Defaults stand for what is left out."""
        missing = self.defaults.keys() - arrays.keys()
        arrays = {**arrays, **{name: self.defaults[name] for name in missing}}
        outputs = self._function(
            **{
                name: tf.constant(array, self.inputs[name].dtype)
                for name, array in arrays.items()
            }
        )
        # A string without axes is bytes in NumPy, and no array.
        return {
            name: np.asarray(output.numpy(), output.dtype.as_numpy_dtype)
            for name, output in outputs.items()
        }

    def check(
        self,
        arrays: Mapping[str, np.ndarray],
        max_rows: float = math.inf,
        max_text_bytes: float = math.inf,
    ) -> int:
        """Refuses arrays that the signature does not take.

        Args:
            arrays: name of an input -> array.
            max_rows: the most rows that there may be.
            max_text_bytes: the most bytes of a string.

        Returns:
            How many rows there are; 1 where the batch is not axis 0.

        Raises:
            RequestError: If an input is missing or unknown, has another type
                or shape, or another number of rows than the others, or if
                something is too large.
        """
        self.check_names(arrays)
        for name, array in arrays.items():
            self.inputs[name].check(name, array.shape, max_rows)
            if array.dtype == object and array.size:
                longest = max(map(len, array.flat))
                if longest > max_text_bytes:
                    raise errors.invalid(
                        f"A text in the input {name!r} has {longest} bytes, "
                        f"and at most {max_text_bytes} are taken."
                    )
        rows = {
            name: array.shape[0]
            for name, array in arrays.items()
            if self.inputs[name].has_rows and array.shape
        }
        # Another model may take inputs of different lengths.
        if self._is_exact and len({*rows.values()}) > 1:
            raise errors.invalid(
                f"The inputs have different numbers of rows: {rows}."
            )
        return max(rows.values(), default=1)

    def check_names(self, names) -> None:
        """Refuses a request that leaves an input out or names an unknown one.

        Raises:
            RequestError: If it does not.
        """
        extra = sorted({*names} - {*self.inputs})
        missing = sorted({*self.inputs} - {*self.defaults} - {*names})
        if extra or missing:
            # As TensorFlow Serving says it, word for word.
            raise errors.invalid(
                "input size does not match signature: "
                f"{len({*names})}!={len(self.inputs)} "
                f"len({_set(names)}) != len({_set(self.inputs)}). "
                f"Sent extra: {_set(extra)}. "
                f"Missing but required: {_set(missing)}."
            )


def _set(names) -> str:
    """Such as {a,b}, as TensorFlow Serving writes it."""
    return f"{{{','.join(name[:200] for name in sorted(names)[:20])}}}"


def _shape_text(shape) -> str:
    """Such as [-1,4], as TensorFlow Serving writes it."""
    if shape is None:
        return "[?]"
    if len(shape) > _MOST_AXES_SHOWN:
        return f"with {len(shape)} axes"
    return f"[{','.join(str(-1 if n is None else n) for n in shape)}]"
