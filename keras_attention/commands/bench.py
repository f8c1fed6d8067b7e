"""`keras-attention bench`."""

import dataclasses
import json
import typing
from typing import Annotated, Literal

from keras_attention import config as configuration
from keras_attention.commands import arguments
from keras_attention.config.choices import Choices, choice


@dataclasses.dataclass(frozen=True)
class Options(Choices):
    """The workload."""

    size: Literal["S", "B", "R"] = choice(
        "S", "Transformer tiny (S) or base (B), or RNNsearch (R)."
    )
    corpus: str = choice("phrases", "As for `train`.", is_path=True)
    source: str = choice("en", "The language code of the source.")
    target: str = choice("de", "The language code of the target.")
    precision: Literal["float32", "bfloat16"] = choice(
        "float32", "The precision of activations in training."
    )
    num_beams: int = choice(1, "Beams of the search.", at_least=1)
    batch_size: int = choice(64, "Sentences of each search.", at_least=1)
    seconds: float = choice(30.0, "The time of each measure.", above=0)


Measure = Literal["train", "decode", "pipeline", "start"]
app = arguments.make_app("bench", "Measure the speed on this machine.")


@app.default
def bench(
    what: Annotated[
        Measure,
        arguments.described(
            "Training through `fit`, translation by an exported SavedModel, "
            "the input pipeline alone, or the time until something answers."
        ),
    ],
    /,
    *,
    options: Annotated[Options, arguments.group("Options")] = Options(),
) -> None:
    """Measures. The last line that it prints is one JSON object."""
    measures = typing.get_args(Measure)
    if what not in measures:
        raise ValueError(
            f"Expected one of {', '.join(measures)}. Received: {what}"
        )
    configuration.check_corpus(options.corpus)
    arguments.import_tensorflow()
    from keras_attention.commands import benchmark

    result = benchmark.measure(what, options)
    for name, value in result.items():
        value = f"{value:,.3f}" if isinstance(value, float) else value
        print(f"{name:28} {value}")
    print(json.dumps(result))
