"""Callbacks of `fit`: scores, samples, checkpoints."""

from collections.abc import Callable, Sequence

import keras

from keras_attention import evaluation


class TranslationScores(keras.callbacks.Callback):
    """Translates held-out sentences after each epoch.

    Adds `val_bleu`, `val_chrf` and `val_exact_match` to the epoch's logs,
    and prints a few translations beside their references.

    Args:
        translate: a function of a list of texts, which returns their
            translations.
        sources, references: held-out pairs.
        num_samples: how many translations are printed.
        write: where they are printed.
    """

    def __init__(
        self,
        translate: Callable[[Sequence[str]], list[str]],
        sources: Sequence[str],
        references: Sequence[str],
        num_samples: int = 3,
        write: Callable[[str], None] = print,
    ):
        super().__init__()
        self.translate = translate
        self.sources = sources
        self.references = references
        self.num_samples = num_samples
        self.write = write

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        hypotheses = self.translate(self.sources)
        logs |= evaluation.validation_logs(hypotheses, self.references)
        evaluation.print_samples(
            epoch,
            logs,
            self.sources,
            hypotheses,
            self.references,
            self.num_samples,
            self.write,
        )


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
