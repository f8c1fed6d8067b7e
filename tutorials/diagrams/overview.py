"""The whole at a glance: attention as a function, and from text to text."""

import os

from diagrams import diagram
from keras_attention.plotting import drawing

Node, Edge = diagram.Node, diagram.Edge


def attention_steps(
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws attention as a function of query, key and value.

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = (
        Node("query", 0.7, 0, "query [T, D]", "text", 1.2),
        Node("key", 2.3, 0, "key [S, D]", "text", 1.2),
        Node("value", 3.9, 0, "value [S, D']", "text", 1.2),
        Node("score", 1.5, 0.85, "score", "attention", 2.2),
        Node("mask", -0.2, 1.75, "mask [T, S]", "text", 1.1),
        Node("softmax", 1.5, 1.75, "softmax", "vector", 1.1),
        Node("sum", 3.9, 1.75, "weighted sum", "vector", 1.3),
        Node("context", 3.9, 2.6, "context [T, D']", "text", 1.4),
    )
    edges = (
        Edge("query", "score"),
        Edge("key", "score"),
        Edge("score", "softmax", "scores [T, S]"),
        Edge("mask", "softmax"),
        Edge("softmax", "sum", "weights [T, S]"),
        Edge("value", "sum"),
        Edge("sum", "context"),
    )
    return diagram.draw(
        nodes, edges, path,
        "Attention in three steps. Query and key make scores. Scores and a "
        "mask go through a softmax and become weights. Weights and values "
        "make a weighted sum, the context.",
    )  # fmt: skip


def translator(
    texts: tuple[str, str] = ("twenty-one", "einundzwanzig"),
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws the way from text to text in a `ka.Translator`.

    Args:
        texts: What goes in, and what comes out.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = (
        Node("frame", 3.65, 0.55, "one SavedModel", "group", 5.1, 2),
        Node("text", 0.35, 0, diagram.word(texts[0]), "text", 1.0),
        Node("tokenize", 1.65, 0, "tokenizer", "vector", 0.85),
        Node("encoder", 2.9, 0, "encoder", "attention", 0.85),
        Node("decoder", 4.4, 0, "decoder", "attention", 0.85),
        Node("search", 4.4, 1.15, "search", "vector", 0.85),
        Node("detokenize", 5.65, 0, "tokenizer", "vector", 0.85),
        Node("translation", 7.0, 0, diagram.word(texts[1]), "text", 1.2),
    )
    edges = (
        Edge("text", "tokenize"),
        Edge("tokenize", "encoder", "ids"),
        Edge("encoder", "decoder", "memory"),
        Edge("decoder", "search", "logits", via=((4.55, 0.6),)),
        Edge("search", "decoder", "token", via=((4.25, 0.6),), label_side=-1),
        Edge("search", "detokenize", "ids", via=((5.65, 1.15),)),
        Edge("detokenize", "translation"),
    )
    return diagram.draw(
        nodes, edges, path,
        "From text to text in one SavedModel: a tokenizer makes ids, an "
        "encoder makes a memory, a decoder gives logits to a search, which "
        "gives a token back to the decoder; in the end the tokenizer makes "
        "text of the ids.",
    )  # fmt: skip
