"""T5's bias: a learned number for each head and bucket of distances."""

import math

import keras
from keras import ops

from keras_attention.layers import positions, weights


@keras.saving.register_keras_serializable(package="keras_attention")
class BucketedBias(positions.Positions):
    """Adds a learned number to each score, by head and by distance.

    Raffel et al. 2020, section 2.1: `e_ts + b[h, bucket(s - t)]`. Short
    distances have a bucket each. Longer ones share buckets whose width grows
    with the logarithm of the distance, up to `max_distance`. With N buckets
    for one direction and `n = |s - t|`:

    ```
    bucket = n                                            n < N / 2
    bucket = N / 2 + floor(log(2 n / N) / log(2 max_distance / N) * N / 2)
    ```

    | paper | here |
    |---|---|
    | 32 embeddings | `num_buckets` |
    | 128, beyond which all is one | `max_distance` |

    Deviations: each layer of a model has a table of its own, where T5's
    layers share one. Scores are divided by sqrt(d_k), where T5 starts from
    smaller weights instead.

    Args:
        num_buckets: buckets in all; half of them for each direction, if
            `bidirectional`.
        max_distance: from here on all distances share the last bucket.
        bidirectional: whether keys after the query have buckets of their
            own. If not, they share the bucket of distance 0.

    Raises:
        ValueError: If there are too few buckets, or if `max_distance` is not
            beyond those of a single distance.

    Reference: https://arxiv.org/abs/1910.10683
    """

    def __init__(
        self, num_buckets=32, max_distance=128, bidirectional=True, **kwargs
    ):
        super().__init__(**kwargs)
        one_way = num_buckets // 2 if bidirectional else num_buckets
        if one_way < 2 or max_distance <= one_way // 2:
            raise ValueError(
                "Each direction needs at least 2 buckets, and `max_distance` "
                "must be greater than half of them. Received: "
                f"num_buckets={num_buckets}, max_distance={max_distance}, "
                f"bidirectional={bidirectional}"
            )
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional

    def build(self, heads_shape):
        self.bias_table = self.add_weight(
            name="bias_table", shape=(self.num_buckets, heads_shape[1])
        )

    def buckets(self, distances):
        """The bucket of each distance `s - t`: int, of the same shape."""
        one_way, offset = self.num_buckets, 0
        if self.bidirectional:
            one_way //= 2
            offset = ops.cast(distances > 0, "int32") * one_way
            distances = ops.abs(distances)
        else:
            distances = ops.maximum(-distances, 0)
        exact = one_way // 2
        # At least `exact`: the logarithm of 0 is of no use.
        far = ops.cast(ops.maximum(distances, exact), "float32")
        growth = ops.log(far / exact) / math.log(self.max_distance / exact)
        wide = exact + ops.cast(growth * (one_way - exact), "int32")
        wide = ops.minimum(wide, one_way - 1)
        near = ops.cast(distances, "int32")
        return offset + ops.where(distances < exact, near, wide)

    def bias(self, query, query_positions, key_positions):
        weights.check_ready(self)
        buckets = self.buckets(
            positions.distances(query_positions, key_positions)
        )
        bias = ops.take(self.bias_table, buckets, axis=0)  # [T, S, H]
        return ops.transpose(bias, (2, 0, 1))[None]

    def get_config(self):
        return {
            **super().get_config(),
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "bidirectional": self.bidirectional,
        }
