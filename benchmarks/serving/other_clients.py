"""Clients and servers that others wrote, with one SavedModel: same answers?

    python benchmarks/serving/other_clients.py \
        --triton env-triton/bin/python --kserve env-kserve/bin/python \
        --min_tfs_client env-min_tfs_client/bin/python

Each client makes all calls that it can make, to each server whose protocol it
speaks: four signatures with a number of texts, metadata and status. The
programs in `callers/` do so. TensorFlow's C library calls the SavedModel
without a server.

An answer is equal if it has the same texts and integers as that of a bare
TensorFlow. Floats may differ by 1e-5 of their size, or by 1e-6. The padding of
a blank text's attention is not compared: our server cuts it. Metadata are the
names and types of inputs and outputs.

Expected: all are equal. But a blank text has no second translation, so its
score in `n_best` is minus infinity. Triton's JSON has `-inf` for it, which
KServe's client cannot read.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import curl
import servers

_CALLERS = pathlib.Path(__file__).parent / "callers"
_VERSION = servers.PHRASES / "1"
_NAME = servers.PHRASES.name
_SIGNATURES = ("serving_default", "n_best", "with_attention", "score")
_NAMES = (*_SIGNATURES, "metadata", "status")
# Client, call -> answers that it cannot read: those of the blank texts.
_UNREADABLE = {("KServe's client (REST, v2)", "n_best"): 2}
_ODD = ["", "  ", "zwölf", "日本語", "nine\nnine", '"\\', "\u202etwo", "🙂 one"]


def calls(count):
    """Pairs of a name and inputs: of so many texts and the odd ones."""
    from keras_attention.data.embedded import phrases

    pairs = phrases.generate(train=101, validation=1, test=count)["test"]
    rows = [(pair.source, pair.target) for pair in pairs]
    rows += [(text, text) for text in _ODD]
    found = [
        (name, {"text": text}) for name in _SIGNATURES[:-1] for text, _ in rows
    ]
    found += [
        ("score", {"text": text, "reference": reference})
        for text, reference in rows
    ]
    return [*found, ("metadata", {}), ("status", {})]


def by_program(python, name, *arguments):
    """A client that is a program in `callers/`: a function of calls."""

    def ask(calls):
        program = _CALLERS / f"ask_{name}.py"
        done = subprocess.run(
            [str(part) for part in (python, program, *arguments)],
            input=json.dumps(calls),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{program}\n{done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    return ask


def ours(server, options):
    """Rows of our server: a client, its calls, a function of those."""
    base = server.url.partition("/v1/")[0]
    address = server.grpc, _NAME
    yield "curl", _NAMES, curl.v1(base, _NAME)
    yield (
        "tensorflow-serving-api (gRPC)",
        _NAMES,
        by_program(sys.executable, "tensorflow_serving_api", *address),
    )
    if options.min_tfs_client:
        yield (
            "min-tfs-client (gRPC)",
            ("serving_default",),
            by_program(options.min_tfs_client, "min_tfs_client", *address),
        )
    if options.kserve:
        yield (
            "KServe's client (REST, v1)",
            _SIGNATURES,
            by_program(options.kserve, "kserve", "v1", base, _NAME),
        )


def triton(server, options):
    """The same of Triton."""
    base = server.url.partition("/v2/")[0]
    yield "curl", _NAMES, curl.v2(base, _SIGNATURES)
    yield (
        "tritonclient (gRPC)",
        _NAMES,
        by_program(options.triton, "tritonclient", server.grpc, *_SIGNATURES),
    )
    if options.kserve:
        yield (
            "KServe's client (REST, v2)",
            (*_SIGNATURES, "status"),
            by_program(options.kserve, "kserve", "v2", base, "serving_default"),
        )


def contexts(options):
    """Name -> context of a server for a log, function of it to its rows."""
    yield (
        "keras-attention serve",
        lambda log: servers.ours(log, servers.PHRASES),
        ours,
    )
    if options.triton:
        yield (
            "Triton",
            lambda log: servers.triton(
                log, options.triton, _VERSION, _SIGNATURES
            ),
            triton,
        )


def is_equal(found, right):
    """Whether an answer is the right one, but for rounding."""
    if isinstance(right, dict):
        if not isinstance(found, dict) and len(right) == 1:
            # A single output stands without its name.
            found = {next(iter(right)): found}
        return (
            isinstance(found, dict)
            and found.keys() == right.keys()
            and all(is_equal(found[key], right[key]) for key in right)
        )
    if isinstance(right, list):
        return (
            isinstance(found, list)
            and len(found) == len(right)
            and all(map(is_equal, found, right))
        )
    if isinstance(found, list) and len(found) == 1:
        # A server without scalars.
        (found,) = found
    if isinstance(right, float) and isinstance(found, int | float | str):
        number = float(found)  # JSON has infinity as a text.
        return math.isclose(number, right, rel_tol=1e-5, abs_tol=1e-6)
    return found == right


def without_padding(answer):
    """An answer whose tokens and attention are cut as our server cuts them."""
    if "attention" not in answer:
        return answer
    source, target = answer["source_tokens"], answer["target_tokens"]
    num_source, num_target = sum(map(bool, source)), sum(map(bool, target))
    rows = answer["attention"][:num_target]
    return answer | {
        "source_tokens": source[:num_source],
        "target_tokens": target[:num_target],
        "attention": [row[:num_source] for row in rows],
    }


def of_four(metadata):
    """The metadata of the signatures that are called."""
    return {name: metadata.get(name) for name in _SIGNATURES}


def print_row(client, server, names, ask, expected):
    """Prints which answers are equal. Gives whether that is as expected."""
    asked = [call for call, _ in expected if call[0] in names]
    right = [answer for call, answer in expected if call[0] in names]
    counts = {name: [0, 0] for name in names}
    for (name, inputs), found, one in zip(
        asked, ask(asked), right, strict=True
    ):
        counts[name][1] += 1
        if name == "metadata":
            # Triton has no other signatures than these.
            found, one = of_four(found), of_four(one)
        if name == "with_attention":
            found, one = without_padding(found), without_padding(one)
        if is_equal(found, one):
            counts[name][0] += 1
        else:
            print(client, server, name, inputs, found, one, file=sys.stderr)
    cells = [
        "{} of {}".format(*counts[name]) if name in names else "-"
        for name in _NAMES
    ]
    print(f"| {client} | {server} | {' | '.join(cells)} |", flush=True)
    return all(
        asked - equal == _UNREADABLE.get((client, name), 0)
        for name, (equal, asked) in counts.items()
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("triton", "kserve", "min_tfs_client"):
        parser.add_argument(f"--{name}", metavar="PYTHON")
    parser.add_argument("--texts", type=int, default=40)
    options = parser.parse_args()
    bare = by_program(sys.executable, "tensorflow", _VERSION)
    asked = calls(options.texts)
    tensors, *answers = bare([("tensors", {}), *asked])
    if failed := [answer for answer in answers if "error" in answer]:
        sys.exit(f"Expected answers of TensorFlow. Received: {failed[0]}")
    expected = [*zip(asked, answers, strict=True)]
    library = by_program(
        sys.executable, "c_library", _VERSION, json.dumps(tensors)
    )
    print(f"| client | server | {' | '.join(_NAMES)} |\n|{'---|' * 8}")
    is_good = print_row(
        "TensorFlow's C library", "none", _SIGNATURES, library, expected
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, start, rows in contexts(options):
            with start(pathlib.Path(folder) / "log") as server:
                for client, names, ask in rows(server, options):
                    is_good &= print_row(client, name, names, ask, expected)
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
