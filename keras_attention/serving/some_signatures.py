"""Some signatures of a SavedModel, which load sooner than all of them.

TensorFlow makes Python objects of all operations of all functions that it
loads. A translator has 14,000 of them. One of its signatures needs 3,000.
"""

import contextlib
import functools
import os
import pathlib
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.core.protobuf import (
    config_pb2,
    meta_graph_pb2,
    saved_model_pb2,
    saved_object_graph_pb2,
)

_FILE = "saved_model.pb"


@contextlib.contextmanager
def folder(
    version: pathlib.Path, names: Collection[str], is_brief: bool = False
) -> Iterator[pathlib.Path]:
    """A SavedModel with some of the signatures of another one.

    `tf.saved_model.load` reads it. The folder is gone afterwards. It is the
    whole SavedModel where an operation, such as SiLU, has a gradient of its
    own: functions of gradients hang together in more ways.

    Args:
        version: the folder of the whole SavedModel.
        names: the signatures that are wanted.
        is_brief: whether they are asked a few times only. TensorFlow optimizes
            a function before its first call. For a search this takes half of
            the first call, and later calls are a fifth faster for it.
    """
    saved = saved_model_pb2.SavedModel.FromString(
        (version / _FILE).read_bytes()
    )
    libraries = [graph.graph_def.library for graph in saved.meta_graphs]
    if any(library.registered_gradients for library in libraries):
        yield version
        return
    for graph in saved.meta_graphs:
        keep(graph, names)
        if is_brief:
            _leave_unoptimized(graph.graph_def.library)
    with contextlib.ExitStack() as stack:
        try:
            temporary = tempfile.TemporaryDirectory(prefix="keras-attention-")
            part = pathlib.Path(stack.enter_context(temporary))
            for path in version.absolute().iterdir():
                if path.name not in (_FILE, "fingerprint.pb"):
                    os.symlink(path, part / path.name)
            (part / _FILE).write_bytes(saved.SerializeToString())
        except OSError:  # No room for files. The whole of it loads, too.
            part = version
        yield part


class Later:
    """A signature that is loaded when it is first called.

    It has weights of its own: the model's are then in memory twice.

    Args:
        version: the folder of the SavedModel.
        name: of the signature.
    """

    def __init__(self, version: pathlib.Path, name: str):
        self._version, self._name = version, name
        self._lock = threading.Lock()

    def __call__(self, **inputs) -> Mapping[str, tf.Tensor]:
        """The outputs of the signature, by their names."""
        with self._lock:
            loaded = self._loaded
        return loaded.signatures[self._name](**inputs)

    @functools.cached_property
    def _loaded(self):
        with folder(self._version, {self._name}, is_brief=True) as part:
            return tf.saved_model.load(str(part))


def keep(graph: meta_graph_pb2.MetaGraphDef, names: Collection[str]) -> None:
    """Takes the other signatures, and what they alone need, out of a graph."""
    objects = graph.object_graph_def
    unwanted = {*graph.signature_def} - {*names}
    for name in unwanted:
        del graph.signature_def[name]
    # The functions of a signature hang below its name.
    dropped = _below(objects, unwanted)
    for number in dropped:
        objects.nodes[number].CopyFrom(_nothing())
    for node in objects.nodes:
        kept = [c for c in node.children if c.node_id not in dropped]
        if len(kept) < len(node.children):
            del node.children[:]
            node.children.extend(kept)
    called = {name for node in objects.nodes for name in _functions_of(node)}
    for name in {*objects.concrete_functions} - called:
        del objects.concrete_functions[name]
    # The graph itself calls all signatures. TensorFlow 2 does not read it.
    graph.graph_def.ClearField("node")
    library = graph.graph_def.library
    needed = _with_called(library, called)
    functions = [f for f in library.function if f.signature.name in needed]
    del library.function[:]
    library.function.extend(functions)


def _leave_unoptimized(library: function_pb2.FunctionDefLibrary) -> None:
    """Calls between functions carry a configuration: it is changed."""
    for function in library.function:
        for node in function.node_def:
            if "config_proto" in node.attr:
                value = node.attr["config_proto"]
                config = config_pb2.ConfigProto.FromString(value.s)
                rewrites = config.graph_options.rewrite_options
                rewrites.disable_meta_optimizer = True
                value.s = config.SerializeToString()


def _below(objects, names: Collection[str]) -> set[int]:
    """The functions with these names, and those below them."""
    pending = [
        child.node_id
        for node in objects.nodes
        for child in node.children
        if child.local_name in names
    ]
    found = set()
    while pending:
        number = pending.pop()
        if any(True for _ in _functions_of(objects.nodes[number])):
            found.add(number)
            pending.extend(c.node_id for c in objects.nodes[number].children)
    return found


def _nothing() -> saved_object_graph_pb2.SavedObject:
    """An object without anything, which keeps the numbers of the others."""
    nothing = saved_object_graph_pb2.SavedObject()
    nothing.user_object.identifier = "_generic_user_object"
    nothing.user_object.version.producer = 1
    nothing.user_object.version.min_consumer = 1
    return nothing


def _functions_of(node) -> Iterator[str]:
    """The names of the functions of an object."""
    yield from node.function.concrete_functions
    if node.bare_concrete_function.concrete_function_name:
        yield node.bare_concrete_function.concrete_function_name


def _with_called(
    library: function_pb2.FunctionDefLibrary, names: Collection[str]
) -> set[str]:
    """Functions, and all that they call."""
    functions = {f.signature.name: f for f in library.function}
    found, pending = set(), [*names]
    while pending:
        name = pending.pop()
        if name in found or name not in functions:
            continue
        found.add(name)
        for node in functions[name].node_def:
            for value in node.attr.values():
                called = [value.func, *value.list.func]
                pending.extend(one.name for one in called)
    return found
