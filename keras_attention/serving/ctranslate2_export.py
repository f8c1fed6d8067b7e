"""A translator as a folder that CTranslate2 reads."""

import pathlib
import shutil

import numpy as np

from keras_attention.published import ctranslate2_folder
from keras_attention.tokens import PAD_TEXT

# Of a text, as CTranslate2 cuts it by default.
MOST_TOKENS = 1024


def _pieces(tokenizer) -> list[str]:
    """The piece of each id."""
    ids = np.arange(tokenizer.vocabulary_size)
    found = [piece.decode("utf-8") for piece in tokenizer.pieces(ids).numpy()]
    return [PAD_TEXT, *found[1:]]


def write(graph, folder: pathlib.Path) -> pathlib.Path:
    """See `Translator.export_ctranslate2`.

    Args:
        graph: a `TranslationGraph`.
        folder: where the files go.
    """
    folder = folder.expanduser()
    ctranslate2_folder.check_folder(folder)
    model, config = graph.model, graph.model.get_config()
    ctranslate2_folder.check_model(type(model).__name__, config)
    weights = {
        weight.path.partition("/")[2]: np.array(weight)
        for weight in model.weights
    }
    if any(name.endswith("_lora_a") for name in weights):
        raise ValueError(
            "This model holds changes of LoRA apart from its kernels. Export "
            "its run: the run's weights have the changes in the kernels."
        )
    if any(weight.dtype == "int8" for weight in weights.values()):
        raise ValueError(
            "CTranslate2 quantizes by itself, from weights of float32. Export "
            "the model before `quantize`."
        )
    limits = graph.limits
    answers = limits.target_lengths([limits.max_source_length])
    # START stands before an answer.
    longest = 1 + max(int(answers[0]), limits.max_source_length, MOST_TOKENS)
    nothing = np.zeros((1, longest, config["hidden_dim"]), "float32")
    tokenizers = {
        "source": graph.source_tokenizer,
        "target": graph.target_tokenizer,
    }
    partial = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    ctranslate2_folder.write(
        partial,
        config,
        weights,
        np.array(model.position_encoding(nothing)[0]),
        {name: _pieces(one) for name, one in tokenizers.items()},
    )
    for name, tokenizer in tokenizers.items():
        (partial / f"{name}.spm").write_bytes(tokenizer.model)
    # The folder has all files or none.
    partial.replace(folder)
    return folder
