"""Learning rates that warm up, or fall from epoch to epoch."""

import itertools

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step.

    `lr(s) = peak min(s / w, sqrt(w / s))`, s = 1, 2, ...: equation 3 of
    Vaswani et al. 2017 with `peak = d_model^-0.5 w^-0.5` (see `for_width`).

    Args:
        peak_learning_rate: the greatest rate, reached at `warmup_steps`.
        warmup_steps: w.

    Reference: https://arxiv.org/abs/1706.03762
    """

    def __init__(self, peak_learning_rate, warmup_steps=4000):
        super().__init__()
        if warmup_steps < 1:
            raise ValueError(
                "`warmup_steps` must be at least 1. "
                f"Received: warmup_steps={warmup_steps}"
            )
        self.peak_learning_rate = peak_learning_rate
        self.warmup_steps = warmup_steps

    @classmethod
    def for_width(cls, hidden_dim, warmup_steps=4000):
        """The paper's own peak for a model of this width."""
        return cls((hidden_dim * warmup_steps) ** -0.5, warmup_steps)

    def __call__(self, step):
        # Keras counts from 0, the paper from 1.
        step = ops.cast(step, "float32") + 1.0
        warmup = float(self.warmup_steps)
        return self.peak_learning_rate * ops.minimum(
            step / warmup, ops.sqrt(warmup / step)
        )

    def get_config(self):
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class Cosine(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then half a cosine down to 0 at the last step.

    `lr(s) = peak min(s / w, (1 + cos(pi (s - w) / (n - w))) / 2)` from w
    on (Loshchilov and Hutter 2016, equation 5, without restarts).

    Args:
        peak_learning_rate: the greatest rate, reached at `warmup_steps`.
        warmup_steps: w.
        num_steps: n, all steps; the rate stays 0 after them.

    Reference: https://arxiv.org/abs/1608.03983
    """

    def __init__(self, peak_learning_rate, warmup_steps, num_steps):
        super().__init__()
        if not 1 <= warmup_steps < num_steps:
            raise ValueError(
                "Expected 1 <= warmup_steps < num_steps. Received: "
                f"warmup_steps={warmup_steps}, num_steps={num_steps}"
            )
        self.peak_learning_rate = peak_learning_rate
        self.warmup_steps = warmup_steps
        self.num_steps = num_steps

    def __call__(self, step):
        # Keras counts from 0. At 0, the first step would have no effect.
        step = ops.cast(step, "float32") + 1.0
        warmup = float(self.warmup_steps)
        progress = (step - warmup) / (self.num_steps - warmup)
        cosine = 0.5 * (1 + ops.cos(3.141592653589793 * progress))
        factor = ops.where(
            step < warmup,
            step / warmup,
            # Behind the last step, the cosine would rise again.
            ops.where(progress < 1, cosine, 0.0),
        )
        return self.peak_learning_rate * factor

    def get_config(self):
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "warmup_steps": self.warmup_steps,
            "num_steps": self.num_steps,
        }


def rate_of_epoch(choices, history) -> float | None:
    """The learning rate of the next epoch, if the schedule is one of epochs.

    ```
    "decay"    rate * factor^max(0, e - n)    e, the epoch, from 1;
                                              n, `constant_epochs`
    "plateau"  rate * factor^k                k, the epochs before it whose
                                              validation perplexity was not
                                              1.0 below that of the one before
    ```

    Zaremba et al. 2014 have the first (section 4.1): n = 4 and a factor of 1/2
    without dropout, other numbers with it. Kim et al. 2016 have the second
    (section 3.1), with a factor of 1/2.

    Args:
        choices: the group `optimizer` of a configuration.
        history: the logs of each epoch that is done.

    Returns:
        The rate, or None for a schedule of steps.
    """
    rate, factor = choices.learning_rate, choices.decay_factor
    if choices.schedule == "decay":
        falls = max(0, len(history) + 1 - choices.constant_epochs)
    elif choices.schedule == "plateau":
        scores = [logs["val_perplexity"] for logs in history]
        falls = sum(
            before - after < 1.0 for before, after in itertools.pairwise(scores)
        )
    else:
        return None
    return rate * factor**falls
