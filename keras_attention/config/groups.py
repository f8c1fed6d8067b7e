"""Every choice of a training: its default, its bounds and its help, once."""

import dataclasses
from typing import Literal

from keras_attention.config.choices import Choices, choice
from keras_attention.config.defaults import by_default
from keras_attention.models import catalog


@dataclasses.dataclass(frozen=True)
class Architecture(Choices):
    """The model."""

    model: str = choice(
        "transformer",
        "The architecture, by the name of its paper's file. It decides the "
        "task. `train --list` lists them all.",
        one_of=tuple(catalog.CATALOG),
    )
    learns: str | None = choice(
        None,
        "The task, where a model has more than one. By default the model's "
        "own. question_answering (questions about stories) is for "
        f"{' or '.join(catalog.OTHER_TASKS['question_answering'][1])}.",
    )
    size: str | None = choice(
        None,
        "A named size of the model, such as tiny or base." + by_default("size"),
    )
    model_arguments: dict = choice(
        dict,
        "Arguments of the model that replace the size's, such as "
        "'{\"num_layers\": 2}'.",
    )
    dropout: float | None = choice(
        None,
        "The rate of dropout. If no default is listed, the model's size "
        "decides." + by_default("dropout"),
        at_least=0,
        below=1,
    )
    weight_range: float | None = choice(
        None,
        "The first weights are drawn evenly between -N and N. By default each "
        "layer has its own rule.",
        above=0,
    )
    lora_rank: int | None = choice(
        None,
        "Train changes of attention's projections of this rank alone, and keep "
        "all other weights as --init gives them.",
        at_least=1,
    )
    precision: Literal["float32", "bfloat16"] = choice(
        "float32", "The precision of activations. Weights are float32."
    )


@dataclasses.dataclass(frozen=True)
class Data(Choices):
    """The corpus and its batches."""

    corpus: str | None = choice(
        None,
        "What to train on. By default the corpus that is embedded for the "
        "task. For translators, a folder holds files of aligned lines "
        "(train.en, train.de, validation.en, ...), of lines with a tab between "
        "source and target (train.tsv, ...) or of a split of SCAN. A SCAN "
        "training file is used with the test file beside it. "
        '"tfds:NAME/CONFIG" may end in "@" and slices. For language models, a '
        "folder holds train.txt and validation.txt. For classifiers, a folder "
        "holds train.tsv and validation.tsv, or the same in .csv or .jsonl, or "
        "a published data set such as TREC. Question answering takes a folder "
        "or a file of bAbI, or tables with the columns answer, story and "
        "question. A single table is split into train, validation and test. A "
        "table without a header has the label first, then the text or two "
        "texts. For pictures, a folder holds train.jsonl and "
        "validation.jsonl. With one language as source and target, a folder "
        "holds train.LANGUAGE or train.txt. All files may be compressed.",
        is_path=True,
    )
    columns: str | None = choice(
        None,
        "For classifiers, the columns of label and texts in your own tables, "
        "with commas between them: names, as in label,text, or numbers, as in "
        "2,1 where the text is first. By default they are found by usual "
        "names, such as label, text, sentence, premise and hypothesis.",
    )
    source: str | None = choice(
        None,
        "The language code of the source, which names its files. With SCAN, "
        "it is commands. Only translators and language models have one."
        + by_default("source"),
    )
    target: str | None = choice(
        None,
        "The language code of the target, which names its files. With SCAN, "
        "it is actions. Only translators have one." + by_default("target"),
    )
    data_note: str | None = choice(
        None,
        "What the model's card says of the data: whose it is, its licence, "
        "whom to cite. By default that of an embedded corpus, or that the "
        "licence is not stated.",
    )
    max_length: int = choice(
        128,
        "The longest text in tokens. Longer ones are dropped from the "
        "corpus, and longer inputs are refused.",
        at_least=2,
    )
    max_tokens: int | None = choice(
        None,
        "The greatest number of target tokens in a batch, with padding. "
        "Source tokens may be twice as many. Where there is no target, the "
        "tokens are the text's. It takes the place of a batch size: the longer "
        "the texts, the fewer make a batch." + by_default("max_tokens"),
        at_least=1,
    )
    context: Literal["line", "stream", "carry"] = choice(
        "line",
        'What a language model sees before a word. "line" is the line alone. '
        '"stream" is also the lines before it, in texts of as many lines as '
        '`max_length` has room for. "carry" is all lines before it: a '
        "recurrent model goes on from the state of the batch before.",
    )
    context_length: int = choice(
        35,
        "With context=carry, the tokens through which gradients flow back. A "
        "batch has max_tokens / context_length rows, and reads as many tokens "
        "of each.",
        at_least=1,
    )
    validation_sentences: int = choice(
        500, "How many texts are answered after each epoch.", at_least=1
    )


@dataclasses.dataclass(frozen=True)
class Vocabulary(Choices):
    """The vocabulary."""

    vocabulary_type: Literal["unigram", "bpe", "word", "char"] | None = choice(
        None,
        "What a piece is: a subword of a unigram model or of byte pair "
        "encoding, a word, or a character." + by_default("vocabulary_type"),
    )
    target_vocabulary_type: Literal["unigram", "bpe", "word", "char"] | None = (
        choice(
            None,
            "What a piece of the target is, if it is something else than in "
            "the source: letters to sounds have char and word. Source and "
            "target then have a vocabulary each."
            + by_default("target_vocabulary_type"),
        )
    )
    vocabulary_size: int | None = choice(
        None,
        "The greatest number of pieces in the vocabulary, or in each of the "
        "two if it is not joint." + by_default("vocabulary_size"),
        at_least=1,
    )
    max_piece_length: int | None = choice(
        None,
        "The greatest number of characters in a piece."
        + by_default("max_piece_length"),
        at_least=1,
    )
    normalization: Literal[
        "as_written", "identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"
    ] = choice(
        "as_written",
        'The rule by which texts are read. "as_written" keeps what people '
        "write, but for spaces and control characters. The rules with nfkc "
        "unite characters that mean the same. Those with _cf also lower all "
        "letters.",
    )
    joint_vocabulary: bool = choice(
        True,
        "Both languages share one vocabulary. `--joint_vocabulary=false` "
        "gives each its own.",
    )
    subword_sampling: float = choice(
        0.0,
        "Alpha of subword regularisation. 0 turns it off.",
        at_least=0,
    )

    @property
    def is_joint(self) -> bool:
        """Whether source and target share one vocabulary."""
        return self.joint_vocabulary and self.target_vocabulary_type is None


@dataclasses.dataclass(frozen=True)
class Optimizer(Choices):
    """The loss and its optimizer."""

    label_smoothing: float | None = choice(
        None,
        "The share of the target that is spread evenly over the vocabulary."
        + by_default("label_smoothing"),
        at_least=0,
        below=1,
    )
    guided_alignment: str | None = choice(
        None,
        "Where a translator should look while it trains: a file with the links "
        "of the words of each training pair, a line each, such as 0-0 1-2, as "
        "fast_align writes them (the source's word first, counted from 0). "
        '"hmm" takes the links that a hidden Markov model finds in the '
        "training pairs. Words have spaces between them. By default nobody "
        f"tells. It is for {', '.join(catalog.GUIDED)}.",
        is_path=True,
    )
    guided_alignment_weight: float = choice(
        1.0,
        "How much the cross-entropy of attention and links counts, where that "
        "of the translation counts 1.",
        above=0,
    )
    optimizer: Literal["adam", "sgd"] = choice(
        "adam",
        '"adam" divides the step of each weight by the size of its past '
        'gradients. "sgd" is plain gradient descent. It has no default for '
        "`learning_rate`. Give a far greater rate than Adam's, such as 30 for "
        "a language model with a `clip_norm` of 0.15.",
    )
    learning_rate: float | None = choice(
        None,
        "The peak of the learning rate." + by_default("learning_rate"),
        above=0,
    )
    schedule: Literal[
        "cosine", "inverse_sqrt", "constant", "decay", "plateau"
    ] = choice(
        "cosine",
        'How the learning rate falls after the warm-up. "constant" has no '
        'warm-up and never falls, "decay" and "plateau" have none and fall '
        'between epochs. "decay" multiplies the rate by `decay_factor` after '
        'every epoch from `constant_epochs` on. "plateau" does so after an '
        "epoch that has not lowered a language model's validation perplexity "
        "by 1.",
    )
    constant_epochs: int = choice(
        4, "The epochs before the rate falls, with schedule=decay.", at_least=1
    )
    decay_factor: float = choice(
        0.5, "See `schedule`: 0.5 halves the rate.", above=0, below=1
    )
    warmup_steps: int = choice(
        500,
        "Updates until the peak. With cosine, at most half of all updates.",
        at_least=1,
    )
    clip_norm: float = choice(
        1.0,
        "The greatest norm of the whole gradient. 0 turns clipping off.",
        at_least=0,
    )
    micro_batches: int = choice(
        1, "Parts of a batch that are computed one by one.", at_least=1
    )


@dataclasses.dataclass(frozen=True)
class Training(Choices):
    """How long, and which weights are kept."""

    epochs: int | None = choice(
        None,
        "Passes over the training pairs. If `steps` is given alone, epochs "
        "have no limit. A run may be resumed with more epochs: the schedule is "
        "then that of the longer run." + by_default("epochs"),
        at_least=1,
    )
    steps: int | None = choice(
        None, "Stop after this many updates. By default no limit.", at_least=1
    )
    average_last: int = choice(
        0,
        "Keep the mean of the weights of the last N epochs, in place of the "
        "best epoch's. 0 turns it off.",
        at_least=0,
    )
    distillation_epochs: int = choice(
        0,
        "After normal training, the model translates its own training set. It "
        "then trains for N more epochs on the human translations and its own, "
        "at half the learning rate. 0 turns it off.",
        at_least=0,
    )
    distillation_teachers: str | None = choice(
        None,
        "Finished runs of translators with one vocabulary, with commas between "
        "their folders. They translate the training set together, in place of "
        "the model itself. With `init`, the model begins the N epochs with "
        "these weights, and there is no normal training before.",
    )


@dataclasses.dataclass(frozen=True)
class Search(Choices):
    """The exported model's search, if it writes texts."""

    num_beams: int | None = choice(
        None,
        "Beams of the search. 1 is greedy search." + by_default("num_beams"),
        at_least=1,
    )
    length_penalty: float | None = choice(
        None,
        "Alpha of the length penalty. 0 turns it off."
        + by_default("length_penalty"),
        at_least=0,
    )
    no_repeat_ngram_size: int | None = choice(
        None,
        "How many tokens in a row no answer may write twice. 0 turns it off. "
        "Paulus et al. 2017 have 3. Translators and language models have it."
        + by_default("no_repeat_ngram_size"),
        at_least=0,
    )


@dataclasses.dataclass(frozen=True)
class Run(Choices):
    """Where and on what it runs."""

    output: str | None = choice(
        None,
        "The run's folder. By default its name says corpus, languages and "
        "model, as in runs/phrases_en_de_transformer.",
        is_path=True,
    )
    init: str | None = choice(
        None,
        "The weights to begin with: the folder of a run, a file "
        "(weights.npz, NAME.keras, NAME.weights.h5, NAME.safetensors), or a "
        "published folder with config.json and model.safetensors. They are "
        "matched by name and shape. A run also gives its vocabulary, and its "
        "model, size, model_arguments and task (`learns`) unless others are "
        "named. A published folder gives its model.",
        is_path=True,
    )
    seed: int = choice(1, "The seed of everything random.", at_least=0)
    replicas: int | None = choice(
        None,
        "Copies of the model that share each batch, on all workers together. "
        "By default one on each GPU, or one on the CPU if there is no GPU. On "
        "a CPU, N gives N logical devices.",
        at_least=1,
    )
    checkpoint_steps: int = choice(
        200,
        "Batches between two checkpoints in an epoch. 0 writes one an epoch.",
        at_least=0,
    )


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Every choice of a training, in groups."""

    architecture: Architecture = Architecture()
    data: Data = Data()
    vocabulary: Vocabulary = Vocabulary()
    optimizer: Optimizer = Optimizer()
    training: Training = Training()
    search: Search = Search()
    run: Run = Run()

    @property
    def task(self) -> str:
        """The task, which the model decides, or `learns`."""
        choices = self.architecture
        return choices.learns or catalog.CATALOG[choices.model].task
