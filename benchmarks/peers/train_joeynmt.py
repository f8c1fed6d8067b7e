"""JoeyNMT's own model, batch, loss and optimizer, without its data loader.

    python train_joeynmt.py WORKLOAD --size S

Size S is its Transformer, with one embedding matrix for source, target and
output; size R its recurrent encoder and decoder, with input feeding. The
dropout of its Transformer also falls on attention weights and inside the
feed-forward layer. Prints one JSON line.
"""

import argparse
import json
import pathlib
import statistics
import time
import types

import joeynmt
import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_optimizer
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary

SPECIALS = types.SimpleNamespace(
    unk_token="<unk>",
    unk_id=0,
    pad_token="<pad>",
    pad_id=1,
    bos_token="<s>",
    bos_id=2,
    eos_token="</s>",
    eos_id=3,
    sep_token=None,
    sep_id=None,
    lang_tags=[],
)


def transformer():
    part = {
        "type": "transformer",
        "num_layers": 4,
        "hidden_size": 128,
        "ff_size": 256,
        "num_heads": 4,
        "dropout": 0.3,
        "layer_norm": "pre",
        "embeddings": {"embedding_dim": 128, "scale": True},
    }
    return {
        "encoder": part,
        "decoder": part,
        "tied_embeddings": True,
        "tied_softmax": True,
    }


def recurrent():
    part = {
        "type": "recurrent",
        "rnn_type": "gru",
        "num_layers": 1,
        "hidden_size": 512,
        "dropout": 0.3,
        "embeddings": {"embedding_dim": 256},
    }
    return {
        "encoder": {**part, "bidirectional": True},
        "decoder": {**part, "attention": "bahdanau", "hidden_dropout": 0.3},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=pathlib.Path)
    parser.add_argument("--size", default="S", choices=["S", "R"])
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    batches = np.load(arguments.workload / "batches.npz")
    count = len(batches.files) // 2
    vocabulary = Vocabulary([f"token{i}" for i in range(4, 8000)], SPECIALS)
    config = transformer() if arguments.size == "S" else recurrent()
    model = build_model(config, vocabulary, vocabulary)
    model.loss_function = ("crossentropy", 0.1)
    model.train()
    optimizer = build_optimizer(
        {
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "adam_betas": (0.9, 0.98),
        },
        model.parameters(),
    )
    # JoeyNMT's PAD is 1 and its UNK 0; the workload's are 0 and 1.
    table = torch.arange(8000)
    table[:2] = torch.tensor([1, 0])

    def step(index):
        source = table[torch.from_numpy(batches[f"source_{index}"]).long()]
        target = table[torch.from_numpy(batches[f"target_{index}"]).long()]
        batch = Batch(
            src=source,
            src_length=(source != vocabulary.pad_index).sum(1),
            src_prompt_mask=None,
            trg=target,
            trg_prompt_mask=None,
            indices=torch.arange(len(source)),
            device=torch.device("cpu"),
            pad_index=vocabulary.pad_index,
            eos_index=vocabulary.eos_index,
        )
        batch.sort_by_src_length()
        loss, _, _, _ = model(return_type="loss", **vars(batch))
        loss = batch.normalize(loss, "tokens")
        loss.backward()
        optimizer.step()
        model.zero_grad()
        return batch.ntokens, loss.item()

    for index in range(3):
        step(index % count)
    times, tokens, start, index = [], 0, time.perf_counter(), 3
    while time.perf_counter() - start < arguments.seconds or len(times) < 5:
        before = time.perf_counter()
        real, loss = step(index % count)
        times.append(time.perf_counter() - before)
        tokens += real
        index += 1
    print(
        json.dumps(
            {
                "system": f"joeynmt {joeynmt.__version__}",
                "size": arguments.size,
                "parameters": sum(p.numel() for p in model.parameters()),
                "tokens_per_second": tokens / sum(times),
                "median_step_ms": 1000 * statistics.median(times),
                "steps": len(times),
                "loss": loss,
            }
        )
    )


if __name__ == "__main__":
    main()
