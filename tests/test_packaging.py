"""What an index of packages gets: a wheel, an sdist and a description."""

import email
import html.parser
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
from packaging import specifiers

ROOT = pathlib.Path(__file__).parents[1]
REPOSITORY = "https://github.com/keras-attention/keras_attention"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a wheel and an sdist, built from the repository."""
    pytest.importorskip("hatchling", reason="hatchling is in the extra `test`")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """The names of the wheel's files, and its metadata."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        (name,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    return names, email.message_from_string(text)


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    """The folder that the sdist unpacks to."""
    (path,) = built.glob("*.tar.gz")
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def sdist(unpacked):
    """The names of the sdist's files, below its folder."""
    return {
        path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")
    }


def run(command, folder, **variables):
    """What a program prints that must not fail."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


class Addresses(html.parser.HTMLParser):
    """The addresses of a page's links and pictures."""

    def __init__(self, page):
        super().__init__()
        self.links, self.pictures = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "href" in attrs:
            self.links.append(attrs["href"])
        if tag == "img":
            self.pictures.append(attrs["src"])


@pytest.fixture(scope="module")
def addresses(wheel):
    markdown = pytest.importorskip("readme_renderer.markdown")
    _, metadata = wheel
    assert metadata["Description-Content-Type"] == "text/markdown"
    page = markdown.render(metadata.get_payload())
    assert page, "The index would not render the description."
    return Addresses(page)


def test_the_description_has_the_readmes_links_and_pictures(addresses):
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(addresses.links) >= text.count("](")
    assert len(addresses.pictures) == text.count("<img ") > 0


def test_the_description_leads_to_files_of_the_repository(addresses):
    for kind, found in (
        ("blob", addresses.links),
        ("raw", addresses.pictures),
    ):
        for address in found:
            # A heading's own link is "#...".
            assert address.startswith(("https://", "http://localhost:", "#"))
            _, ours, path = address.partition(f"{REPOSITORY}/{kind}/main/")
            assert not ours or (ROOT / path.partition("#")[0]).is_file(), path
        assert any(f"{REPOSITORY}/{kind}/main/" in one for one in found)


def test_the_metadata_name_the_projects_places(wheel):
    _, metadata = wheel
    places = dict(
        one.split(", ") for one in metadata.get_all("Project-URL", [])
    )
    assert set(places) == {"Changelog", "Documentation", "Issues", "Source"}
    assert all(url.startswith(REPOSITORY) for url in places.values())


def test_the_wheel_has_every_file_of_the_package(wheel):
    names, _ = wheel
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "keras_attention").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == files


def test_the_versions_of_python_are_named_alike(wheel):
    """In the requirement, the classifiers and the pages."""
    _, metadata = wheel
    name = "Programming Language :: Python :: "
    named = [
        one.removeprefix(name)
        for one in metadata.get_all("Classifier")
        if one.startswith(name)
    ]
    allowed = specifiers.SpecifierSet(metadata["Requires-Python"])
    every = [f"3.{minor}" for minor in range(8, 30)]
    assert named == [one for one in every if f"{one}.0" in allowed]
    for page in ("README.md", "docs/install.md"):
        text = (ROOT / page).read_text("utf-8")
        assert f"You need Python {named[0]} to {named[-1]} on" in text
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert f"Python {', '.join(named[:-1])} or {named[-1]} on" in text


def test_the_sdist_has_the_package_and_its_tests(sdist):
    assert {"pyproject.toml", "README.md", "LICENSE"} <= sdist
    assert {"tests/conftest.py", "tests/models/tiny.py"} <= sdist
    assert not [name for name in sdist if name.startswith("savedmodels/")]
    assert not [name for name in sdist if "__pycache__" in name]


def test_no_test_of_the_sdist_imports_what_only_the_repository_has(unpacked):
    """Programs beside the package are modules to tests, by `pythonpath`."""
    absent = {
        path.stem
        for folder in ("benchmarks", "docs", "tutorials")
        for path in (ROOT / folder).iterdir()
        if path.suffix == ".py" or [*path.glob("*.py")]
    }
    assert {"bench", "execute", "story", "your_turn"} <= absent
    found = {}
    for path in unpacked.glob("tests/**/*.py"):
        text = path.read_text("utf-8")
        imported = re.findall(r"^\s*(?:from|import) (\w+)", text, re.M)
        if names := absent & {*imported}:
            found[path.relative_to(unpacked).as_posix()] = names
    assert not found


def test_the_sdist_builds_the_same_wheel(unpacked, wheel, tmp_path):
    run(["-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], unpacked)
    (path,) = tmp_path.iterdir()
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == sorted(wheel[0])


@pytest.mark.slow
def test_the_sdist_tests_itself(unpacked):
    """It finds all its tests, and some of them pass, on its own package."""
    where = "import keras_attention as ka; print(ka.__file__)"
    assert run(["-c", where], unpacked).startswith(str(unpacked))
    tests = ["-m", "pytest", "-q", "--numprocesses=0"]
    found = run([*tests, "--collect-only", "-m", "slow or not slow"], unpacked)
    assert "tests/models/test_seq2seq.py::" in found
    some = ["tests/test_reprs.py", "tests/layers/test_masks.py"]
    assert " passed" in run([*tests, *some], unpacked)


@pytest.mark.slow
def test_the_installed_wheel_trains_outside_the_repository(built, tmp_path):
    pytest.importorskip("pip", reason="pip installs the wheel")
    (path,) = built.glob("*.whl")
    site, folder = tmp_path / "site", tmp_path / "elsewhere"
    folder.mkdir()
    install = ["-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    run([*install, "--target", site, path], folder)
    # Before the repository, where that is installed, too.
    variables = {
        "PYTHONPATH": str(site),
        "KERAS_ATTENTION_HOME": str(tmp_path / "home"),
    }
    where = "import keras_attention as ka; print(ka.__file__)"
    found = run(["-P", "-c", where], folder, **variables)
    assert found.startswith(str(site))
    command = site / "bin" / "keras-attention"
    sizes = '{"num_layers": 1, "hidden_dim": 16, "num_heads": 2}'
    arguments = ["train", f"--model_arguments={sizes}", "--steps=2"]
    printed = run([command, *arguments], folder, **variables)
    assert "held-out pairs" in printed
    saved = "runs/phrases_en_de_transformer/savedmodel"
    assert f"SavedModel: {saved}/1" in printed
    words = ["one", "two"]
    answers = run([command, "predict", saved, *words], folder, **variables)
    assert len(answers.splitlines()) == len(words)
