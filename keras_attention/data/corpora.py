"""Corpora of sentence pairs: embedded, in files, or from TFDS."""

import contextlib
import dataclasses
import io
import os
import pathlib
import tempfile

import tensorflow as tf
import tensorflow_datasets as tfds

from keras_attention.data import parallel_files, tfds_pairs
from keras_attention.data.parallel_files import read_lines
from keras_attention.data.phrases import phrases_dataset_builder

__all__ = ["Corpus", "load", "read_lines"]


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Sentence pairs in splits.

    Args:
        name: of the corpus.
        source_language, target_language: their codes.
        splits: "train", "validation", "test", ...: datasets of {"source",
            "target"} string scalars, in a fixed order.
        sizes: pairs in each split.
    """

    name: str
    source_language: str
    target_language: str
    splits: dict[str, tf.data.Dataset]
    sizes: dict[str, int]


def _prepared(config, folder: pathlib.Path) -> tfds.core.DatasetBuilder:
    """A builder with its data: written elsewhere, then moved here whole."""

    def builder(data_dir):
        return phrases_dataset_builder.Builder(
            config=config, data_dir=str(data_dir)
        )

    if folder.is_dir() and builder(folder).is_prepared():
        return builder(folder)
    tfds.disable_progress_bar()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = pathlib.Path(temporary) / "made"
        # TFDS would announce a download, of which there is none.
        with contextlib.redirect_stdout(io.StringIO()):
            builder(made).download_and_prepare()
        try:
            made.rename(folder)
        except OSError:
            # Another process was faster.
            if not builder(folder).is_prepared():
                raise
    return builder(folder)


def _phrases(source: str, target: str, data_dir: str | None):
    home = pathlib.Path(
        data_dir
        or os.environ.get("KERAS_ATTENTION_HOME")
        or pathlib.Path.home() / ".cache" / "keras_attention"
    )
    builder = _prepared(
        phrases_dataset_builder.config_for(source, target),
        home / phrases_dataset_builder.fingerprint(source, target),
    )
    splits = tfds_pairs.read_splits(
        builder, builder.info.splits, source, target
    )
    sizes = {
        split: info.num_examples for split, info in builder.info.splits.items()
    }
    return splits, sizes


def _files(folder: pathlib.Path, source: str, target: str):
    found = parallel_files.find_files(folder, source, target)
    sizes = {
        split: parallel_files.check_aligned(*paths)
        for split, paths in found.items()
    }
    splits = {
        split: parallel_files.pairs(*paths) for split, paths in found.items()
    }
    return splits, sizes


def load(
    name: str,
    source: str = "en",
    target: str = "de",
    data_dir: str | None = None,
) -> Corpus:
    """Loads a corpus.

    Args:
        name: "phrases", the embedded corpus; a folder of line-aligned
            files; or "tfds:NAME/CONFIG".
        source, target: language codes.
        data_dir: where prepared data is kept: for phrases by default
            $KERAS_ATTENTION_HOME or ~/.cache/keras_attention, for TFDS its
            own default.

    Returns:
        `Corpus` with at least the splits "train" and "validation".

    Errors: `ValueError` for a corpus that is not there or not sound; for
    files it names file and line.
    """
    if source == target:
        raise ValueError(
            f"Expected two languages. Received: source={source!r}, "
            f"target={target!r}"
        )
    if name == "phrases":
        splits, sizes = _phrases(source, target, data_dir)
    elif name.startswith("tfds:"):
        splits, sizes = tfds_pairs.load(
            name.removeprefix("tfds:"), source, target, data_dir
        )
    elif pathlib.Path(name).is_dir():
        splits, sizes = _files(pathlib.Path(name), source, target)
    else:
        raise ValueError(
            'Expected "phrases", a folder of line-aligned files or '
            f'"tfds:NAME/CONFIG". Received: {name!r}'
        )
    for split in ("train", "validation"):
        if split not in splits:
            raise ValueError(
                f"Expected the splits train and validation in {name}. "
                f"Received: {sorted(splits)}"
            )
    return Corpus(name, source, target, splits, sizes)
