"""Scores beside BLEU and chrF: chrF++ and TER, by sacrebleu.

References:
    Popović (2017), chrF++: words helping character n-grams.
    Snover et al. (2006), A study of translation edit rate with targeted human
    annotation.
"""

from collections.abc import Sequence

from sacrebleu import metrics

from keras_attention.evaluation import score_types, scores


def more_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str | None = None,
) -> dict[str, score_types.Score]:
    """Scores a whole corpus of translations, one reference each.

    TER counts words, so it depends on where a language ends them. Where BLEU's
    tokenizer is not "13a" (see `bleu_tokenizer`), sacrebleu's TER takes each
    character of Chinese and Japanese as a word.

    Args:
        hypotheses: The translations to score, detokenized.
        references: The right translations, in the same order.
        target_language: The language of the texts.

    Returns:
        `chrf++`, chrF with words and pairs of words, and `ter`, the edits for
        100 words of the references: the fewer, the better. Each is `{"score":
        float, "signature": str}`.

    Raises:
        ValueError: If there is nothing to score, or if the lengths differ.

    Example:

    >>> found = more_scores(["the red cat sat"], ["the red cat ran"])
    >>> found["ter"]["score"]
    25.0
    """
    scores.check_aligned(hypotheses=hypotheses, references=references)
    by_letters = scores.bleu_tokenizer(target_language) != "13a"
    ter = metrics.TER(normalized=by_letters, asian_support=by_letters)
    return {
        "chrf++": scores.score_of(
            metrics.CHRF(word_order=2), hypotheses, references
        ),
        "ter": scores.score_of(ter, hypotheses, references),
    }
