"""The functions of a version's signatures, the most urgent ones first."""

import dataclasses
import pathlib
import threading
import time
from collections.abc import Callable, Collection, Mapping

import tensorflow as tf

from keras_attention import on_demand
from keras_attention.serving import manifest, quick_search, some_signatures

# Seconds until a load that failed is tried again.
_PAUSE = 10.0


@dataclasses.dataclass(frozen=True)
class _Part:
    by_name: Mapping[str, Callable]
    loaded: object  # It keeps the variables: the functions do not.
    is_whole: bool


class Functions:
    """The functions of a SavedModel: some at once, the others later.

    TensorFlow makes Python objects of all operations that it loads. Those of a
    few signatures take a small part of the time. `complete` loads all, which
    then stand in place of the first: the weights are in memory twice only
    meanwhile.

    Args:
        path: the folder with `saved_model.pb`.
        num_beams: beams of `serving_default`.
        first: the signatures that are loaded now, by default all.
    """

    def __init__(
        self,
        path: pathlib.Path,
        num_beams: int,
        first: Collection[str] | None = None,
    ):
        self._path, self._num_beams = path, num_beams
        self._lock = threading.Lock()
        # The inputs of each signature's first call that was answered.
        self._first_inputs: dict[str, Mapping[str, tf.Tensor]] = {}
        self._error: Exception | None = None
        self._retry = 0.0
        if first is None:
            self._part = self._load(path)
        else:
            with some_signatures.folder(path, first) as folder:
                self._part = self._load(folder)

    @property
    def by_name(self) -> Mapping[str, Callable]:
        """Name of a signature -> its function, of those that are there."""
        return self._part.by_name

    def call(self, name: str, **inputs) -> Mapping[str, tf.Tensor]:
        """The outputs of a signature. It waits until the signature is loaded.

        Raises:
            Exception: Whatever is wrong with the inputs, or with the files.
        """
        if name not in self.by_name:
            self.complete()
        part = self._part  # Kept until it has answered.
        outputs = part.by_name[name](**inputs)
        if part is self._part and not part.is_whole:
            self._first_inputs.setdefault(name, inputs)
        return outputs

    def complete(self) -> None:
        """Loads all functions, unless they are there.

        Raises:
            Exception: Whatever is wrong with the files. For some seconds it is
                raised again, and nothing is tried.
        """
        with self._lock:
            if self._part.is_whole:
                return
            if self._error and time.monotonic() < self._retry:
                # Without what was said of it before: that keeps the model.
                raise self._error.with_traceback(None)
            try:
                self._part = self._warm_whole()
            except Exception as error:
                self._error = error
                self._retry = time.monotonic() + _PAUSE
                raise
            self._error = None
            self._first_inputs.clear()

    def _warm_whole(self) -> _Part:
        if manifest.places(self._path):
            manifest.check(self._path)  # The files may have changed.
        whole = self._load(self._path)
        # A first call is slow, and nobody shall wait for it twice.
        for name, inputs in [*self._first_inputs.items()]:
            whole.by_name[name](**inputs)
        return whole

    def _load(self, folder: pathlib.Path) -> _Part:
        # There may be other graphs, such as one for training. TensorFlow
        # Serving takes this one.
        with on_demand.no_collection():
            loaded = tf.saved_model.load(str(folder), tags=["serve"])
        if folder != self._path:
            return _Part(loaded.signatures, loaded, is_whole=False)
        by_name = quick_search.signatures(loaded, folder, self._num_beams)
        return _Part(by_name, loaded, is_whole=True)
