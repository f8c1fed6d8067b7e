"""Experts beside one network, with as many multiplications a token.

    python benchmarks/experts.py FOLDER --experts 1
    python benchmarks/experts.py FOLDER --experts 16

trains a language model on the texts of FOLDER, such as the Penn Treebank, and
prints its perplexity on the validation text after each epoch. It is a causal
Transformer of two layers, 128 wide. With one expert, the feed-forward network
of a layer is 512 wide. With more, each layer is a sparsely gated mixture
(Shazeer et al. 2017, https://arxiv.org/abs/1701.06538): an expert is 256 wide,
and a token chooses two of them. So both do as many multiplications a token, and
the gates do a few more. The paper has experts between two LSTMs.

Batches, vocabulary, optimizer and schedule are those of the recipe
`ptb_transformer_language_model`. The test text is not read.
"""

import argparse
import math
import tempfile

import keras

from keras_attention import config, devices, layers, tasks
from keras_attention.tokens import PAD
from keras_attention.training import parts, run_directory, trainer

NUM_LAYERS = 2
WIDTH = 128
NUM_HEADS = 4
NETWORK_WIDTH = 512
NUM_CHOSEN = 2
DROPOUT = 0.1


def multiplications(num_experts):
    """Those of a token in the feed-forward networks, gates included."""
    network = 2 * WIDTH * NETWORK_WIDTH
    # Outside training, a gate has no noise.
    gate = WIDTH * num_experts if num_experts > 1 else 0
    return NUM_LAYERS * (network + gate)


def mixture(num_experts):
    """A layer's experts, or None for a network of its own."""
    if num_experts == 1:
        return None
    return layers.MixtureOfExperts(
        num_experts,
        NETWORK_WIDTH // NUM_CHOSEN,
        NUM_CHOSEN,
        activation=layers.tanh_gelu,
    )


def language_model(vocabulary_size, num_experts):
    """Ids [B, T] -> logits [B, T, V]; experts in place of a network."""
    token_ids = keras.Input((None,), dtype="int32")
    embedding = keras.layers.ReversibleEmbedding(
        vocabulary_size,
        WIDTH,
        embeddings_initializer=keras.initializers.RandomNormal(
            stddev=0.5 * WIDTH**-0.5
        ),
    )
    x = embedding(token_ids) * math.sqrt(WIDTH)
    x = layers.PositionEncoding()(x)
    x = keras.layers.Dropout(DROPOUT)(x)
    for _ in range(NUM_LAYERS):
        layer = layers.SelfAttentionLayer(
            NUM_HEADS,
            NETWORK_WIDTH,
            DROPOUT,
            norm_first=True,
            feed_forward=mixture(num_experts),
        )
        x, _ = layer(x, padding_mask=token_ids != PAD, use_causal_mask=True)
    x = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    return keras.Model(token_ids, embedding(x, reverse=True))


def batches(choices):
    """The vocabulary's size, and the pipeline of the corpus."""
    task = tasks.get(choices.task)
    corpus = task.load(choices.data)
    directory = run_directory.start(choices)
    tokenizers = task.tokenizers(choices.vocabulary, directory, corpus)
    (tokenizer,) = tokenizers
    pipeline = task.pipeline(choices, corpus, tokenizers, replicas=1)
    return tokenizer.vocabulary_size, pipeline


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", help="texts, a line each")
    parser.add_argument("--experts", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    devices.keep_memory()
    with tempfile.TemporaryDirectory() as folder:
        chosen = config.read("ptb_transformer_language_model") | {
            "corpus": options.folder,
            "output": folder,
            "epochs": options.epochs,
        }
        choices = config.resolve(config.make(**chosen))
        vocabulary_size, pipeline = batches(choices)
    keras.utils.set_random_seed(options.seed)
    model = language_model(vocabulary_size, options.experts)
    print(
        f"{options.experts} experts: {model.count_params():,} weights; "
        f"{multiplications(options.experts):,} multiplications a token in "
        "networks and gates"
    )
    fitted = trainer.Trainer(model, clip_norm=choices.optimizer.clip_norm)
    num_steps = options.epochs * pipeline.report.batches
    fitted.compile(
        parts.make_optimizer(choices.optimizer, num_steps), jit_compile=False
    )
    for epoch in range(options.epochs):
        fitted.fit(pipeline.training(epoch), shuffle=False, verbose=0)
        logs = fitted.evaluate(
            pipeline.validation(), return_dict=True, verbose=0
        )
        print(
            f"epoch {epoch + 1}: validation perplexity "
            f"{logs['perplexity']:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
