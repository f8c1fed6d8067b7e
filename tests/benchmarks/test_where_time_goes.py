"""The kinds of operations, and what the profiler saw of a known function."""

import collections

import tensorflow as tf
import where_time_goes


def test_each_operation_counts_once_in_its_kind():
    found = collections.Counter(
        MatMul=8.0, _FusedMatMul=1.0, Sqrt=2.0, RsqrtGrad=1.0, Strange=4.0
    )
    assert where_time_goes.by_kind(found) == {
        "matrix products": 9.0,
        "element by element": 3.0,
        "all else": 4.0,
    }


def test_the_profiler_sees_operations_alone(tmp_path):
    @tf.function(autograph=False)
    def products(x):
        return tf.while_loop(
            lambda count, _: count < 3,
            lambda count, y: (count + 1, tf.matmul(y, x)),
            (0, x),
        )[1]

    matrix = tf.random.normal([600, 600])
    products(matrix)
    tf.profiler.experimental.start(str(tmp_path))
    products(matrix).numpy()
    tf.profiler.experimental.stop()
    found = where_time_goes.operations(tmp_path)
    assert found["MatMul"] > 0
    assert not [name for name in found if where_time_goes.OUTER.fullmatch(name)]
