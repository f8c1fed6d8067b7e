"""Every choice of a training run, as flags and YAML know them."""

import dataclasses
import math
import pathlib
import re
import typing
from typing import Literal


@dataclasses.dataclass
class TrainingConfig:
    """Train a translation model.

    Args:
        model: The architecture, by the name of its paper's file.
        size: A named size of it, such as tiny or base; by default the
            smallest for phrases, else the next.
        model_arguments: Arguments of the model that replace the size's,
            such as '{"num_layers": 2}'.
        corpus: "phrases" (generated offline), a folder with train.en,
            train.de, validation.en, ... (or .gz), or "tfds:NAME/CONFIG".
        source: Language code of the source.
        target: Language code of the target.
        data_note: What the model's card says of the data: whose it is, its
            licence, whom to cite.
        output: The run's folder; runs/CORPUS_SOURCE_TARGET_MODEL by default,
            CORPUS being the name of its folder.
        resume: Go on where a run in this folder was stopped.
        seed: Of everything random.
        replicas: Copies that share each batch: by default one on each GPU,
            one on a CPU; on a CPU, N logical devices.
        epochs: Passes over the training pairs; by default 8 for phrases,
            else 30, and no limit where `steps` is given. A run may be
            resumed with more: the schedule is then that of the longer run.
            (Not once it translates for `distillation_epochs`.)
        steps: Stop after this many updates; no limit by default.
        vocabulary_size: Pieces, at most; of each side if not joint. 550
            for phrases, else 4000, by default.
        max_piece_length: The most characters of a piece; 9 for phrases,
            else 16, by default.
        joint_vocabulary: One vocabulary for both languages.
        subword_sampling: Alpha of subword regularisation; 0 for none.
        max_length: The longest sentence in tokens; longer pairs are
            dropped, longer inputs are refused.
        max_tokens: The most target tokens of a batch, padding included;
            512 for phrases, else 2048, by default.
        dropout: Rate; 0.1 for phrases, else the size's own, by default.
        label_smoothing: Share of the target that is spread evenly.
        learning_rate: The peak; 0.004 for luong on phrases, else 0.002,
            by default.
        schedule: How the learning rate falls after the warm-up; "constant"
            has neither.
        warmup_steps: Updates until the peak; at most half of all for
            cosine.
        clip_norm: Greatest norm of the whole gradient; 0 for no clipping.
        micro_batches: Parts of a batch that are computed one by one.
        precision: Of activations; weights are float32.
        ema: Momentum of the weights' moving average; 0 for none.
        average_last: Keep the mean of the weights of the last N epochs,
            whatever `select` says; 0 for none.
        distillation_epochs: Further epochs, once `epochs` or `steps` are
            done, over the training pairs and, beside each, the model's own
            translation of its source; at half the learning rate. 0 for none.
        select: Which weights are kept: the best epoch by validation BLEU
            or loss, or the last.
        patience: Epochs without a better one before training stops; 0 for
            no early stop.
        validation_sentences: How many are translated after each epoch.
        checkpoint_steps: Batches between two checkpoints in an epoch.
        num_beams: Beams of the exported model, and of the translations for
            `distillation_epochs`.
        length_penalty: Alpha of the length penalty, in the exported model's
            search and in that for `distillation_epochs`.
    """

    model: Literal[
        "transformer",
        "rnnsearch",
        "luong",
        "rnn_encoder_decoder",
        "lstm_encoder_decoder",
    ] = "transformer"
    size: str | None = None
    model_arguments: dict = dataclasses.field(default_factory=dict)
    corpus: str = "phrases"
    source: str = "en"
    target: str = "de"
    data_note: str | None = None
    output: str | None = None
    resume: bool = False
    seed: int = 1
    replicas: int | None = None
    epochs: int | None = None
    steps: int | None = None
    vocabulary_size: int | None = None
    max_piece_length: int | None = None
    joint_vocabulary: bool = True
    subword_sampling: float = 0.0
    max_length: int = 128
    max_tokens: int | None = None
    dropout: float | None = None
    label_smoothing: float = 0.1
    learning_rate: float | None = None
    schedule: Literal["cosine", "inverse_sqrt", "constant"] = "cosine"
    warmup_steps: int = 500
    clip_norm: float = 1.0
    micro_batches: int = 1
    precision: Literal["float32", "bfloat16"] = "float32"
    ema: float = 0.0
    average_last: int = 0
    distillation_epochs: int = 0
    select: Literal["bleu", "loss", "last"] = "bleu"
    patience: int = 0
    validation_sentences: int = 500
    checkpoint_steps: int = 200
    num_beams: int = 4
    length_penalty: float = 1.0


@dataclasses.dataclass
class BenchmarkConfig:
    """Measure the speed on this machine; the last line is one JSON object.

    Args:
        size: Transformer tiny (S) or base (B), or RNNsearch (R).
        corpus: As for `train`.
        source: Language code of the source.
        target: Language code of the target.
        precision: Of activations in training.
        num_beams: Of the search.
        batch_size: Sentences of each search.
        seconds: Of each measure.
    """

    size: Literal["S", "B", "R"] = "S"
    corpus: str = "phrases"
    source: str = "en"
    target: str = "de"
    precision: Literal["float32", "bfloat16"] = "float32"
    num_beams: int = 1
    batch_size: int = 64
    seconds: float = 30.0

    def __post_init__(self):
        if min(self.num_beams, self.batch_size) < 1 or not self.seconds > 0:
            raise ValueError(
                "Expected num_beams and batch_size of at least 1 and positive "
                f"seconds. Received: num_beams={self.num_beams}, batch_size="
                f"{self.batch_size}, seconds={self.seconds}"
            )


# What the corpus decides where nothing is said.
DEFAULTS = {
    "phrases": {
        "epochs": 8,
        "vocabulary_size": 550,
        "max_piece_length": 9,
        "max_tokens": 512,
        "dropout": 0.1,
        "learning_rate": 2e-3,
        "size": "mini",
        "data_note": "Generated by keras_attention (Apache-2.0) from rules, "
        "with the names and forms of Unicode's CLDR and of num2words.",
    },
    "other": {
        "epochs": 30,
        "vocabulary_size": 4000,
        "max_piece_length": 16,
        "max_tokens": 2048,
        "dropout": None,
        "learning_rate": 2e-3,
        "size": "tiny",
        "data_note": "Its licence is not stated.",
    },
}

# What a model wants otherwise. With half of this, Luong's found its attention
# two epochs later (before its score was divided by the width).
MODEL_DEFAULTS = {("luong", "phrases"): {"learning_rate": 4e-3}}

# Of folders that are known by their name.
DATA_NOTES = {
    "multi30k": "Multi30k, task 1 (Elliott et al. 2016, W16-3210): captions of "
    "pictures in English and their translations. Its repository asks to be "
    "cited and states no licence for the text.",
}

AT_LEAST = {
    "seed": 0,
    "max_piece_length": 1,
    "epochs": 1,
    "steps": 1,
    "replicas": 1,
    "vocabulary_size": 1,
    "max_length": 2,
    "max_tokens": 1,
    "warmup_steps": 1,
    "micro_batches": 1,
    "validation_sentences": 1,
    "num_beams": 1,
    "length_penalty": 0,
    "clip_norm": 0,
    "average_last": 0,
    "distillation_epochs": 0,
    "patience": 0,
    "checkpoint_steps": 0,
    "subword_sampling": 0,
}
FROM_0_BELOW_1 = ("dropout", "label_smoothing", "ema")


def _check_type(name: str, value, kind) -> None:
    """That a choice has the type of its field; no number is infinite."""
    kinds = typing.get_args(kind) or (kind,)
    if typing.get_origin(kind) is Literal:
        fits, expected = value in kinds, f"one of {', '.join(kinds)}"
    elif float in kinds and type(value) in (int, float):
        fits, expected = -math.inf < value < math.inf, "a finite number"
    else:
        fits = type(value) in kinds
        names = [k.__name__ for k in kinds if k is not type(None)]
        expected = f"of type {' or '.join(names)}"
    if not fits:
        raise ValueError(
            f"Expected {name} to be {expected}. Received: {name}={value!r}"
        )


def check(config: TrainingConfig) -> None:
    """Refuses what cannot be meant.

    Errors: `ValueError` that names the first such choice.
    """
    for field in dataclasses.fields(config):
        _check_type(field.name, getattr(config, field.name), field.type)
    for name, least in AT_LEAST.items():
        value = getattr(config, name)
        if value is not None and value < least:
            raise ValueError(
                f"Expected {name} of at least {least}. Received: {name}={value}"
            )
    for name in FROM_0_BELOW_1:
        value = getattr(config, name)
        if value is not None and not 0 <= value < 1:
            raise ValueError(
                f"Expected {name} from 0 to below 1. Received: {name}={value}"
            )
    if config.patience and config.select == "last":
        raise ValueError(
            "Expected select=bleu or select=loss with patience: the last "
            "epoch is always better than those before. Received: "
            f"patience={config.patience}, select=last"
        )
    rate = config.learning_rate
    if rate is not None and not rate > 0:
        raise ValueError(
            f"Expected a positive learning_rate. Received: learning_rate={rate}"
        )


def corpus_name(corpus: str) -> str:
    """What a corpus is called: a folder by its name, without its path."""
    is_path = not corpus.startswith("tfds:")
    return pathlib.Path(corpus).resolve().name if is_path else corpus


def resolve(config: TrainingConfig) -> TrainingConfig:
    """Fills in what is left to corpus and model, and the output's name.

    Errors: `ValueError` for a choice that cannot be meant.
    """
    check(config)
    corpus = "phrases" if config.corpus == "phrases" else "other"
    defaults = DEFAULTS[corpus] | MODEL_DEFAULTS.get((config.model, corpus), {})
    name = corpus_name(config.corpus)
    if name in DATA_NOTES:
        defaults["data_note"] = DATA_NOTES[name]
    label = re.sub(r"\W+", "_", name).strip("_")
    defaults["output"] = (
        f"runs/{label}_{config.source}_{config.target}_{config.model}"
    )
    missing = {
        name: value
        for name, value in defaults.items()
        if getattr(config, name) is None
    }
    if config.steps is not None:
        missing.pop("epochs", None)
    return dataclasses.replace(config, **missing)
