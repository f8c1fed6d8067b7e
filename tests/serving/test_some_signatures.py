"""Some signatures of a SavedModel, and a SavedModel without Keras."""

import json
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_attention.serving import some_signatures

SHIPPED = pathlib.Path(__file__).parents[2] / "savedmodels/phrases_en_de"
SPEC = [tf.TensorSpec([None], tf.float32, name="x")]


class Counts(tf.Module):
    """Three functions; two call one function, and two read one variable."""

    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(3.0)
        self.twice = tf.function(lambda x: x * 2.0, input_signature=SPEC)

    @tf.function(input_signature=SPEC)
    def doubled(self, x):
        return {"y": self.twice(x)}

    @tf.function(input_signature=SPEC)
    def scaled(self, x):
        return {"y": self.factor * self.twice(x)}

    @tf.function(input_signature=SPEC, autograph=False)
    def summed(self, x):
        _, total = tf.while_loop(
            lambda place, _: place < tf.size(x),
            lambda place, total: (place + 1, total + self.factor * x[place]),
            (0, 0.0),
        )
        return {"y": total[tf.newaxis]}


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    path = tmp_path_factory.mktemp("counts") / "1"
    module = Counts()
    signatures = {
        "serving_default": module.doubled,
        "scaled": module.scaled,
        "summed": module.summed,
    }
    tf.saved_model.save(module, str(path), signatures=signatures)
    return path


def num_functions(path):
    saved = saved_model_pb2.SavedModel.FromString(
        (path / "saved_model.pb").read_bytes()
    )
    return len(saved.meta_graphs[0].graph_def.library.function)


@pytest.mark.parametrize("is_brief", [False, True])
@pytest.mark.parametrize(
    "names, expected",
    [
        ({"serving_default"}, {"serving_default": [2.0, 4.0]}),
        ({"scaled"}, {"scaled": [6.0, 12.0]}),
        ({"summed"}, {"summed": [9.0]}),
        (
            {"scaled", "summed", "missing"},
            {"scaled": [6.0, 12.0], "summed": [9.0]},
        ),
    ],
)
def test_what_is_kept_answers_as_before(version, names, expected, is_brief):
    with some_signatures.folder(version, names, is_brief) as part:
        assert num_functions(part) < num_functions(version)
        loaded = tf.saved_model.load(str(part))
    assert not part.exists()
    assert {*loaded.signatures} == {*expected}
    for name, values in expected.items():
        outputs = loaded.signatures[name](x=tf.constant([1.0, 2.0]))
        assert outputs["y"].numpy().tolist() == values


class Squashes(Counts):
    """One more function, by an operation that has a gradient of its own."""

    @tf.function(input_signature=SPEC)
    def squashed(self, x):
        return {"y": tf.nn.silu(x)}


def test_where_an_operation_has_a_gradient_of_its_own(tmp_path):
    module = Squashes()
    signatures = {"scaled": module.scaled, "squashed": module.squashed}
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=signatures)
    with some_signatures.folder(tmp_path / "1", {"squashed"}) as part:
        loaded = tf.saved_model.load(str(part))
    assert (tmp_path / "1").is_dir()
    found = loaded.signatures["squashed"](x=tf.constant([1.0, 2.0]))["y"]
    # x / (1 + e^-x)
    assert found.numpy() == pytest.approx([0.731059, 1.761594], rel=1e-5)


def answers_of(program):
    command = [sys.executable, "-c", program, str(SHIPPED)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output.splitlines()[-1])


LOAD = """
import json, sys
from keras_attention import on_demand
on_demand.import_tensorflow()
from keras_attention import runs
model = runs.load_some(sys.argv[1], {"greedy", "serving_default"}, True)
answers = [model(["twenty-one"]), model(["7:05 PM"], num_beams=1)]
answers.append(sorted(model.signatures))
try:
    model.score(["one"], ["eins"])
except ValueError as error:
    answers.append(str(error).partition("answers by ")[2])
import tensorflow as tf
options = tf.config.optimizer.get_experimental_options()
answers.append(options["disable_meta_optimizer"])
answers.append([name for name in ("keras", "jax") if name in sys.modules])
import keras, tensorflow_text
answers.append(keras.ops.add(1, 1).numpy().item())
print(json.dumps(answers))
"""


@pytest.mark.skipif(not SHIPPED.is_dir(), reason="needs the repository")
def test_a_saved_model_answers_without_keras_which_comes_later():
    assert answers_of(LOAD) == [
        ["einundzwanzig"],
        ["19:05"],
        # `inspect` is loaded when it is asked.
        ["greedy", "inspect", "num_tokens", "serving_default"],
        "greedy, inspect, num_tokens, serving_default, and not by 'score'. "
        "Load all signatures, by ka.load.",
        False,  # Nobody changes TensorFlow's choices for the whole process.
        [],
        2,
    ]
