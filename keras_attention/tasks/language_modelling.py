"""Texts without translations: which word comes next, scored by perplexity."""

import math
import time

import tensorflow as tf

from keras_attention.data import carried, columns, corpora
from keras_attention.data.embedded import sentences
from keras_attention.data.readers import streams, texts
from keras_attention.data.vocabularies import line_tokenizer
from keras_attention.serving import continuer
from keras_attention.tasks import models, run_cards, vocabularies
from keras_attention.tasks.task import Evaluation, Task, TestSet
from keras_attention.training import objectives

EMBEDDED = "sentences"
# The words of a sample that the model is given, and continues.
PROMPT_WORDS = 3
NUM_SAMPLES = 5


class LanguageModelling(Task):
    """Says how probable a text is, and continues one."""

    name = "language_modelling"
    columns = {"target": columns.Text(start=True)}
    headings = ("prompt", "continuation", "text")

    def load(self, choices):
        if choices.corpus == EMBEDDED:
            splits = sentences.generate()
        else:
            splits = texts.load(choices.corpus)
        return corpora.Corpus.of_rows(
            choices.corpus, self.columns, _rows(splits)
        )

    def tokenizers(self, choices, directory, corpus):
        lines = {"joint": lambda: corpus.texts("train", "target")}
        vocabularies.learn(directory, lines, choices)
        return self.load_tokenizers(directory)

    def load_tokenizers(self, directory):
        return (vocabularies.load(directory, "joint"),)

    def pipeline(self, config, corpus, tokenizers, replicas):
        if config.data.context == "carry":
            if replicas > 1:
                raise ValueError(
                    "context=carry trains on one replica, where the state is. "
                    "Give --replicas=1, and start one worker. There are "
                    f"{replicas} replicas."
                )
            return carried.CarriedPipeline(
                corpus,
                *tokenizers,
                num_rows=_num_rows(config.data),
                context_length=config.data.context_length,
            )
        tokenizers = _in_context(config.data.context, tokenizers)
        if config.data.context == "stream":
            corpus = _joined(corpus, *tokenizers, config.data.max_length)
        return super().pipeline(config, corpus, tokenizers, replicas)

    def create_model(self, config, tokenizers):
        (tokenizer,) = tokenizers
        model = models.create(
            config.architecture, vocabulary_size=tokenizer.vocabulary_size
        )
        ids = tf.range(tokenizer.vocabulary_size)[tf.newaxis]
        (pieces,) = tokenizer.pieces(ids).numpy()
        model.read_vocabulary([piece.decode() for piece in pieces])
        return model

    def objective(self, config, model):
        if config.data.context != "carry":
            return super().objective(config, model)
        return objectives.CarriedObjective(
            model, _num_rows(config.data), config.optimizer.label_smoothing
        )

    def servable(self, config, model, tokenizers, stored_precision="float32"):
        return continuer.Continuer(
            model,
            *_in_context(config.data.context, tokenizers),
            max_length=config.data.max_length,
            stored_precision=stored_precision,
            carries_state=config.data.context == "carry",
            **config.search.given,
        )

    def rank(self, logs):
        return (-logs["val_loss"],)

    def validation(self, choices, corpus, servable):
        count = min(NUM_SAMPLES, choices.validation_sentences)
        lines = list(corpus.texts("validation", "target", count))

        def validate(epoch, logs):
            print(
                f"\nepoch {epoch + 1}: validation perplexity "
                f"{logs['val_perplexity']:.3f}"
            )
            for prompt, continuation, _ in _samples(servable, lines):
                print(f"  {prompt} | {continuation}")

        return validate

    def held_out(self, corpus):
        split = corpus.held_out_split
        lines = list(corpus.texts(split, "target"))
        embedded = EMBEDDED if corpus.name == EMBEDDED else None
        return TestSet(split, lines, lines, embedded=embedded)

    def read_test_set(self, source, reference, target_language=None):
        if not source or reference:
            raise ValueError(
                "A language model is scored on --source, a file of texts, and "
                "takes no --reference."
            )
        lines = texts.read(source)
        return TestSet(source.name, lines, lines)

    def evaluate(self, servable, test_set, truncate=False):
        lines = test_set.sources
        start = time.monotonic()
        score = (
            servable.score_stream if servable.reads_lines else servable.score
        )
        scored = score(lines, truncate=truncate)
        seconds = time.monotonic() - start
        log_probability = sum(one for one, _ in scored)
        num_tokens = sum(count for _, count in scored)
        scores = {
            "perplexity": math.exp(-log_probability / num_tokens),
            "log_probability": log_probability,
            "tokens": num_tokens,
            "sentences": len(lines),
        }
        # The truth is about words: it is no measure of other tokens.
        if test_set.embedded and num_tokens == _num_words(lines):
            scores |= _truth(lines)
        carries_state = servable.reads_lines and servable.carries_state
        # Such a model reads a stream to its end, whatever its length.
        if truncate and not carries_state:
            scores["truncated"] = servable.num_truncated(lines)
        return Evaluation(test_set, lines, scores, seconds)

    def samples(self, servable, evaluation):
        return _samples(servable, evaluation.test_set.sources[:NUM_SAMPLES])

    def draw(self, folder, servable, evaluation):
        return {}

    def summary(self, evaluation):
        scores = evaluation.scores
        known = ""
        if "entropy_perplexity" in scores:
            known = (
                "; the source's entropy rate makes "
                f"{scores['entropy_perplexity']:.3f}, its own probabilities "
                f"of these sentences {scores['source_perplexity']:.3f}"
            )
        return (
            f"perplexity {scores['perplexity']:.3f} of "
            f"{scores['tokens']:,} tokens in {scores['sentences']:,} "
            f"held-out sentences{known}"
        )

    def card(self, config, scores, servable):
        names = ("perplexity", "source_perplexity", "entropy_perplexity")
        rows = [
            (name.replace("_", " "), f"{scores[name]:.3f}", "")
            for name in names
            if name in scores
        ]
        return run_cards.card(
            "Language model", "", config, scores, rows, servable
        )


def _in_context(context: str, tokenizers) -> tuple:
    """The tokenizer of a run: that of a stream reads lines."""
    if context == "line":
        return tokenizers
    return tuple(
        line_tokenizer.LineTokenizer(one.model, one.name) for one in tokenizers
    )


def _num_rows(choices) -> int:
    """The rows of a stream whose state is carried."""
    rows = choices.max_tokens // choices.context_length
    if not rows:
        raise ValueError(
            "max_tokens must be at least context_length, the tokens of one row "
            f"of a batch. Received: max_tokens={choices.max_tokens}, "
            f"context_length={choices.context_length}"
        )
    return rows


def _joined(corpus, tokenizer, max_length):
    """A corpus whose texts are lines in a row, as many as there is room for."""
    texts = {}
    for name in ("train", "validation"):
        lines, lengths = list(corpus.texts(name, "target")), []
        for start in range(0, len(lines), 1000):
            ids = tokenizer.tokenize(lines[start : start + 1000])
            lengths.extend((ids.row_lengths() + 1).numpy().tolist())
        # START has its place too.
        texts[name] = streams.join(lines, lengths, max_length - 1)
    return corpora.Corpus.of_rows(corpus.name, ["target"], _rows(texts))


def _rows(splits) -> dict[str, list[tuple[str]]]:
    """Texts as the rows of a corpus: one column."""
    return {name: [(text,) for text in texts] for name, texts in splits.items()}


def _truth(lines) -> dict:
    """The scores of the source itself. On average, no model has better ones."""
    log_probability = sum(map(sentences.log_probability, lines))
    return {
        "source_perplexity": math.exp(-log_probability / _num_words(lines)),
        "entropy_perplexity": math.exp(sentences.entropy_rate()),
    }


def _num_words(lines) -> int:
    """The words of some texts, and an END for each."""
    return sum(len(line.split()) + 1 for line in lines)


def _samples(servable, lines) -> list[tuple[str, str, str]]:
    """Prompts, their continuations, and the texts that the prompts are from."""
    prompts = [" ".join(line.split()[:PROMPT_WORDS]) for line in lines]
    answers = servable(prompts, truncate=True)
    return list(zip(prompts, answers, lines, strict=True))
