"""What each token of a translation owes to each token of its source.

Attention says where a model looks. Three other answers stand beside it here:
attention that is followed through all layers, the gradient along a path, and
what changes when a token is taken away. Each gives a number for each target
token and each source token, [T, S], of a translation that is given.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_attention.tokens import END, UNK

# So many rows are in a batch that needs gradients.
_ROWS = 512


@dataclasses.dataclass(frozen=True, eq=False)
class Attribution:
    """What the tokens of one translation owe to those of its source.

    Attributes:
        source_tokens: the S tokens that the model has read, END included.
        target_tokens: the T tokens that it wrote, END included.
        weights: name of a method -> float32 [T, S]. Those of "attention" and
            of "rollout" are shares. The others are differences of
            log-probabilities, and some are negative.
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    weights: Mapping[str, np.ndarray] = dataclasses.field(repr=False)


def attribute(
    translator: Any, text: str, answer: str | None = None
) -> Attribution:
    """Asks every method that a translator's model has.

    Every translator of the package has "integrated gradients" and "erasure".
    An ensemble has "erasure" alone. Models that look at their source have
    "attention", and those with attention in the encoder, too, have "rollout".

    Args:
        translator: a live `Translator`, such as that of a run.
        text: the source.
        answer: the translation that the model is made to write; by default its
            own.

    Raises:
        ValueError: If the translator is a SavedModel, or if a text is too long
            for it.
    """
    model, graph = translator.model, translator.graph
    if answer is None:
        (answer,) = translator([text])
    (row,) = translator.align([text], [answer])
    pair = [
        [*np.array(tokenizer.tokenize(one)), END]
        for tokenizer, one in (
            (graph.source_tokenizer, text),
            (graph.target_tokenizer, answer),
        )
    ]
    has_embedding = hasattr(model, "source_embedding")
    methods = {
        "attention": (attention, "cross" in model.maps),
        "rollout": (rollout, set(_ROLLED) <= model.maps.keys()),
        "integrated gradients": (integrated_gradients, has_embedding),
        "erasure": (erasure, True),
    }
    return Attribution(
        tuple(row["source_tokens"]),
        tuple(row["target_tokens"]),
        {
            name: method(model, *pair)
            for name, (method, is_there) in methods.items()
            if is_there
        },
    )


def attention(model: Any, source_ids, labels, layer: int = -1) -> np.ndarray:
    """Where the model looks while it writes: the mean of a layer's heads.

    Args:
        model: a built `Seq2Seq` whose `maps` have "cross".
        source_ids: int [S], END included, without padding.
        labels: int [T], the target, END included.
        layer: which one of the decoder; by default the last.

    Returns:
        float32 [T, S].

    Raises:
        ValueError: If the model looks at no source.
    """
    (cross,) = _maps(model, source_ids, labels, ("cross",))
    return cross[layer]


def rollout(model: Any, source_ids, labels) -> np.ndarray:
    """Follows attention from layer to layer down to the tokens.

    By Abnar and Zuidema (2020), section 3, half of what a sublayer gives comes
    past it, by the residual connection: with weights W, the mean of the heads,
    `A = 0.5 W + 0.5 I`. The product of its A rolls out an encoder: E. What a
    decoder has of the source is R, 0 at first. Each of its layers does

    ```
    R = A R                       self-attention
    R = 0.5 R + 0.5 W_cross E     attention to the source
    ```

    Deviation: their paper has encoders alone.

    Args:
        model: a built `Seq2Seq` whose `maps` have "encoder", "decoder" and
            "cross", such as a `Transformer`.
        source_ids, labels: as for `attention`.

    Returns:
        R, float32 [T, S]. A row sums to less than 1: the rest is what comes
        from the target's own tokens.

    Raises:
        ValueError: If the model has not these maps.

    Reference: https://aclanthology.org/2020.acl-main.385
    """
    encoder, decoder, cross = _maps(model, source_ids, labels, _ROLLED)
    of_encoder = np.eye(encoder.shape[-1], dtype="float32")
    for weights in encoder:
        of_encoder = (of_encoder + weights @ of_encoder) / 2
    shares = np.zeros_like(cross[0])
    for looks_back, looks_over in zip(decoder, cross, strict=True):
        shares = (shares + looks_back @ shares) / 2
        shares = (shares + looks_over @ of_encoder) / 2
    return shares


_ROLLED = ("encoder", "decoder", "cross")


def integrated_gradients(
    model: Any, source_ids, labels, num_steps: int = 32, reference: int = UNK
) -> np.ndarray:
    """The gradient on the way from a source that says nothing to this one.

    By equation 1 of Sundararajan et al. (2017), with x the embeddings of the
    source, x' those of a source of unknown tokens, and F the log-probability
    of a target token,

    ```
    (x - x') * mean over a from 0 to 1 of dF(x' + a (x - x')) / dx
    ```

    summed over the features of each token. All source tokens together have
    F(x) - F(x') (their proposition 1), but for the error of the mean, which
    falls with `num_steps`. What a model takes from its source without an
    embedding, as a word that it copies, is not seen.

    Args:
        model: a built `Seq2Seq` on the backend TensorFlow. No other thread may
            use it at the same time.
        source_ids, labels: as for `attention`.
        num_steps: how many places of the way are looked at, each in the middle
            of its part.
        reference: the id of each token of x'.

    Returns:
        float32 [T, S], in differences of log-probabilities.

    Raises:
        ValueError: If the model has no layer `source_embedding`.

    Reference: https://arxiv.org/abs/1703.01365
    """
    source_ids, labels = np.int32(source_ids), np.int32(labels)
    shares = (np.arange(num_steps, dtype="float32") + 0.5) / num_steps
    num_places = max(1, _ROWS // num_steps)
    found = []
    for first in range(0, len(labels), num_places):
        # A row for each of these target tokens, and for each step.
        places = np.arange(len(labels))[first : first + num_places]
        rows = np.tile(source_ids, (len(places) * num_steps, 1))
        of_rows = np.tile(shares, len(places))
        with tf.GradientTape() as tape:
            with _on_the_way(model, of_rows, reference, tape.watch) as read:
                log_probs = _log_probabilities(model, rows, labels)
            columns = np.repeat(places, num_steps)[:, None]
            asked = tf.reduce_sum(tf.gather(log_probs, columns, batch_dims=1))
        ((vectors, way),) = read
        gradients = np.array(tape.gradient(asked, vectors))
        gradients = gradients.reshape(len(places), num_steps, *way.shape)
        found.append((gradients.mean(axis=1) * way).sum(axis=-1))
    # Some models add padding.
    return np.concatenate(found)[:, : len(source_ids)]


@contextlib.contextmanager
def _on_the_way(model, shares, reference, watch) -> Iterator[list]:
    """Row k of a batch has gone `shares[k]` of the way to its embeddings.

    Yields:
        A list, to which each use of the embedding adds what was read in its
        place, [K, S, D], and the whole way, [S, D].
    """
    embedding, read = getattr(model, "source_embedding", None), []
    if embedding is None:
        raise ValueError(
            f"{type(model).__name__} has no layer `source_embedding`, whose "
            "gradient is asked for. Ask for the erasure of its tokens."
        )

    def embed(token_ids):
        ids = np.array(token_ids)[:1]  # All rows are of one source.
        empty = np.where(ids == model.control_ids["pad_id"], ids, reference)
        whole = tf.cast(embedding(ids), "float32")
        start = tf.cast(embedding(empty), "float32")
        vectors = start + shares[:, None, None] * (whole - start)
        watch(vectors)
        read.append((vectors, np.array(whole - start)[0]))
        return tf.cast(vectors, model.compute_dtype)

    model.source_embedding = embed
    try:
        yield read
    finally:
        model.source_embedding = embedding


def erasure(
    model: Any, source_ids, labels, replacement: int | None = None
) -> np.ndarray:
    """What the log-probability of each target token loses without a token.

    This is `drops` with one source token at a time. Li et al. (2016) divide it
    by the log-probability.

    Args:
        model, source_ids, labels, replacement: as for `drops`.

    Returns:
        float32 [T, S]. It is negative where the token stood in the way.

    Reference: https://arxiv.org/abs/1612.08220
    """
    one_each = np.eye(len(source_ids), dtype=bool)
    return drops(model, source_ids, labels, one_each, replacement).T


def drops(
    model: Any, source_ids, labels, erased, replacement: int | None = None
) -> np.ndarray:
    """What each target token loses when some source tokens are taken away.

    Args:
        model: a built `Seq2Seq`.
        source_ids, labels: as for `attention`.
        erased: bool [N, S], which tokens each of N tries takes away.
        replacement: the id that stands in their place. By default it is that
            of padding in a model with attention in its encoder, which looks
            past it. Other models rely on padding to come last, for example
            to know how long the source is: they read the unknown token.
            Other tokens keep their places.

    Returns:
        float32 [N, T]: `log p(y_t | x) - log p(y_t | x without them)`. The
        tokens before y_t are those of the target throughout.
    """
    source_ids, labels = np.int32(source_ids), np.int32(labels)
    if replacement is None:
        masks = "encoder" in model.maps
        replacement = model.control_ids["pad_id"] if masks else UNK
    rows = np.where(erased, replacement, source_ids)
    rows = np.concatenate([source_ids[None], rows]).astype("int32")
    whole, *others = np.array(_log_probabilities(model, rows, labels))
    return whole - np.array(others)


def _log_probabilities(model, source_ids, labels) -> tf.Tensor:
    """log p of each label: sources [N, S], labels [T] -> float32 [N, T]."""
    inputs = _inputs(model, source_ids, labels)
    logits = tf.cast(model(inputs, training=False), tf.float32)
    columns = tf.tile(labels[None], [len(source_ids), 1])
    return tf.gather(tf.nn.log_softmax(logits), columns, batch_dims=2)


def _inputs(model, source_ids, labels) -> dict[str, np.ndarray]:
    """What a model reads: START and the labels but the last, in each row."""
    targets = np.concatenate([[model.control_ids["start_id"]], labels[:-1]])
    targets = np.tile(np.int32(targets), (len(source_ids), 1))
    return {"source_ids": source_ids, "target_ids": targets}


def _maps(model, source_ids, labels, names) -> list[np.ndarray]:
    """The model's maps of these names, [layers, rows, columns] each."""
    missing = [name for name in names if name not in model.maps]
    if missing:
        raise ValueError(
            f"{type(model).__name__} has no attention called "
            f"{', '.join(missing)}. Ask for its integrated gradients, or for "
            "its erasure."
        )
    inputs = _inputs(model, np.int32([source_ids]), np.int32(labels))
    _, maps = model.call_with_maps(inputs, training=False)
    return [np.float32(maps[name])[0].mean(axis=1) for name in names]
