"""The command line: `keras-attention VERB`.

A verb's file is imported when its verb is called, and TensorFlow when the
verb's arguments are known to be right: `--help` and mistakes answer at once.
"""

import os
import signal
import sys

import cyclopts

from keras_attention import __version__
from keras_attention.commands import arguments

VERBS = {
    "train": "Train a model, score it, draw it and export it.",
    "evaluate": "Score a model on a test set.",
    "predict": "Answer texts, or the lines of standard input.",
    "translate": "Translate texts, or the lines of standard input.",
    "export": "Write a run's model as the next version of a SavedModel.",
    "align": "Measure how well attention aligns the phrases.",
    "serve": "Serve models by TensorFlow Serving's REST and gRPC API.",
    "completion": "Print a script that completes commands at Tab.",
}


def make_app() -> cyclopts.App:
    """The command line. A verb is its name and help until it is called."""
    app = arguments.make_app(
        "keras-attention",
        "Attention models: train, score, translate, export.",
        version=__version__,
    )
    for position, (verb, help_text) in enumerate(VERBS.items()):
        path = f"keras_attention.commands.{verb}:app"
        app.command(path, name=verb, help=help_text, sort_key=position)
    return app


def main(argv: list[str] | None = None) -> None:
    """Runs the command line. A mistake in it is answered by one clear line."""
    argv = sys.argv[1:] if argv is None else argv
    verb = argv[0] if argv and argv[0] in VERBS else ""
    name = f"keras-attention {verb}".strip()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        make_app()(argv)
        sys.stdout.flush()
    except cyclopts.CycloptsError as error:
        sys.exit(f"{name}: {arguments.explain(error)}")
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError, ImportError) as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        goes_on = "; it goes on with --resume" if verb == "train" else ""
        print(f"{name}: interrupted{goes_on}", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
