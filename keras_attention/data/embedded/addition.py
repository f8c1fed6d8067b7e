"""Binary addition: texts of two numbers and their sum.

A pair is `1101+0110` and `10001`, eleven and six make seventeen: both numbers
have the same length, the lowest bit stands first, and the sum has one bit more.
The code of Kaiser and Sutskever 2016 writes the lowest digit first, too.

The numbers of training have at most 10 bits. In half of its pairs they are
nearly each other's complement, so that a carry runs far. The bits of all other
splits are tosses of a fair coin: "validation" and "test" have 10 bits and none
of training's sums, "test_20" and "test_40" twice and four times as many.

Reference: https://arxiv.org/abs/1511.08228
"""

import random

MOST_BITS = 10
# The share of positions at which nearly complementary numbers agree.
AGREEMENT = 1 / 8
LENGTHS = {"validation": 10, "test": 10, "test_20": 20, "test_40": 40}


def text(number: int, num_bits: int) -> str:
    """A number in binary, the lowest bit first: 6 in 4 bits is "0110"."""
    return "".join(str(number >> place & 1) for place in range(num_bits))


def pair(first: int, second: int, num_bits: int) -> tuple[str, str]:
    """The texts of two numbers, and of their sum."""
    source = f"{text(first, num_bits)}+{text(second, num_bits)}"
    return source, text(first + second, num_bits + 1)


def _draw(generator: random.Random) -> tuple[int, int, int]:
    """Two numbers for training, and their bits."""
    num_bits = generator.randint(1, MOST_BITS)
    first = generator.getrandbits(num_bits)
    if generator.random() < 0.5:
        return first, generator.getrandbits(num_bits), num_bits
    agreeing = sum(
        (generator.random() < AGREEMENT) << place for place in range(num_bits)
    )
    everywhere = (1 << num_bits) - 1
    return first, first ^ everywhere ^ agreeing, num_bits


def generate(
    train: int = 40_000, held_out: int = 500, seed: int = 0
) -> dict[str, list[tuple[str, str]]]:
    """Draws the corpus: the same one at every call.

    Short numbers have few sums, so the training set repeats them.

    Args:
        train: pairs of training.
        held_out: pairs of each other split.
        seed: another seed draws another corpus.

    Returns:
        Split -> pairs of source and target.
    """
    splits: dict[str, list[tuple[str, str]]] = {"train": []}
    held: set[tuple[str, str]] = set()
    for split, num_bits in LENGTHS.items():
        generator, chosen = random.Random(f"{seed} {split}"), {}
        while len(chosen) < held_out:
            bits = (generator.getrandbits(num_bits) for _ in range(2))
            drawn = pair(*bits, num_bits)
            if drawn not in held:
                chosen[drawn] = None
        splits[split] = list(chosen)
        held |= chosen.keys()
    generator = random.Random(f"{seed} train")
    while len(splits["train"]) < train:
        drawn = pair(*_draw(generator))
        if drawn not in held:
            splits["train"].append(drawn)
    return splits
