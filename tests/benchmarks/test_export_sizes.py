"""The count of a SavedModel's operations."""

import export_sizes
import tensorflow as tf


class Sums(tf.Module):
    """Two functions, one of which calls the other."""

    def __init__(self):
        super().__init__()
        spec = tf.TensorSpec([2], tf.float32)
        self.twice = tf.function(lambda x: x + x, input_signature=[spec])
        self.whole = tf.function(
            lambda x: self.twice(x) + 1, input_signature=[spec]
        )


def test_operations_of_functions_count(tmp_path):
    """Those of the function that is called, too, and each where it stands."""
    module = Sums()
    counts = []
    for number, names in enumerate([["twice"], ["twice", "whole"]]):
        signatures = {name: getattr(module, name) for name in names}
        path = tmp_path / str(number)
        tf.saved_model.save(tf.Module(), str(path), signatures=signatures)
        counts.append(export_sizes.num_operations(path / "saved_model.pb"))
    assert 0 < counts[0] < counts[1]
