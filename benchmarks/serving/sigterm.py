"""SIGTERM while many clients ask.

    python benchmarks/serving/sigterm.py --times 5

16 clients of gRPC and 32 of REST ask without a pause. Half of those of REST
keep their connection open, the others open one for each request. After 3
seconds, the server gets SIGTERM. Each client goes on until it is refused.

Expected: each request that the server took, which its log tells, is answered.
What a client sees is an answer, that the server ends (gRPC) or that the port is
closed, and nothing else.
"""

import argparse
import asyncio
import collections
import pathlib
import signal
import sys
import tempfile

import clients
import servers

_ANSWERS = {"200", "OK", clients.ENDING}


async def measure(server, texts, seconds):
    """The outcomes of all requests."""

    async def end():
        await asyncio.sleep(seconds)
        server.process.send_signal(signal.SIGTERM)

    outcomes, _ = await asyncio.gather(
        clients.keep_asking(server, texts, lambda outcomes: False), end()
    )
    return outcomes


def print_row(number, outcomes, events, status):
    """Gives whether all is well."""
    cells, is_good = [], status == 0
    for protocol in ("REST", "gRPC"):
        results = collections.Counter(
            one.result for one in outcomes if one.protocol == protocol
        )
        num_taken = sum(
            event["protocol"] == protocol.upper() for event in events
        )
        num_answers = sum(results[name] for name in _ANSWERS)
        cells += [num_taken, num_answers, dict(results)]
        is_good &= num_taken == num_answers
        is_good &= results.keys() <= _ANSWERS | {clients.CLOSED}
    print(
        f"| {number} | {' | '.join(map(str, cells))} | {status} |", flush=True
    )
    return is_good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    texts, is_good = servers.phrases(), True
    columns = " | ".join(
        f"{protocol}: taken | answered | what clients saw"
        for protocol in ("REST", "gRPC")
    )
    print(f"| | {columns} | exit status |\n|---|---|---|---|---|---|---|---|")
    for number in range(1, options.times + 1):
        with (
            tempfile.TemporaryDirectory() as folder,
            servers.ours(
                pathlib.Path(folder) / "log", servers.PHRASES
            ) as server,
        ):
            outcomes = asyncio.run(measure(server, texts, options.seconds))
            status = server.process.wait(60)
            events = server.events("request")
        is_good &= print_row(number, outcomes, events, status)
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
