"""Sentences in which "it" means one of two animals: the embedded `referents`.

```
the old dog saw the cat because it was curious       -> dog
the old dog saw the cat because it was colourful     -> cat
the cat was seen by the old dog because it was curious -> dog
```

Who sees is curious, and what is seen is colourful: the last word says which
of the two is meant, the verb's form who sees. Both animals may have an
adjective or a place, so that their positions tell little. An ordered pair of
animals stands in one split only.
"""

import random

ANIMALS = (
    "ant bear cat cow crow dog duck fox frog goat hen horse lion mouse owl "
    "pig rat seal sheep wolf"
).split()
ADJECTIVES = "old young small big brown white".split()
PLACES = "barn gate house pond road tree".split()
PREPOSITIONS = "behind by near".split()
VERBS = {
    "saw": "seen",
    "watched": "watched",
    "followed": "followed",
    "found": "found",
}
# What explains who acts, and what explains what is acted upon.
OF_ACTOR = "curious bored hungry lonely watchful idle".split()
OF_OTHER = "colourful noisy slow odd shiny famous".split()


def _animal(generator: random.Random, animal: str) -> str:
    adjective = generator.choice([*ADJECTIVES, *[""] * len(ADJECTIVES)])
    words = ["the", adjective, animal]
    if generator.random() < 0.3:
        words += [generator.choice(PREPOSITIONS), "the"]
        words.append(generator.choice(PLACES))
    return " ".join(word for word in words if word)


def _sentence(generator: random.Random, actor: str, other: str):
    """A label and its sentence."""
    verb = generator.choice(list(VERBS))
    first, second = _animal(generator, actor), _animal(generator, other)
    if generator.random() < 0.5:
        clause = f"{first} {verb} {second}"
    else:
        clause = f"{second} was {VERBS[verb]} by {first}"
    means_actor = generator.random() < 0.5
    reason = generator.choice(OF_ACTOR if means_actor else OF_OTHER)
    label = actor if means_actor else other
    return label, f"{clause} because it was {reason}"


def generate(
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
    seed: int = 0,
) -> dict[str, list[tuple[str, str]]]:
    """Draws the corpus: the same one at every call.

    Args:
        train, validation, test: sentences in each split.
        seed: another seed draws another corpus.

    Returns:
        Split -> rows of a label and a sentence.
    """
    generator = random.Random(seed)
    pairs = [(a, b) for a in ANIMALS for b in ANIMALS if a != b]
    generator.shuffle(pairs)
    tenth = len(pairs) // 10
    of_split = {
        "train": pairs[2 * tenth :],
        "validation": pairs[:tenth],
        "test": pairs[tenth : 2 * tenth],
    }
    sizes = {"train": train, "validation": validation, "test": test}
    return {
        split: [
            _sentence(generator, *generator.choice(of_split[split]))
            for _ in range(size)
        ]
        for split, size in sizes.items()
    }
