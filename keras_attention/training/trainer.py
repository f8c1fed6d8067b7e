"""One training step, exact over replicas."""

import keras
import tensorflow as tf

from keras_attention.training import objectives


class Trainer(keras.Model):
    """Fits a model to an objective, exactly over replicas.

    Call `compile(optimizer)` and `fit` as usual, on batches that
    `data.to_examples` made. One step is the step of the whole batch, whatever
    the number of replicas and of micro-batches:

    - The loss is the mean of the objective's values over the whole batch, by
      their weights. By default it is the mean over all real tokens.
    - Gradients are summed over replicas before they are clipped.
    - Losses of the model's own (`add_loss`, regularizers) are added to it. Each
      part of the batch counts by its share of the weights: a loss that is a
      mean over texts is one over the whole batch where each text has one
      label and no row is added for a replica.
    - The loss of an epoch, and whatever else is measured, is a mean over the
      whole epoch. Losses of the model's own are not in it. While the epoch
      runs, the progress bar shows the mean of the replicas' own.

    `model.fit` is exact too, with the same batches and
    `losses.TokenCrossEntropy`. But Keras's optimizers clip each replica's
    gradient on its own, and the loss that Keras reports is a mean over
    replicas.

    `save` and `save_weights` are those of the model, so that
    `keras.callbacks.ModelCheckpoint` keeps the model.

    Args:
        model: a built model, such as a `models.Seq2Seq`. Model and trainer are
            made under the strategy's scope.
        label_smoothing: that of the default objective.
        clip_norm: the greatest norm of the whole gradient; 0 for no clipping.
        micro_batches: parts of each replica's share that are computed one
            after the other, to save memory.
        objective: what is lowered, and what else is measured, see
            `training.objectives`. By default `objectives.TokenObjective`.

    Raises:
        ValueError: If there is fewer than one micro-batch, or if an objective
            comes with a label smoothing. If the model computes in float16,
            whose gradients need scaling: take bfloat16. If `compile` gets a
            loss or metrics, or if the model is not built by then. In `fit`,
            if the objective measures something else than its `names`, or if
            values and weights differ in shape.
    """

    def __init__(
        self,
        model,
        label_smoothing=0.0,
        clip_norm=0.0,
        micro_batches=1,
        objective=None,
    ):
        super().__init__(name="trainer")
        if micro_batches < 1:
            raise ValueError(
                "`micro_batches` must be at least 1. "
                f"Received: micro_batches={micro_batches}"
            )
        if model.compute_dtype == "float16":
            raise ValueError(
                "A model that computes in float16 would need scaled gradients. "
                "Make it compute in float32, or in mixed_bfloat16."
            )
        self.model = model
        if objective is not None and label_smoothing:
            raise ValueError(
                "`label_smoothing` is for the default objective. Smooth the "
                "labels in your own objective. Received: "
                f"label_smoothing={label_smoothing}"
            )
        self.objective = objective or objectives.TokenObjective(label_smoothing)
        self.clip_norm = clip_norm
        self.micro_batches = micro_batches
        names = getattr(self.objective, "names", ("loss",))
        self.means = {name: keras.metrics.Mean(name=name) for name in names}
        # Keras would build it by a call on the first batch.
        self.built = True

    def compile(self, optimizer="rmsprop", **options):
        for name in ("loss", "loss_weights", "metrics", "weighted_metrics"):
            if options.get(name) is not None:
                raise ValueError(
                    "A trainer has the loss and the metrics of its objective. "
                    "Give it another objective, or fit the model itself. "
                    f"Received: {name}={options[name]!r}"
                )
        if not self.model.built:
            raise ValueError(
                "The model has no weights yet. Call it once on a batch, or "
                "`build` it, under the strategy's scope."
            )
        super().compile(optimizer, **options)

    def call(self, inputs, training=None):
        return self.model(inputs, training=training)

    @property
    def metrics(self):
        return list(self.means.values())

    def get_metrics_result(self):
        results = getattr(self.objective, "results", dict)
        return results(
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

    def _forward(self, batch, training):
        """Counts what the objective measures in a part of the batch.

        Returns:
            `(loss, weight)`: the mean loss of the part, and the sum of the
            weights that it is a mean by.
        """
        measured = {
            name: _flat(name, values, weights)
            for name, (values, weights) in self.objective(
                self.model, batch, training
            ).items()
        }
        if measured.keys() != self.means.keys():
            raise ValueError(
                f"The objective measures {', '.join(measured) or 'nothing'}, "
                f"and its `names` are {', '.join(self.means)}. Both must "
                "name the same."
            )
        for name, mean in self.means.items():
            values, weights = measured[name]
            mean.update_state(values, sample_weight=weights)
        values, weights = measured["loss"]
        weight = tf.reduce_sum(weights)
        shares = tf.math.divide_no_nan(weights, weight)
        loss = tf.reduce_sum(values * shares)
        for own in self.model.losses:
            # Their factor is 1, or 0 in a part where nothing is real.
            loss += tf.reduce_sum(shares) * tf.cast(own, loss.dtype)
        return loss, weight

    def train_step(self, data):
        variables = self.model.trainable_variables
        gradients, total = None, 0.0
        # Keras finds the end of a dataset of unknown length by a batch that is
        # not there. Without data nothing may be counted: no update of the
        # optimizer and no draw of the dropout.
        with tf.control_dependencies(tf.nest.flatten(data)):
            for part in range(self.micro_batches):
                # No stretch: the rows that were added, which have no label, are
                # the last ones.
                rows = slice(part, None, self.micro_batches)
                batch = tf.nest.map_structure(
                    lambda tensor, rows=rows: tensor[rows], data
                )
                with tf.GradientTape() as tape:
                    loss, weight = self._forward(batch, training=True)
                # Those of TensorFlow: it cannot make zeros of a Keras variable.
                sources = [variable.value for variable in variables]
                new = tape.gradient(loss, sources, None, "zero")
                new = [tf.convert_to_tensor(gradient) for gradient in new]
                total += weight
                if gradients is None:
                    gradients = new
                    continue
                # A running mean, since the weights of later parts are not
                # known yet.
                share = tf.math.divide_no_nan(weight, total)
                gradients = [
                    mean + share * (gradient - mean)
                    for mean, gradient in zip(gradients, new, strict=True)
                ]
            gradients = self._over_replicas(gradients, total)
            self.optimizer.apply(gradients, variables)
            return self.get_metrics_result()

    def _over_replicas(self, gradients, weight):
        """Each replica's share of the whole gradient, which is clipped.

        The optimizer sums the shares.
        """
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        if replicas > 1:
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, weight)
            share = tf.math.divide_no_nan(weight, total)
            gradients = [share * gradient for gradient in gradients]
        if self.clip_norm:
            # No replica knows the norm of the sum from its own share.
            if replicas > 1:
                gradients = context.all_reduce(
                    tf.distribute.ReduceOp.SUM, gradients
                )
            gradients, _ = tf.clip_by_global_norm(gradients, self.clip_norm)
            gradients = [gradient / replicas for gradient in gradients]
        return gradients

    def test_step(self, data):
        self._forward(data, training=False)
        return self.get_metrics_result()


def _flat(name, values, weights):
    """Values and weights in a row: any shape -> two of float32 [N]."""
    values, weights = (
        tf.cast(tensor, tf.float32) for tensor in (values, weights)
    )
    if not values.shape.is_compatible_with(weights.shape):
        raise ValueError(
            "The objective's values and weights have to have one shape. Those "
            f"of {name} have {values.shape} and {weights.shape}."
        )
    # Flat: Keras would divide each row by its length, padding included.
    values, weights = (tf.reshape(tensor, [-1]) for tensor in (values, weights))
    # 0 * inf is NaN: what does not count may have any value. Its gradient
    # must be finite.
    return tf.where(weights == 0, 0.0, values), weights
