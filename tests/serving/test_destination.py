"""What a folder must be so that a version can be written to it."""

import os
import re

import pytest

from keras_attention import files
from keras_attention.serving import destination, manifest


def refused(folder, reason, **options):
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        destination.check(folder, **options)
    assert str(folder) in str(error.value)


def test_a_new_folder_and_a_folder_of_versions_are_taken(tmp_path):
    destination.check(tmp_path / "models" / "new")
    assert not list(tmp_path.iterdir())
    (tmp_path / "1").mkdir()
    (tmp_path / "README.md").write_text("A card.")
    (tmp_path / manifest.NAME).write_text("")
    destination.check(tmp_path)


def test_home_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    destination.check("~/model")
    (tmp_path / "model").write_text("")
    with pytest.raises(ValueError, match="cannot be a folder"):
        destination.check("~/model")


@pytest.mark.parametrize(
    "name, kind",
    [("saved_model.pb", "one version"), ("config.yaml", "a run")],
)
def test_what_holds_something_else_is_refused(name, kind, tmp_path):
    (tmp_path / name).write_text("")
    refused(tmp_path, f"the folder of {kind}")


def test_a_readme_that_is_no_card_is_refused_unless_it_stays(tmp_path):
    (tmp_path / "README.md").write_text("My repository.")
    refused(tmp_path, "README.md of its own")
    destination.check(tmp_path, card=False)


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "cannot be a folder")
    refused(tmp_path / "file" / "model", f"because {tmp_path / 'file'} is not")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    refused(tmp_path / "broken" / "model", "cannot be a folder")


def test_a_folder_that_is_closed_is_refused(tmp_path, monkeypatch):
    """The superuser may write anywhere, so the answer is made up."""
    monkeypatch.setattr(
        os, "access", lambda path, mode: os.fspath(path) != os.fspath(tmp_path)
    )
    refused(tmp_path, "no permission to write in")
    refused(tmp_path / "model", f"no permission to write in {tmp_path},")
    (tmp_path / "model").mkdir()
    destination.check(tmp_path / "model")


def test_another_export_is_waited_for(tmp_path):
    with files.lock(tmp_path):
        refused(tmp_path, "Another process writes in")
    destination.check(tmp_path)
