"""The page `/`: the files of this folder and the views, read into memory.

A request names a file by its key in a dict, and reaches no folder.
"""

import importlib.resources
import mimetypes

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_INDEX = "index.html"
# The views of what a model did inside. `plotting.explore` has them, too.
_VIEWS = importlib.resources.files("keras_attention") / "views"
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
    contents = {
        file.name: file.read_bytes()
        for folder in (importlib.resources.files(__name__), _VIEWS)
        for file in folder.iterdir()
        if file.is_file() and not file.name.endswith((".py", ".pyc"))
    }

    async def show(request: Request) -> Response:
        name = request.path_params.get("name", _INDEX)
        if name not in contents:
            return JSONResponse({"error": "Not found"}, 404)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(contents[name], media_type=kind, headers=_HEADERS)

    return [Route("/", show), Route("/page/{name}", show)]
