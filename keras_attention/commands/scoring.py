"""Models scored on a test set, and compared."""

import dataclasses
from collections.abc import Iterator

from keras_attention import config as configuration
from keras_attention import devices, plotting, runs, tasks
from keras_attention.commands import arguments
from keras_attention.config import search as searches
from keras_attention.evaluation import gold_alignment
from keras_attention.training import restore

# The models of counts learn from no more of a run's pairs: one core then needs
# about a minute.
MOST_PAIRS = 30_000


def with_corpus(
    config: configuration.TrainingConfig, corpus: str | None
) -> configuration.TrainingConfig:
    """A run's choices, with another place of its corpus if one is given.

    Raises:
        ValueError: If the corpus is not there.
    """
    if corpus is not None:
        config = configuration.replace(config, corpus=corpus)
        config = configuration.resolve(config)
    configuration.check_corpus(config.data.corpus)
    return config


def score_models(
    names, source, reference, options, ensemble=()
) -> Iterator[dict]:
    """A row for each model: its scores, and its difference from the one before.

    Args:
        names: folders of models. The others stand beside the last.
        source, reference: files of the test set. With neither, the test set is
            the held-out split of the last model's corpus.
        options: `commands.evaluate.Options`.
        ensemble: runs that answer together with the last model.

    Raises:
        ValueError: If there is no test set, or if a model cannot answer it. If
            links do not belong to it.
    """
    devices.share_cores()
    task, test_set, load_last = _last(
        names[-1], source, reference, options, ensemble
    )
    if not task.compares:
        choices = (*searches.NAMES, "rouge", "tokenize", "by_length")
        choices += ("alignments", "mbr", "comet")
        asked = [name for name in choices if getattr(options, name)]
        asked += ["beside"] * (len(names) > 1)
        arguments.refuse_for_task(asked, task.name)
    pairs, gold, counts = _read_gold(names[-1], task, test_set, options)
    last = load_last()
    before, rows = None, {}
    told = runs.labels(names), runs.folders(names)
    for name, label, folder in zip(names, *told, strict=True):
        servable = last
        if name != names[-1]:
            servable = arguments.load(name, options)
        if servable.task != task.name:
            raise ValueError(
                f"{name} does {servable.task}, {names[-1]} does {task.name}: "
                "only models of one task can be compared."
            )
        result = _evaluate(task, servable, test_set, options)
        rate = round(len(test_set.sources) / result.seconds, 1)
        row = {**result.scores, "sentences_per_second": rate}
        if gold is not None:
            truncate = options.truncate or options.source is None
            found = gold_alignment.attention_links(servable, pairs, truncate)
            row |= {"aer": gold_alignment.error_rate(found, gold), **counts}
        if len(names) > 1:
            row = {"model": name, **row}
        if before is not None:
            baseline, earlier = before
            row["compared_with"] = {
                "model": baseline,
                **task.difference(earlier, result, tokenize=options.tokenize),
            }
        if options.by_length:
            rows[folder] = row["by_length"] = task.by_length(
                servable, result, tokenize=options.tokenize, num_samples=1000
            )
        before = label, result
        yield row
    if options.by_length:
        plotting.scores_by_length(rows, path=options.by_length)


def _last(name, source, reference, options, ensemble) -> tuple:
    """The task of a model, its test set, and a function that loads the model.

    A SavedModel's task is known once it is loaded. A run's choices are known
    before, so that a mistake in the test set is answered sooner.
    """
    if not arguments.is_run(name):
        servable = arguments.load(name, options)
        task = tasks.get(servable.task)
        test_set = task.read_test_set(source, reference)
        return task, test_set, lambda: servable
    directory, config, task = runs.read_run(name, **searches.given(options))
    if source or reference:
        language = config.data.target
        test_set = task.read_test_set(source, reference, language)
    else:
        corpus = task.load(with_corpus(config, options.corpus).data)
        test_set = task.held_out(corpus)
    if ensemble:
        return task, test_set, lambda: arguments.load(name, options, ensemble)
    return task, test_set, lambda: restore.load_run(directory, config, task)


def _read_gold(name, task, test_set, options) -> tuple:
    """The pairs of a test set, their links, and how counts align them.

    The models of counts also learn from the training pairs of a run.
    """
    if options.alignments is None:
        return None, None, {}
    pairs = list(zip(test_set.sources, test_set.references, strict=True))
    gold = gold_alignment.read_links(options.alignments, pairs)
    training = []
    if arguments.is_run(name):
        _, config, _ = runs.read_run(name)
        corpus = task.load(with_corpus(config, options.corpus).data)
        sides = [
            corpus.texts("train", side, MOST_PAIRS)
            for side in ("source", "target")
        ]
        training = list(zip(*sides, strict=True))
    return pairs, gold, gold_alignment.of_counts(pairs, gold, training)


def _evaluate(task, servable, test_set, options) -> tasks.Evaluation:
    # A run's own test set may have long texts. They are cut, and counted.
    asked = {"truncate": options.truncate or options.source is None}
    # A SavedModel takes them with a call. A run has been loaded with them.
    if options.num_beams and options.num_beams != servable.num_beams:
        asked["num_beams"] = options.num_beams
    if options.tokenize is not None:
        asked["tokenize"] = options.tokenize
    if task.compares:
        asked["more"] = True
    for name in ("rouge", "mbr", "comet"):
        if getattr(options, name):
            asked[name] = True
    # TensorFlow compiles in the first call, so that one is not timed. It has
    # two texts, as a batch of one takes another way. COMET is a model of its
    # own, and not timed at all.
    untimed = {**asked, "comet": False} if "comet" in asked else asked
    sample = dataclasses.replace(
        test_set,
        sources=test_set.sources[:2],
        references=test_set.references[:2],
    )
    task.evaluate(servable, sample, **untimed)
    return task.evaluate(servable, test_set, **asked)
