"""TensorFlow Serving's REST API, the metrics and the server's health."""

import asyncio
import dataclasses
import gzip
import json
import re
import time
import urllib.parse

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from keras_attention.server import (
    admission,
    connections,
    counters,
    errors,
    examples,
    json_inputs,
    json_outputs,
    logs,
    openapi,
    page,
    protos,
    rewriting,
)
from keras_attention.server import settings as server_settings
from keras_attention.server.errors import Code, RequestError
from keras_attention.server.predictor import ModelSpec, Predictor

# TensorFlow Serving's paths ignore case, too.
_MODEL = r"/v1/models/([^/:]+)(?:/versions/([0-9]+)|/labels/([^/:]+))?"
_ACTION = re.compile(_MODEL + r":(classify|regress|predict)", re.IGNORECASE)
_MODEL_PATH = re.compile(_MODEL + r"(?:/(metadata))?", re.IGNORECASE)
# "gzip;q=0" refuses it.
_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
# An answer with fewer bytes is not worth the work.
_FEW_BYTES = 500
METRICS_PATH = "/monitoring/prometheus/metrics"


class Rest:
    """The answers over HTTP.

    Attributes:
        connections: the application, for an ASGI server.
        is_stopping: whether the server is about to end.
        rewriter: what answers requests with `keep` or `split_sentences`.
    """

    def __init__(
        self,
        predictor: Predictor,
        limits: server_settings.Limits,
        settings: server_settings.Settings,
        metrics: counters.Metrics,
    ):
        self._predictor = predictor
        self.rewriter = rewriting.Rewriter(predictor, limits)
        self._limits = limits
        self._metrics = metrics
        self._log_texts = settings.log_texts
        self.is_stopping = False
        self._heads = admission.Heads(settings, limits)
        self._bodies = admission.Bodies(limits)
        # TensorFlow Serving answers another method by 400, and not by 405.
        every = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"]
        app = Starlette(
            routes=[
                Route(METRICS_PATH, self._show_metrics),
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
                Route(openapi.PATH, self._openapi),
                *page.routes(),
                *(
                    Route(f"/{root}/{{path:path}}", self._api, methods=every)
                    for root in ("v1", "V1")
                ),
            ],
            exception_handlers={404: _unknown, 405: _unknown},
        )
        # "/v1" would lead to "/v1/" on the host that the request names.
        app.router.redirect_slashes = False
        if settings.has_cors:
            app = CORSMiddleware(app, ["*"], ["GET", "POST"], ["*"])
        self._app = app
        self.connections = connections.Connections(self, limits, metrics)

    async def __call__(self, scope, receive, send) -> None:
        """Answers a request, by the protocol ASGI, if its head is allowed."""
        start = time.monotonic()
        # Around all of it: the page and the metrics are guarded, too.
        try:
            self._heads.check(scope)
        except RequestError as error:
            request_id = Headers(scope=scope).get("x-request-id")
            fields = {"id": logs.request_id(request_id), "protocol": "REST"}
            response = _refusal(error)
            response.headers["connection"] = "close"
            self._record(response, fields, "", error.code, start)
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _show_metrics(self, request: Request) -> Response:
        text = self._metrics.text(self._predictor.queue.queued_rows)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _healthz(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def _readyz(self, request: Request) -> Response:
        models = self._predictor.models
        is_ready = models.are_ready and not self.is_stopping
        versions = {
            name: model.available for name, model in models.by_name.items()
        }
        body = {"ready": is_ready, "models": versions}
        return _json(body, 200 if is_ready else 503)

    async def _openapi(self, request: Request) -> Response:
        return _json(openapi.document(self._predictor))

    async def _api(self, request: Request) -> Response:
        """Answers a request, logs it and counts it."""
        start = time.monotonic()
        request_id = logs.request_id(request.headers.get("x-request-id"))
        fields = {"id": request_id, "protocol": "REST"}
        code, api, response = Code.OK, "", None
        # A name may have a slash in it, as %2F.
        path = request.scope["raw_path"].decode("ascii")
        try:
            # Not before: health and metrics are answered all the same.
            if len(self.connections) > self._limits.max_connections:
                raise RequestError(
                    Code.UNAVAILABLE,
                    f"The server has {self._limits.max_connections} "
                    "connections, the most that it takes. Try again in a "
                    "second.",
                )
            if request.method == "POST" and (match := _ACTION.fullmatch(path)):
                api = match[4].lower()
                response = await self._act(request, match, api, fields)
            elif request.method == "GET" and (
                match := _MODEL_PATH.fullmatch(path)
            ):
                api = (match[4] or "status").lower()
                response = self._describe(match, api, fields)
            else:
                raise _malformed(request.method, path)
        except RequestError as error:
            code, response = error.code, _refusal(error)
            if code == Code.INTERNAL:
                logs.failure("request_failed", error, **fields)
        except asyncio.CancelledError:
            # The server ends. uvicorn cancels whom its graceful timeout finds.
            code = Code.UNAVAILABLE
            response = _refusal(RequestError(code, "The server ends"))
        except ClientDisconnect:
            code = Code.CANCELLED
            response = _json({"error": "The client is gone"}, 499)
        except Exception as error:
            logs.failure("request_failed", error, **fields)
            code = Code.INTERNAL
            response = _json({"error": "The server failed"}, 500)
        self._record(response, fields, api, code, start)
        return await self._compressed(request, response)

    def _record(self, response, fields, api, code, start) -> None:
        """Counts a request and logs it, and tells its client its id."""
        line = {**fields, "status": response.status_code}
        self._predictor.record(line, api, code, start)
        response.headers["x-request-id"] = fields["id"]

    async def _compressed(self, request: Request, response) -> Response:
        """In gzip, if the client takes it; in a thread, if it is long."""
        length = len(response.body)
        accepted = request.headers.get("accept-encoding", "")
        if not _TAKES_GZIP.search(accepted) or length < _FEW_BYTES:
            return response
        # Level 1 is the quickest: no answer is sent twice.
        response.body = await self._predictor.convert(
            length, gzip.compress, response.body, 1
        )
        response.headers["content-length"] = str(len(response.body))
        response.headers["content-encoding"] = "gzip"
        # A cache may not give it to a client that does not take gzip.
        response.headers["vary"] = "Accept-Encoding"
        return response

    async def _act(self, request, match, api, fields) -> Response:
        spec = _spec(match, fields)
        # A refusal before the body is read is cheap, so that those who are
        # accepted wait less. While the queue is full, a refusal for another
        # reason waits for its turn, too. A client that expects to be asked for
        # its body is asked first.
        if "expect" not in request.headers:
            try:
                await self._predictor.queue.check_room(spec.name)
            except RequestError:
                # What would be refused later, too, has its own reason.
                self._bodies.check_length(request)
                self._predictor.find(spec)
                raise
        deadline = time.monotonic() + self._limits.timeout
        convert = self._predictor.convert
        document, num_bytes = await self._read(request)
        if self._log_texts:
            fields["texts"] = {
                key: document[key]
                for key in ("instances", "inputs", "context", "examples")
                if key in document
            }
        name = document.get("signature_name", "")
        spec = ModelSpec(spec.name, spec.version, spec.label, name)
        # The answer has the form of the request, which is forgotten by then.
        rows = "instances" in document
        task = asyncio.ensure_future(
            self._asked(api, spec, document, num_bytes, deadline)
        )
        answer = await _unless_gone(request, task)
        fields |= {
            "version": answer.version,
            "signature": answer.signature_name,
            "rows": answer.num_rows,
        }
        text = await convert(
            # JSON is longer.
            4 * answer.num_bytes,
            _written,
            api,
            answer,
            rows,
        )
        return Response(text, media_type="application/json")

    def _asked(self, api, spec, document, num_bytes, deadline):
        """What will be the answer to a document, which is emptied."""

        def to_arrays(signature):
            given = {**document}
            # While the arrays wait, nobody counts the document's memory.
            document.clear()
            if api != "predict":
                found = examples.from_json(given)
                return examples.to_arrays(signature, api, found, self._limits)
            return json_inputs.to_arrays(
                given,
                signature.inputs,
                signature.defaults.keys(),
                self._limits.max_rows,
            )

        options = api == "predict" and rewriting.options_of(document)
        if options:
            return self.rewriter.predict(
                spec, options, to_arrays, num_bytes, deadline
            )
        return self._predictor.predict(spec, to_arrays, num_bytes, deadline)

    async def _read(self, request) -> tuple[dict, int]:
        """A request's document, and how many bytes it had."""
        # A function of its own, whose end frees the body: it is as large as the
        # document, and `_act` waits for the answer.
        async with self._bodies.read(request) as body:
            document = await self._predictor.convert(
                len(body), json_inputs.parse, body
            )
            return document, len(body)

    def _describe(self, match, api, fields) -> Response:
        spec = _spec(match, fields)
        if api == "status":
            return _json(protos.as_json(protos.status(self._predictor, spec)))
        message = protos.metadata(self._predictor, spec)
        described = protos.as_json(message)
        # TensorFlow Serving leaves the type out.
        del described["metadata"]["signature_def"]["@type"]
        version = self._predictor.find(spec).loaded
        if version.kind is not None:
            # Clients of TensorFlow Serving read the signatures alone.
            described["metadata"] |= {
                "kind": dataclasses.asdict(version.kind),
                "card": version.card,
            }
        return _json(described)


def _written(api, answer, rows) -> bytes:
    """The bytes of a request's answer."""
    if api == "predict":
        found = json_outputs.from_arrays(answer.outputs, rows)
    else:
        found = examples.to_json(api, answer.outputs, answer.num_rows)
    return json_outputs.dump(found)


def _malformed(method: str, path: str) -> RequestError:
    message = f"Malformed request: {method} {path[:200]}"
    if method == "GET" and path.lower() == "/v1/models":
        message = "Missing model name in request."
    elif method == "POST" and _MODEL_PATH.fullmatch(path):
        message += ". Put :predict behind the model's name."
    return errors.invalid(message)


def _spec(match, fields) -> ModelSpec:
    name, version, label, _ = match.groups()
    name = urllib.parse.unquote(name, errors="replace")
    label = urllib.parse.unquote(label or "", errors="replace")
    # For the log: a name may be as long as a head.
    fields["model"] = name[:200]
    if version is None:
        return ModelSpec(name, None, label)
    # The length first: Python converts no number of over 4,300 digits.
    if len(version) > 19 or int(version) >= 2**63:
        raise errors.invalid(
            f"Failed to convert version: {version[:40]} to numeric."
        )
    return ModelSpec(name, int(version))


async def _unless_gone(request: Request, task: asyncio.Task):
    """What a task gives, if its client waits for it. It ends otherwise."""
    # ASGI tells that a client is gone on the channel that its body came by.
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(body: dict, status: int = 200) -> Response:
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(text, status, media_type="application/json")


def _refusal(error: RequestError) -> Response:
    response = _json({"error": error.message}, error.http_status)
    if error.http_status in (429, 503):
        response.headers["retry-after"] = "1"
    if error.http_status in (408, 413, 503):
        # The rest of the body is not read, or connections are too many.
        response.headers["connection"] = "close"
    return response


async def _unknown(request: Request, error: HTTPException) -> Response:
    path = request.scope["path"][:200]
    message = f"{error.detail.capitalize()}: {request.method} {path}"
    return _json({"error": message}, error.status_code)
