"""Pairs of texts with labels: whether the second follows from the first."""

from keras_attention.data import columns
from keras_attention.data.embedded import multisets
from keras_attention.serving import kinds
from keras_attention.tasks import classification


class Entailment(classification.Classification):
    """Gives a pair of texts its label.

    In Python, a pair is a tuple. In files and on the command line, a tab stands
    between the two.
    """

    name = "entailment"
    columns = {
        "label": columns.Class(),
        "source": columns.Text(),
        "pair": columns.Text(),
    }
    headings = ("texts", "label", "right label")
    embedded = {"multisets": multisets}
    kind = kinds.ENTAILMENT
