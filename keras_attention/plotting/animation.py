"""A translation that is being written: a picture for each step, as a GIF."""

import base64
import dataclasses
import html
import io
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends import backend_agg
from PIL import Image

from keras_attention.plotting import drawing, heat_map

# Milliseconds that a step is seen, and the whole at the end.
_STEP, _END = 700, 2500


@dataclasses.dataclass(frozen=True)
class Animation:
    """A moving picture, which a notebook shows.

    Attributes:
        gif: the file.
        num_frames: how many pictures it has.
        alt: what a reader is told who cannot see it.
    """

    gif: bytes = dataclasses.field(repr=False)
    num_frames: int
    alt: str

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.gif).decode()
        return (
            f'<img alt="{html.escape(self.alt)}" '
            f'src="data:image/gif;base64,{data}">'
        )


def animate_attention(
    source_tokens: Sequence[str | bytes],
    target_tokens: Sequence[str | bytes],
    attention_weights: Any,
    path: str | os.PathLike | None = None,
) -> Animation:
    """Draws how a translation is written, token by token.

    Picture t shows the target's tokens up to t, and where each of them looked.
    The newest token is bold. The last picture is that of `attention_heat_map`.
    After it, the animation begins again.

    Args:
        source_tokens, target_tokens: as for `attention_heat_map`.
        attention_weights: `[T, S]`, or `[H, T, S]` for H heads.
        path: where to write the animation, if anywhere: .gif.

    Returns:
        `Animation`, which a notebook shows as the last value of a cell.

    Raises:
        ValueError: If the path has another suffix, or as
            `attention_heat_map`.
    """
    if path is not None and pathlib.Path(path).suffix.lower() != ".gif":
        raise ValueError(
            f"An animation is written as .gif. Received: {os.fspath(path)!r}"
        )
    whole = heat_map.attention_heat_map(
        source_tokens, target_tokens, attention_weights
    )
    with drawing.style():
        frames = _frames(whole, len(target_tokens))
    file = io.BytesIO()
    first, *others = frames
    durations = [_STEP] * len(others) + [_END]
    first.save(
        file, "GIF", save_all=True, append_images=others, loop=0,
        duration=durations,
    )  # fmt: skip
    if path is not None:
        with drawing.written_whole(path) as partial:
            partial.write_bytes(file.getvalue())
    written = " ".join(map(drawing.printable, target_tokens))
    alt = f"Attention, step by step, while this is written: {written}"
    return Animation(file.getvalue(), len(frames), alt)


def _frames(whole, num_steps) -> list[Image.Image]:
    """The picture with its first row, with its first two, and so on."""
    canvas = backend_agg.FigureCanvasAgg(whole)
    whole.set_dpi(100)
    canvas.draw()  # Every token takes its room here, and keeps it.
    whole.set_layout_engine("none")
    # One for each head. The colour bar is none.
    images = [image for panel in whole.axes for image in panel.get_images()]
    weights = [np.array(image.get_array()) for image in images]
    labels = whole.axes[0].get_yticklabels()
    frames = []
    for step in range(num_steps):
        is_hidden = np.arange(num_steps)[:, None] > step
        for image, rows in zip(images, weights, strict=True):
            hidden = np.broadcast_to(is_hidden, rows.shape)
            image.set_data(np.ma.masked_where(hidden, rows))
        for place, label in enumerate(labels):
            label.set_visible(place <= step)
            is_new = place == step < num_steps - 1
            label.set_fontweight("bold" if is_new else "normal")
        canvas.draw()
        # Each has 256 colours of its own: white stays white. A byte a pixel
        # is held, not three.
        seen = Image.fromarray(np.array(canvas.buffer_rgba())).convert("RGB")
        frames.append(seen.quantize(dither=Image.Dither.NONE))
    return frames
