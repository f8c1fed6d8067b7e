"""Bags of words that are in another bag or not: the embedded `multisets`.

```
bop kat bop rin vel sug | sug bop rin -> entailment
bop kat bop rin vel sug | sug bop dal -> neutral
```

A hypothesis follows if each of its words is in the premise. Otherwise one of
its words is not. Order means nothing.
"""

import itertools
import random

from keras_attention.data.embedded import drawn_rows

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
# 200 words without a meaning: bab, bad, baf, ...
WORDS = [
    "".join(letters)
    for letters in itertools.islice(
        itertools.product(CONSONANTS, VOWELS, CONSONANTS), 0, None, 4
    )
][:200]


def _pair(generator: random.Random) -> tuple[str, str, str]:
    """A label, a premise and a hypothesis."""
    premise = generator.choices(WORDS, k=generator.randint(5, 10))
    hypothesis = generator.sample(premise, generator.randint(2, 4))
    label = generator.choice(("entailment", "neutral"))
    if label == "neutral":
        others = [word for word in WORDS if word not in premise]
        place = generator.randrange(len(hypothesis))
        hypothesis[place] = generator.choice(others)
    return label, " ".join(premise), " ".join(hypothesis)


def generate(
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
    seed: int = 0,
) -> dict[str, list[tuple[str, str, str]]]:
    """Draws the corpus: the same one at every call.

    Args:
        train, validation, test: pairs in each split. No premise is in two.
        seed: another seed draws another corpus.

    Returns:
        Split -> rows of a label, a premise and a hypothesis.
    """
    return drawn_rows.draw(_pair, train, validation, test, seed)
