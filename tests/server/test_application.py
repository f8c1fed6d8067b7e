"""A server's start, what it refuses, and what it logs if it is asked to."""

import asyncio
import concurrent.futures
import contextlib
import gc
import gzip
import http.client
import io
import json
import socket
import sys
import time

import grpc
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from starlette import requests  # noqa: E402

from keras_attention.server import (  # noqa: E402
    admission,
    application,
    batcher,
    connections,
    errors,
    logs,
    model_configs,
    registry,
    settings,
)

PREDICT = "/v1/models/shout:predict"
METRICS = "/monitoring/prometheus/metrics"
HEAD = b"POST /v1/models/shout:predict HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def configs(model_folders):
    return [model_configs.ModelConfig("shout", model_folders["shout"])]


def test_more_than_may_wait_is_refused(run_server, configs):
    bounds = settings.Limits(max_queued_rows=1)
    with run_server(configs, bounds) as server:
        status, headers, answer = server.predict("shout", instances=["a", "b"])
        assert (status, headers["retry-after"]) == (429, "1")
        assert "2 more have no room" in answer["error"]
        # In parts, none of which is taken.
        request = {"instances": ["a"] * 100}
        status, headers, answer = server.request(PREDICT, request)
        assert (status, headers["retry-after"]) == (429, "1")
        assert "100 more have no room" in answer["error"]
        assert server.predict("shout", instances=["a"])[0] == 200
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "shout"
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a", "b"]))
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            with pytest.raises(grpc.RpcError) as refused:
                stub.Predict(request)
        assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def status(connection):
    """The status of the next answer on a connection."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status


def fill(queue, num_rows):
    """Rows that wait for the model, and for nothing else."""
    for _ in range(num_rows):
        queue._append(batcher.Job("shout", None, None, 1))


def test_a_full_queue_refuses_before_it_reads_the_body(run_server, configs):
    body = json.dumps({"instances": ["a"]}).encode()
    head = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode()
    with run_server(configs, settings.Limits(max_queued_rows=8)) as server:
        queue = server.application.predictor.queue
        address = "127.0.0.1", server.rest_port
        with socket.create_connection(address, 20) as connection:
            fill(queue, 8)
            connection.sendall(head)
            assert status(connection) == 429
            queue._lines.clear()
            # The rest of the one, and the next on the same connection.
            connection.sendall(body + head + body)
            assert status(connection) == 200


def test_a_full_queue_asks_for_a_body_if_its_client_expects_so(
    run_server, configs
):
    body = json.dumps({"instances": ["a"]}).encode()
    head = HEAD + b"Content-Length: %d\r\n" % len(body)
    with run_server(configs, settings.Limits(max_queued_rows=8)) as server:
        queue = server.application.predictor.queue
        address = "127.0.0.1", server.rest_port
        with socket.create_connection(address, 20) as connection:
            fill(queue, 8)
            connection.sendall(head + b"Expect: 100-continue\r\n\r\n")
            assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(body)
            assert status(connection) == 429
            queue._lines.clear()
            # The connection stays.
            connection.sendall(head + b"\r\n" + body)
            assert status(connection) == 200


def test_a_full_queue_hides_no_other_refusal(run_server, configs):
    bounds = settings.Limits(max_queued_rows=1, max_body_bytes=20_000)
    with run_server(configs, bounds) as server:
        fill(server.application.predictor.queue, 1)

        def predict(name):
            return server.predict(name, instances=["a"])[0]

        assert predict("x") == predict("shout/versions/9") == 404
        assert predict("shout/labels/x") == 400
        answer = server.raw(HEAD + b"Content-Length: 20001\r\n\r\n", 20)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert predict("shout") == 429


def test_a_slow_client_is_not_waited_for(run_server, configs):
    with run_server(configs, settings.Limits(timeout=0.2)) as server:
        # Nothing, half a head, and half a body.
        assert server.raw(b"") == b""
        assert server.raw(HEAD) == b""
        answer = server.raw(HEAD + b"Content-Length: 9\r\n\r\n{")
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_model_that_cannot_be_loaded_ends_the_start(run_server, tmp_path):
    version = tmp_path / "bad" / "3"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"no graph")
    bad = model_configs.ModelConfig("bad", tmp_path / "bad")
    with pytest.raises(ValueError, match="bad has no version") as error:
        with run_server([bad]):
            pass
    assert "version 3: " in str(error.value)


@pytest.mark.parametrize(
    "port, flag", [("rest_port", "rest_api_port"), ("grpc_port", "port")]
)
def test_a_port_that_is_taken_ends_the_start(run_server, configs, port, flag):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"--{flag} "):
            with run_server(configs, **{port: number}):
                pass


def test_texts_are_logged_if_asked_for(run_server, configs):
    stream = io.StringIO()
    handler = logs.begin(stream)
    try:
        with run_server(configs, log_texts=True) as server:
            headers = {"X-Request-Id": "mine"}
            server.request(
                PREDICT, {"instances": ["öffentlich"]}, None, headers
            )
    finally:
        logs.end(handler)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (line,) = [line for line in lines if line.get("id") == "mine"]
    assert line["texts"] == {"instances": ["öffentlich"]}
    events = [line["event"] for line in lines]
    assert events[0] == "load" and events[-1] == "stopped"


TIMEOUT = settings.Limits(timeout=0.3, max_body_bytes=20_000)
ANSWERED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "first, then",
    [
        # An empty line is no request.
        (ANSWERED + b"\r\n", b"\r\n"),
        # Answered before its body is there.
        (ANSWERED + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (HEAD + b"Content-Length: 9\r\n\r\n" + b"{", b"}"),
    ],
)
def test_no_connection_stays_without_a_request(
    run_server, configs, first, then
):
    with run_server(configs, TIMEOUT) as server:
        address = "127.0.0.1", server.rest_port
        with socket.create_connection(address, 20) as connection:
            connection.sendall(first)
            answer = connection.recv(65536)
            # On a busy machine, half a request may be ended without a word.
            is_half = first.startswith(HEAD)
            assert answer.startswith(b"HTTP/1.1 ") or is_half and not answer
            with contextlib.suppress(ConnectionError):
                connection.sendall(then)
                while connection.recv(65536):
                    pass


def test_an_answer_that_nobody_reads_is_given_up(run_server, configs):
    head = b"GET /v1/models/shout/metadata HTTP/1.1\r\nHost: localhost\r\n"
    request = head + b"\r\n"
    with run_server(configs, TIMEOUT) as server:
        open_ones = server.application._http.server_state.connections
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.rest_port))
            connection.sendall(request * 500)
            assert connection.recv(1)  # The server has begun.
            end = time.monotonic() + 20
            while open_ones and time.monotonic() < end:
                time.sleep(0.01)
            assert not open_ones


@pytest.mark.parametrize("place", ["head", "trailer"])
def test_heads_and_trailers_have_a_limit(run_server, configs, place):
    lines = b"".join(b"x-%d: a\r\n" % number for number in range(300))
    # One byte beyond the limit, so that none is left unread.
    sent = (HEAD + lines)[:1001]
    if place == "trailer":
        chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
        sent = chunked + lines[:1001]
    bounds = settings.Limits(max_head_bytes=1000, timeout=60)
    with run_server(configs, bounds) as server:
        # It does not wait for the end.
        answer = server.raw(sent, timeout=20)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_one_connection_is_one_and_health_is_always_answered(
    run_server, configs
):
    with run_server(configs, settings.Limits(max_connections=1)) as server:
        assert server.predict("shout", instances=["a"])[0] == 200
        address = "127.0.0.1", server.rest_port
        with (
            socket.create_connection(address),
            socket.create_connection(address),
        ):
            status, headers, answer = server.predict("shout", instances=["a"])
            assert (status, headers["retry-after"]) == (503, "1")
            # Clients that keep theirs open would keep all others out.
            assert headers["connection"] == "close"
            assert "1 connections, the most" in answer["error"]
            assert server.request("/healthz")[0] == 200
            assert server.request("/readyz")[0] == 200


def test_as_many_connections_as_files(run_server, configs):
    bounds = settings.Limits(max_connections=2**40)
    with pytest.raises(ValueError, match="ulimit -n"):
        with run_server(configs, bounds):
            pass


@pytest.mark.skipif(
    sys.platform != "linux", reason="127.0.0.2 is an address on Linux alone"
)
def test_no_other_machine_is_answered_by_default(run_server, configs):
    with run_server(configs) as server:
        for port in (server.rest_port, server.grpc_port):
            socket.create_connection(("127.0.0.1", port), 20).close()
            # A server that listens at all addresses would take this one.
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", port), 20).close()


def test_ports_are_different(run_server, configs):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ValueError, match="by --port "):
        with run_server(configs, rest_port=port, grpc_port=port):
            pass


def test_a_label_of_no_version_ends_the_start(
    run_server, model_folders, monkeypatch
):
    # Nothing is computed that would keep the process from its end.
    monkeypatch.setattr(registry.Models, "warm", None)
    config = model_configs.ModelConfig(
        "shout", model_folders["shout"], labels={"stable": 7}
    )
    with pytest.raises(ValueError, match="label 'stable' is on version 7"):
        with run_server([config]):
            pass


def test_who_watches_the_health_is_not_waited_for(run_server, configs):
    with run_server(configs, settings.Limits(drain_seconds=60)) as server:
        channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}")
        watch = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest()
        )
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        start = time.monotonic()
    assert time.monotonic() - start < 20
    watch.cancel()
    channel.close()


def test_what_is_not_answered_in_time_is_unavailable(
    run_server, configs, slow_model
):
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        bounds = settings.Limits(drain_seconds=0.2)
        with run_server(configs, bounds) as server:
            asked = threads.submit(server.predict, "shout", instances=["a"])
            while not slow_model.batches:
                time.sleep(0.01)
            start = time.monotonic()
        assert time.monotonic() - start < 5
        status, _, answer = asked.result()
        assert (status, answer) == (503, {"error": "The server ends"})


def test_bodies_in_gzip(run_server, configs):
    body = gzip.compress(b'{"instances": ["a"]}')
    with run_server(configs, settings.Limits(max_body_bytes=20_000)) as server:

        def post(body, encoding="gzip"):
            headers = {"Content-Encoding": encoding}
            return server.request(PREDICT, body, headers=headers)[0]

        assert post(body) == 200
        assert post(gzip.compress(b" " * 10**6)) == 413
        assert post(body[:-9]) == post(b"{}") == 400
        parts = b'{"instances": ', b'["a"]}'
        assert post(b"".join(map(gzip.compress, parts))) == 200
        assert post(body + b"x") == post(body * 100) == 400
        assert post(body, "br") == 415


def test_bodies_in_gzip_take_the_memory_of_their_texts():
    bounds = settings.Limits(max_body_bytes=100_000)
    body = gzip.compress(b" " * 100_000)
    scope = {"type": "http", "headers": [(b"content-encoding", b"gzip")]}
    reader = admission.Bodies(bounds)

    async def receive():
        return {"type": "http.request", "body": body}

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(64):
                request = requests.Request(scope, receive)
                await stack.enter_async_context(reader.read(request))
            with pytest.raises(errors.RequestError) as refused:
                async with reader.read(requests.Request(scope, receive)):
                    pass
            assert refused.value.code == errors.Code.RESOURCE_EXHAUSTED
        # All of it is free again.
        async with reader.read(requests.Request(scope, receive)) as text:
            assert len(text) == 100_000

    asyncio.run(main())


def test_what_waits_keeps_no_more_than_its_arrays(
    run_server, configs, slow_model
):
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        with run_server(configs) as server:
            inputs = {"text": ["a"], "of no signature": ["ignored"]}
            asked = threads.submit(server.predict, "shout", inputs=inputs)
            while not slow_model.batches:
                time.sleep(0.01)
            kept = [
                one
                for one in gc.get_objects()
                if isinstance(one, dict) and "of no signature" in one
            ]
            assert all(one is inputs for one in kept)
            slow_model.may_end.set()
            assert asked.result()[2] == {"outputs": ["A"]}


def test_a_client_may_offer_another_protocol(run_server, configs):
    body = b'{"instances": ["a"]}'
    request = HEAD + (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABk\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    with run_server(configs, TIMEOUT) as server:
        answer = server.raw(request + body)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b'{"predictions": ["A"]}')


def test_a_request_on_its_way_is_answered_at_the_end(run_server, configs):
    with run_server(configs) as server:
        address = "127.0.0.1", server.rest_port
        with socket.create_connection(address, 20) as connection:
            connection.sendall(ANSWERED + b"\r\n")
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.read() and "connection" not in response.headers
            server.application._rest.connections.is_ending = True
            connection.sendall(ANSWERED + b"\r\n")
            answer = b""
            while part := connection.recv(65536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"\r\nconnection: close\r\n" in answer.lower()


def test_a_connection_that_is_not_taken_yet_is_answered_at_the_end(
    run_server, configs, monkeypatch
):
    """Closing the port would end it, as the loop has not seen it."""
    clients, waiting = [], application._waiting

    def connect(listener, most):
        clients.append(socket.create_connection(listener.getsockname(), 20))
        clients[0].sendall(ANSWERED + b"\r\n")
        return waiting(listener, most)

    monkeypatch.setattr(application, "_waiting", connect)
    with run_server(configs):
        pass
    with clients[0] as client:
        answer = client.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"\r\nconnection: close\r\n" in answer.lower()


@pytest.mark.slow
def test_a_slow_reader_gets_its_whole_answer_at_the_end(run_server, configs):
    # More than the system itself keeps for a connection.
    body = json.dumps({"instances": ["a" * 60_000] * 200}).encode()
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    bounds = settings.Limits(max_body_bytes=len(body))
    with run_server(configs, bounds) as server:
        address = "127.0.0.1", server.rest_port
        with socket.create_connection(address, 20) as connection:
            connection.sendall(request)
            (one,) = server.application._http.server_state.connections
            while not one.transport.get_write_buffer_size():
                time.sleep(0.01)
            loop = one.loop
            stop = server.application.stop()
            ending = asyncio.run_coroutine_threadsafe(stop, loop)
            time.sleep(settings.GRACE + 0.2)
            response = http.client.HTTPResponse(connection)
            response.begin()
            answer = json.load(response)
            ending.result(20)
    assert answer["predictions"] == ["A" * 60_000] * 200


def test_idle_connections_shut_nobody_out(run_server, configs, monkeypatch):
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.1)
    bounds = settings.Limits(max_connections=20)
    with run_server(configs, bounds) as server, contextlib.ExitStack() as stack:
        address = "127.0.0.1", server.rest_port
        old = [
            stack.enter_context(socket.create_connection(address, 20))
            for _ in range(80)
        ]
        time.sleep(0.2)
        for _ in range(70):
            stack.enter_context(socket.create_connection(address, 20))
            assert server.predict("shout", instances=["a"])[0] in (200, 503)
            assert server.request("/healthz")[0] == 200
        # The oldest made place.
        with contextlib.suppress(ConnectionResetError):
            assert old[0].recv(9) == b""
        _, _, counted = server.request(METRICS)
        assert ':refused_connections{reason="idle"}' in counted


@pytest.mark.parametrize(
    "head", [HEAD, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"]
)
def test_a_body_with_two_lengths_ends_the_connection(run_server, configs, head):
    body = b"2\r\n{}\r\n0\r\n\r\n"
    head += b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    with run_server(configs) as server:
        answer = server.raw(head + body + ANSWERED + b"\r\n", 20)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"either Content-Length or" in answer and b"200" not in answer


def test_a_head_that_comes_at_once_has_a_limit(run_server, configs):
    with run_server(configs) as server:
        answer = server.raw(ANSWERED + b"x: " + b"y" * 65_536 + b"\r\n\r\n", 20)
        assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
        headers = {"x": "y" * 60_000}
        assert server.request("/healthz", headers=headers)[0] == 200


def test_other_sites_reach_no_loopback(run_server, configs):
    with run_server(configs) as server:

        def get(**headers):
            return server.request("/v1/models/shout", headers=headers)[0]

        for host in ("localhost:1", "127.0.0.1", "[::1]:8501", "a.localhost"):
            assert get(Host=host) == 200
            assert get(Origin=f"http://{host}") == 200
        for host in ("evil.example", "127.0.0.1.evil.example", "10.0.0.1"):
            assert get(Host=host) == 400
            assert get(Origin=f"http://{host}") == 403
        assert get(Origin="null") == get(Origin="http://[") == 403
        _, headers, _ = server.request("/healthz")
        assert "access-control-allow-origin" not in headers
    with run_server(configs, allowed_hosts=("nice.example",)) as server:
        assert get(Host="nice.example:80") == get(Host="localhost") == 200
        assert get(Host="evil.example") == 400
    with run_server(configs, allowed_hosts=("*",)) as server:
        assert get(Host="evil.example", Origin="http://x") == 200


def test_who_is_refused_by_the_head_is_logged_and_counted(run_server, configs):
    stream = io.StringIO()
    handler = logs.begin(stream)
    bounds = settings.Limits(max_head_bytes=1000)
    try:
        with run_server(configs, bounds) as server:
            for headers, status in (
                ({"Host": "evil.example", "X-Request-Id": "mine"}, 400),
                ({"Origin": "http://evil.example"}, 403),
                ({"X": "x" * 1000}, 431),
            ):
                found, answered, _ = server.request("/", headers=headers)
                assert (found, answered["connection"]) == (status, "close")
            _, _, counted = server.request(METRICS)
    finally:
        logs.end(handler)
    count = ':tensorflow:serving:request_count{model_name="",status='
    assert count + '"INVALID_ARGUMENT"} 2' in counted
    assert count + '"PERMISSION_DENIED"} 1' in counted
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    lines = [line for line in lines if line["event"] == "request"]
    assert [line["status"] for line in lines] == [400, 403, 431]
    assert lines[0]["id"] == "mine"


def test_pages_of_other_sites_ask_if_they_may(run_server, configs):
    origin = {"Origin": "http://else.example"}
    asked = {"Access-Control-Request-Method": "POST"}
    with run_server(configs, has_cors=True) as server:
        status, headers, _ = server.request(
            PREDICT, method="OPTIONS", headers=origin | asked
        )
        assert (
            status == 200 and "POST" in headers["access-control-allow-methods"]
        )
        status, headers, _ = server.request(
            PREDICT, {"instances": ["a"]}, headers=origin
        )
        assert (status, headers["access-control-allow-origin"]) == (200, "*")


def test_a_long_answer_is_in_gzip_for_who_takes_it(run_server, configs):
    with run_server(configs) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.rest_port)
        with contextlib.closing(connection):
            for text, accepted, encoding in (
                ("a", "gzip", None),
                ("a" * 60_000, "br, gzip", "gzip"),
                ("a" * 60_000, "gzip;q=0.5", "gzip"),
                ("a" * 60_000, "gzip;q=0, identity", None),
            ):
                connection.request(
                    "POST",
                    PREDICT,
                    json.dumps({"instances": [text] * 3}),
                    {"Accept-Encoding": accepted},
                )
                response = connection.getresponse()
                data = response.read()
                assert response.headers["content-encoding"] == encoding
                if encoding:
                    assert len(data) < 2000
                    data = gzip.decompress(data)
                assert json.loads(data)["predictions"] == [text.upper()] * 3
