"""Corpora: rows of named columns in splits, and where pairs come from."""

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata

import tensorflow as tf

from keras_attention import files, suggestions
from keras_attention.data.embedded import (
    addition,
    copying,
    mentions,
    phrases,
    pronunciations,
    sentences,
)
from keras_attention.data.readers import (
    counted_pairs,
    lines,
    parallel_files,
    scan,
    tab_separated,
    texts,
)
from keras_attention.data.readers.lines import read_lines

__all__ = ["Corpus", "load", "read_lines"]

# They write the phrases.
LIBRARIES = ("babel", "num2words")
# Embedded corpora of pairs, which are drawn in memory.
_DRAWN = {
    "addition": addition.generate,
    "copying": copying.generate,
    "mentions": mentions.generate,
    "pronunciations": pronunciations.generate,
}


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

    def __repr__(self) -> str:
        facts = [self.name]
        if self.splits:
            columns = next(iter(self.splits.values())).element_spec
            facts.append(f"columns {', '.join(columns)}")
        facts += [f"{split} {size:,}" for split, size in self.sizes.items()]
        return f"<Corpus: {'; '.join(facts)}>"

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


def _phrases(source: str, target: str, data_dir: pathlib.Path | None):
    """Pairs of phrases, which are drawn once and kept in a file."""
    home = data_dir or lines.to_path(
        os.environ.get("KERAS_ATTENTION_HOME")
        or pathlib.Path.home() / ".cache" / "keras_attention"
    )
    # Other versions of the libraries may write other phrases.
    versions = [f"{name}{metadata.version(name)}" for name in LIBRARIES]
    name = "_".join((source, target, phrases.VERSION, *versions))
    path = home / f"phrases_{name}.tsv"
    if not path.is_file():
        drawn = phrases.generate(source, target)
        text = "".join(
            f"{split}\t{pair.source}\t{pair.target}\n"
            for split, pairs in drawn.items()
            for pair in pairs
        )
        home.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, text.encode())
    pairs: dict[str, list[tuple[str, str]]] = {}
    for line in read_lines(path):
        split, *pair = line.split("\t")
        pairs.setdefault(split, []).append(tuple(pair))
    return _in_memory(pairs)


def _in_memory(pairs: dict[str, list[tuple[str, str]]]):
    """Splits and sizes of lists of pairs."""
    corpus = Corpus.of_rows("", ("source", "target"), pairs)
    return corpus.splits, corpus.sizes


def _each_with_itself(folder: pathlib.Path, language: str):
    """Pairs of a line and the same line, for an autoencoder."""
    aligned = parallel_files.find_files(folder, language, language)
    if not aligned:  # A language model's folder.
        files = parallel_files.one_a_split(folder, texts.ENDINGS)
        aligned = {split: (path, path) for split, path in files.items()}
    for split in ("train", "validation"):
        if split not in aligned:
            raise ValueError(
                f"{folder} has no {split}.{language}, nor {split}.txt, plain "
                "or compressed. An autoencoder (source and target are both "
                f"{language}) reads one of them, a text on each line."
            )
    loaded = {split: parallel_files.pairs(*aligned[split]) for split in aligned}
    return tuple(
        {split: found[part] for split, found in loaded.items()}
        for part in (0, 1)
    )


def _folder(folder: pathlib.Path, source: str, target: str):
    if source == target:
        return _each_with_itself(folder, source)
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
            raise parallel_files.two_files(
                split, aligned[split][0], tables[split]
            )
        splits[split], sizes[split] = (
            tab_separated.pairs(tables[split], source, target)
            if split in tables
            else parallel_files.pairs(*aligned[split])
        )
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
        name: "phrases", "addition", "copying", "pronunciations" or
            "mentions", the embedded corpora; a folder of line-aligned files,
            of tab-separated ones or of one split of SCAN; one tab-separated
            file, which is split by the hash of its sources; one of SCAN's
            training files, which means its split; or "tfds:NAME/CONFIG",
            perhaps with slices: "tfds:NAME/CONFIG@train[:90%]". A
            `pathlib.Path` is always a folder or a file; `~` is the user's home.
        source, target: language codes. With one language twice, the pairs of
            an autoencoder are loaded: each text is its own target. The corpus
            is then "phrases", "sentences", "tfds:...", or a folder with a
            file of that language for each split, or with `train.txt` and so
            on.
        data_dir: where prepared data is kept: for phrases by default
            $KERAS_ATTENTION_HOME or ~/.cache/keras_attention, for TFDS its
            own default.

    Returns:
        `Corpus` with at least the splits "train" and "validation".

    Raises:
        ValueError: If a corpus is not there or not sound; for files it
            names file and line.
    """
    path = lines.to_path(name)
    data_dir = data_dir and lines.to_path(data_dir)
    is_tfds = isinstance(name, str) and name.startswith("tfds:")
    if source == target and not (
        name in ("phrases", "sentences") or is_tfds or path.is_dir()
    ):
        raise ValueError(
            f"{os.fspath(name)} has no texts of one language alone. An "
            f"autoencoder (source and target are both {source}) trains on "
            f"phrases, sentences, tfds:NAME/CONFIG or a folder with "
            f"train.{source} and validation.{source}."
        )
    if name == "sentences" and source != target:
        raise ValueError(
            "sentences has one language. An autoencoder trains on it: "
            "--source=en --target=en."
        )
    if name == "phrases":
        splits, sizes = _phrases(source, target, data_dir)
    elif name in _DRAWN:
        splits, sizes = _in_memory(_DRAWN[name]())
    elif name == "sentences":
        splits, sizes = _in_memory(
            {
                split: [(text, text) for text in drawn]
                for split, drawn in sentences.generate().items()
            }
        )
    elif is_tfds:
        # TensorFlow Datasets takes seconds to import.
        from keras_attention.data.readers import tfds_pairs

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
            f"There is no corpus {os.fspath(name)!r}"
            f"{suggestions.closest(name, ['phrases', *_DRAWN])}. Name phrases, "
            f"{', '.join(_DRAWN)}, a folder of line-aligned files, a table of "
            "pairs or tfds:NAME/CONFIG."
        )
    return Corpus(os.fspath(name), splits, sizes, (source, target))
