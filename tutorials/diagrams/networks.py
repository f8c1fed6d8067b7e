"""How the models of attention are built: a diagram of each.

One hand for all: what is read stands below, what is written above, and time
runs to the right. Blue is a recurrent state, orange attention, green dense
layers, pink a normalisation. Each function makes nodes and edges and draws
them; the figure keeps them as its `diagram`.
"""

import os
from collections.abc import Sequence

from diagrams import diagram
from keras_attention.plotting import drawing

Node, Edge = diagram.Node, diagram.Edge
STATE = 0.54  # The width of a state, in inches.


def _step(*words, least=0.8):
    """Inches from one time step to the next: room for the longest word."""
    return max(least, *(0.1 * len(word) + 0.08 for word in words))


def unrolled_rnn(
    words: Sequence[str] = ("cats", "really", "really", "sleep"),
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws a recurrent network, folded and unrolled over its words.

    Args:
        words: What it reads, one at each step.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    step = _step(*words)
    nodes = [
        Node("x", 0.5, 0, "$x_t$", "text", 0.5),
        Node("h", 0.5, 1, "$h_t$", width=0.7),
        Node("y", 0.5, 1.9, "prediction", "text"),
        Node("=", 1.75, 1, "stands for", "text"),
        Node("h_0", 2.75, 1, "$h_0 = 0$", "vector", 0.7),
    ]
    edges = [
        Edge("x", "h", "W", label_side=-1),
        Edge("h", "y"),
        Edge("h", "h", "U", via=((1.1, 1), (1.1, 0.55), (0.7, 0.55))),
    ]
    for t, word in enumerate(words, start=1):
        x = 3.0 + step * t
        nodes += [
            Node(f"x_{t}", x, 0, diagram.word(word), "text", step),
            Node(f"h_{t}", x, 1, f"$h_{{{t}}}$", width=STATE),
            Node(f"y_{t}", x, 1.9, f"$p(x_{{{t + 1}}})$", "text", step),
        ]
        edges += [
            Edge(f"h_{t - 1}", f"h_{t}", "U"),
            Edge(f"x_{t}", f"h_{t}", "W"),
            Edge(f"h_{t}", f"y_{t}"),
        ]
    return diagram.draw(
        nodes, edges, path,
        "A recurrent network, folded and unrolled. Folded: an input goes "
        "into a state, the state goes into itself and into a prediction. "
        "Unrolled: a row of states from left to right, one for each word. "
        "Each gets its word and the state before it, and predicts the next "
        "word.",
    )  # fmt: skip


def encoder_decoder(
    source: Sequence[str] = ("twenty", "-", "one", "END"),
    target: Sequence[str] = ("ein", "und", "zwanzig", "END"),
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws two recurrent networks that have one vector between them.

    Solid: Sutskever et al. (2014), where the vector is the decoder's first
    state. Dashed: Cho et al. (2014), where it enters each step as well.

    Args:
        source: What the encoder reads.
        target: What the decoder writes, one token at each step. It reads
            START and then what it has written.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    step = _step("START", *source, *target)
    middle = step * (len(source) + 1) + 0.1
    nodes = [
        *_frame("encoder", step, step * len(source), step),
        *_frame("decoder", middle + step, middle + step * len(target), step),
        Node("c", middle, 1, "one\nvector", "vector", 0.62, 0.5),
    ]
    edges = [Edge(f"h_{len(source)}", "c")]
    for j, word in enumerate(source, start=1):
        nodes += [
            Node(f"x_{j}", step * j, 0, diagram.word(word), "text", step),
            Node(f"h_{j}", step * j, 1, f"$h_{{{j}}}$", width=STATE),
        ]
        edges.append(Edge(f"x_{j}", f"h_{j}"))
        if j > 1:
            edges.append(Edge(f"h_{j - 1}", f"h_{j}"))
    for t, word in enumerate(target, start=1):
        x, read = middle + step * t, ("START", *target)[t - 1]
        nodes += [
            Node(f"read_{t}", x, 0, diagram.word(read), "text", step),
            Node(f"s_{t}", x, 1, f"$s_{{{t}}}$", width=STATE),
            Node(f"y_{t}", x, 2.1, diagram.word(word), "text", step),
        ]
        shown_again = ((middle, 1.4), (x - 0.15, 1.4))
        edges += [
            Edge("c" if t == 1 else f"s_{t - 1}", f"s_{t}"),
            Edge(f"read_{t}", f"s_{t}"),
            Edge(f"s_{t}", f"y_{t}"),
            Edge("c", f"s_{t}", via=shown_again, dashed=True),
        ]
    return diagram.draw(
        nodes, edges, path,
        "Two rows of states. The encoder reads the source, one token at "
        "each state, and ends in one vector. The decoder starts from this "
        "vector and writes, and reads at each step what it wrote before. "
        "Dashed arrows lead from the vector to each step.",
    )  # fmt: skip


def _frame(name, first, last, step):
    """Around states that stand from `first` to `last`, and its name."""
    width = last - first + STATE + 0.2
    return (
        Node(f"{name} frame", (first + last) / 2, 1.2, "", "group", width, 1.1),
        Node(name, first + step / 2, 1.61, name, "text", step, 0.2),
    )


def soft_search(
    source: Sequence[str] = ("twenty", "-", "one", "END"),
    attention_weights: Sequence[float] = (0.15, 0.1, 0.7, 0.05),
    words: tuple[str, str] = ("START", "ein"),
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws one step of RNNsearch (Bahdanau et al. 2014, figure 1).

    Args:
        source: What the bidirectional encoder reads.
        attention_weights: A weight for each token of the source: the thicker
            its arrow.
        words: What the decoder reads at this step, and what it writes.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.

    Raises:
        ValueError: If there is not one weight for each token.
    """
    if len(source) != len(attention_weights):
        raise ValueError(
            f"Expected a weight for each of {len(source)} tokens. Received: "
            f"{list(attention_weights)}"
        )
    step = _step(*source, least=1.0)
    right = step * len(source) + 1.35
    centre = step * (len(source) + 1) / 2
    nodes = [
        Node("score", centre, 1.87, "", "group", step * len(source), 0.65),
        Node("rule", 0.95, 2.38, "score, softmax", "text", 1.1, 0.2),
        Node("sum", centre, 2.95, "+", "sum", 0.3, 0.3),
        Node("c", centre, 3.6, "context $c_i$", "vector", 1.1),
        Node("s_before", right, 1.87, "$s_{i-1}$", width=0.7),
        Node("s", right, 3.6, "$s_i$", width=0.7),
        Node("read", right + 0.95, 3.6, diagram.word(words[0]), "text", 0.7),
        Node("written", right, 4.4, diagram.word(words[1]), "text", 0.7),
    ]  # fmt: skip
    edges = [
        Edge("s_before", "score", "query"),
        Edge("s_before", "s"),
        Edge("sum", "c"),
        Edge("c", "s"),
        Edge("read", "s"),
        Edge("s", "written"),
    ]
    for j, word in enumerate(source, start=1):
        x, weight = step * j, attention_weights[j - 1]
        nodes += [
            Node(f"x_{j}", x, 0, diagram.word(word), "text", step),
            Node(f"h_{j}", x, 0.8, f"$h_{{{j}}}$", width=STATE),
            Node(f"alpha_{j}", x, 1.87, f"{weight:.2f}", "attention", STATE),
        ]
        edges += [
            Edge(f"x_{j}", f"h_{j}"),
            Edge(f"h_{j}", f"alpha_{j}"),
            Edge(f"alpha_{j}", "sum", width=0.6 + 5 * weight),
        ]
        if j > 1:  # The GRUs of both directions.
            between = x - step / 2
            edges += [
                Edge(f"h_{j - 1}", f"h_{j}", via=((between, 0.88),)),
                Edge(f"h_{j}", f"h_{j - 1}", via=((between, 0.72),)),
            ]
    return diagram.draw(
        nodes, edges, path,
        "One step of the soft search. Each word of the source has a state. "
        "The decoder's last state asks all of them. Each gets a weight, and "
        "the thicker its arrow, the greater its weight. The weighted sum is "
        "the context, from which the decoder makes its next state and "
        "writes a word.",
    )  # fmt: skip


def memory_hops(
    num_hops: int = 2,
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws an end-to-end memory network (Sukhbaatar et al. 2015, figure 1).

    Args:
        num_hops: How often it asks.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    step, first = 2.5, 1.9
    middle = first + step * (num_hops - 1) / 2
    nodes = [
        Node("story", middle, 0, "the sentences of the story", "text", 2.4),
        Node("question", 0.2, 3.2, "question", "text", 0.8),
        Node("u_1", 1.2, 3.2, "$u^1$", width=STATE),
    ]
    edges = [Edge("question", "u_1")]
    for hop in range(1, num_hops + 1):
        x, after = first + step * (hop - 1), f"u_{hop + 1}"
        nodes += [
            Node(f"m_{hop}", x - 0.7, 1, f"$m^{hop}$", "vector", STATE),
            Node(f"c_{hop}", x + 0.6, 1, f"$c^{hop}$", "vector", STATE),
            Node(f"p_{hop}", x - 0.7, 2, "softmax", "attention", 0.9),
            Node(f"o_{hop}", x + 0.6, 2, "weighted sum", "attention", 1.3),
            Node(f"+_{hop}", x + 0.6, 3.2, "+", "sum", 0.3, 0.3),
            Node(after, x + 1.2, 3.2, f"$u^{hop + 1}$", width=STATE),
        ]  # fmt: skip
        edges += [
            Edge("story", f"m_{hop}", via=((middle, 0.42), (x - 0.7, 0.42))),
            Edge("story", f"c_{hop}", via=((middle, 0.42), (x + 0.6, 0.42))),
            Edge(f"m_{hop}", f"p_{hop}"),
            Edge(f"u_{hop}", f"p_{hop}"),
            Edge(f"p_{hop}", f"o_{hop}", f"$p^{hop}$"),
            Edge(f"c_{hop}", f"o_{hop}"),
            Edge(f"o_{hop}", f"+_{hop}", f"$o^{hop}$"),
            Edge(f"u_{hop}", f"+_{hop}"),
            Edge(f"+_{hop}", after),
        ]
    right = x + 1.95
    nodes += [
        Node("W", right, 3.2, "$W$", "dense", STATE),
        Node("answer", right + 0.8, 3.2, "answer", "text", 0.7),
    ]
    edges += [Edge(f"u_{num_hops + 1}", "W"), Edge("W", "answer")]
    return diagram.draw(
        nodes, edges, path,
        "A memory network. The sentences of a story become two sets of "
        "vectors for each hop. The question is compared with the first set. "
        "A softmax weighs the second set, and the weighted sum is added to "
        "the question. The sum asks again at the next hop. The last one "
        "gives the answer.",
    )  # fmt: skip


def summarizer(
    source: Sequence[str] = ("bola", "remi", "bola", "tuso"),
    written: Sequence[str] = ("START", "bola", "remi"),
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws a step of the summariser (Paulus et al. 2017, figures 1 and 2).

    Args:
        source: What the bidirectional encoder reads.
        written: What the decoder has read so far: START and its own words.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    step, t = _step(*source, *written), len(written)
    middle = step * (len(source) + 1)
    left, right, now = (
        middle / 2,
        middle + step * (t + 1) / 2,
        middle + step * t,
    )
    nodes = [
        Node("looks", left, 2.1, "intra-temporal\nattention", "attention", 1.5,
             0.6),
        Node("rereads", right, 2.1, "intra-decoder\nattention", "attention",
             1.5, 0.6),
        Node("c_e", left, 3, "$c^e_t$", "vector", STATE),
        Node("c_d", right, 3, "$c^d_t$", "vector", STATE),
        Node("f", right, 3.9, "$f_t = [h^d_t; c^e_t; c^d_t]$", "vector", 2),
        Node("copy", left - 0.6, 4.8, "copy", "attention"),
        Node("switch", middle, 4.8, "switch", "dense"),
        Node("write", right, 4.8, "write", "dense"),
        Node("p", middle, 5.7, "$p(y_t)$", "text", 0.8),
    ]  # fmt: skip
    query, beside = (now, 1.45), left - 1.2
    edges = [
        Edge(f"d_{t}", "looks", via=(query, (left + 0.6, 1.45))),
        Edge(f"d_{t}", "rereads", via=(query, (right + 0.6, 1.45))),
        Edge(f"d_{t}", "f", via=((now, 3.45), (right + 0.8, 3.45))),
        Edge("looks", "looks", via=((beside, 2.25), (beside, 1.95))),
        Edge("looks", "c_e"),
        Edge("looks", "copy", "$\\alpha^e_t$", via=((left - 0.6, 3.5),)),
        Edge("rereads", "c_d"),
        Edge("c_e", "f", via=((left, 3.45), (right - 0.8, 3.45))),
        Edge("c_d", "f"),
        Edge("f", "write"),
        Edge("f", "switch", via=((middle, 3.9),)),
        Edge("copy", "p", via=((left - 0.6, 5.25), (middle - 0.2, 5.25))),
        Edge("switch", "p"),
        Edge("write", "p", via=((right, 5.25), (middle + 0.2, 5.25))),
    ]
    for i, word in enumerate(source, start=1):
        nodes += [
            Node(f"x_{i}", step * i, 0, diagram.word(word), "text", step),
            Node(f"h_{i}", step * i, 0.8, f"$h^e_{{{i}}}$", width=STATE),
        ]
        edges += [Edge(f"x_{i}", f"h_{i}"), Edge(f"h_{i}", "looks")]
    for j, word in enumerate(written, start=1):
        x = middle + step * j
        nodes += [
            Node(f"y_{j}", x, 0, diagram.word(word), "text", step),
            Node(f"d_{j}", x, 0.8, f"$h^d_{{{j}}}$", width=STATE),
        ]
        edges.append(Edge(f"y_{j}", f"d_{j}"))
        if j < t:
            edges.append(Edge(f"d_{j}", "rereads"))
            edges.append(Edge(f"d_{j}", f"d_{j + 1}"))
    return diagram.draw(
        nodes, edges, path,
        "A step of a summariser. The decoder's state looks at the source "
        "and at its own earlier states. State and both contexts go to three "
        "places: to a layer that writes a word, to a switch, and, by the "
        "weights over the source, to a copy of a word. The switch decides "
        "between copying and writing.",
    )  # fmt: skip
