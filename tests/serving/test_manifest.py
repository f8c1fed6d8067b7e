"""Versions as people store them: linked, renamed, and with strays in them."""

import hashlib
import pathlib
import shutil
import zipfile

import pytest

from keras_attention.serving import loading, manifest, savedmodel

FILES = {
    "saved_model.pb": b"graph",
    "fingerprint.pb": b"print",
    "variables/variables.index": b"index",
    "variables/variables.data-00000-of-00001": b"weights",
    "assets.extra/tf_serving_warmup_requests": b"requests",
}


def write_version(folder, number, graph=b"graph"):
    """A version, and its lines in a manifest as `sha256sum` writes them."""
    lines = []
    for name, data in (FILES | {"saved_model.pb": graph}).items():
        path = folder / str(number) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        lines.append(f"{digest}  {number}/{name}\n")
    with open(folder / "MANIFEST.sha256", "a") as file:
        file.writelines(lines)
    return folder / str(number)


@pytest.fixture
def model(tmp_path):
    """A model's folder with two versions."""
    folder = tmp_path / "m"
    write_version(folder, 1)
    write_version(folder, 2, b"another graph")
    return folder


def test_the_lines_are_those_of_sha256sum(model):
    expected = (model / "MANIFEST.sha256").read_text().splitlines()[:5]
    assert sorted(manifest.lines(model / "1", 1)) == sorted(expected)


def link_version(model):
    """m/1 -> ../store/abc, as one keeps large files elsewhere."""
    (model.parent / "store").mkdir()
    (model / "1").rename(model.parent / "store" / "abc")
    (model / "1").symlink_to("../store/abc")
    return model / "1"


def link_absolutely(model):
    version = link_version(model)
    target = version.resolve()
    version.unlink()
    version.symlink_to(target)
    return version


def link_folder(model):
    (model.parent / "link").symlink_to("m")
    return model.parent / "link" / "1"


def link_to_version(model):
    (model.parent / "current").symlink_to("m/1")
    return model.parent / "current"


def link_files(model):
    for index, name in enumerate(FILES):
        path, stored = model / "1" / name, model.parent / f"blob-{index}"
        path.rename(stored)
        path.symlink_to(stored)
    return model / "1"


def link_inner_folder(model):
    shutil.move(model / "1" / "variables", model.parent / "variables")
    (model / "1" / "variables").symlink_to("../../variables")
    return model / "1"


def rename(model):
    return (model / "1").rename(model / "20250101")


def copy(model):
    return shutil.copytree(model / "1", model / "3")


def copy_over_a_listed_number(model):
    """Back to version 1 by the number of version 2."""
    shutil.rmtree(model / "2")
    return shutil.copytree(model / "1", model / "2")


def link_a_new_number(model):
    (model / "9").symlink_to("1")
    return model / "9"


def copy_the_whole(model):
    return shutil.copytree(model, model.parent / "größer 2") / "2"


def zip_and_unzip(model):
    archive = model.parent / "m.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in model.rglob("*"):
            file.write(path, path.relative_to(model))
    with zipfile.ZipFile(archive) as file:
        file.extractall(model.parent / "unzipped")
    return model.parent / "unzipped" / "1"


def end_lines_as_windows_does(model):
    path = model / "MANIFEST.sha256"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return model / "1"


def write_the_manifest_anew(model):
    """As `find . -type f | xargs sha256sum --binary` writes it."""
    path = model / "MANIFEST.sha256"
    path.write_text(path.read_text().replace("  ", " *./"))
    return model / "1"


@pytest.mark.parametrize(
    "store",
    [
        link_version,
        link_absolutely,
        link_folder,
        link_to_version,
        link_files,
        link_inner_folder,
        rename,
        copy,
        copy_over_a_listed_number,
        link_a_new_number,
        copy_the_whole,
        zip_and_unzip,
        end_lines_as_windows_does,
        write_the_manifest_anew,
    ],
)
def test_a_whole_version_may_be_kept_anywhere(store, model):
    version = store(model)
    manifest.check(version)
    manifest.check(str(version))
    # Whatever the way, a changed file is found.
    (version / "variables" / "variables.index").write_bytes(b"other")
    with pytest.raises(ValueError, match="was changed"):
        manifest.check(version)


def test_a_relative_path(model, monkeypatch):
    monkeypatch.chdir(model)
    manifest.check("1")
    manifest.check("./1/../1")
    link_version(model)
    manifest.check(pathlib.Path("1"))
    monkeypatch.chdir("2")
    manifest.check(".")
    monkeypatch.setenv("HOME", str(model))
    manifest.check("~/2")


@pytest.mark.parametrize("name", [".DS_Store", "README.md", "variables/x"])
def test_other_files_are_ignored(name, model):
    """As by `sha256sum -c`."""
    (model / "1" / name).write_bytes(b"x")
    manifest.check(model / "1")


def remove(path):
    path.unlink()


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def leave_a_pointer(path):
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0")


def link_to_nothing(path):
    path.unlink()
    path.symlink_to("nowhere")


def make_a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("place", ["1", "20250101"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "damage, message",
    [
        (remove, "is missing"),
        (truncate, "was changed or damaged"),
        (leave_a_pointer, "pointer of Git LFS: run `git lfs pull`"),
        (link_to_nothing, "is missing"),
        (make_a_folder, "is missing"),
    ],
)
def test_a_damaged_file_is_named(damage, message, name, place, model):
    version = (model / "1").rename(model / place)
    damage(version / name)
    with pytest.raises(ValueError, match=f"{place}/{name} .*{message}"):
        manifest.check(version)


def test_files_of_two_versions_are_no_version(model):
    version = rename(model)
    shutil.copy(model / "2" / "saved_model.pb", version)
    write_version(model, 3, b"third graph")
    (version / "fingerprint.pb").write_bytes(b"of another")
    with pytest.raises(ValueError, match="20250101/.* was changed"):
        manifest.check(version)


def test_without_a_manifest(model):
    (model / "MANIFEST.sha256").unlink()
    for version in (model / "1", link_to_version(model), model / "8"):
        with pytest.raises(ValueError, match="copy it along with the versions"):
            manifest.check(version)


def test_versions_may_be_links(model, tmp_path, monkeypatch):
    link_a_new_number(model)
    (model / "10").symlink_to("nowhere")
    (model / "11").touch()
    (model / "3x").mkdir()
    numbers = [path.name for path in savedmodel.versions(model)]
    assert numbers == ["1", "2", "9", "10"]
    # The newest one is not passed over in silence.
    with pytest.raises(ValueError, match=r"10/saved_model\.pb is missing"):
        loading.load(model)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert savedmodel.versions("~/m")[0] == model / "1"
