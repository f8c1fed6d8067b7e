"""How the Transformer is built: a layer, the heads, the stream, the whole."""

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
    for name, order, x in (("post-norm", post, 0), ("pre-norm", pre, 2.5)):
        more_nodes, more_edges = _column(name, order, x)
        nodes += more_nodes
        edges += more_edges
    return diagram.draw(
        nodes, edges, path,
        "Two columns of boxes, read from below. Post-norm: self-attention, "
        "dropout, sum with the input, LayerNorm; then feed-forward, dropout, "
        "sum, LayerNorm. Pre-norm: the LayerNorms stand before self-attention "
        "and before feed-forward, and the path past both is free.",
    )  # fmt: skip


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


def _tower(name, x, side, parts):
    """One side of the whole model: embedding, positions, then sublayers.

    `parts` are (name, label, kind, height of the box) of the sublayers; an
    "add & norm" stands above each, with the residual path at `side`.
    """
    width = 1.75
    nodes = [
        Node(f"{name} ids", x, 0, f"{name} ids", "text", width),
        Node(f"{name} words", x, 0.6, r"embedding $\cdot \sqrt{D}$", "dense",
             width),
        Node(f"{name} +", x, 1.2, "+", "sum", 0.3, 0.3),
        Node(f"{name} places", x - 0.67, 1.2, "positions", "text", 0.7, 0.25),
    ]  # fmt: skip
    edges = [
        Edge(f"{name} ids", f"{name} words"),
        Edge(f"{name} words", f"{name} +"),
        Edge(f"{name} places", f"{name} +"),
    ]
    below, bottom, y = f"{name} +", 1.35, 2.4
    for part, label, kind, tall in parts:
        norm = f"{part} norm"
        above = y + tall / 2 + 0.42
        nodes += [
            Node(part, x, y, label, kind, width, tall),
            Node(norm, x, above, "add & norm", "norm", width, 0.34),
        ]
        turn = bottom + 0.25
        asks = "Q" if part == "cross" else "Q, K, V" * (kind == "attention")
        edges += [
            Edge(below, part, asks, label_side=1 if side < x else -1),
            Edge(part, norm),
            Edge(below, norm, via=((x, turn), (side, turn), (side, above))),
        ]
        below, bottom = norm, above + 0.17
        y = bottom + 0.48 + 0.24
    title = f"{'encoder' if name == 'source' else 'decoder'} × N"
    frame = Node(f"{name} frame", x + (side - x) * 0.06, bottom / 2 + 0.93,
                 title, "group", 2.32, bottom - 1.14)  # fmt: skip
    return [frame, *nodes], edges, below, bottom


def transformer(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws the whole Transformer (Vaswani et al. 2017, figure 1).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    left, right = 1.12, 3.95
    padding = "self-attention\n(padding mask)"
    causal = "self-attention\n(causal mask)"
    cross = "cross-attention\n(padding mask)"
    network = ("feed-forward", "dense", 0.36)
    nodes, edges, top, height = _tower(
        "source", left, 0.02,
        [("self", padding, "attention", 0.5), ("think", *network)],
    )  # fmt: skip
    of_target = _tower(
        "target", right, 5.05,
        [("causal", causal, "attention", 0.5),
         ("cross", cross, "attention", 0.5), ("say", *network)],
    )  # fmt: skip
    nodes += of_target[0]
    edges += of_target[1]
    memory, end = height + 0.72, of_target[3]
    turn = 2.5
    cross_y = next(n.y for n in nodes if n.name == "cross")
    nodes += [
        Node("memory", left, memory, "memory [B, S, D]", "vector", 1.75, 0.36),
        Node("linear", right, end + 0.72, "linear: $E^\\top$", "dense", 1.75,
             0.36),
        Node("softmax", right, end + 1.28, "softmax", "vector", 1.75, 0.36),
        Node("p", right, end + 1.82, "$p$(next token)", "text", 1.75, 0.3),
    ]  # fmt: skip
    edges += [
        Edge(top, "memory"),
        Edge("memory", "cross", "K, V",
             via=((turn, memory), (turn, cross_y))),
        Edge(of_target[2], "linear"),
        Edge("linear", "softmax"),
        Edge("softmax", "p"),
    ]  # fmt: skip
    return diagram.draw(
        nodes, edges, path,
        "The whole Transformer, read from below. Left, the encoder: ids, "
        "embedding times the root of D, plus positions; then N layers of "
        "self-attention with a padding mask, add and norm, feed-forward, add "
        "and norm. Its output is the memory. Right, the decoder: the same "
        "beginning; then N layers of causal self-attention, cross-attention "
        "that takes keys and values from the memory, and feed-forward, with "
        "add and norm after each. A linear layer and a softmax give the "
        "probabilities of the next token.",
    )  # fmt: skip


def heads(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws multi-head attention (Vaswani et al. 2017, figure 2).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = [
        Node("x", 2.4, 0, "$x$ [T, D]", "text", 1.2),
        Node("joined", 2.4, 2.85, "side by side [T, $h\\,d_k$]", "vector", 4.6),
        Node("W_O", 2.4, 3.5, "$W_O$", "dense", 1.3, 0.36),
        Node("context", 2.4, 4.1, "context [T, D]", "text", 1.4),
    ]
    edges = [Edge("joined", "W_O"), Edge("W_O", "context")]
    for head, x in ((1, 0.8), (2, 2.4), (3, 4.0)):
        nodes += [
            Node(f"W {head}", x, 0.95,
                 f"$W_Q^{head}\\;\\;W_K^{head}\\;\\;W_V^{head}$", "dense", 1.4),
            Node(f"head {head}", x, 1.9, f"head {head}: dots,\nsoftmax, sum",
                 "attention", 1.4, 0.5),
        ]  # fmt: skip
        way = () if x == 2.4 else ((2.4, 0.42), (x, 0.42))
        edges += [
            Edge("x", f"W {head}", via=way),
            Edge(f"W {head}", f"head {head}", "Q, K, V"),
            Edge(f"head {head}", "joined", "[T, $d_k$]", via=((x, 2.5),)),
        ]
    return diagram.draw(
        nodes, edges, path,
        "Three heads side by side. Each has its own three matrices, which make "
        "queries, keys and values of the same x. Each does its own dots, "
        "softmax and weighted sum. Their results are put side by side, and one "
        "matrix brings them back to the width of x.",
    )  # fmt: skip


def stream(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws the residual stream of one word, and what reads and writes it.

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = [
        Node("one", 0.5, 0, "twenty", "text", 0.8),
        Node("two", 1.35, 0, "-", "text", 0.4),
        Node("three", 3.2, 0, "one", "text", 0.6),
        Node("from one", 0.5, 1.55, "", "text", 0.01, 0.01),
        Node("from two", 1.35, 1.3, "", "text", 0.01, 0.01),
        Node("ask", 3.2, 0.65, "", "text", 0.01, 0.01),
        Node("attention", 2.08, 1.42, "attention", "attention", 0.9, 0.6),
        Node("+ 1", 3.2, 1.42, "+", "sum", 0.3, 0.3),
        Node("read", 3.2, 2.15, "", "text", 0.01, 0.01),
        Node("network", 4.25, 2.6, "feed-\nforward", "dense", 0.8, 0.5),
        Node("+ 2", 3.2, 3.1, "+", "sum", 0.3, 0.3),
        Node("top one", 0.5, 3.8, "...", "text", 0.4, 0.3),
        Node("top two", 1.35, 3.8, "...", "text", 0.4, 0.3),
        Node("top three", 3.2, 3.8, "next layer", "text", 1.0, 0.3),
    ]
    wide = {"width": 3.0}
    edges = [
        Edge("one", "top one", **wide),
        Edge("two", "top two", **wide),
        Edge("three", "+ 1", **wide),
        Edge("+ 1", "+ 2", **wide),
        Edge("+ 2", "top three", **wide),
        Edge("from one", "attention", "reads"),
        Edge("from two", "attention"),
        Edge("ask", "attention", "asks", via=((2.08, 0.65),)),
        Edge("attention", "+ 1", "writes"),
        Edge("read", "network", "reads", via=((4.25, 2.15),)),
        Edge("network", "+ 2", "writes", via=((4.25, 3.1),)),
    ]
    return diagram.draw(
        nodes, edges, path,
        "Three thick vertical lines, one for each word. Attention stands "
        "between the lines: it reads from all of them, and writes into the "
        "line of the word that asks. The feed-forward network stands beside "
        "one line: it reads from this line and writes into it.",
    )  # fmt: skip
