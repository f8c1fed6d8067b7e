"""Twice as many requests as a server can answer, for some minutes.

    python benchmarks/serving/overload.py --seconds 300

The server's capacity is what 64 clients of wrk get. Then 1,000 clients send
twice as many requests a second together, more than the queue has room for.

Expected: each request is answered by a translation (200) or refused (429). Of
those that are accepted, 99 in 100 are answered in less than 1.5 times the time
that 512 rows take, as many as the queue has room for. The memory grows by less
than 5 % from the second sample to the last.

wrk needs a part of the same cores, and more of it for 1,000 clients than for
64. So what is sent is compared with what is answered in the same minutes. The
server must then still answer at least half of its capacity.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time

import servers
import wrk

from keras_attention.server import settings

_CLIENTS = 1000
_SAMPLES = 10
# The factor that a wait may have over what the queue and the rate say.
_MARGIN = 1.5


def offer(server, texts, rate, seconds):
    """Sends requests at a rate. Gives what came of them, and the memory."""
    megabytes = []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        load = pool.submit(wrk.run, server, texts, _CLIENTS, seconds, rate=rate)
        for _ in range(_SAMPLES):
            time.sleep(seconds / (_SAMPLES + 1))
            megabytes.append(server.megabytes)
        return load.result(), megabytes


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
        print(f"Capacity: {capacity:.0f} requests a second", flush=True)
        found, megabytes = offer(server, texts, 2 * capacity, options.seconds)
        # The server finds out that nobody waits any more.
        time.sleep(1)
        servers.ask(server, "one")
    offered = (found["answered"] + found["refused"]) / found["seconds"]
    rate = found["answered"] / found["seconds"]
    most = _MARGIN * settings.Limits.max_queued_rows / rate
    p99 = found["p99_answered"] / 1000
    growth = megabytes[-1] / megabytes[1] - 1
    print(
        f"{found['answered']} x 200, {found['refused']} x 429, "
        f"{found['failed']} x another status, {found['lost']} without answer"
    )
    print(
        f"{offered:.0f} requests a second, {rate:.0f} of them x 200 with a p99 "
        f"of {p99:.2f} s, where {most:.2f} s is the most"
    )
    print("MB: " + " ".join(f"{one:.0f}" for one in megabytes))
    is_good = (
        not found["failed"] + found["lost"]
        and offered > 1.8 * rate
        and rate > capacity / 2
        and p99 < most
        and growth < 0.05
    )
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
