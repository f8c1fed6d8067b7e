"""Where the time of a training step or of a search goes.

    python benchmarks/where_time_goes.py --size B --corpus FOLDER
    python benchmarks/where_time_goes.py --num_beams 4 --batch_size 64
    python benchmarks/where_time_goes.py --num_beams 4 --point 8 1024

It trains the workload of `bench.py` for some steps, and profiles the last of
them by TensorFlow's profiler. With `--num_beams`, it profiles the search of a
batch, that of `bench.py decode` whose length is in the middle, or of so many
texts of so many tokens, as `costs.py`. The table has
the milliseconds of a step, or of a search, that all threads together spend in
each kind of operation. They add up to more than it takes, as two cores compute
at the same time. The profiler itself takes some percent. What a kind is stands
in `KINDS`.
"""

import argparse
import collections
import pathlib
import re
import sys
import tempfile
import time

import bench
import costs
import keras
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from keras_attention import devices

# Kind -> the types of TensorFlow's operations that it counts, without the
# `_Mkl` of those that oneDNN computes.
KINDS = {
    "matrix products": r"(_?|Native)(Fused)?MatMul|GRUBlockCell\w*",
    "products of the attention": r"(Fused)?BatchMatMul\w*|Einsum",
    "the best of the vocabulary": r"TopK\w*|ArgMax",
    "dropout's random numbers": r"\w*Random\w*",
    "transposes": r"\w*Transpose",
    "sums and means": r"Sum|Mean|AddN|BiasAddGrad|\w*SegmentSum",
    "softmax, maxima, exponentials": r"\w*Softmax\w*|Exp|Log(1p)?|Max",
    "joins, slices, choices": (
        r"Concat\w*|Split\w*|\w*Slice\w*|Pack|Unpack|Tile|Pad\w*|Gather\w*"
        r"|Cast|Fill|ZerosLike|\w*Scatter\w*|Select\w*|Broadcast\w*"
        r"|TensorList\w*"
    ),
    "element by element": (
        r"Mul|Add|AddV2|BiasAdd|Sub|\w*Div\w*|Square\w*|R?[Ss]qrt\w*|Neg|Pow"
        r"|Tanh\w*|Sigmoid\w*|Relu\w*|Maximum|Minimum|Greater\w*|Less\w*"
    ),
    "the optimizer": r"Assign\w*|Resource\w*|ReadVariableOp",
}
# Operations that hold others, whose time would count twice.
OUTER = re.compile(r"(Stateless)?(While|If|Case)|\w*PartitionedCall")


def _is_operation(name: str) -> bool:
    # The profiler also notes what runs them.
    is_known = name.startswith("_") or hasattr(tf.raw_ops, name)
    return is_known and not OUTER.fullmatch(name)


class _Profile(keras.callbacks.Callback):
    """Profiles some steps after the first ones, and times them."""

    def __init__(self, folder, steps):
        super().__init__()
        self.folder, self.steps = str(folder), steps
        self.milliseconds = 0.0

    def on_train_batch_begin(self, batch, logs=None):
        if batch == bench.WARM_UP:
            tf.profiler.experimental.start(self.folder)
            self.start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if batch == bench.WARM_UP + self.steps - 1:
            seconds = time.perf_counter() - self.start
            self.milliseconds = 1000 * seconds / self.steps
            tf.profiler.experimental.stop()


def operations(folder: pathlib.Path) -> collections.Counter:
    """Milliseconds of each type of operation, of all threads together."""
    found = collections.Counter()
    for path in folder.rglob("*.xplane.pb"):
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
        for plane in space.planes:
            names = {key: e.name for key, e in plane.event_metadata.items()}
            for line in plane.lines:
                for event in line.events:
                    name = names[event.metadata_id]
                    kind = name.rpartition(":")[2]
                    # Those of the input pipeline are no operations.
                    if _is_operation(kind) and "Iterator::" not in name:
                        kind = kind.removeprefix("_Mkl")
                        found[kind] += event.duration_ps / 1e9
    return found


def by_kind(found: collections.Counter) -> dict[str, float]:
    """Milliseconds of each kind, the largest first, what is left at the end."""
    left = collections.Counter(found)
    kinds = collections.Counter()
    for kind, pattern in KINDS.items():
        for name in [n for n in left if re.fullmatch(pattern, n)]:
            kinds[kind] += left.pop(name)
    return dict(kinds.most_common()) | {"all else": left.total()}


def training(options, folder) -> float:
    """Profiles steps of a training: the milliseconds of one."""
    devices.keep_memory()
    workload = bench.build(
        bench.Options(
            size=options.size,
            corpus=options.corpus,
            precision=options.precision,
        ),
        folder / "run",
    )
    profile = _Profile(folder / "profile", options.steps)
    workload.trainer.fit(
        workload.pipeline.training(epoch=0).repeat(),
        steps_per_epoch=bench.WARM_UP + options.steps,
        shuffle=False,
        verbose=0,
        callbacks=[profile],
    )
    return profile.milliseconds


def _of_the_middle(options, folder):
    """A function that searches for the batch of the length in the middle."""
    workload_options = bench.Options(
        size=options.size, corpus=options.corpus, num_beams=options.num_beams
    )
    live, texts = bench.random_translator(workload_options, folder)
    batches = bench.batches_of(texts, live, options.batch_size)
    middle = [batches[len(batches) // 2]]
    function, (ids,) = bench.search_alone(live, middle, options.num_beams)
    return lambda: function(ids).numpy()


def search(options, folder) -> float:
    """Profiles searches of one batch: the milliseconds of one."""
    devices.share_cores()
    if options.point:
        run = costs.search(*options.point, 8_000, options.num_beams)
    else:
        run = _of_the_middle(options, folder / "run")
    for _ in range(bench.WARM_UP if not options.point else 1):
        run()
    tf.profiler.experimental.start(str(folder / "profile"))
    start = time.perf_counter()
    for _ in range(options.steps):
        run()
    seconds = time.perf_counter() - start
    tf.profiler.experimental.stop()
    return 1000 * seconds / options.steps


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--size", default="S", choices=bench.SIZES)
    parser.add_argument("--corpus", default="phrases")
    parser.add_argument("--precision", default="float32", help="of training")
    parser.add_argument("--num_beams", type=int, help="of a search")
    parser.add_argument("--batch_size", type=int, default=64, help="of it")
    parser.add_argument(
        "--point",
        type=int,
        nargs=2,
        metavar=("ROWS", "LENGTH"),
        help="of a search at size S on random ids",
    )
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--all", action="store_true", help="each operation")
    options = parser.parse_args()
    what, measure = "step", training
    if options.num_beams:
        what, measure = "search", search
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        milliseconds = measure(options, folder)
        found = operations(folder / "profile")
    if not found:
        sys.exit("The profiler saw no operation.")
    rows = found.most_common() if options.all else by_kind(found).items()
    print(f"A {what} takes {milliseconds:.0f} ms.\n")
    print("| part | ms |\n|---|---|")
    for kind, ms in rows:
        print(f"| {kind} | {ms / options.steps:.1f} |")


if __name__ == "__main__":
    main()
