"""Who is mentioned? Each name once, in the order of the first mentions.

A pair is `bola remi bola tuso remi` and `bola remi tuso`. So all that is
written is copied from the source, and a name that is already written is not
written again. The names are invented.

No text stands twice.
"""

import itertools
import random

CONSONANTS = "bdfglmnrst"
VOWELS = "aeiou"
SYLLABLES = [a + b for a, b in itertools.product(CONSONANTS, VOWELS)]
NUM_NAMES = 100
MOST_NAMES = 4
MOST_MENTIONS = 2


def names() -> list[str]:
    """The names: two different syllables each."""
    pairs = [a + b for a, b in itertools.permutations(SYLLABLES, 2)]
    return random.Random(0).sample(pairs, NUM_NAMES)


def summary(text: str) -> str:
    """Each name of a text, in the order of the first mentions."""
    return " ".join(dict.fromkeys(text.split()))


def _draw(generator: random.Random, known: list[str]) -> str:
    """A text of two to four names, each mentioned once or twice."""
    mentions = []
    for name in generator.sample(known, generator.randint(2, MOST_NAMES)):
        mentions += [name] * generator.randint(1, MOST_MENTIONS)
    generator.shuffle(mentions)
    return " ".join(mentions)


def generate(
    train: int = 20_000, held_out: int = 500, seed: int = 0
) -> dict[str, list[tuple[str, str]]]:
    """Draws the corpus: the same one at every call.

    Args:
        train: pairs of training.
        held_out: pairs of validation and of test.
        seed: another seed draws another corpus.

    Returns:
        Split -> pairs of source and target.
    """
    generator, known = random.Random(seed), names()
    sizes = {"validation": held_out, "test": held_out, "train": train}
    texts: dict[str, None] = {}
    while len(texts) < sum(sizes.values()):
        texts[_draw(generator, known)] = None
    drawn = iter(texts)
    splits = {
        split: [(text, summary(text)) for text in itertools.islice(drawn, size)]
        for split, size in sizes.items()
    }
    return {split: splits[split] for split in ("train", "validation", "test")}
