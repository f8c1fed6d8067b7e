"""The Dockerfile of the docs names files, flags and ports that there are."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from keras_attention import cli  # noqa: E402
from keras_attention.server import settings  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def instructions():
    """Name of an instruction -> its arguments, one text for each use."""
    text = (ROOT / "docs" / "Dockerfile").read_text("utf-8")
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    found = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            found.setdefault(name, []).append(rest)
    return found


def test_what_is_copied_is_in_the_repository(instructions):
    sources = [
        source for copy in instructions["COPY"] for source in copy.split()[:-1]
    ]
    assert "keras_attention" in sources
    for source in sources:
        assert (ROOT / source).exists(), source


def test_the_source_that_is_copied_can_be_installed(instructions, tmp_path):
    """Its metadata need no other files than these."""
    pytest.importorskip("hatchling", reason="hatchling is in the extra `test`")
    for copy in instructions["COPY"][:2]:
        *sources, _ = copy.split()
        for source in sources:
            (tmp_path / source).symlink_to(ROOT / source)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "metadata"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )


def test_it_runs_without_the_rights_of_root(instructions):
    (user,) = instructions["USER"]
    assert user not in ("root", "0")
    assert any(
        f"useradd --create-home {user}" in r for r in instructions["RUN"]
    )


def test_its_command_is_one_of_the_command_line(instructions):
    (entry,), (arguments,) = instructions["ENTRYPOINT"], instructions["CMD"]
    program, *words = json.loads(entry) + json.loads(arguments)
    assert program == "keras-attention"
    copied = [copy.split()[-1] for copy in instructions["COPY"]]
    assert words[-1] in copied
    with pytest.raises(SystemExit) as error:
        cli.main(words)
    # All flags are known: the folder alone is not on this machine.
    assert str(error.value).endswith(f"There is no folder {words[-1]}.")


def test_its_ports_are_those_of_the_server(instructions):
    (ports,) = instructions["EXPOSE"]
    assert {*map(int, ports.split())} == {
        settings.Settings.grpc_port,
        settings.Settings.rest_port,
    }


def test_its_check_asks_whether_the_server_is_ready(instructions, server):
    (check,) = instructions["HEALTHCHECK"]
    _, *words = json.loads(check.partition("CMD ")[2])
    port = f":{settings.Settings.rest_port}/"
    assert port in words[-1]

    def status(rest_port):
        code = words[-1].replace(port, f":{rest_port}/")
        command = [sys.executable, *words[:-1], code]
        return subprocess.run(command, capture_output=True).returncode

    assert status(server.rest_port) == 0
    assert status(1) != 0
