"""What each choice of a text may be, as the guide says it, and what not."""

import numpy as np

MOST = 2**31 - 1
BOTH = {"no_repeat_ngram_size": (0, MOST), "min_length": (0, MOST)}
# Signature -> choice -> the least and the most that it may be, both included.
# The most beams are those of the export.
LIMITS = {
    "search": {
        "num_beams": (1, None),
        "length_penalty": (0, 10),
        "coverage_penalty": (0, 100),
        **BOTH,
    },
    "sample": {
        "temperature": (0.001, 1000),
        "top_k": (0, MOST),
        "top_p": (0.000001, 1),
        "min_p": (0, 1),
        "sampling_seed": (0, 2**43 - 1),
        **BOTH,
    },
}
ROWS = [(name, choice) for name, limits in LIMITS.items() for choice in limits]


def of(kind, name, choice):
    """The limits of a choice in words, the two, and the two beside them.

    Args:
        kind: `kinds.Kind` of a translator.
        name: of its signature.
        choice: one of its numbers.
    """
    least, most = LIMITS[name][choice]
    most = kind.num_beams if most is None else most
    words = rf"{choice} must be from {least} to {most}\b"
    if isinstance(kind.signatures[name].choices[choice], int):
        return words, (least, most), (least - 1, most + 1)
    limits = np.float32([least, most])
    below, above = np.nextafter(limits, np.float32([-np.inf, np.inf]))
    # To a processor, the number next to 0 may be 0.
    below = below if least else -1e-30
    return words, (float(least), float(most)), (float(below), float(above))
