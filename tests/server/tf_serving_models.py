"""The models of TensorFlow Serving's own tests, made anew."""

import tensorflow as tf

tf1 = tf.compat.v1
HALF = "saved_model_half_plus_two_2_versions"


def half_plus_two(path):
    """Its `saved_model_half_plus_two.py`: by TensorFlow 1, y = 0.5 x + 2."""
    info = tf1.saved_model.utils.build_tensor_info
    define = tf1.saved_model.signature_def_utils.build_signature_def
    method = "tensorflow/serving/"
    with tf.Graph().as_default(), tf1.Session() as session:
        a = tf1.Variable(0.5, name="a", use_resource=True)
        b = tf1.Variable(2.0, name="b", use_resource=True)
        c = tf1.Variable(3.0, name="c", use_resource=True)
        serialized = tf1.placeholder(tf.string, [None], "tf_example")
        feature = tf1.FixedLenFeature([1], tf.float32)
        second = tf1.FixedLenFeature([1], tf.float32, default_value=[0.0])
        parsed = tf1.parse_example(serialized, {"x": feature, "x2": second})
        x = tf.identity(parsed["x"], name="x")
        y = tf.add(tf.multiply(a, x), b, name="y")
        y2 = tf.add(tf.multiply(a, x), c, name="y2")
        y3 = tf.add(tf.multiply(a, parsed["x2"]), c, name="y3")
        given = {"inputs": info(serialized)}
        signatures = {
            "serving_default": define(
                {"x": info(x)}, {"y": info(y)}, method + "predict"
            ),
            "regress_x_to_y": define(
                given, {"outputs": info(y)}, method + "regress"
            ),
            "regress_x_to_y2": define(
                given, {"outputs": info(y2)}, method + "regress"
            ),
            "regress_x2_to_y3": define(
                given, {"outputs": info(y3)}, method + "regress"
            ),
            "classify_x_to_y": define(
                given, {"scores": info(y)}, method + "classify"
            ),
            "classify_x2_to_y3": define(
                given, {"scores": info(y3)}, method + "classify"
            ),
        }
        session.run(tf1.global_variables_initializer())
        builder = tf1.saved_model.builder.SavedModelBuilder(str(path))
        builder.add_meta_graph_and_variables(session, ["serve"], signatures)
        builder.save()


def _echo(**dtypes):
    """Gives its inputs back, whatever their shapes."""
    specs = [tf.TensorSpec(None, d, name=n) for n, d in dtypes.items()]

    @tf.function(input_signature=specs)
    def echo(*values):
        pairs = zip(dtypes, values, strict=True)
        return {name: tf.identity(value) for name, value in pairs}

    return echo


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
def _uneven(x):
    return {"a": x, "b": tf.concat([x, x], 0)}


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
def _empty(x):
    return {"y": x[:0]}


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
def _total(x):
    return {"y": tf.reduce_sum(x)}


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
def _complex(x):
    return {"y": tf.complex(x, x)}


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
def _logarithm(x):
    return {"y": tf.math.log(x)}


FUNCTIONS = {
    "int": _echo(i=tf.int32),
    "float": _echo(x=tf.float32),
    "double": _echo(x=tf.float64),
    "bool": _echo(x=tf.bool),
    "text": _echo(s=tf.string),
    "raw": _echo(s_bytes=tf.string),
    "named": _echo(i=tf.int32, s=tf.string),
    "three": _echo(i=tf.int32, s=tf.string, b=tf.string),
    "uneven": _uneven,
    "empty": _empty,
    "total": _total,
    "complex": _complex,
    "logarithm": _logarithm,
}


def write(folder):
    """Name -> folder with its versions."""
    for number in (123, 124):
        half_plus_two(folder / HALF / str(number))
    module = tf.Module()
    module.functions = FUNCTIONS
    tf.saved_model.save(module, str(folder / "any" / "1"), signatures=FUNCTIONS)
    return {name: folder / name for name in (HALF, "any")}
