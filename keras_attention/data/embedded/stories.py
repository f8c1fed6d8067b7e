"""Stories and questions about them: the embedded `stories`.

```
ben went to the hall / dora took the cup / dora went to the barn
where is ben?      -> hall
where is the cup?  -> barn
```

Where a person is, one sentence says: the last one that moves the person.
Where a thing is, two say: who took it last, and where that person is now, or
was when the thing was left. They are made like the first two tasks of bAbI.

Reference: https://arxiv.org/abs/1502.05698 (Weston et al. 2015)
"""

import random

from keras_attention.data.embedded import drawn_rows

PEOPLE = "anna ben carl dora".split()
PLACES = "attic barn garden hall kitchen office".split()
THINGS = "apple ball cup".split()
MOVES = ("went to", "walked to", "ran to")


def _story(generator: random.Random) -> tuple[str, str, str]:
    """An answer, a story and a question."""
    # Where each person is, who holds a thing, and where a thing was left.
    places: dict[str, str] = {}
    holders: dict[str, str] = {}
    left: dict[str, str] = {}
    lines = []
    for _ in range(generator.randint(3, 8)):
        person = generator.choice(PEOPLE)
        free = [thing for thing in THINGS if thing not in holders]
        held = [thing for thing in holders if holders[thing] == person]
        chance = generator.random()
        # A story begins with a move: then an answer is known.
        if lines and free and chance < 0.35:
            thing = generator.choice(free)
            holders[thing] = person
            left.pop(thing, None)
            lines.append(f"{person} took the {thing}")
        elif person in places and held and chance > 0.85:
            thing = generator.choice(held)
            del holders[thing]
            left[thing] = places[person]
            lines.append(f"{person} left the {thing}")
        else:
            places[person] = generator.choice(PLACES)
            move = generator.choice(MOVES)
            lines.append(f"{person} {move} the {places[person]}")
    # A thing that is held is where its holder is.
    things = left | {
        thing: places[person]
        for thing, person in holders.items()
        if person in places
    }
    if things and generator.random() < 0.7:
        asked = generator.choice(sorted(things))
        return things[asked], "\n".join(lines), f"where is the {asked}"
    asked = generator.choice(sorted(places))
    return places[asked], "\n".join(lines), f"where is {asked}"


def facts(story: str, question: str) -> list[int]:
    """The sentences that support the answer: 1 is the last one of the story.

    The last move says where a person is. Two sentences say where a thing is:
    who took or left it last, and where that person went last, or had gone when
    the thing was left.
    """
    told = [line.split() for line in reversed(story.split("\n"))]
    holds = ("took", "left")
    asked = question.split()[-1]

    def last_move(person, before=0):
        return next(
            place
            for place, (who, verb, *_) in enumerate(told, 1)
            if place > before and who == person and verb not in holds
        )

    if asked in PEOPLE:
        return [last_move(asked)]
    place, person, verb = next(
        (place, who, verb)
        for place, (who, verb, *_, what) in enumerate(told, 1)
        if what == asked and verb in holds
    )
    return [place, last_move(person, place if verb == "left" else 0)]


def generate(
    train: int = 20_000,
    validation: int = 1_000,
    test: int = 2_000,
    seed: int = 0,
) -> dict[str, list[tuple[str, str, str]]]:
    """Draws the corpus: the same one at every call.

    Args:
        train, validation, test: stories in each split. None is in two.
        seed: another seed draws another corpus.

    Returns:
        Split -> rows of an answer, a story (a sentence on each line) and a
        question.
    """
    return drawn_rows.draw(_story, train, validation, test, seed)
