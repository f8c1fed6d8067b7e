"""`--precision auto`: which precision trains faster on this machine."""

import inspect
import time

import tensorflow as tf

from keras_attention import config as configuration
from keras_attention.models import catalog
from keras_attention.training import run_directory

# Rows of the products that are measured: tokens of a batch.
ROWS = 2048
# bfloat16 rounds, so a small gain is not worth it. And a step has more than
# matrix products: it gains less than these.
LEAST_GAIN = 1.5


def decided(
    config: configuration.TrainingConfig, resume: bool, num_workers: int = 1
) -> configuration.TrainingConfig:
    """A configuration whose precision is float32 or bfloat16.

    A run keeps the precision that it began with: it would not be the same run
    on another machine. Else matrix products of the model's width decide.

    Args:
        config: every choice.
        resume: whether a run in the folder `output` goes on.
        num_workers: the processes that train the model together.

    Raises:
        ValueError: If several workers would each decide for themselves.
    """
    if config.architecture.precision != "auto":
        return config
    if num_workers > 1:
        raise ValueError(
            "--precision auto measures one machine. Several workers need one "
            "precision: give --precision float32 or --precision bfloat16."
        )
    directory = run_directory.at(config.run.output)
    if resume and directory.is_run:
        precision = run_directory.read_config(directory).architecture.precision
        print(f"Precision: {precision}, as the run began.")
        return configuration.replace(config, precision=precision)
    precision, reason = choose(widths(config.architecture))
    print(f"Precision: {precision}. {reason}")
    return configuration.replace(config, precision=precision)


def widths(choices: configuration.Architecture) -> tuple[int, int] | None:
    """The least and the greatest width of a model's matrices, if known."""
    model = catalog.model_class(choices.model)
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(model).parameters.items()
    }
    arguments = {
        **defaults,
        **model.sizes.get(choices.size, {}),
        **choices.model_arguments,
    }
    found = [
        value
        for name, value in arguments.items()
        if (name == "units" or name.endswith("_dim")) and isinstance(value, int)
    ]
    return (min(found), max(found)) if found else None


def choose(shape: tuple[int, int] | None) -> tuple[str, str]:
    """The faster precision for products of a width, and the reason."""
    if shape is None:
        return "float32", "The model has no width that could be measured."
    seconds = {name: _seconds(name, shape) for name in ("float32", "bfloat16")}
    gain = seconds["float32"] / seconds["bfloat16"]
    chosen = "bfloat16" if gain >= LEAST_GAIN else "float32"
    least, greatest = shape
    return chosen, (
        f"Matrix products of {least} by {greatest}, forward and back, take "
        f"{1000 * seconds['float32']:.1f} ms in float32 and "
        f"{1000 * seconds['bfloat16']:.1f} ms in bfloat16. bfloat16 is taken "
        f"where it is {LEAST_GAIN} times as fast."
    )


def _seconds(precision: str, shape: tuple[int, int]) -> float:
    """The best time of a product and its gradients, in about half a second.

    As in mixed precision, the weights are cast in each step, and their
    gradient is cast back.
    """
    least, greatest = shape
    inputs = tf.cast(
        tf.random.stateless_normal([ROWS, least], [1, 2]), precision
    )
    weights = tf.random.stateless_normal([least, greatest], [3, 4])

    @tf.function(autograph=False)
    def step(inputs, weights):
        with tf.GradientTape() as tape:
            tape.watch([inputs, weights])
            outputs = inputs @ tf.cast(weights, precision)
        return tape.gradient(outputs, [inputs, weights], outputs)

    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < 0.4:
        before = time.perf_counter()
        # Reading a value waits for a GPU.
        step(inputs, weights)[1][0, 0].numpy()
        times.append(time.perf_counter() - before)
    return min(times)
