"""What an index of packages gets: a wheel, an sdist and a description."""

import email
import html.parser
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

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
def sdist(built):
    """The names of the sdist's files, below its folder."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


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


def test_the_sdist_builds_and_tests_itself(sdist):
    """It holds the package, the README and each test that it can run."""
    assert {"pyproject.toml", "README.md", "LICENSE"} <= sdist
    assert {"tests/conftest.py", "tests/models/tiny.py"} <= sdist
    assert not [name for name in sdist if name.startswith("savedmodels/")]
    assert not [name for name in sdist if "__pycache__" in name]
