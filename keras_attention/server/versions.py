"""One version of a SavedModel in memory: loaded, checked and warmed."""

import dataclasses
import functools
import pathlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from keras_attention.server import signatures
from keras_attention.server.functions import Functions
from keras_attention.serving import cards, kinds, manifest, savedmodel

WARMUP = pathlib.Path("assets.extra/tf_serving_warmup_requests")
# As many as TensorFlow Serving takes.
_MOST_WARMUP_REQUESTS = 1000
# The page asks the second signature, and most clients the first.
_FIRST = (signatures.DEFAULT, "with_attention")
# The signature by which a model of this package counts the tokens of texts.
_COUNTS = "num_tokens"
# It reads a text of any length, part by part.
_UNLIMITED = "score_stream"


@dataclasses.dataclass
class LoadedVersion:
    """A version that can answer.

    Attributes:
        number: the version.
        signatures: name -> `signatures.Signature`.
        definitions: name -> `SignatureDef`, for a client that asks.
        kind: what it is, if it is a model of this package.
        has_manifest: whether its files were compared with a manifest.
        card: what the README beside the versions says, as `cards.read`.
        functions: of the signatures.
        cold: warm-up requests that were not answered yet: signature, inputs.
    """

    number: int
    signatures: Mapping[str, signatures.Signature]
    definitions: Mapping
    kind: kinds.Kind | None
    has_manifest: bool
    card: Mapping
    functions: Functions
    cold: list[tuple[str, Mapping]] = dataclasses.field(default_factory=list)
    # The model is asked once, with the first text that is counted.
    _limit: int | None = None

    def warm(self, names: Collection[str] | None = None) -> None:
        """Answers warm-up requests, so that nobody waits for a first call.

        Args:
            names: the signatures, by default all. All are then loaded, too.
        """
        try:
            for request in [*self.cold]:
                if names is None or request[0] in names:
                    self.cold.remove(request)
                    self._answer(*request)
        finally:
            if names is None:
                self.functions.complete()

    def _answer(self, name: str, inputs: Mapping) -> None:
        """Has a request answered that nobody waits for."""
        signature = self.signatures[name]
        signature(inputs)
        # A request may ask for the counts, too, and a first call is slow.
        if self.has_text_limit(signature):
            self.count_tokens(inputs)

    def may_be_too_long(
        self, signature: signatures.Signature, requests: Sequence[Mapping]
    ) -> bool:
        """Whether the tokens of some requests have to be counted.

        A text in ASCII has at most a token for each byte, one for its begin
        and one for its end. Most texts are so short that this is enough to
        know, and the model alone tokenises them.
        """
        if not (requests and signature.can_merge(requests[0])):
            return False
        if not self.has_text_limit(signature):
            return False
        names = self.signatures[_COUNTS].inputs
        if self._limit is None:
            blank = dict.fromkeys(names, np.array([b""], object))
            self._limit = int(self.count_tokens(blank)["limit"][0])
        return any(
            len(text) + 2 > self._limit or not text.isascii()
            for request in requests
            for name in names
            for text in request[name]
        )

    def has_text_limit(self, signature: signatures.Signature) -> bool:
        """Whether a signature takes texts that can be too long."""
        counts = self.signatures.get(_COUNTS)
        return (
            signature.name != _UNLIMITED
            and counts is not None
            and counts is not signature
            and signature.is_batched
            and counts.is_batched
            and counts.outputs.keys() == {_COUNTS, "limit"}
            and counts.inputs.keys() <= signature.inputs.keys()
        )

    def count_tokens(self, arrays: Mapping[str, np.ndarray]) -> dict:
        """`num_tokens` [B] and `limit` [B] of texts."""
        counts = self.signatures[_COUNTS]
        return counts({name: arrays[name] for name in counts.inputs})


def load(
    path: pathlib.Path, number: int, in_parts: bool = False
) -> LoadedVersion:
    """Loads a version and answers its warm-up requests to `serving_default`.

    `LoadedVersion.warm` answers the others.

    A model of this package has a manifest, which has to hold. Other
    SavedModels have none.

    Args:
        path: the folder with `saved_model.pb`.
        number: the version.
        in_parts: whether to load only what is asked most, if this package made
            the model. `LoadedVersion.warm` loads the rest.

    Raises:
        Exception: Whatever is wrong with its files.
    """
    # The manifest first: to load a SavedModel is to run it.
    has_manifest = bool(manifest.places(path))
    if has_manifest:
        manifest.check(path)
    definitions = _definitions(path)
    kind = _kind(path, definitions)
    declared = {} if kind is None else kind.signatures
    num_beams = 1 if kind is None else kind.num_beams
    savedmodel.register_text_operations()
    first = {*_FIRST, _COUNTS}
    has_more = not definitions.keys() <= first
    is_partial = in_parts and kind is not None and has_more
    functions = Functions(path, num_beams, first if is_partial else None)
    version = LoadedVersion(
        number,
        {
            name: signatures.Signature(
                name,
                definitions[name],
                functools.partial(functions.call, name),
                declared[name].padded if name in declared else {},
                # Those of this package say exactly what they take.
                is_exact=has_manifest,
            )
            for name in definitions
            if is_partial or name in functions.by_name
        },
        definitions,
        kind,
        has_manifest,
        # The README beside another package's model is no card.
        cards.read(path.parent) if kind else {},
        functions,
    )
    if not version.signatures:
        raise ValueError("The SavedModel has no signatures to ask for.")
    version.cold += _warm_up_requests(version, path / WARMUP)
    version.warm([signatures.DEFAULT])
    return version


def _definitions(path) -> dict:
    """The signatures as they stand in the file."""
    # TensorFlow keeps neither them nor their methods with what it loads.
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((path / "saved_model.pb").read_bytes())
    for graph in saved_model.meta_graphs:
        if "serve" in graph.meta_info_def.tags:
            definitions = dict(graph.signature_def)
            # TensorFlow's own: it initialises tables.
            definitions.pop("__saved_model_init_op", None)
            return definitions
    raise ValueError("No graph in the SavedModel has the tag 'serve'.")


def _kind(path, definitions) -> kinds.Kind | None:
    return kinds.of(
        path,
        {
            name: (
                list(definition.inputs),
                {
                    key: spec.shape
                    for key, spec in signatures.specs(
                        definition.outputs
                    ).items()
                },
            )
            for name, definition in definitions.items()
        },
    )


def _warm_up_requests(
    version: LoadedVersion, path: pathlib.Path
) -> list[tuple[str, Mapping]]:
    """Signatures and inputs of the requests that the version brings along.

    Raises:
        Exception: If one is not for this version.
    """
    if not path.is_file():
        return []
    requests = []
    records = tf.data.TFRecordDataset(str(path)).take(_MOST_WARMUP_REQUESTS)
    for record in records.as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        if log.WhichOneof("log_type") != "predict_log":
            continue  # TensorFlow Serving warms up by these, too.
        request = log.predict_log.request
        name = request.model_spec.signature_name or signatures.DEFAULT
        inputs = {
            name: tf.make_ndarray(proto)
            for name, proto in request.inputs.items()
        }
        version.signatures[name].check(inputs)
        requests.append((name, inputs))
    return sorted(requests, key=lambda request: _rank(request[0]))


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)
