"""Clients and servers that others wrote, with one SavedModel: same answers?

    python benchmarks/serving/other_clients.py \
        --triton env-triton/bin/python --kserve env-kserve/bin/python \
        --min_tfs_client env-min/bin/python

Each client sends the same texts to each server whose protocol it speaks. Its
answers are compared with those of a bare TensorFlow.

Expected: all are equal.
"""

import argparse
import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import servers

VERSION = servers.PHRASES / "1"
ODD = ["", "  ", "zwölf", "日本語", "nine\nnine", '"\\', "\u202etwo", "🙂 one"]


def run(command, texts):
    """The list that a program prints, if it gets a list."""
    done = subprocess.run(
        [str(part) for part in command],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def by_program(python, name, *arguments):
    """A client that is a program in `benchmarks/peers/`."""
    program = servers.PEERS / f"ask_{name}.py"
    return functools.partial(run, [python, program, *arguments])


def by_curl(server, texts):
    """The answers to curl."""
    answers = []
    for text in texts:
        command = ["curl", "-s", server.url, "--data-binary", "@-"]
        body = server.body(text)
        printed = subprocess.run(command, input=body, capture_output=True)
        answer = json.loads(printed.stdout)
        if "predictions" in answer:
            answers += answer["predictions"]
        else:
            answers += answer["outputs"][0]["data"]
    return answers


def ours(server, options):
    """Name of a client -> function of texts to what our server answers."""
    name = servers.PHRASES.name
    base = server.url.partition("/v1/")[0]
    grpc = server.grpc, name
    clients = {
        "curl": functools.partial(by_curl, server),
        "tensorflow-serving-api (gRPC)": by_program(
            sys.executable, "tensorflow_serving_api", *grpc
        ),
    }
    if options.min_tfs_client:
        clients["min-tfs-client (gRPC)"] = by_program(
            options.min_tfs_client, "min_tfs_client", *grpc
        )
    if options.kserve:
        clients["KServe's client (REST, v1)"] = by_program(
            options.kserve, "kserve", "v1", base, name
        )
    return clients


def triton(server, options):
    """The same of Triton."""
    base = server.url.partition("/v2/")[0]
    clients = {
        "curl": functools.partial(by_curl, server),
        "tritonclient (gRPC)": by_program(
            options.triton, "tritonclient", server.grpc, "translator"
        ),
    }
    if options.kserve:
        clients["KServe's client (REST, v2)"] = by_program(
            options.kserve, "kserve", "v2", base, "translator"
        )
    return clients


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("triton", "kserve", "min_tfs_client"):
        parser.add_argument(f"--{name}", metavar="PYTHON")
    options = parser.parse_args()
    texts = servers.phrases(40) + ODD
    expected = by_program(sys.executable, "tensorflow", VERSION)(texts)
    contexts = {
        "keras-attention serve": (
            lambda log: servers.ours(log, servers.PHRASES),
            ours,
        )
    }
    if options.triton:
        contexts["Triton"] = (
            lambda log: servers.triton(log, options.triton, VERSION),
            triton,
        )
    print(f"{len(texts)} texts, compared with TensorFlow without a server\n")
    print("| client | server | equal answers |\n|---|---|---|")
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        for name, (start, clients_of) in contexts.items():
            with start(pathlib.Path(folder) / "log") as server:
                for client, translate in clients_of(server, options).items():
                    pairs = zip(translate(texts), expected, strict=True)
                    num_equal = sum(found == right for found, right in pairs)
                    print(f"| {client} | {name} | {num_equal} |", flush=True)
                    is_good &= num_equal == len(texts)
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
