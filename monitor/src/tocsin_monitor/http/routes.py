"""Routes of the API: which errors a route replies with, and which bodies it takes, follow from what it is."""

from collections.abc import Callable
from inspect import signature
from types import UnionType
from typing import Any, get_args, get_origin

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel

from tocsin_monitor.http.bodies import JSON, check_type
from tocsin_monitor.http.errors import COMMON, UNKNOWN, WITH_BODY, Replies


async def _takes_json(request: Request) -> None:
    """The body, if there is one, must be JSON."""
    headers = request.headers
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        check_type(headers, JSON)


class ApiRouter(APIRouter):
    """Routes that need a token. `responses` are those besides the usual errors."""

    def add_api_route(
        self, path: str, endpoint: Callable[..., Any], *, responses: Replies | None = None, **given: Any
    ) -> None:
        """Add a route: with 404 if its address names something, and with the errors of its body if it takes one."""
        json = any(map(_is_model, signature(endpoint).parameters.values()))
        usual = WITH_BODY if json or "requestBody" in (given.get("openapi_extra") or {}) else COMMON
        named = UNKNOWN if "{" in self.prefix + path else {}
        given["dependencies"] = [Depends(_takes_json)] if json else None
        super().add_api_route(path, endpoint, responses={**usual, **named, **(responses or {})}, **given)


def _is_model(parameter: Any) -> bool:
    """Whether a parameter is read from a JSON body."""
    kind = parameter.annotation
    options = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    return any(isinstance(one, type) and issubclass(one, BaseModel) for one in options)
