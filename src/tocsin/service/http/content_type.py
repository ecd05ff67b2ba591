"""Checks the content type of request bodies."""

from collections.abc import Awaitable, Callable

from fastapi import Depends, Request
from starlette.datastructures import Headers

from tocsin.service.http.errors import HttpError


def media_type(headers: Headers) -> str:
    """The media type of a body, without parameters such as its character set."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def check_type(headers: Headers, *accepted: str) -> str:
    """The media type of a body, which must be one of these and not compressed."""
    found = media_type(headers)
    if found not in accepted:
        raise HttpError(415, f"the body must be {' or '.join(accepted)}, got {found!r:.100}", "Content-Type")
    coding = headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise HttpError(415, f"the body must not be compressed, got {coding!r:.100}", "Content-Encoding")
    return found


def _takes(accepted: str) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        headers = request.headers
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            check_type(headers, accepted)

    return check


#: A dependency: the body, if there is one, must be JSON.
TAKES_JSON = Depends(_takes("application/json"))
