"""Pictures: what is drawn equals what was given, and files are whole."""

import math
import struct
import threading

import numpy as np
import pytest
from matplotlib import figure as mpl_figure
from matplotlib import image as mpl_image

from keras_attention import evaluation, plotting
from keras_attention.models import catalog
from keras_attention.plotting import drawing

SOURCES = ["▁The", "▁old", "▁dog", "▁sleeps", "[END]"]
TARGETS = ["▁Der", "▁Hund", "[END]"]


def random_weights(*shape):
    scores = np.random.default_rng(7).normal(size=shape)
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def line_points(axes):
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
        for line in axes.get_lines()
    }


def draw(name, path=None):
    """A picture of each kind."""
    if name == "attention_heat_map":
        return plotting.attention_heat_map(
            SOURCES, TARGETS, random_weights(3, 5), path
        )
    if name == "learning_curve":
        return plotting.learning_curve({"loss": [3.0, 2.0]}, path)
    rows = evaluation.bleu_by_length([2], ["x"], ["x"])
    return getattr(plotting, name)({"Luong": rows}, path)


each_picture = pytest.mark.parametrize(
    "name",
    [
        "attention_heat_map",
        "errors_by_length",
        "learning_curve",
        "scores_by_length",
    ],
)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize(
    "suffix, begin", [("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
@each_picture
def test_the_suffix_says_the_format(name, suffix, begin, tmp_path):
    path = tmp_path / f"picture.{suffix}"
    draw(name, path)
    assert path.read_bytes().startswith(begin)


@pytest.mark.parametrize("name", ["picture", "picture.jpg", "picture.png.gz"])
def test_another_suffix_is_refused_before_anything_is_written(name, tmp_path):
    with pytest.raises(ValueError, match=r"end in \.png.*Received: .*picture"):
        draw("learning_curve", tmp_path / "new" / name)
    assert list(tmp_path.iterdir()) == []


def test_a_name_may_begin_with_an_underscore():
    rows = [row(0, 5, 20, 30.0), {**row(6, 10, 9, 29.0), "interval": 2.0}]
    by_length = {"_a": rows, "__": rows, "b": rows}
    for draw_them in (plotting.scores_by_length, plotting.errors_by_length):
        assert legend(draw_them(by_length).axes[0]) == ["_a", "__", "b"]
    result = plotting.learning_curve({"loss": [2.0], "_my_loss": [1.0]})
    assert legend(result.axes[0]) == ["training loss", " my loss"]


def test_axes_without_names_have_no_legend():
    axes = drawing.Figure().subplots()
    axes.plot([0, 1])
    drawing.finish(axes)  # Warnings are errors.
    assert axes.get_legend() is None


@each_picture
def test_a_notebook_shows_it_as_a_picture(name):
    assert draw(name)._repr_png_().startswith(b"\x89PNG")


@each_picture
def test_file_is_a_png_and_nothing_else_is_left(name, tmp_path):
    path = tmp_path / "new" / "picture.png"
    result = draw(name, path)
    assert isinstance(result, mpl_figure.Figure)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert mpl_image.imread(path).shape[:2] == (height, width)
    assert [file.name for file in path.parent.iterdir()] == ["picture.png"]


@each_picture
def test_without_a_path_nothing_is_written(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw(name)
    assert list(tmp_path.iterdir()) == []


@each_picture
def test_a_failed_write_leaves_the_old_file(name, tmp_path, monkeypatch):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")

    def failing_savefig(self, file, **options):
        file.write_bytes(b"half of a PNG")
        raise OSError("disk full")

    monkeypatch.setattr(mpl_figure.Figure, "savefig", failing_savefig)
    with pytest.raises(OSError, match="disk full"):
        draw(name, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_pictures_are_drawn_outside_of_the_main_thread(tmp_path):
    path = tmp_path / "picture.png"
    thread = threading.Thread(target=draw, args=("learning_curve", path))
    thread.start()
    thread.join()
    assert path.stat().st_size > 0


def test_heat_map_shows_the_weights_and_the_tokens():
    weights = random_weights(3, 5)
    result = plotting.attention_heat_map(
        SOURCES, TARGETS, weights, title="A title"
    )
    axes = result.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert axes.images[0].get_clim() == (0, 1)
    assert tick_labels(axes.xaxis) == SOURCES
    assert tick_labels(axes.yaxis) == TARGETS
    assert list(axes.get_xticks()) == [0, 1, 2, 3, 4]
    assert list(axes.get_yticks()) == [0, 1, 2]
    assert axes.get_ylim() == (2.5, -0.5)  # The first target is on top.
    assert result.get_suptitle() == "A title"


@pytest.mark.parametrize("num_heads", [1, 2, 5, 8])
def test_heat_map_has_a_panel_per_head(num_heads, tmp_path):
    weights = random_weights(num_heads, 3, 5)
    result = plotting.attention_heat_map(
        SOURCES, TARGETS, weights, tmp_path / "heads.png"
    )
    panels = [axes for axes in result.axes if axes.images]
    assert len(panels) == num_heads
    for axes, head in zip(panels, weights, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
    # Inner panels share the labels of those on the upper and left sides.
    assert tick_labels(panels[0].xaxis) == SOURCES
    assert tick_labels(panels[0].yaxis) == TARGETS


@pytest.mark.parametrize("num_heads", [2, 4])
def test_wide_and_low_panels_stand_below_each_other(num_heads):
    """Then a page of 760 pixels shows an inch by 80 of them."""
    tokens = ["yellow"] * 19
    result = plotting.attention_heat_map(
        tokens, ["hop 1", "hop 2"], random_weights(num_heads, 2, len(tokens))
    )
    panels = [axes for axes in result.axes if axes.images]
    lefts, tops = zip(*(axes.get_position().p0 for axes in panels), strict=True)
    assert len({round(left, 6) for left in lefts}) == 1
    assert sorted(tops, reverse=True) == [*tops]
    assert result.get_size_inches()[0] < 9.5
    assert tick_labels(panels[0].xaxis) == tokens


def test_heat_map_names_panels_and_frames_links(tmp_path):
    result = plotting.attention_heat_map(
        SOURCES,
        TARGETS,
        random_weights(2, 3, 5),
        tmp_path / "models.png",
        names=["RNNsearch", "Luong"],
        links=[(2, 1), (4, 2)],
    )
    panels = [axes for axes in result.axes if axes.images]
    assert [panel.get_title() for panel in panels] == ["RNNsearch", "Luong"]
    for panel in panels:
        frames = [patch.get_bbox() for patch in panel.patches]
        centres = [((b.x0 + b.x1) / 2, (b.y0 + b.y1) / 2) for b in frames]
        np.testing.assert_allclose(centres, [(2, 1), (4, 2)])


def test_heat_map_says_what_its_axes_are():
    for options, expected in (
        ({}, ("source", "target")),
        ({"axis_names": ("memory", "asked")}, ("memory", "asked")),
    ):
        axes = plotting.attention_heat_map(
            SOURCES, TARGETS, random_weights(3, 5), **options
        ).axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == expected


def test_heat_map_wants_a_name_for_each_panel():
    with pytest.raises(ValueError, match="one name for each of 2 panels"):
        plotting.attention_heat_map(
            SOURCES, TARGETS, random_weights(2, 3, 5), names=["only one"]
        )


def test_any_token_can_be_drawn(tmp_path):
    sources = ["$x$", "今日", "مرحبا", "नमस्ते", "a\nb", "\\frac", "\ud800"]
    targets = ["$", "$$", b"\xff", "▁", "_{", "%"]
    path = tmp_path / "tokens.png"
    result = plotting.attention_heat_map(
        sources, targets, random_weights(6, 7), path, title="$x^$ $"
    )
    labels = tick_labels(result.axes[0].xaxis)
    assert labels[:4] == sources[:4]
    assert labels[4:] == ["a\\nb", "\\frac", "\\ud800"]
    assert tick_labels(result.axes[0].yaxis)[:3] == ["$", "$$", "\ufffd"]
    assert path.stat().st_size > 0


def test_long_sentences_and_the_shortest_can_be_drawn(tmp_path):
    for num_targets, num_sources in [(1, 1), (90, 70)]:
        path = tmp_path / f"{num_targets}.png"
        plotting.attention_heat_map(
            ["source"] * num_sources,
            ["target"] * num_targets,
            random_weights(num_targets, num_sources),
            path,
        )
        assert path.read_bytes().startswith(b"\x89PNG")


def test_endless_tokens_leave_room_for_the_picture(tmp_path):
    result = plotting.attention_heat_map(
        ["s" * 150, "s" * 24],
        ["t" * 150],
        random_weights(7, 1, 2),
        tmp_path / "picture.png",
        title="word " * 60,
    )
    labels = tick_labels(result.axes[0].xaxis)
    assert labels == ["s" * 23 + "…", "s" * 24]


@pytest.mark.parametrize(
    "shape", [(5, 3), (3, 4), (5,), (1, 2, 3, 5), (0, 3, 5)]
)
def test_weights_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="T=3 target.*Received: shape="):
        plotting.attention_heat_map(SOURCES, TARGETS, np.ones(shape))


def test_empty_and_infinite_weights_are_refused():
    with pytest.raises(ValueError, match="none of them 0"):
        plotting.attention_heat_map([], TARGETS, np.ones((3, 0)))
    with pytest.raises(ValueError, match="finite. Received: nan"):
        plotting.attention_heat_map(["a", "b"], ["c"], [[0.5, math.nan]])


def test_learning_curve_draws_every_epoch_that_has_a_value():
    result = plotting.learning_curve(
        {
            "loss": [4.0, 3.0, 2.0, 1.5],
            "val_loss": [None, 3.5, math.nan, 2.5],
            "val_bleu": [None, 10.0, None, 20.0],
            "accuracy": [0.25, 0.5, 0.5, 0.75],
            "learning_rate": [1.0, 1.0, 1.0, 1.0],
        }
    )
    losses, scores = result.axes
    assert line_points(losses) == {
        "training loss": ([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.5]),
        "validation loss": ([2, 4], [3.5, 2.5]),
    }
    assert line_points(scores) == {
        "validation BLEU": ([2, 4], [10.0, 20.0]),
        "accuracy": ([1, 2, 3, 4], [25.0, 50.0, 50.0, 75.0]),
    }
    assert losses.get_xlabel() == scores.get_xlabel() == "epoch"


def test_learning_curve_has_one_panel_without_scores():
    result = plotting.learning_curve({"loss": [2.0], "val_bleu": [None]})
    assert len(result.axes) == 1


@pytest.mark.parametrize("history", [{}, {"loss": []}, {"lr": [1.0]}])
def test_learning_curve_refuses_a_history_with_nothing_to_draw(history):
    with pytest.raises(ValueError, match="must hold a loss.*Received: "):
        plotting.learning_curve(history)


def test_learning_curve_refuses_lists_of_unequal_length():
    with pytest.raises(ValueError, match="'val_loss': 1"):
        plotting.learning_curve({"loss": [2.0, 1.0], "val_loss": [2.0]})


def row(low, high, sentences, bleu, exact_match=0.0):
    return {
        "low": low,
        "high": high,
        "sentences": sentences,
        "bleu": bleu,
        "exact_match": exact_match,
    }


def test_scores_by_length_puts_each_row_over_its_bin():
    result = plotting.scores_by_length(
        {
            "RNNsearch": [row(0, 5, 20, 30.0), row(11, None, 7, 28.0)],
            "Luong": [row(0, 5, 20, 31.0), row(6, 10, 9, 29.0)],
        }
    )
    axes = result.axes[0]
    assert tick_labels(axes.xaxis) == ["≤ 5\n(20)", "6–10\n(9)", "> 10\n(7)"]
    # Side by side, so that no interval hides another.
    assert line_points(axes) == {
        "RNNsearch": (pytest.approx([-0.03, 1.97]), [30.0, 28.0]),
        "Luong": (pytest.approx([0.03, 1.03]), [31.0, 29.0]),
    }
    assert axes.get_ylabel() == "BLEU"


@pytest.mark.parametrize("length", [2, 24, 25, 34])
def test_long_names_leave_the_lines_their_room(length):
    rows = [row(0, 5, 20, 30.0)]
    names = [name.ljust(length, "x") for name in "ab"]
    result = plotting.scores_by_length(dict.fromkeys(names, rows))
    result.draw_without_rendering()
    assert result.axes[0].get_position().width > 0.8


@pytest.mark.parametrize("length", [8, 25])
def test_no_two_of_many_lines_look_alike(length):
    names = [f"system_{letter}".ljust(length, "x") for letter in "abcdefghijk"]
    rows = [row(0, 5, 20, 30.0)]
    result = plotting.scores_by_length(dict.fromkeys(names, rows))
    looks = {
        (line.get_color(), line.get_marker(), line.get_linestyle())
        for line in result.axes[0].get_lines()
        if line.get_label() in names
    }
    assert len(looks) == len(names)
    result.draw_without_rendering()
    assert result.axes[0].get_position().height > 0.4


def test_learning_curve_has_room_for_its_names():
    names = [
        f"{part}{name}"
        for name in ("bleu", "accuracy", "exact_match")
        for part in ("", "val_")
    ]
    result = plotting.learning_curve(dict.fromkeys(["loss", *names], [0.5]))
    result.draw_without_rendering()
    assert all(axes.get_position().width > 0.4 for axes in result.axes)


def test_scores_by_length_has_a_bar_for_an_interval():
    rows = [row(0, 5, 20, 30.0), {**row(6, 10, 9, 29.0), "interval": 2.0}]
    axes = plotting.scores_by_length({"Luong": rows}).axes[0]
    [bars] = [bars for _, _, (bars,) in axes.containers]
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[30.0, 30.0], [27.0, 31.0]]


@pytest.mark.parametrize("scores", [(99.9, 100.0), (0.0, 0.0), (0.0, 100.0)])
def test_scores_by_length_cuts_no_line(scores):
    low, high = scores
    rows = [row(0, 5, 20, low), {**row(6, 10, 9, high), "interval": 0.5}]
    axes = plotting.scores_by_length({"a": rows}).axes[0]
    bottom, top = axes.get_ylim()
    assert bottom == 0 and top > 1.03 * (high + 0.5)
    assert not any(line.get_clip_on() for line in axes.get_lines()[:1])


def test_errors_by_length_is_logarithmic_and_has_a_place_for_none():
    rows = [row(0, 5, 20, 0.0, 100.0), row(6, 10, 9, 0.0, 99.5)]
    worse = [row(0, 5, 20, 0.0, 90.0), row(6, 10, 9, 0.0, 0.0)]
    axes = plotting.errors_by_length({"a": rows, "b": worse}).axes[0]
    assert line_points(axes) == {
        "a": (pytest.approx([-0.03, 0.97]), [0.0, 0.5]),
        "b": (pytest.approx([0.03, 1.03]), [10.0, 100.0]),
    }
    heights = axes.transData.transform([(0, y) for y in (0, 1, 10, 100)])[:, 1]
    assert (np.diff(heights) > 0).all()
    one, two = np.diff(heights)[1:]
    assert one == pytest.approx(two)  # As far from 1 to 10 as to 100.


def test_scores_by_length_draws_the_metric_asked_for():
    result = plotting.scores_by_length(
        {"$a$": [row(0, 5, 20, 30.0, 12.5)]}, metric="exact_match"
    )
    assert line_points(result.axes[0]) == {"$a$": ([0], [12.5])}
    assert result.axes[0].get_ylabel() == "exact match"


@pytest.mark.parametrize("rows", [{}, {"a": []}, {"a": [{"low": 0}]}])
def test_scores_by_length_refuses_rows_without_the_metric(rows):
    with pytest.raises(ValueError, match="column 'bleu'. Received: "):
        plotting.scores_by_length(rows)


def test_a_model_keeps_its_colour_in_every_picture():
    rows = [row(0, 5, 20, 30.0)]
    colors = set()
    for names in (
        ["one vector", "soft search"],
        ["mine", "soft search", "yours"],
        ["soft search", "soft search 2"],
    ):
        result = plotting.scores_by_length(dict.fromkeys(names, rows))
        lines = dict(zip(names, result.axes[0].get_lines(), strict=True))
        colors.add(lines["soft search"].get_color())
        looks = {
            (line.get_color(), line.get_linestyle()) for line in lines.values()
        }
        assert len(looks) == len(names)
    assert len(colors) == 1
    # No two models of one chapter's picture look alike.
    for names in (
        ("Cho", "Sutskever, backwards", "Sutskever, forwards"),
        ("one vector", "two cursors", "soft search", "soft search 2"),
        ("recurrence", "convolution", "dilated", "attention"),
        ("simple RNN", "LSTM", "LSTMN", "character CNN", "stack"),
        tuple(drawing.TRANSLATORS),
        ("RNN encoder-decoder", "RNNsearch", "Luong", "Transformer"),
    ):
        assert len(set(drawing.looks(names))) == len(names)


@pytest.mark.parametrize(
    "names, same",
    [
        (["RNNsearch", "Luong"], ["rnnsearch", "luong"]),
        (["soft search", "Cho"], ["rnnsearch", "rnn_encoder_decoder"]),
        (["runs/a_luong", "b_rnnsearch"], ["luong", "rnnsearch"]),
        (["x/transformer"], ["Transformer"]),
        (["a_lstm_encoder_decoder"], ["lstm_encoder_decoder"]),
        # A name of its own goes first, and so does the first of two runs.
        (["a_luong", "luong"], ["yours", "luong"]),
        (["a_luong", "b_luong"], ["luong", "yours"]),
        (["mine", "myluong"], ["yours", "another"]),
    ],
)
def test_a_model_has_one_colour_by_all_its_names(names, same):
    assert drawing.looks(names) == drawing.looks(same)


def test_the_models_with_colours_are_in_the_catalogue():
    for name in drawing.TRANSLATORS:
        assert catalog.entry(name.split(",")[0]).task == "translation"


def test_a_notebook_keeps_the_words_about_a_picture():
    figure = drawing.Figure(figsize=(1, 1))
    assert figure._repr_png_().startswith(b"\x89PNG")
    figure.alt = "An empty square."
    picture, metadata = figure._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert metadata == {"alt": "An empty square."}
