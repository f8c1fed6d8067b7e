"""COMET: how good a neural network finds translations.

The package unbabel-comet computes it. It needs PyTorch and older packages than
TensorFlow does, so it cannot be installed beside this package. It has an
environment of its own, whose Python computes the score here. The package loads
its network from the internet when it is first used.

Reference:
    Rei et al. (2020), COMET: a neural framework for MT evaluation (arXiv
    2009.09025).
"""

import json
import pathlib
import shutil
import subprocess
from collections.abc import Sequence

from keras_attention.evaluation import score_types, scores

NETWORK = "Unbabel/wmt22-comet-da"
# What the other Python runs. Its last line is the answer: the package prints
# lines of its own.
PROGRAM = """\
import importlib.metadata
import json
import sys

import comet

network, rows = json.load(sys.stdin)
model = comet.load_from_checkpoint(comet.download_model(network))
found = model.predict(rows, batch_size=8, gpus=0, progress_bar=False)
version = importlib.metadata.version("unbabel-comet")
print()
print(json.dumps([float(found["system_score"]), version]))
"""


def check_installed() -> pathlib.Path:
    """Checks that unbabel-comet is installed somewhere on the PATH.

    Returns:
        The Python of its environment, which stands beside its `comet-score`.

    Raises:
        ImportError: If there is none, or no Python beside it.
    """
    command = shutil.which("comet-score")
    if command is None:
        raise ImportError(
            "COMET needs the package unbabel-comet in an environment of its "
            'own: python -m venv comet && comet/bin/pip install "setuptools<81"'
            ' unbabel-comet && export PATH="$PATH:$PWD/comet/bin"'
        )
    # Tools that install commands put a link to them on the PATH.
    python = pathlib.Path(command).resolve().with_name("python")
    if not python.is_file():
        raise ImportError(
            f"COMET needs the Python that has unbabel-comet, and {python} is "
            "no file. Put the `bin` of its environment on the PATH: its "
            "comet-score must not be a script that calls another."
        )
    return python


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
        RuntimeError: If it ends with an error.
        ValueError: If there is nothing to score, or if the lengths differ.
    """
    python = check_installed()
    scores.check_aligned(
        sources=sources, hypotheses=hypotheses, references=references
    )
    rows = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(
            sources, hypotheses, references, strict=True
        )
    ]
    done = subprocess.run(
        # Without the packages of this environment's PYTHONPATH.
        [python, "-E", "-c", PROGRAM],
        input=json.dumps([network, rows]),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        raise RuntimeError(
            f"unbabel-comet ended with the status {done.returncode}. Its own "
            f"error stands above. It was run by {python}."
        )
    score, version = json.loads(done.stdout.splitlines()[-1])
    return {
        "score": 100 * score,
        "signature": f"{network}|unbabel-comet:{version}",
    }
