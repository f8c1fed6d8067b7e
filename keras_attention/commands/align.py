"""`keras-attention align`."""

import json
from typing import Annotated

from keras_attention.commands import arguments

app = arguments.make_app(
    "align",
    "Measure how well the attention of models that were trained on `phrases` "
    "aligns its test split, beside IBM Model 1.",
)


@app.default
def align(
    *folders: Annotated[str, arguments.described("The folders of runs.")],
    picture: Annotated[
        str | None,
        arguments.described(
            "Where to draw the attention on a number in words, its true links "
            "framed."
        ),
    ] = None,
) -> None:
    """Prints a line of JSON for each model, IBM Model 1 last."""
    names = list(dict.fromkeys(folders))
    if not names:
        raise ValueError("Name the folders of runs.")
    for name in names:
        arguments.check_run(name)
    arguments.check_picture(picture)
    arguments.import_tensorflow()
    from keras_attention import devices, runs
    from keras_attention.evaluation import phrase_alignment
    from keras_attention.training import restore

    read = [runs.read_run(name) for name in names]
    kinds = {
        (one.task, one.data.corpus, one.data.source, one.data.target)
        for _, one, _ in read
    }
    (task, corpus, source, target), *others = sorted(kinds)
    if others or (task, corpus) != ("translation", "phrases"):
        raise ValueError(
            "All runs have to translate the corpus phrases, from one language "
            f"to one other. These are of {sorted(kinds)}."
        )
    devices.share_cores()
    translators = {
        label: restore.load_run(*one)
        for label, one in zip(runs.labels(names), read, strict=True)
    }
    rows = phrase_alignment.measure(translators, source, target, picture)
    for row in rows:
        print(json.dumps(row))
