"""Requests a second and their latency, by the number of clients.

    python benchmarks/serving/throughput.py \
        --triton env-triton/bin/python --litserve env-litserve/bin/python

Each request has one text for `phrases_en_de`. Each client waits for its answer
and asks again. The servers run in turn (A B C D A B C D ...), and the table has
the medians of the rounds. The clients are on the same cores as the servers.

Expected, and left to the reader: with 32 clients, batching gives at least 2.5
times the requests a second, and no server answers more than ours. The figures
that were found are in `docs/serving.md`.
"""

import argparse
import functools
import pathlib
import statistics
import sys
import tempfile

import servers
import wrk

CLIENTS = (1, 8, 32, 64)


def systems(options):
    """Name -> function of a log to the context of a server."""
    version = servers.PHRASES / "1"
    found = {
        "without batches": lambda log: servers.ours(
            log, servers.PHRASES, "--max_batch_size=1"
        ),
        "keras-attention serve": lambda log: servers.ours(log, servers.PHRASES),
    }
    for name, start in (
        ("Triton", servers.triton),
        ("LitServe", servers.litserve),
    ):
        python = getattr(options, name.lower())
        if python:
            found[name] = functools.partial(
                start, python=python, version=version
            )
    return found


def measure(start, texts, seconds, log):
    """Number of clients -> what `wrk.run` gives."""
    with start(log) as server:
        wrk.run(server, texts, max(CLIENTS), 3)
        return {n: wrk.run(server, texts, n, seconds) for n in CLIENTS}


def cell(results):
    """Medians: requests a second, and milliseconds of p50 and p99."""
    rate = statistics.median(r["answered"] / r["seconds"] for r in results)
    p50, p99 = (
        statistics.median(result[name] for result in results)
        for name in ("p50", "p99")
    )
    return f"{rate:.0f} ({p50:.1f}, {p99:.1f})"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--triton", metavar="PYTHON")
    parser.add_argument("--litserve", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    texts = servers.phrases()
    results = {name: [] for name in systems(options)}
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        for _ in range(options.rounds):
            for name, start in systems(options).items():
                found = measure(start, texts, options.seconds, log)
                results[name].append(found)
                print(name, found, file=sys.stderr)
    print("Requests a second (milliseconds: p50, p99)\n")
    heads = [f"{n} client{'s' * (n > 1)}" for n in CLIENTS]
    print(f"| server | {' | '.join(heads)} |")
    print("|---|" + "---|" * len(CLIENTS))
    for name, rounds in results.items():
        cells = [cell([found[n] for found in rounds]) for n in CLIENTS]
        print(f"| {name} | {' | '.join(cells)} |")
    without = sum(
        found[n][kind]
        for rounds in results.values()
        for found in rounds
        for n in CLIENTS
        for kind in ("refused", "failed", "lost")
    )
    print(f"\nRequests without a translation: {without}")


if __name__ == "__main__":
    main()
