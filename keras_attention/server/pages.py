"""The page `/`: the files of the folder `page/`, read once into memory.

A request names a file by its key in a dict, and reaches no folder.
"""

import importlib.resources
import mimetypes

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

INDEX = "index.html"
# Nothing from another host, and no page around this one.
_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def routes() -> list[Route]:
    """`/` and `/page/NAME`."""
    folder = importlib.resources.files("keras_attention.server.page")
    contents = {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.is_file() and not file.name.endswith((".py", ".pyc"))
    }

    async def index(request: Request) -> Response:
        if INDEX in contents:
            return _response(contents, INDEX)
        return JSONResponse({"server": "keras-attention", "api": "/v1/models"})

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name in contents:
            return _response(contents, name)
        return JSONResponse({"error": "Not found"}, 404)

    return [Route("/", index), Route("/page/{name}", file)]


def _response(contents, name) -> Response:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(contents[name], media_type=kind, headers=_HEADERS)
