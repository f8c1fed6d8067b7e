"""What a training does and shows within an epoch."""

import sys
from collections.abc import Callable

import keras


def verbosity() -> int:
    """How much Keras prints: 1, a bar that moves; 2, a line an epoch.

    A log in a file has no use for the colours and backspaces of a bar.
    """
    output = sys.stdout
    # A notebook shows a bar that moves, and yet is no terminal.
    is_notebook = type(output).__module__.partition(".")[0] == "ipykernel"
    return 1 if output.isatty() or is_notebook else 2


class EverySteps(keras.callbacks.Callback):
    """Calls a function after every `steps` batches of an epoch.

    Args:
        steps: how many batches lie between two calls; 0 for no call.
        function: gets the number of batches that are done in this epoch.
        start: batches of this epoch that were done before `fit` began.
    """

    def __init__(
        self, steps: int, function: Callable[[int], None], start: int = 0
    ):
        super().__init__()
        self.steps = steps
        self.function = function
        self.start = start

    def on_train_batch_end(self, batch, logs=None):
        # Keras counts the batches of each `fit` from 0.
        done = self.start + batch + 1
        if self.steps and done % self.steps == 0:
            self.function(done)
