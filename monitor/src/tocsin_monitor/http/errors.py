"""Error replies as JSON, and their description for OpenAPI. `http/push.py` has those to clients of other formats.

The JSON is {"error": {"message": ..., "field": ...}}.
"""

import json
import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from tocsin_monitor.errors import NotReadyError, OverloadedError, RefusedError, UnknownError

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


def reply_to_validation(error: RequestValidationError) -> Response:
    """The reply to a request that does not fit its model."""
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


class ErrorDetail(BaseModel):
    """What is wrong."""

    message: str = Field(description="What is wrong, and what is accepted.")
    field: str | None = Field(None, description="The part of the request that caused the error, if any.")


class ErrorReply(BaseModel):
    """Every reply with a status of 400 or more."""

    error: ErrorDetail


Replies = dict[int | str, dict[str, Any]]

_MEANINGS = {
    400: "The body is malformed, or some of its points were refused: all others are kept. Do not send it again.",
    401: "No token, or an invalid one.",
    403: "The token's role does not allow it, or Host or Origin is not this server's.",
    404: "Not found.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body's type is not supported.",
    422: "The request is malformed or invalid: the message says what is accepted.",
    429: "Too many requests, or the backlog of observations is full.",
    500: "Internal error.",
    501: "An extra is not installed.",
    503: "The monitor is starting or waiting for its store.",
}
_LATER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_WHO = {"WWW-Authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}}}
_HEADERS = {401: _WHO, 429: _LATER, 503: _LATER}


def errors(*statuses: int, **form: Any) -> Replies:
    """The error replies with these statuses, as JSON or in another form."""
    return {
        status: {
            "description": _MEANINGS[status],
            **(form or {"model": ErrorReply}),
            **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
        }
        for status in sorted(statuses)
    }


#: The error replies of every route that needs a token.
COMMON = errors(401, 403, 422, 429, 500, 503)
#: The same for routes with a request body.
WITH_BODY = errors(401, 403, 408, 413, 415, 422, 429, 500, 503)
UNKNOWN = errors(404)
