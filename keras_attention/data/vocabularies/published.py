"""The vocabularies of published folders: the ids that their weights know."""

import json
import os
import pathlib
import re
from collections.abc import Callable, Sequence

import numpy as np
import sentencepiece

from keras_attention.published import files

_SENTINEL = re.compile(r"<extra_id_(\d+)>")
_LANGUAGE = re.compile(r"(>>[^<\s]+<<)\s*(.*)", re.DOTALL)


class PublishedTokenizer:
    """Texts to ids and back, by the vocabulary of a published folder.

    Args:
        read: the ids of a text.
        write: the text of ids, without control ids.
        pad_id, end_id: control ids.
        adds_end: whether a text gets END.
    """

    def __init__(
        self,
        read: Callable[[str], list[int]],
        write: Callable[[list[int]], str],
        pad_id: int,
        end_id: int,
        adds_end: bool,
    ):
        self._read, self._write = read, write
        self.pad_id, self.end_id = pad_id, end_id
        self.adds_end = adds_end

    def __repr__(self) -> str:
        ids = f"padding {self.pad_id}, end {self.end_id}"
        return f"<PublishedTokenizer: {ids}>"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The ids of texts, padded at their ends: int32 [B, T]."""
        end = [self.end_id] * self.adds_end
        rows = [[*self._read(text), *end] for text in texts]
        length = max(map(len, rows), default=0)
        ids = np.full((len(rows), length), self.pad_id, "int32")
        for row, found in zip(ids, rows, strict=True):
            row[: len(found)] = found
        return ids

    def decode(self, token_ids) -> list[str]:
        """The texts of ids [B, T], up to END. Padding is left out."""
        texts = []
        for row in np.asarray(token_ids).tolist():
            if self.end_id in row:
                row = row[: row.index(self.end_id)]
            texts.append(self._write([id for id in row if id != self.pad_id]))
        return texts


def published_tokenizer(folder: str | os.PathLike) -> PublishedTokenizer:
    """The tokenizer of a folder that `models.from_pretrained` reads.

    | family | files |
    |---|---|
    | GPT-2 | `tokenizer.json`, or `vocab.json` and `merges.txt` |
    | Marian | `vocab.json`, `source.spm` and `target.spm` |
    | T5, mT5 | `spiece.model` |

    Marian's texts are read in the source language and written in the target
    language. Some of its models write several languages: their texts begin
    with the code of one, such as `>>fra<<`. In a text for T5, `<extra_id_0>`
    and so on stand for what is left out.

    Args:
        folder: with `config.json` and the files above.

    Raises:
        ValueError: If a file is missing or damaged, or if the family has no
            vocabulary.
        ImportError: If the package `tokenizers` is not installed, which GPT-2
            needs.
    """
    path = files.folder_of(folder)
    config = files.read_config(path)
    makers = {"gpt2": _gpt2, "marian": _marian, "t5": _t5, "mt5": _t5}
    family = config.get("model_type")
    if family not in makers:
        raise ValueError(
            f"{path} holds a model of the family {family!r}. Families whose "
            f"vocabulary can be read: {', '.join(makers)}."
        )
    return makers[family](path, config)


def _file(folder: pathlib.Path, name: str) -> pathlib.Path:
    if not (folder / name).is_file():
        raise ValueError(f"{folder} has no {name}, which its vocabulary needs.")
    return folder / name


def _processor(path: pathlib.Path):
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _marian(folder, config) -> PublishedTokenizer:
    vocabulary = json.loads(_file(folder, "vocab.json").read_text("utf-8"))
    targets = vocabulary
    if (folder / "target_vocab.json").is_file():
        file = folder / "target_vocab.json"
        targets = json.loads(file.read_text("utf-8"))
    pieces = {id: piece for piece, id in targets.items()}
    source = _processor(_file(folder, "source.spm"))
    target = _processor(_file(folder, "target.spm"))
    unknown = vocabulary["<unk>"]

    def read(text):
        language = _LANGUAGE.match(text)
        found = []
        if language and language[1] in vocabulary:
            found, text = [language[1]], language[2]
        found += source.encode(text, out_type=str)
        return [vocabulary.get(piece, unknown) for piece in found]

    def write(ids):
        return target.decode_pieces([pieces.get(id, "<unk>") for id in ids])

    ids = config["pad_token_id"], config["eos_token_id"]
    return PublishedTokenizer(read, write, *ids, adds_end=True)


def _t5(folder, config) -> PublishedTokenizer:
    processor = _processor(_file(folder, "spiece.model"))
    size = processor.get_piece_size()
    choices = {}
    if (folder / "tokenizer_config.json").is_file():
        file = folder / "tokenizer_config.json"
        choices = json.loads(file.read_text("utf-8"))
    by_default = 100 if config["model_type"] == "t5" else 0
    num_sentinels = choices.get("extra_ids", by_default)
    # The first of them has the last id.
    last = size + num_sentinels - 1

    def read(text):
        ids = []
        parts = _SENTINEL.split(text) if num_sentinels else [text]
        for place, part in enumerate(parts):
            if place % 2 == 0:
                ids += processor.encode(part)
            elif int(part) < num_sentinels:
                ids.append(last - int(part))
            else:
                ids += processor.encode(f"<extra_id_{part}>")
        return ids

    def write(ids):
        parts, some = [], []
        for id in [*ids, None]:
            if id is not None and id < size:
                some.append(id)
                continue
            parts += [processor.decode(some)] if some else []
            some = []
            if id is not None and id <= last:
                parts.append(f"<extra_id_{last - id}>")
        return " ".join(parts)

    ids = config.get("pad_token_id", 0), config.get("eos_token_id", 1)
    return PublishedTokenizer(read, write, *ids, adds_end=True)


def _gpt2(folder, config) -> PublishedTokenizer:
    try:
        import tokenizers
        from tokenizers import decoders, models, pre_tokenizers
    except ImportError:
        raise ImportError(
            "GPT-2's vocabulary needs the package tokenizers. In a clone of "
            'the package: python -m pip install -e ".[published]". Elsewhere: '
            "python -m pip install tokenizers"
        ) from None
    if (folder / "tokenizer.json").is_file():
        tokenizer = tokenizers.Tokenizer.from_file(
            str(folder / "tokenizer.json")
        )
    else:
        names = ("vocab.json", "merges.txt")
        paths = [str(_file(folder, name)) for name in names]
        tokenizer = tokenizers.Tokenizer(models.BPE.from_file(*paths))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
            add_prefix_space=False
        )
        tokenizer.decoder = decoders.ByteLevel()
    # No text can hold a control id.
    tokenizer.encode_special_tokens = True
    end = config["eos_token_id"]
    return PublishedTokenizer(
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
        end,
        end,
        adds_end=False,
    )
