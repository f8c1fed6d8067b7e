"""What diagrams are made of: nodes, edges between them, and their drawing.

A diagram is data. Lengths are inches, so that a label that fits its box on
one screen fits it on all.
"""

import dataclasses
import math
import os
from collections.abc import Iterable

from matplotlib import patches
from matplotlib import path as mpl_path

from keras_attention.plotting import drawing

# Of each kind of node: fill and outline. What has learned weights has a
# colour, the same one in every diagram.
KINDS = {
    "text": ("none", "none"),
    "vector": ("#FFFFFF", "#888888"),
    "sum": ("#FFFFFF", drawing.INK),
    "state": ("#D6E9F5", drawing.COLORS[0]),
    "attention": ("#FBE3D3", drawing.COLORS[1]),
    "dense": ("#D3EFE5", drawing.COLORS[2]),
    "norm": ("#F7E7F0", drawing.COLORS[3]),
    "group": ("#F7F7F7", "#BBBBBB"),
}
MARGIN = 0.12
CORNER = 0.09


@dataclasses.dataclass(frozen=True)
class Node:
    """A labelled box; of a "sum" a circle, of a "text" the label alone.

    Args:
        name: What edges call it. No two nodes of a diagram share one.
        x: Its centre, in inches from the left.
        y: Its centre, in inches from below.
        label: What it says: text, or mathematics between dollars.
        kind: One of `KINDS`. A "group" is a frame around other nodes, with
            its label in the upper left corner.
        width: In inches.
        height: In inches.
    """

    name: str
    x: float
    y: float
    label: str
    kind: str = "state"
    width: float = 0.9
    height: float = 0.4


@dataclasses.dataclass(frozen=True)
class Edge:
    """An arrow from one node to another.

    Args:
        source: The name of the node where it begins.
        target: The name of the node where it ends.
        label: What it says, beside the middle of its longest part.
        via: Points (x, y) where it turns on its way, as with a residual path.
        width: Of the line, in points.
        dashed: Whether the line is.
        label_side: Where the label stands: 1 for right of a vertical line
            and above another, -1 for the other side.
    """

    source: str
    target: str
    label: str = ""
    via: tuple[tuple[float, float], ...] = ()
    width: float = 1.2
    dashed: bool = False
    label_side: int = 1


@dataclasses.dataclass(frozen=True)
class Diagram:
    """Nodes and edges, in the order in which they are drawn.

    Args:
        nodes: Each a `Node`; frames before what stands in them.
        edges: Each an `Edge`.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self):
        names = [node.name for node in self.nodes]
        ends = {
            end for edge in self.edges for end in (edge.source, edge.target)
        }
        doubled = {name for name in names if names.count(name) > 1}
        if doubled or not ends <= set(names):
            raise ValueError(
                "Expected nodes of different names, and edges between them. "
                f"Received: names that occur twice {sorted(doubled)}, edges "
                f"to no node {sorted(ends - set(names))}"
            )

    def __getitem__(self, name):
        """The node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def corners(self, edge):
        """The points (x, y) of an edge, from rim to rim of its nodes."""
        source, target = self[edge.source], self[edge.target]
        points = [(source.x, source.y), *edge.via, (target.x, target.y)]
        points[0] = _rim(source, points[1])
        points[-1] = _rim(target, points[-2])
        return points


def word(token):
    """A token as a label: shown as it is, with no mathematics in it."""
    return drawing.printable(token).replace("$", r"\$")


def draw(
    nodes: Iterable[Node],
    edges: Iterable[Edge],
    path: str | os.PathLike | None = None,
    alt: str = "",
) -> drawing.Figure:
    """Draws a diagram in its own size.

    Args:
        nodes: Each a `Node`; frames before what stands in them.
        edges: Each an `Edge`.
        path: Where to write a picture, if anywhere: .png, .svg or .pdf.
        alt: What it shows, for readers who cannot see it.

    Returns:
        The figure, which keeps what it shows as its `diagram`.

    Raises:
        ValueError: If two nodes share a name, or an edge names no node.
    """
    diagram = Diagram(tuple(nodes), tuple(edges))
    left, right, bottom, top = _limits(diagram)
    with drawing.style():
        result = drawing.Figure(figsize=(right - left, top - bottom))
        result.diagram, result.alt = diagram, alt
        axes = result.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)
        for node in diagram.nodes:
            _draw_node(axes, node)
        for edge in diagram.edges:
            _draw_edge(axes, edge, diagram)
        return drawing.save(result, path)


def _limits(diagram):
    """(left, right, bottom, top) of all that is drawn, with a margin."""
    xs = [x for edge in diagram.edges for x, _ in edge.via]
    ys = [y for edge in diagram.edges for _, y in edge.via]
    for node in diagram.nodes:
        xs += [node.x - node.width / 2, node.x + node.width / 2]
        ys += [node.y - node.height / 2, node.y + node.height / 2]
    return (
        min(xs) - MARGIN, max(xs) + MARGIN, min(ys) - MARGIN, max(ys) + MARGIN
    )  # fmt: skip


def _draw_node(axes, node):
    fill, outline = KINDS[node.kind]
    corner = (node.x - node.width / 2, node.y - node.height / 2)
    look = {"facecolor": fill, "edgecolor": outline, "linewidth": 1.2}
    if node.kind == "sum":
        shape = patches.Ellipse(
            (node.x, node.y), node.width, node.height, zorder=3, **look
        )
    elif node.kind == "group":
        shape = patches.FancyBboxPatch(
            corner, node.width, node.height, linestyle="--", zorder=0,
            boxstyle=patches.BoxStyle.Round(0, CORNER), **look,
        )  # fmt: skip
    else:
        shape = patches.FancyBboxPatch(
            corner, node.width, node.height, zorder=2,
            boxstyle=patches.BoxStyle.Round(0, CORNER / 2), **look,
        )  # fmt: skip
    axes.add_patch(shape)
    if node.kind == "group":
        axes.text(
            corner[0] + 0.08, corner[1] + node.height - 0.06, node.label,
            ha="left", va="top", fontsize=10, color="#666666", zorder=4,
        )  # fmt: skip
    else:
        axes.text(
            node.x, node.y, node.label, ha="center", va="center_baseline",
            fontsize=10.5, zorder=4,
        )  # fmt: skip


def _draw_edge(axes, edge, diagram):
    points = diagram.corners(edge)
    axes.add_patch(
        patches.FancyArrowPatch(
            path=_rounded(points), arrowstyle="-|>,head_length=4,head_width=2",
            mutation_scale=1, linewidth=edge.width, color=drawing.INK,
            linestyle=(0, (3, 2)) if edge.dashed else "-", zorder=1,
            shrinkA=0, shrinkB=0, joinstyle="miter", capstyle="butt",
        )
    )  # fmt: skip
    if not edge.label:
        return
    start, end = max(zip(points, points[1:], strict=False), key=_length)
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    upright = abs(end[0] - start[0]) < abs(end[1] - start[1])
    shift = 0.07 * edge.label_side
    if upright:
        x += shift
        look = {"ha": "left" if shift > 0 else "right", "va": "center"}
    else:
        y += shift
        look = {"ha": "center", "va": "bottom" if shift > 0 else "top"}
    axes.text(x, y, edge.label, fontsize=9.5, color="#666666", zorder=4, **look)


def _length(part):
    return math.dist(*part)


def _rim(node, towards):
    """Where the line from a node's centre to a point leaves the node.

    A line to a point straight above, below or beside the node leaves at a
    right angle, so that arrows can end side by side on a wide node.
    """
    x, y = towards
    half_width, half_height = node.width / 2, node.height / 2
    across, up = x - node.x, y - node.y
    if node.kind == "sum":
        share = half_width / math.hypot(across, up)
    elif abs(across) < half_width:
        return x, node.y + math.copysign(half_height, up)
    elif abs(up) < half_height:
        return node.x + math.copysign(half_width, across), y
    else:
        share = 1 / max(abs(across) / half_width, abs(up) / half_height)
    return node.x + share * across, node.y + share * up


def _rounded(points):
    """A path through the points, its corners rounded."""
    codes, vertices = [mpl_path.Path.MOVETO], [points[0]]
    for before, corner, after in zip(
        points, points[1:], points[2:], strict=False
    ):
        for point in (before, after):
            share = min(0.5, CORNER / math.dist(corner, point))
            near = tuple(
                c + share * (p - c) for c, p in zip(corner, point, strict=True)
            )
            if point is before:
                codes += [mpl_path.Path.LINETO, mpl_path.Path.CURVE3]
                vertices += [near, corner]
            else:
                codes.append(mpl_path.Path.CURVE3)
                vertices.append(near)
    return mpl_path.Path(
        [*vertices, points[-1]], [*codes, mpl_path.Path.LINETO]
    )
