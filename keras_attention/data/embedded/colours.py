"""Lists of things, two of which are mine: the embedded `colours`.

```
the red hat a blue cup my green shoe the red bag my blue hat -> blue and green
```

The label names the two colours behind "my". They stand anywhere, and things
of other people have colours, too. Who knows only how often each word occurs
knows which colours there are, but not which are mine.
"""

import random

from keras_attention.data.embedded import drawn_rows

COLOURS = "black blue green red white yellow".split()
THINGS = "bag book box cap cup hat pen scarf shoe sock".split()
OWNERS = "the a your his her".split()


def _list(generator: random.Random) -> tuple[str, str]:
    """A label and its list."""
    mine = generator.sample(COLOURS, 2)
    phrases = [("my", colour) for colour in mine]
    for _ in range(generator.randint(2, 6)):
        phrases.append((generator.choice(OWNERS), generator.choice(COLOURS)))
    generator.shuffle(phrases)
    words = [
        word
        for owner, colour in phrases
        for word in (owner, colour, generator.choice(THINGS))
    ]
    return " and ".join(sorted(mine)), " ".join(words)


def generate(
    train: int = 12_000,
    validation: int = 1_000,
    test: int = 2_000,
    seed: int = 0,
) -> dict[str, list[tuple[str, str]]]:
    """Draws the corpus: the same one at every call.

    Args:
        train, validation, test: lists in each split. None is in two.
        seed: another seed draws another corpus.

    Returns:
        Split -> rows of a label and a text.
    """
    return drawn_rows.draw(_list, train, validation, test, seed)
