"""What chapter 16 builds: models whose cursor stands at one place.

The hand is that of `networks`: what is read stands below, what is written
above. Orange is what decides where the cursor is.
"""

import os

from diagrams import diagram
from keras_attention.plotting import drawing

Node, Edge = diagram.Node, diagram.Edge


def hidden_markov(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws hidden places that jump and write (Vogel et al. 1996).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes, edges = [], []
    for i in (1, 2, 3):
        x = 1.7 * i
        nodes += [
            Node(f"x_{i}", x, 0, f"letter $x_{{a_{i}}}$", "text", 0.9),
            Node(f"a_{i}", x, 0.95, f"$a_{i}$", "attention", 0.6),
            Node(f"y_{i}", x, 2, f"sound $y_{i}$", "text", 0.9),
        ]
        edges += [
            Edge(f"x_{i}", f"a_{i}"),
            Edge(f"a_{i}", f"y_{i}", "$t$"),
        ]
        if i > 1:
            edges.append(Edge(f"a_{i - 1}", f"a_{i}", "jump, $c$"))
    return diagram.draw(
        nodes, edges, path,
        "Three hidden places in a row, with jumps between them. Each place "
        "reads a letter and writes a sound.",
    )  # fmt: skip


def transducer(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws the three networks of an RNN transducer (Graves 2012).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = (
        Node("letters", 1, 0, "all letters $x_1 \\ldots x_S$", "text", 2.2),
        Node("sounds", 4, 0, "sounds so far $y_1 \\ldots y_i$", "text", 2.4),
        Node("f", 1, 0.9, "LSTMs, both ways", width=1.8),
        Node("g", 4, 0.9, "LSTM", width=0.9),
        Node("+", 2.5, 1.75, "+", "sum", 0.3, 0.3),
        Node("tanh", 2.5, 2.45, "tanh", "vector", 0.8),
        Node("W", 2.5, 3.2, "$W$, softmax", "dense", 1.4),
        Node("blank", 1.2, 4.1, "blank: move on", "text", 1.4),
        Node("token", 3.8, 4.1, "a sound: write it", "text", 1.6),
    )
    edges = (
        Edge("letters", "f"),
        Edge("sounds", "g"),
        Edge("f", "+", "$f_j$", via=((1, 1.75),)),
        Edge("g", "+", "$g_i$", via=((4, 1.75),)),
        Edge("+", "tanh"),
        Edge("tanh", "W", "for each $j$ and $i$"),
        Edge("W", "blank", "$\\varnothing(j, i)$", via=((1.2, 3.2),)),
        Edge("W", "token", "$y(j, i)$", via=((3.8, 3.2),)),
    )
    return diagram.draw(
        nodes, edges, path,
        "An RNN transducer. One network reads all letters, another reads "
        "the sounds so far. Their outputs are added for each letter and "
        "each number of sounds. A tanh and a softmax decide between blank, "
        "which moves on, and a sound, which is written.",
    )  # fmt: skip


def window(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws one step of a decoder with a window (Graves 2013).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = (
        Node("h", 4.2, 0, "all letters: $h_1 \\ldots h_S$", "text", 2.2),
        Node("before", 0.5, 1, "$\\kappa_{i-1}$", "vector", 0.8),
        Node("kappa", 2.1, 1, "places $\\kappa_i$", "attention", 1.1),
        Node("phi", 4.2, 1, "bells at $\\kappa_i$", "attention", 1.5),
        Node("w", 4.2, 2.1, "window $w_i$", "vector", 1.2),
        Node("s_before", 0.5, 2.0, "$s_{i-1}$", width=0.8),
        Node("s", 4.2, 2.9, "$s_i$", width=0.8),
    )
    edges = (
        Edge("before", "kappa"),
        Edge("s_before", "kappa", "step $> 0$", via=((2.1, 2.0),)),
        Edge("kappa", "phi"),
        Edge("h", "phi"),
        Edge("phi", "w", "weights"),
        Edge("w", "s"),
        Edge("s_before", "s", via=((0.5, 2.9),)),
    )
    return diagram.draw(
        nodes, edges, path,
        "One step of a decoder with a window. The last state says how far "
        "the places glide on. Bells stand at these places over the letters, "
        "and give weights. The weighted sum of the letters is the window, "
        "from which the next state is made.",
    )  # fmt: skip


def hard_look(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws a look that is drawn by chance, and its reward (Xu et al. 2015).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = (
        Node("query", 0.4, 0.8, "$s_{i-1}$", width=0.7),
        Node("h", 2, 0, "all letters: $h_1 \\ldots h_S$", "text", 2.2),
        Node("a", 2, 0.8, "softmax $a_i$", "attention", 1.2),
        Node("draw", 4.3, 0.8, "draw one $d$", "attention", 1.2),
        Node("c", 6.2, 0.8, "$c_i = h_d$", "vector", 0.9),
        Node("reward", 6.2, 1.9, "$R = \\log p(y)$", "text", 1.2),
    )
    edges = (
        Edge("query", "a"),
        Edge("h", "a"),
        Edge("a", "draw", "chances"),
        Edge("draw", "c", "no slope", label_side=-1),
        Edge("c", "reward"),
        Edge("reward", "a", "gradient: $R - b$", via=((2, 1.9),), dashed=True),
    )
    return diagram.draw(
        nodes, edges, path,
        "A hard look. The state and the letters give chances. One place is "
        "drawn by chance, and no slope leads back through the draw. The "
        "reward of what was written leads back to the chances.",
    )  # fmt: skip


def stop_or_go_on(path: str | os.PathLike | None = None) -> drawing.Figure:
    """Draws a cursor that stops or goes on at each key (Raffel et al. 2017).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes = [Node("before", 0, 1.0, "from\n$a_{i-1}$", "text", 0.6)]
    edges = []
    for j in (1, 2, 3, 4):
        x = 1.35 * j
        nodes += [
            Node(f"h_{j}", x, 0, f"$h_{j}$", width=0.6),
            Node(f"p_{j}", x, 1.0, f"$p_{{i{j}}}$?", "attention", 0.6),
            Node(f"a_{j}", x, 2, f"$a_{{i{j}}}$", "vector", 0.6),
        ]
        edges += [
            Edge(f"h_{j}", f"p_{j}"),
            Edge(f"p_{j}", f"a_{j}", "stop"),
            Edge(f"p_{j - 1}" if j > 1 else "before", f"p_{j}",
                 "go on" if j > 1 else ""),
        ]  # fmt: skip
    return diagram.draw(
        nodes, edges, path,
        "A cursor comes to one letter after the other. At each it stops or "
        "goes on to the next.",
    )  # fmt: skip


def chain_of_choices(
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws choices that have a say in their neighbours' (Kim et al. 2017).

    Args:
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes, edges = [], []
    for j in (1, 2, 3, 4):
        x = 1.5 * j
        nodes += [
            Node(f"h_{j}", x, 0, f"$h_{j}$", width=0.6),
            Node(f"z_{j}", x, 1.1, f"$z_{j}$", "attention", 0.6),
            Node(f"p_{j}", x, 2.1, f"$p(z_{j} = 1)$", "text", 1.0),
        ]
        edges += [
            Edge(f"h_{j}", f"z_{j}", f"$\\theta_{j}$"),
            Edge(f"z_{j}", f"p_{j}"),
        ]
        if j > 1:
            edges += [
                Edge(f"z_{j - 1}", f"z_{j}", "$\\theta'$",
                     via=((x - 0.75, 1.2),)),
                Edge(f"z_{j}", f"z_{j - 1}", via=((x - 0.75, 1.0),)),
            ]  # fmt: skip
    return diagram.draw(
        nodes, edges, path,
        "Four choices in a chain. Each hears the score of its own letter "
        "and both neighbours, and has a probability of being chosen.",
    )  # fmt: skip
