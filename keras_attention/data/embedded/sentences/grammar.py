"""A regular grammar of English-like sentences, with probabilities.

    the clever girl | who many dogs chase | dances often | and she laughs
    subject           clause about it       main verb      second verb

The grammar is a machine: in each state it writes a word and moves on. The
words so far tell the state, as no two arcs out of a state write the same word.
What a state keeps, a reader has to keep: the subject's kind and number until
the main verb and the pronoun, over any words between, and the tense until the
end.
"""

from collections.abc import Iterator
from typing import NamedTuple

END = ""  # The arc that ends a sentence writes no word.


class State(NamedTuple):
    """What the words so far leave open and what they have decided.

    Args:
        place: what comes next, a key of `RULES`.
        role: that of the noun phrase under way: "subject", "beside",
            "inner subject", "inner object" or "object".
        number: of that noun phrase, "one", "many", or "" while open.
        noun: kind and number of a clause's own subject.
        subject: kind and number of the sentence's subject.
        tense: of the main verb.
    """

    place: str
    role: str = ""
    number: str = ""
    noun: tuple[str, str] = ("", "")
    subject: tuple[str, str] = ("", "")
    tense: str = ""


START = State("determiner", role="subject")
Arc = tuple[float, str, State | None]  # Probability, word, next state.

DETERMINERS = {
    "": ["the"],
    "one": ["a", "every", "this"],
    "many": ["some", "many", "these", "few"],
}
# How probable one more adjective is. It is so seldom that after "the" a noun is
# likelier than any adjective: the likeliest continuation ends.
ADJECTIVE = 0.12
ADJECTIVES = (
    "small big young red green quiet proud tired clever happy lazy brave "
    "strange white black poor"
).split()
NOUNS = {
    "man": "king boy father brother prince nephew grandfather monk",
    "woman": "queen girl mother sister daughter niece grandmother nun",
    "animal": "dog cat horse lion tiger bear goat monkey",
    "thing": "car door lamp table kettle guitar clock window",
    "place": "garden river castle market bridge lake temple harbor",
}
PREPOSITIONS = ["near", "behind", "beside", "from", "below"]
PRONOUNS = {"man": "he", "woman": "she", "animal": "it", "thing": "it"}
PERSONS = ("man", "woman")
# Without an object, and with one.
VERBS = {
    "person": "laugh talk walk work wait dance listen cook",
    "animal": "bark growl jump hunt howl roar crawl yawn",
    "thing": "creak rust rattle crack tumble leak glow squeak",
}
VERBS_WITH_OBJECT = {
    "person": "like help admire paint visit call thank greet",
    "animal": "chase smell lick scare guard attack sniff ignore",
    "thing": "cover block support surround delight annoy warm bother",
}
ADVERBS = {
    "present": ["now", "often", "today", "always"],
    "past": ["yesterday", "once", "recently", "before"],
}


def spread(probability: float, words, state: State | None) -> Iterator[Arc]:
    """Arcs to one state: the word of rank r is as likely as 1 / (r + 1)."""
    weights = [1 / (rank + 2) for rank in range(len(words))]
    for word, weight in zip(words, weights, strict=True):
        yield probability * weight / sum(weights), word, state


def nouns(kind: str, number: str) -> list[str]:
    """The nouns of a kind, in singular or plural."""
    ending = "s" if number == "many" else ""
    return [noun + ending for noun in NOUNS[kind].split()]


def verbs(table: dict, noun: tuple[str, str], tense: str) -> list[str]:
    """The verbs of a noun's kind, in the form that agrees with it."""
    kind, number = noun
    forms = []
    for verb in table["person" if kind in PERSONS else kind].split():
        if tense == "past":
            forms.append(verb + ("d" if verb.endswith("e") else "ed"))
        else:
            forms.append(verb + ("s" if number == "one" else ""))
    return forms


def determiner(state: State, probability: float = 1.0) -> Iterator[Arc]:
    """The first word of a noun phrase; "the" leaves its number open."""
    for number, share in {"": 0.4, "one": 0.35, "many": 0.25}.items():
        yield from spread(
            probability * share,
            DETERMINERS[number],
            state._replace(place="noun", number=number),
        )


def noun(state: State) -> Iterator[Arc]:
    """Adjectives, any number of them, and the noun."""
    yield from spread(ADJECTIVE, ADJECTIVES, state)
    kinds = {"man": 0.25, "woman": 0.25, "animal": 0.3, "thing": 0.2}
    if state.role == "beside":
        kinds = {"place": 1.0}
    numbers = {state.number: 1.0} if state.number else {"one": 0.5, "many": 0.5}
    for kind, kind_share in kinds.items():
        for number, number_share in numbers.items():
            yield from spread(
                (1 - ADJECTIVE) * kind_share * number_share,
                nouns(kind, number),
                after_noun(state, kind, number),
            )


def after_noun(state: State, kind: str, number: str) -> State:
    """Where a noun phrase leads to, which depends on its role."""
    if state.role == "subject":
        return State("after subject", subject=(kind, number))
    if state.role == "inner subject":
        return State("inner verb", noun=(kind, number), subject=state.subject)
    if state.role == "object":
        return State("close", subject=state.subject, tense=state.tense)
    return State("verb", subject=state.subject)


def after_subject(state: State) -> Iterator[Arc]:
    """The main verb at once, or first more about the subject."""
    beside = State("determiner", role="beside", subject=state.subject)
    yield from spread(0.3, PREPOSITIONS, beside)
    pronoun = "who" if state.subject[0] in PERSONS else "that"
    yield 0.3, pronoun, State("clause", subject=state.subject)
    yield from verb(state, 0.4)


def clause(state: State) -> Iterator[Arc]:
    """ "who likes a dog", or "who many dogs chase"."""
    inner_object = State(
        "determiner", role="inner object", subject=state.subject
    )
    for tense in ("present", "past"):
        forms = verbs(VERBS_WITH_OBJECT, state.subject, tense)
        yield from spread(0.25, forms, inner_object)
    inner_subject = state._replace(role="inner subject")
    yield from determiner(inner_subject, 0.5)


def inner_verb(state: State) -> Iterator[Arc]:
    """The verb of a clause with a subject of its own."""
    successor = State("verb", subject=state.subject)
    for tense in ("present", "past"):
        forms = verbs(VERBS_WITH_OBJECT, state.noun, tense)
        yield from spread(0.5, forms, successor)


def verb(state: State, probability: float = 1.0) -> Iterator[Arc]:
    """The main verb agrees with the subject, whatever stands between."""
    for tense in ("present", "past"):
        close = State("close", subject=state.subject, tense=tense)
        forms = verbs(VERBS, state.subject, tense)
        yield from spread(probability * 0.2, forms, close)
        forms = verbs(VERBS_WITH_OBJECT, state.subject, tense)
        with_object = close._replace(place="determiner", role="object")
        yield from spread(probability * 0.3, forms, with_object)


def close(state: State) -> Iterator[Arc]:
    """An adverb of the verb's tense, a second verb, or the end."""
    successor = state._replace(place="after adverb")
    yield from spread(0.4, ADVERBS[state.tense], successor)
    yield 0.3, "and", state._replace(place="pronoun")
    yield 0.3, END, None


def after_adverb(state: State) -> Iterator[Arc]:
    """A second verb, or the end."""
    yield 0.3, "and", state._replace(place="pronoun")
    yield 0.7, END, None


def pronoun(state: State) -> Iterator[Arc]:
    """The subject again: nothing is left to chance."""
    kind, number = state.subject
    word = "they" if number == "many" else PRONOUNS[kind]
    yield 1.0, word, state._replace(place="second verb")


def second_verb(state: State) -> Iterator[Arc]:
    """Another verb of the same subject and tense."""
    forms = verbs(VERBS, state.subject, state.tense)
    yield from spread(1.0, forms, State("end"))


def end(state: State) -> Iterator[Arc]:
    """Nothing more."""
    yield 1.0, END, None


RULES = {
    "determiner": determiner,
    "noun": noun,
    "after subject": after_subject,
    "clause": clause,
    "inner verb": inner_verb,
    "verb": verb,
    "close": close,
    "after adverb": after_adverb,
    "pronoun": pronoun,
    "second verb": second_verb,
    "end": end,
}


def arcs(state: State) -> list[Arc]:
    """All ways out of a state; their probabilities sum to 1."""
    return list(RULES[state.place](state))
