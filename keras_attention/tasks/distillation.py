"""Self-distillation: a model learns from its own translations.

A trained model, the teacher, translates the sources of its training pairs by
beam search. The student then begins with the teacher's weights. It trains on
the pairs of people and, beside each, on the same source with the teacher's
translation. A teacher's translations are simpler and more uniform than those
of people. The student is kept, even if it is not better than its teacher.

With `distillation_teachers`, finished runs translate in place of the model:
what they find together is better than what each finds alone.

Deviations from Kim and Rush 2016: They distil a large model into a small one
that starts anew. Here the student begins with weights that have learned
already, its own or those of `init`. And the translations of people stay in the
corpus.

References: https://arxiv.org/abs/1606.07947 (3.2, sequence-level knowledge
distillation), https://arxiv.org/abs/1805.04770 (a teacher of the same size)
"""

import dataclasses
import functools
import itertools
import json
import pathlib
import zlib

import keras
import tensorflow as tf

from keras_attention import config as configuration
from keras_attention import files
from keras_attention.config import beginnings
from keras_attention.data.readers import counted_pairs
from keras_attention.tasks import ensembles
from keras_attention.training import callbacks, restore, run_directory
from keras_attention.training.stages import Stage

BLOCK_SIZE = 1000
# Choices that may not change once the teacher has begun to translate.
SETTLED = {"epochs", "steps"}


def stages(config: configuration.TrainingConfig, task) -> list[Stage]:
    """The teacher's training, and the student's.

    The teacher has the choices of the run. Once it has begun to translate, it
    keeps its own. Where other runs translate, this stage gives the student its
    first weights, and is left out if `init` does.

    Args:
        config: of the run.
        task: translation.

    Raises:
        ValueError: If a teacher that has begun to translate is asked to train
            on. If the runs that shall translate cannot do so together, or have
            other languages.
    """
    student = run_directory.at(config.run.output)
    first = run_directory.at(student.path / "teacher")
    others = beginnings.folders(config.training.distillation_teachers)
    translations = student if others else first
    has_begun = bool(_paths(translations))
    if others and not has_begun and not student.checkpoint.is_file():
        _check_teachers(others, config.data)
    own = configuration.replace(
        config,
        output=str(first.path),
        distillation_epochs=0,
        distillation_teachers=None,
    )
    is_left_out = bool(others and config.run.init)
    if has_begun and not is_left_out and not student.checkpoint.is_file():
        saved = run_directory.read_config(first)
        free = run_directory.FREE_ON_RESUME - SETTLED
        run_directory.check_resumable(saved, own, free)
        own = configuration.replace(
            saved, output=own.run.output, corpus=own.data.corpus
        )
    second = Stage(
        configuration.replace(
            config,
            epochs=config.training.distillation_epochs,
            steps=None,
            learning_rate=config.optimizer.learning_rate / 2,
        ),
        corpus=functools.partial(
            _distilled, directory=translations, teachers=others, task=task
        ),
        begin_from=config.run.init if is_left_out else str(first.path),
    )
    if is_left_out:
        return [second]
    return [Stage(own, begin_from=config.run.init), second]


def _check_teachers(paths, data: configuration.Data) -> None:
    """Refuses runs that cannot translate this corpus together.

    Raises:
        ValueError: See `stages`.
    """
    ensembles.check(paths)
    for path in paths:
        theirs = run_directory.read_config(run_directory.at(path)).data
        if (theirs.source, theirs.target) != (data.source, data.target):
            raise ValueError(
                f"{path} translates {theirs.source} to {theirs.target}, and "
                f"this run {data.source} to {data.target}. Choose other "
                "distillation_teachers."
            )


def _paths(directory: run_directory.RunDirectory) -> list[pathlib.Path]:
    folder = directory.path / "translations"
    numbered = (folder / f"{index:06d}.txt" for index in itertools.count())
    return list(itertools.takewhile(pathlib.Path.is_file, numbered))


def _distilled(corpus, directory, teachers, task):
    """The student's corpus, which the teachers translate first."""
    if teachers:
        _check_origin(corpus, directory, teachers)
        load = functools.partial(ensembles.load, teachers, task)
    else:
        load = functools.partial(_load, directory, task)
    translate(corpus, directory, load)
    return with_translations(corpus, directory)


def _load(directory, task):
    config = run_directory.read_config(directory)
    return restore.load_run(directory, config, task)


def _check_origin(corpus, directory, teachers) -> None:
    """Writes down who translates which texts, or compares it.

    No checkpoint does so, if the run has nothing to train before. A teacher is
    known by its files: they may have another path on each machine. Where they
    are gone, as they are no longer needed, it is known by its path.

    Raises:
        ValueError: If translations are there that are of other teachers or of
            other texts.
    """
    checksum = 0
    for row in corpus.splits["train"].as_numpy_iterator():
        checksum = zlib.crc32(row["source"] + b"\n", checksum)
    origin = {
        "teachers": [str(path) for path in teachers],
        "checksums": [_checksum(path) for path in teachers],
        "texts": checksum,
    }
    folder = directory.path / "translations"
    folder.mkdir(exist_ok=True)
    path = folder / "origin.json"
    if not _paths(directory):
        files.write_atomically(path, json.dumps(origin).encode())
    elif not path.is_file() or not _is_same(
        json.loads(path.read_text()), origin
    ):
        raise ValueError(
            f"{folder} has translations by other distillation_teachers, or of "
            "other texts. Go on with the choices that the run began with, or "
            "choose another --output."
        )


def _checksum(path: pathlib.Path) -> str | None:
    """That of a teacher's files, or None if they are gone."""
    directory = run_directory.at(path)
    return directory.checksum() if directory.weights.is_file() else None


def _is_same(known: dict, origin: dict) -> bool:
    """Whether translations are of the same teachers and texts."""
    pairs = zip(
        *(
            itertools.zip_longest(one["teachers"], one.get("checksums", []))
            for one in (known, origin)
        ),
        strict=False,
    )
    return (
        known["texts"] == origin["texts"]
        and len(known["teachers"]) == len(origin["teachers"])
        and all(
            files == others if files and others else path == other_path
            for (path, files), (other_path, others) in pairs
        )
    )


def translate(corpus, directory: run_directory.RunDirectory, load) -> None:
    """Lets a teacher translate the training sources with its own search.

    It writes a file for each `BLOCK_SIZE` texts. Files that are there stay, so
    that a translation that was stopped goes on.

    Args:
        corpus: the teacher's `data.corpora.Corpus`.
        directory: where the folder of the translations is.
        load: a function that gives the teacher, such as a `Translator`. It is
            called if there is something to translate.
    """
    size, done = corpus.sizes["train"], len(_paths(directory))
    if done * BLOCK_SIZE >= size:
        return
    translate_texts = load()
    folder = directory.path / "translations"
    folder.mkdir(exist_ok=True)
    files.remove_temporaries(folder)
    print(f"The teacher translates {size:,} training sources.")
    progress = keras.utils.Progbar(
        size, unit_name="text", verbose=callbacks.verbosity()
    )
    left = corpus.splits["train"].skip(done * BLOCK_SIZE).batch(BLOCK_SIZE)
    with counted_pairs.clear_errors():
        for index, block in enumerate(left, start=done):
            sources = block["source"].numpy()
            texts = [text.decode("utf-8", "replace") for text in sources]
            translations = translate_texts(texts, truncate=True)
            # One line a text: line ends become spaces.
            lines = [" ".join(text.split()) + "\n" for text in translations]
            path = folder / f"{index:06d}.txt"
            files.write_atomically(path, "".join(lines).encode())
            progress.update(index * BLOCK_SIZE + len(texts))


def with_translations(corpus, directory: run_directory.RunDirectory):
    """A corpus with the teacher's pair behind each training pair.

    Where the teacher's translation is empty, the pair itself comes twice.

    Args:
        corpus: the teacher's `data.corpora.Corpus`.
        directory: where its translations are, see `translate`.

    Raises:
        ValueError: If not all of the corpus is translated.
    """
    paths, size = _paths(directory), corpus.sizes["train"]
    if not (len(paths) - 1) * BLOCK_SIZE < size <= len(paths) * BLOCK_SIZE:
        raise ValueError(
            f"{directory.path / 'translations'} has {len(paths)} files of "
            f"{BLOCK_SIZE:,} translations for {size:,} texts. "
            "`keras-attention train --resume` makes the others."
        )

    def side_by_side(pair, translation):
        own = tf.where(translation == "", pair["target"], translation)
        return {
            "source": tf.stack([pair["source"], pair["source"]]),
            "target": tf.stack([pair["target"], own]),
        }

    lines = tf.data.TextLineDataset([str(path) for path in paths])
    pairs = tf.data.Dataset.zip(corpus.splits["train"], lines)
    return dataclasses.replace(
        corpus,
        splits=corpus.splits | {"train": pairs.map(side_by_side).unbatch()},
        sizes=corpus.sizes | {"train": 2 * size},
    )
