"""Requests while a new version of a model takes the place of the old one.

    python benchmarks/serving/reload.py --requests 1500

32 clients of REST and 16 of gRPC ask without a pause. After a third of the
requests, version 2 is put beside version 1. The requests go on until a third of
them were answered by version 2.

Expected: each request has a translation. Loading shares the cores with the
requests, which take up to twice as long in the meantime.
"""

import argparse
import asyncio
import collections
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import clients
import servers


def add_version(folder):
    """Copies version 1 to version 2, and gives the time."""
    shutil.copytree(folder / "1", folder / "copy")
    (folder / "copy").rename(folder / "2")
    return time.monotonic()


async def measure(server, folder, texts, count):
    """The outcomes, and when version 2 was there."""
    added = []

    def is_over(outcomes):
        if len(outcomes) >= count / 3 and not added:
            added.append(add_version(folder))
        new = sum(one.version == 2 for one in outcomes[-count:])
        return len(outcomes) >= count and new >= count / 6

    return await clients.keep_asking(server, texts, is_over), added[0]


def print_table(outcomes, added):
    """What became of the requests before, during and after the loading."""
    swapped = min(one.start for one in outcomes if one.version == 2)
    parts = {
        "before version 2 is there": (0, added),
        "while it is loaded": (added, swapped),
        "when it answers": (swapped, float("inf")),
    }
    print("| requests sent | count | results | p50, ms | p99, ms |")
    print("|---|---|---|---|---|")
    for name, (start, end) in parts.items():
        part = [one for one in outcomes if start <= one.start < end]
        results = dict(collections.Counter(one.result for one in part))
        cuts = statistics.quantiles((one.seconds for one in part), n=100)
        p50, p99 = 1000 * cuts[49], 1000 * cuts[98]
        print(f"| {name} | {len(part)} | {results} | {p50:.0f} | {p99:.0f} |")
    print(f"\nVersion 2 answered {swapped - added:.1f} s after it was there.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--requests", type=int, default=1500)
    options = parser.parse_args()
    texts = servers.phrases()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / servers.PHRASES.name
        shutil.copytree(servers.PHRASES, folder)
        log = pathlib.Path(temporary) / "log"
        with servers.ours(log, folder) as server:
            outcomes, added = asyncio.run(
                measure(server, folder, texts, options.requests)
            )
    print_table(outcomes, added)
    results = collections.Counter(one.result for one in outcomes)
    lost = len(outcomes) - results["200"] - results["OK"]
    print(f"{len(outcomes)} requests, {lost} without a translation")
    sys.exit("Not as expected" if lost else 0)


if __name__ == "__main__":
    main()
