"""Corpora as people write them: files, folders and TFDS, to rows of texts."""

import typing

from keras_attention import on_demand

__all__ = [
    "babi",
    "labelled_images",
    "labelled_texts",
    "published_labels",
    "scan",
    "streams",
    "texts",
]

if typing.TYPE_CHECKING:
    from keras_attention.data.readers import (
        babi,
        labelled_images,
        labelled_texts,
        published_labels,
        scan,
        streams,
        texts,
    )
else:
    __getattr__, __dir__ = on_demand.modules(__name__, __all__)
