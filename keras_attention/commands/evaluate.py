"""`keras-attention evaluate`."""

import dataclasses
import json
from typing import Annotated

from cyclopts import Parameter

from keras_attention import config as configuration
from keras_attention.commands import arguments, predict
from keras_attention.config import search
from keras_attention.config.choices import choice


@dataclasses.dataclass(frozen=True)
class Options(search.Search):
    """What to score on, and how."""

    source: str | None = choice(
        None,
        "A file of texts, one a line, plain or compressed. A pair of texts is "
        "one line, with a tab between the two, or a JSON object with their "
        "names. By default the held-out examples of the run's corpus.",
        is_path=True,
    )
    reference: str | None = choice(
        None,
        "A file of the right answers, a line for each of --source. For a "
        "translator they are translations, for a classifier labels. A "
        "language model takes no such file. A translator's --source may have "
        "both instead, with ||| between a text and its translation.",
        is_path=True,
    )
    alignments: str | None = choice(
        None,
        "For translators, a file with the true links of the words, such as "
        "1-1 2-3 3p2, in a line for each pair of the test set. Words have "
        "spaces between them and are counted from 1, the source's first; p "
        "marks a link that is only possible. The JSON then has the alignment "
        "error rate of the attention, and those of a hidden Markov model and "
        "of IBM Model 1.",
        is_path=True,
    )
    corpus: str | None = choice(
        None, "Where the run's corpus is now, if it has moved.", is_path=True
    )
    truncate: bool = choice(
        False,
        "Cut texts that are too long, and count them. A story loses its "
        "beginning, any other text its end. By default, a file with such a "
        "text is refused. Held-out examples of the run's corpus that are too "
        "long are always cut.",
    )
    tokenize: str | None = choice(
        None,
        "For translators, sacrebleu's tokenizer for BLEU, such as zh, "
        "ja-mecab, char or 13a. By default that of the target language.",
    )
    rouge: bool = choice(
        False,
        "For translators that summarise English texts: the JSON also has the "
        "mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L. It needs the extra `rouge`.",
    )
    mbr: bool = choice(
        False,
        "For translators, score the translation that is most like all others "
        "by chrF (minimum Bayes risk), of as many as the search has beams or "
        "draws samples. Add --temperature for samples.",
    )
    comet: bool = choice(
        False,
        "For translators, the JSON also has the score of a network that has "
        "read how people judge translations. It needs the package "
        "unbabel-comet in an environment of its own, whose folder bin is on "
        "the PATH. The package loads the network from the internet.",
    )
    by_length: str | None = choice(
        None,
        "For translators, where to draw BLEU by the length of the source in "
        "MODEL's tokens, with 95 % confidence intervals. Each model's JSON has "
        "the figures as `by_length`.",
        is_path=True,
    )


app = arguments.make_app("evaluate", "Score a model on a test set.")


@app.default
def evaluate(
    model: arguments.Model,
    /,
    *,
    beside: Annotated[
        list[str],
        Parameter(
            consume_multiple=True,
            help="For translators, other models to score first, each "
            "compared with the one before it, and drawn in the same picture. "
            "Put MODEL before this option.",
        ),
    ] = (),
    ensemble: predict.Ensemble = (),
    options: Annotated[Options, arguments.group("Options")] = Options(),
) -> None:
    """Scores a model. The last line that it prints is one JSON object."""
    names = [*beside, model]
    for name in names:
        arguments.check_model(name)
    arguments.check_ensemble(model, ensemble)
    files = [
        arguments.find_file(name, getattr(options, name))
        for name in ("source", "reference")
    ]
    arguments.find_file("alignments", options.alignments)
    is_run = arguments.is_run(model)
    # The models of counts learn from a run's own pairs.
    needs_corpus = is_run and bool(options.alignments or not any(files))
    if options.corpus and not needs_corpus:
        raise ValueError(
            "--corpus is for a run that is scored on its own corpus, or with "
            "--alignments. Leave it out with --source alone, and for a "
            "SavedModel."
        )
    if not (is_run or options.source):
        raise ValueError(
            "A SavedModel has no corpus of its own. Name a test set by "
            "--source, and by --reference unless the model is a language model."
        )
    corpus = options.corpus
    if corpus is None and needs_corpus:
        from keras_attention.training import run_directory

        saved = run_directory.read_config(run_directory.at(model))
        corpus = saved.data.corpus
    configuration.check_corpus(corpus)
    arguments.check_picture(options.by_length)
    _check_scores(options)
    arguments.import_tensorflow()
    from keras_attention.commands import scoring

    for row in scoring.score_models(names, *files, options, ensemble):
        print(json.dumps(row))


def _check_scores(options: Options) -> None:
    """Checks that the packages are there which the scores need."""
    if options.tokenize is not None:
        from keras_attention.evaluation import scores

        scores.check_tokenizer(options.tokenize)
    if options.rouge:
        from keras_attention.evaluation import rouge

        rouge.check_installed()
    if options.comet:
        from keras_attention.evaluation import comet

        comet.check_installed()
