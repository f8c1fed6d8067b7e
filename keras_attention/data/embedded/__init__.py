"""Corpora that are made, not read: they need no file and no network."""
