"""Stories with questions: the answer is one of those of the training."""

import tensorflow as tf

from keras_attention.data import columns
from keras_attention.data.embedded import stories
from keras_attention.data.readers import babi
from keras_attention.data.vocabularies import line_tokenizer
from keras_attention.models import catalog
from keras_attention.serving import kinds
from keras_attention.tasks import classification

# Columns hold as many numbers in each row. Fewer sentences repeat the last.
NUM_FACTS = 3
# Models that are trained on the sentences that support an answer.
TOLD_THE_FACTS = ("memory_network",)


class QuestionAnswering(classification.Classification):
    """Answers a question about a story.

    In Python, a row is a tuple of a story and a question. Each line of the
    story is a sentence. A story over the limit keeps its last sentences.

    A model that reads one text gets both in one row: each sentence and the
    question with an END behind.

    Embedded and published stories say which sentences support an answer, as
    bAbI does. Those of one's own do not, and `facts` is then 0.
    """

    name = "question_answering"
    columns = {
        "answer": columns.Class(),
        "story": columns.Text(sentences=True, keep="end"),
        "question": columns.Text(),
        "facts": columns.Numbers(),
    }
    headings = ("story and question", "answer", "right answer")
    embedded = {"stories": stories}
    kind = kinds.QUESTION_ANSWERING

    def rows(self, choices):
        is_embedded = choices.corpus in self.embedded
        rows, unlabelled = None if is_embedded else babi.load(choices.corpus), 0
        if rows is None:
            rows, unlabelled = super().rows(choices)

        def with_facts(answer, story, question, facts=()):
            if is_embedded:
                facts = stories.facts(story, question)
            last = facts[-1] if facts else 0
            facts = [*facts, *[last] * NUM_FACTS][:NUM_FACTS]
            return answer, story, question, facts

        return {
            split: [with_facts(*row) for row in of_split]
            for split, of_split in rows.items()
        }, unlabelled

    def pipeline(self, config, corpus, tokenizers, replicas):
        name = config.architecture.model
        if name in TOLD_THE_FACTS and not _has_facts(corpus):
            raise ValueError(
                f"{name} learns from the sentences that support an answer, "
                f"and {corpus.name} does not say which they are. Leave "
                "--corpus out for the embedded stories, take those of bAbI, or "
                "train --model end_to_end_memory_network."
            )
        return super().pipeline(config, corpus, tokenizers, replicas)

    def load_tokenizers(self, directory):
        tokenizer, answers = super().load_tokenizers(directory)
        lines = line_tokenizer.LineTokenizer(tokenizer.model, tokenizer.name)
        return lines, answers

    def inputs(self, model):
        if catalog.entry(model).task != self.name:
            return _in_one_row
        return None if model in TOLD_THE_FACTS else _without_facts


def _has_facts(corpus) -> bool:
    """Whether a story of the training says what supports its answer."""
    return any(
        block["facts"].numpy().any()
        for block in corpus.splits["train"].batch(1000)
    )


def _without_facts(block):
    return {name: rows for name, rows in block.items() if name != "facts"}


def _in_one_row(block):
    row = tf.concat([block["story_ids"], block["question_ids"]], axis=1)
    return {"label": block["label"], "source_ids": row}
