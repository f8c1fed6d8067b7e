"""A SavedModel without a signature that few ask for: it loads sooner.

TensorFlow makes a graph of every function in a SavedModel when it loads it,
whether it is ever called or not.
"""

import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

_FILE = "saved_model.pb"


def read(version: pathlib.Path) -> saved_model_pb2.SavedModel:
    """The file of a version with its graphs, not loaded yet."""
    data = (version / _FILE).read_bytes()
    return saved_model_pb2.SavedModel.FromString(data)


def load(
    version: pathlib.Path, saved_model: saved_model_pb2.SavedModel, name: str
) -> Any:
    """What `tf.saved_model.load` returns, without one of the signatures.

    Args:
        version: the folder.
        saved_model: what `read` returned. It loses the signature.
        name: of the signature. The whole version is loaded if it has no such.
    """
    graph = saved_model.meta_graphs[0]
    if name not in graph.signature_def:
        return tf.saved_model.load(str(version))
    _leave_out(graph, name)
    # TensorFlow loads from a folder. The variables need not be copied.
    with tempfile.TemporaryDirectory() as folder:
        for path in version.iterdir():
            if path.name != _FILE:
                (pathlib.Path(folder) / path.name).symlink_to(path.absolute())
        data = saved_model.SerializeToString()
        (pathlib.Path(folder) / _FILE).write_bytes(data)
        return tf.saved_model.load(folder)


class Later:
    """A signature that is loaded when it is first called.

    Args:
        version: the folder of the SavedModel.
        name: of the signature.
    """

    def __init__(self, version: pathlib.Path, name: str):
        self._version, self._name = version, name
        self._loaded: Any = None

    def __call__(self, **inputs) -> Mapping[str, Any]:
        """The outputs of the signature, by their names."""
        if self._loaded is None:
            self._loaded = tf.saved_model.load(str(self._version))
        return self._loaded.signatures[self._name](**inputs)


def _leave_out(graph, name: str) -> None:
    """Takes a signature out of a graph's objects, functions and nodes."""
    objects = graph.object_graph_def
    for node in objects.nodes:
        for place, child in reversed([*enumerate(node.children)]):
            if child.local_name == name:
                del node.children[place]
    kept = _objects(objects)
    used = set()
    for number, node in enumerate(objects.nodes):
        names = [*node.function.concrete_functions]
        if node.HasField("bare_concrete_function"):
            names.append(node.bare_concrete_function.concrete_function_name)
        if number in kept:
            used.update(names)
        elif names:
            # Its number has to stay, as others are known by theirs.
            node.Clear()
            node.user_object.identifier = "_generic_user_object"
            node.user_object.version.producer = 1
            node.user_object.version.min_consumer = 1
    for key in {*objects.concrete_functions} - used:
        del objects.concrete_functions[key]
    outputs = graph.signature_def[name].outputs.values()
    callers = {output.name.split(":")[0] for output in outputs}
    del graph.signature_def[name]
    nodes = graph.graph_def.node
    for place, node in reversed([*enumerate(nodes)]):
        if node.name in callers:
            del nodes[place]
    library = graph.graph_def.library.function
    needed = _functions(library, used | _called(nodes))
    for place, function in reversed([*enumerate(library)]):
        if function.signature.name not in needed:
            del library[place]


def _objects(objects) -> set[int]:
    """The numbers of the objects that the first one leads to."""
    found, waiting = {0}, [0]
    while waiting:
        for child in objects.nodes[waiting.pop()].children:
            if child.node_id not in found:
                found.add(child.node_id)
                waiting.append(child.node_id)
    return found


def _called(nodes: Iterable) -> set[str]:
    """The names of the functions that nodes call."""
    names = set()
    for node in nodes:
        for value in node.attr.values():
            names.update(one.name for one in (value.func, *value.list.func))
    return names - {""}


def _functions(library, first: set[str]) -> set[str]:
    """The names of some functions, and of all that they call."""
    called = {one.signature.name: _called(one.node_def) for one in library}
    found, waiting = set(first), [*first]
    while waiting:
        new = called.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
