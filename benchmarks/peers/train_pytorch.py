"""PyTorch: the same model, batches, loss and optimizer.

    python train_pytorch.py WORKLOAD --size S --precision float32 [--compile]
    python train_pytorch.py --point ROWS LENGTH VOCABULARY

Transformers are `torch.nn`'s own layers, with one embedding matrix for
source, target and output; RNNsearch is a loop over a `GRUCell`. With
`--compile`, the model and the loss go through `torch.compile` with shapes that
vary. (The loop of RNNsearch would be compiled anew for each length.) The
second command trains on random ids, as a point of `benchmarks/costs.py`. Prints
one JSON line.
"""

import argparse
import json
import math
import pathlib
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SIZES = {
    "S": {"layers": 4, "width": 128, "inner": 256, "heads": 4, "drop": 0.3},
    "B": {"layers": 6, "width": 512, "inner": 2048, "heads": 8, "drop": 0.1},
}


def positions(length, width):
    frequencies = torch.exp(
        torch.arange(width // 2) * (-2 * math.log(10000.0) / width)
    )
    angles = torch.arange(length)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(length, width)


class Transformer(nn.Module):
    def __init__(
        self, vocabulary_size, layers, width, inner, heads, drop, longest
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        nn.init.normal_(self.embedding.weight, std=0.5 * width**-0.5)
        self.dropout = nn.Dropout(drop)
        self.register_buffer("positions", positions(longest, width))
        self.transformer = nn.Transformer(
            width,
            heads,
            layers,
            layers,
            inner,
            drop,
            batch_first=True,
            norm_first=True,
        )
        # As in the paper: dropout on each sublayer's output alone.
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(
                module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
            ):
                module.dropout = nn.Identity()

    def embed(self, ids):
        width = self.embedding.embedding_dim
        x = self.embedding(ids) * math.sqrt(width)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def forward(self, source_ids, target_ids):
        length = target_ids.shape[1]
        causal = nn.Transformer.generate_square_subsequent_mask(length)
        padding = source_ids == 0
        x = self.transformer(
            self.embed(source_ids),
            self.embed(target_ids),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return functional.linear(x, self.embedding.weight)


class RNNSearch(nn.Module):
    """Bahdanau et al. 2014, appendix A: state before, maxout readout."""

    def __init__(self, vocabulary_size, embedding=256, units=512, decoder=512):
        super().__init__()
        self.source = nn.Embedding(vocabulary_size, embedding)
        self.target = nn.Embedding(vocabulary_size, embedding)
        self.encoder = nn.GRU(
            embedding, units, bidirectional=True, batch_first=True
        )
        memory = 2 * units
        self.start = nn.Linear(units, decoder)
        self.query = nn.Linear(decoder, decoder)
        self.key = nn.Linear(memory, decoder, bias=False)
        self.scale = nn.Parameter(torch.randn(decoder) * 0.05)
        self.cell = nn.GRUCell(embedding + memory, decoder)
        self.dropout = nn.Dropout(0.3)
        self.readout = nn.Linear(decoder + memory + embedding, 2 * embedding)
        self.output = nn.Linear(embedding, vocabulary_size)

    def forward(self, source_ids, target_ids):
        memory, last = self.encoder(self.dropout(self.source(source_ids)))
        mask = (source_ids == 0)[:, :, None]
        keys = self.key(memory)
        state = torch.tanh(self.start(last[1]))
        embedded = self.dropout(self.target(target_ids))
        states, contexts = [], []
        for position in range(target_ids.shape[1]):
            query = self.query(state)[:, None]
            scores = torch.tanh(keys + query) @ self.scale
            scores = scores.masked_fill(mask[:, :, 0], -1e9)
            weights = torch.softmax(scores, -1)
            context = (weights[:, None] @ memory)[:, 0]
            inputs = torch.cat([embedded[:, position], context], -1)
            states.append(state)
            contexts.append(context)
            state = self.cell(inputs, state)
        read = torch.cat(
            [torch.stack(states, 1), torch.stack(contexts, 1), embedded], -1
        )
        read = self.readout(read).unflatten(-1, (-1, 2)).amax(-1)
        return self.output(self.dropout(read))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=pathlib.Path, nargs="?")
    parser.add_argument("--size", default="S", choices=["S", "B", "R"])
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--point", type=int, nargs=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    vocabulary_size = 8000
    if arguments.point:
        rows, length, vocabulary_size = arguments.point
        ids = np.random.default_rng(1).integers(
            4, vocabulary_size, (rows, length + 1)
        )
        batches = {"source_0": ids[:, 1:], "target_0": ids}
    else:
        batches = dict(np.load(arguments.workload / "batches.npz"))
    count = len(batches) // 2
    if arguments.size == "R":
        model = RNNSearch(vocabulary_size)
    else:
        longest = max(batch.shape[1] for batch in batches.values())
        model = Transformer(
            vocabulary_size, *SIZES[arguments.size].values(), longest
        )
    print(sum(p.numel() for p in model.parameters()), "parameters")
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, (0.9, 0.98), 1e-9)
    low = arguments.precision == "bfloat16"

    def loss_of(source, inputs, labels):
        logits = model(source, inputs)
        return functional.cross_entropy(
            logits.flatten(0, 1).float(),
            labels.flatten(),
            ignore_index=0,
            label_smoothing=0.1,
        )

    if arguments.compile:
        loss_of = torch.compile(loss_of, dynamic=True)

    def step(index):
        source = torch.from_numpy(batches[f"source_{index}"]).long()
        target = torch.from_numpy(batches[f"target_{index}"]).long()
        inputs, labels = target[:, :-1], target[:, 1:]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            loss = loss_of(source, inputs, labels)
        loss.backward()
        optimizer.step()
        return int((labels != 0).sum()), loss.item()

    start = time.perf_counter()
    # The first ones compile.
    for index in range(3):
        step(index % count)
    warm_up = time.perf_counter() - start
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
                "system": f"pytorch {torch.__version__}",
                "compiled": arguments.compile,
                "size": arguments.size,
                "precision": arguments.precision,
                "tokens_per_second": tokens / sum(times),
                "median_step_ms": 1000 * statistics.median(times),
                "ms": 1000 * statistics.median(times),
                "warm_up_seconds": warm_up,
                "steps": len(times),
                "loss": loss,
            }
        )
    )


if __name__ == "__main__":
    main()
