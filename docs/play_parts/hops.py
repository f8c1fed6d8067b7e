"""The memory network of chapter 15 over the embedded stories."""

import keras
import numpy as np
from play_parts import halves

import keras_attention as ka
from keras_attention.data.embedded import stories
from keras_attention.tokens import END, PAD

WIDTH, NUM_HOPS, MEMORY_SIZE = 32, 3, 8
EPOCHS, BATCH, RATE, SEED = 6, 128, 5e-3, 1
# Stories of the test set that are shown: as many for things as for people.
NUM_SHOWN = 4


def make_places(rows):
    """Word -> id."""
    words = {word for row in rows for word in " ".join(row[1:]).split()}
    return {word: number for number, word in enumerate(sorted(words), END + 1)}


def ids(texts, places):
    """Ids [B, S] of texts whose sentences stand on lines."""
    rows = []
    for text in texts:
        row = []
        for line in text.split("\n"):
            row += [*(places[word] for word in line.split()), END]
        rows.append(row)
    return keras.utils.pad_sequences(rows, padding="post", value=PAD)


def examples(rows, places):
    """Inputs, and labels [B]."""
    answers, told, asked = zip(*rows, strict=True)
    inputs = {
        "story_ids": ids(told, places),
        "question_ids": ids(asked, places),
    }
    return inputs, np.array([*map(stories.PLACES.index, answers)])


def trained(rows, places):
    """The network after the training of chapter 15, its weights in 16 bits."""
    keras.utils.set_random_seed(SEED)
    model = ka.models.EndToEndMemoryNetwork(
        END + 1 + len(places),
        len(stories.PLACES),
        WIDTH,
        NUM_HOPS,
        memory_size=MEMORY_SIZE,
    )
    model.compile(
        keras.optimizers.Adam(RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    model.fit(*examples(rows, places), BATCH, EPOCHS, verbose=0)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(halves.rounded(weight.numpy()))
    return model


def shown(rows):
    """Some test stories of six sentences or more, by what they ask for."""
    found = {True: [], False: []}
    for row in rows:
        asks_thing = row[2].split()[-1] in stories.THINGS
        if row[1].count("\n") >= 5 and len(found[asks_thing]) < NUM_SHOWN:
            found[asks_thing].append(row)
    return [*found[True], *found[False]]


def told(row, answer):
    """A story as the page has it."""
    _, story, question = row
    lines = story.split("\n")
    facts = [len(lines) - fact for fact in stories.facts(story, question)]
    return {
        "sentences": lines,
        "question": question,
        "answer": row[0],
        "facts": facts,
        # For the page's tests.
        "logits": np.array(answer[0], "float64").round(5).tolist(),
    }


def data() -> dict:
    """What the page is given, after a training of minutes."""
    rows = stories.generate()
    places = make_places(rows["train"])
    model = trained(rows["train"], places)
    inputs, labels = examples(rows["test"], places)
    logits = model.predict(inputs, batch_size=500, verbose=0)
    chosen = shown(rows["test"])
    answers = [
        model.attend(examples([row], places)[0])[0].numpy() for row in chosen
    ]
    share = float(np.mean(logits.argmax(axis=1) == labels))
    print("right in the test set:", share)
    return {
        "words": [*places],
        "firstWord": END + 1,
        "people": stories.PEOPLE,
        "things": stories.THINGS,
        "places": stories.PLACES,
        "right": round(share, 4),
        "stories": [*map(told, chosen, answers)],
        "embeddings": [
            halves.packed(one.embeddings.numpy()) for one in model.embeddings
        ],
        "times": [halves.packed(one.embeddings.numpy()) for one in model.times],
        "output": halves.packed(model.output_projection.kernel.numpy()),
        "origin": {
            "model": "EndToEndMemoryNetwork, three hops, 32 wide, as in "
            "tutorials/15_asking_twice.py",
            "seed": str(SEED),
            "data": "the embedded stories, 20,000 to learn from",
        },
    }
