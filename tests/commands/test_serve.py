"""The arguments of `keras-attention serve`, before TensorFlow is imported."""

import json
import socket
import subprocess
import sys

import pytest

from keras_attention import cli
from keras_attention.commands import serve


@pytest.fixture
def model(tmp_path):
    """What looks like a SavedModel's folder."""
    version = tmp_path / "model" / "1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"")
    return tmp_path / "model"


def refusal(*arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", *map(str, arguments)])
    return ended.value.code


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "in one way"),
        (["MODEL", "--model_base_path=MODEL"], "by --model_base_path or"),
        (["nothing/there"], "no folder nothing/there"),
        (["MODEL", "MODEL", "--model_name=a"], "name of one model"),
        (["MODEL", "--port=70000"], "below 65536"),
        (["MODEL", "--port=80", "--rest_api_port=80"], "are both 80"),
        (["MODEL", "--max_rows=1000"], "at least --max_rows=1000"),
        (["--model_config_file=none"], "no file none"),
        (["MODEL", "--prt=1"], "did you mean --port?"),
        (["MODEL", "--model_name=a/b"], "without spaces, slashes"),
        (["MODEL", "--reload_root=none"], "no folder none"),
    ],
)
def test_wrong_arguments_are_refused(model, arguments, message):
    given = [one.replace("MODEL", str(model)) for one in arguments]
    assert message in refusal(*given)


def test_a_run_without_a_savedmodel_is_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("")
    assert "keras-attention export" in refusal(tmp_path)


def test_without_the_extra_it_says_what_to_install(model, monkeypatch):
    monkeypatch.setattr(serve, "_PACKAGES", ("starlette", "no_such_package"))
    message = refusal(model)
    assert "pip install" in message and "packages: no_such_package" in message


def test_a_mistake_imports_no_tensorflow(model, tmp_path):
    models = tmp_path / "models.config"
    models.write_text("model_config_list { config { name:")
    missing = tmp_path / "missing.config"
    missing.write_text(
        'model_config_list { config { name: "m" base_path: "/no/folder" } }'
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        mistakes = [
            [str(model), "--prt=1"],
            [str(model), "--model_name=a/b"],
            [str(model), f"--port={port}"],
            [f"--model_config_file={models}"],
            [f"--model_config_file={missing}"],
        ]
        done = subprocess.run(
            [sys.executable, "-c", NO_TENSORFLOW, json.dumps(mistakes)],
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "False\n" * len(mistakes)


NO_TENSORFLOW = """
import json, sys
from keras_attention import cli
for mistake in json.loads(sys.argv[1]):
    try:
        cli.main(["serve", *mistake])
    except SystemExit:
        print("tensorflow" in sys.modules)
"""
