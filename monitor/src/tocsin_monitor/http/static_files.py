"""The dashboard's page and its files."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from tocsin.reports import chart_library
from tocsin_monitor.http.errors import HttpError

FOLDER = Path(__file__).parent.parent / "page"
# Browsers must not guess types, so files with other extensions are not served.
_TYPES = {
    "": "text/plain; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
# Where in the page its modules are listed.
_MODULES = b"<!-- modules -->"


@dataclass(frozen=True)
class _File:
    content: bytes
    kind: str
    tag: str


def page_router() -> APIRouter:
    """The page at `/` and its files under `/static/`.

    They are read once, at the start, so no request can reach any other file.
    """
    files = _files()
    router = APIRouter(include_in_schema=False)

    def send(request: Request, name: str) -> Response:
        file = files.get(name)
        if file is None:
            raise HttpError(404, "there is no such file")
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if file.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.kind)

    @router.api_route("/", methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        return send(request, "index.html")

    @router.api_route("/favicon.ico", methods=["GET", "HEAD"])
    async def icon(request: Request) -> Response:
        return send(request, "icon.svg")

    @router.api_route("/static/{name:path}", methods=["GET", "HEAD"])
    async def static(name: str, request: Request) -> Response:
        return send(request, name)

    return router


@cache
def _files() -> dict[str, _File]:
    paths = {file.relative_to(FOLDER).as_posix(): file for file in sorted(FOLDER.rglob("*")) if file.is_file()}
    # The library that draws charts, which pages of reports use too.
    paths |= {f"vendor/uplot/{name}": file for name, file in chart_library().items()}
    kinds = {name: _TYPES.get(Path(name).suffix) for name in paths}
    files = {name: _file(file.read_bytes(), kind) for name, file in paths.items() if (kind := kinds[name])}
    index = files["index.html"]
    files["index.html"] = _file(index.content.replace(_MODULES, _preloads(files)), index.kind)
    return files


def _file(content: bytes, kind: str) -> _File:
    return _File(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _preloads(files: Iterable[str]) -> bytes:
    """Links to all modules: without them, a browser learns of each only from the one that imports it."""
    scripts = sorted(name for name in files if name.endswith(".js"))
    return "".join(f'<link rel="modulepreload" href="/static/{name}">' for name in scripts).encode()
