"""From one language to another: pairs of texts, scored by BLEU and chrF."""

import functools
import itertools
import pathlib
import time

import babel

from keras_attention import evaluation, plotting
from keras_attention.data import columns, corpora
from keras_attention.data import pipeline as batches
from keras_attention.data.readers import lines
from keras_attention.evaluation import scores as text_scores
from keras_attention.serving import translator
from keras_attention.tasks import (
    distillation,
    guided_alignment,
    models,
    run_cards,
    vocabularies,
)
from keras_attention.tasks.task import Evaluation, Task, TestSet
from keras_attention.training import objectives

MISSING = (
    "Give both --source and --reference: a file of texts and one of their "
    "translations."
)
# Between a text and its translation, where one file has both.
BAR = " ||| "
# Rows of the table that a training ends with.
NUM_SAMPLES = 5


class Translation(Task):
    """Writes a text of one language in another."""

    name = "translation"
    columns = columns.PAIR
    headings = ("source", "translation", "reference")
    compares = True

    def stages(self, config):
        if config.training.distillation_epochs:
            return distillation.stages(config, self)
        return super().stages(config)

    def load(self, choices):
        return corpora.load(choices.corpus, choices.source, choices.target)

    def tokenizers(self, choices, directory, corpus):
        def side(name):
            return corpus.texts("train", name)

        def joint():
            # In turn, so that a large corpus is not read to its end.
            pairs = zip(side("source"), side("target"), strict=True)
            return itertools.chain.from_iterable(pairs)

        sentences = {"joint": joint}
        if not choices.is_joint:
            sentences = {
                name: functools.partial(side, name)
                for name in ("source", "target")
            }
        vocabularies.learn(directory, sentences, choices)
        return self.load_tokenizers(directory)

    def load_tokenizers(self, directory):
        if directory.vocabulary("joint").is_file():
            joint = vocabularies.load(directory, "joint")
            return joint, joint
        return tuple(
            vocabularies.load(directory, side) for side in ("source", "target")
        )

    def pipeline(self, config, corpus, tokenizers, replicas):
        links = config.optimizer.guided_alignment
        if links is None:
            return super().pipeline(config, corpus, tokenizers, replicas)
        return batches.Pipeline(
            guided_alignment.with_links(corpus, links, tokenizers),
            {**self.columns, "links": columns.Links()},
            self.encoders(tokenizers),
            max_length=config.data.max_length,
            max_tokens=config.data.max_tokens,
            seed=config.run.seed,
            subword_sampling=config.vocabulary.subword_sampling,
            replicas=replicas,
            inputs=guided_alignment.links_of_tokens(*tokenizers),
        )

    def objective(self, config, model):
        choices = config.optimizer
        if choices.guided_alignment is None:
            return super().objective(config, model)
        return objectives.GuidedObjective(
            choices.guided_alignment_weight, choices.label_smoothing
        )

    def create_model(self, config, tokenizers):
        source, target = (one.vocabulary_size for one in tokenizers)
        joint = config.vocabulary.is_joint
        return models.create(
            config.architecture,
            vocabulary_size=target,
            source_vocabulary_size=None if joint else source,
        )

    def servable(self, config, model, tokenizers, stored_precision="float32"):
        return translator.Translator(
            model,
            *tokenizers,
            max_source_length=config.data.max_length,
            stored_precision=stored_precision,
            **config.search.given,
        )

    def rank(self, logs):
        # BLEU is 0 while no four words in a row are right: then the loss
        # decides.
        return logs["val_bleu"], -logs["val_loss"]

    def validation(self, choices, corpus, servable):
        count = choices.validation_sentences
        sources, references = (
            list(corpus.texts("validation", side, count))
            for side in ("source", "target")
        )

        def validate(epoch, logs):
            # Validation pairs have no links.
            logs.pop("val_alignment", None)
            hypotheses = servable(sources, num_beams=1, truncate=True)
            logs |= evaluation.validation_logs(
                hypotheses, references, target_language=choices.target
            )
            evaluation.print_samples(
                epoch, logs, sources, hypotheses, references
            )

        return validate

    def held_out(self, corpus):
        split = corpus.held_out_split
        return TestSet(
            split,
            list(corpus.texts(split, "source")),
            list(corpus.texts(split, "target")),
            corpus.languages[1],
        )

    def read_test_set(self, source, reference, target_language=None):
        if not source:
            raise ValueError(MISSING)
        sources = list(corpora.read_lines(source))
        if reference:
            references = list(corpora.read_lines(reference))
        else:
            sources, references = _both_sides(source, sources)
        if len(sources) != len(references):
            raise ValueError(
                f"{source} has {len(sources)} lines and {reference} has "
                f"{len(references)}. Each text needs a translation."
            )
        language = target_language or (reference and _language(reference))
        return TestSet(source.name, sources, references, language)

    def evaluate(
        self,
        servable,
        test_set,
        truncate=False,
        tokenize=None,
        rouge=False,
        more=False,
        mbr=False,
        comet=False,
        **options,
    ):
        sources, references = test_set.sources, test_set.references
        start = time.monotonic()
        if mbr:
            _check_beams(servable, **options)
            hypotheses = by_minimum_risk(servable, sources, truncate)
        else:
            hypotheses = servable(sources, truncate=truncate, **options)
        seconds = time.monotonic() - start
        scores = evaluation.corpus_scores(
            hypotheses, references, test_set.target_language, tokenize
        )
        if rouge:
            scores |= evaluation.rouge_scores(hypotheses, references)
        if more:
            scores |= evaluation.more_scores(
                hypotheses, references, test_set.target_language
            )
        if comet:
            scores["comet"] = evaluation.comet_score(
                sources, hypotheses, references
            )
        if truncate:
            scores["truncated"] = servable.num_truncated(sources)
        return Evaluation(test_set, hypotheses, scores, seconds)

    def difference(self, baseline, evaluation, tokenize=None):
        return {
            bleu: text_scores.paired_bootstrap(
                baseline.hypotheses,
                evaluation.hypotheses,
                evaluation.test_set.references,
                lowercase=bleu == "bleu_lc",
                target_language=evaluation.test_set.target_language,
                tokenize=tokenize,
            )
            for bleu in ("bleu", "bleu_lc")
        }

    def by_length(self, servable, evaluation, **options):
        return text_scores.bleu_by_length(
            servable.num_tokens(evaluation.test_set.sources),
            evaluation.hypotheses,
            evaluation.test_set.references,
            target_language=evaluation.test_set.target_language,
            **options,
        )

    def samples(self, servable, evaluation):
        test_set = evaluation.test_set
        rows = zip(
            test_set.sources,
            evaluation.hypotheses,
            test_set.references,
            strict=True,
        )
        return list(itertools.islice(rows, NUM_SAMPLES))

    def draw(self, folder, servable, evaluation):
        sources = evaluation.test_set.sources
        pictures = {
            name: folder / f"{name}.png"
            for name in ("attention", "bleu_by_length")
        }
        longest_first = sorted(sources[:50], key=len, reverse=True)
        if not draw_attention(servable, longest_first, pictures["attention"]):
            del pictures["attention"]
        rows = self.by_length(servable, evaluation)
        plotting.scores_by_length(
            {folder.name: rows}, path=pictures["bleu_by_length"]
        )
        return pictures

    def summary(self, evaluation):
        scores = evaluation.scores
        note = scores["bleu"].get("note")
        return (
            f"BLEU {scores['bleu']['score']:.2f} "
            f"({scores['bleu']['signature']}{f'; {note}' if note else ''}), "
            f"chrF {scores['chrf']['score']:.2f}, "
            f"exact match {scores['exact_match']:.2f} % of "
            f"{scores['sentences']:,} held-out pairs"
        )

    def card(self, config, scores, servable):
        source, target = config.data.source, config.data.target
        names_of = babel.Locale("en").languages
        title = " to ".join(
            names_of.get(code, code) for code in (source, target)
        )
        names = ("bleu", "bleu_lc", "chrf")
        rows = [
            (name, f"{scores[name]['score']:.2f}", scores[name]["signature"])
            for name in names
        ]
        rows.append(("exact match", f"{scores['exact_match']:.2f} %", ""))
        return run_cards.card(
            title, f", {source} to {target}", config, scores, rows, servable
        )


def _both_sides(path, rows) -> tuple[list[str], list[str]]:
    """Texts and translations of lines that have both."""
    pairs = [row.split(BAR) for row in rows]
    for number, pair in enumerate(pairs, 1):
        if len(pair) != 2:
            raise ValueError(
                f"{MISSING} Or write{BAR}between the two in each line of "
                f"--source: {path}, line {number} has {len(pair) - 1} of them."
            )
    return tuple(list(side) for side in zip(*pairs, strict=True)) or ([], [])


def _language(path: pathlib.Path) -> str | None:
    """The language that a file's name ends with, as in `test.zh.gz`."""
    _, *endings = lines.without_compression(path.name).split(".")
    return endings[-1] if endings else None


def by_minimum_risk(servable, texts, truncate=False) -> list[str]:
    """The translation of each text that is most like all others by chrF.

    Args:
        servable: `serving.translator.Translator`.
        texts: what to translate.
        truncate: as for its call.

    Raises:
        ValueError: If the translator has one translation for each text.
    """
    _check_beams(servable)
    found = servable.n_best(texts, truncate=truncate)
    return evaluation.minimum_bayes_risk(
        [[text for text, _ in row] for row in found]
    )


def _check_beams(servable, num_beams=None):
    """Refuses to choose the best of one."""
    if servable.num_beams < 2 or num_beams not in (None, servable.num_beams):
        raise ValueError(
            "Minimum Bayes risk chooses among the translations of a search "
            "with several beams or samples, here "
            f"{num_beams or servable.num_beams}. Load the run with num_beams "
            "of at least 2. A SavedModel has its own number."
        )


def draw_attention(servable, texts, path) -> bool:
    """Draws the attention of the first text that is not blank.

    Args:
        servable: `serving.translator.Translator`.
        texts: what to translate.
        path: a .gif shows it step by step, and any other picture as a whole.

    Returns:
        Whether there is such a text.
    """
    for text in texts:
        (shown,) = servable.with_attention([text], truncate=True)
        if shown["target_tokens"]:
            draw = plotting.attention_heat_map
            if str(path).lower().endswith(".gif"):
                draw = plotting.animate_attention
            draw(
                shown["source_tokens"],
                shown["target_tokens"],
                shown["attention"],
                path=path,
            )
            return True
    return False
