"""Clients that fill one model, and others that send it single texts.

    python benchmarks/serving/crowded.py --seconds 30

Four clients, and then eight, send 256 rows each to `phrases_en_de`. If they are
refused, they wait as long as the answer's Retry-After says. Meanwhile, one
client sends single texts to the same model, and two others to two small ones.

Expected: no single request is refused. The slowest waits less than two answers
to 256 rows take when nobody else asks: the batch that is computed, and its own.
"""

import argparse
import asyncio
import collections
import pathlib
import sys
import tempfile
import time

import aiohttp
import servers
import small_models

_ROWS = 256


async def ask(session, url, instances):
    """Status, seconds and what Retry-After says."""
    start = time.monotonic()
    async with session.post(url, json={"instances": instances}) as response:
        await response.read()
        wait = float(response.headers.get("retry-after", 0))
        return response.status, time.monotonic() - start, wait


async def fill(session, url, texts, end):
    """How many requests were answered and refused."""
    statuses = collections.Counter()
    while time.monotonic() < end:
        status, _, wait = await ask(session, url, texts)
        statuses[status] += 1
        await asyncio.sleep(wait)
    return statuses


async def trickle(session, url, instance, end):
    """Statuses, and the longest wait."""
    statuses, longest = collections.Counter(), 0.0
    while time.monotonic() < end:
        status, seconds, _ = await ask(session, url, [instance])
        statuses[status] += 1
        longest = max(longest, seconds)
        await asyncio.sleep(0.05)
    return statuses, longest


async def crowd(server, num_clients, seconds):
    """A row of the table for each model. Gives whether all is right."""
    texts = servers.phrases(_ROWS)
    base = server.url.rpartition("/")[0]
    singles = {
        "phrases_en_de": texts[0],
        "capitals": "one",
        "numbers": {"x": [1, 2, 3], "k": 2},
    }
    async with aiohttp.ClientSession() as session:
        await ask(session, server.url, texts)
        _, batch, _ = await ask(session, server.url, texts)
        end = time.monotonic() + seconds
        filling = [
            asyncio.create_task(fill(session, server.url, texts, end))
            for _ in range(num_clients)
        ]
        found = await asyncio.gather(
            *(
                trickle(session, f"{base}/{name}:predict", instance, end)
                for name, instance in singles.items()
            )
        )
        large = sum(await asyncio.gather(*filling), collections.Counter())
    is_good = True
    for name, (statuses, longest) in zip(singles, found, strict=True):
        is_good &= {*statuses} == {200} and longest < 2 * batch
        print(
            f"| {num_clients} | {name} | {statuses[200]} | "
            f"{statuses.total() - statuses[200]} | {longest:.2f} |"
        )
    print(
        f"{num_clients} clients with 256 rows: {large[200]} x 200, "
        f"{large[429]} x 429; alone, 256 rows take {batch:.2f} s",
        flush=True,
    )
    return is_good and {*large} <= {200, 429}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    is_good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        models = [servers.PHRASES, *small_models.write(folder)]
        with servers.ours(folder / "log", *models) as server:
            print("| clients | model | answered | refused | longest wait, s |")
            print("|---|---|---|---|---|")
            for num_clients in (4, 8):
                is_good &= asyncio.run(
                    crowd(server, num_clients, options.seconds)
                )
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
