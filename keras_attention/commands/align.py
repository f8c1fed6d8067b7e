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
        raise ValueError("Expected the folders of runs. Received: none")
    for name in names:
        arguments.find_run(name)
    arguments.check_picture(picture)
    arguments.import_tensorflow()
    from keras_attention.commands import runs
    from keras_attention.evaluation import phrase_alignment
    from keras_attention.training import run_directory

    data = [
        run_directory.read_config(run_directory.at(name)).data for name in names
    ]
    kinds = {(one.corpus, one.source, one.target) for one in data}
    if len(kinds) > 1 or data[0].corpus != "phrases":
        raise ValueError(
            "Expected runs on the corpus phrases, of one pair of languages. "
            f"Received: {sorted(kinds)}"
        )
    translators = {
        label: runs.load(name)
        for label, name in zip(runs.labels(names), names, strict=True)
    }
    for row in phrase_alignment.measure(
        translators, data[0].source, data[0].target, picture
    ):
        print(json.dumps(row))
