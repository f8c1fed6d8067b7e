"""What all pictures share: colours, fonts, whole files."""

import contextlib
import io
import itertools
import os
import pathlib
import re
import threading
import warnings
from collections.abc import Iterable, Iterator

import matplotlib as mpl
from matplotlib import collections, container, font_manager, lines, patches
from matplotlib import figure as mpl_figure

# Okabe and Ito's palette, which readers of any colour vision can tell apart.
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")
# What has a name of its own keeps its colour in every picture: blue has one
# state and no attention, orange has attention beside a recurrence, green has
# attention alone, pink and yellow have convolutions. See `looks`.
_ONE_STATE, _SEARCH, _TRANSFORMER, _CONVOLUTION = range(4)
# Translators by their names in the catalogue. From 7 on a line has dashes, from
# 14 on dots, from 21 on both.
TRANSLATORS = {
    "rnn_encoder_decoder": _ONE_STATE,
    "lstm_encoder_decoder": _ONE_STATE + 7,
    "rnnsearch": _SEARCH,
    "luong": _SEARCH + 7,
    "luong, both directions": _SEARCH + 14,
    "luong, local-p": _SEARCH + 21,
    "transformer": _TRANSFORMER,
    "roformer": _TRANSFORMER + 7,
    "conv_seq2seq": _CONVOLUTION,
    "extended_neural_gpu": _CONVOLUTION + 7,
    "bytenet": 4,
}
LOOKS = {
    **TRANSLATORS,
    "RNN encoder-decoder": _ONE_STATE,
    "RNNsearch": _SEARCH,
    "Luong": _SEARCH + 7,
    "Cho": _ONE_STATE,
    "one vector": _ONE_STATE,
    "recurrence": _ONE_STATE,
    "simple RNN": _ONE_STATE,
    "state of a GRU, writing": _ONE_STATE,
    "summary of 128, no waist": _ONE_STATE,
    "Sutskever, backwards": _ONE_STATE + 7,
    "Sutskever, forwards": _ONE_STATE + 14,
    "summary of 8": _ONE_STATE + 7,
    "summary of 2": _ONE_STATE + 14,
    "LSTM": 5,
    "LSTMN": _SEARCH,
    "soft search": _SEARCH,
    "soft search 2": _SEARCH + 7,
    "Transformer": _TRANSFORMER,
    "attention": _TRANSFORMER,
    "cache, writing": _TRANSFORMER,
    "stack": _TRANSFORMER,
    "character CNN": _CONVOLUTION,
    "convolution": _CONVOLUTION,
    "dilated": 4,
    "two cursors": 4,
}
INK = "#333333"
# What has a name in a legend, and the names that Matplotlib gives by itself.
_WITH_LABEL = (
    lines.Line2D, patches.Patch, collections.Collection, container.Container,
)  # fmt: skip
_NO_NAME = re.compile(r"|_nolegend_|_(child|container)\d+")
# The formats of pictures, by the suffix of their file.
SUFFIXES = (".png", ".svg", ".pdf")
MOVING = ".gif"
_NO_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
# The first font draws most alphabets; the others, if installed, fill its gaps.
FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK JP", "Noto Sans Arabic",
    "Noto Sans Devanagari", "Arial Unicode MS", "Hiragino Sans",
)  # fmt: skip
STYLE = {
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.labelsize": 12,
    "axes.titlesize": 11,
    "font.size": 11,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 5.5,
    "text.color": INK,
    "xtick.color": INK,
    "xtick.major.size": 0,
    "ytick.color": INK,
    "ytick.major.size": 0,
}


def looks(names: Iterable[str]) -> list[int]:
    """A number for each name of a picture: its colour, marker and dash.

    Names of `LOOKS` have theirs. A run whose name ends with that of a
    translator has the translator's, unless another line has it. The others get
    the numbers that are left, in order. From 7 on the colours begin again, with
    another dash.

    Args:
        names: What stands in the picture's legend.
    """
    names = list(names)
    found = [LOOKS.get(name) for name in names]
    for index, name in enumerate(names):
        if found[index] is None and (look := _look_of_run(name)) not in found:
            found[index] = look
    free = (index for index in itertools.count() if index not in found)
    return [next(free) if look is None else look for look in found]


def _look_of_run(name):
    """Of `multi30k_en_de_luong`, that of `luong`; None if it names no model."""
    ends = [
        model
        for model in TRANSLATORS
        if name.endswith((f"_{model}", f"/{model}"))
    ]
    return TRANSLATORS[max(ends, key=len)] if ends else None


def finish(axes):
    """A light grid, two open sides and a legend, if any, above the lines.

    A label may begin with an underscore, which Matplotlib would leave out.
    """
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    named = [
        artist
        for artist in (*axes.get_children(), *axes.containers)
        if isinstance(artist, _WITH_LABEL)
        and not _NO_NAME.fullmatch(str(artist.get_label()))
    ]
    if not named:
        return
    labels = [str(artist.get_label()) for artist in named]
    legend = axes.legend(
        named, [f" {label}" for label in labels],
        loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2,
        ncols=num_columns(labels),
        columnspacing=1.4, handlelength=2.4,
    )  # fmt: skip
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)
        text.set_parse_math(False)


def num_columns(labels):
    """Columns of a legend: two long names would take the room of the lines."""
    return 1 if max(map(len, labels)) > 24 else 2


def printable(token):
    """A token as text, with what cannot be seen (a newline, say) escaped."""
    if isinstance(token, bytes):
        token = token.decode("utf-8", "replace")
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in str(token)
    )


# Matplotlib's settings and the filters of warnings belong to all threads.
_ONE_DRAWS = threading.RLock()


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Our look, and no complaint about an alphabet that no font here has."""
    installed = set(font_manager.get_font_names())
    fonts = [name for name in FONTS if name in installed]
    style = {**STYLE, "font.family": fonts or ["sans-serif"]}
    with _ONE_DRAWS, mpl.rc_context(style), warnings.catch_warnings():
        for message in ("Glyph .* missing from", "Matplotlib currently does"):
            warnings.filterwarnings("ignore", message=message)
        yield


class Figure(mpl_figure.Figure):
    """Matplotlib's figure, which a notebook shows without its `pyplot`.

    Its `alt` is what a reader is told who cannot see the picture. A notebook
    keeps it beside the picture.
    """

    alt = ""

    def _repr_png_(self):
        picture = io.BytesIO()
        with style():
            self.savefig(picture, format="png", dpi=120, facecolor="white")
        if self.alt:
            return picture.getvalue(), {"alt": self.alt}
        return picture.getvalue()


def check_path(path, suffixes=SUFFIXES):
    """Refuses a path whose suffix names no format of pictures.

    For whoever computes long before a picture is drawn.

    Args:
        path: Where a picture is to be written, or None.
        suffixes: The formats that there are.

    Raises:
        ValueError: If it ends in none of these.
    """
    if path is not None and _suffix(path) not in suffixes:
        *others, last = suffixes
        raise ValueError(
            f"The name of a picture must end in {', '.join(others)} or {last}. "
            f"Received: {str(path)!r}"
        )


def _suffix(path):
    return pathlib.Path(path).suffix.lower()


def save(result, path):
    """Writes a figure beside `path` and moves it there in one step.

    Args:
        result: The figure.
        path: Where to. The suffix says in which format: .png, .svg or .pdf.
            None writes nothing.

    Returns:
        The figure.

    Raises:
        ValueError: If the path has another suffix.
    """
    check_path(path)
    if path is None:
        return result
    with written_whole(path) as partial:
        result.savefig(
            partial,
            format=_suffix(path)[1:],
            dpi=200,
            facecolor="white",
            # The time of writing would make each file another.
            metadata=_NO_DATE.get(_suffix(path)),
        )
    return result


@contextlib.contextmanager
def written_whole(path) -> Iterator[pathlib.Path]:
    """A file to write, which moves to `path` once it is whole.

    Args:
        path: Where to. Its folder is made if it is not there.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
