"""The error replies of the routes, for the OpenAPI document."""

from collections.abc import Collection
from typing import Any

from tocsin.service.http.replies import ErrorReply

Replies = dict[int | str, dict[str, Any]]

BINARY = {"type": "string", "format": "binary"}

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


def errors(*statuses: int) -> Replies:
    """The error replies with these statuses."""
    return {
        status: {
            "model": ErrorReply,
            "description": _MEANINGS[status],
            **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
        }
        for status in sorted(statuses)
    }


#: The error replies of every route that needs a token.
COMMON = errors(401, 403, 422, 429, 500, 503)
#: The same for routes with a request body.
WITH_BODY = errors(401, 403, 408, 413, 415, 422, 429, 500, 503)
UNKNOWN = errors(404)


def pushed(content: dict[str, Any], never: Collection[int] = ()) -> Replies:
    """The replies to what is pushed in formats of others, whose refusals have a form of their own.

    `never` are statuses that clients of this format would take for a reason to throw their data away.
    """
    statuses = (400, 401, 403, 408, 413, 415, 422, 429, 500, 501, 503)
    return {
        status: {
            "description": _MEANINGS[status],
            "content": content,
            **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
        }
        for status in statuses
        if status not in never
    }
