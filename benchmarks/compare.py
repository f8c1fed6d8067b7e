"""Runs systems in turn (A B C A B C ...) and compares their medians.

    python benchmarks/compare.py --rounds 3 \
        ours="python benchmarks/bench.py train --size S" \
        pytorch="ENVIRONMENT/bin/python benchmarks/peers/train_pytorch.py WORK"

Each command prints one JSON object as its last line. The first system is
compared with the others by the field `--field`, of which more is better; each
round is printed as it ends. The last line is one JSON object.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys


def measure(command):
    """The JSON object in the last line of what a command prints."""
    result = subprocess.run(
        shlex.split(command),
        capture_output=True,
        text=True,
    )
    if result.returncode:
        sys.exit(f"{command}\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("systems", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--field", default="tokens_per_second")
    arguments = parser.parse_args()
    commands = dict(one.split("=", 1) for one in arguments.systems)
    values = {name: [] for name in commands}
    for number in range(arguments.rounds):
        for name, command in commands.items():
            values[name].append(measure(command)[arguments.field])
            print(f"{number + 1} {name:24} {values[name][-1]:12,.1f}")
    medians = {name: statistics.median(v) for name, v in values.items()}
    ours = next(iter(medians))
    print(
        f"\n| system | {arguments.field}, median | {ours} is |\n|---|---|---|"
    )
    for name, value in medians.items():
        print(f"| {name} | {value:,.1f} | {medians[ours] / value:.2f} x |")
    print(
        json.dumps(
            {
                "field": arguments.field,
                "values": values,
                "medians": medians,
                "ratios": {n: medians[ours] / v for n, v in medians.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
