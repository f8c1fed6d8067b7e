"""One training step, exact over replicas."""

import keras
import tensorflow as tf

from keras_attention.devices import (
    keep_memory,
    make_logical_devices,
    make_strategy,
    share_cores,
)
from keras_attention.training import losses

# A trainer is made under a strategy, so both are found in one place.
__all__ = [
    "Trainer",
    "keep_memory",
    "make_logical_devices",
    "make_strategy",
    "share_cores",
]


class Trainer(keras.Model):
    """Fits a model to a token-weighted loss, exactly over replicas.

    Call `compile(optimizer)` and `fit` as usual, on batches that
    `data.to_examples` made. One step is the step of the whole batch, whatever
    the number of replicas and of micro-batches:

    - The loss is the mean over all real tokens of the batch.
    - Gradients are summed over replicas before they are clipped.
    - Losses of the model's own (`add_loss`, regularizers) are added to it. Each
      part of the batch counts by its share of the real labels: a loss that is
      a mean over texts is one over the whole batch where each text has one
      label and no row is added for a replica.
    - The loss, accuracy and perplexity of an epoch are means over all tokens.
      Losses of the model's own are not in them.
      While the epoch runs, the progress bar shows the mean of the replicas'
      own.

    `model.fit` is exact too, with the same batches and
    `losses.TokenCrossEntropy`. But Keras's optimizers clip each replica's
    gradient on its own, and the loss that Keras reports is a mean over
    replicas.

    `save` and `save_weights` are those of the model, so that
    `keras.callbacks.ModelCheckpoint` keeps the model.

    Args:
        model: a built model, such as a `models.Seq2Seq`. Model and trainer are
            made under the strategy's scope.
        label_smoothing: that of the training loss.
        clip_norm: the greatest norm of the whole gradient; 0 for no clipping.
        micro_batches: parts of each replica's share that are computed one
            after the other, to save memory.
        measures: the loss of each label, and what else is measured. By
            default `losses.TokenMeasures`.

    Raises:
        ValueError: If there is fewer than one micro-batch. If the model
            computes in float16, whose gradients need scaling: take bfloat16.
            If `compile` gets a loss or metrics, or if the model is not built
            by then.
    """

    def __init__(
        self,
        model,
        label_smoothing=0.0,
        clip_norm=0.0,
        micro_batches=1,
        measures=None,
    ):
        super().__init__(name="trainer")
        if micro_batches < 1:
            raise ValueError(
                "`micro_batches` must be at least 1. "
                f"Received: micro_batches={micro_batches}"
            )
        if model.compute_dtype == "float16":
            raise ValueError(
                "Expected a model that computes in float32 or, as mixed "
                "precision, in bfloat16. Received: one that computes in float16"
            )
        self.model = model
        self.measures = measures or losses.TokenMeasures(label_smoothing)
        self.clip_norm = clip_norm
        self.micro_batches = micro_batches
        self.means = {
            name: keras.metrics.Mean(name=name) for name in self.measures.names
        }
        self.built = True

    def compile(self, optimizer="rmsprop", **options):
        for name in ("loss", "loss_weights", "metrics", "weighted_metrics"):
            if options.get(name) is not None:
                raise ValueError(
                    "Expected an optimizer: loss and metrics are the trainer's "
                    "own (or fit the model itself, with others). Received: "
                    f"{name}={options[name]!r}"
                )
        if not self.model.built:
            raise ValueError(
                "Expected a model that is built: call it once on a batch, or "
                "`build` it, under the strategy's scope. Received: one without "
                "weights"
            )
        super().compile(optimizer, **options)

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    @property
    def metrics(self):
        return list(self.means.values())

    def get_metrics_result(self):
        return self.measures.results(
            {name: mean.result() for name, mean in self.means.items()}
        )

    def save(self, filepath, *args, **kwargs):
        """Saves the model that is trained, as `keras.Model.save` does."""
        self.model.save(filepath, *args, **kwargs)

    def save_weights(self, filepath, *args, **kwargs):
        """Saves the weights of the model that is trained."""
        self.model.save_weights(filepath, *args, **kwargs)

    def load_weights(self, filepath, *args, **kwargs):
        """Loads weights of the model that is trained."""
        self.model.load_weights(filepath, *args, **kwargs)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds the optimizer; all else is built before `fit`.

        Over replicas, Keras would build everything by the mean of the
        replicas' shares of the first batch. That fails where the shares are
        uneven, see https://github.com/keras-team/keras/issues/19246.
        """
        with self.distribute_strategy.scope():
            self.optimizer.build(self.model.trainable_variables)

    def _forward(self, inputs, labels, weights, training):
        """Updates the metrics, and returns this replica's part of the loss."""
        logits = self.model(inputs, training=training)
        values = self.measures(logits, labels)
        # Flat: Keras would divide each row by its length, padding included.
        real = tf.reshape(tf.cast(weights > 0, tf.float32), [-1])
        for name, mean in self.means.items():
            mean.update_state(
                tf.reshape(values[name], [-1]), sample_weight=real
            )
        loss = tf.reduce_sum(values["loss"] * weights)
        for own in self.model.losses:
            loss += tf.reduce_sum(weights) * tf.cast(own, loss.dtype)
        return loss

    def train_step(self, data):
        variables = self.model.trainable_variables
        gradients = None
        # Keras finds the end of a dataset of unknown length by a batch that is
        # not there. Without data nothing may be counted: no update of the
        # optimizer and no draw of the dropout.
        with tf.control_dependencies(tf.nest.flatten(data)):
            for part in range(self.micro_batches):
                rows = slice(part, None, self.micro_batches)
                inputs, labels, weights = tf.nest.map_structure(
                    lambda tensor, rows=rows: tensor[rows], data
                )
                with tf.GradientTape() as tape:
                    loss = self._forward(inputs, labels, weights, True)
                new = [
                    tf.convert_to_tensor(gradient)
                    for gradient in tape.gradient(
                        loss, variables, unconnected_gradients="zero"
                    )
                ]
                gradients = (
                    new
                    if gradients is None
                    else [a + b for a, b in zip(gradients, new, strict=True)]
                )
            if self.clip_norm:
                gradients = self._clip_over_replicas(gradients)
            self.optimizer.apply(gradients, variables)
            return self.get_metrics_result()

    def _clip_over_replicas(self, gradients):
        """Clips the sum over replicas, and gives each replica its share."""
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        if replicas > 1:
            gradients = context.all_reduce(
                tf.distribute.ReduceOp.SUM, gradients
            )
        gradients, _ = tf.clip_by_global_norm(gradients, self.clip_norm)
        return [gradient / replicas for gradient in gradients]

    def test_step(self, data):
        self._forward(*data, training=False)
        return self.get_metrics_result()
