"""Runs systems in turn (A B C A B C ...) and compares their medians.

    python benchmarks/compare.py --rounds 3 \
        ours="python benchmarks/bench.py train --size S" \
        pytorch="ENVIRONMENT/bin/python benchmarks/peers/train_pytorch.py WORK"

Each command prints one JSON object as its last line. The first system is
compared with the others by the field `--field`. More of it is better, unless
its name ends in ms or seconds. Beside each figure stands the speed of a matrix
product at that moment, and a warning if other processes used the machine. With
`--results FILE`, the figures are kept in this file, and the same command goes
on where it was stopped. The last line is one JSON object.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import shlex
import statistics
import subprocess
import sys

import machine


def measure(command):
    """The JSON object in the last line of what a command prints.

    It is None if the command fails. What it said is printed.
    """
    result = subprocess.run(
        shlex.split(command),
        capture_output=True,
        text=True,
    )
    if result.returncode:
        # Such as a precision that a peer does not have on this processor.
        print(f"{command}\n{result.stderr[-2000:]}", file=sys.stderr)
        return None
    return json.loads(result.stdout.strip().splitlines()[-1])


def kept(path):
    """(command, round) -> the line of a file of results, if there is one."""
    if path is None or not pathlib.Path(path).is_file():
        return {}
    # The last line of a program that was killed may be torn.
    lines = [
        json.loads(line)
        for line in pathlib.Path(path).read_text("utf-8").splitlines()
        if line.endswith("}}")
    ]
    return {(line["command"], line["round"]): line for line in lines}


def run(commands, rounds, path=None, once=()):
    """What the commands print, in turn.

    Args:
        commands: name -> command.
        rounds: how often each runs.
        path: a file of results, or None.
        once: names of systems that run in the first round alone.

    Yields:
        For each run a dict: name, command, round, result, machine. A command
        that fails is left out from then on.
    """
    before, failed = kept(path), set()
    for number in range(1, rounds + 1):
        for name, command in commands.items():
            line = before.get((command, number))
            if name in failed or (name in once and number > 1):
                continue
            if line is None:
                with machine.watch() as moment:
                    result = measure(command)
                if result is None:
                    failed.add(name)
                    continue
                line = {
                    "command": command,
                    "round": number,
                    "result": result,
                    "machine": dataclasses.asdict(moment),
                }
                if path is not None:
                    with open(path, "a", encoding="utf-8") as file:
                        # First the line's end: the one before may be torn.
                        file.write(f"\n{json.dumps(line)}")
            yield {"name": name, **line}


def value_of(result, fields):
    """The first of some fields that a result has."""
    return next(result[field] for field in fields if field in result)


@dataclasses.dataclass
class Figures:
    """The figures of a system, one for each round.

    Attributes:
        values: of the field that counts.
        gflops: of a matrix product at the same moment.
        num_disturbed: how many times others used the machine.
    """

    values: list = dataclasses.field(default_factory=list)
    gflops: list = dataclasses.field(default_factory=list)
    num_disturbed: int = 0

    @property
    def median(self):
        return statistics.median(self.values or [math.nan])


def collect(commands, rounds, fields, path=None, once=()):
    """Runs commands in turn, and prints a line for each run.

    Args:
        commands, rounds, path, once: as for `run`.
        fields: names of the figure; the first one that a result has counts.

    Returns:
        Name -> `Figures`.
    """
    found = {name: Figures() for name in commands}
    for line in run(commands, rounds, path, once):
        name, moment = line["name"], machine.Moment(**line["machine"])
        value = value_of(line["result"], fields)
        found[name].values.append(value)
        found[name].gflops.append(moment.gflops)
        found[name].num_disturbed += bool(moment.warning)
        print(
            f"{line['round']} {name:28} {value:12,.1f} "
            f"{moment.gflops:6,.0f} GFLOP/s  {moment.warning}",
            flush=True,
        )
    return found


def ratios(found, field):
    """Name -> how many times better the first system is."""
    ours = next(iter(found.values())).median
    less_is_better = field.endswith(("ms", "seconds"))
    return {
        name: one.median / ours if less_is_better else ours / one.median
        for name, one in found.items()
    }


def table(found, field):
    """A table of medians, in Markdown."""
    better, (ours, *_) = ratios(found, field), found
    lines = [
        f"| system | {field}, median | {ours} is | GFLOP/s | disturbed |",
        "|---|---|---|---|---|",
    ]
    for name, one in found.items():
        lines.append(
            f"| {name} | {one.median:,.1f} | {better[name]:.2f} x "
            f"| {statistics.median(one.gflops or [math.nan]):,.0f} "
            f"| {one.num_disturbed} of {len(one.values)} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("systems", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--field", default="tokens_per_second")
    parser.add_argument("--results", help="a file that keeps the figures")
    options = parser.parse_args()
    commands = dict(one.split("=", 1) for one in options.systems)
    field = options.field
    found = collect(commands, options.rounds, [field], options.results)
    print(f"\n{table(found, field)}")
    print(
        json.dumps(
            {
                "field": field,
                "values": {name: one.values for name, one in found.items()},
                "medians": {name: one.median for name, one in found.items()},
                "ratios": ratios(found, field),
            }
        )
    )


if __name__ == "__main__":
    main()
