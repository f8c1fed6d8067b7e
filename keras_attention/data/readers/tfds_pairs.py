"""Translation sets of TensorFlow Datasets, by name and slices.

Slices are written as TensorFlow Datasets does, after an "@": those of train,
validation and test, in this order, with commas between them, such as
`para_crawl/ende@train[:98%],train[98%:99%],train[99%:]`.
"""

import os
import re

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

SPLITS = ("train", "validation", "test")  # of a set without metadata


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
        `(splits, sizes)`: {"source", "target"} string scalars in a fixed
        order, and counts.

    Raises:
        ValueError: For a name or slice that is unknown, and a set that is
            not prepared (it says how to), is no translation set, lacks a
            language or has no pair of the two.
    """
    name, _, slices = name.partition("@")
    builder = _builder(name, source, target, data_dir)
    slices = _slices(name, slices, builder.info.splits)
    read_config = tfds.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    # Not `tfds.load`: it would download a set that was never prepared, and
    # offline the attempt takes minutes to fail.
    try:
        splits = {
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
    except (AssertionError, FileNotFoundError) as error:
        raise ValueError(
            f"{name} is not prepared on this machine, in {builder.data_dir}. "
            "Prepare it once, with a network: python -c 'import "
            f'tensorflow_datasets as tfds; tfds.builder("{name}")'
            ".download_and_prepare()'"
        ) from error
    sizes = {split: _count(pairs) for split, pairs in splits.items()}
    for split, size in sizes.items():
        if not size:
            raise ValueError(
                f"{name} has no pairs of {source} and {target} in "
                f"{slices[split]}."
            )
    return splits, sizes


def _builder(name, source, target, data_dir):
    """The builder of a set that has the two languages."""
    data_dir = None if data_dir is None else os.fspath(data_dir)
    try:
        builder = tfds.builder(name, data_dir=data_dir, try_gcs=False)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise ValueError(
            f"TensorFlow Datasets has no translation set {name!r}. A valid "
            f"name is, for example, ted_hrlr_translate/pt_to_en. {error}"
        ) from error
    feature, _ = _translations(builder.info.features)
    languages = getattr(feature, "languages", None) or list(feature)
    for language in (source, target):
        if language not in languages:
            raise ValueError(
                f"{name} has no language {language!r}. It has "
                f"{sorted(languages)}."
            )
    return builder


def _slices(name, text, known) -> dict[str, str]:
    """The slices asked for, and the set's own splits where none is.

    Where a set has no validation, it is what `train[:90%]` leaves.
    """
    asked = [part.strip() for part in text.split(",") if part.strip()]
    if len(asked) > len(SPLITS):
        raise ValueError(
            "A set has up to three slices, of train, validation and test. "
            f"Received: {text!r}"
        )
    slices = {split: split for split in known or SPLITS}
    slices |= dict(zip(SPLITS, asked, strict=False))
    first = re.fullmatch(r"(\w+)\[:([^:]+)\]", slices.get("train", ""))
    if "validation" not in slices and first:
        slices["validation"] = f"{first[1]}[{first[2]}:]"
    if "validation" not in slices:
        raise ValueError(
            f"{name} is a set without validation. Name slices of train for "
            'both, such as "tfds:NAME@train[:98%],train[98%:]".'
        )
    return slices


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
    if key is not None:
        dataset = dataset.map(lambda example: example[key])

    def all_pairs(texts):
        """Each source with each target; none where a language is absent."""
        sources, targets = (
            tf.boolean_mask(texts["translation"], texts["language"] == language)
            for language in (source, target)
        )
        if source == target:  # An autoencoder: each text with itself.
            return {"source": sources, "target": sources}
        return {
            "source": tf.repeat(sources, tf.size(targets)),
            "target": tf.tile(targets, [tf.size(sources)]),
        }

    if not isinstance(feature, tfds.features.TranslationVariableLanguages):
        return dataset.map(
            lambda texts: {"source": texts[source], "target": texts[target]}
        )
    pairs = dataset.map(all_pairs).unbatch()
    return pairs.apply(tf.data.experimental.assert_cardinality(_count(pairs)))


def _count(pairs: tf.data.Dataset) -> int:
    count = int(pairs.cardinality())
    if count < 0:
        count = int(pairs.reduce(np.int64(0), lambda count, _: count + 1))
    return count
