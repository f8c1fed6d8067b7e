"""What chapters 12 and 14 build of convolutions, gates and letters.

What is read stands below, what is written above. Green has weights, orange is
attention, and a circle joins what comes to it.
"""

import os

from diagrams import diagram
from keras_attention.plotting import drawing

Node, Edge = diagram.Node, diagram.Edge
ROOT = r"$+\;\times\sqrt{\frac{1}{2}}$"


def conv_layer(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws a layer of ConvS2S's decoder (Gehring et al. 2017, 3.2 and 3.3).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    x, right, side = 1.45, 3.8, 0.15
    nodes = (
        Node("inputs", x, 0, "$x_{i-2}\\;\\;x_{i-1}\\;\\;x_i$", "text", 1.5),
        Node("window", x, 0.75, "window of 3", "dense", 1.5, 0.36),
        Node("A", x - 0.45, 1.45, "$A$", "vector", 0.5, 0.34),
        Node("B", x + 0.45, 1.45, "$B$", "vector", 0.5, 0.34),
        Node("gate", x, 2.15, "$h_i = A \\otimes \\sigma(B)$", "vector", 1.5,
             0.36),
        Node("W_d", x, 2.85, "$W_d\\, h_i + b_d$", "dense", 1.5, 0.36),
        Node("d", x, 3.55, ROOT, "vector", 0.9, 0.42),
        Node("g", x + 1.3, 3.55, "$g_i$", "text", 0.4, 0.3),
        Node("look", right, 4.35, "softmax($d_i \\cdot z_j$)", "attention",
             1.5, 0.36),
        Node("keys", right, 3.55, "keys $z_j$", "text", 1.0, 0.3),
        Node("values", right, 5.95, "$\\sqrt{m}\\,(z_j + e_j)$", "text", 1.3,
             0.3),
        Node("c", right, 5.15, "sum: $c_i$", "attention", 1.5, 0.36),
        Node("W_c", x, 5.15, "$W_c\\, c_i + b_c$", "dense", 1.5, 0.36),
        Node("first", x, 5.9, ROOT, "vector", 0.9, 0.42),
        Node("second", x, 6.65, ROOT, "vector", 0.9, 0.42),
        Node("output", x, 7.3, "output $i$", "text", 0.9, 0.3),
    )  # fmt: skip
    edges = (
        Edge("inputs", "window"),
        Edge("window", "A"),
        Edge("window", "B"),
        Edge("A", "gate"),
        Edge("B", "gate"),
        Edge("gate", "W_d"),
        Edge("W_d", "d"),
        Edge("g", "d"),
        Edge("d", "look", "$d_i$", via=((x, 4.35),)),
        Edge("keys", "look"),
        Edge("look", "c", "$a_{ij}$"),
        Edge("values", "c"),
        Edge("c", "W_c"),
        Edge("W_c", "first"),
        Edge("gate", "first", via=((0.5, 2.15), (0.5, 5.9))),
        Edge("first", "second"),
        Edge("inputs", "second", via=((side, 0), (side, 6.65))),
        Edge("second", "output"),
    )
    return diagram.draw(
        nodes, edges, path,
        "One layer of ConvS2S's decoder, read from below. A window of three "
        "inputs gives A and B, and the gate makes h of them. A dense layer of "
        "h plus the embedding g, times the root of one half, is the query d. "
        "It looks at the keys z. The weighted sum of the values is c. A dense "
        "layer of c, plus h, times the root of one half; plus the layer's "
        "input, times the root of one half again, is the output.",
    )  # fmt: skip


def bytenet_block(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws a block of ByteNet (Kalchbrenner et al. 2016, figure 3).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    x = 1.4
    parts = (
        ("LayerNorm, ReLU", "norm", "2d"),
        ("$W_1$", "dense", "2d"),
        ("LayerNorm, ReLU ", "norm", "d"),
        ("window of $k$, dilation $r$", "dense", "d"),
        ("LayerNorm, ReLU  ", "norm", "d"),
        ("$W_3$", "dense", "d"),
    )
    nodes = [Node("x", x, 0, "$x$", "text", 0.4, 0.3)]
    edges, before = [], "x"
    for place, (label, kind, width) in enumerate(parts, start=1):
        nodes.append(
            Node(label, x, 0.7 * place, label.strip(), kind, 2.1, 0.36)
        )
        edges.append(Edge(before, label, f"{width} wide"))
        before = label
    top = 0.7 * (len(parts) + 1)
    nodes += [
        Node("+", x, top, "+", "sum", 0.3, 0.3),
        Node("output", x, top + 0.6, "output", "text", 0.7, 0.3),
    ]
    edges += [
        Edge(before, "+", "2d wide"),
        Edge("x", "+", via=((0.1, 0), (0.1, top))),
        Edge("+", "output"),
    ]
    return diagram.draw(
        nodes, edges, path,
        "A block of ByteNet, read from below: LayerNorm and ReLU, a dense "
        "layer to half the width, LayerNorm and ReLU, the dilated window, "
        "LayerNorm and ReLU, a dense layer back to the full width. The "
        "block's input is added to its output.",
    )  # fmt: skip


def convolutional_gru(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws a step of the Neural GPU (Kaiser and Sutskever 2016, equation 1).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes, edges = [], []
    for row, y in enumerate((0.0, 1.5, 3.0)):
        for t in range(1, 6):
            label = f"$s_{{{row}}}[{t}]$"
            nodes.append(Node(f"{row} {t}", 0.9 * t, y, label, width=0.74))
            if not row:
                continue
            for source in {t - 1, t, t + 1} & set(range(1, 6)):
                is_shown = t == 3 or (row == 1 and t in (2, 4))
                if is_shown and (row == 2 or t == 3 or source != 3):
                    edges.append(Edge(f"{row - 1} {source}", f"{row} {t}"))
    return diagram.draw(
        nodes, edges, path,
        "Three rows of five columns. A column of the next row is made of its "
        "own column and of its two neighbours. After two steps, the column in "
        "the middle has heard of all five.",
    )  # fmt: skip


def highway(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws a highway layer (Srivastava et al. 2015; Kim et al. 2016).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    x = 2.1
    nodes = (
        Node("y", x, 0, "$y$", "text", 0.4, 0.3),
        Node("H", x - 1.3, 0.95, "ReLU($y\\, W_H + b_H$)", "dense", 1.75, 0.36),
        Node("T", x + 1.3, 0.95, "$\\sigma(y\\, W_T + b_T)$", "dense", 1.75,
             0.36),
        Node("mix", x, 1.85, "$z = t \\cdot$ new $+\\;(1 - t) \\cdot y$",
             "vector", 4.35, 0.36),
        Node("z", x, 2.45, "$z$", "text", 0.4, 0.3),
    )  # fmt: skip
    edges = (
        Edge("y", "H", via=((x, 0.45), (x - 1.3, 0.45))),
        Edge("y", "T", via=((x, 0.45), (x + 1.3, 0.45))),
        Edge("y", "mix", "$y$"),
        Edge("H", "mix", "new", via=((x - 1.3, 1.6),)),
        Edge("T", "mix", "$t$", via=((x + 1.3, 1.6),)),
        Edge("mix", "z"),
    )
    return diagram.draw(
        nodes, edges, path,
        "A highway layer. Its input y goes three ways: through a dense layer "
        "with a ReLU, straight on, and into a gate t. The sum of t times the "
        "first way and one minus t times the second is the output z.",
    )  # fmt: skip
