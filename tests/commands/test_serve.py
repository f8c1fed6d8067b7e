"""The arguments of `keras-attention serve`, before TensorFlow is imported."""

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
        ([], "Expected one of MODEL"),
        (["MODEL", "--model_base_path=MODEL"], "and --model_base_path"),
        (["nothing/there"], "no folder"),
        (["MODEL", "MODEL", "--model_name=a"], "Expected one model"),
        (["MODEL", "--port=70000"], "below 65536"),
        (["MODEL", "--port=80", "--rest_api_port=80"], "another port"),
        (["MODEL", "--max_rows=1000"], "at least max_rows"),
        (["--model_config_file=none"], "Expected a file"),
        (["MODEL", "--prt=1"], "did you mean --port?"),
        (["MODEL", "--model_name=a/b"], "without blanks, slashes"),
        (["MODEL", "--reload_root=none"], "Expected a folder as --reload_root"),
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
    assert "pip install" in message and "no no_such_package" in message


@pytest.mark.parametrize(
    "mistake", ["--prt=1", "--model_name=a/b", "--port={taken}", "{models}"]
)
def test_a_mistake_imports_no_tensorflow(model, mistake, tmp_path):
    models = tmp_path / "models.config"
    models.write_text("model_config_list { config { name:")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        mistake = mistake.format(taken=port, models=models)
        arguments = [str(model), mistake]
        if mistake == str(models):
            arguments = [f"--model_config_file={models}"]
        check_no_tensorflow(arguments)


def check_no_tensorflow(arguments):
    code = (
        "import sys\n"
        "from keras_attention import cli\n"
        f"try:\n    cli.main(['serve', *{arguments!r}])\n"
        "except SystemExit:\n    print('tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
