"""Callbacks of `fit`: scores and samples after an epoch, calls within one."""

from collections.abc import Callable, Sequence

import keras

from keras_attention import evaluation
from keras_attention.training.callbacks import EverySteps

__all__ = ["EverySteps", "TranslationScores"]


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
        target_language: the code of the references' language, by which BLEU
            cuts them into words. Chinese and Japanese need it.
    """

    def __init__(
        self,
        translate: Callable[[Sequence[str]], list[str]],
        sources: Sequence[str],
        references: Sequence[str],
        num_samples: int = 3,
        write: Callable[[str], None] = print,
        target_language: str | None = None,
    ):
        super().__init__()
        self.translate = translate
        self.sources = sources
        self.references = references
        self.num_samples = num_samples
        self.write = write
        self.target_language = target_language

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        hypotheses = self.translate(self.sources)
        logs |= evaluation.validation_logs(
            hypotheses, self.references, target_language=self.target_language
        )
        evaluation.print_samples(
            epoch,
            logs,
            self.sources,
            hypotheses,
            self.references,
            self.num_samples,
            self.write,
        )
