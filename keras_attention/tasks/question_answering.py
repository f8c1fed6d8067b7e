"""Stories with questions: the answer is one of those of the training."""

import tensorflow as tf

from keras_attention.data import columns, corpora
from keras_attention.data.embedded import stories
from keras_attention.data.readers import babi
from keras_attention.data.vocabularies import line_tokenizer
from keras_attention.models import catalog
from keras_attention.serving import kinds
from keras_attention.tasks import classification


class QuestionAnswering(classification.Classification):
    """Answers a question about a story.

    In Python, a row is a tuple of a story and a question. Each line of the
    story is a sentence. A story over the limit keeps its last sentences.

    A model that reads one text gets both in one row: each sentence and the
    question with an END behind.
    """

    name = "question_answering"
    columns = {
        "answer": columns.Class(),
        "story": columns.Text(sentences=True, keep="end"),
        "question": columns.Text(),
    }
    headings = ("story and question", "answer", "right answer")
    embedded = {"stories": stories}
    kind = kinds.QUESTION_ANSWERING

    def load(self, choices):
        is_embedded = choices.corpus in self.embedded
        rows = None if is_embedded else babi.load(choices.corpus)
        if rows is None:
            return super().load(choices)
        return corpora.Corpus.of_rows(choices.corpus, self.columns, rows)

    def load_tokenizers(self, directory):
        tokenizer, answers = super().load_tokenizers(directory)
        lines = line_tokenizer.LineTokenizer(tokenizer.model, tokenizer.name)
        return lines, answers

    def inputs(self, model):
        # A model of this task reads the columns as they are.
        is_own = catalog.entry(model).task == self.name
        return None if is_own else _in_one_row


def _in_one_row(block):
    row = tf.concat([block["story_ids"], block["question_ids"]], axis=1)
    return {"label": block["label"], "source_ids": row}
