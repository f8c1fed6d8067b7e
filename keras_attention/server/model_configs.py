"""Which models are served, from where, and which of their versions.

A configuration comes from the command line, from a file with TensorFlow
Serving's `ModelServerConfig` as text, or from a client's
`HandleReloadConfigRequest`.
"""

import collections
import dataclasses
import os
import pathlib
import re
from collections.abc import Mapping, Sequence

from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from keras_attention.server import settings

# Versions are 64 bits wide in the protocol.
_MOST = 2**63 - 1


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """A model that is served.

    Attributes:
        name: as clients name it.
        folder: where its numeric versions are. Or, if `single` is given, a
            folder that holds one version.
        single: the number of the only version, or None.
        num_latest: how many versions are served, the greatest first; or None
            if `specific` says which, or if all are.
        specific: the versions that are served.
        labels: label -> version.

    Raises:
        ValueError: If the name cannot stand in the path of a request.
    """

    name: str
    folder: pathlib.Path
    single: int | None = None
    num_latest: int | None = 1
    specific: tuple[int, ...] = ()
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        settings.check_name(self.name)

    def versions_on_disk(self) -> dict[int, pathlib.Path]:
        """The versions that are there: number -> folder."""
        # A wrong file of models is found before TensorFlow is imported.
        from keras_attention.serving import savedmodel

        if self.single is not None:
            found = {self.single: self.folder}
        else:
            found = {
                int(path.name): path
                for path in savedmodel.versions(self.folder)
                if int(path.name) <= _MOST
            }
        # A link is a version wherever it leads, and it may lead nowhere.
        return {number: path for number, path in found.items() if path.is_dir()}

    def select(self, numbers: Sequence[int]) -> set[int]:
        """Which of some versions are to be served: labelled ones, too."""
        # A label on a version that is not served would be an error.
        ordered = sorted(numbers, reverse=True)
        chosen = self.specific or ordered[: self.num_latest]
        return {*numbers} & {*chosen, *self.labels.values()}


def from_folder(path: str, name: str | None = None) -> ModelConfig:
    """The configuration of a folder of versions, of one version, or of a run.

    Args:
        path: a SavedModel's folder, one of its versions, or a run's folder
            (whose SavedModel is in `savedmodel`).
        name: as clients name it; by default the folder's name.
    """
    folder = pathlib.Path(path).expanduser().absolute()
    if (folder / "saved_model.pb").is_file():
        # 19 digits may be more than the protocol has room for.
        if not re.fullmatch("[0-9]{1,18}", folder.name):
            return ModelConfig(name or folder.name, folder, single=1)
        number = int(folder.name)
        return ModelConfig(name or folder.parent.name, folder, single=number)
    name = name or folder.name
    if (folder / "config.yaml").is_file():
        folder = folder / "savedmodel"
    return ModelConfig(name, folder)


def from_file(path: str) -> list[ModelConfig]:
    """The models of a file in TensorFlow Serving's format.

    Raises:
        ValueError: If there is no such file, or it does not say which models.
    """
    try:
        text = pathlib.Path(path).expanduser().read_text("utf-8")
        config = text_format.Parse(
            text, model_server_config_pb2.ModelServerConfig()
        )
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        raise ValueError(
            f"{path} is not a file with `model_config_list {{ config {{ name: "
            f"... base_path: ... }} }}`: {error}"
        ) from error
    for model in config.model_config_list.config:
        # For whoever wrote the file, and for no client that asks for a reload.
        model.base_path = os.path.expanduser(model.base_path)
    return from_proto(config)


def from_proto(config) -> list[ModelConfig]:
    """The models of a `ModelServerConfig`.

    Raises:
        ValueError: If there is none, or two have one name, or if a model is
            not one of TensorFlow.
    """
    protos = config.model_config_list.config
    if not protos:
        raise ValueError(
            "There is no model: the model_config_list has no config in it."
        )
    configs = [_from_model_proto(proto) for proto in protos]
    check_names(configs)
    return configs


def check_names(configs: Sequence[ModelConfig]) -> None:
    """Refuses two models with one name.

    Raises:
        ValueError: If two have the same.
    """
    # Models stand in a dict by their names: one would replace the other.
    counts = collections.Counter(config.name for config in configs)
    double = sorted(name for name, count in counts.items() if count > 1)
    if double:
        raise ValueError(
            f"Two models have the name {double[0]}. Give each model a name of "
            "its own in a --model_config_file."
        )


def _from_model_proto(proto) -> ModelConfig:
    if proto.model_platform not in ("", "tensorflow"):
        raise ValueError(
            f"{proto.name!r} has the model_platform {proto.model_platform!r}. "
            "Only 'tensorflow' can be served."
        )
    if not proto.base_path or "\0" in proto.base_path:
        raise ValueError(
            f"{proto.name!r} needs a base_path that names a folder: "
            f"{proto.base_path[:200]!r}"
        )
    policy = proto.model_version_policy
    kind = policy.WhichOneof("policy_choice")
    num_latest, specific = 1, ()
    if kind == "all":
        num_latest = None
    elif kind == "specific":
        specific = tuple(policy.specific.versions)
    elif kind == "latest":
        # A field that is left out reads as 0.
        num_latest = policy.latest.num_versions or 1
    if kind == "specific" and not specific:
        raise ValueError(
            f"The specific model_version_policy of {proto.name!r} names no "
            "versions."
        )
    return ModelConfig(
        proto.name,
        pathlib.Path(proto.base_path).absolute(),
        num_latest=num_latest,
        specific=specific,
        labels=dict(proto.version_labels),
    )
