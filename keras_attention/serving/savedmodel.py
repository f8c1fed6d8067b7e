"""SavedModels: writing versions with a manifest, and loading them."""

import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import tempfile

import tensorflow as tf

from keras_attention import files
from keras_attention.serving import text_to_text

MANIFEST = "MANIFEST.sha256"
WARMUP_TEXTS = ("", "a", "one two three four five six seven eight")
WARMED_UP = (
    "serving_default",
    "with_attention",
    "n_best",
    "greedy",
    "score",
    "align",
)


def versions(folder: pathlib.Path) -> list[pathlib.Path]:
    """The numeric versions in a model's folder, ascending."""
    return sorted(
        (
            path
            for path in pathlib.Path(folder).glob("*/")
            if re.fullmatch("[0-9]+", path.name)
        ),
        key=lambda path: int(path.name),
    )


def _sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _write_warmup(version: pathlib.Path, name: str) -> None:
    """Requests that TF Serving runs at load, so that no user waits."""
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    folder = version / "assets.extra"
    folder.mkdir()
    path = folder / "tf_serving_warmup_requests"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature in WARMED_UP:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = signature
            texts = tf.make_tensor_proto(list(WARMUP_TEXTS), dtype=tf.string)
            request.inputs["text"].CopyFrom(texts)
            if signature in ("score", "align"):
                request.inputs["reference"].CopyFrom(texts)
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            writer.write(log.SerializeToString())


def _manifest_lines(version: pathlib.Path, number: int) -> list[str]:
    return [
        f"{_sha256(path)}  {number}/{path.relative_to(version).as_posix()}"
        for path in sorted(version.rglob("*"))
        if path.is_file()
    ]


def export(model: tf.Module, folder, card: str = ""):
    """Writes the next version of a model, whole or not at all.

    The version is written to a temporary folder and renamed; the manifest
    (`sha256sum -c MANIFEST.sha256` checks it) and the card stand beside
    the versions.

    Args:
        model: a module with `signatures`, such as `Translator`.
        folder: `savedmodels/NAME`.
        card: text of `NAME/README.md`; an old card stays if it is empty.

    Returns:
        Path of the version, `NAME/<number>`.

    Errors: `ValueError` for a folder with a README.md that is no card, and
    while another export writes there.
    """
    folder = pathlib.Path(folder)
    foreign = (folder / "README.md").exists()
    if card and foreign and not (folder / MANIFEST).exists():
        raise ValueError(
            "Expected a folder for a model and its versions: its README.md "
            f"would be lost. Received: {folder}"
        )
    with files.lock(folder):
        return _export(model, folder, card)


def _export(model, folder, card):
    number = max((int(path.name) for path in versions(folder)), default=0) + 1
    for killed in folder.glob(".export-*"):
        shutil.rmtree(killed)
    temporary = pathlib.Path(tempfile.mkdtemp(dir=folder, prefix=".export-"))
    try:
        version = temporary / "version"
        tf.saved_model.save(model, str(version), signatures=model.signatures)
        _write_warmup(version, folder.name)
        lines = _manifest_lines(version, number)
        with _manifest_with(folder / MANIFEST, lines, number):
            os.rename(version, folder / str(number))
        if card:
            files.write_atomically(folder / "README.md", card.encode())
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder / str(number)


@contextlib.contextmanager
def _manifest_with(manifest: pathlib.Path, lines: list[str], number: int):
    """Adds a version's lines; takes them out again if it does not come."""
    old = manifest.read_text() if manifest.exists() else None
    prefix = f"  {number}/"
    kept = [line for line in (old or "").splitlines() if prefix not in line]
    text = "\n".join([*kept, *lines]) + "\n"
    files.write_atomically(manifest, text.encode())
    try:
        yield
    except BaseException:
        if old is None:
            manifest.unlink()
        else:
            files.write_atomically(manifest, old.encode())
        raise


def check_manifest(version: pathlib.Path) -> None:
    """Compares every file of a version with the manifest beside it.

    Errors: `ValueError` that names the first file which is missing,
    changed or not in the manifest.
    """
    manifest = version.parent / MANIFEST
    if not manifest.is_file():
        raise ValueError(
            f"Expected {MANIFEST} beside the versions: copy it along with "
            f"them, or export the model again. Received: {version.parent}"
        )
    expected, found = {}, {}
    for line in manifest.read_text().splitlines():
        digest, _, name = line.partition("  ")
        number, _, name = name.partition("/")
        if number == version.name:
            expected[name] = digest
    for path in version.rglob("*"):
        if path.is_file():
            found[path.relative_to(version).as_posix()] = path
    for name in sorted({*expected, *found, "saved_model.pb"}):
        if name not in found:
            problem = "is missing"
        elif name not in expected:
            problem = "is not in the manifest"
        elif _sha256(found[name]) != expected[name]:
            problem = "was changed or damaged"
        else:
            continue
        raise ValueError(
            "Expected the files that were exported: copy or export the "
            f"model again. Received: {version / name} {problem}"
        )


class LoadedTranslator(text_to_text.TextToText):
    """A SavedModel's translator: text in, text out.

    (It needs the ops of tensorflow-text, which `keras_attention.text` has
    registered, or has said why it could not.)

    Args:
        version: a version's folder, `savedmodels/NAME/1`.
    """

    def __init__(self, version: pathlib.Path):
        check_manifest(version)
        self._loaded = tf.saved_model.load(str(version))
        self.path = version

    @property
    def signatures(self) -> dict:
        """The SavedModel's signatures."""
        return self._loaded.signatures

    @property
    def num_beams(self) -> int:
        """Beams of the search: the N of `n_best`."""
        outputs = self.signatures["n_best"].structured_outputs
        return outputs["scores"].shape[1]


def load(path) -> LoadedTranslator:
    """Loads `savedmodels/NAME` (its newest version) or one version.

    Errors: `ValueError` if there is none there or its files differ from
    the manifest.
    """
    path = pathlib.Path(path).resolve()
    if (path / "saved_model.pb").is_file():
        return LoadedTranslator(path)
    found = versions(path)
    if not found:
        raise ValueError(
            "Expected a SavedModel's folder, with numeric versions in it, "
            f"one version, or a run's folder. Received: {path}"
        )
    return LoadedTranslator(found[-1])
