"""Tables of numbers that attention makes, and what it reads.

Lengths are inches. In every matrix of attention a row asks and a column is
asked, as in `keras_attention.plotting.attention_heat_map`.
"""

import os
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import patches as shapes

from diagrams import diagram
from keras_attention.plotting import drawing

Node, Edge = diagram.Node, diagram.Edge
FORBIDDEN = "#E2E2E2"


class Sheet:
    """A picture on which tables stand, in inches from the upper left corner.

    Args:
        width: In inches.
        height: In inches.
        alt: What it shows, for readers who cannot see it.
    """

    def __init__(self, width, height, alt):
        self.figure = drawing.Figure(figsize=(width, height))
        self.figure.alt = alt
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.set_axis_off()

    def text(self, x, y, label, **look):
        look = {"ha": "center", "va": "center", "fontsize": 10, **look}
        self.axes.text(x, y, label, **look)

    def table(
        self,
        left: float,
        top: float,
        array: np.ndarray,
        title: str,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        cell: tuple[float, float] = (0.4, 0.28),
        form: str = "{:g}",
        allowed: np.ndarray | None = None,
        closed: str = "",
        most: float | None = None,
    ) -> None:
        """A matrix with its numbers; `most` is the number of the darkest blue.

        Where `allowed` is False, a cell is grey and says `closed`.
        """
        width, height = cell
        num_rows, num_columns = np.shape(array)
        self.text(left, top - (0.42 if columns else 0.18), title, ha="left")
        for (row, column), value in np.ndenumerate(array):
            is_open = allowed is None or allowed[row, column]
            share = 0.0 if most is None else min(1.0, value / most)
            corner = left + column * width, top + row * height
            color = drawing.mpl.colormaps["Blues"](0.75 * share)
            self.axes.add_patch(
                shapes.Rectangle(
                    corner, width, height, linewidth=0.8, edgecolor="#AAAAAA",
                    facecolor=color if is_open and most else
                    "white" if is_open else FORBIDDEN,
                )
            )  # fmt: skip
            self.text(
                corner[0] + width / 2, corner[1] + height / 2,
                form.format(value) if is_open else closed, fontsize=9,
                color="white" if is_open and share > 0.7 else drawing.INK,
            )  # fmt: skip
        for row, name in enumerate(rows):
            middle = top + (row + 0.5) * height
            self.text(left - 0.07, middle, name, ha="right")
        for column, name in enumerate(columns):
            middle = left + (column + 0.5) * width
            self.text(middle, top - 0.14, name, fontsize=9)

    def save(self, path):
        return drawing.save(self.figure, path)


def numbers(
    words: Sequence[str],
    features: Sequence[str],
    arrays: Mapping[str, np.ndarray],
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws a sentence on its way through queries, keys and values.

    Args:
        words: The T words.
        features: What the columns of x are called.
        arrays: "x" [T, D], "Q", "K" [T, d], "V" [T, d'], "scores" and
            "weights" [T, T], "context" [T, d'].
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    with drawing.style():
        sheet = Sheet(
            4.8, 4.75,
            "Tables of numbers, a row for each word. At the top the words as "
            "vectors x. Below them the queries Q, keys K and values V that "
            "three matrices make of x. At the bottom the scores of each word "
            "with each word, the attention weights that the softmax makes of "
            "them, and the contexts, the weighted sums of the values.",
        )  # fmt: skip
        sheet.table(0.75, 0.62, arrays["x"], "$x$: a row for each word", words,
                    features, cell=(0.6, 0.28))  # fmt: skip
        narrow = (0.37, 0.28)
        for left, name in ((0.75, "Q"), (2.38, "K"), (4.01, "V")):
            sheet.table(left, 2.05, arrays[name], f"${name} = x\\,W_{name}$",
                        words if name == "Q" else (), cell=narrow)  # fmt: skip
        sheet.table(0.75, 3.62, arrays["scores"], "scores: $QK^\\top / 2$",
                    words, words, cell=(0.46, 0.28))  # fmt: skip
        sheet.table(2.3, 3.62, arrays["weights"], "weights", (), words,
                    (0.46, 0.28), "{:.2f}", most=1)  # fmt: skip
        sheet.table(3.85, 3.62, arrays["context"], "context", (),
                    cell=(0.42, 0.28), form="{:.1f}")  # fmt: skip
        sheet.text(0.75, 4.62, "a row asks, a column is asked", ha="left",
                   fontsize=9, color="#666666")  # fmt: skip
        return sheet.save(path)


def masks(
    words: Sequence[str],
    panels: Mapping[str, tuple[np.ndarray, np.ndarray]],
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws what is left of the attention weights behind a mask.

    Args:
        words: The T words.
        panels: For each title, (the weights [T, T], what is allowed [T, T]):
            two in a row.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    with drawing.style():
        height, step = 0.3, 0.3 * len(words) + 0.75
        sheet = Sheet(
            4.8, step * -(-len(panels) // 2) + 0.1,
            "Matrices of attention weights: a row asks, a column is asked. A "
            "padding mask closes the column of the padding. A causal mask "
            "closes all above the diagonal. What is closed is grey and has the "
            "weight 0. The weights of a row sum to 1.",
        )  # fmt: skip
        for place, (title, (weights, allowed)) in enumerate(panels.items()):
            row, column = divmod(place, 2)
            sheet.table(
                0.72 + 2.06 * column, 0.65 + step * row, weights, title,
                words if column == 0 else (), words, (0.49, height), "{:.2f}",
                allowed, "0", most=1,
            )  # fmt: skip
        return sheet.save(path)


def cache(
    written: Sequence[str] = ("START", "ein", "und"),
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws the keys and values that a decoder keeps, step by step.

    Args:
        written: What the decoder reads, one token at each step.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    nodes, edges, drop = [], [], 1.0
    for t, word in enumerate(written, start=1):
        y, query = -drop * t, f"q_{t}"
        nodes.append(
            Node(query, 0.6, y, f"{diagram.word(word)}: $q_{t}$", "attention",
                 1.15, 0.36)
        )  # fmt: skip
        for j in range(1, t + 1):
            x = 0.95 * j + 0.9
            kind = "dense" if j == t else "vector"
            nodes.append(
                Node(f"{t} {j}", x, y, f"$k_{j},\\;v_{j}$", kind, 0.8, 0.36)
            )
            above = y + 0.4
            edges.append(
                Edge(query, f"{t} {j}", via=((0.6, above), (x, above)))
            )
    nodes.append(
        Node("legend", 3.2, 0.02 - drop,
             "green: new at this step\nwhite: kept", "text", 1.9, 0.45)
    )  # fmt: skip
    return diagram.draw(
        nodes, edges, path,
        "Three steps, one below the other. At each step the new token gets a "
        "query, a key and a value. Its query looks at the new key and at all "
        "keys that are kept from the steps before. Nothing is computed twice.",
    )  # fmt: skip


def distances(
    panels: Mapping[str, np.ndarray],
    form: str = "{:g}",
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws matrices [T, T] of a causal attention, two in a row.

    Args:
        panels: The matrix of each title; what lies in the future is not drawn.
        form: How a number is written.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    length = len(next(iter(panels.values())))
    places = [str(place) for place in range(length)]
    with drawing.style():
        sheet = Sheet(
            4.8, 0.28 * length + 0.8,
            "Two matrices: a row is the place that asks, a column the place "
            "that is asked. Their numbers depend on the distance of the two "
            "places alone, so each diagonal has one number. The future is "
            "closed.",
        )  # fmt: skip
        for place, (title, matrix) in enumerate(panels.items()):
            sheet.table(
                0.3 + 2.35 * place, 0.65, matrix, title,
                places if place == 0 else (), places, (2.1 / length, 0.28),
                form, np.tri(length, dtype=bool),
            )  # fmt: skip
        return sheet.save(path)


def windows(
    panels: Mapping[str, np.ndarray],
    path: str | os.PathLike | None = None,
) -> drawing.Figure:
    """Draws attention weights [T, S] that a window cuts, one below the other.

    Args:
        panels: The weights of each title; 0 is outside of the window.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
    """
    num_rows, num_columns = next(iter(panels.values())).shape
    step = 0.28 * num_rows + 0.75
    with drawing.style():
        sheet = Sheet(
            4.8, step * len(panels) + 0.1,
            "Matrices of weights: a row is a word that is written, a column a "
            "word of the source. Grey cells lie outside of the window. With "
            "local-m the window moves on by one word in each row. With local-p "
            "it stands where the network says, and words get fainter towards "
            "its edges.",
        )  # fmt: skip
        for place, (title, weights) in enumerate(panels.items()):
            sheet.table(
                0.35, 0.65 + step * place, weights, title,
                [str(t) for t in range(num_rows)],
                [str(s) for s in range(num_columns)],
                (4.3 / num_columns, 0.28), "{:.2f}", weights > 0, most=0.4,
            )  # fmt: skip
        return sheet.save(path)
