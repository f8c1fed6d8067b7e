"""Stories with questions, as bAbI publishes them.

A folder holds `qa1_single-supporting-fact_train.txt` and `..._test.txt`, or
`qa1_train.txt`, `qa1_valid.txt` and `qa1_test.txt` as in `en-valid`, for one
task or for several, plain or compressed. A file of one task means this task
alone. In a file, each line has a number, from 1 in each story, and a sentence,
or a question, its answer and the numbers of the sentences that support it, with
tabs between them.

Reference: https://arxiv.org/abs/1502.05698 (Weston et al. 2015)
"""

import os
import re

from keras_attention.data.readers import lines

SPLITS = {"train": "train", "valid": "validation", "test": "test"}
NAME = re.compile(r"(qa\d+(?:_[\w-]+)?)_(train|valid|test)\.txt")
Row = tuple[str, str, str, list[int]]


def load(path: str | os.PathLike) -> dict[str, list[Row]] | None:
    """Reads a folder of tasks, or one task by one of its files.

    Without a file for validation, each tenth story of train is for it.

    Args:
        path: see above.

    Returns:
        Split -> rows of an answer, a story (a sentence on each line), a
        question, and the sentences that support the answer, in the order of
        the file: 1 is the last one of the story. Sentences and questions are
        without their last mark. None if there are no such files.

    Raises:
        ValueError: If there are none for training, or if a line is neither a
            sentence nor a question. The message names file and line.
    """
    path = lines.to_path(path)
    folder, task = path, None
    if not path.is_dir():
        found = NAME.fullmatch(lines.without_compression(path.name))
        if found is None or not path.is_file():
            return None
        folder, task = path.parent, found[1]
    stories: dict[str, list[list[Row]]] = {}
    for file in sorted(folder.iterdir()):
        found = NAME.fullmatch(lines.without_compression(file.name))
        if found and task in (None, found[1]):
            split = SPLITS[found[2]]
            stories.setdefault(split, []).extend(read(file))
    if not stories:
        return None
    if "train" not in stories:
        raise ValueError(
            f"{folder} has stories of bAbI, and none for training. Put a file "
            "such as qa1_single-supporting-fact_train.txt beside them."
        )
    if "validation" not in stories:
        train = stories["train"]
        stories["validation"] = train[::10]
        del train[::10]
    return {
        split: [row for story in of_split for row in story]
        for split, of_split in stories.items()
    }


def read(path: str | os.PathLike) -> list[list[Row]]:
    """Reads the stories of a file: the rows of each story's questions.

    Raises:
        ValueError: As `load`.
    """
    stories: list[list[Row]] = []
    sentences: list[str] = []
    # The number of a line -> how many sentences are up to it.
    places: dict[str, int] = {}
    for number, line in enumerate(lines.read_lines(path), 1):
        place, _, text = line.partition(" ")
        if not place.isdigit() or not (stories or place == "1"):
            raise ValueError(
                f"{path}, line {number} does not begin with the number of a "
                f"sentence: {line[:50]!r}"
            )
        if place == "1":
            stories.append([])
            sentences, places = [], {}
        text, *rest = text.split("\t")
        text = text.strip().rstrip(".?").rstrip()
        if not rest:
            sentences.append(text)
            places[place] = len(sentences)
            continue
        supporting = rest[1].split() if len(rest) > 1 else []
        facts = [
            len(sentences) - places[fact] + 1
            for fact in supporting
            if fact in places
        ]
        stories[-1].append((rest[0].strip(), "\n".join(sentences), text, facts))
    return stories
