"""Which columns of a table hold the label and the texts."""

from collections.abc import Sequence

from keras_attention.data.readers import labels

# What headers call a label, and one or two texts, in small letters.
LABELS = (
    *("label", "gold_label", "labels", "class", "category", "sentiment"),
    *("target", "intent", "topic", "answer"),
)
TEXTS = {
    1: [
        (name,)
        for name in ("text", "sentence", "premise", "review", "content")
        + ("question", "tweet", "comment", "document", "title")
    ],
    2: [
        ("premise", "hypothesis"),
        ("sentence1", "sentence2"),
        ("text", "text_pair"),
        ("text1", "text2"),
        ("sentence_a", "sentence_b"),
        ("question1", "question2"),
        ("question", "sentence"),
        ("story", "question"),
    ],
}


def find(
    path, first: list[str] | dict, num_texts: int, names: Sequence[str] = ()
) -> tuple[list, bool]:
    """Finds the columns of label and texts.

    Args:
        path: of the file, for errors.
        first: the first row: cells, or an object.
        num_texts: 1 or 2.
        names: of the columns, label first, or their numbers from 1; none to
            find them by usual names. In a table without a header the label
            is the first of as many columns as are needed.

    Returns:
        `(keys, has_header)`: places in each row, or keys of each object, and
        whether the first row is a header.

    Raises:
        ValueError: If columns are missing, or not told by their names.
    """
    header = {str(name).strip().lower(): key for key, name in _named(first)}
    found = _usual_names(header, num_texts) if not names else None
    is_object = isinstance(first, dict)
    if names and all(name.isdigit() for name in names) and not is_object:
        places = [int(name) - 1 for name in names]
        if not all(0 <= place < len(first) for place in places):
            raise ValueError(
                f"--columns {','.join(names)} names a column that {path} "
                f"does not have. {path} has {len(first)} columns."
            )
        label, *texts = (first[place].strip().lower() for place in places)
        # A row that is no header has a text of several words.
        return places, label in LABELS and not any(" " in t for t in texts)
    if names:
        missing = [name for name in names if name.lower() not in header]
        if missing:
            raise ValueError(
                f"{path} has no column {missing[0]!r}. Its columns: "
                f"{labels.listed(header)}"
            )
        found = names
    if found:
        return [header[name.lower()] for name in found], not is_object
    if is_object or len(first) != num_texts + 1:
        raise ValueError(
            f"{path} begins with {len(first)} columns: "
            f"{labels.listed(header)}. Which are the label and the "
            f"{'text' if num_texts == 1 else 'two texts'}? Name them: "
            f"--columns LABEL{',TEXT' * num_texts}. If this row is not a "
            "header, give their numbers."
        )
    return list(range(num_texts + 1)), False


def _named(first):
    """Pairs of key and name: an object's are the same."""
    if isinstance(first, dict):
        return [(name, name) for name in first]
    return list(enumerate(first))


def _usual_names(header, num_texts) -> tuple[str, ...] | None:
    """The names of label and texts in a header, if it has usual ones."""
    label = next((name for name in LABELS if name in header), None)
    if label is None:
        return None
    for texts in TEXTS[num_texts]:
        if all(text in header for text in texts):
            return (label, *texts)
    others = [name for name in header if name != label]
    # A row that is no header has a text of several words.
    if len(others) == num_texts and not any(" " in name for name in others):
        return (label, *others)
    return None
