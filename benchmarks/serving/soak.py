"""A million requests to one server, and its memory.

    python benchmarks/serving/soak.py --requests 1000000

The model computes next to nothing, so that the requests are many. 16 clients
keep their connections open. The table has ten rows.

Expected: each request is answered. The memory grows by less than 2 % from the
second row to the last.
"""

import argparse
import pathlib
import sys
import tempfile

import servers
import small_models
import wrk

_PARTS = 10


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--requests", type=int, default=1_000_000)
    options = parser.parse_args()
    texts, megabytes, answered, lost = servers.phrases(), [], 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        capitals, _ = small_models.write(folder)
        with servers.ours(folder / "log", capitals) as server:
            print("| answered | requests/s | p50, ms | p99, ms | MB |")
            print("|---|---|---|---|---|")
            for _ in range(_PARTS):
                most = options.requests // _PARTS
                found = wrk.run(server, texts, 16, most=most)
                answered += found["answered"]
                lost += found["refused"] + found["failed"] + found["lost"]
                megabytes.append(server.megabytes)
                rate = found["answered"] / found["seconds"]
                print(
                    f"| {answered} | {rate:.0f} "
                    f"| {found['p50']:.1f} | {found['p99']:.1f} "
                    f"| {megabytes[-1]:.0f} |",
                    flush=True,
                )
    growth = megabytes[-1] / megabytes[1] - 1
    print(f"\n{answered} answered, {lost} not; memory {100 * growth:+.1f} %")
    sys.exit("Not as expected" if lost or growth > 0.02 else 0)


if __name__ == "__main__":
    main()
