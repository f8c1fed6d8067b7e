"""What a training lowers, as a function of a model and a batch.

An objective is a callable:

```
objective(model, batch, training) -> {"loss": (values, weights), ...}
```

`batch` is what the pipeline yields: `(inputs, labels, weights)`. The objective
calls the model itself. So it may sample, run a search, read the source or sum
over a lattice, and it decides which logits are in memory at a time.

It names what it measures: "loss" is what training lowers, the others are only
shown. Each has values and weights, float tensors of one shape: [B, T], one for
each label, or [B], one for each text, or scalars. A weight is a count, 1 for
what is real, and 0 for padding and for a row that was added to make replicas
even. The trainer takes the mean of all values by their weights, exactly over
micro-batches, replicas and workers.

If an objective measures more than "loss", its `names` lists all, "loss"
included. Where the logs are something else than the means, `results(means)`
computes the logs. A plain function needs neither. Where it remembers something
from batch to batch, its `variables` lists the Keras variables that do: a
checkpoint saves them.

A paper's own objective is a method of its model:

```python
class Paper(Seq2Seq):
    def objective(self, batch, training):
        inputs, labels, weights = batch
        real = ops.cast(ops.any(weights > 0, axis=1), "float32")  # [B]
        return {"loss": (self.losses_of_texts(inputs, labels), real)}
```
"""

import contextlib

import keras
from keras import ops

from keras_attention import layers
from keras_attention.training import blocks, losses


def _logits_by_blocks():
    """A context for the call of a model whose logits `measured` computes.

    On TensorFlow, a model whose last layer is a plain product then gives
    `layers.LogitFactors`. Elsewhere it gives all logits.
    """
    if keras.backend.backend() == "tensorflow":
        return layers.left_in_factors()
    return contextlib.nullcontext()


class TokenObjective:
    """Cross-entropy of each label of a text, given those before it.

    On TensorFlow, the logits of most models are computed by blocks of rows, see
    `training.blocks`. They are never in memory all at once. The logits of a
    model that computes them in another way than by `layers.logits` are.

    Args:
        label_smoothing: of the loss, see `losses.token_cross_entropy`.

    Call arguments:
        model: its call gives logits [B, T, V].
        batch: `(inputs, labels, weights)`, as `data.to_examples` makes it.
        training: whether dropout acts.

    Returns:
        A dict of `names` to values and counts, float32 [B, T].
    """

    names = ("loss", "negative_log_likelihood", "accuracy")

    def __init__(self, label_smoothing=0.0):
        self.label_smoothing = label_smoothing

    def __call__(self, model, batch, training):
        inputs, labels, weights = batch
        with _logits_by_blocks():
            logits = model(inputs, training=training)
        return self.measured(logits, labels, weights, training)

    def measured(self, logits, labels, weights, training=False):
        """The values of logits or of `layers.LogitFactors`, and their counts.

        The loss of `LogitFactors` has the gradient of its mean, and the row of
        a label no gradient of its own. `training` says that it will be asked
        for.
        """
        if isinstance(logits, layers.LogitFactors):
            values = self._by_blocks(logits, labels, weights, training)
        else:
            values = self._at_once(logits, labels)
        return {
            name: (of_labels, _counts(weights))
            for name, of_labels in values.items()
            if name in self.names
        }

    def _by_blocks(self, factors, labels, weights, training):
        mean, values = blocks.cross_entropy(
            factors, labels, _counts(weights), self.label_smoothing, training
        )
        # The trainer takes the mean of the values by the counts.
        loss = _with_gradient_of(values["loss"], mean)
        return {**values, "loss": loss}

    def _at_once(self, logits, labels):
        smoothing = self.label_smoothing
        loss = losses.token_cross_entropy(logits, labels, smoothing)
        return {
            "loss": loss,
            # From the loss: a second softmax would cost as much again.
            "negative_log_likelihood": losses.without_smoothing(
                loss, logits, labels, smoothing
            ),
            "accuracy": losses.is_greatest(logits, labels),
        }

    def results(self, means):
        """The means as they are shown: perplexity in place of likelihood."""
        results = dict(means)
        likelihood = results.pop("negative_log_likelihood")
        # Last: the mean of perplexities would be no perplexity.
        return {**results, "perplexity": ops.exp(likelihood)}


class CarriedObjective(TokenObjective):
    """Cross-entropy of a stream: each row goes on from the batch before.

    The final state of one batch is the first of the next one, without its
    gradient: back-propagation through time, truncated to one batch (Mikolov et
    al. 2010; Zaremba et al. 2014, section 4.1).

    Training and validation share the state, as each of them begins anew. It is
    of one replica: the rows of a batch must not be divided among several.

    Args:
        model: a `models.LanguageModel` with `advance`.
        num_rows: rows of the stream.
        label_smoothing: see `TokenObjective`.

    Attributes:
        variables: the state. A checkpoint saves it.

    Call arguments: as for `TokenObjective`, but the inputs are a dict that
    `data.carried.CarriedPipeline` makes: "target_ids" int [B, T], "rows" int
    [B], the rows of the stream that the batch has, and "goes_on" bool [B],
    which is False at the first batch of the stream.
    """

    def __init__(self, model, num_rows, label_smoothing=0.0):
        super().__init__(label_smoothing)
        self.state = keras.tree.map_structure(
            # A checkpoint has no bfloat16, and float32 holds its values.
            lambda zeros: keras.Variable(
                ops.cast(zeros, "float32"), trainable=False, name="state"
            ),
            model.initial_state(num_rows, 1),
        )
        self.variables = keras.tree.flatten(self.state)

    def __call__(self, model, batch, training):
        inputs, labels, weights = batch
        rows, goes_on = inputs["rows"], inputs["goes_on"]

        def begin(first, carried):
            carried = ops.cast(ops.take(carried, rows, axis=0), first.dtype)
            is_on = ops.reshape(goes_on, (-1, *[1] * (len(first.shape) - 1)))
            return ops.where(is_on, carried, first)

        state = keras.tree.map_structure(
            begin, model.initial_state(ops.shape(rows)[0], 1), self.state
        )
        with _logits_by_blocks():
            logits, state = model.advance(
                inputs["target_ids"], state, training=training
            )
        for variable, final in zip(
            self.variables, keras.tree.flatten(state), strict=True
        ):
            final = ops.cast(ops.stop_gradient(final), variable.dtype)
            variable.assign(ops.scatter_update(variable, rows[:, None], final))
        return self.measured(logits, labels, weights, training)


class GuidedObjective(TokenObjective):
    """Cross-entropy, and where the model should look: guided alignment.

    Chen et al. 2016; likewise Mi et al. 2016. Links say which source tokens j
    a target token t comes from. They are shares a*_tj, equal for all its links,
    and the model's attention weights should be the same:

    ```
    loss = cross-entropy + weight * mean over t of -sum_j a*_tj log a_tj
    ```

    A target token without a link, such as END, adds 0 to the sum, and counts in
    the mean. If attention has heads, a_tj is their mean.

    Deviation: both means are over all target tokens of a batch, and not over
    those of a text and then over texts.

    Args:
        weight: how much the second part counts.
        label_smoothing: of the cross-entropy.

    Call arguments:
        model: a `models.Seq2Seq` with `call_with_attention`.
        batch: `(inputs, labels, weights)`. The inputs also hold "links", int
            [B, 2 M]: in turn the source token and the label of each link,
            counted from 0, each link once. -1 is padding.
        training: whether dropout acts.

    Returns:
        A dict of `names` to values and counts, float32 [B, T]. "alignment" is
        the second part without its weight. Only labels with a link count in it.

    References: https://arxiv.org/abs/1607.01628,
    https://arxiv.org/abs/1608.00112
    """

    names = (*TokenObjective.names, "alignment")

    def __init__(self, weight=1.0, label_smoothing=0.0):
        super().__init__(label_smoothing)
        self.weight = weight

    def __call__(self, model, batch, training):
        inputs, labels, weights = batch
        with _logits_by_blocks():
            logits, attention_weights = model.call_with_attention(
                inputs, training=training
            )
        measured = self.measured(logits, labels, weights, training)
        shares = _shares(inputs["links"], attention_weights)  # [B, T, S]
        alignment = losses.attention_cross_entropy(attention_weights, shares)
        loss, counts = measured["loss"]
        is_linked = ops.cast(ops.any(shares > 0, axis=-1), "float32")
        measured["loss"] = loss + self.weight * alignment, counts
        measured["alignment"] = alignment, counts * is_linked
        return measured


class LabelObjective(TokenObjective):
    """Cross-entropy of the one label of a text: logits [B, C], labels [B].

    Arguments and values are those of `TokenObjective`, without perplexity.
    """

    names = ("loss", "accuracy")

    def results(self, means):
        """The means as they are."""
        return means


@ops.custom_gradient
def _with_gradient_of(values, mean):
    """Values [...] whose gradient goes to a scalar alone.

    `values + (mean - stop_gradient(mean))` would be NaN where it is infinite.
    """

    def gradient(upstream):
        return ops.zeros_like(values), ops.sum(upstream)

    return values, gradient


def _shares(links, attention_weights):
    """a*: the share of each source token in each label.

    Args:
        links: int [B, 2 M], see `GuidedObjective`.
        attention_weights: [B, T, S] or [B, H, T, S].

    Returns:
        float32 [B, T, S]. A label's shares sum to 1, or to 0 without a link.
    """
    *_, num_labels, num_sources = ops.shape(attention_weights)
    source, label = (
        ops.cast(
            ops.equal(links[:, side::2, None], ops.arange(size)), "float32"
        )
        for side, size in enumerate((num_sources, num_labels))
    )  # [B, M, S], [B, M, T]
    is_linked = ops.matmul(ops.swapaxes(label, 1, 2), source)  # [B, T, S]
    count = ops.sum(is_linked, axis=-1, keepdims=True)
    return is_linked / ops.maximum(count, 1.0)


def _counts(weights):
    # The pipeline's weights are 1 / (real labels), for `fit` of a bare model.
    return ops.cast(weights > 0, "float32")
