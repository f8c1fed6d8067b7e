"""What the machine could do at the moment, and who else used it.

    python benchmarks/machine.py [SECONDS]

A figure of time says little without these two. `watch` notes them around
whatever a program runs in child processes. It needs NumPy alone. As a program,
it watches the machine for some seconds (10).
"""

import contextlib
import dataclasses
import math
import os
import pathlib
import sys
import time
from collections.abc import Iterator

import numpy as np

# Shares of the machine's time above which a figure is not to be trusted.
MOST_OTHERS = 0.05
MOST_STOLEN = 0.02


@dataclasses.dataclass
class Moment:
    """What was seen.

    Attributes:
        gflops: of a matrix product, the lower one of before and after.
        others: the share of all cores' time that other processes used.
        stolen: the share that the host of a virtual machine kept.
    """

    gflops: float = math.nan
    others: float = math.nan
    stolen: float = math.nan

    @property
    def warning(self) -> str:
        """Who disturbed the measure, or ""."""
        found = []
        if self.others > MOST_OTHERS:
            found.append(f"others used {self.others:.0%} of the machine")
        if self.stolen > MOST_STOLEN:
            found.append(f"{self.stolen:.0%} was stolen by the host")
        return ", ".join(found)


@contextlib.contextmanager
def watch() -> Iterator[Moment]:
    """Watches while this process and its children work."""
    moment = Moment()
    before, start = gflops(), _times()
    yield moment
    end = _times()
    moment.gflops = min(before, gflops())
    if start and end:
        total, busy, stolen, own = (
            last - first for first, last in zip(start, end, strict=True)
        )
        moment.others = max(0.0, busy - own) / total
        moment.stolen = stolen / total


def gflops(size: int = 2048, times: int = 3) -> float:
    """GFLOP/s of NumPy's product of two float32 matrices, the best of some."""
    matrix = np.random.default_rng(1).random((size, size), "float32")
    seconds = []
    for _ in range(times + 1):  # The first starts the threads.
        start = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds[1:]) / 1e9


def _times() -> tuple[float, float, float, float] | None:
    """Seconds of all cores since some time: all, busy, stolen, our own."""
    path = pathlib.Path("/proc/stat")
    if not path.is_file():
        return None
    ticks = [int(word) for word in path.read_text().split("\n")[0].split()[1:9]]
    seconds = [tick / os.sysconf("SC_CLK_TCK") for tick in ticks]
    idle, waiting, stolen = seconds[3], seconds[4], seconds[7]
    total = sum(seconds)
    own = sum(os.times()[:4])  # Children count when they have ended.
    return total, total - idle - waiting - stolen, stolen, own


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with watch() as moment:
        time.sleep(seconds)
    print(f"{moment.gflops:,.0f} GFLOP/s; {moment.warning or 'undisturbed'}")


if __name__ == "__main__":
    main()
