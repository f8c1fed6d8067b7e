"""From a configuration to trained weights in a folder of their own."""

import typing

from keras_attention import on_demand

__all__ = [
    "losses",
    "metrics",
    "objectives",
    "optimizers",
    "run_directory",
    "schedules",
    "trainer",
]

if typing.TYPE_CHECKING:
    from keras_attention.training import (
        losses,
        metrics,
        objectives,
        optimizers,
        run_directory,
        schedules,
        trainer,
    )
else:
    __getattr__, __dir__ = on_demand.modules(__name__, __all__)
