"""Invented words, and how they are said by rules much like those of Italian.

A pair is `chiave` and `k j a v e`: letters, and sounds with blanks between. The
rules leave nothing open. They need only the letters on either side, and what is
said first is written first, so that the alignment is monotone:

- Two or three letters may be one sound: `gn` is ɲ, `sc` before e or i is ʃ.
- One letter may be two sounds: `x` is k s.
- A letter's sound depends on the letters after it: `c` is tʃ before e or i, and
  k elsewhere. In `cio` the i says only that.
- Two equal consonants are one long one: `tt` is tː.

The words are syllables in a row, drawn by chance. None stands in two splits.
"""

import itertools
import random
import re

VOWELS = "aeiou"
ONSETS = (
    *"b c d f g l m n p r s t v z".split(),
    *"ch ci gh gi gl gn sc sch sci qu".split(),
    *"br cr dr fr gr pr tr bl cl fl pl st sp x".split(),
)
# Consonants that may stand twice at the front of a syllable.
DOUBLED = "bcdfglmnprstvz"
CODAS = (*[""] * 10, "l", "m", "n", "r", "s")
MOST_SYLLABLES = 5

# The first rule that fits is taken. A group is doubled and makes a long sound.
RULES = (
    ("gli(?=[aeou])|gl(?=i)", "ʎ"),
    ("gn", "ɲ"),
    ("sci(?=[aou])|sc(?=[ei])", "ʃ"),
    ("(c)?(?:ci(?=[aou])|c(?=[ei]))", "tʃ"),
    ("(g)?(?:gi(?=[aou])|g(?=[ei]))", "dʒ"),
    ("(c)?ch", "k"),
    ("(g)?gh", "g"),
    ("(c)?q", "k"),
    ("x", "k s"),
    ("(z)?z", "ts"),
    ("(c)?c", "k"),
    ("(?<=[aeiou])s(?=[aeiou])", "z"),
    *((f"({letter})?{letter}", letter) for letter in "bdfglmnprstv"),
    ("i(?=[aeou])", "j"),
    ("u(?=[aeio])", "w"),
    *((vowel, vowel) for vowel in VOWELS),
)
_RULES = tuple((re.compile(letters), sound) for letters, sound in RULES)


def pronounce(word: str) -> str:
    """The sounds of a word, with blanks between them.

    Args:
        word: letters of Italian, in lower case.

    Raises:
        ValueError: If there is no rule for a letter.
    """
    sounds, place = [], 0
    while place < len(word):
        match, sound = _first_rule(word, place)
        is_long = match.re.groups and match.group(1)
        sounds.append(f"{sound}ː" if is_long else sound)
        place = match.end()
    return " ".join(sounds)


def _first_rule(word, place):
    """What the first rule that fits reads, and its sound."""
    for letters, sound in _RULES:
        match = letters.match(word, place)
        if match:
            return match, sound
    raise ValueError(
        f"There is no rule for {word[place:]!r} in {word!r}. A word has the "
        "letters of Italian, in lower case, and h only after c and g."
    )


def _draw(generator: random.Random) -> str:
    """A word of two to five syllables."""
    word = ""
    for _ in range(generator.randint(2, MOST_SYLLABLES)):
        onset = generator.choice(ONSETS)
        follows_vowel = word != "" and word[-1] in VOWELS
        if follows_vowel and onset[0] in DOUBLED and generator.random() < 0.2:
            onset = onset[0] + onset
        # A vowel may follow a vowel, and a word may begin with one.
        onset = onset if generator.random() < 0.85 else ""
        word += onset + generator.choice(VOWELS) + generator.choice(CODAS)
    return word


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
    generator = random.Random(seed)
    sizes = {"validation": held_out, "test": held_out, "train": train}
    words: dict[str, None] = {}
    while len(words) < sum(sizes.values()):
        words[_draw(generator)] = None
    drawn = iter(words)
    splits = {
        split: [
            (word, pronounce(word)) for word in itertools.islice(drawn, size)
        ]
        for split, size in sizes.items()
    }
    return {split: splits[split] for split in ("train", "validation", "test")}
