"""A learning rate for each row of the ladder, chosen on validation captions.

    python benchmarks/ladder_rates.py train RUNS --corpus FOLDER \\
        --row bytenet --rate 6e-3
    python benchmarks/ladder_rates.py table RUNS

The first command trains a row of `ladder.py` by `multi30k_en_de_ladder`, but
for five epochs, and with this rate. The run is a folder of RUNS. The same
command goes on with it. The second command has a row for each run in RUNS: its
last training loss, its lowest validation loss, and its highest BLEU of 500
validation captions by greedy search. Nothing reads the test captions.

Two rows are not in `ladder.py`. `conv_seq2seq, without attention` is an
experiment: in each layer, the decoder takes what the encoder says at its own
place. All else is as in `conv_seq2seq`. `lstm_encoder_decoder, norm 5` clips
the gradient at the norm of its paper, where the recipe has 1.
"""

import argparse
import pathlib
import re

import ladder
from keras import ops

from keras_attention import config, devices, layers, models, runs
from keras_attention.models import conv_seq2seq
from keras_attention.training import run_directory

EPOCHS = 5
WITHOUT_ATTENTION = "conv_seq2seq, without attention"
ROWS = ladder.ROWS | {
    WITHOUT_ATTENTION: {"model": "conv_seq2seq"},
    # The norm of Sutskever et al. 2014.
    "lstm_encoder_decoder, norm 5": {
        "model": "lstm_encoder_decoder",
        "clip_norm": 5.0,
    },
}


class WithoutAttention(models.ConvSeq2Seq):
    """ConvS2S whose decoder takes the column of its own place.

    Behind the source, it takes the last one.
    """

    def __init__(self, *sizes, **arguments):
        super().__init__(*sizes, **arguments)
        for layer in self.decoder_layers:
            layer.attention = layers.DiagonalAttention(name="own_place")

    def step(self, token_ids, memory, state):
        """Its attention counts queries from 0: it gets one column alone."""
        length = ops.sum(ops.cast(memory["mask"], "int32"), axis=1)
        place = ops.minimum(state["position"], ops.maximum(length - 1, 0))
        here = {
            name: ops.take_along_axis(
                memory[name], place[:, None, None], axis=1
            )
            for name in ("keys", "values")
        }  # [B, 1, E]
        here["mask"] = ops.take_along_axis(
            memory["mask"], place[:, None], axis=1
        )
        logits, state, weights = super().step(token_ids, here, state)
        there = ops.one_hot(place, ops.shape(memory["mask"])[1])  # [B, S]
        return logits, state, weights * there[:, None]


def train(options):
    """Trains one row at one rate, or goes on with it."""
    if options.row == WITHOUT_ATTENTION:
        # Where the catalogue looks for the model's class.
        conv_seq2seq.ConvSeq2Seq = WithoutAttention
    chosen = config.read("multi30k_en_de_ladder") | {"model": options.row}
    name = re.sub(r"\W+", "_", options.row)
    chosen |= ROWS[options.row] | {
        "corpus": options.corpus,
        "output": str(options.runs / f"{name}_{options.rate:g}"),
        "learning_rate": options.rate,
        "epochs": EPOCHS,
        "checkpoint_steps": 0,
    }
    devices.keep_memory()
    runs.train(config.make(**chosen), resume=True)


def rows_of_table(folder):
    """Name, epochs, losses and BLEU of each run in a folder, best first."""
    found = []
    for path in sorted(folder.iterdir()):
        logs = run_directory.read_history(run_directory.at(path))
        if logs:
            found.append(
                {
                    "run": path.name,
                    "epochs": len(logs),
                    "loss": logs[-1]["loss"],
                    "val_loss": min(log["val_loss"] for log in logs),
                    "val_bleu": max(log["val_bleu"] for log in logs),
                }
            )
    return sorted(found, key=lambda row: -row["val_bleu"])


def print_table(folder):
    print("| run | epochs | loss | validation loss | validation BLEU |")
    print("|---|---|---|---|---|")
    for row in rows_of_table(folder):
        print(
            f"| `{row['run']}` | {row['epochs']} | {row['loss']:.3f} "
            f"| {row['val_loss']:.3f} | {row['val_bleu']:.2f} |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    training = verbs.add_parser("train")
    training.add_argument("runs", type=pathlib.Path)
    training.add_argument("--corpus", required=True)
    training.add_argument("--row", required=True, choices=ROWS)
    training.add_argument("--rate", required=True, type=float)
    table = verbs.add_parser("table")
    table.add_argument("runs", type=pathlib.Path)
    options = parser.parse_args()
    if options.verb == "train":
        train(options)
    else:
        print_table(options.runs)


if __name__ == "__main__":
    main()
