"""Translators as one: a search over the mean of their probabilities."""

import functools

from keras import ops

from keras_attention.models import seq2seq


class Ensemble(seq2seq.Seq2Seq):
    """Models of one vocabulary that choose each next token together.

    ```
    p(y_t | y_<t, x) = (1 / N) sum_n p_n(y_t | y_<t, x)
    ```

    This is the ensemble of Sutskever et al. 2014. The logits are the logarithm
    of the mean, computed from those of each p_n, so that small probabilities
    do not vanish. Attention weights are means, too.

    An ensemble has no weights of its own and is not trained. It is exported as
    any translator, and is as large as all its models.

    Args:
        members: the N models, each a built `Seq2Seq`.

    Raises:
        ValueError: If there is no model, or if their vocabularies differ in
            size.
    """

    def __init__(self, members, **kwargs):
        super().__init__(**kwargs)
        sizes = {
            tuple(
                model.get_config().get(name)
                for name in ("vocabulary_size", "source_vocabulary_size")
            )
            for model in members
        }
        if len(sizes) != 1:
            raise ValueError(
                "The models of an ensemble must have one vocabulary. These "
                f"{len(members)} have the sizes (target, source) "
                f"{sorted(sizes, key=str)}."
            )
        self.members = list(members)
        limits = [model.max_length for model in members if model.max_length]
        self.max_length = min(limits, default=None)

    def encode(self, source_ids, training=None):
        return tuple(
            model.encode(source_ids, training=training)
            for model in self.members
        )

    def initial_state(self, memory, max_length):
        return tuple(
            model.initial_state(own, max_length)
            for model, own in zip(self.members, memory, strict=True)
        )

    def step(self, token_ids, memory, state):
        steps = [model.step for model in self.members]
        return self._step(steps, token_ids, memory, state)

    def prepared_step(self):
        steps = [model.prepared_step() for model in self.members]
        return functools.partial(self._step, steps)

    def _step(self, steps, token_ids, memory, state):
        made = [
            step(token_ids, *own)
            for step, *own in zip(steps, memory, state, strict=True)
        ]
        logits, states, weights = zip(*made, strict=True)
        weights = [
            ops.mean(one, axis=1) if len(one.shape) == 3 else one
            for one in weights
        ]
        return (
            log_mean(logits),
            states,
            sum(weights[1:], weights[0]) / len(weights),
        )

    @property
    def maps(self):
        """Those of all members: "cross_0" is the first one's "cross"."""
        return {
            f"{name}_{index}": axes
            for index, model in enumerate(self.members)
            for name, axes in model.maps.items()
        }

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`."""
        made = [
            model.call_with_maps(inputs, training) for model in self.members
        ]
        logits, maps = zip(*made, strict=True)
        return log_mean(logits), {
            f"{name}_{index}": one
            for index, of_model in enumerate(maps)
            for name, one in of_model.items()
        }

    def call(self, inputs, training=None):
        return log_mean(
            [model(inputs, training=training) for model in self.members]
        )


def log_mean(logits):
    """The logarithm of the mean of several softmaxes.

    Args:
        logits: N tensors [..., V].

    Returns:
        float32 [..., V].
    """
    log_probs = ops.stack(
        [ops.log_softmax(ops.cast(one, "float32"), axis=-1) for one in logits]
    )
    count = float(len(logits))
    return ops.logsumexp(log_probs, axis=0) - ops.log(count)
