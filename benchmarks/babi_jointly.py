"""Train one memory network on all 20 tasks of bAbI.

    python benchmarks/babi_jointly.py FOLDER OUTPUT --seed 1
    python benchmarks/babi_jointly.py FOLDER OUTPUT --model memory_network

FOLDER is bAbI's `en-valid`, with files such as qa1_train.txt, qa1_valid.txt and
qa1_test.txt: about 900, 100 and 1,000 questions a task. OUTPUT is a folder for
the log, the weights and the picture. The same command goes on with a training
that was stopped.

The first command trains as Sukhbaatar et al. 2015 do (section 4.2), which
`keras-attention train` does not: batches are 32 questions of any tasks, and
gradients are summed over a batch, not averaged. There is plain gradient
descent, and a gradient has a norm of at most 40. 30 epochs have no softmax in
the hops, at half the rate. 60 epochs with the softmax follow. Their rate is
0.01 at first, and is halved every 15 epochs. Hops read 50 memories: the last
sentences, and empty ones. The numbers of epochs and the weights of a word's
place are those of the authors' program.

The second command trains Weston et al. 2014's network, which is told the
sentences that support an answer, by the same steps. Choose its `--rate` by the
validation errors in the log.

The epoch of the fewest validation errors is kept. The test questions are
answered once, at the end. The table has the errors of each task in percent,
beside those of the papers. A task fails if its error is over 5 %.

The paper trains ten times, and reports the training of the lowest training
error. If each has a folder in OUTPUTS, this is the first of

    grep training_error OUTPUTS/*/log.txt | sort -uk2n

References: https://arxiv.org/abs/1503.08895, https://arxiv.org/abs/1502.05698
"""

import argparse
import io
import itertools
import json
import pathlib
import time

import keras
import numpy as np
import tensorflow as tf

from keras_attention import files, models, plotting
from keras_attention.data.readers import babi
from keras_attention.tokens import END, PAD, UNK

TASKS = range(1, 21)
SPLITS = ("train", "valid", "test")
BATCH_SIZE = 32
# The longest questions of a batch are a part of their own: less padding.
LONGEST = 8
CLIP_NORM = 40.0
EPOCHS = 60
HALVED_EVERY = 15
LINEAR_EPOCHS = 30
MEMORY_SIZE = 50
NUM_FACTS = 3
FAILED = 5.0
# The published errors of each task in percent. The means are 12.4 and 6.7.
PUBLISHED = {
    # Sukhbaatar et al. 2015, table 1: 3 hops, PE LS RN, joint.
    "end_to_end_memory_network": (
        *(0.0, 11.4, 21.9, 13.4, 14.4, 2.8, 18.3, 9.3, 1.9, 6.5),
        *(0.3, 0.1, 0.2, 6.9, 0.0, 2.7, 40.4, 9.4, 88.0, 0.0),
    ),
    # Weston et al. 2015, table 3: told the supporting facts, all extensions,
    # a network for each task.
    "memory_network": (
        *(0, 0, 0, 0, 2, 0, 15, 9, 0, 2, 0, 0, 0, 1, 0, 0, 35, 5, 64, 0),
    ),
}


class Encoder:
    """Words and answers as ids: those of the training questions.

    An answer of several words is one. One that training does not have is -1.

    Args:
        rows: as `read` gives them.
    """

    def __init__(self, rows):
        words = {
            word
            for _, story, question, _ in rows
            for word in f"{story}\n{question}".split()
        }
        self.words = {w: END + 1 + i for i, w in enumerate(sorted(words))}
        answers = sorted({answer for answer, *_ in rows})
        self.answers = {answer: i for i, answer in enumerate(answers)}

    def ids(self, sentence):
        return [*(self.words.get(word, UNK) for word in sentence.split()), END]

    def arrays(self, rows):
        """name -> array of all rows; "lengths" are those of the stories."""
        stories, questions, facts = [], [], []
        for _, story, question, supporting in rows:
            sentences = story.split("\n")[-MEMORY_SIZE:]
            stories.append(sum(map(self.ids, sentences), []))
            questions.append(self.ids(question))
            last = supporting[-1] if supporting else 0
            facts.append([*supporting, *[last] * NUM_FACTS][:NUM_FACTS])
        labels = [self.answers.get(answer, -1) for answer, *_ in rows]
        return {
            "story_ids": rectangle(stories),
            "question_ids": rectangle(questions),
            "facts": np.array(facts, "float32"),
            "labels": np.array(labels, "int32"),
            "lengths": np.array([len(story) for story in stories]),
        }


def rectangle(rows):
    table = np.full((len(rows), max(map(len, rows))), PAD, "int32")
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def read(folder):
    """Split -> task -> rows, in lower case: answer, story, question, facts.

    Raises:
        ValueError: If a task has no file, or several, or if one is no file of
            bAbI.
    """
    found = {}
    for split in SPLITS:
        found[split] = {}
        for task in TASKS:
            paths = [*pathlib.Path(folder).glob(f"qa{task}_*{split}.txt")]
            if len(paths) != 1:
                raise ValueError(
                    f"{folder} has {len(paths)} files such as "
                    f"qa{task}_{split}.txt. Give bAbI's folder en-valid."
                )
            found[split][task] = [
                (answer, story.lower(), question.lower(), facts)
                for of_story in babi.read(paths[0])
                for answer, story, question, facts in of_story
            ]
    return found


def part(arrays, rows):
    """Some rows, as short as the longest of them."""
    chosen = {name: array[rows] for name, array in arrays.items()}
    longest = chosen.pop("lengths").max()
    return chosen | {"story_ids": chosen["story_ids"][:, :longest]}


def batches(arrays, rng):
    """An epoch's batches in two parts each, of shorter and longer stories."""
    order = rng.permutation(len(arrays["labels"]))
    for start in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        rows = rows[np.argsort(arrays["lengths"][rows], kind="stable")]
        yield part(arrays, rows[:-LONGEST]), part(arrays, rows[-LONGEST:])


def losses(model, batch, training):
    """The loss of each question, and the answers' logits or scores."""
    inputs = {name: batch[name] for name in model.text_names}
    labels = tf.maximum(batch["labels"], 0)
    logits = model(inputs, training=training)
    if isinstance(model, models.MemoryNetwork):
        return model.ranking_loss(inputs, batch["facts"], labels), logits
    loss = keras.losses.sparse_categorical_crossentropy(
        labels, logits, from_logits=True
    )
    return loss, logits


SPEC = {
    "story_ids": tf.TensorSpec([None, None], "int32"),
    "question_ids": tf.TensorSpec([None, None], "int32"),
    "facts": tf.TensorSpec([None, NUM_FACTS], "float32"),
    "labels": tf.TensorSpec([None], "int32"),
}


def functions(model):
    """`update(shorter, longer, rate)` -> loss, and `measure(batch)`."""
    variables = [variable.value for variable in model.trainable_variables]

    @tf.function(input_signature=(SPEC, SPEC, tf.TensorSpec([])))
    def update(shorter, longer, rate):
        with tf.GradientTape() as tape:
            loss = sum(
                tf.reduce_sum(losses(model, batch, True)[0])
                for batch in (shorter, longer)
            )
        # A table's gradient lists a word once for each time it stands in the
        # batch. A tensor has their sum, of which the norm is meant.
        gradients = [
            tf.convert_to_tensor(gradient)
            for gradient in tape.gradient(loss, variables)
        ]
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(rate * gradient)
        return loss

    @tf.function(input_signature=(SPEC,))
    def measure(batch):
        loss, logits = losses(model, batch, False)
        answers = tf.argmax(logits, -1, output_type="int32")
        return loss, answers == batch["labels"]

    return update, measure


def score(measure, arrays):
    """The mean loss of questions with a known answer; which are right."""
    count = len(arrays["labels"])
    loss, right = np.zeros(count), np.zeros(count, bool)
    order = np.argsort(arrays["lengths"], kind="stable")
    for start in range(0, count, 100):
        rows = order[start : start + 100]
        loss[rows], right[rows] = measure(part(arrays, rows))
    return loss[arrays["labels"] >= 0].mean(), right


def next_epoch(stages, epochs):
    """The stage and number of the epoch that follows `epochs`, or None."""
    for stage in stages:
        done = sum(one["stage"] == stage for one in epochs)
        if done < (LINEAR_EPOCHS if stage == "linear" else EPOCHS):
            return stage, done + 1
    return None


def best(epochs, stage):
    """The last of the epochs with the fewest validation errors, or None."""
    found = [one for one in epochs if one["stage"] == stage]
    return min(
        reversed(found), key=lambda one: one["validation_error"], default=None
    )


def load(path, choices):
    """The state of a training, or a new one."""
    if not path.is_file():
        return {"epochs": [], "weights": None, "kept": None}
    with np.load(path) as arrays:
        state = json.loads(str(arrays["state"]))
        if state["choices"] != choices:
            raise SystemExit(
                f"{path} is of another training: {state['choices']}. Choose "
                "another OUTPUT."
            )
        for name in ("weights", "kept"):
            count = sum(key.startswith(f"{name}/") for key in arrays)
            state[name] = [arrays[f"{name}/{i}"] for i in range(count)] or None
    return state


def save(path, state, choices):
    arrays = {
        f"{name}/{i}": weight
        for name in ("weights", "kept")
        for i, weight in enumerate(state[name] or ())
    }
    text = json.dumps({"epochs": state["epochs"], "choices": choices})
    data = io.BytesIO()
    np.savez(data, state=text, **arrays)
    files.write_atomically(path, data.getvalue())


def create(choices, encoder):
    """Stage -> its model. They have the same weights, one by one."""
    sizes = {
        "vocabulary_size": END + 1 + len(encoder.words),
        "num_classes": len(encoder.answers),
        "num_hops": 3,
        "memory_size": MEMORY_SIZE,
        "embedding_dim": 50,
    }
    keras.utils.set_random_seed(choices["seed"])
    if choices["model"] == "memory_network":
        made = {"ranking": models.MemoryNetwork(**sizes)}
    else:
        made = {
            name: models.EndToEndMemoryNetwork(
                **sizes,
                sentence_encoding="centred",
                has_empty_memories=True,
                is_linear=name == "linear",
            )
            for name in ("linear", "softmax")
        }
    for model in made.values():
        model.build()
    return made


def train(choices, arrays, made, path, log):
    """Trains to the end, and leaves the kept weights in the last model."""
    stages, state = list(made), load(path, choices)
    step_of = {name: functions(model) for name, model in made.items()}
    while following := next_epoch(stages, state["epochs"]):
        stage, number = following
        model, (update, measure) = made[stage], step_of[stage]
        if state["weights"]:
            model.set_weights(state["weights"])
        # An epoch is a function of the seed, its stage and its number.
        key = (choices["seed"], stages.index(stage), number)
        rng = np.random.default_rng(key)
        if hasattr(model, "seeds"):
            model.seeds.state.assign(rng.integers(2**31, size=2))
        halvings = 1 if stage == "linear" else (number - 1) // HALVED_EVERY
        rate = choices["rate"] * 0.5**halvings
        begin, loss, count = time.time(), 0.0, 0
        for batch in batches(arrays["train"], rng):
            loss, count = loss + update(*batch, rate), count + BATCH_SIZE
        validation_loss, right = score(measure, arrays["valid"])
        done = {
            "stage": stage,
            "epoch": number,
            "rate": rate,
            "loss": float(loss) / count,
            "validation_loss": float(validation_loss),
            "validation_error": 100 * float(1 - right.mean()),
            "seconds": time.time() - begin,
        }
        if not np.isfinite(done["loss"]):
            raise SystemExit(f"The loss is no number: {done}. Lower the rate.")
        state["epochs"].append(done)
        state["weights"] = model.get_weights()
        if best(state["epochs"], stages[-1]) is done:
            state["kept"] = state["weights"]
        save(path, state, choices)
        log(json.dumps(done))
    made[stages[-1]].set_weights(state["kept"])
    return best(state["epochs"], stages[-1]), step_of[stages[-1]][1]


def table(model_name, errors):
    """The errors in percent beside the published ones, as Markdown."""
    rows = [*zip(TASKS, errors, PUBLISHED[model_name], strict=True)]
    columns = [*zip(*rows, strict=True)][1:]
    means = [sum(column) / len(column) for column in columns]
    failed = [sum(error > FAILED for error in column) for column in columns]
    lines = ["| task | here | published |", "|---|---|---|"]
    for name, here, there in (*rows, ("mean", *means)):
        lines.append(f"| {name} | {here:.1f} | {there:.1f} |")
    return "\n".join([*lines, f"| failed tasks | {failed[0]} | {failed[1]} |"])


def draw(model, encoder, row, path):
    """The hops over the sentences of a story, its facts framed."""
    _, story, question, facts = row
    arrays = encoder.arrays([row])
    logits, weights = model.attend({n: arrays[n] for n in model.text_names})
    is_end = arrays["story_ids"][0] == END
    sentences = story.split("\n")[-MEMORY_SIZE:]
    hops = [f"hop {hop + 1}" for hop in range(weights.shape[1])]
    plotting.attention_heat_map(
        sentences,
        hops,
        np.array(weights)[0][:, is_end],
        path=path,
        title=f"{question}? {list(encoder.answers)[np.argmax(logits)]}",
        links=itertools.product([len(sentences) - f for f in facts], range(3)),
        axis_names=("story", "hops"),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="bAbI's en-valid")
    parser.add_argument("output", type=pathlib.Path, help="of this training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", choices=PUBLISHED, default=[*PUBLISHED][0])
    parser.add_argument(
        "--rate", type=float, default=0.01, help="before it is halved"
    )
    options = parser.parse_args()
    choices = {
        name: getattr(options, name) for name in ("seed", "model", "rate")
    }
    options.output.mkdir(parents=True, exist_ok=True)

    def log(line):
        print(line, flush=True)
        with open(options.output / "log.txt", "a") as file:
            file.write(f"{line}\n")

    rows = read(options.folder)
    joined = {split: sum(rows[split].values(), []) for split in SPLITS}
    encoder = Encoder(joined["train"])
    arrays = {split: encoder.arrays(joined[split]) for split in SPLITS}
    made = create(choices, encoder)
    path = options.output / "state.npz"
    kept, measure = train(choices, arrays, made, path, log)
    _, right = score(measure, arrays["train"])
    log(f"training_error {100 * (1 - right.mean()):.2f} %")
    _, right = score(measure, arrays["test"])
    ends = np.cumsum([len(of_task) for of_task in rows["test"].values()])[:-1]
    errors = [100 * float(1 - of.mean()) for of in np.split(right, ends)]
    log(json.dumps({"kept": kept, "test_errors": errors}))
    log(table(options.model, errors))
    model = [*made.values()][-1]
    draw(model, encoder, rows["test"][2][0], options.output / "hops.png")


if __name__ == "__main__":
    main()
