"""SavedModels in a folder: their versions, written whole with a manifest."""

import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping

import tensorflow as tf

from keras_attention import files
from keras_attention.data.vocabularies import text_operations
from keras_attention.serving import (
    destination,
    inspection,
    kinds,
    manifest,
    quick_search,
)

MANIFEST = manifest.NAME
WARMUP_TEXTS = ("", "a", "one two three four five six seven eight")


def versions(folder: str | os.PathLike) -> list[pathlib.Path]:
    """The numeric versions in a model's folder, ascending.

    A symbolic link is one too, wherever it leads.
    """
    return sorted(
        (
            path
            for path in _numbered(_expanded(folder))
            if path.is_dir() or path.is_symlink()
        ),
        key=lambda path: int(path.name),
    )


def _numbered(folder: pathlib.Path) -> list[pathlib.Path]:
    """What has a number for a name, a version or not."""
    paths = folder.glob("*")
    return [path for path in paths if re.fullmatch("[0-9]+", path.name)]


def _expanded(path: str | os.PathLike) -> pathlib.Path:
    return pathlib.Path(os.path.expanduser(path))


def _write_warmup(model: tf.Module, version: pathlib.Path, name: str) -> None:
    """Requests that TF Serving runs at load, so that no user waits."""
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    folder = version / "assets.extra"
    folder.mkdir()
    path = folder / "tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, function in model.signatures.items():
            if signature in ("num_tokens", inspection.NAME):
                continue  # It is quick; or seldom asked for.
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = signature
            for input_name, spec in _inputs(function).items():
                request.inputs[input_name].CopyFrom(_warmup_rows(spec))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            writer.write(log.SerializeToString())


def _inputs(function) -> dict[str, tf.TensorSpec]:
    """The inputs of a signature, a live model's or a loaded one's."""
    if hasattr(function, "input_signature"):
        return {spec.name: spec for spec in function.input_signature}
    _, specs = function.structured_input_signature
    return specs


def _warmup_rows(spec: tf.TensorSpec):
    """Texts, or as many rows of numbers."""
    if spec.dtype == tf.string:
        return tf.make_tensor_proto(list(WARMUP_TEXTS), dtype=tf.string)
    shape = [len(WARMUP_TEXTS), *spec.shape[1:]]
    # A number for each text is a choice, and 1 is in the bounds of each.
    value = int(len(shape) == 1)
    return tf.make_tensor_proto(value, dtype=spec.dtype, shape=shape)


def export(
    model: tf.Module,
    folder: str | os.PathLike,
    card: str = "",
    kind: kinds.Kind | None = None,
    searches: Mapping[str, Callable] | None = None,
) -> pathlib.Path:
    """Writes the next version of a model, whole or not at all.

    The version is written to a temporary folder and renamed. The manifest
    (`sha256sum -c MANIFEST.sha256` checks it) and the card stand beside the
    versions.

    Args:
        model: a module with `signatures`, functions of rows, or a
            SavedModel that was loaded.
        folder: `savedmodels/NAME`.
        card: text of `NAME/README.md`; an old card stays if it is empty.
        kind: what the model takes and gives. Without it, the inputs and
            outputs of the signatures tell.
        searches: what `quick_search.write` writes.

    Returns:
        Path of the version, `NAME/<number>`.

    Raises:
        ValueError: If `destination.check` refuses the folder.
    """
    folder = _expanded(folder)
    destination.check(folder, bool(card))
    with files.lock(folder):
        return _export(model, folder, card, kind, searches or {})


def _export(model, folder, card, kind, searches):
    number = max((int(path.name) for path in _numbered(folder)), default=0) + 1
    # Those of exports that were killed.
    for unfinished in folder.glob(".export-*"):
        shutil.rmtree(unfinished)
    temporary = pathlib.Path(tempfile.mkdtemp(dir=folder, prefix=".export-"))
    try:
        version = temporary / "version"
        tf.saved_model.save(model, str(version), signatures=model.signatures)
        _write_warmup(model, version, folder.absolute().name)
        quick_search.write(searches, version)
        if kind is not None:
            (version / kinds.ASSET).write_text(kinds.to_json(kind), "utf-8")
        lines = manifest.lines(version, number)
        with manifest.with_lines(folder / MANIFEST, lines, number):
            os.rename(version, folder / str(number))
        if card:
            files.write_atomically(folder / "README.md", card.encode())
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder / str(number)


def newest(path: str | os.PathLike) -> pathlib.Path:
    """The version that `load` loads: the newest one, or that of the path.

    Raises:
        ValueError: If there is none.
    """
    version = _expanded(path).absolute()
    if (version / "saved_model.pb").is_file():
        return version
    found = versions(version)
    if not found:
        raise ValueError(
            f"{path} has no SavedModel. Give a folder with numeric versions, "
            "the folder of one version, or a run's folder."
        )
    return found[-1]


def register_text_operations() -> None:
    """Makes the operations of tensorflow-text known to TensorFlow.

    Raises:
        ImportError: If it does not fit TensorFlow. The message says how to
            repair the pair.
    """
    text_operations.register()
