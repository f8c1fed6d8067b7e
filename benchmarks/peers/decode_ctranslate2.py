"""CTranslate2 with our weights: the search alone, ids in, ids out.

    python decode_ctranslate2.py WORKLOAD --num_beams 4 --batch_size 32
    python decode_ctranslate2.py WORKLOAD --num_beams 4 --point ROWS LENGTH

The second command translates random ids, as a point of `benchmarks/costs.py`:
answers are as long as their sources. `--compute_type` takes int8 and bfloat16,
too. `WORKLOAD` is what `benchmarks/workload.py` wrote. Prints one JSON line.
With the environment variable CT2_USE_MKL=0 it multiplies with oneDNN, which may
be faster than its default (see README.md): try both.
"""

import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time

import ctranslate2
import numpy as np
from ctranslate2.specs import transformer_spec


def fill_linear(spec, weights, path, kernels=("kernel",), biases=("bias",)):
    """CTranslate2 keeps kernels turned round, and fused ones joined."""
    spec.weight = np.concatenate(
        [weights[f"{path}{name}"].T for name in kernels]
    )
    spec.bias = np.concatenate([weights[f"{path}{name}"] for name in biases])


def fill_norm(spec, weights, path):
    spec.gamma = weights[f"{path}/gamma"]
    spec.beta = weights[f"{path}/beta"]


def fill_attention(spec, weights, layer, name):
    """Self-attention fuses Q, K and V; cross-attention K and V."""
    path = f"{layer}/{name}/"
    groups = [("query", "key", "value"), ("output",)]
    if name == "cross_attention":
        groups = [("query",), ("key", "value"), ("output",)]
    for linear, group in zip(spec.linear, groups, strict=True):
        fill_linear(
            linear,
            weights,
            path,
            [f"{part}_kernel" for part in group],
            [f"{part}_bias" for part in group],
        )
    fill_norm(spec.layer_norm, weights, f"{layer}/{name}_residual/norm")


def fill_layer(spec, weights, layer):
    fill_attention(spec.self_attention, weights, layer, "self_attention")
    if hasattr(spec, "attention"):
        fill_attention(spec.attention, weights, layer, "cross_attention")
    fill_norm(
        spec.ffn.layer_norm, weights, f"{layer}/feed_forward_residual/norm"
    )
    fill_linear(spec.ffn.linear_0, weights, f"{layer}/feed_forward/expand/")
    fill_linear(spec.ffn.linear_1, weights, f"{layer}/feed_forward/contract/")


def positions(length, width):
    """Sinusoids, as `layers.sinusoidal_positions`."""
    frequencies = np.exp(np.arange(width // 2) * (-2 * np.log(10000.0) / width))
    angles = np.arange(length)[:, None] * frequencies
    both = np.stack([np.sin(angles), np.cos(angles)], -1)
    return both.reshape(length, width).astype("float32")


def make_model(weights, sizes, folder):
    """Writes a CTranslate2 model of our Transformer's weights."""
    spec = transformer_spec.TransformerSpec.from_config(
        sizes["num_layers"], sizes["num_heads"], pre_norm=sizes["norm_first"]
    )
    embeddings = weights["embedding/embeddings"]
    for side in (spec.encoder, spec.decoder):
        embedding = side.embeddings
        embedding = embedding[0] if isinstance(embedding, list) else embedding
        embedding.weight = embeddings
        embedding.multiply_by_sqrt_depth = True
        side.position_encodings.encodings = weights["positions"]
    for side, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
        if sizes["norm_first"]:
            fill_norm(side.layer_norm, weights, f"{name}_norm")
        for index, layer in enumerate(side.layer):
            fill_layer(layer, weights, f"{name}_{index}")
    spec.decoder.projection.weight = embeddings
    spec.decoder.projection.bias = np.zeros(len(embeddings), "float32")
    tokens = ["<pad>", "<unk>", "<start>", "</s>"]
    tokens += [str(index) for index in range(4, len(embeddings))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = False
    spec.config.bos_token = "<start>"
    spec.config.decoder_start_token = "<start>"
    spec.validate()
    spec.save(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=pathlib.Path)
    parser.add_argument("--num_beams", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--compute_type", default="float32")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--point", type=int, nargs=2)
    arguments = parser.parse_args()
    sizes = json.loads((arguments.workload / "sizes.json").read_text())
    weights = dict(np.load(arguments.workload / "weights.npz"))
    sources = json.loads((arguments.workload / "sources.json").read_text())
    if arguments.point:
        arguments.batch_size, arguments.steps = arguments.point
        vocabulary_size = len(weights["embedding/embeddings"])
        sources = np.random.default_rng(1).integers(
            4, vocabulary_size, arguments.point
        )
        sources = [[*row[:-1], 3] for row in sources.tolist()]
        weights["positions"] = positions(
            arguments.steps + 1, weights["positions"].shape[1]
        )
    names = {0: "<pad>", 1: "<unk>", 2: "<start>", 3: "</s>"}
    numbers = {name: index for index, name in names.items()}
    sources = [[names.get(i, str(i)) for i in row] for row in sources]
    with tempfile.TemporaryDirectory() as folder:
        make_model(weights, sizes, folder)
        translator = ctranslate2.Translator(
            folder,
            compute_type=arguments.compute_type,
            inter_threads=1,
            intra_threads=arguments.threads,
        )
    batch_size = arguments.batch_size
    batches = [
        sources[start : start + batch_size]
        for start in range(0, len(sources) - batch_size + 1, batch_size)
    ]

    def translate(batch):
        return translator.translate_batch(
            batch,
            beam_size=arguments.num_beams,
            length_penalty=1.0,
            min_decoding_length=arguments.steps,
            max_decoding_length=arguments.steps,
        )

    translate(batches[0])
    times, index, start = [], 0, time.perf_counter()
    while time.perf_counter() - start < arguments.seconds or len(times) < 5:
        before = time.perf_counter()
        translate(batches[index % len(batches)])
        times.append(time.perf_counter() - before)
        index += 1
    answers = json.loads((arguments.workload / "answers.json").read_text())
    answers = answers.get(str(arguments.num_beams), [])
    # Our last token is a forced END.
    same = [
        [int(numbers.get(t, t)) for t in row.hypotheses[0]][:-1] == ids[:-1]
        for row, ids in zip(translate(sources[:64]), answers, strict=False)
    ]
    print(
        json.dumps(
            {
                "system": f"ctranslate2 {ctranslate2.__version__}",
                "compute_type": arguments.compute_type,
                "use_mkl": os.environ.get("CT2_USE_MKL", "default"),
                "num_beams": arguments.num_beams,
                "batch_size": batch_size,
                "sentences_per_second": batch_size * len(times) / sum(times),
                "median_ms": 1000 * statistics.median(times),
                "ms": 1000 * statistics.median(times),
                "same_answers": f"{sum(same)} of {len(same)}",
            }
        )
    )


if __name__ == "__main__":
    main()
