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
import time
from collections.abc import Callable, Mapping

import numpy as np

from keras_attention.server import errors, served_model, signatures
from keras_attention.server import predictor as predictors
from keras_attention.server import settings as server_settings
from keras_attention.serving import constraints, placeholders, sentences

_MOST_PATTERNS, _MOST_LETTERS = 20, 200
# The options in a JSON schema.
SCHEMA = {
    "split_sentences": {"type": "boolean"},
    "keep": {
        "type": "array",
        "maxItems": _MOST_PATTERNS,
        "items": {
            "type": "string",
            "minLength": 1,
            "maxLength": _MOST_LETTERS,
        },
    },
}
# A letter or a digit of the scripts that write words with spaces and case: not
# of Chinese or Thai, where a kept text may stand beside any letter.
_LETTER = r"[^\W\u0590-\u1dff\u2e80-\U0010ffff]"
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
        """Where the strings are that come out as they went in.

        If there are too many, then one more than are allowed.
        """
        return placeholders.find(text, self.patterns, _MOST_KEPT + 1)


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
        one if one in placeholders.PATTERNS else _pattern(one)
        for one in dict.fromkeys(kept)
    )
    return Options(is_split, tuple(patterns))


def _pattern(text: str) -> str:
    """What finds a text, but not inside a word: "US", and not "USED"."""
    before = f"(?<!{_LETTER})" if re.match(_LETTER, text[0]) else ""
    behind = f"(?!{_LETTER})" if re.match(_LETTER, text[-1]) else ""
    return before + re.escape(text) + behind


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
        # A thread works on for a while when its client is gone.
        self._running = set()

    @property
    def is_busy(self) -> bool:
        """Whether a thread works, perhaps for a client that is gone."""
        return bool(self._running)

    def stop(self) -> None:
        """Takes no more requests."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def predict(
        self,
        spec: predictors.ModelSpec,
        options: Options,
        to_arrays: Callable,
        num_bytes: int,
        deadline: float,
    ) -> predictors.Answer:
        """The translations of a request.

        Args:
            spec, to_arrays, num_bytes, deadline: as for `Predictor.predict`.
            options: of the request.

        Raises:
            RequestError: As `Predictor.predict`; if the signature gives more
                than a translation, or if too many such requests run.
        """
        status = self._predictor.find(spec)
        # All that is asked for a request, one version answers.
        with served_model.in_use(status) as version:
            signature = predictors.find_signature(version, spec.signature_name)
            if not are_taken(version.kind, signature):
                raise errors.invalid(
                    "keep and split_sentences are for a translator's "
                    "signatures serving_default, greedy and minimum_risk."
                )
            texts = await self._predictor.convert(
                num_bytes, self._texts, to_arrays, signature
            )
            asker = _Asker(
                self._predictor, spec, status, deadline, self._limits.max_rows
            )
            job = self._start(asker, texts, options)
            try:
                found = await asyncio.wrap_future(job)
            finally:
                # Nobody waits for what a client that is gone has asked.
                asker.cancel()
            outputs = {"translation": _encoded(found)}
            return predictors.Answer(
                outputs, version.number, signature.name, len(texts)
            )

    def _start(self, *arguments) -> concurrent.futures.Future:
        if len(self._running) >= _MOST_REQUESTS:
            raise errors.RequestError(
                errors.Code.RESOURCE_EXHAUSTED,
                f"The server answers {_MOST_REQUESTS} requests with keep or "
                "split_sentences now, the most that it takes. Try again in a "
                "second.",
            )
        job = self._threads.submit(_translations, *arguments)
        self._running.add(job)
        job.add_done_callback(self._running.discard)
        return job

    def _texts(self, to_arrays, signature) -> list[str]:
        arrays = to_arrays(signature)
        signature.check(
            arrays, self._limits.max_rows, self._limits.max_text_bytes
        )
        return [text.decode("utf-8", "replace") for text in arrays["text"]]


def _translations(asker, texts, options) -> list[str]:
    """What `Rewriter.predict` answers; in a thread."""
    asker.texts, asker.rows, spans = texts, [*range(len(texts))], {}
    for row, text in enumerate(texts):
        asker.check()
        spans[text] = options.find(text)
        if len(spans[text]) > _MOST_KEPT:
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
    asker.rows = []
    for row, text in enumerate(texts):
        asker.check()
        num_sentences = len(sentences.split(text, spans[text])) // 2
        asker.rows += [row] * num_sentences
    if len(asker.rows) > asker.most_rows:
        raise errors.invalid(
            f"The request has {len(asker.rows)} sentences, and at most "
            f"{asker.most_rows} are taken. Split it."
        )

    def find(text):
        asker.check()
        return spans[text]

    return sentences.by_sentences(ask, texts, find)


class _Asker:
    """A translator as `placeholders` and `sentences` ask one, in a thread.

    Attributes:
        signatures: those of the version.
        path: that it is no live model.
        most_rows: how many texts the predictor takes at a time.
        texts: those of the request.
        rows: the row of each text that is asked first.
    """

    path = pathlib.Path()

    def __init__(self, predictor, spec, status, deadline, most_rows):
        self._predictor = predictor
        self._spec = spec
        self._status = status
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._future = None
        self._is_cancelled = False
        self.signatures = status.loaded.signatures
        self.most_rows = most_rows
        self.texts: list[str] = []
        self.rows: list[int] = []
        # What was asked first -> its row. It may have stand-ins.
        self._rows: dict[str, int] = {}

    def __call__(
        self, texts, num_beams=None, batch_size=64, truncate=False
    ) -> list[str]:
        """The translations of texts, by the request's own signature."""
        if not self._rows:
            pairs = zip(reversed(texts), reversed(self.rows), strict=True)
            self._rows = dict(pairs)
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

    def check(self) -> None:
        """Ends the thread's work if nobody waits for it any more."""
        if self._is_cancelled:
            raise concurrent.futures.CancelledError
        if time.monotonic() > self._deadline:
            raise errors.RequestError(
                errors.Code.DEADLINE_EXCEEDED,
                "The deadline is over, and there is no answer yet.",
            )

    def _ask(self, name: str, columns: Mapping) -> dict[str, list]:
        """Answers, asked in parts that the predictor takes."""
        found = {"translation": [], "score": []}
        for start in range(0, len(columns["text"]), self.most_rows):
            stop = start + self.most_rows
            part = self._ask_part(
                name, {key: one[start:stop] for key, one in columns.items()}
            )
            for key, values in part.items():
                found.setdefault(key, []).extend(values)
        return found

    def _ask_part(self, name: str, columns: Mapping) -> dict[str, list]:
        self.check()
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
            if error.row is not None:
                # The client counts its rows, and not what is made of them.
                error.row = self._row(columns["text"][error.row])
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

    def _row(self, asked: str) -> int:
        """The first row of the request that holds what was asked."""
        holding = (row for row, text in enumerate(self.texts) if asked in text)
        row = self._rows.get(asked)
        return next(holding, 0) if row is None else row


def _encoded(texts) -> np.ndarray:
    found = np.empty(len(texts), object)
    found[:] = [text.encode("utf-8", "replace") for text in texts]
    return found
