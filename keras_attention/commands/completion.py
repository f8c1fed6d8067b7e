"""`keras-attention completion`: what a shell does when Tab is pressed."""

from typing import Annotated, Literal

from keras_attention import suggestions
from keras_attention.commands import arguments

app = arguments.make_app(
    "completion",
    "Print a script by which a shell completes commands, options and values.",
)

# Where there are no values to offer, the shell offers files.
_FILES = {
    "bash": ("complete -F ", "complete -o default -F "),
    "zsh": ("compadd -d _cyc_disp -a _cyc_vals", "{} || _files"),
}


@app.default
def completion(
    shell: Annotated[
        Literal["bash", "zsh"] | None,
        arguments.described("The shell that reads the script."),
    ] = None,
    /,
) -> None:
    """Prints the script. `docs/command_line.md` says where to put it."""
    if shell is None:
        raise ValueError(
            "Name the shell: keras-attention completion bash, or zsh."
        )
    if shell not in _FILES:
        raise ValueError(
            f"Expected the shell to be one of {', '.join(_FILES)}. "
            f"Received: {shell}{suggestions.closest(shell, _FILES)}"
        )
    from keras_attention import cli

    script = cli.make_app().generate_completion(shell=shell)
    old, new = _FILES[shell]
    # zsh finds a function in the file of its name.
    script = script.replace("_cyclopts_keras-attention", "_keras-attention")
    print(script.replace(old, new.format(old)))
