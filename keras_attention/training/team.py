"""The workers that train one model: they agree, wait, and miss a lost one."""

import contextlib
import os
import re
import zlib

import tensorflow as tf

from keras_attention import workers

# What a collective operation raises when another process has ended.
_LOSSES = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
)


class Team:
    """All workers of a training. A process that trains alone is one, too.

    Args:
        strategy: from `devices.make_strategy`.

    Attributes:
        size: the number of workers.
        leads: whether this one writes what all of them have trained.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        found = workers.from_environment()
        self.strategy = strategy
        self.size, self.leads = found.count, found.leads

    def _sum(self, value: float) -> float:
        """The sum over all replicas of all workers, which it waits for."""

        @tf.function(autograph=False)
        def add(value):
            one = tf.identity(value)
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, one)

        added = self.strategy.run(add, (tf.constant(value, tf.float64),))
        return float(self.strategy.experimental_local_results(added)[0])

    def wait(self) -> None:
        """Returns when all workers have come here."""
        if self.size > 1:
            self._sum(0.0)

    def agree(self, text: str) -> None:
        """Compares a text on all workers, and waits for all of them.

        Raises:
            ValueError: If a worker has another text.
        """
        if self.size == 1:
            return
        # Sums of such numbers are exact.
        own = float(zlib.crc32(text.encode()))
        if self._sum(own) != own * self.strategy.num_replicas_in_sync:
            raise ValueError(
                f"Expected the same choices on all {self.size} workers: start "
                "each of them with the same command. Received: others here "
                "than elsewhere"
            )

    @contextlib.contextmanager
    def leader_first(self):
        """Lets the others begin when the leader has ended: with files."""
        if not self.leads:
            self.wait()
        yield
        if self.leads:
            self.wait()

    @contextlib.contextmanager
    def at_work(self):
        """Lets the leader alone print, and says so if a worker is lost.

        Raises:
            ConnectionError: If a worker is lost.
        """
        try:
            with contextlib.ExitStack() as stack:
                if not self.leads:
                    nowhere = stack.enter_context(open(os.devnull, "w"))
                    stack.enter_context(contextlib.redirect_stdout(nowhere))
                yield
        except _LOSSES as error:
            if self.size == 1:
                raise
            # Among the names of operations: what happened.
            found = re.search(r"aborted by: (.*)", error.message)
            reason = found.group(1) if found else type(error).__name__
            raise ConnectionError(
                f"Expected all {self.size} workers to the end: one is lost, "
                "and its own output may say why. Stop the others, and start "
                f"all of them again with --resume. Received: {reason}"
            ) from error
