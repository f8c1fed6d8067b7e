"""A callback of `fit` that acts within an epoch, as checkpoints need it."""

from collections.abc import Callable

import keras


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
        done = self.start + batch + 1
        if self.steps and done % self.steps == 0:
            self.function(done)
