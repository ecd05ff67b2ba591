"""Error replies as JSON: {"error": {"message": ..., "field": ...}}."""

import json
import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from tocsin.service.errors import MonitorError, NotReadyError, OverloadedError, RefusedError, UnknownError
from tocsin.service.http.dialects import in_dialect
from tocsin.service.http.origins import HEADERS

_log = logging.getLogger(__name__)
_MOST_SHOWN = 5
_RETRY_AFTER = "5"

_PLAIN = {
    404: "there is nothing at this address; /api/v1/openapi.json lists all addresses",
    405: "this address does not support that method",
}


class HttpError(HTTPException):
    """An error with its HTTP status. `field` names the part of the request that is wrong."""

    def __init__(
        self, status: int, message: str, field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, dict(headers) if headers else None)
        self.field = field


def refuse(status: int, message: str, field: str | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """An error reply."""
    error = {"message": message} if field is None else {"message": message, "field": field}
    # ASCII only, because a message may quote input that is not valid Unicode.
    return Response(json.dumps({"error": error}), status, headers, "application/json")


def reply_to(error: Exception) -> Response:
    """The reply to an exception."""
    if isinstance(error, HTTPException):
        return _reply_to_http(error)
    if isinstance(error, OverloadedError):
        return refuse(429, str(error), headers={"Retry-After": str(max(1, math.ceil(error.retry_after)))})
    if isinstance(error, NotReadyError):
        return refuse(503, str(error), headers={"Retry-After": _RETRY_AFTER})
    if isinstance(error, UnknownError):
        return refuse(404, str(error))
    if isinstance(error, RefusedError):
        return refuse(422, str(error))
    # Errors of the store may contain its address, which belongs in the log only.
    _log.warning("a request failed: %s", error)
    return refuse(503, "the monitor cannot reach its store now: try again", headers={"Retry-After": _RETRY_AFTER})


def _reply_to_http(error: HTTPException) -> Response:
    if isinstance(error, HttpError):
        return refuse(error.status_code, error.detail, error.field, error.headers)
    if error.status_code == 400:  # FastAPI's status for a body that it cannot decode
        return refuse(422, "the body must be JSON in UTF-8, not nested too deeply", "body")
    message = _PLAIN.get(error.status_code, HTTPStatus(error.status_code).phrase)
    return refuse(error.status_code, message, headers=error.headers)


def _reply_to_validation(error: RequestValidationError) -> Response:
    found = [_explain(one) for one in error.errors()]
    message = "; ".join(text for _, text in found[:_MOST_SHOWN])
    if len(found) > _MOST_SHOWN:
        message += f"; and {len(found) - _MOST_SHOWN} more"
    return refuse(422, message, found[0][0])


def _explain(error: dict[str, Any]) -> tuple[str, str]:
    """The field of one error, and its message."""
    place, *inside = error["loc"]
    if error["type"] == "json_invalid":
        position = inside[0] if inside else 0
        return "body", f"the body is not valid JSON: {error['ctx']['error']} at position {position}"
    field = ".".join(map(str, inside)) or str(place)
    text = error["msg"].removeprefix("Value error, ")
    return field, f"{field}: {text[:1].lower()}{text[1:]}"


def handle_errors(app: FastAPI) -> None:
    """Make the application reply to all errors in this way."""

    async def known(request: Request, error: Exception) -> Response:
        return in_dialect(request.scope, reply_to(error))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 for the type checker
        return in_dialect(request.scope, _reply_to_validation(error))

    async def unexpected(request: Request, error: Exception) -> Response:
        # This reply does not pass the gate, so it needs its own headers. The server logs the error.
        return in_dialect(request.scope, refuse(500, "internal error; see the monitor's log", headers=HEADERS))

    app.add_exception_handler(HTTPException, known)
    app.add_exception_handler(MonitorError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, unexpected)
