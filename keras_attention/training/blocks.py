"""Cross-entropy by blocks of rows: all logits are never in memory at once.

A row is a label and what the model knows before it. Its logits are one number
for each token of the vocabulary. For 4,096 labels and 32,000 tokens they take
half a GB, and a step that has them all reads and writes them a dozen times.
Here the logits of a block of rows give losses, what else is measured and a part
of the gradients, before those of the next block are computed.

The idea is that of Wijmans et al. 2024, Cut Your Losses in Large-Vocabulary
Language Models, section 4. Deviations: a block has the whole vocabulary, and no
gradient is left out for being small. The gradients are computed beside the
losses, and not in the backward pass: no product of the logits is made twice.
For this, the loss must be one number, the mean over all rows.

Reference: https://arxiv.org/abs/2411.09009
"""

import tensorflow as tf

# The gradient of the kernel is read and written for each block. In a block of
# fewer rows, a step takes longer. Only a batch has fewer.
MIN_ROWS = 256
# Logits of a block, where it has MIN_ROWS all the same: 16 MB of float32.
MAX_LOGITS = 2**22


def cross_entropy(
    factors, labels, weights, label_smoothing=0.0, with_gradient=True
):
    """`losses.token_cross_entropy` without a tensor of all logits.

    Args:
        factors: `layers.LogitFactors` with inputs [B, T, D].
        labels: int [B, T].
        weights: float32 [B, T], those of the mean; 0 for padding.
        label_smoothing: e, see `losses.token_cross_entropy`.
        with_gradient: whether the gradient will be asked for. If it is False,
            the gradient takes a second computation of all logits.

    Returns:
        `(mean, values)`. The mean loss by the weights is a scalar, and 0 where
        all weights are. It alone has a gradient. The values are a dict of
        float32 [B, T]: "loss", "negative_log_likelihood", which is the loss
        without label smoothing, and "accuracy", 1 where no logit is above the
        label's. A label outside 0 ... V-1 has an infinite loss.
    """
    tensors = [factors.inputs, factors.kernel]
    if factors.bias is not None:
        tensors.append(factors.bias)
    rows = _Rows(labels, weights, label_smoothing, factors.is_turned)

    @tf.custom_gradient
    def measured(*tensors):
        values, gradients = rows.compute(tensors, with_gradient)

        def gradient(upstream, *_):
            known = gradients or rows.compute(tensors, True)[1]
            factor = tf.math.divide_no_nan(upstream, rows.total)
            return [
                tf.cast(factor * one, tensor.dtype)
                for one, tensor in zip(known, tensors, strict=True)
            ]

        # 0 * inf is 0: a label that does not count may be out of range.
        total = tf.reduce_sum(tf.math.multiply_no_nan(values[0], rows.weights))
        mean = tf.math.divide_no_nan(total, rows.total)
        return (mean, *values), gradient

    mean, *values = measured(*tensors)
    names = ("loss", "negative_log_likelihood", "accuracy")
    return mean, {
        name: tf.stop_gradient(tf.reshape(one, tf.shape(labels)))
        for name, one in zip(names, values, strict=True)
    }


def _is_exact(tensors):
    """Whether softmax(logits) and the targets may be multiplied apart.

    Where a label is almost certain, the two are almost equal. bfloat16 would
    leave nothing of their difference.
    """
    return tensors[1].dtype == tf.float32


class _Rows:
    """The labels of a batch, and what is computed from their logits.

    `tensors` are inputs, kernel and, if there is one, bias.
    """

    def __init__(self, labels, weights, label_smoothing, is_turned):
        self.labels = tf.reshape(labels, [-1])
        self.weights = tf.reshape(tf.cast(weights, tf.float32), [-1])
        self.total = tf.reduce_sum(self.weights)
        self.label_smoothing = label_smoothing
        self.is_turned = is_turned

    def compute(self, tensors, with_gradient):
        """What is measured of all blocks, one after the other.

        Returns:
            `(values, gradients)`: three of float32 [rows], and the gradients of
            the weighted sum of losses, float32, one for each tensor; or None.
        """
        inputs = tensors[0]
        width = inputs.shape[-1]
        parts, num_blocks = self._divide(tensors)
        shapes, sums = [[3, None]], []
        if with_gradient:
            shapes.append([None, width])
            sums = [tf.zeros(one.shape, tf.float32) for one in tensors[1:]]

        def step(index, rows, sums):
            block = [tf.gather(part, index) for part in parts]
            of_rows, of_block = self._block(tensors, *block, with_gradient)
            return (
                index + 1,
                [r.write(index, o) for r, o in zip(rows, of_rows, strict=True)],
                [s + o for s, o in zip(sums, of_block, strict=True)],
            )

        rows = [
            tf.TensorArray(tf.float32, num_blocks, element_shape=shape)
            for shape in shapes
        ]
        # One at a time: the next block takes the place of this one in cache.
        _, rows, sums = tf.while_loop(
            lambda index, *_: index < num_blocks,
            step,
            (0, rows, sums),
            parallel_iterations=1,
        )
        count = tf.size(self.labels)
        values = tf.transpose(rows[0].stack(), [1, 0, 2])
        values = tf.unstack(tf.reshape(values, [3, -1])[:, :count])
        if not with_gradient:
            return values, None
        of_inputs = tf.reshape(rows[1].stack(), [-1, width])[:count]
        gradients = [of_inputs, *sums]
        if _is_exact(tensors):
            gradients = self._less_targets(tensors, gradients)
        gradients[0] = tf.reshape(gradients[0], tf.shape(inputs))
        return values, gradients

    def _divide(self, tensors):
        """Blocks of one size. The rest of the last one has rows of weight 0.

        Returns:
            `(parts, num_blocks)`: inputs [blocks, rows, D]; labels and weights
            [blocks, rows].
        """
        inputs, kernel, *_ = tensors
        inputs = tf.reshape(inputs, [-1, inputs.shape[-1]])
        most = max(1, MAX_LOGITS // self._vocabulary_size(kernel))
        # A number where the graph knows it, as XLA must.
        count = self.labels.shape[0]
        least_of, greatest_of = min, max
        if count is None:
            count = tf.size(self.labels)
            least_of, greatest_of = tf.minimum, tf.maximum
        num_blocks = least_of(1 + count // most, count // MIN_ROWS)
        num_blocks = greatest_of(num_blocks, 1)
        size = (count + num_blocks - 1) // num_blocks
        rest = num_blocks * size - count

        def divided(rows):
            shape = rows.shape[1:]
            rows = tf.pad(rows, [[0, rest], *([0, 0] for _ in shape)])
            return tf.reshape(rows, [num_blocks, size, *shape])

        parts = inputs, self.labels, self.weights
        return [divided(rows) for rows in parts], num_blocks

    def _vocabulary_size(self, kernel):
        return kernel.shape[0 if self.is_turned else 1]

    def _block(self, tensors, inputs, labels, weights, with_gradient):
        """What is measured of a block, and its part of the gradients.

        Returns:
            `(of_rows, of_block)`: the values [3, rows] and the gradient of the
            inputs [rows, D]; the gradients of kernel and bias.
        """
        _, kernel, *bias = tensors
        logits = tf.matmul(inputs, kernel, transpose_b=self.is_turned)
        if bias:
            logits = tf.nn.bias_add(logits, bias[0])
        logits = tf.cast(logits, tf.float32)  # [rows, V]
        probabilities = tf.nn.softmax(logits)
        values = self._values(logits, probabilities, labels)
        if not with_gradient:
            return [values], []
        error = probabilities
        if not _is_exact(tensors):
            size = self._vocabulary_size(kernel)
            others = self.label_smoothing / size
            of_label = 1 - self.label_smoothing + others
            error -= tf.one_hot(labels, size, of_label, others)
            error = tf.cast(error, kernel.dtype)
        # The weights multiply what is small: D numbers of a row, and not V.
        weights = weights[:, None]
        of_inputs = tf.matmul(error, kernel, transpose_b=not self.is_turned)
        of_inputs = weights * tf.cast(of_inputs, tf.float32)
        weights = tf.cast(weights, error.dtype)
        inputs *= weights
        factors = (error, inputs) if self.is_turned else (inputs, error)
        sums = [tf.matmul(*factors, transpose_a=True)]
        if bias:
            sums.append(tf.matmul(weights, error, transpose_a=True)[0])
        return [values, of_inputs], [tf.cast(one, tf.float32) for one in sums]

    def _less_targets(self, tensors, gradients):
        """The gradients of all blocks, less what the targets take from them.

        The gradient of a row's logits is softmax(logits) - q. A block has
        computed the first part. q is a number at the label and one for all
        tokens, whose products are small: they are made here, for all rows.
        """
        inputs, kernel, *bias = tensors
        inputs = tf.reshape(inputs, [-1, inputs.shape[-1]])
        kernel = kernel if self.is_turned else tf.transpose(kernel)  # [V, D]
        size = kernel.shape[0]
        smoothing, weights = self.label_smoothing, self.weights[:, None]
        ids = tf.clip_by_value(self.labels, 0, size - 1)
        is_known = tf.cast(ids == self.labels, tf.float32)[:, None]
        of_labels = (1 - smoothing) * weights * is_known
        of_inputs = of_labels * tf.gather(kernel, ids)

        def at_labels(rows):
            return tf.math.unsorted_segment_sum(of_labels * rows, ids, size)

        of_kernel = at_labels(inputs)  # [V, D]
        of_bias = at_labels(tf.ones_like(weights))  # [V, 1]
        if smoothing:
            share = smoothing / size
            of_inputs += share * weights * tf.reduce_sum(kernel, axis=0)
            of_kernel += share * tf.reduce_sum(weights * inputs, axis=0)
            of_bias += share * tf.reduce_sum(weights)
        of_kernel = of_kernel if self.is_turned else tf.transpose(of_kernel)
        of_targets = [of_inputs, of_kernel, of_bias[:, 0]][: len(tensors)]
        return [a - b for a, b in zip(gradients, of_targets, strict=True)]

    def _values(self, logits, probabilities, labels):
        """Loss, negative log-likelihood and whether it is right: [3, rows]."""
        # As in `losses.token_cross_entropy`, which says why.
        vocabulary_size = logits.shape[-1]
        greatest = tf.reduce_max(logits, axis=-1)
        log_greatest = tf.math.log(tf.reduce_max(probabilities, axis=-1))
        ids = tf.clip_by_value(labels, 0, vocabulary_size - 1)
        of_labels = tf.gather(logits, ids, batch_dims=1)
        of_labels = tf.where(ids == labels, of_labels, -float("inf"))
        likelihood = greatest - log_greatest - of_labels
        loss = likelihood
        if self.label_smoothing:
            mean = tf.reduce_sum(logits, axis=-1) / vocabulary_size
            uniform = greatest - log_greatest - mean
            loss = (1 - self.label_smoothing) * loss
            loss += self.label_smoothing * uniform
        is_right = tf.cast(of_labels >= greatest, tf.float32)
        return tf.stack([loss, likelihood, is_right])
