"""Translation sets of TensorFlow Datasets, by name."""

import tensorflow as tf
import tensorflow_datasets as tfds

SPLITS = ("train", "validation", "test")  # of a set without metadata


def read_splits(
    builder: tfds.core.DatasetBuilder, names, source: str, target: str
) -> dict[str, tf.data.Dataset]:
    """The named splits of a prepared set, in a fixed order of pairs."""
    read_config = tfds.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    return {
        name: builder.as_dataset(
            split=name, shuffle_files=False, read_config=read_config
        ).map(lambda pair: {"source": pair[source], "target": pair[target]})
        for name in names
    }


def load(
    name: str, source: str, target: str, data_dir: str | None = None
) -> tuple[dict[str, tf.data.Dataset], dict[str, int]]:
    """Reads a set that is on disk already: nothing is downloaded.

    Args:
        name: as `tfds.load` takes it, such as
            "ted_hrlr_translate/pt_to_en".
        source, target: two languages of the set.
        data_dir: where TensorFlow Datasets keeps its data.

    Returns:
        `(splits, sizes)`: {"source", "target"} string scalars, and counts.

    Errors: `ValueError` for a name that is unknown, a set that is not
    prepared (it says how to), is no translation set, or lacks a language.
    """
    try:
        builder = tfds.builder(name, data_dir=data_dir, try_gcs=False)
    except (tfds.core.DatasetNotFoundError, ValueError) as error:
        raise ValueError(
            "Expected the name of a TensorFlow Datasets translation set, such "
            f"as ted_hrlr_translate/pt_to_en. Received: {name!r}: {error}"
        ) from error
    languages = getattr(builder.info.features, "languages", None) or list(
        builder.info.features
    )
    for language in (source, target):
        if language not in languages:
            raise ValueError(
                f"Expected languages of {name}: {sorted(languages)}. "
                f"Received: {language!r}"
            )
    # Not `tfds.load`: it would download a set that was never prepared, and
    # offline the attempt takes minutes to fail.
    try:
        names = list(builder.info.splits) or SPLITS
        splits = read_splits(builder, names, source, target)
    except (AssertionError, FileNotFoundError) as error:
        raise ValueError(
            "Expected a set that is prepared on this machine. Prepare it "
            "once, with a network: python -c 'import tensorflow_datasets as "
            f'tfds; tfds.builder("{name}").download_and_prepare()\'. '
            f"Received: {name!r}, not in {builder.data_dir}"
        ) from error
    known = builder.info.splits
    sizes = {
        split: known[split].num_examples
        if split in known
        else sum(1 for _ in dataset)
        for split, dataset in splits.items()
    }
    return splits, sizes
