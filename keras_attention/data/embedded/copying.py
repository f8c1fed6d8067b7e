"""Copying: a text of random letters, and the same text.

A network that counts places can copy longer texts than it has ever seen. The
texts of training have 1 to 10 letters of 8, so that letters repeat. Those of
"validation" and "test_10" have 10. Those of "test" have 20, and those of
"test_40" have 40. Graves et al. 2014 copy vectors of 8 random bits in place of
letters.

Reference: https://arxiv.org/abs/1410.5401
"""

import random

LETTERS = "abcdefgh"
MOST_LETTERS = 10
LENGTHS = {"validation": 10, "test": 20, "test_10": 10, "test_40": 40}


def _text(generator: random.Random, length: int) -> str:
    return "".join(generator.choices(LETTERS, k=length))


def generate(
    train: int = 40_000, held_out: int = 500, seed: int = 0
) -> dict[str, list[tuple[str, str]]]:
    """Draws the corpus: the same one at every call.

    No held-out text is one of training's. Short texts are few, so the training
    set repeats them.

    Args:
        train: pairs of training.
        held_out: pairs of each other split.
        seed: another seed draws another corpus.

    Returns:
        Split -> pairs of source and target, which are equal.
    """
    splits: dict[str, list[str]] = {"train": []}
    held: set[str] = set()
    for split, length in LENGTHS.items():
        generator, chosen = random.Random(f"{seed} {split}"), {}
        while len(chosen) < held_out:
            drawn = _text(generator, length)
            if drawn not in held:
                chosen[drawn] = None
        splits[split] = list(chosen)
        held |= chosen.keys()
    generator = random.Random(f"{seed} train")
    while len(splits["train"]) < train:
        drawn = _text(generator, generator.randint(1, MOST_LETTERS))
        if drawn not in held:
            splits["train"].append(drawn)
    return {
        split: [(text, text) for text in texts]
        for split, texts in splits.items()
    }
