"""Pictures with labels: which label a picture has, by accuracy and macro-F1."""

import numpy as np

from keras_attention import plotting
from keras_attention.data import columns
from keras_attention.data.embedded import digits
from keras_attention.data.readers import labelled_images, lines
from keras_attention.serving import kinds, labeller
from keras_attention.tasks import classification, models
from keras_attention.tasks.task import TestSet

# From 0 (white) to 1 (black).
_SHADES = " .:-=+*#"


class ImageClassification(classification.Classification):
    """Gives a picture its label.

    In Python, a row is an array, or a list of lists: the shades of the pixels.
    In files and on the command line, it is such a list in JSON.
    """

    name = "image_classification"
    columns = {
        "label": columns.Class(),
        "image": columns.Numbers(shape=digits.SHAPE),
    }
    headings = ("picture", "label", "right label")
    embedded = {"digits": digits}
    kind = kinds.IMAGE_CLASSIFICATION
    counted = "pictures"

    @property
    def shape(self) -> tuple[int, ...]:
        """Height and width of a picture."""
        return self.columns["image"].shape

    def rows(self, choices):
        if choices.corpus in self.embedded:
            return self.embedded[choices.corpus].generate(), 0
        return labelled_images.load(choices.corpus, self.shape), 0

    def tokenizers(self, choices, directory, corpus):
        self.write_classes(directory, corpus)
        return self.load_tokenizers(directory)

    def load_tokenizers(self, directory):
        """The labels alone: a picture has no vocabulary."""
        return (self.load_classes(directory),)

    def encoders(self, tokenizers):
        (classes,) = tokenizers
        return {"label": classes}

    def create_model(self, config, tokenizers):
        (classes,) = tokenizers
        architecture = config.architecture
        if architecture.size == "base" and (
            "patch_size" not in architecture.model_arguments
        ):
            raise ValueError(
                "The size base of vision_transformer has patches of 16 pixels, "
                "and the pictures have 8 x 8. Choose --size=mini, or give "
                """--model_arguments='{"patch_size": 2}'."""
            )
        return models.create(
            architecture,
            num_classes=len(classes),
            image_shape=(*self.shape, 1),
        )

    def servable(self, config, model, tokenizers, stored_precision="float32"):
        return labeller.Labeller.of_images(
            model, *tokenizers, self.shape, stored_precision
        )

    def test_set(self, corpus, split, limit=None):
        rows = corpus.splits[split]
        rows = list(rows if limit is None else rows.take(limit))
        return TestSet(
            split,
            [row["image"].numpy().tolist() for row in rows],
            [row["label"].numpy().decode() for row in rows],
        )

    def sources_of(self, path):
        pictures, numbers = [], {"image": self.shape}
        for number, line in enumerate(lines.read_lines(path), 1):
            try:
                (picture,) = lines.row(line, ("image",), numbers)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}.") from None
            pictures.append(picture.tolist())
        return pictures

    def shown(self, test_set, answers):
        """Pictures in letters, their labels and the right ones."""
        return [
            (_in_letters(picture), label, right)
            for picture, label, right in zip(
                test_set.sources, answers, test_set.references, strict=True
            )
        ]

    def draw(self, folder, servable, evaluation):
        path = folder / "attention.png"
        picture = evaluation.test_set.sources[0]
        (shown,) = servable.with_attention([picture])
        # Where the class token looks in the last layer, by its heads.
        weights = shown["attention"][-1][:, 0, 1:]
        size = servable.model.config["patch_size"]
        rows, across = (
            [f"{first + 1}-{first + size}" for first in range(0, length, size)]
            for length in self.shape
        )
        plotting.attention_heat_map(
            across,
            rows,
            weights.reshape(-1, len(rows), len(across)),
            path=path,
            title=shown["label"],
            axis_names=("columns", "rows"),
        )
        return {"attention": path}


def _in_letters(picture) -> str:
    """A picture as lines of letters, a darker one for a darker pixel."""
    places = np.clip(np.array(picture) * len(_SHADES), 0, len(_SHADES) - 1)
    rows = places.astype(int)
    return "\n".join("".join(_SHADES[place] for place in row) for row in rows)
