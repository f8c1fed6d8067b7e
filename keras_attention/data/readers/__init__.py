"""Corpora as people write them: files, folders and TFDS, to rows of texts."""
