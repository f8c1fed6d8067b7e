"""Twice as many requests as a server can answer, for some minutes.

    python benchmarks/serving/overload.py --seconds 300

The server's capacity is what 64 clients of wrk get. Then requests come at twice
this rate, whether the earlier ones are answered or not. The table has a row for
every 30 seconds.

Expected: each request is answered by a translation (200) or refused (429). An
accepted one waits at most until the queue (512 rows) before it is answered. The
memory grows by less than 5 % from the second row to the last.
"""

import argparse
import asyncio
import collections
import math
import pathlib
import statistics
import sys
import tempfile
import time

import aiohttp
import clients
import servers
import wrk

from keras_attention.server import limits

# The factor that a wait may have over what the queue and the rate say.
_MARGIN = 1.5


async def offer(server, texts, rate, seconds):
    """Sends requests at a rate. Gives their outcomes, and samples of memory."""
    memory, tasks = [], []
    timeout = aiohttp.ClientTimeout(total=120)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout
    ) as session:
        begin = time.monotonic()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(begin + number / rate - time.monotonic())
            text = texts[number % len(texts)]
            tasks.append(
                asyncio.create_task(clients.ask_rest(session, server, text))
            )
            if number % int(rate) == 0:
                memory.append((time.monotonic(), server.megabytes))
        outcomes = await asyncio.gather(*tasks)
    return begin, outcomes, memory


def print_table(begin, outcomes, memory, seconds):
    """A row for every 30 seconds or less. Gives the rows' memory."""
    width = min(30, seconds / 4)

    def row(moment):
        # What was sent a little late is part of the last row.
        last = math.ceil(seconds / width) - 1
        return min(int((moment - begin) // width), last)

    print(
        "| seconds | requests | 200 | 429 | other | p50 of 200, s | p99, s "
        "| MB |\n|---|---|---|---|---|---|---|---|"
    )
    parts, samples = collections.defaultdict(list), {}
    for outcome in outcomes:
        parts[row(outcome.start)].append(outcome)
    for moment, megabytes in memory:
        samples.setdefault(row(moment), []).append(megabytes)
    for number, part in sorted(parts.items()):
        results = collections.Counter(outcome.result for outcome in part)
        good, refused = results.pop("200", 0), results.pop("429", 0)
        p50, p99 = latency(part)
        print(
            f"| {number * width:.0f} | {len(part)} | {good} | {refused} "
            f"| {dict(results) or 0} | {p50:.2f} | {p99:.2f} "
            f"| {statistics.median(samples[number]):.0f} |"
        )
    return [statistics.median(samples[number]) for number in sorted(samples)]


def latency(outcomes):
    """The seconds of p50 and p99 of the requests that were answered."""
    seconds = [one.seconds for one in outcomes if one.result == "200"]
    if len(seconds) < 2:
        return (0.0, 0.0)
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49], cuts[98]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args()
    texts = servers.phrases()
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.ours(pathlib.Path(folder) / "log", servers.PHRASES) as server,
    ):
        wrk.run(server, texts, 64, 3)
        found = wrk.run(server, texts, 64, 10)
        capacity = found["answered"] / found["seconds"]
        print(f"Capacity: {capacity:.0f} requests a second\n")
        begin, outcomes, memory = asyncio.run(
            offer(server, texts, 2 * capacity, options.seconds)
        )
        servers.ask(server, "one")
    megabytes = print_table(begin, outcomes, memory, options.seconds)
    results = collections.Counter(outcome.result for outcome in outcomes)
    end = max(one.start + one.seconds for one in outcomes)
    rate = results["200"] / (end - begin)
    most = _MARGIN * limits.Limits.max_queued_rows / rate
    growth = megabytes[-1] / megabytes[1] - 1
    _, p99 = latency(outcomes)
    print(
        f"\n{len(outcomes)} requests: {dict(results)}; {rate:.0f} answered a "
        f"second; p99 {p99:.2f} s of at most {most:.2f} s; memory "
        f"{100 * growth:+.1f} %"
    )
    is_good = results.keys() <= {"200", "429"} and p99 < most
    sys.exit(0 if is_good and growth < 0.05 else "Not as expected")


if __name__ == "__main__":
    main()
