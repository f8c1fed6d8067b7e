"""What a mistyped name may have meant."""

import difflib
from collections.abc import Iterable


def closest(received, names: Iterable) -> str:
    """The name that a mistyped one is closest to, as a question, or nothing.

    Args:
        received: what was typed.
        names: those that there are.

    Returns:
        Such as " (did you mean transformer?)", the end of a sentence; "" if no
        name is close.
    """
    close = difflib.get_close_matches(str(received), map(str, names), 1)
    return f" (did you mean {close[0]}?)" if close else ""
