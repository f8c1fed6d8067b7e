"""The embedded corpus as a TensorFlow Datasets builder."""

import dataclasses
import hashlib
import importlib.metadata

import tensorflow_datasets as tfds

from keras_attention.data.embedded.phrases import generate

LANGUAGES = ("en", "de", "fr", "es")


@dataclasses.dataclass
class PhrasesConfig(tfds.core.BuilderConfig):
    """A pair of languages, as Babel and num2words name them."""

    source: str = "en"
    target: str = "de"


def config_for(source: str, target: str) -> PhrasesConfig:
    """The configuration of any two languages."""
    for config in Builder.BUILDER_CONFIGS:
        if (config.source, config.target) == (source, target):
            return config
    return _config(source, target)


def _config(source: str, target: str) -> PhrasesConfig:
    return PhrasesConfig(
        name=f"{source}_{target}",
        description=f"{source} to {target}",
        source=source,
        target=target,
    )


class Builder(tfds.core.GeneratorBasedBuilder):
    """Phrases that two languages form by rule; nothing is downloaded."""

    VERSION = tfds.core.Version("2.0.0")
    RELEASE_NOTES = {
        "1.0.0": "First release.",
        "2.0.0": "No two styles of date look alike.",
    }
    BUILDER_CONFIGS = [
        _config(source, target)
        for source in LANGUAGES
        for target in LANGUAGES
        if source != target
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        config = self.builder_config
        languages = (config.source, config.target)
        return self.dataset_info_from_configs(
            features=tfds.features.Translation(languages=languages),
            supervised_keys=languages,
            homepage="https://cldr.unicode.org",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        config = self.builder_config
        splits = generate(config.source, config.target)
        return {
            split: self._generate_examples(pairs)
            for split, pairs in splits.items()
        }

    def _generate_examples(self, pairs):
        config = self.builder_config
        for index, pair in enumerate(pairs):
            yield (
                index,
                {config.source: pair.source, config.target: pair.target},
            )


def fingerprint(source: str, target: str) -> str:
    """Changes with the libraries that form the phrases."""
    versions = [
        importlib.metadata.version(library)
        for library in ("babel", "num2words")
    ]
    text = f"{source} {target} {versions} {Builder.VERSION}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]
