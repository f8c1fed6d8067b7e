"""Diagrams: which nodes and edges there are, and that all can be read."""

import itertools

import diagrams
import numpy as np
import pytest
from diagrams import diagram
from matplotlib import path as mpl_path

from keras_attention.plotting import drawing

TABLES = (
    "distances",
    "masks",
    "numbers",
    "picture_patches",
    "three_sources",
    "windows",
)
NAMES = tuple(name for name in diagrams.__all__ if name not in TABLES)
each_diagram = pytest.mark.parametrize("name", NAMES)


def draw(name):
    return getattr(diagrams, name)()


def edges(figure):
    return {(edge.source, edge.target) for edge in figure.diagram.edges}


def path_from(figure, start):
    """The nodes behind `start`, where one arrow leads on from each."""
    found, onward = [start], dict(sorted(edges(figure), reverse=True))
    while found[-1] in onward:
        found.append(onward[found[-1]])
    return found


def label_boxes(figure):
    """The label and the pixels that it covers, of each label."""
    return [
        (text.get_text(), text.get_window_extent())
        for text in figure.axes[0].texts
        if text.get_text()
    ]


@each_diagram
def test_no_label_lies_on_another(name):
    with drawing.style():
        figure = draw(name)
        boxes = label_boxes(figure)
    for (one, box), (two, other) in itertools.combinations(boxes, 2):
        assert not box.overlaps(other), (one, two)


@each_diagram
def test_no_arrow_runs_through_a_label(name):
    with drawing.style():
        figure = draw(name)
        boxes = label_boxes(figure)
    for edge in figure.diagram.edges:
        way = mpl_path.Path(figure.diagram.corners(edge)).interpolated(50)
        x, y = figure.axes[0].transData.transform(way.vertices).T
        for label, box in boxes:
            left, bottom, right, top = box.padded(-1).extents
            inside = (left < x) & (x < right) & (bottom < y) & (y < top)
            assert not inside.any(), (edge, label)


@each_diagram
def test_labels_fit_in_their_boxes_and_all_in_the_picture(name):
    with drawing.style():
        figure = draw(name)
        boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    frame = figure.bbox
    assert all(frame.count_contains(box.corners()) == 4 for box in boxes)
    for node, box in zip(figure.diagram.nodes, boxes, strict=False):
        if node.kind != "group":
            assert box.width / figure.dpi < node.width + 0.02, node
            assert box.height / figure.dpi < node.height + 0.02, node


@each_diagram
def test_boxes_do_not_overlap(name):
    nodes = [n for n in draw(name).diagram.nodes if n.kind != "group"]
    for one, two in itertools.combinations(nodes, 2):
        beside = abs(one.x - two.x) >= (one.width + two.width) / 2 - 1e-9
        above = abs(one.y - two.y) >= (one.height + two.height) / 2 - 1e-9
        assert beside or above, (one, two)


def test_any_word_can_be_drawn_and_has_its_room():
    words = ["$^$", "$", "a\nb", "Donaudampfschifffahrt", "x" * 30]
    for figure in (
        diagrams.unrolled_rnn(words),
        diagrams.encoder_decoder(words, words),
        diagrams.soft_search(words, [0.2] * 5, words=("$_$", "$$")),
        diagrams.translator(("$1^$", "$")),
    ):
        with drawing.style():
            boxes = label_boxes(figure)
            figure._repr_png_()
        for (one, box), (two, other) in itertools.combinations(boxes, 2):
            assert not box.overlaps(other), (one, two)


@each_diagram
def test_a_diagram_is_as_wide_as_a_page_at_most(name):
    assert draw(name).get_size_inches()[0] < 8


def test_a_rnn_has_a_state_for_each_word():
    figure = diagrams.unrolled_rnn(["a", "b"])
    labels = [node.label for node in figure.diagram.nodes]
    assert {"a", "b", "$h_{1}$", "$h_{2}$"} <= set(
        labels
    ) and "$h_{3}$" not in labels
    assert {("h_0", "h_1"), ("h_1", "h_2"), ("x_2", "h_2")} <= edges(figure)
    assert ("h", "h") in edges(figure)  # Folded.


def test_all_that_the_decoder_learns_goes_through_one_vector():
    figure = diagrams.encoder_decoder(["a", "b", "END"], ["c", "END"])
    across = {
        (source, target)
        for source, target in edges(figure)
        if source[0] in "hx" and target[0] not in "hx"
    }
    assert across == {("h_3", "c")}
    assert figure.diagram["read_1"].label == "START"
    assert figure.diagram["read_2"].label == "c"
    dashed = {edge.target for edge in figure.diagram.edges if edge.dashed}
    assert dashed == {"s_1", "s_2"}


def test_a_search_looks_at_each_token_as_much_as_it_weighs():
    figure = diagrams.soft_search(["a", "b", "c"], [0.5, 0.2, 0.3])
    width = {
        edge.source: edge.width
        for edge in figure.diagram.edges
        if edge.target == "sum"
    }
    assert list(width) == ["alpha_1", "alpha_2", "alpha_3"]
    assert width["alpha_1"] > width["alpha_3"] > width["alpha_2"]
    assert figure.diagram["alpha_2"].label == "0.20"
    with pytest.raises(ValueError, match="each of 2 tokens. Received: .0.5"):
        diagrams.soft_search(["a", "b"], [0.5])


def test_a_layer_normalises_after_the_sum_or_before_the_sublayer():
    figure = diagrams.transformer_layer()
    order = {}
    for name in ("post-norm", "pre-norm"):
        column = [
            node
            for node in figure.diagram.nodes
            if node.name.startswith(f"{name} ")
        ]
        order[name] = [node.label for node in sorted(column, key=lambda n: n.y)]
    sublayer = [
        ["self-attention", "dropout", "+"],
        ["feed-forward", "dropout", "+"],
    ]
    norm = "LayerNorm"
    assert order["post-norm"][1:-1] == [*sublayer[0], norm, *sublayer[1], norm]
    assert order["pre-norm"][1:-1] == [norm, *sublayer[0], norm, *sublayer[1]]
    # The residual paths: around the sublayers, pre-norm's past all norms.
    around = {
        (edge.source, edge.target) for edge in figure.diagram.edges if edge.via
    }
    assert around == {
        ("post-norm input", "post-norm sum of attention"),
        ("post-norm norm 1", "post-norm sum of network"),
        ("pre-norm input", "pre-norm sum of attention"),
        ("pre-norm sum of attention", "pre-norm sum of network"),
    }


def test_a_transformer_has_three_attentions_and_one_memory():
    figure = diagrams.transformer()
    kinds = [node.kind for node in figure.diagram.nodes]
    assert kinds.count("attention") == 3
    assert kinds.count("norm") == 5  # One behind each sublayer.
    labels = {edge[:2]: edge for edge in edges(figure)}
    assert ("memory", "cross") in labels
    for name, start in (("source", "self"), ("target", "causal")):
        assert {
            (f"{name} ids", f"{name} words"),
            (f"{name} words", f"{name} +"),
            (f"{name} places", f"{name} +"),
            (f"{name} +", start),
        } <= edges(figure)
    # What is added in each "add & norm": a sublayer, and what it has read.
    into = {
        target: {source for source, end in edges(figure) if end == target}
        for _, target in edges(figure)
    }
    assert into["causal norm"] == {"causal", "target +"}
    assert into["cross norm"] == {"cross", "causal norm"}
    assert into["say norm"] == {"say", "cross norm"}
    assert into["cross"] == {"causal norm", "memory"}
    assert into["memory"] == {"think norm"}
    assert path_from(figure, "say norm") == [
        "say norm", "linear", "softmax", "p",
    ]  # fmt: skip


def test_heads_are_joined_by_one_matrix():
    found = edges(diagrams.heads())
    for head in "123":
        assert {
            ("x", f"W {head}"),
            (f"W {head}", f"head {head}"),
            (f"head {head}", "joined"),
        } <= found
    assert {("joined", "W_O"), ("W_O", "context")} <= found


def test_attention_joins_the_streams_and_a_network_stays_beside_one():
    found = edges(diagrams.stream())
    assert {end for end in found if end[1] == "attention"} == {
        ("from one", "attention"), ("from two", "attention"),
        ("ask", "attention"),
    }  # fmt: skip
    assert {start for start, end in found if end == "+ 2"} == {
        "+ 1", "network",
    }  # fmt: skip


def test_a_cache_grows_by_one_token_a_step():
    figure = diagrams.cache(["START", "a", "b", "c"])
    for t in range(1, 5):
        kinds = [figure.diagram[f"{t} {j}"].kind for j in range(1, t + 1)]
        assert kinds == ["vector"] * (t - 1) + ["dense"]
        assert {end for start, end in edges(figure) if start == f"q_{t}"} == {
            f"{t} {j}" for j in range(1, t + 1)
        }


def test_a_column_of_the_neural_gpu_sees_its_neighbours():
    found = edges(diagrams.convolutional_gru())
    for target in ("1 3", "2 3"):
        below = int(target[0]) - 1
        assert {start for start, end in found if end == target} == {
            f"{below} {t}" for t in (2, 3, 4)
        }


def test_a_query_of_convs2s_is_made_of_state_and_embedding():
    found = edges(diagrams.conv_layer())
    into = {
        target: {source for source, end in found if end == target}
        for _, target in found
    }
    assert into["d"] == {"W_d", "g"}
    assert into["look"] == {"d", "keys"}
    assert into["c"] == {"look", "values"}
    assert into["first"] == {"W_c", "gate"}
    assert into["second"] == {"first", "inputs"}


@pytest.mark.parametrize("name", diagrams.__all__)
def test_a_reader_who_cannot_see_it_is_told_what_it_shows(name):
    figure = draw(name) if name in NAMES else table(name)
    assert len(figure.alt.split()) > 10


def table(name):
    square = np.tri(3) / 10
    rgb = np.linspace(0, 1, 64).reshape(8, 8)
    words = ["twenty", "-", "one"]
    arguments = {
        "distances": ({"a": square, "b": square},),
        "masks": (words, {"a": (square, square > 0)}),
        "numbers": (
            words,
            ["tens", "hyphen", "unit", "always"],
            {
                **dict.fromkeys(("x", "Q", "K"), np.ones((3, 4))),
                **dict.fromkeys(("V", "context"), np.ones((3, 2))),
                **dict.fromkeys(("scores", "weights"), square),
            },
        ),
        "picture_patches": (rgb,),
        "three_sources": (),
        "windows": ({"a": square},),
    }
    return getattr(diagrams, name)(*arguments[name])


@pytest.mark.parametrize("name", TABLES)
def test_a_table_can_be_read_on_a_phone(name):
    with drawing.style():
        figure = table(name)
        boxes = label_boxes(figure)
    assert figure.get_size_inches()[0] <= 4.8
    assert min(text.get_fontsize() for text in figure.axes[0].texts) >= 9
    assert all(
        figure.bbox.count_contains(box.corners()) == 4 for _, box in boxes
    )
    for (one, box), (two, other) in itertools.combinations(boxes, 2):
        assert not box.overlaps(other), (one, two)


def test_a_closed_cell_shows_no_weight():
    weights, allowed = np.full((2, 2), 0.5), np.array([[1, 0], [1, 1]], bool)
    figure = diagrams.masks(["a", "b"], {"causal": (weights, allowed)})
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown.count("0.50") == 3 and shown.count("0") == 1


def test_attention_is_a_score_a_softmax_and_a_sum():
    figure = diagrams.attention_steps()
    assert path_from(figure, "query") == [
        "query", "score", "softmax", "sum", "context",
    ]  # fmt: skip
    assert {("key", "score"), ("value", "sum"), ("mask", "softmax")} <= edges(
        figure
    )


def test_what_a_hop_finds_is_added_to_its_question():
    figure = diagrams.memory_hops(3)
    for hop in "123":
        assert {
            (f"u_{hop}", f"p_{hop}"),
            (f"m_{hop}", f"p_{hop}"),
            (f"p_{hop}", f"o_{hop}"),
            (f"c_{hop}", f"o_{hop}"),
            (f"u_{hop}", f"+_{hop}"),
            (f"o_{hop}", f"+_{hop}"),
            (f"+_{hop}", f"u_{int(hop) + 1}"),
        } <= edges(figure)
    assert path_from(figure, "u_4") == ["u_4", "W", "answer"]


def test_a_summariser_looks_at_the_source_and_at_what_it_wrote():
    figure = diagrams.summarizer(["a", "b"], ["START", "a", "b"])
    into = {
        target: {source for source, end in edges(figure) if end == target}
        for _, target in edges(figure)
    }
    assert into["looks"] == {"h_1", "h_2", "d_3", "looks"}
    assert into["rereads"] == {"d_1", "d_2", "d_3"}
    assert into["f"] == {"d_3", "c_e", "c_d"}
    assert into["copy"] == {"looks"}  # It copies by where it looks.
    assert into["p"] == {"copy", "switch", "write"}


def test_a_translator_searches_with_its_decoder():
    figure = diagrams.translator(("one", "eins"))
    assert {("decoder", "search"), ("search", "decoder")} <= edges(figure)
    assert figure.diagram["text"].label == "one"
    assert figure.diagram["translation"].label == "eins"


def test_nodes_have_names_and_edges_have_ends():
    node = diagram.Node("a", 0, 0, "A")
    with pytest.raises(ValueError, match=r"twice \['a'\]"):
        diagram.draw([node, node], [])
    with pytest.raises(ValueError, match=r"no node \['b'\]"):
        diagram.draw([node], [diagram.Edge("a", "b")])


def test_an_arrow_ends_at_the_rim_of_its_nodes():
    nodes = (
        diagram.Node("a", 0, 0, "A", width=1, height=0.5),
        diagram.Node("b", 0, 2, "B", "sum", 0.4, 0.4),
        diagram.Node("c", 3, 2, "C", width=1, height=1),
    )
    for ends, expected in {
        ("a", "b"): [(0, 0.25), (0, 1.8)],
        ("b", "c"): [(0.2, 2), (2.5, 2)],
        # Past the corner of C: 3 to the right and 2 up.
        ("a", "c"): [(0.375, 0.25), (2.5, 5 / 3)],
    }.items():
        edge = diagram.Edge(*ends)
        corners = diagram.draw(nodes, [edge]).diagram.corners(edge)
        np.testing.assert_allclose(corners, expected, atol=1e-9)
