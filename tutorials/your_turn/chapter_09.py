"""Chapter 9: an answer in rows."""

import json


def right(columns):
    (first, *_), num_names = columns.values(), len(columns)
    rows = []
    for row in range(len(first)):
        if num_names == 1:
            rows.append(first[row])
        else:
            rows.append({name: columns[name][row] for name in columns})
    return rows


def _always_named(columns):
    (first, *_) = columns.values()
    return [
        {name: columns[name][row] for name in columns}
        for row in range(len(first))
    ]


cases = [
    ({"translation": ["ein"], "score": [-0.5]},),
    ({"translation": ["ein", "zwei", "drei"]},),
    ({"label": ["a", "b", "c"], "probability": [0.5, 0.25, 1.0]},),
]
mistakes = {
    "These are columns still: one list for each name. A row has one value for "
    "each name.": lambda columns: columns,
    "If there is one output only, its name is left out: a row is the value "
    "itself.": _always_named,
    "The names are missing. A row is a dictionary if there are two outputs or "
    "more.": lambda columns: [
        row if not isinstance(row, dict) else list(row.values())
        for row in right(columns)
    ],
    "This is the first row alone.": lambda columns: right(columns)[:1],
}

_row = {"instances": [{"text": "one"}, {"text": "two"}]}
_lengths = [3, 7, 5]
answers = {
    "a": len(json.loads(json.dumps(_row))["instances"]),
    "b": sum(max(_lengths) - length for length in _lengths),
    "c": -3 / ((5 + 7) / 6),
}
