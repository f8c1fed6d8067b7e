"""Pictures: attention heat maps, learning curves, scores.

Every function returns a `matplotlib.figure.Figure` that belongs to no window
and leaves no global state changed, so it works in a server, in a thread
(one draws at a time) and in a notebook.
Given a `path` it also writes a picture there, whole or not at all, in the
format of the path's suffix: .png, .svg or .pdf.

`animate_attention` makes a GIF, and `explore` a page of HTML, of what a model
did inside.
"""

from keras_attention.plotting import drawing
from keras_attention.plotting.animation import Animation, animate_attention
from keras_attention.plotting.curves import (
    errors_by_length,
    learning_curve,
    scores_by_length,
)
from keras_attention.plotting.exploration import Exploration, explore
from keras_attention.plotting.heat_map import attention_heat_map

__all__ = [
    "Animation",
    "Exploration",
    "animate_attention",
    "attention_heat_map",
    "drawing",
    "errors_by_length",
    "explore",
    "learning_curve",
    "scores_by_length",
]
