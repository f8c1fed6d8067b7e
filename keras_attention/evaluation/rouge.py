"""ROUGE: what a summary shares with the one that a person wrote.

The package rouge-score counts, which the extra `rouge` installs.

Reference:
    Lin (2004), ROUGE: a package for automatic evaluation of summaries.
"""

import importlib.metadata
import importlib.util
from collections.abc import Sequence

from keras_attention.evaluation import score_types, scores

# Our name of a score -> the name that rouge-score has for it.
KINDS = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


def check_installed() -> None:
    """Checks that rouge-score is installed.

    Raises:
        ImportError: If it is not.
    """
    if importlib.util.find_spec("rouge_score") is None:
        raise ImportError(
            "ROUGE needs the package rouge-score, which is not installed. In a "
            'clone of the package: python -m pip install -e ".[rouge]". '
            "Elsewhere: python -m pip install rouge-score"
        )


def rouge_scores(
    hypotheses: Sequence[str], references: Sequence[str]
) -> dict[str, score_types.Score]:
    """The mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L, for texts in English.

    Words are runs of the letters a to z and of digits, in any case, as Porter's
    stemmer leaves them. All other letters are no part of a word: in another
    language the scores mean little.

    Args:
        hypotheses: The summaries to score.
        references: The right ones, in the same order.

    Returns:
        `rouge_1`, `rouge_2` (words, and pairs of words) and `rouge_l` (the
        longest common subsequence), each `{"score": float, "signature": str}`,
        from 0 to 100.

    Raises:
        ImportError: If rouge-score is not installed.
        ValueError: If there is nothing to score, or if the lengths differ.
    """
    check_installed()
    scores.check_aligned(hypotheses=hypotheses, references=references)
    from rouge_score import rouge_scorer

    scorer = rouge_scorer.RougeScorer([*KINDS.values()], use_stemmer=True)
    found = [
        scorer.score(target=reference, prediction=hypothesis)
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    version = importlib.metadata.version("rouge-score")
    return {
        name: {
            "score": 100
            * sum(row[kind].fmeasure for row in found)
            / len(found),
            "signature": f"F1|mean|stem:porter|rouge-score:{version}",
        }
        for name, kind in KINDS.items()
    }
