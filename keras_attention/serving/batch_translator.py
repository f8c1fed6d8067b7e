"""A SavedModel as a function of batches of columns, as Ray Data maps them."""

import os

import numpy as np

from keras_attention.serving import loading


class BatchTranslator:
    """Answers the texts of one column in another one.

    Its objects are what `ray.data.Dataset.map_batches` takes, each worker with
    one of its own. Nothing here needs Ray.

    Args:
        model: the folder of a SavedModel that takes one text. What is not a
            translator's writes its own answers, such as labels.
        column: the name of the column of texts.
        output: the name of the column of answers.
        truncate: whether the part that fits of a text that is too long is
            answered. By default its answer is empty.

    Call arguments:
        batch: a dict of arrays with B rows each; `column` holds strings.

    Returns:
        The batch with two more columns: `output`, strings [B], and `too_long`,
        bool [B].

    Raises:
        ValueError: If there is no such SavedModel, or no such column.
    """

    def __init__(
        self,
        model: str | os.PathLike,
        column: str = "text",
        output: str = "translation",
        truncate: bool = False,
    ):
        self.model = loading.load(model)
        self.column = column
        self.output = output
        self.truncate = truncate

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self.column not in batch:
            raise ValueError(
                f"Expected a batch with the column {self.column!r}. "
                f"Received: one with {sorted(batch)}"
            )
        texts = [str(text) for text in batch[self.column]]
        too_long = np.zeros(len(texts), bool)
        too_long[[line - 1 for line in self.model.too_long(texts)]] = True
        answers = np.full(len(texts), "", object)
        answered = np.flatnonzero(~too_long | self.truncate)
        answers[answered] = self.model(
            [texts[place] for place in answered], truncate=self.truncate
        )
        return {**batch, self.output: answers, "too_long": too_long}
