"""Measures the speed of this package on this machine.

    python benchmarks/bench.py train|decode|pipeline [--size S]

Training is measured through `fit` with its input pipeline, decoding through an
exported SavedModel and, without text, as the search that is in it. The weights
are random: lengths are fixed, so speed does not depend on the weights. The
programs in `peers/` measure others on the same data. `--size` is S, B, R or the
name of a translator of the catalogue, which has its size `tiny`. The last line
is one JSON object.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import platform
import resource
import statistics
import sys
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

from keras_attention import config as configuration
from keras_attention import devices, models, tasks
from keras_attention.models import catalog
from keras_attention.serving import loading, quick_search, translator
from keras_attention.tokens import PAD
from keras_attention.training import parts, run_directory

# Sizes of the workload: the model, a named size of it, what replaces it.
SIZES = {
    name: (name, "tiny", {})
    for name, entry in catalog.CATALOG.items()
    if entry.task == "translation"
} | {
    "S": ("transformer", "tiny", {}),
    "B": ("transformer", "base", {"norm_first": True}),
    "R": ("rnnsearch", "tiny", {"units": 512, "readout_dim": 256}),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """The workload."""

    size: str = "S"
    corpus: str = "phrases"
    source: str = "en"
    target: str = "de"
    precision: str = "float32"
    num_beams: int = 1
    batch_size: int = 64
    seconds: float = 30.0


# Steps that are not counted: TensorFlow traces in the first.
WARM_UP = 5
# Tokens of every answer, END included.
ANSWER_LENGTH = 20


def run_config(options, output):
    """The workload's choices: 8,000 pieces, batches of 4,096 tokens."""
    model, named_size, arguments = SIZES[options.size]
    return configuration.resolve(
        configuration.make(
            model=model,
            size=named_size,
            model_arguments=arguments,
            corpus=options.corpus,
            source=options.source,
            target=options.target,
            vocabulary_size=8000,
            max_piece_length=16,
            max_tokens=4096,
            clip_norm=0.0,
            precision=options.precision,
            epochs=1,
            output=str(output),
        )
    )


def build(options, output) -> parts.Parts:
    """The parts of the workload's training."""
    config = configuration.replace(run_config(options, output), replicas=1)
    task = tasks.get("translation")
    directory = run_directory.start(config)
    return parts.build(config, task, directory, task.load(config.data))


def matrix_peak(dtype: str = "float32", size: int = 2048) -> float:
    """GFLOP/s of two large matrix products side by side, the best of 5."""
    matrices = [tf.random.normal([size, size]) for _ in range(4)]
    first, second, third, fourth = (tf.cast(m, dtype) for m in matrices)

    @tf.function
    def products():
        return first @ second, third @ fourth

    products()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        products()[1].numpy()
        seconds.append(time.perf_counter() - start)
    return 4 * size**3 / min(seconds) / 1e9


def matrix_flops(model, rows: int, source: int, target: int) -> float:
    """The FLOPs of a training step's matrix products, by the equations.

    Args:
        model: a `Transformer` or an `RNNSearch`.
        rows, source, target: B, S and T of the batch, padding included.

    Returns:
        Those of forward and backward: three times the forward ones. NaN for
        another model.
    """
    sizes = model.config
    vocabulary = sizes["vocabulary_size"]
    if isinstance(model, models.Transformer):
        width, inner = sizes["hidden_dim"], sizes["intermediate_dim"]
        encoder = 4 * width**2 + 2 * width * inner + 2 * source * width
        decoder = 6 * width**2 + 2 * width * inner
        decoder += 2 * (target + source) * width
        layers = sizes["num_layers"]
        macs = source * layers * (encoder + 2 * width**2)
        macs += target * (layers * decoder + width * vocabulary)
    elif type(model) is models.RNNSearch:
        units, readout = sizes["units"], sizes["readout_dim"]
        embedding = sizes["embedding_dim"]
        macs = source * (6 * units * (embedding + units) + 2 * units**2)
        decoder = units**2 + 3 * source * units
        decoder += 3 * units * (embedding + 3 * units)
        decoder += 2 * readout * (3 * units + embedding) + readout * vocabulary
        macs += target * decoder
    else:
        return math.nan
    return 3 * 2 * rows * macs


class _Timer(keras.callbacks.Callback):
    """Notes when each step ends, and stops the training after `seconds`."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.ends = seconds, []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())
        counted = len(self.ends) - WARM_UP
        if counted > WARM_UP:
            elapsed = self.ends[-1] - self.ends[WARM_UP - 1]
            self.model.stop_training = elapsed > self.seconds


def train(options) -> dict:
    """Training through `fit`, its input pipeline included."""
    devices.keep_memory()
    peak = matrix_peak(options.precision)
    with tempfile.TemporaryDirectory() as folder:
        workload = build(options, folder)
        batches = workload.pipeline.training(epoch=0).repeat()
        timer = _Timer(options.seconds)
        workload.trainer.fit(
            batches,
            steps_per_epoch=sys.maxsize,
            shuffle=False,
            verbose=0,
            callbacks=[timer],
        )
    times = np.diff(timer.ends)[WARM_UP - 1 :]
    tokens = padded = flops = 0
    shapes = batches.skip(WARM_UP).take(len(times))
    for inputs, labels, _ in shapes:
        tokens += int(np.count_nonzero(labels.numpy() != PAD))
        rows, length = labels.shape
        padded += rows * length
        flops += matrix_flops(
            workload.model, rows, inputs["source_ids"].shape[1], length
        )
    return {
        "benchmark": "train",
        "system": "keras_attention",
        "size": options.size,
        "precision": options.precision,
        "tokens_per_second": tokens / times.sum(),
        "median_step_ms": 1000 * float(np.median(times)),
        "steps": len(times),
        "padding_share": 1 - tokens / padded,
        "gflops": flops / times.sum() / 1e9,
        "peak_gflops": peak,
        "share_of_peak": flops / times.sum() / 1e9 / peak,
        "peak_memory_mb": peak_memory_mb(),
    }


def random_translator(options, folder):
    """A translator with random weights whose answers have one length."""
    workload = build(dataclasses.replace(options, precision="float32"), folder)
    return (
        translator.Translator(
            workload.model,
            *workload.tokenizers,
            num_beams=options.num_beams,
            max_target_factor=0.0,
            max_target_offset=ANSWER_LENGTH,
        ),
        list(workload.corpus.texts("validation", "source")),
    )


def _median_ms(function, inputs, seconds) -> float:
    """Median time of `function` on each of `inputs` in turn.

    The first call with each is not counted: TensorFlow may compile in it.
    """
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 5:
        turn = inputs[len(times) % len(inputs)]
        if len(times) < len(inputs):
            function(turn)
        before = time.perf_counter()
        function(turn)
        times.append(time.perf_counter() - before)
    return 1000 * statistics.median(times)


def batches_of(texts, live, batch_size) -> list[list[str]]:
    """Batches of texts of like lengths.

    Raises:
        ValueError: If there is none.
    """
    if len(texts) < batch_size:
        raise ValueError(
            "Expected at least batch_size validation texts. Received: "
            f"{len(texts)} texts, batch_size={batch_size}"
        )
    order = np.argsort(live.num_tokens(texts), kind="stable")
    return [
        [texts[index] for index in order[start : start + batch_size]]
        for start in range(0, len(order) - batch_size + 1, batch_size)
    ]


def search_alone(live, batches, num_beams):
    """The search between the tokenizers: a function, and what it is given.

    Returns:
        A function of ids [B, S], and such ids of each batch.
    """
    search = tf.function(
        lambda ids: live.graph.search(ids, num_beams, is_scored=False).ids,
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    ids = [live.graph.encode_text(tf.constant(batch))[0] for batch in batches]
    return search, ids


def decode(options) -> dict:
    """The exported SavedModel as `load` gives it, and its search alone."""
    devices.share_cores()
    # What is compiled is read when it is asked for.
    with tempfile.TemporaryDirectory() as folder:
        return _decode(options, pathlib.Path(folder))


def _decode(options, folder):
    num_beams, batch_size = options.num_beams, options.batch_size
    live, texts = random_translator(options, folder / "run")
    live.export(folder / "model")
    loaded = loading.load(folder / "model")
    batches = batches_of(texts, live, batch_size)
    # What is asked for the second time is compiled in the background.
    if batch_size <= quick_search.MOST_ROWS:
        for batch in [*batches[::20], *batches[::20]]:
            loaded(batch, num_beams=num_beams)
        quick_search.compiler().submit(int).result()
    text_ms = _median_ms(
        lambda batch: loaded(batch, num_beams=num_beams),
        batches,
        options.seconds,
    )

    # The first time is not counted: TensorFlow may compile in it.
    for _ in range(2):
        before = time.perf_counter()
        loaded(texts, num_beams=num_beams, batch_size=batch_size)
        all_seconds = time.perf_counter() - before

    search, ids = search_alone(live, batches, num_beams)
    search_ms = _median_ms(lambda x: search(x).numpy(), ids, options.seconds)
    return {
        "benchmark": "decode",
        "system": "keras_attention",
        "size": options.size,
        "num_beams": num_beams,
        "batch_size": batch_size,
        "sentences_per_second": 1000 * batch_size / search_ms,
        "median_ms": search_ms,
        "text_sentences_per_second": 1000 * batch_size / text_ms,
        "text_median_ms": text_ms,
        "text_over_search": search_ms / text_ms,
        "all_texts_sentences_per_second": len(texts) / all_seconds,
    }


def feed(options) -> dict:
    """The input pipeline alone: pairs and target tokens a second."""
    with tempfile.TemporaryDirectory() as folder:
        batches = build(options, folder).pipeline
        pairs = tokens = epoch = 0
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < options.seconds:
            for _, labels, _ in batches.training(epoch):
                pairs += labels.shape[0]
                tokens += int(np.count_nonzero(labels.numpy() != PAD))
            epoch += 1
    return {
        "benchmark": "pipeline",
        "system": "keras_attention",
        "pairs_per_second": pairs / elapsed,
        "tokens_per_second": tokens / elapsed,
        "epochs": epoch,
        "peak_memory_mb": peak_memory_mb(),
    }


def peak_memory_mb() -> float:
    """The most memory that this process has had, in MB."""
    if sys.platform == "linux":
        # `ru_maxrss` would begin with what the parent process had.
        status = pathlib.Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024  # kB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def machine() -> dict:
    """The machine and the versions that give the figures."""
    name = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        text = pathlib.Path("/proc/cpuinfo").read_text()
        names = [line for line in text.splitlines() if "model name" in line]
        name = names[0].partition(":")[2].strip() if names else name
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "python": platform.python_version(),
    }


MEASURES = {"train": train, "decode": decode, "pipeline": feed}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--size", choices=SIZES, help="of the workload")
    parser.add_argument("--precision", choices=["float32", "bfloat16"])
    parser.add_argument("--corpus", help="as for `keras-attention train`")
    parser.add_argument("--source")
    parser.add_argument("--target")
    parser.add_argument("--num_beams", type=int)
    parser.add_argument("--batch_size", type=int, help="of each search")
    parser.add_argument("--seconds", type=float, help="of each measure")
    parser.set_defaults(**dataclasses.asdict(Options()))
    arguments = vars(parser.parse_args())
    what = arguments.pop("what")
    result = {**MEASURES[what](Options(**arguments)), **machine()}
    for name, value in result.items():
        value = f"{value:,.3f}" if isinstance(value, float) else value
        print(f"{name:28} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
