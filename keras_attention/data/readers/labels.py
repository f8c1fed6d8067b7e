"""Labels of texts: which are missing, and which do not belong together."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

# How programs write that there is no label.
MISSING = {"", "-", "null", "NULL", "None", "nan", "NaN", "<NA>"}
MINUS_ONE = {"-1", "-1.0"}
# A byte order mark.
MARK = "\ufeff"


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table, as it was read.

    Args:
        place: where it stands, for errors.
        label: text, a number or a truth value; None if there is none.
        texts: one text or two.
    """

    place: str
    label: object
    texts: tuple[str, ...]


Splits = Mapping[str, Sequence[Row]]


def written(value) -> str:
    """A label as one line of text."""
    return " ".join(str(value).replace(MARK, "").split())


def only_labelled(splits: Splits) -> dict[str, list[Row]]:
    """Splits without the rows that have no label.

    -1 often stands for none. Where 1 is the only other label, it is one.
    """
    found = {written(row.label) for rows in splits.values() for row in rows}
    others = found - MISSING - MINUS_ONE
    is_sign = others and others <= {"1", "+1", "1.0"}
    missing = MISSING if is_sign else MISSING | MINUS_ONE
    return {
        name: [row for row in rows if written(row.label) not in missing]
        for name, rows in splits.items()
    }


def check(splits: Splits) -> None:
    """Refuses labels of several types, and what is no label.

    Raises:
        ValueError: It names the first such row.
    """
    train = splits["train"]
    _check_type(row for rows in splits.values() for row in rows)
    turned = _are_turned(train)
    if turned and len(train) >= 5:
        raise ValueError(
            f"Nearly every row has a label of its own, such as "
            f"{short(train[0].label)} in {train[0].place}. Are the columns the "
            "other way round?"
        )
    classes = {written(row.label) for row in train}
    for row in (row for rows in splits.values() for row in rows):
        label = written(row.label)
        if label not in classes:
            is_text = turned or len(label) > 60
            raise ValueError(
                f"{row.place} has the label {short(label)}, which no row of "
                f"train has. Labels of train: {listed(classes)}."
                + " Are the columns the other way round?"
                * is_text
            )


def _check_type(rows) -> None:
    first = None
    of_number: dict[float, Row] = {}
    for row in rows:
        first = first or row
        if type(row.label) is not type(first.label):
            raise ValueError(
                f"All labels must be of one type. {first.place} has "
                f"{short(first.label)}, {row.place} has {short(row.label)}."
            )
        try:
            other = of_number.setdefault(float(row.label), row)
        except ValueError:
            continue  # It is no number.
        if written(other.label) != written(row.label):
            raise ValueError(
                f"{other.place} has the label {other.label!r}, {row.place} has "
                f"{row.label!r}. Write a number in one way."
            )


def _are_turned(rows: Sequence[Row]) -> bool:
    """Whether labels are nearly all different, and some texts less so."""
    labels = {written(row.label) for row in rows}
    columns = zip(*(row.texts for row in rows), strict=True)
    fewest = min(len(set(column)) for column in columns)
    return len(labels) > max(0.8 * len(rows), fewest)


def listed(labels: Collection[str]) -> str:
    """Some labels, and how many more there are."""
    # A set has no order that stays.
    first = (sorted(labels) if isinstance(labels, set) else list(labels))[:10]
    more = len(labels) - len(first)
    return ", ".join(map(short, first)) + (
        f" and {more:,} more" if more else ""
    )


def short(value) -> str:
    """A value as an error shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
