"""The RNN transducer of chapter 16 over the embedded pronunciations."""

import keras
import numpy as np
from keras import ops

import keras_attention as ka
from keras_attention.data.embedded import pronunciations
from keras_attention.tokens import END, PAD, START

LONGEST, UNITS = 9, 64
EPOCHS, BATCH, RATE, SEED = 4, 64, 4e-3, 1
# After so many batches training is looked at: the paths become few here.
EARLY = (100, 120, 150)
# Words, and what is said instead of their own sounds.
SHOWN = {"chiave": None, "taxi": None, "gnocchi": None, "ghiaccio": None}
SHOWN["maxi"] = "m a s i"


class Rows:
    """The corpus as ids."""

    def __init__(self):
        self.corpus = {
            split: [pair for pair in pairs if len(pair[0]) <= LONGEST]
            for split, pairs in pronunciations.generate(
                train=35_000, held_out=1_200
            ).items()
        }
        train = self.corpus["train"]
        letters = sorted({one for word, _ in train for one in word})
        names = sorted({one for _, said in train for one in said.split()})
        self.letters = {one: i for i, one in enumerate(letters, END + 1)}
        self.names = {one: i for i, one in enumerate(names, END + 1)}

    def ids(self, rows):
        """Inputs, and labels, padded."""
        sources = [
            [*(self.letters[one] for one in word), END] for word, _ in rows
        ]
        targets = [
            [self.names[one] for one in said.split()] for _, said in rows
        ]

        def padded(rows):
            return keras.utils.pad_sequences(rows, padding="post", value=PAD)

        inputs = {
            "source_ids": padded(sources),
            "target_ids": padded([[START, *row] for row in targets]),
        }
        return inputs, padded([[*row, END] for row in targets])


class Early(keras.callbacks.Callback):
    """Calls a function after each number of batches in `EARLY`."""

    def __init__(self, function):
        super().__init__()
        self.function, self.seen = function, 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen in EARLY:
            self.function()


def trained(rows, looked_at):
    """The transducer after chapter 16's training, which `looked_at` sees."""
    keras.utils.set_random_seed(SEED)
    model = ka.models.RNNTransducer(
        vocabulary_size=END + 1 + len(rows.names),
        source_vocabulary_size=END + 1 + len(rows.letters),
        embedding_dim=32,
        units=UNITS,
        joint_dim=UNITS,
        num_layers=1,
    )
    model.build()
    looked_at(model)
    inputs, labels = rows.ids(rows.corpus["train"])
    steps = EPOCHS * -(-len(labels) // BATCH)
    trainer = ka.training.trainer.Trainer(
        model, objective=type(model).objective
    )
    trainer.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(RATE, steps), clipnorm=1.0
        ),
        jit_compile=False,
    )
    trainer.fit(
        inputs,
        labels,
        BATCH,
        EPOCHS,
        sample_weight=(labels != PAD).astype("float32"),
        verbose=0,
        callbacks=[Early(lambda: looked_at(model))],
    )
    looked_at(model)
    return model


def lattice(model, rows, word, said):
    """log y(j, i) [S, T], log blank(j, i) [S, T + 1], log p(y | x)."""
    inputs, labels = rows.ids([(word, said)])
    features = model.encode(inputs["source_ids"])["features"]
    state = model.initial_state(model.encode(inputs["source_ids"]))
    prediction, _ = model._predict(inputs["target_ids"], state["prediction"])
    log_p = model._log_probabilities(features, prediction)[0]  # [T + 1, S, V]
    log_p = ops.convert_to_numpy(log_p).astype("float64")
    tokens = labels[0, :-1]
    by_token = [log_p[i, :, token] for i, token in enumerate(tokens)]
    total = model.log_probability(inputs["source_ids"], labels)
    return {
        "token": np.transpose(by_token).round(5).tolist(),
        "blank": log_p[:, :, END].T.round(5).tolist(),
        # For the page's tests: the package's own sum.
        "total": round(float(total[0]), 5),
    }


def share_right(model, rows):
    """The share of 500 test words in which each sound is the likeliest."""
    inputs, labels = rows.ids(rows.corpus["test"][:500])
    logits = model.predict(inputs, batch_size=250, verbose=0)
    is_right = (logits.argmax(axis=-1) == labels) | (labels == PAD)
    return round(float(is_right.all(axis=1).mean()), 4)


def data() -> dict:
    """What the page is given, after a training of minutes."""
    rows = Rows()
    pairs = [
        (word, said or pronunciations.pronounce(word))
        for word, said in SHOWN.items()
    ]
    seen, shares = [], []

    def looked_at(model):
        seen.append([lattice(model, rows, *pair) for pair in pairs])
        shares.append(share_right(model, rows))
        print("right:", shares[-1], [one["total"] for one in seen[-1]])

    trained(rows, looked_at)
    return {
        "times": [
            "before training",
            *(f"after {number} batches" for number in EARLY),
            "after training",
        ],
        "right": shares,
        "words": [
            {
                "letters": [*word, "END"],
                "sounds": said.split(),
                "isRight": said == pronunciations.pronounce(word),
                "lattices": [of_words[place] for of_words in seen],
            }
            for place, (word, said) in enumerate(pairs)
        ],
        "origin": {
            "model": "RNNTransducer, one layer, 64 wide, as in "
            "tutorials/16_the_cursor.py",
            "seed": str(SEED),
            "data": "the embedded pronunciations, words of at most nine "
            "letters",
        },
    }
