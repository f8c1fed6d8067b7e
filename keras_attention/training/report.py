"""What a finished run shows: scores, pictures, a card, the SavedModel."""

import dataclasses
import json
import pathlib
import shlex
import time

import rich.console
import rich.markup
import rich.table
import yaml

from keras_attention import __version__, evaluation, files, plotting
from keras_attention import config as configuration
from keras_attention.data import corpora, pipeline
from keras_attention.serving import cards
from keras_attention.training import runs

LANGUAGE_NAMES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
}


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Translations of a test set and their scores."""

    split: str
    sources: list
    hypotheses: list
    references: list
    scores: dict
    seconds: float


def evaluate(
    translate, split, sources, references, num_beams=None, truncate=False
) -> Evaluation:
    """Translates a test set and scores it.

    Args:
        translate: the translator.
        split: the set's name.
        sources, references: its texts.
        num_beams, truncate: as for a call of the translator. What is
            truncated is counted, in the scores.
    """
    start = time.monotonic()
    hypotheses = translate(sources, num_beams=num_beams, truncate=truncate)
    seconds = time.monotonic() - start
    scores = evaluation.corpus_scores(hypotheses, references)
    if truncate:
        scores["truncated"] = translate.num_truncated(sources)
    return Evaluation(
        split, list(sources), hypotheses, list(references), scores, seconds
    )


def held_out(config) -> tuple[str, list[str], list[str]]:
    """The first test split of a run's corpus, or its validation split."""
    corpus = corpora.load(config.corpus, config.source, config.target)
    names = sorted(name for name in corpus.splits if name.startswith("test"))
    split = names[0] if names else "validation"
    pairs = corpus.splits[split]
    return (
        split,
        list(pipeline.texts(pairs, "source")),
        list(pipeline.texts(pairs, "target")),
    )


def evaluate_held_out(translate, config) -> Evaluation:
    """Scores a run's translator on the pairs that its corpus held out.

    Of a source over the model's limit, what fits is translated.
    """
    return evaluate(translate, *held_out(config), truncate=True)


def saved_scores(result: Evaluation, config) -> dict:
    """What `scores.json` holds: scores, and what they are scores of."""
    return {
        "split": result.split,
        "num_beams": config.num_beams,
        "length_penalty": config.length_penalty,
        **result.scores,
    }


def read_scores(run: runs.RunDirectory, config) -> dict | None:
    """The scores of a run, unless they are those of another search."""
    if not run.scores.is_file():
        return None
    scores = json.loads(run.scores.read_text())
    search = (scores.get("num_beams"), scores.get("length_penalty"))
    same = search == (config.num_beams, config.length_penalty)
    return scores if same else None


def _choices(config) -> dict:
    """The choices that say what a model is, not where it was made."""
    choices = dataclasses.asdict(config)
    for name in ("output", "resume"):
        choices.pop(name)
    # Its path is this machine's own.
    choices["corpus"] = configuration.corpus_name(config.corpus)
    return choices


def _score_rows(scores: dict) -> str:
    return "\n".join(
        "| {} | {:.2f} | `{}` |".format(
            name,
            scores[name]["score"],
            # A bar would end the cell.
            scores[name]["signature"].replace("|", r"\|"),
        )
        for name in ("bleu", "bleu_lc", "chrf")
    )


def model_card(config, scores: dict, translate) -> str:
    """The README that stands beside an exported model's versions.

    Args:
        config: of the run.
        scores: as `saved_scores` gives them.
        translate: the `Translator` that is exported.
    """
    source = LANGUAGE_NAMES.get(config.source, config.source)
    target = LANGUAGE_NAMES.get(config.target, config.target)
    choices = _choices(config)
    note = " ".join((choices.pop("data_note") or "Unknown.").split())
    return f"""# {source} to {target}: {config.model}

{cards.TAKES_TEXT}
- Data: `{choices["corpus"]}`, {config.source} to {config.target}. {note}
- Seed: {config.seed}
- Training: `keras-attention train --config FILE.yaml`, with the configuration
  below in the file; exported by version {__version__}
- Limits: it knows texts like those of its data, and translates any other text
  too, badly and without a warning.
{cards.facts(translate)}
## Scores on `{scores["split"]}` ({scores["sentences"]:,} sentences)

| score | value | signature |
|---|---|---|
{_score_rows(scores)}
| exact match | {scores["exact_match"]:.2f} % | |

{cards.SIGNATURES}
## Configuration

```yaml
{yaml.safe_dump(choices, sort_keys=False)}```
"""


def draw_attention(translate, texts, path) -> bool:
    """Draws the first text that is not blank; whether there is one."""
    for text in texts:
        (shown,) = translate.with_attention([text], truncate=True)
        if shown["target_tokens"]:
            plotting.attention_heat_map(
                shown["source_tokens"],
                shown["target_tokens"],
                shown["attention"],
                path=path,
            )
            return True
    return False


def _draw(run, translate, result) -> dict[str, pathlib.Path]:
    """The pictures of a run; attention on a long one of the first sentences.

    If all of those are blank, there is none of attention.
    """
    pictures = {
        name: run.path / f"{name}.png"
        for name in ("attention", "learning_curve", "bleu_by_length")
    }
    longest_first = sorted(result.sources[:50], key=len, reverse=True)
    if not draw_attention(translate, longest_first, pictures["attention"]):
        pictures.pop("attention")
    epochs = runs.read_history(run)
    names = sorted({name for logs in epochs for name in logs})
    plotting.learning_curve(
        {name: [logs.get(name) for logs in epochs] for name in names},
        path=pictures["learning_curve"],
    )
    rows = evaluation.bleu_by_length(
        translate.num_tokens(result.sources),
        result.hypotheses,
        result.references,
    )
    plotting.scores_by_length(
        {run.path.name: rows}, path=pictures["bleu_by_length"]
    )
    return pictures


def finish(run: runs.RunDirectory) -> dict:
    """Scores a run's selected weights, draws, exports and prints.

    Args:
        run: a finished run.

    Returns:
        The scores on the held-out pairs.
    """
    config = runs.read_config(run)
    translate = runs.load_run(run.path)
    result = evaluate_held_out(translate, config)
    pictures = _draw(run, translate, result)
    scores = saved_scores(result, config)
    card = model_card(config, scores, translate)
    version = translate.export(run.path / "savedmodel", card)
    files.write_atomically(run.scores, json.dumps(scores, indent=1).encode())
    _print_report(result, pictures, version)
    return result.scores


def _print_report(result, pictures, version) -> None:
    console = rich.console.Console(highlight=False)
    table = rich.table.Table(title=f"{result.split}: translations")
    for column in ("source", "translation", "reference"):
        table.add_column(column)
    rows = zip(
        result.sources, result.hypotheses, result.references, strict=True
    )
    for _, row in zip(range(5), rows, strict=False):
        table.add_row(*(rich.markup.escape(cell) for cell in row))
    console.print(table)
    for name, path in pictures.items():
        print(f"{name.replace('_', ' ')}: {path}")
    print(f"SavedModel: {version}")
    folder = shlex.quote(str(version.parent))
    print(f'use it: keras-attention translate {folder} "TEXT"')
    scores = result.scores
    print(
        f"{result.split}: BLEU {scores['bleu']['score']:.2f} "
        f"({scores['bleu']['signature']}), "
        f"chrF {scores['chrf']['score']:.2f}, "
        f"exact match {scores['exact_match']:.2f} % of "
        f"{scores['sentences']:,} held-out pairs"
    )
