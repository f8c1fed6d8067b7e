"""What every classifier offers, live or loaded: texts, and their labels."""

from collections.abc import Sequence

import numpy as np

from keras_attention.serving import text_model


class TextLabelling(text_model.TextModel):
    """Labels lists of texts through signatures: abstract.

    A subclass gives `signatures`, see `text_model.TextModel`.

    Attributes:
        task: what it does, by its name in the catalogue of models.
        output: the name of the output of `serving_default`.
        num_beams: 1, as there is no search.

    Raises:
        ValueError: If a text is longer than the model's limit (the message
            names the line, its length and the limit), or is no string.
    """

    task = "classification"
    output = "label"
    num_beams = 1

    def __call__(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[str]:
        """The most probable label of each text.

        Args:
            texts: what to label.
            batch_size: texts in a batch, at most.
            truncate: whether a text over the limit loses its end; it is
                refused otherwise.
        """
        rows = self._rows("serving_default", texts, batch_size, truncate)
        return [row["label"].decode() for row in rows]

    def probabilities(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> np.ndarray:
        """The probabilities of all labels: float32 [N, C].

        Args:
            texts, batch_size, truncate: as for a call.
        """
        rows = self._rows("serving_default", texts, batch_size, truncate)
        return np.array([row["probabilities"] for row in rows])

    def with_attention(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[dict]:
        """Labels, and what the model attended to.

        Args:
            texts, batch_size, truncate: as for a call.

        Returns:
            For each text a dict of `label`, `probabilities`, `source_tokens`
            and `attention`, an array whose last axis is these tokens: for one
            hop or head [..., S]. For a pair of texts, `pair_tokens` are T
            more tokens, and `attention` [S, T] and `attention_pair` [T, S]
            the weights of each text's tokens.
        """
        rows = self._rows("with_attention", texts, batch_size, truncate)
        return [_without_padding(row) for row in rows]

    def _rows(self, name, texts, batch_size, truncate):
        answer = self._function(name)
        batches = self._batches(texts, batch_size, truncate)
        for batch in batches:
            batch.outputs = answer(**batch.inputs)
        return text_model.rows_in_order(batches)


class PairLabelling(TextLabelling):
    """Labels pairs of texts, with a tab between the two: abstract.

    Otherwise it is like `TextLabelling`.

    Raises:
        ValueError: As `TextLabelling`, and for a text without exactly one tab.
    """

    task = "entailment"
    inputs = ("text", "text_pair")

    def _columns(self, texts):
        rows = []
        for line, text in enumerate(text_model.encoded(texts), 1):
            pair = text.split(b"\t")
            if len(pair) != 2:
                raise ValueError(
                    "Expected two texts with a tab between them. Received: "
                    f"{text.decode('utf-8', 'replace')[:50]!r} in line {line}"
                )
            rows.append(pair)
        return {
            name: [row[place] for row in rows]
            for place, name in enumerate(self.inputs)
        }


def _without_padding(row: dict) -> dict:
    """A row of `with_attention` with its own tokens alone."""
    answer = {
        "label": row["label"].decode(),
        "probabilities": row["probabilities"],
    }
    tokens = {
        name: [token.decode("utf-8", "replace") for token in row[name] if token]
        for name in ("source_tokens", "pair_tokens")
        if name in row
    }
    num_source = len(tokens["source_tokens"])
    weights = row["attention"]
    if "pair_tokens" in tokens:
        num_pair = len(tokens["pair_tokens"])
        pair_weights = row["attention_pair"]
        return {
            **answer,
            **tokens,
            "attention": weights[:num_source, :num_pair],
            "attention_pair": pair_weights[:num_pair, :num_source],
        }
    # Where each token has a row, those of padding go, too.
    if weights.ndim > 2:
        weights = weights[..., :num_source, :]
    return {**answer, **tokens, "attention": weights[..., :num_source]}
