"""Chapters 11 and 11b: words of two texts, and a state that looks back."""

import os

from diagrams import diagram
from keras_attention.plotting import drawing

Node, Edge = diagram.Node, diagram.Edge


def decomposable(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws the three steps of Parikh et al. (2016, figure 1).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = [
        Node("attend", 2.45, 1.25, "attend: $e_{ij} = F(a_i) \\cdot F(b_j)$",
             "attention", 4.7, 0.4),
        Node("sum a", 1.25, 3.75, "sum", "sum", 0.6, 0.4),
        Node("sum b", 3.65, 3.75, "sum", "sum", 0.6, 0.4),
        Node("H", 2.45, 4.6, "aggregate: $H$", "dense", 1.6, 0.36),
        Node("y", 2.45, 5.2, "label", "text", 0.6, 0.3),
    ]  # fmt: skip
    edges = [Edge("sum a", "H"), Edge("sum b", "H"), Edge("H", "y")]
    for side, first, context in (("a", 0.65, "beta"), ("b", 3.05, "alpha")):
        for place, x in ((1, first), (2, first + 1.2)):
            word, pair = f"{side}_{place}", f"G {side} {place}"
            nodes += [
                Node(word, x, 0.35, f"${word}$", "state", 0.55),
                Node(pair, x, 2.65,
                     f"$G$: ${word}$, $\\{context}_{place}$", "dense", 1.15),
            ]  # fmt: skip
            edges += [
                Edge(word, "attend", via=((x, 0.8),)),
                Edge("attend", pair, f"$\\{context}_{place}$",
                     via=((x, 1.9),)),
                Edge(pair, f"sum {side}"),
            ]  # fmt: skip
    return diagram.draw(
        nodes, edges, path,
        "Words of two texts, a and b, meet in one box: attend. Each gets what "
        "it found in the other text. G compares each word with what it found. "
        "The results of each text are added up, and H makes a label of the "
        "two sums.",
    )  # fmt: skip


def looking_back(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws a step of the LSTMN (Cheng et al. 2016, figure 1).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = [
        Node("look", 1.55, 2.0, "look back: $s_i$", "attention", 2.7, 0.36),
        Node("query", 4.1, 2.0, "$x_t,\\;\\tilde{h}_{t-1}$", "text", 1.0, 0.3),
        Node("found", 1.55, 2.85, "$\\tilde{h}_t,\\;\\tilde{c}_t$", "vector",
             1.1),
        Node("lstm", 3.0, 2.85, "LSTM", "state", 0.8),
        Node("x", 4.1, 2.85, "$x_t$", "text", 0.4, 0.3),
        Node("new", 3.0, 3.65, "$h_t,\\;c_t$", "state", 1.0),
    ]  # fmt: skip
    edges = [
        Edge("query", "look", "asks"),
        Edge("look", "found"),
        Edge("found", "lstm"),
        Edge("x", "lstm"),
        Edge("lstm", "new"),
    ]
    for i, x in ((1, 0.55), (2, 1.55), (3, 2.55)):
        nodes += [
            Node(f"x_{i}", x, 0, f"$x_{i}$", "text", 0.4, 0.3),
            Node(f"h_{i}", x, 0.85, f"$h_{i},\\;c_{i}$", "state", 0.85),
        ]
        edges += [Edge(f"x_{i}", f"h_{i}"), Edge(f"h_{i}", "look")]
    return diagram.draw(
        nodes, edges, path,
        "Three earlier states are kept. The new word and what was found last "
        "ask them all. Their weighted sum takes the place of the last state in "
        "an ordinary step of an LSTM, which makes the new state.",
    )  # fmt: skip
