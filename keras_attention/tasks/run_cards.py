"""The card of a run's model: what the model is, and how it was trained."""

import pathlib
from collections.abc import Sequence

from keras_attention import __version__
from keras_attention import config as configuration
from keras_attention.serving import cards


def _choices(config):
    """The choices that say what a model is, not where it was made."""
    # The paths of its corpus and of its first weights are this machine's own.
    name = configuration.corpus_name(config.data.corpus)
    init = config.run.init and pathlib.Path(config.run.init).name
    return configuration.replace(
        config, corpus=name, init=init, output=None, data_note=None
    )


def _rows(rows: Sequence[tuple]) -> str:
    return "\n".join(
        "| {} | {} | {} |".format(
            name,
            value,
            # A bar would end the cell.
            "`" + signature.replace("|", r"\|") + "`" if signature else "",
        )
        for name, value, signature in rows
    )


def card(title, languages, config, scores, rows, servable) -> str:
    """The README that stands beside an exported model's versions.

    Args:
        title: what the model does.
        languages: of the data, behind its name.
        config: of the run.
        scores: as `scores.json` has them.
        rows: `(name, value, signature)` of each score.
        servable: what is exported.
    """
    choices = _choices(config)
    noun = cards.noun(servable.kind)
    counted = "sentences" if servable.kind.texts else f"{noun}s"
    cut = scores.get("truncated")
    cut = f", {cut:,} of them cut to the limit" if cut else ""
    note = " ".join((config.data.data_note or "Unknown.").split())
    return f"""# {title}: {config.architecture.model}

{cards.introduction(servable.kind)}
- Data: `{choices.data.corpus}`{languages}. {note}
{cards.examples(scores.get("examples", ()))}\
- Seed: {config.run.seed}
- Training: `keras-attention train --config FILE.yaml`, with the configuration
  below in the file; exported by version {__version__}
- Limits: it knows {noun}s like those of its data. It answers any other {noun}
  too, badly and without a warning.
{cards.facts(servable.graph)}
## Scores on `{scores["split"]}` ({scores["sentences"]:,} {counted}{cut})

| score | value | signature |
|---|---|---|
{_rows(rows)}

{cards.signatures(servable.kind)}
## Configuration

```yaml
{configuration.text(choices)}```
"""
