"""Rows that are drawn by chance, in splits that share no text."""

import random
from collections.abc import Callable

Row = tuple[str, ...]


def draw(
    draw_row: Callable[[random.Random], Row],
    train: int,
    validation: int,
    test: int,
    seed: int,
) -> dict[str, list[Row]]:
    """Draws rows until each split is full.

    Args:
        draw_row: draws a label and its texts.
        train, validation, test: rows in each split. Each first text stands in
            one row.
        seed: another seed draws other rows.

    Returns:
        Split -> rows.
    """
    generator = random.Random(seed)
    # The held-out rows do not depend on the size of train.
    sizes = {"validation": validation, "test": test, "train": train}
    texts: set[str] = set()
    splits: dict[str, list[Row]] = {}
    for split, size in sizes.items():
        rows = splits[split] = []
        while len(rows) < size:
            row = draw_row(generator)
            if row[1] not in texts:
                texts.add(row[1])
                rows.append(row)
    return {split: splits[split] for split in ("train", "validation", "test")}
