"""Translations of sentences, with strings that come out as they went in.

A request of REST may have two options beside its rows, which TensorFlow Serving
does not know:

- `split_sentences`: true to translate each sentence of a text for itself;
- `keep`: a list of what comes out as it went in. Each is the name of a pattern,
  such as "url", or a text. It is no regular expression: those of strangers may
  take forever.

`serving.sentences` and `serving.placeholders` do the work in a thread. They ask
the queue as any other request does, perhaps several times.
"""

import asyncio
import concurrent.futures
import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable, Mapping

import numpy as np

from keras_attention.server import errors, served_model, signatures
from keras_attention.server import predictor as predictors
from keras_attention.server import settings as server_settings
from keras_attention.serving import constraints, placeholders, sentences

# The options in a JSON schema.
SCHEMA = {
    "split_sentences": {"type": "boolean"},
    "keep": {"type": "array", "items": {"type": "string"}},
}
_MOST_PATTERNS, _MOST_LETTERS = 20, 200
# Each needs a number of its own that the text does not hold.
_MOST_KEPT = 100
# Each has a thread, which waits for its answers.
_MOST_REQUESTS = 32


@dataclasses.dataclass(frozen=True)
class Options:
    """What a request wants beside its signature.

    Attributes:
        split_sentences: whether each sentence is translated for itself.
        patterns: regular expressions, and names of `placeholders.PATTERNS`.
    """

    split_sentences: bool
    patterns: tuple[str, ...]

    def find(self, text: str) -> list[tuple[int, int]]:
        """Where the strings are that come out as they went in."""
        return placeholders.find(text, self.patterns)


def options_of(document: Mapping) -> Options | None:
    """The options of a request's document, or None if it has none.

    Raises:
        RequestError: If they have other types, or if there are too many.
    """
    is_split = document.get("split_sentences", False)
    kept = document.get("keep", [])
    if not isinstance(is_split, bool):
        raise errors.invalid("split_sentences is true or false.")
    if not isinstance(kept, list) or not all(
        isinstance(one, str) and one.strip() for one in kept
    ):
        raise errors.invalid(
            "keep is a list of texts and of names of patterns: "
            f"{', '.join(placeholders.PATTERNS)}."
        )
    if len(kept) > _MOST_PATTERNS or any(len(k) > _MOST_LETTERS for k in kept):
        raise errors.invalid(
            f"keep has at most {_MOST_PATTERNS} texts, each of at most "
            f"{_MOST_LETTERS} letters."
        )
    if not (is_split or kept):
        return None
    patterns = (
        one if one in placeholders.PATTERNS else re.escape(one) for one in kept
    )
    return Options(is_split, tuple(patterns))


def are_taken(kind, signature: signatures.Signature) -> bool:
    """Whether a signature's requests may have the options.

    Args:
        kind: `kinds.Kind` of the model, or None.
        signature: the signature.
    """
    return (
        kind is not None
        and kind.name == "translation"
        and signature.inputs.keys() == {"text"}
        and signature.outputs.keys() == {"translation"}
    )


class Rewriter:
    """Answers requests that have the options.

    Args:
        predictor: what answers the texts that are made of theirs.
        limits: of the server.
    """

    def __init__(
        self,
        predictor: predictors.Predictor,
        limits: server_settings.Limits,
    ):
        self._predictor = predictor
        self._limits = limits
        self._threads = concurrent.futures.ThreadPoolExecutor(
            _MOST_REQUESTS, thread_name_prefix="rewrite"
        )
        self._num_running = 0

    async def predict(
        self,
        spec: predictors.ModelSpec,
        options: Options,
        to_arrays: Callable,
        deadline: float,
    ) -> predictors.Answer:
        """The translations of a request.

        Args:
            spec, to_arrays, deadline: as for `Predictor.predict`.
            options: of the request.

        Raises:
            RequestError: As `Predictor.predict`; if the signature gives more
                than a translation, or if too many such requests run.
        """
        if self._num_running >= _MOST_REQUESTS:
            raise errors.RequestError(
                errors.Code.RESOURCE_EXHAUSTED,
                f"The server answers {_MOST_REQUESTS} requests with keep or "
                "split_sentences now, the most that it takes. Try again in a "
                "second.",
            )
        status = self._predictor.find(spec)
        # All that is asked for a request, one version answers.
        with served_model.in_use(status) as version:
            signature = predictors.find_signature(version, spec.signature_name)
            if not are_taken(version.kind, signature):
                raise errors.invalid(
                    "keep and split_sentences are for a translator's "
                    "signatures serving_default, greedy and minimum_risk."
                )
            arrays = to_arrays(signature)
            num_rows = signature.check(
                arrays, self._limits.max_rows, self._limits.max_text_bytes
            )
            texts = [text.decode("utf-8", "replace") for text in arrays["text"]]
            asker = _Asker(self._predictor, spec, status, deadline)
            self._num_running += 1
            try:
                found = await asyncio.get_running_loop().run_in_executor(
                    self._threads,
                    _translations,
                    asker,
                    texts,
                    options,
                    self._limits.max_rows,
                )
            finally:
                self._num_running -= 1
                # Nobody waits for what a client that is gone has asked.
                asker.cancel()
            outputs = {"translation": _encoded(found)}
            return predictors.Answer(
                outputs, version.number, signature.name, num_rows
            )


def _translations(asker, texts, options, most_rows) -> list[str]:
    """What `Rewriter.predict` answers; in a thread."""
    for row, text in enumerate(texts):
        if len(options.find(text)) > _MOST_KEPT:
            raise errors.invalid(
                f"keep finds more than {_MOST_KEPT} strings in row {{row}}. "
                "Split the text.",
                row,
            )
    ask = asker
    if options.patterns:
        ask = functools.partial(
            placeholders.keep, asker, patterns=options.patterns
        )
    if not options.split_sentences:
        return ask(texts)
    asker.rows = [
        row
        for row, text in enumerate(texts)
        for _ in sentences.split(text, options.find(text))[1::2]
    ]
    if len(asker.rows) > most_rows:
        raise errors.invalid(
            f"The request has {len(asker.rows)} sentences, and at most "
            f"{most_rows} are taken. Split it."
        )
    return sentences.by_sentences(ask, texts, options.find)


class _Asker:
    """A translator as `placeholders` and `sentences` ask one, in a thread.

    Attributes:
        signatures: those of the version.
        path: that it is no live model.
        rows: the row that each sentence is of, or None.
    """

    path = pathlib.Path()

    def __init__(self, predictor, spec, status, deadline):
        self._predictor = predictor
        self._spec = spec
        self._status = status
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._future = None
        self._is_cancelled = False
        self.signatures = status.loaded.signatures
        self.rows: list[int] | None = None

    def __call__(
        self, texts, num_beams=None, batch_size=64, truncate=False
    ) -> list[str]:
        """The translations of texts, by the request's own signature."""
        outputs = self._ask(self._spec.signature_name, {"text": texts})
        return outputs["translation"]

    def constrained(
        self, texts, terms, batch_size=64, truncate=False
    ) -> list[tuple[str, float]]:
        """Translations that hold terms, as `Translator.constrained`."""
        rows = constraints.of_rows(texts, None, terms)
        outputs = self._ask(constraints.NAME, {"text": texts, **rows})
        return list(zip(outputs["translation"], outputs["score"], strict=True))

    def cancel(self) -> None:
        """Ends what is asked now, and what would be asked next."""
        self._is_cancelled = True
        if self._future is not None:
            self._future.cancel()

    def _ask(self, name: str, columns: Mapping) -> dict[str, list]:
        if not columns["text"]:
            return {"translation": [], "score": []}
        arrays = {key: _encoded(texts) for key, texts in columns.items()}
        asked = self._predictor.predict(
            dataclasses.replace(self._spec, signature_name=name),
            lambda _: arrays,
            sum(len(text) for array in arrays.values() for text in array),
            self._deadline,
            self._status,
        )
        self._future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        if self._is_cancelled:
            self._future.cancel()
        try:
            outputs = self._future.result().outputs
        except errors.RequestError as error:
            if self.rows is not None and error.row is not None:
                # The client counts its rows, and not the sentences.
                error.row = self.rows[error.row]
            raise
        return {
            key: [
                one.decode("utf-8", "replace")
                if isinstance(one, bytes)
                else float(one)
                for one in array
            ]
            for key, array in outputs.items()
        }


def _encoded(texts) -> np.ndarray:
    found = np.empty(len(texts), object)
    found[:] = [text.encode("utf-8", "replace") for text in texts]
    return found
