"""What shells offer at Tab: the scripts of `keras-attention completion`."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from keras_attention import cli, config
from keras_attention.commands import serve
from keras_attention.models import catalog

pytestmark = pytest.mark.usefixtures("without_pydantic")

ASK = """
source "$1"; shift
complete -p keras-attention >&2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_keras_attention
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A function of a shell: the file of its script."""
    folder = tmp_path_factory.mktemp("completion")
    # The command by which a script asks for values.
    program = folder / "keras-attention"
    root = pathlib.Path(cli.__file__).parents[1]
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(root)!r})\n"
        "from keras_attention import cli\ncli.main()\n"
    )
    program.chmod(0o755)

    def script(shell):
        path = folder / shell
        if not path.is_file():
            path.write_text(run([program, "completion", shell]).stdout)
        return path

    return script


def run(command, **variables):
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def offered(scripts):
    """A function of a line's words: what bash offers for the last one."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")

    def offer(*words):
        script = scripts("bash")
        path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
        command = [bash, "--norc", "-c", ASK, "bash", script]
        done = run([*command, "keras-attention", *words], PATH=path)
        # If nothing is offered, readline offers files.
        assert "-o default" in done.stderr
        return set(done.stdout.split())

    return offer


def test_bash_offers_commands(offered):
    assert offered("") == set(cli.VERBS)
    assert offered("tra") == {"train", "translate"}


def test_bash_offers_options(offered):
    assert offered("train", "--epo") == {"--epochs"}
    assert offered("serve", "--max_b") == {
        f"--{name}"
        for name in serve.LimitOptions.__dataclass_fields__
        if name.startswith("max_b")
    }


@pytest.mark.parametrize(
    "words, values",
    [
        (["train", "--model", ""], catalog.CATALOG),
        # In an interactive shell, "=" is a word of its own.
        (["train", "--model", "=", "ext"], ["extended_neural_gpu"]),
        (["train", "--model", "luong", "--size", ""], catalog.sizes("luong")),
        (
            ["train", "--config", "ptb_k"],
            ["ptb_kim_characters", "ptb_kim_words"],
        ),
        (["train", "--corpus", ""], config.EMBEDDED),
        (["train", "--optimizer", ""], ["adam", "sgd"]),
        (["train", "--epochs", ""], []),
        (["predict", ""], []),
        (["completion", ""], ["bash", "zsh"]),
    ],
)
def test_bash_offers_the_values_of_an_option(words, values, offered):
    assert offered(*words) == set(values)


def test_zsh_reads_its_script(scripts):
    script = scripts("zsh").read_text()
    assert script.startswith("#compdef keras-attention\n")
    # zsh looks for this function in the file of its name.
    assert "\n_keras-attention() {\n" in script
    # Where there are no values.
    assert "|| _files\n" in script
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("there is no zsh")
    run([zsh, "-n", scripts("zsh")])


def test_another_shell_is_refused():
    with pytest.raises(SystemExit, match="one of bash, zsh. Received: zhs"):
        cli.main(["completion", "zhs"])


def test_no_shell_is_refused():
    with pytest.raises(SystemExit, match="completion bash, or zsh[.]"):
        cli.main(["completion"])
