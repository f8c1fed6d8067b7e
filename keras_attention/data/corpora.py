"""Corpora: rows of named columns in splits, and where pairs come from."""

import contextlib
import dataclasses
import io
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence

import tensorflow as tf
import tensorflow_datasets as tfds

from keras_attention.data.embedded import addition
from keras_attention.data.embedded.phrases import phrases_dataset_builder
from keras_attention.data.readers import (
    counted_pairs,
    lines,
    parallel_files,
    scan,
    tab_separated,
    tfds_pairs,
)
from keras_attention.data.readers.lines import read_lines

__all__ = ["Corpus", "load", "read_lines"]


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Rows of named columns, in splits.

    Args:
        name: of the corpus.
        splits: "train", "validation", "test", ...: datasets of rows, in a
            fixed order, of known cardinality. A row is a dict of strings (or
            of numbers) by the names of its columns, such as "source" and
            "target".
        sizes: rows in each split, blank ones included.
        languages: the codes of the texts' languages, where they are known:
            of the source, and of the target.
        unlabelled: rows that were left out, as they have no label.
    """

    name: str
    splits: dict[str, tf.data.Dataset]
    sizes: dict[str, int]
    languages: tuple[str, ...] = ()
    unlabelled: int = 0

    @classmethod
    def of_rows(
        cls,
        name: str,
        columns: Iterable[str],
        rows: Mapping[str, Sequence],
        unlabelled: int = 0,
    ) -> "Corpus":
        """A corpus of rows that are in memory.

        Args:
            name: of the corpus.
            columns: their names.
            rows: split -> its rows, each with a value for each column. Splits
                without rows are left out.
            unlabelled: see above.
        """
        rows = {split: of_split for split, of_split in rows.items() if of_split}
        splits = {}
        for split, of_split in rows.items():
            values = map(list, zip(*of_split, strict=True))
            splits[split] = tf.data.Dataset.from_tensor_slices(
                dict(zip(columns, values, strict=True))
            )
        sizes = {split: len(of_split) for split, of_split in rows.items()}
        return cls(name, splits, sizes, unlabelled=unlabelled)

    @property
    def held_out_split(self) -> str:
        """The first test split by name, or "validation" if there is none."""
        return min(
            (name for name in self.splits if name.startswith("test")),
            default="validation",
        )

    def texts(
        self, split: str, column: str, limit: int | None = None
    ) -> Iterator[str]:
        """The texts of a column, one by one.

        Args:
            split: its name.
            column: its name.
            limit: the most texts; all by default.
        """
        rows = self.splits[split]
        rows = rows if limit is None else rows.take(limit)
        with counted_pairs.clear_errors():
            for block in rows.batch(1000):
                for text in block[column].numpy():
                    yield text.decode("utf-8", "replace")


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
        draft = pathlib.Path(temporary) / "draft"
        # TFDS would announce a download, of which there is none.
        with contextlib.redirect_stdout(io.StringIO()):
            builder(draft).download_and_prepare()
        try:
            draft.rename(folder)
        except OSError:
            # Another process was faster.
            if not builder(folder).is_prepared():
                raise
    return builder(folder)


def _phrases(source: str, target: str, data_dir: pathlib.Path | None):
    home = data_dir or lines.to_path(
        os.environ.get("KERAS_ATTENTION_HOME")
        or pathlib.Path.home() / ".cache" / "keras_attention"
    )
    builder = _prepared(
        phrases_dataset_builder.config_for(source, target),
        home / phrases_dataset_builder.fingerprint(source, target),
    )
    splits = tfds_pairs.read_splits(
        builder, {split: split for split in builder.info.splits}, source, target
    )
    sizes = {
        split: info.num_examples for split, info in builder.info.splits.items()
    }
    return splits, sizes


def _in_memory(pairs: dict[str, list[tuple[str, str]]]):
    """Splits and sizes of lists of pairs."""
    corpus = Corpus.of_rows("", ("source", "target"), pairs)
    return corpus.splits, corpus.sizes


def _folder(folder: pathlib.Path, source: str, target: str):
    if scan.find_files(folder):
        return _in_memory(scan.load(folder))
    aligned = parallel_files.find_files(folder, source, target)
    tables = parallel_files.one_a_split(folder, (".tsv", ".csv"))
    if not aligned and not tables:
        path = tab_separated.find_file(folder, source, target)
        if path is not None:
            return tab_separated.split_by_source(path, source, target)
    splits, sizes = {}, {}
    for split in sorted(aligned.keys() | tables.keys()):
        if split in aligned and split in tables:
            raise ValueError(
                f"{split} has both {aligned[split][0]} and {tables[split]}. "
                "Take one of them out of the folder."
            )
        if split in tables:
            splits[split], sizes[split] = tab_separated.pairs(
                tables[split], source, target
            )
        else:
            sizes[split] = parallel_files.check_aligned(*aligned[split])
            splits[split] = parallel_files.pairs(*aligned[split], sizes[split])
    for split in ("train", "validation"):
        if split not in splits:
            raise ValueError(
                f"{folder} has no {split}.{source} and {split}.{target}, nor "
                f"{split}.tsv, plain or compressed. It has "
                f"{', '.join(sorted(splits)) or 'no split'}."
            )
    return splits, sizes


def load(
    name: str | os.PathLike,
    source: str = "en",
    target: str = "de",
    data_dir: str | os.PathLike | None = None,
) -> Corpus:
    """Loads a corpus.

    Args:
        name: "phrases" or "addition", the embedded corpora; a folder of
            line-aligned files, of tab-separated ones or of one split of
            SCAN; one tab-separated file, which is split by the hash of its
            sources; one of SCAN's training files, which means its split; or
            "tfds:NAME/CONFIG", perhaps with slices:
            "tfds:NAME/CONFIG@train[:90%]". A `pathlib.Path` is always a
            folder or a file; `~` is the user's home.
        source, target: language codes.
        data_dir: where prepared data is kept: for phrases by default
            $KERAS_ATTENTION_HOME or ~/.cache/keras_attention, for TFDS its
            own default.

    Returns:
        `Corpus` with at least the splits "train" and "validation".

    Raises:
        ValueError: If a corpus is not there or not sound; for files it
            names file and line.
    """
    if source == target:
        raise ValueError(
            f"Expected two languages. Received: source={source!r}, "
            f"target={target!r}"
        )
    path = lines.to_path(name)
    data_dir = data_dir and lines.to_path(data_dir)
    if name == "phrases":
        splits, sizes = _phrases(source, target, data_dir)
    elif name == "addition":
        splits, sizes = _in_memory(addition.generate())
    elif isinstance(name, str) and name.startswith("tfds:"):
        splits, sizes = tfds_pairs.load(
            name.removeprefix("tfds:"), source, target, data_dir
        )
    elif path.is_dir():
        splits, sizes = _folder(path, source, target)
    elif path.is_file() and scan.name_of(path):
        splits, sizes = _in_memory(scan.load(path))
    elif path.is_file():
        splits, sizes = tab_separated.split_by_source(path, source, target)
    else:
        raise ValueError(
            'Expected "phrases", "addition", a folder of line-aligned files, a '
            'file of tab-separated pairs or "tfds:NAME/CONFIG". '
            f"Received: {os.fspath(name)!r}"
        )
    return Corpus(os.fspath(name), splits, sizes, (source, target))
