"""How long a user waits for the first answer, from a cold shell.

    python benchmarks/start.py [MODEL] [--text TEXT]

MODEL is a SavedModel's folder (savedmodels/phrases_en_de). Each figure is of a
new process, in seconds: `--help`, a mistake, the import of TensorFlow as
TensorFlow does it, `predict` of one text, and `serve` until it is ready and
until it has answered that text. The last line is one JSON object.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = [sys.executable, "-m", "keras_attention"]


def seconds_of(*command, status=0):
    """How long a command takes, which has to end with this status."""
    start = time.perf_counter()
    ended = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    seconds = time.perf_counter() - start
    if ended.returncode != status:
        sys.exit(f"{command}\n{ended.stderr[-2000:]}")
    return seconds


def serve(model, text):
    """Seconds until a server is ready, and until it has answered a text."""
    start = time.perf_counter()
    ports = ["--rest_api_port=0", "--port=0"]
    with subprocess.Popen(
        [*PROGRAM, "serve", model, *ports],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            lines = [server.stdout.readline().split() for _ in range(3)]
            if not lines[-1]:
                sys.exit(f"No server of {model}: try `keras-attention serve`")
            ready = time.perf_counter() - start
            (_, name), (*_, port), _ = lines
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/models/{name}:predict",
                json.dumps({"instances": [text]}).encode(),
            )
            urllib.request.urlopen(request).read()
            return ready, time.perf_counter() - start
        finally:
            server.terminate()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    model = str(ROOT / "savedmodels/phrases_en_de")
    parser.add_argument("model", nargs="?", default=model)
    parser.add_argument("--text", default="twenty-one")
    options = parser.parse_args()
    ready, answered = serve(options.model, options.text)
    result = {
        "benchmark": "start",
        "model": pathlib.Path(options.model).name,
        "help_seconds": seconds_of(*PROGRAM, "--help"),
        "mistake_seconds": seconds_of(
            *PROGRAM, "serve", options.model, "--prt=1", status=1
        ),
        "import_tensorflow_seconds": seconds_of(
            sys.executable, "-c", "import tensorflow"
        ),
        "predict_seconds": seconds_of(
            *PROGRAM, "predict", options.model, options.text
        ),
        "serve_ready_seconds": ready,
        "serve_first_answer_seconds": answered,
    }
    for name, value in result.items():
        print(f"{name:28} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
