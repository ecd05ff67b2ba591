"""Azure Anomaly Detector's routes for single series, at its addresses and with its errors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from tocsin_monitor.azure import (
    AzureError,
    ChangePointRequest,
    DetectRequest,
    detect_change_points,
    detect_entire,
    detect_last,
    read_request,
)
from tocsin_monitor.azure.requests import R
from tocsin_monitor.errors import OverloadedError
from tocsin_monitor.http.auth import READER
from tocsin_monitor.http.monitor_access import reply

PREFIX = "/anomalydetector"
#: Where its clients put the token.
KEY_HEADER = "ocp-apim-subscription-key"
# A long series takes seconds of a core, which the monitor's own signals need too.
AT_ONCE, _PATIENCE = 1, 20.0
# Azure's own document describes them; the monitor's is for what is its own.
router = APIRouter(include_in_schema=False)


def _detects(model: type[R], detect: Callable[[R], dict[str, Any]]) -> Callable[..., Awaitable[Response]]:
    async def answer(request: Request, version: str, caller: READER) -> Response:
        return await _answer(request, version, lambda body: detect(read_request(model, body)))

    return answer


router.post("/{version}/timeseries/entire/detect")(_detects(DetectRequest, detect_entire))
router.post("/{version}/timeseries/last/detect")(_detects(DetectRequest, detect_last))
router.post("/{version}/timeseries/changepoint/detect")(_detects(ChangePointRequest, detect_change_points))


@router.api_route("/{version}/multivariate/{rest:path}", methods=["GET", "POST", "DELETE"])
async def multivariate(version: str, rest: str, caller: READER) -> Response:
    """Say where to turn with several variables."""
    return _refuse(501, "NotImplemented", "multivariate: send the variables as features of one signal, /api/v1/signals")


async def _answer(request: Request, version: str, detect: Callable[[bytes], dict[str, Any]]) -> Response:
    if version not in ("v1.0", "v1.1"):
        return _refuse(404, "NotFound", f"the version must be v1.0 or v1.1, got {version!r:.50}")
    body, turns = await request.body(), request.app.state.azure_turns
    try:
        async with asyncio.timeout(_PATIENCE):
            await turns.acquire()
    except TimeoutError:
        raise OverloadedError(retry_after=1.0) from None
    try:
        return reply(await run_in_threadpool(detect, body))
    except AzureError as error:
        return _refuse(400, error.code, str(error))
    finally:
        turns.release()


def _refuse(status: int, code: str, message: str) -> Response:
    return Response(to_json({"code": code, "message": message}), status, {"x-ms-error-code": code}, "application/json")
