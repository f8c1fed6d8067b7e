"""COMET: how good a neural network finds translations.

The package unbabel-comet computes it. It needs PyTorch, and loads its network
from the internet when it is first used.

Reference:
    Rei et al. (2020), COMET: a neural framework for MT evaluation (arXiv
    2009.09025).
"""

import importlib.metadata
import importlib.util
from collections.abc import Sequence

from keras_attention.evaluation import score_types, scores

NETWORK = "Unbabel/wmt22-comet-da"


def check_installed() -> None:
    """Checks that unbabel-comet is installed.

    Raises:
        ImportError: If it is not.
    """
    if importlib.util.find_spec("comet") is None:
        raise ImportError(
            "COMET needs the package unbabel-comet, which is not installed: "
            "python -m pip install unbabel-comet"
        )


def comet_score(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    network: str = NETWORK,
) -> score_types.Score:
    """The mean score of a network that has read how people judge translations.

    Args:
        sources: The texts that were translated.
        hypotheses: The translations to score.
        references: The right ones, in the same order.
        network: Its name on the Hugging Face hub.

    Returns:
        `{"score": float, "signature": str}`, 100 times the network's mean
        score, and the network with the package's version.

    Raises:
        ImportError: If unbabel-comet is not installed.
        ValueError: If there is nothing to score, or if the lengths differ.
    """
    check_installed()
    scores.check_aligned(
        sources=sources, hypotheses=hypotheses, references=references
    )
    import comet

    model = comet.load_from_checkpoint(comet.download_model(network))
    rows = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(
            sources, hypotheses, references, strict=True
        )
    ]
    found = model.predict(rows, batch_size=8, gpus=0)
    version = importlib.metadata.version("unbabel-comet")
    return {
        "score": 100 * float(found["system_score"]),
        "signature": f"{network}|unbabel-comet:{version}",
    }
