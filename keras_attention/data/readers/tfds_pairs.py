"""Translation sets of TensorFlow Datasets, by name and slices.

Slices are written as TensorFlow Datasets does, after an "@": those of train,
validation and test, in this order, with commas between them, such as
`para_crawl/ende@train[:98%],train[98%:99%],train[99%:]`.
"""

import os
import re
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

SPLITS = ("train", "validation", "test")  # of a set without metadata


def parse(name: str) -> tuple[str, dict[str, str]]:
    """`NAME/CONFIG@SLICE,SLICE,...`: the name, and split -> slice.

    Raises:
        ValueError: If there are more than three slices.
    """
    name, _, text = name.partition("@")
    slices = [part.strip() for part in text.split(",") if part.strip()]
    if len(slices) > len(SPLITS):
        raise ValueError(
            "Expected up to three slices: of train, validation and test. "
            f"Received: {text!r}"
        )
    return name, dict(zip(SPLITS, slices, strict=False))


def read_splits(
    builder: tfds.core.DatasetBuilder,
    slices: Mapping[str, str],
    source: str,
    target: str,
) -> dict[str, tf.data.Dataset]:
    """The splits of a prepared set, in a fixed order of pairs.

    Args:
        builder: of the set.
        slices: split -> what it is of the set, as TensorFlow Datasets
            writes it.
        source, target: two of its languages.
    """
    read_config = tfds.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    return {
        split: _pairs(
            builder.as_dataset(
                split=part, shuffle_files=False, read_config=read_config
            ),
            builder.info.features,
            source,
            target,
        )
        for split, part in slices.items()
    }


def _translations(features):
    """Where the texts are: the feature, and its key (None: it is all)."""
    kinds = (
        tfds.features.Translation,
        tfds.features.TranslationVariableLanguages,
    )
    for key, feature in ((None, features), *features.items()):
        if isinstance(feature, kinds):
            return feature, key
    return features, None


def _pairs(dataset, features, source, target) -> tf.data.Dataset:
    feature, key = _translations(features)

    def translations(example):
        return example if key is None else example[key]

    def one_pair(example):
        texts = translations(example)
        return {"source": texts[source], "target": texts[target]}

    def all_pairs(example):
        """Each source with each target; none where a language is absent."""
        texts = translations(example)
        sources, targets = (
            tf.boolean_mask(texts["translation"], texts["language"] == language)
            for language in (source, target)
        )
        return {
            "source": tf.repeat(sources, tf.size(targets)),
            "target": tf.tile(targets, [tf.size(sources)]),
        }

    if not isinstance(feature, tfds.features.TranslationVariableLanguages):
        return dataset.map(one_pair)
    pairs = dataset.map(all_pairs).unbatch()
    return pairs.apply(tf.data.experimental.assert_cardinality(_count(pairs)))


def _count(pairs: tf.data.Dataset) -> int:
    count = int(pairs.cardinality())
    if count < 0:
        count = int(pairs.reduce(np.int64(0), lambda count, _: count + 1))
    return count


def _builder(name, source, target, data_dir):
    """The builder of a set that has the two languages."""
    try:
        builder = tfds.builder(name, data_dir=data_dir, try_gcs=False)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise ValueError(
            "Expected the name of a TensorFlow Datasets translation set, such "
            f"as ted_hrlr_translate/pt_to_en. Received: {name!r}: {error}"
        ) from error
    feature, _ = _translations(builder.info.features)
    languages = getattr(feature, "languages", None) or list(feature)
    for language in (source, target):
        if language not in languages:
            raise ValueError(
                f"Expected languages of {name}: {sorted(languages)}. "
                f"Received: {language!r}"
            )
    return builder


def _complete(slices: dict[str, str], known) -> dict[str, str]:
    """The slices asked for, and the set's own splits where none is.

    Where a set has no validation, it is what `train[:90%]` leaves.
    """
    complete = {split: split for split in known or SPLITS} | slices
    first = re.fullmatch(r"(\w+)\[:([^:]+)\]", complete.get("train", ""))
    if "validation" not in complete and first:
        complete["validation"] = f"{first[1]}[{first[2]}:]"
    if "validation" not in complete:
        raise ValueError(
            "Expected slices for train and validation of a set without "
            'validation, such as "tfds:NAME@train[:98%],train[98%:]". '
            f"Received: the splits {sorted(complete)}"
        )
    return complete


def load(
    name: str,
    source: str,
    target: str,
    data_dir: str | os.PathLike | None = None,
) -> tuple[dict[str, tf.data.Dataset], dict[str, int]]:
    """Reads a set that is on disk already: nothing is downloaded.

    Args:
        name: as `tfds.load` takes it, such as
            "ted_hrlr_translate/pt_to_en", perhaps with slices:
            "NAME@train[:90%]" or "NAME@train[:98%],train[98%:]".
        source, target: two languages of the set. Examples may have texts in
            many languages, as in ted_multi_translate. Those that have both
            are the pairs.
        data_dir: where TensorFlow Datasets keeps its data.

    Returns:
        `(splits, sizes)`: {"source", "target"} string scalars, and counts.

    Raises:
        ValueError: For a name or slice that is unknown, and a set that is
            not prepared (it says how to), is no translation set, lacks a
            language or has no pair of the two.
    """
    name, slices = parse(name)
    data_dir = None if data_dir is None else os.fspath(data_dir)
    builder = _builder(name, source, target, data_dir)
    # Not `tfds.load`: it would download a set that was never prepared, and
    # offline the attempt takes minutes to fail.
    try:
        slices = _complete(slices, builder.info.splits)
        splits = read_splits(builder, slices, source, target)
    except (AssertionError, FileNotFoundError) as error:
        raise ValueError(
            "Expected a set that is prepared on this machine. Prepare it "
            "once, with a network: python -c 'import tensorflow_datasets as "
            f'tfds; tfds.builder("{name}").download_and_prepare()\'. '
            f"Received: {name!r}, not in {builder.data_dir}"
        ) from error
    sizes = {split: _count(pairs) for split, pairs in splits.items()}
    for split, size in sizes.items():
        if not size:
            raise ValueError(
                f"Expected pairs of {source} and {target}. "
                f"Received: {name} without one in {slices[split]}"
            )
    return splits, sizes
