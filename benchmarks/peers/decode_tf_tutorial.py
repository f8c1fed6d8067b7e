"""The TensorFlow tutorial's Translator: greedy, one sentence at a time.

    python decode_tf_tutorial.py WORKLOAD

"Neural machine translation with a Transformer and Keras": for each new token
the whole model, its encoder too, runs again on all tokens so far. The model is
that of train_tf_tutorial.py with random weights, ids in, ids out. Each answer
has 20 tokens: the tutorial's `break` at END is left out.

As there, the exported function returns no attention scores, so TensorFlow
drops the call that computes them. `WORKLOAD` is what `benchmarks/workload.py`
wrote, of size S. Prints one JSON line.
"""

import argparse
import json
import pathlib
import statistics
import time

import keras
import tensorflow as tf
from train_tf_tutorial import WIDTH, Transformer

START, STEPS = 2, 20


class Translator(tf.Module):
    def __init__(self, transformer):
        super().__init__()
        self.transformer = transformer

    def __call__(self, source, max_length):
        output_array = tf.TensorArray(tf.int64, size=0, dynamic_size=True)
        output_array = output_array.write(0, tf.constant([START], tf.int64))
        for i in tf.range(max_length):
            output = tf.transpose(output_array.stack())
            predictions = self.transformer([source, output], training=False)
            predicted_id = tf.argmax(predictions[:, -1:, :], axis=-1)
            output_array = output_array.write(i + 1, predicted_id[0])
        output = tf.transpose(output_array.stack())
        # The scores of the loop cannot leave it.
        self.transformer([source, output[:, :-1]], training=False)
        scores = self.transformer.decoder.layers[-1].cross_attention.scores
        return output, scores


class ExportTranslator(tf.Module):
    def __init__(self, translator):
        super().__init__()
        self.translator = translator

    @tf.function(input_signature=[tf.TensorSpec([1, None], tf.int64)])
    def __call__(self, source):
        output, _ = self.translator(source, max_length=STEPS)
        return output


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    sizes = json.loads((arguments.workload / "sizes.json").read_text())
    if sizes["hidden_dim"] != WIDTH:
        parser.error("the workload is not of size S")
    sources = json.loads((arguments.workload / "sources.json").read_text())
    sources = [tf.constant([row], tf.int64) for row in sources]
    keras.utils.set_random_seed(1)
    transformer = Transformer(sizes["vocabulary_size"])
    # Variables cannot be made inside the loop.
    transformer([sources[0], sources[0]])
    translate = ExportTranslator(Translator(transformer))
    translate(sources[0])
    times, index, start = [], 0, time.perf_counter()
    while time.perf_counter() - start < arguments.seconds or len(times) < 5:
        before = time.perf_counter()
        translate(sources[index % len(sources)]).numpy()
        times.append(time.perf_counter() - before)
        index += 1
    print(
        json.dumps(
            {
                "system": f"tf tutorial (TensorFlow {tf.__version__})",
                "num_beams": 1,
                "batch_size": 1,
                "sentences_per_second": len(times) / sum(times),
                "median_ms": 1000 * statistics.median(times),
            }
        )
    )


if __name__ == "__main__":
    main()
