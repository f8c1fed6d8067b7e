"""What is said of a model after each epoch: scores and samples."""

import itertools
from collections.abc import Sequence

from keras_attention.evaluation import scores


def validation_logs(
    hypotheses: Sequence[str], references: Sequence[str], **options
) -> dict[str, float]:
    """Scores of translations, as an epoch's logs have them.

    Args:
        hypotheses: the translations.
        references: the right ones.
        options: as for `corpus_scores`.

    Returns:
        `val_bleu`, `val_chrf` and `val_exact_match`, from 0 to 100.
    """
    found = scores.corpus_scores(hypotheses, references, **options)
    return {
        "val_bleu": found["bleu"]["score"],
        "val_chrf": found["chrf"]["score"],
        "val_exact_match": found["exact_match"],
    }


def print_samples(
    epoch: int,
    logs: dict,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    num_samples: int = 3,
) -> None:
    """Prints an epoch's scores, and translations beside their references.

    Args:
        epoch: which one, from 0.
        logs: what `validation_logs` returned.
        sources, hypotheses, references: texts, translations, right ones.
        num_samples: how many are printed.
    """
    print(
        f"\nepoch {epoch + 1}: validation BLEU {logs['val_bleu']:.2f}, "
        f"exact match {logs['val_exact_match']:.1f} %"
    )
    samples = zip(sources, hypotheses, references, strict=True)
    for source, hypothesis, reference in itertools.islice(samples, num_samples):
        print(f"  source      {source}")
        print(f"  translation {hypothesis}")
        print(f"  reference   {reference}")
