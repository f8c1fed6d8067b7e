"""Pictures: attention heat maps, learning curves, scores by length.

Every function returns a `matplotlib.figure.Figure` that belongs to no window
and leaves no global state changed, so it works in a server, in a thread
(one draws at a time) and in a notebook.
Given a `path` it also writes a PNG there, whole or not at all.
"""

from keras_attention.plotting.curves import learning_curve, scores_by_length
from keras_attention.plotting.heat_map import attention_heat_map

__all__ = ["attention_heat_map", "learning_curve", "scores_by_length"]
