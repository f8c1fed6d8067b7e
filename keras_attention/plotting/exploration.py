"""What a model did inside, as one page that needs no server."""

import base64
import dataclasses
import html
import json
import os
import pathlib
import re
from typing import Any

import numpy as np

from keras_attention.plotting import drawing

_TEMPLATE = pathlib.Path(__file__).with_name("exploration.html")
_PROGRAM = pathlib.Path(__file__).with_name("exploration.js")
# The server's page has the same views, and loads them one by one.
_VIEWS = pathlib.Path(__file__).parents[1] / "views"
_STYLES = ("look.css", "attention.css", "inside.css")
_TOKENS = ("source_tokens", "pair_tokens", "input_tokens", "target_tokens")
_IMPORT = re.compile(r'^import \{[^}]*\} from ".*?";\n', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Exploration:
    """A page of HTML, which a notebook shows.

    Attributes:
        html: the whole page, with its data, style and program.
    """

    html: str = dataclasses.field(repr=False)

    def _repr_html_(self) -> str:
        return (
            '<iframe title="Inside the model" width="100%" height="700" '
            'sandbox="allow-scripts" '
            f'style="border: 0" srcdoc="{html.escape(self.html)}"></iframe>'
        )


def explore(
    inspection: Any, path: str | os.PathLike | None = None
) -> Exploration:
    """Makes a page of what a model did inside: maps, choices, the beam.

    It has the views of the server's page. Every layer and head is a small map
    that opens on a click, beside the mean of the heads and the rollout. Each
    step has its best tokens. The beam is a tree. The page is one file and loads
    nothing, and it is written whole or not at all. A weight is rounded to
    1/65535 of its map's greatest.

    Args:
        inspection: what `inspect` of a model returned.
        path: where to write the page, if anywhere: .html.

    Returns:
        `Exploration`, which a notebook shows as the last value of a cell.

    Raises:
        ValueError: If the path has another suffix, or if a weight or a
            probability is no number.
    """
    if path is not None and pathlib.Path(path).suffix != ".html":
        raise ValueError(
            f"The page is written as .html. Received: path={os.fspath(path)!r}"
        )
    content = {
        **{name: _shown(getattr(inspection, name)) for name in _TOKENS},
        "num_given": inspection.num_given,
        "probabilities": [float(p) for p in inspection.probabilities],
        "best": [
            [[drawing.printable(token), p] for token, p in step]
            for step in inspection.best
        ],
        "maps": [
            _packed(name, looks) for name, looks in inspection.maps.items()
        ],
        "tree": [
            dataclasses.asdict(node) | {"token": drawing.printable(node.token)}
            for node in inspection.tree
        ],
    }
    # No text can end the element that holds the data.
    written = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
    style = "\n".join((_VIEWS / name).read_text("utf-8") for name in _STYLES)
    page = _TEMPLATE.read_text("utf-8").replace("__STYLE__", style)
    page = page.replace("__PROGRAM__", _program())
    page = page.replace("__DATA__", written)  # The last: it holds any text.
    if path is not None:
        with drawing.written_whole(path) as partial:
            partial.write_text(page, "utf-8")
    return Exploration(page)


def _program() -> str:
    """The modules of the views as a single one: their names are all unlike."""
    modules = [*sorted(_VIEWS.glob("*.js")), _PROGRAM]
    text = "\n".join(module.read_text("utf-8") for module in modules)
    return re.sub("^export ", "", _IMPORT.sub("", text), flags=re.MULTILINE)


def _shown(tokens) -> list[str]:
    return [drawing.printable(token) for token in tokens]


def _packed(name, looks) -> dict:
    """A map with its weights as 16 bits each."""
    num_layers, num_heads = looks.weights.shape[:2]
    greatest = float(looks.weights.max(initial=0.0))
    shares = looks.weights / (greatest or 1.0)
    weights = np.rint(np.clip(shares, 0, 1) * 65535).astype("<u2")
    return {
        "name": name,
        "layers": num_layers,
        "heads": num_heads,
        "rows": _shown(looks.rows),
        "columns": _shown(looks.columns),
        "axes": looks.axes,
        "greatest": greatest,
        "weights": base64.b64encode(weights.tobytes()).decode(),
    }
