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
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)
# These, too. But an operation of this process alone may raise them as well.
_PERHAPS_LOSSES = (
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
)
# How a message of TensorFlow goes on that is about another process.
_REASON = re.compile(r"(?:[Cc]ollective ops is aborted by: |(?=NCCL))(.*)")


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

    def _gather(self, value: float) -> list[float]:
        """The values of all workers, which it waits for."""
        if self.size == 1:
            return [value]
        count = self.strategy.num_replicas_in_sync

        # A sum is what strategies do best: each adds its own in its own place.
        # In float64, a checksum of 32 bits is exact.
        @tf.function(autograph=False)
        def add(value):
            context = tf.distribute.get_replica_context()
            place = context.replica_id_in_sync_group
            own = value * tf.one_hot(place, count, dtype=tf.float64)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

        added = self.strategy.run(add, (tf.constant(value, tf.float64),))
        of_replicas = self.strategy.experimental_local_results(added)[0]
        return of_replicas.numpy()[:: count // self.size].tolist()

    def agree(self, what: str, text: str, remedy: str) -> None:
        """Compares a text on all workers, and waits for all of them.

        Args:
            what: of what the text is.
            text: as it is here.
            remedy: how all workers come to have the same.

        Raises:
            ValueError: If a worker has another text, on all workers.
        """
        checksums = self._gather(float(zlib.crc32(text.encode())))
        if len({*checksums}) > 1:
            found = ", ".join(
                f"{int(checksum):08x} on worker {rank}"
                for rank, checksum in enumerate(checksums)
            )
            raise ValueError(
                f"The {self.size} workers have different {what}: {remedy}. "
                f"(Checksums: {found}.)"
            )

    @contextlib.contextmanager
    def together(self):
        """Waits for all workers behind its block, and ends all if one fails.

        The block has no operation that all workers take part in.

        Raises:
            ConnectionError: If another worker has failed in the block.
        """
        try:
            yield
        except Exception:
            # The others wait for news: they would wait for ever.
            with contextlib.suppress(*_LOSSES, *_PERHAPS_LOSSES):
                self._gather(1.0)
            raise
        failed = [rank for rank, one in enumerate(self._gather(0.0)) if one]
        if failed:
            raise ConnectionError(
                f"Worker {failed[0]} has failed. Its own output says why."
            )

    @contextlib.contextmanager
    def leader_first(self):
        """Lets the others begin when the leader has ended: with files.

        Raises:
            ConnectionError: If another worker has failed in the block.
        """
        if not self.leads:
            with self.together():
                pass  # The leader is at it.
        with self.together():
            yield
        if self.leads:
            with self.together():
                pass  # The others are at it.

    @staticmethod
    @contextlib.contextmanager
    def at_work():
        """Lets the leader alone print, and says so if a worker is lost.

        Raises:
            ConnectionError: If a worker is lost.
        """
        here = workers.from_environment()
        try:
            with contextlib.ExitStack() as stack:
                if not here.leads:
                    nowhere = stack.enter_context(open(os.devnull, "w"))
                    stack.enter_context(contextlib.redirect_stdout(nowhere))
                yield
        except (*_LOSSES, *_PERHAPS_LOSSES) as error:
            # Among the names of operations: what happened.
            found = _REASON.search(error.message)
            if here.count == 1 or not (found or isinstance(error, _LOSSES)):
                raise
            reason = found.group(1) if found else type(error).__name__
            raise ConnectionError(
                f"One of {here.count} workers is lost. Its own output may say "
                "why. Stop the others, and start all of them again with "
                f"--resume. TensorFlow says: {reason}"
            ) from error
