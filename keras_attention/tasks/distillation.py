"""Self-distillation: a model learns from its own translations.

A trained model, the teacher, translates the sources of its training pairs by
beam search. The student then begins with the teacher's weights. It trains on
the pairs of people and, beside each, on the same source with the teacher's
translation. A teacher's translations are simpler and more uniform than those
of people. The student is kept, even if it is not better than its teacher.

Deviations from Kim and Rush 2016: They distil a large model into a small one
that starts anew. Here the teacher has the student's size and gives it its
weights. And the translations of people stay in the corpus.

References: https://arxiv.org/abs/1606.07947 (3.2, sequence-level knowledge
distillation), https://arxiv.org/abs/1805.04770 (a teacher of the same size)
"""

import dataclasses
import functools
import itertools
import pathlib

import keras
import tensorflow as tf

from keras_attention import config as configuration
from keras_attention import files
from keras_attention.data.readers import counted_pairs
from keras_attention.training import callbacks, restore, run_directory
from keras_attention.training.stages import Stage

BLOCK_SIZE = 1000
# Choices that may not change once the teacher has begun to translate.
SETTLED = {"epochs", "steps"}


def stages(config: configuration.TrainingConfig, task) -> list[Stage]:
    """The teacher's training, and the student's.

    The teacher has the choices of the run. Once it has begun to translate, it
    keeps its own.

    Args:
        config: of the run.
        task: translation.

    Raises:
        ValueError: If a teacher that has begun to translate is asked to train
            on.
    """
    student = run_directory.at(config.run.output)
    teacher = run_directory.at(student.path / "teacher")
    own = configuration.replace(
        config, output=str(teacher.path), distillation_epochs=0
    )
    if _paths(teacher) and not student.checkpoint.is_file():
        saved = run_directory.read_config(teacher)
        free = run_directory.FREE_ON_RESUME - SETTLED
        run_directory.check_resumable(saved, own, free)
        own = configuration.replace(
            saved, output=own.run.output, corpus=own.data.corpus
        )
    return [
        Stage(own, begin_from=config.run.init),
        Stage(
            configuration.replace(
                config,
                epochs=config.training.distillation_epochs,
                steps=None,
                learning_rate=config.optimizer.learning_rate / 2,
            ),
            corpus=functools.partial(_distilled, teacher=teacher, task=task),
            begin_from=str(teacher.path),
        ),
    ]


def _paths(teacher: run_directory.RunDirectory) -> list[pathlib.Path]:
    folder = teacher.path / "translations"
    numbered = (folder / f"{index:06d}.txt" for index in itertools.count())
    return list(itertools.takewhile(pathlib.Path.is_file, numbered))


def _distilled(corpus, teacher, task):
    """The student's corpus, which the teacher translates first."""
    translate(corpus, teacher, task)
    return with_translations(corpus, teacher)


def translate(corpus, teacher: run_directory.RunDirectory, task) -> None:
    """Lets a teacher translate its training sources with its own search.

    It writes a file for each `BLOCK_SIZE` texts. Files that are there stay, so
    that a translation that was stopped goes on.

    Args:
        corpus: the teacher's `data.corpora.Corpus`.
        teacher: the folder of a finished training.
        task: translation.
    """
    size, done = corpus.sizes["train"], len(_paths(teacher))
    if done * BLOCK_SIZE >= size:
        return
    config = run_directory.read_config(teacher)
    translate_texts = restore.load_run(teacher, config, task)
    folder = teacher.path / "translations"
    folder.mkdir(exist_ok=True)
    files.remove_temporaries(folder)
    print(f"The model translates its {size:,} training sources.")
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


def with_translations(corpus, teacher: run_directory.RunDirectory):
    """A corpus with the teacher's pair behind each training pair.

    Where the teacher's translation is empty, the pair itself comes twice.

    Args:
        corpus: the teacher's `data.corpora.Corpus`.
        teacher: the folder of a run that has translated it, see `translate`.

    Raises:
        ValueError: If the run has not translated all of the corpus.
    """
    paths, size = _paths(teacher), corpus.sizes["train"]
    if not (len(paths) - 1) * BLOCK_SIZE < size <= len(paths) * BLOCK_SIZE:
        raise ValueError(
            f"{teacher.path / 'translations'} has {len(paths)} files of "
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
