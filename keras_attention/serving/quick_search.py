"""Searches for few texts, compiled by XLA: the same answers, sooner.

In a search of one text, most of the time goes to TensorFlow's operations and
not to their arithmetic. XLA makes one function of them. It takes seconds to
compile one for each shape, and TensorFlow Serving refuses it on a CPU. So a
version has searches beside its signatures, in `FOLDER`: one more SavedModel for
each signature that can be quick, by its name. Without beams, the search of
`greedy` is that of `serving_default`, too. Its one function takes the weights:

- `search`: ids [B, S], max_lengths [B], weights -> ids [B, T].

The version itself has what comes before and after it:

- `encode`: text [B] -> ids [B, S], lengths [B], max_lengths [B];
- `weights`: the weights, as a search takes them;
- `decode`: ids [B, T], lengths [B] -> translation [B].

What is compiled has sources of 16 or 32 tokens and 1 or 4 rows.
"""

import concurrent.futures
import functools
import logging
import pathlib
import threading
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from keras_attention.tokens import PAD

_LOGGER = logging.getLogger(__name__)
# Hypotheses of all texts. More of them have enough arithmetic for the graph.
MOST_ROWS = 4
MOST_TOKENS, BUCKET = 32, 16
FOLDER = "assets.extra/quick_searches"


def write(searches: Mapping[str, Callable], version: pathlib.Path) -> None:
    """Writes the searches beside a version's signatures.

    Args:
        searches: name of a signature -> its search.
        version: the folder of the version.
    """
    for name, search in searches.items():
        module = tf.Module()
        module.search = search
        tf.saved_model.save(module, str(version / FOLDER / name))


def signatures(
    loaded, version: pathlib.Path, num_beams: int
) -> Mapping[str, Callable]:
    """The signatures of a SavedModel, quick ones for few texts.

    Args:
        loaded: what `tf.saved_model.load` returned.
        version: the folder that it was loaded from.
        num_beams: beams of `serving_default`.
    """
    folders = {path.name: path for path in (version / FOLDER).glob("*")}
    if not folders:
        return loaded.signatures
    weights = functools.cache(loaded.weights)  # The same for all searches.
    found, quick = dict(loaded.signatures), {}
    for name, signature in loaded.signatures.items():
        is_greedy = name == "serving_default" and num_beams == 1
        search = "greedy" if is_greedy else name
        if search not in folders:
            continue
        if search not in quick:
            quick[search] = QuickSearch(
                folders[search], loaded, weights, signature
            )
        found[name] = quick[search]
    return found


@functools.cache
def compiler() -> concurrent.futures.Executor:
    """One thread: all other cores are left to the answers.

    A process waits for it at its end. XLA cannot be interrupted, and a thread
    that comes back from it while Python ends may abort the process.
    """
    return concurrent.futures.ThreadPoolExecutor(1, "compile a search")


class QuickSearch:
    """A signature that answers few texts by a compiled function.

    The signature answers until there is one. It is compiled in the background
    when a shape comes for the second time: a program that asks once does not
    wait for it at its end.

    Args:
        folder: of the search. It is loaded when it is compiled.
        tools: has the functions `encode` and `decode`.
        weights: a function that gives them.
        signature: text [B] to a dict with the translation [B].
    """

    def __init__(
        self,
        folder: pathlib.Path,
        tools,
        weights: Callable,
        signature: Callable,
    ):
        self._folder, self._tools, self._weights = folder, tools, weights
        self._most_texts = MOST_ROWS if folder.name == "greedy" else 1
        self._signature = signature
        # Shape -> None once it was asked for, then its future.
        self._compiled = {}
        self._lock = threading.Lock()

    def __call__(self, text) -> dict[str, tf.Tensor]:
        """The translation [B] of texts [B]."""
        if self._is_small(text):
            ids, lengths, max_lengths = _only(self._tools.encode)(text)
            inputs = _padded(ids.numpy(), max_lengths.numpy())
            search = inputs and self._compiled_for(inputs)
            if search:
                found = search(*map(tf.constant, inputs))[: len(text)]
                decode = _only(self._tools.decode)
                return {"translation": decode(found, lengths)}
        return self._signature(text=text)

    def _is_small(self, text) -> bool:
        if not tf.executing_eagerly() or text.shape.rank != 1:
            return False
        return 1 <= len(text) <= self._most_texts

    def _compiled_for(self, inputs) -> Callable | None:
        """The function for inputs of this shape, if it is there already."""
        shape = inputs[0].shape
        with self._lock:
            if shape not in self._compiled:
                self._compiled[shape] = None
                return None
            if self._compiled[shape] is None:
                job = compiler().submit(self._compile, inputs)
                self._compiled[shape] = job
        future = self._compiled[shape]
        return future.result() if future.done() else None

    @functools.cached_property
    def _search(self) -> Callable:
        return tf.saved_model.load(str(self._folder)).search

    def _compile(self, inputs) -> Callable | None:
        """The function for inputs of this shape; None where there is none."""
        inputs = [tf.constant(array) for array in inputs]
        try:
            weights, search = self._weights(), self._search
            # Straight to the function of one shape: a `tf.function` would look
            # at its arguments at each call.
            compiled = tf.function(
                lambda *inputs: search(*inputs, weights),
                jit_compile=True,
                autograph=False,
            ).get_concrete_function(*inputs)
            compiled(*inputs)
        except Exception as error:  # Whatever it is, the signature answers.
            _LOGGER.warning("%s is not compiled: %s", self._folder, error)
            return None
        return compiled


def _only(function) -> Callable:
    """The one graph of a loaded function.

    The function itself would look for it at each call.
    """
    return function.concrete_functions[0]


def _padded(ids, max_lengths):
    """Ids [B, S] and limits [B] in one of few shapes, or None if too long."""
    count, length = ids.shape
    if length > MOST_TOKENS:
        return None
    rows = 1 if count == 1 else MOST_ROWS
    size = -(-length // BUCKET) * BUCKET
    return (
        np.pad(
            ids, ((0, rows - count), (0, size - length)), constant_values=PAD
        ),
        # A row of padding ends at once.
        np.pad(max_lengths, (0, rows - count), constant_values=1),
    )
