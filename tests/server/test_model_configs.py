"""Which models are served: folders, and TensorFlow Serving's files."""

import time

import pytest
from tensorflow_serving.config import model_server_config_pb2

from keras_attention.server import model_configs

FILE = """
model_config_list {
  config {
    name: "a"
    base_path: "/models/a"
    model_platform: "tensorflow"
    model_version_policy { specific { versions: 2 versions: 5 } }
    version_labels { key: "stable" value: 2 }
  }
  config { name: "b" base_path: "/models/b"
           model_version_policy { all {} } }
  config { name: "c" base_path: "/models/c"
           model_version_policy { latest { num_versions: 3 } } }
  config { name: "d" base_path: "/models/d" }
}
"""


def test_a_file_says_names_folders_policies_and_labels(tmp_path):
    path = tmp_path / "models.config"
    path.write_text(FILE)
    a, b, c, d = model_configs.from_file(str(path))
    assert (a.name, str(a.folder)) == ("a", "/models/a")
    assert a.specific == (2, 5) and a.labels == {"stable": 2}
    numbers = [1, 2, 3, 4, 5, 6]
    assert [one.select(numbers) for one in (a, b, c, d)] == [
        {2, 5},
        {*numbers},
        {4, 5, 6},
        {6},
    ]


@pytest.mark.parametrize(
    "text, message",
    [
        ("model_config_list {", "is not a file with"),
        ("", "has no config in it"),
        ('model_config_list { config { name: "a" } }', "base_path"),
        (FILE.replace('"b"', '"a"'), "Two models have the name a"),
        (FILE.replace('name: "b"', 'name: "b/c"'), "slashes"),
        (FILE.replace('"tensorflow"', '"other"'), "model_platform"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, message):
    path = tmp_path / "models.config"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        model_configs.from_file(str(path))


def test_a_folder_is_a_model_a_version_or_a_run(tmp_path):
    def version(*parts):
        folder = tmp_path.joinpath(*parts)
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_bytes(b"")
        return folder

    second, alone = version("model", "2"), version("alone")
    in_run = version("run", "savedmodel", "1")
    (tmp_path / "run" / "config.yaml").write_text("")
    for path, name, found in (
        (tmp_path / "model", "model", {2: second}),
        (second, "model", {2: second}),
        (alone, "alone", {1: alone}),
        (tmp_path / "run", "run", {1: in_run}),
    ):
        config = model_configs.from_folder(str(path))
        assert config.name == name
        assert config.versions_on_disk() == found
    assert model_configs.from_folder(str(alone), "other").name == "other"


def test_many_names_are_compared_quickly():
    names = [f"m{number}" for number in range(20_000)]
    configs = [model_configs.ModelConfig(name, None) for name in names]
    start = time.monotonic()
    model_configs.check_names(configs)
    assert time.monotonic() - start < 1


def test_a_home_is_that_of_a_file_and_of_no_client(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    path = tmp_path / "models.config"
    path.write_text(FILE.replace("/models/a", "~/a"))
    a, *_ = model_configs.from_file(str(path))
    assert str(a.folder) == "/home/me/a"
    proto = model_server_config_pb2.ModelServerConfig()
    model = proto.model_config_list.config.add(name="a", base_path="~root/a")
    (a,) = model_configs.from_proto(proto)
    assert "~root" in a.folder.parts
    model.base_path = "/a\0"
    with pytest.raises(ValueError, match="base_path"):
        model_configs.from_proto(proto)


def test_labelled_versions_are_served():
    config = model_configs.ModelConfig("m", None, labels={"a": 2, "b": 9})
    assert config.select([1, 2, 3]) == {2, 3}
