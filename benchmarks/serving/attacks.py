"""Requests that are meant to do harm, by name.

    python benchmarks/serving/attacks.py

Expected: each is refused with the status in the table, or its connection ends.
During the slow connections and at the end, right requests are answered. The
server never takes 100 MB more than at the start.
"""

import asyncio
import gzip
import json
import pathlib
import sys
import tempfile
import time

import fuzz
import grpc
import servers
import small_models
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

_PREDICT = "/v1/models/{}:predict"


def post(body: bytes, *headers: str, path: str = "", name="capitals") -> bytes:
    """A request over HTTP."""
    head = [f"POST {path or _PREDICT.format(name)} HTTP/1.1", "Host: localhost"]
    head += [f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def chunked(size: int, count: int) -> bytes:
    """A request whose body comes in chunks."""
    head = f"POST {_PREDICT.format('capitals')} HTTP/1.1\r\nHost: localhost\r\n"
    chunk = b"%x\r\n" % size + b" " * size + b"\r\n"
    return head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * count


def numbers(x: str, k: str) -> bytes:
    """A request for the model `numbers`."""
    body = f'{{"instances": [{{"x": {x}, "k": {k}}}]}}'.encode()
    return post(body, name="numbers")


def traversals():
    """Paths that lead out of what is served."""
    for path in (
        "/../../../../etc/passwd",
        "/page/../../settings.py",
        "/page/..%2f..%2fsettings.py",
        "/page/%2e%2e/%2e%2e/settings.py",
        "/v1/models/../../../etc/passwd",
        "/v1/models/..%2f..%2fetc%2fpasswd/metadata",
    ):
        yield f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def http_cases():
    """Name -> requests, and the statuses that are right."""
    bomb = gzip.compress(bytes(200 * 2**20))
    lines = b"".join(b"x-%d: y\r\n" % number for number in range(100_000))
    start = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    return {
        "path traversal": ([*traversals()], "400 404"),
        "a header of 2 MB": ([start + b"x: " + b"y" * 2**21], "400 431 none"),
        "100,000 headers": ([start + lines], "400 431 none"),
        "a body of 64 MB": ([post(bytes(2**26))], "413 none"),
        "the same in chunks": ([chunked(2**16, 2**10)], "413 none"),
        "200 MB of zeros in gzip": (
            [post(bomb, "Content-Encoding: gzip")],
            "413",
        ),
        "100,000 lists in each other": (
            [post(b'{"inputs": ' + b"[" * 10**5 + b"]" * 10**5 + b"}")],
            "400",
        ),
        "a number of 100,000 digits": (
            [numbers("[1, 2, 3]", "9" * 10**5)],
            "400",
        ),
        "1.3 million texts": (
            [post(b'{"inputs": [' + b'"",' * 1_300_000 + b'""]}')],
            "400",
        ),
        "NaN and Infinity, bare": (
            [numbers("[NaN, Infinity, -Infinity]", "1")],
            "200",
        ),
        "NaN and Infinity as text": (
            [numbers('["NaN", "Infinity", "-Infinity"]', "1")],
            "200",
        ),
        "NaN for an integer": ([numbers("[1, 2, 3]", "NaN")], "400"),
        "wrong types": (
            [
                numbers('["a", 2, 3]', "1"),
                numbers("[1, 2, 3]", "1.5"),
                numbers("[1, 2, 3]", "true"),
                post(b'{"instances": [1]}'),
            ],
            "400",
        ),
        "another shape, which TensorFlow takes": (
            [numbers("[1, 2]", "1")],
            "200",
        ),
        "the names of another site": (
            [
                post(b"{}").replace(b"localhost", b"site.example"),
                post(b"{}", "Origin: http://site.example"),
            ],
            "400 403",
        ),
        "two lengths": (
            [post(b"{}", "Content-Length: 5"), post(b"", "Content-Length: -1")],
            "400",
        ),
    }


def grpc_cases():
    """Name -> request and the code that is right."""

    def request(proto, name="capitals", key="text"):
        message = predict_pb2.PredictRequest()
        message.model_spec.name = name
        message.inputs[key].CopyFrom(proto)
        return message.SerializeToString()

    text = tf.make_tensor_proto(["one"])
    huge = tf.make_tensor_proto(["one"])
    huge.tensor_shape.dim[0].size = 2**62
    large = tf.make_tensor_proto(["a" * 2**23])
    return {
        "a message of 8 MB": (request(large), "RESOURCE_EXHAUSTED"),
        "a shape of 2^62": (request(huge), "INVALID_ARGUMENT"),
        "another type": (
            request(tf.make_tensor_proto([1.0])),
            "INVALID_ARGUMENT",
        ),
        "a model named ../../etc": (request(text, "../../etc"), "NOT_FOUND"),
        "an input of 1 MB for a name": (
            request(text, key="x" * 2**20),
            "INVALID_ARGUMENT",
        ),
    }


async def slowly(address, seconds):
    """A connection that sends a byte of a head now and then."""
    reader, writer = await asyncio.open_connection(*address)
    end = time.monotonic() + seconds
    try:
        writer.write(b"GET / HTTP/1.1\r\n")
        while time.monotonic() < end and not reader.at_eof():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.2)
    except ConnectionError:
        return "none"
    finally:
        writer.close()
    return "none" if reader.at_eof() else "open"


async def slowloris(address, count=500):
    """What becomes of many slow connections; how long others wait."""
    slow = [asyncio.create_task(slowly(address, 10)) for _ in range(count)]
    await asyncio.sleep(1)
    start = time.monotonic()
    status, _ = await fuzz.send_http(address, post(b'{"inputs": ["one"]}'))
    seconds = time.monotonic() - start
    found = {*await asyncio.gather(*slow)}
    return found if status == "200" else {status}, seconds


async def measure(server):
    """A row for each case: name, answers, whether they are right."""
    host, port = server.url.split("/")[2].split(":")
    address = host, int(port)
    for name, (requests, right) in http_cases().items():
        found = [await fuzz.send_http(address, one) for one in requests]
        statuses = {status for status, _ in found}
        is_open = fuzz.INSIDE.search(json.dumps(found))
        yield name, statuses, statuses <= {*right.split()} and not is_open
    async with grpc.aio.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(fuzz.METHOD)
        for name, (request, right) in grpc_cases().items():
            code, _ = await fuzz.send_grpc(call, request)
            yield f"gRPC: {name}", {code}, code == right
    found, seconds = await slowloris(address)
    name = f"500 connections that send a byte now and then ({seconds:.2f} s "
    yield name + "for another client)", found, found == {"none"} and seconds < 2


async def print_table(server):
    """Gives whether all is right."""
    is_good = True
    print("| request | answers | as expected |\n|---|---|---|")
    async for name, statuses, is_right in measure(server):
        answers = ", ".join(sorted(statuses))
        print(f"| {name} | {answers} | {'yes' if is_right else 'no'} |")
        is_good &= is_right
    return is_good


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        models = small_models.write(folder)
        with servers.ours(
            *(folder / "log", *models, "--rest_api_timeout_in_ms=3000")
        ) as server:
            before = server.megabytes
            is_good = asyncio.run(print_table(server))
            growth = server.most_megabytes - before
            last = servers.ask(server, "one")
    print(f"\nMemory: at most {growth:+.0f} MB. At the end: {last}")
    is_good &= growth < 100 and last == {"predictions": ["ONE"]}
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
