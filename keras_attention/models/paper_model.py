"""What every paper's model has beside its contract."""

from typing import Self

import keras

from keras_attention import suggestions
from keras_attention.layers import quantized_parts
from keras_attention.tokens import END, PAD, START


class PaperModel(quantized_parts.QuantizedParts, keras.Model):
    """A Keras model with named sizes: abstract, the base of the contracts.

    Attributes:
        sizes: name of a size -> the arguments that make it; those that are
            missing are as in the class.
        max_length: the most tokens of a text, where the model has a table of
            learned positions; None for no limit.
        control_ids: the ids of PAD, START and END, by the names that searches
            take: `greedy_search(..., **model.control_ids)`. Published weights
            bring other ids than ours.
        objective: a method `objective(batch, training)`, where the paper does
            not train by cross-entropy, see `training.objectives`; else None.
        language_model_names: the beginning of a weight's name in a language
            model -> that of the decoder's weight that `--init` gives it to;
            none by default.
        maps: name of a map of weights -> what its rows and its columns are,
            see `call_with_maps`; {} for a model that looks nowhere.
    """

    sizes = {}
    max_length = None
    control_ids = {"pad_id": PAD, "start_id": START, "end_id": END}
    objective = None
    language_model_names = {}
    maps = {}

    @classmethod
    def from_size(cls, size: str, *arguments, **overrides) -> Self:
        """Makes a model of a named size, without weights until it is built.

        Args:
            size: one of `sizes`.
            arguments: of the class, such as the size of the vocabulary.
            overrides: arguments of the class. They replace those of the size.

        Raises:
            ValueError: If the class has no such size.
        """
        if size not in cls.sizes:
            raise ValueError(
                f"{cls.__name__} has the sizes {', '.join(cls.sizes)}. "
                f"Received: {size!r}{suggestions.closest(size, cls.sizes)}"
            )
        return cls(*arguments, **{**cls.sizes[size], **overrides})

    @staticmethod
    def _check_layers(num_layers):
        if num_layers < 1:
            raise ValueError(
                "`num_layers` must be at least 1. "
                f"Received: num_layers={num_layers}"
            )

    def call_with_maps(self, inputs, training=None):
        """Like calling the model, and where each layer and head looks.

        Nothing is kept: the weights are those of this call.

        What rows and columns are (`maps`) is one of these words:

        - "source", "pair": the tokens of the first text, of the second one;
        - "input": the tokens that a decoder reads, START at first;
        - "target": the tokens that it writes. Row t belongs to the step that
          writes token t, after it has read token t of "input";
        - "hops", "places", "slots", "experts": those of the paper.

        Args:
            inputs, training: as for a call.

        Returns:
            `(outputs, maps)`: what a call returns, and for each name of `maps`
            float32 [B, layers, heads, rows, columns]. A row whose token is
            padding has any weights.
        """
        return self(inputs, training=training), {}

    def as_maps(self, *attention_weights):
        """Weights in the order of `maps`, by their names.

        Args:
            attention_weights: [B, rows, columns] of a single layer and head,
                or [B, layers, heads, rows, columns].

        Returns:
            Name -> [B, layers, heads, rows, columns].
        """
        return {
            name: one if len(one.shape) == 5 else one[:, None, None]
            for name, one in zip(self.maps, attention_weights, strict=True)
        }

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Over replicas, builds loss and metrics by the first one's share.

        Keras builds by the mean of the replicas' shares of the first batch,
        which fails where they are uneven. It calls this on TensorFlow alone.

        Reference: https://github.com/keras-team/keras/issues/19246
        """
        if iterator is not None and self._distribute_strategy is not None:
            shares = self.distribute_strategy.experimental_local_results
            _, _, batches = next(iter(iterator))
            data_batch = keras.tree.map_structure(
                lambda tensor: shares(tensor)[0], next(batches)
            )
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)
