"""`keras-attention align`."""

import json
from typing import Annotated

from keras_attention.commands import arguments

app = arguments.make_app(
    "align",
    "Measure how well the attention of models that were trained on `phrases` "
    "aligns its test split, beside a hidden Markov model and IBM Model 1.",
)


@app.default
def align(
    *folders: Annotated[str, arguments.described("The folders of runs.")],
    picture: Annotated[
        str | None,
        arguments.described(
            "The picture to write: the attention for one number in words, "
            "with the correct links framed."
        ),
    ] = None,
) -> None:
    """Prints a line of JSON for each model, those of counts last."""
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
    source, target = read[0][1].data.source, read[0][1].data.target
    found = {_subject(one) for _, one, _ in read}
    if found != {f"translation of phrases, {source} to {target}"}:
        raise ValueError(
            "align needs runs that were trained on the corpus `phrases` and "
            "translate in the same direction. Found: "
            f"{'; '.join(sorted(found))}."
        )
    devices.share_cores()
    translators = {
        label: restore.load_run(*one)
        for label, one in zip(runs.labels(names), read, strict=True)
    }
    rows = phrase_alignment.measure(translators, source, target, picture)
    for row in rows:
        print(json.dumps(row))


def _subject(choices) -> str:
    """What a run has learned, in words."""
    task, data = choices.task.replace("_", " "), choices.data
    direction = f", {data.source} to {data.target}" if data.target else ""
    return f"{task} of {data.corpus}{direction}"
