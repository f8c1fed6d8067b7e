"""Malformed requests over REST and gRPC.

    python benchmarks/serving/fuzz.py --requests 100000

Half of the requests go over each protocol. They are right ones, changed at
random (`mutations.py`); another seed changes them otherwise. Each one over REST
has a connection of its own.

Expected: each has an answer, with a status for right or malformed requests. A
connection ends without one only if its request's head is not whole, or if not
all of the request was read. No answer tells where the server's code is. The
server's log has no error. The server answers right requests at the end.
"""

import argparse
import asyncio
import collections
import itertools
import pathlib
import re
import sys
import tempfile

import grpc
import hypothesis
import mutations
import servers
import small_models

_NUM_CLIENTS = 64
_ANSWERS = {*"200 400 404 405 408 413 415 501".split()}
_ANSWERS |= {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"}
# As much of a request is surely read before it is answered.
_READ_AT_ONCE = 2**15
# Who else writes errors into the server's log.
_LIBRARIES = ("asyncio", "uvicorn.error")
# What would tell of the server's inside.
INSIDE = re.compile(r'Traceback|File "|site-packages|\.py:|line \d')
METHOD = "/tensorflow.serving.PredictionService/Predict"


def drawn(strategy, count, seed):
    """So many values."""
    values = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[*hypothesis.HealthCheck],
    )
    @hypothesis.given(strategy)
    def collect(value):
        values.append(value)

    collect()
    return values


async def send_http(address, request):
    """Status and answer; "none" if the connection ends without one."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        while head.startswith(b"HTTP/1.1 100 "):
            head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
        if length:
            body = await reader.readexactly(int(length[1]))
        else:
            body = await reader.read()
        return head[9:12].decode(), body.decode("utf-8", "replace")
    except (asyncio.IncompleteReadError, ConnectionError):
        return "none", ""
    finally:
        writer.close()


async def send_grpc(call, request):
    """Code and details."""
    try:
        await call(request, timeout=20)
    except grpc.aio.AioRpcError as error:
        return error.code().name, error.details() or ""
    return "OK", ""


async def send_all(send, requests):
    """The answers, by some clients at a time."""
    iterator, answers = iter(requests), []

    async def client():
        for request in iterator:
            answers.append((request, *await send(request)))

    await asyncio.gather(*(client() for _ in range(_NUM_CLIENTS)))
    return answers


async def measure(server, count, seed):
    """Protocol -> request, status and text of each answer."""
    host, port = server.url.split("/")[2].split(":")
    answers = {}
    answers["REST"] = await send_all(
        lambda request: send_http((host, int(port)), request),
        drawn(mutations.http(), count, seed),
    )
    async with grpc.aio.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(METHOD)
        answers["gRPC"] = await send_all(
            lambda request: send_grpc(call, request),
            drawn(mutations.grpc(), count, seed),
        )
    return answers


def is_right(request, status, text):
    """Whether an answer is one that a malformed request may have."""
    if status == "none":
        return b"\r\n\r\n" not in request or len(request) > _READ_AT_ONCE
    return status in _ANSWERS and not INSIDE.search(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        models = small_models.write(folder)
        with servers.ours(
            # A request that is never whole is given up soon.
            *(folder / "log", *models, "--rest_api_timeout_in_ms=3000")
        ) as server:
            before = server.megabytes
            answers = asyncio.run(
                measure(server, options.requests // 2, options.seed)
            )
            after = server.megabytes
            last = servers.ask(server, "one")
            bad = server.events("request_failed")
            for name in _LIBRARIES:
                events = server.events(name)
                bad += [one for one in events if one["level"] != "warning"]
    print("| protocol | requests | answers |\n|---|---|---|")
    for protocol, found in answers.items():
        counts = collections.Counter(status for _, status, _ in found)
        print(f"| {protocol} | {len(found)} | {dict(counts.most_common())} |")
        bad += [answer for answer in found if not is_right(*answer)]
    print(
        f"\nNot as expected: {len(bad)}. Memory: {before:.0f} MB, then "
        f"{after:.0f}. At the end: {last}"
    )
    for answer in itertools.islice(bad, 10):
        print(answer, file=sys.stderr)
    is_good = not bad and last == {"predictions": ["ONE"]}
    sys.exit(0 if is_good else "Not as expected")


if __name__ == "__main__":
    main()
