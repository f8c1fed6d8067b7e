"""A trainer of several processes, each of which holds some of the replicas."""

import tensorflow as tf

from keras_attention.training.trainer import Trainer


class AcrossWorkers(Trainer):
    """Fits a model as `Trainer` does, also across workers.

    Every worker makes the same batches. If all workers together have N
    replicas, replica n takes the rows n, n + N, n + 2N, ... of each batch. So a
    batch stays a function of seed, epoch and step, and no row travels.

    All workers call `fit` and `evaluate` together. What these return is the
    same on each of them. While an epoch runs, the progress bar shows the mean
    over this worker's own replicas.

    Keras 3.15 would fail in two places: it reduces what the replicas return by
    an operation that knows one process
    (https://github.com/keras-team/keras/issues/20585), and TensorFlow would
    give a worker whole batches, not rows of each. Hence this class overrides
    the two functions of a step, and keeps the strategy from Keras: what `fit`
    iterates over is then the dataset itself.

    Args:
        model: made under the scope of `strategy`, as is the optimizer.
        strategy: of all workers, from `devices.make_strategy`.
        options: those of `Trainer`.
    """

    def __init__(self, model, strategy, **options):
        # The metrics are counted on each replica, and read as sums over all.
        with strategy.scope():
            super().__init__(model, **options)
        self.strategy = strategy

    @property
    def distribute_strategy(self):
        """The default strategy, under which Keras leaves a dataset whole."""
        return tf.distribute.get_strategy()

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds the optimizer; all else is built before `fit`."""
        with self.strategy.scope():
            self.optimizer.build(self.model.trainable_variables)

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = self._on_all_replicas(self.train_step)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = self._on_all_replicas(self.test_step)

    def _on_all_replicas(self, step):
        """A function of an iterator: one batch on the replicas of all."""

        # The replica cuts its rows itself, as each worker has the whole batch.
        def on_its_rows(batch):
            context = tf.distribute.get_replica_context()
            first = context.replica_id_in_sync_group
            rows = slice(first, None, context.num_replicas_in_sync)
            return step(tf.nest.map_structure(lambda one: one[rows], batch))

        def on_own_replicas(batch):
            of_replicas = self.strategy.run(on_its_rows, (batch,))
            # For the progress bar alone: an epoch's logs are read from the
            # sums of the metrics, over all workers.
            return {
                name: tf.reduce_mean(
                    self.strategy.experimental_local_results(v)
                )
                for name, v in of_replicas.items()
            }

        def on_next(iterator):
            # One graph for all shapes. The batch is taken outside of it: the
            # end of the data inside would abort the collective operations.
            nonlocal traced
            traced = traced or tf.function(
                on_own_replicas, [iterator.element_spec], autograph=False
            )
            return traced(next(iterator))

        traced = None
        return on_next
