"""A run that is killed at any moment goes on to the same bytes."""

import functools
import itertools
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from keras_attention.training import checkpoints

# Training that kills itself when half of a file is written, such as a
# checkpoint, once another one is there: not the first checkpoint, so that there
# is one to go on from.
KILLS_ITSELF = """
import os, pathlib, signal, sys
from keras_attention import cli

folder, begun, written, *arguments = sys.argv[1:]
folder, fsync = pathlib.Path(folder), os.fsync

def killed(handle):
    if (folder / begun).is_file() and [*folder.glob(written)]:
        os.ftruncate(handle, os.fstat(handle).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    fsync(handle)

os.fsync = killed
cli.main(arguments)
"""


def killed_run(arguments, options, folder, moment, wait):
    """Starts training, and kills it.

    Args:
        arguments: the words of the command.
        options: of the process.
        moment: "write": it kills itself in the next write of a checkpoint;
            "first" or "second": it is killed `wait` seconds after it began
            its first, or its second epoch.

    Returns:
        Whether a write was broken off, and how far the checkpoint is:
        epochs and batches.
    """
    checkpoint = folder / "checkpoint.npz"
    start = arguments
    if moment == "write":
        start = kills_itself(
            arguments, folder, "checkpoint.npz", ".checkpoint*"
        )
    with subprocess.Popen(
        start,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **options,
    ) as process:
        try:
            if moment != "write":
                epochs = (line for line in process.stdout if b"Epoch " in line)
                for _ in range(1 if moment == "first" else 2):
                    next(epochs)
                time.sleep(wait)
                process.kill()
            process.communicate()
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL, "it ended by itself"
    progress = (0, 0)
    if checkpoint.is_file():
        _, meta = checkpoints.load(checkpoint)
        progress = (meta["epoch"], meta["step"])
    return any(folder.glob(".checkpoint*")), progress


def kills_itself(arguments, folder, begun, written):
    """The command that is killed in a write, by names in the run's folder."""
    words = [sys.executable, "-c", KILLS_ITSELF, str(folder), begun, written]
    return [*words, *arguments[arguments.index("train") :]]


def same_checkpoints(whole, broken):
    for name in ("weights.npz", "checkpoint.npz"):
        expected, expected_meta = checkpoints.load(whole / name)
        resumed, resumed_meta = checkpoints.load(broken / name)
        assert expected_meta == resumed_meta
        pairs = zip(expected.items(), resumed.items(), strict=True)
        for (key, array), (same_key, same) in pairs:
            # Keras numbers what a process makes: a later stage is the first one
            # of a process that goes on with it.
            assert without_number(key) == without_number(same_key)
            assert array.tobytes() == same.tobytes(), key


def without_number(key):
    return re.sub(r"/(adam|seed_generator)_\d+/", r"/\1/", key)


def timed_run(arguments, options):
    """Trains to the end.

    Returns:
        Seconds of the first epoch, in which it traces, and of another.
    """
    words, times = (b"Epoch 1/", b"Epoch 2/", b"Epoch 12/"), {}
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **options,
    ) as process:
        for line in process.stdout:
            for word in words:
                if word in line:
                    times.setdefault(word, time.perf_counter())
    assert process.returncode == 0
    first, second, last = (times[word] for word in words)
    return second - first, (last - second) / 10


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "model, kills",
    [("transformer", 10), ("rnnsearch", 3), ("rnn_language_model", 3)],
)
def test_a_killed_run_resumes_to_the_same_bytes(
    corpus, train_arguments, command, environment, tmp_path, model, kills
):
    """In the middle of a write, while it traces, and while it trains."""
    more = ["--epochs=20", "--dropout=0.2", "--subword_sampling=0.1"]
    if model == "rnnsearch":
        sizes = '{"embedding_dim": 16, "units": 16, "readout_dim": 16}'
        more += [f"--model={model}", "--model_arguments", sizes]
    if model == "rnn_language_model":
        sizes = '{"embedding_dim": 16, "units": 16}'
        more += [f"--model={model}", "--model_arguments", sizes]
        more += ["--vocabulary_type=unigram"]
        for split in ("train", "validation"):
            texts = (corpus / f"{split}.de").read_bytes()
            (tmp_path / f"{split}.txt").write_bytes(texts)
        corpus = tmp_path
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = {"env": environment}
    first, epoch = timed_run(
        command(train_arguments(corpus, whole, *more)), options
    )
    arguments = command(train_arguments(corpus, broken, *more, "--resume"))
    longest = {"write": 0, "first": first, "second": epoch}
    moments = itertools.cycle(longest)
    generator = np.random.default_rng(kills)
    hits, progress = [], []
    for moment in itertools.islice(moments, kills):
        wait = generator.uniform(0, longest[moment])
        hit, reached = killed_run(arguments, options, broken, moment, wait)
        hits.append(hit)
        progress.append(reached)
    assert all(hits[::3])
    # None fell back; and a fresh start could be told from the last one.
    assert (0, 0) < progress[0] and progress == sorted(progress)
    assert progress[-1] >= (1, 0)
    words = subprocess.run(
        arguments, check=True, capture_output=True, **options
    ).stdout
    started = int(re.search(rb"Epoch (\d+)/", words).group(1))
    # They count from 1. After an epoch's last batch it is the next one.
    assert started - 1 - progress[-1][0] in (0, 1)
    same_checkpoints(whole, broken)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_of_three_stages_is_killed_in_and_between_them(
    corpus, train_arguments, command, environment, tmp_path
):
    """Weights of another run, a teacher, and its student."""
    first, whole, broken = (tmp_path / name for name in ("a", "b", "c"))
    process = functools.partial(
        subprocess.run, env=environment, capture_output=True
    )
    begun = train_arguments(corpus, first, "--epochs=1")
    process(command(begun), check=True)
    more = [f"--init={first}", "--distillation_epochs=2", "--dropout=0.2"]
    done = process(command(train_arguments(corpus, whole, *more)), check=True)
    assert f"from {first}/weights.npz".encode() in done.stdout
    arguments = command(train_arguments(corpus, broken, *more, "--resume"))
    teacher = "teacher/checkpoint.npz"
    for begun, written in (
        (teacher, "teacher/.checkpoint*"),
        # The student's, which the teacher hands on before it translates.
        (teacher, ".vocabulary*"),
        (teacher, "teacher/translations/.000000*"),
        ("teacher/translations/000000.txt", ".checkpoint*"),
        ("checkpoint.npz", ".checkpoint*"),
    ):
        killed = process(
            kills_itself(arguments, broken, begun, written), check=False
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert [*broken.glob(written)]
    process(arguments, check=True)
    same_checkpoints(whole, broken)
    same_checkpoints(whole / "teacher", broken / "teacher")
    vocabularies = {
        (run / "vocabulary.joint.model").read_bytes()
        for run in (first, whole, broken)
    }
    assert len(vocabularies) == 1
