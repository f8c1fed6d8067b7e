"""A translation that is being written: a picture for each token."""

import io

import numpy as np
import pytest
from matplotlib.backends import backend_agg
from PIL import Image

from keras_attention import plotting
from keras_attention.commands import arguments
from keras_attention.tasks import translation

SOURCES = ["▁The", "▁old", "▁dog", "▁sleeps", "[END]"]
TARGETS = ["▁Der", "▁Hund", "[END]"]
WEIGHTS = np.array(
    [[0.1, 0.2, 0.3, 0.4, 0], [0, 0, 1, 0, 0], [0.2, 0.2, 0.2, 0.2, 0.2]]
)


def frames(gif):
    """RGB, [height, width, 3] each, and how long each is seen."""
    picture = Image.open(io.BytesIO(gif))
    found, durations = [], []
    for index in range(picture.n_frames):
        picture.seek(index)
        found.append(np.array(picture.convert("RGB")).astype(int))
        durations.append(picture.info["duration"])
    return found, durations


def cells(figure):
    """The pixel in the middle of each cell of the whole picture: [T, S, 2]."""
    panel = figure.axes[0]
    height = figure.canvas.get_width_height()[1]
    middles = [
        panel.transData.transform([(source, target) for source in range(5)])
        for target in range(3)
    ]
    return [
        [(round(height - y), round(x)) for x, y in middle] for middle in middles
    ]


def whole_picture():
    figure = plotting.attention_heat_map(SOURCES, TARGETS, WEIGHTS)
    figure.set_dpi(100)
    canvas = backend_agg.FigureCanvasAgg(figure)
    canvas.draw()
    return figure, np.array(canvas.buffer_rgba())[..., :3].astype(int)


def test_a_frame_has_one_byte_a_pixel():
    figure = plotting.attention_heat_map(SOURCES, TARGETS, WEIGHTS)
    found = plotting.animation._frames(figure, len(TARGETS))
    assert [frame.mode for frame in found] == ["P"] * 3


def test_a_token_more_is_seen_in_each_picture():
    animation = plotting.animate_attention(SOURCES, TARGETS, WEIGHTS)
    found, durations = frames(animation.gif)
    assert len(found) == animation.num_frames == 3
    assert durations[0] == durations[1] < durations[2]
    figure, whole = whole_picture()
    # A GIF has 256 colours.
    assert np.abs(found[-1] - whole).max() <= 12
    places = cells(figure)
    for step, frame in enumerate(found):
        assert frame.shape == whole.shape
        for target, row in enumerate(places):
            for y, x in row:
                expected = whole[y, x] if target <= step else [255] * 3
                assert np.abs(frame[y, x] - expected).max() <= 2
    # What differs between the first two: the second row, and the labels left
    # of it and of the first, which is bold no longer.
    changed = np.argwhere(np.abs(found[1] - found[0]).max(axis=-1) > 30)
    heights = [row[0][0] for row in places]
    half = (heights[1] - heights[0]) // 2
    assert heights[0] - half <= changed[:, 0].min()
    assert changed[:, 0].max() <= heights[1] + half


def test_heads_are_written_side_by_side():
    heads = np.stack([WEIGHTS, WEIGHTS[:, ::-1], np.full((3, 5), 0.2)])
    animation = plotting.animate_attention(SOURCES, TARGETS, heads)
    found, _ = frames(animation.gif)
    assert len(found) == 3
    # Every panel gains ink.
    width = found[0].shape[1]
    for first, last in ((0, width // 2), (width // 2, width)):
        changed = found[0][:, first:last] != found[-1][:, first:last]
        assert changed.any()


def test_the_file_is_whole_and_shown_with_words(tmp_path):
    path = tmp_path / "new" / "a.GIF"
    animation = plotting.animate_attention(SOURCES, TARGETS, WEIGHTS, path)
    assert path.read_bytes() == animation.gif
    assert animation.gif.startswith(b"GIF89a")
    assert [one.name for one in path.parent.iterdir()] == ["a.GIF"]
    shown = animation._repr_html_()
    assert "written: ▁Der ▁Hund [END]" in shown
    assert "data:image/gif;base64,R0lGOD" in shown


@pytest.mark.parametrize("name", ["a.png", "a", "a.gif.html"])
def test_another_suffix_is_refused(name, tmp_path):
    with pytest.raises(
        ValueError, match=f"written as .gif. Received: .*{name}"
    ):
        plotting.animate_attention(SOURCES, TARGETS, WEIGHTS, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_weights_of_another_shape_are_refused(tmp_path):
    with pytest.raises(ValueError, match="T=3 target and S=5 source"):
        plotting.animate_attention(
            SOURCES, TARGETS, WEIGHTS.T, tmp_path / "a.gif"
        )
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_knows_what_may_move():
    arguments.check_picture("a.gif", may_move=True)
    arguments.check_picture("a.png", may_move=True)
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf\. .*a\.gif"):
        arguments.check_picture("a.gif")
    with pytest.raises(ValueError, match=r"\.pdf or \.gif\. Received: 'a\.mp4"):
        arguments.check_picture("a.mp4", may_move=True)


class Looks:
    """A translator whose attention is known."""

    def with_attention(self, texts, truncate):
        assert truncate
        shown = {"source_tokens": SOURCES, "target_tokens": TARGETS}
        if not texts[0]:
            shown["target_tokens"] = []
        return [shown | {"attention": WEIGHTS}]


def test_the_suffix_says_whether_it_moves(tmp_path):
    for name, begin in (("a.gif", b"GIF89a"), ("a.png", b"\x89PNG")):
        path = tmp_path / name
        assert translation.draw_attention(Looks(), ["", "a dog"], path)
        assert path.read_bytes().startswith(begin)
    path = tmp_path / "none.gif"
    assert not translation.draw_attention(Looks(), [""], path)
    assert not path.exists()
