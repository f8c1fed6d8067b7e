"""How the Transformer is built: one layer, and the whole."""

import os

from diagrams import diagram
from keras_attention.plotting import drawing

Node, Edge = diagram.Node, diagram.Edge
BOX = 1.5  # The width of a sublayer.
RISE = 0.58  # From one box to the next.


def transformer_layer(
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws a layer of the encoder, post-norm and pre-norm side by side.

    Post-norm is the paper's (Vaswani et al. 2017, 3.1); pre-norm leaves the
    residual path free from end to end (Xiong et al. 2020).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    post = [*_sublayer("attention"), "norm 1", *_sublayer("network"), "norm 2"]
    pre = ["norm 1", *_sublayer("attention"), "norm 2", *_sublayer("network")]
    nodes, edges = [], []
    for name, order, x in (("post-norm", post, 0), ("pre-norm", pre, 3.3)):
        more_nodes, more_edges = _column(name, order, x)
        nodes += more_nodes
        edges += more_edges
    return diagram.draw(nodes, edges, path)


def _sublayer(name):
    """A sublayer, the dropout of its output, and the residual path's end."""
    return [name, f"dropout of {name}", f"sum of {name}"]


LOOKS = {
    "attention": ("self-attention", "attention"),
    "network": ("feed-forward", "dense"),
    "dropout": ("dropout", "vector"),
    "norm": ("LayerNorm", "norm"),
    "sum": ("+", "sum"),
}


def _column(name, order, x):
    """The nodes and edges of one layer, from below to above."""
    bottom, top = f"{name} input", f"{name} output"
    nodes = [
        Node(name, x, -0.4, name, "text", BOX),
        Node(bottom, x, 0, "$x$", "text", 0.4, 0.3),
    ]
    edges, before, entry = [], bottom, (bottom, 0.0)
    for height, part in enumerate(order, start=1):
        label, kind = LOOKS[part.split()[0]]
        y = RISE * height
        width, tall = (0.3, 0.3) if kind == "sum" else (BOX, 0.36)
        nodes.append(Node(f"{name} {part}", x, y, label, kind, width, tall))
        edges.append(Edge(before, f"{name} {part}"))
        if kind == "sum":
            # Past the sublayer, from where its input came.
            source, start = entry
            side, turn = x - BOX / 2 - 0.3, start + RISE / 2
            way = ((x, turn), (side, turn), (side, y))
            edges.append(Edge(source, f"{name} {part}", via=way))
        before = f"{name} {part}"
        # Post-norm branches off behind a norm, pre-norm before one.
        if kind == ("norm" if name == "post-norm" else "sum"):
            entry = before, y
    nodes.append(Node(top, x, RISE * (len(order) + 1), "output", "text"))
    edges.append(Edge(before, top))
    return nodes, edges


def transformer(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws the whole Transformer with its three kinds of attention.

    Around each coloured box goes a residual path with a normalisation
    (`transformer_layer`), which is left out.

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    left, right, width = 1.2, 5.0, 1.9
    nodes = (
        Node("encoder", left, 2.45, "encoder × N", "group", 2.5, 2.1),
        Node("decoder", right, 2.85, "decoder × N", "group", 2.5, 2.9),
        Node("source", left, 0, "source ids [B, S]", "text", width),
        Node("read", left, 0.75, "embedding + position", "dense", width),
        Node("self", left, 1.95, "self-attention", "attention", width),
        Node("think", left, 2.75, "feed-forward", "dense", width),
        Node("memory", left, 3.95, "memory [B, S, D]", "vector", width),
        Node("target", right, 0, "target ids [B, T]", "text", width),
        Node("written", right, 0.75, "embedding + position", "dense", width),
        Node("causal", right, 1.95, "causal self-attention", "attention",
             width),
        Node("cross", right, 2.75, "cross-attention", "attention", width),
        Node("say", right, 3.55, "feed-forward", "dense", width),
        Node("logits", right, 4.85, "logits [B, T, V]", "text", width),
    )  # fmt: skip
    edges = (
        Edge("source", "read"),
        Edge("read", "self"),
        Edge("self", "think"),
        Edge("think", "memory"),
        Edge("memory", "cross", "key, value", label_side=-1,
             via=((3.4, 3.95), (3.4, 2.75))),
        Edge("target", "written"),
        Edge("written", "causal"),
        Edge("causal", "cross", "query"),
        Edge("cross", "say"),
        Edge("say", "logits"),
    )  # fmt: skip
    return diagram.draw(nodes, edges, path)
