"""Lines that follow each other: texts of many lines, and what stands before."""

from collections.abc import Iterator, Sequence


def join(lines: Sequence[str], lengths: Sequence[int], limit: int) -> list[str]:
    """Texts of as many lines in a row as there is room for.

    Args:
        lines: in their order.
        lengths: the tokens of each, END included.
        limit: the most tokens of a text. A longer line is a text of its own.

    Returns:
        Texts, in each a line break between two lines.
    """
    texts, room = [], 0
    for line, length in zip(lines, lengths, strict=True):
        if not texts or length > room:
            texts.append([])
            room = limit
        texts[-1].append(line)
        room -= length
    return ["\n".join(text) for text in texts]


def windows(
    lengths: Sequence[int], limit: int
) -> Iterator[tuple[int, int, int]]:
    """Parts of a stream, each with what stands before it.

    About half of the limit is for the lines before.

    Args:
        lengths: the tokens of each line, END included.
        limit: the most tokens of a window. A longer line stands alone.

    Yields:
        `(first, start, end)`: lines `start` to `end` are scored, after lines
        `first` to `start`. Every line is scored once.
    """
    start = 0
    while start < len(lengths):
        first, room = start, limit - lengths[start]
        before = min(limit // 2, room)
        while first > 0 and lengths[first - 1] <= before:
            first -= 1
            before -= lengths[first]
            room -= lengths[first]
        end = start + 1
        while end < len(lengths) and lengths[end] <= room:
            room -= lengths[end]
            end += 1
        yield first, start, end
        start = end
