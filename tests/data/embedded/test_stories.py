"""Stories, answered by a reader of their text alone."""

import re

from keras_attention.data.embedded import stories


def answered(story, question):
    """The answer, by reading the sentences in their order."""
    place, holder, left = {}, {}, {}
    for sentence in story.split("\n"):
        person, verb, *_, last = sentence.split()
        if verb == "took":
            holder[last] = person
            left.pop(last, None)
        elif verb == "left":
            assert holder.pop(last) == person
            left[last] = place.get(person)
        else:
            assert re.fullmatch(r"\w+ (went|walked|ran) to the \w+", sentence)
            place[person] = last
    asked = question.split()[-1]
    if asked in place:
        return place[asked]
    return place[holder[asked]] if asked in holder else left[asked]


def test_each_answer_is_the_one_that_the_story_tells():
    splits = stories.generate(train=2000, validation=100, test=100)
    rows = [row for of_split in splits.values() for row in of_split]
    assert all(
        answered(story, asked) == answer for answer, story, asked in rows
    )
    assert len({story for _, story, _ in rows}) == len(rows) == 2200
    of_things = sum("the" in question for _, _, question in rows)
    assert 600 < of_things < 1300
    # The last place that is named is often another one.
    last = sum(story.split()[-1] == answer for answer, story, _ in rows)
    assert last < 0.5 * len(rows)
    assert {answer for answer, _, _ in rows} == set(stories.PLACES)


def test_the_supporting_sentences_tell_the_answer_alone():
    """The other sentences could be left out. The order is that of the story."""
    rows = stories.generate(train=1000, validation=9, test=9)["train"]
    by_count = {1: 0, 2: 0}
    for answer, story, question in rows:
        facts = stories.facts(story, question)
        sentences = story.split("\n")
        assert len({*facts}) == len(facts)
        by_count[len(facts)] += 1
        kept = [sentences[-fact] for fact in sorted(facts, reverse=True)]
        person, verb, *_, thing = sentences[-facts[0]].split()
        if verb == "left":
            kept = [f"{person} took the {thing}", *kept]
        assert answered("\n".join(kept), question) == answer
        # The sentence about a thing comes before that about a person.
        asked = question.split()[-1]
        assert asked in sentences[-facts[0]].split()
    assert min(by_count.values()) > 200


def test_the_corpus_is_the_same_at_every_call():
    sizes = {"train": 20, "validation": 5, "test": 5}
    assert stories.generate(**sizes) == stories.generate(**sizes)
    assert stories.generate(**sizes) != stories.generate(**sizes, seed=1)
