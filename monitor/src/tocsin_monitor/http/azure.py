"""Azure Anomaly Detector's routes for single series, at its addresses and with its errors."""

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
from tocsin_monitor.http.auth import READER
from tocsin_monitor.http.monitor_access import reply, turn_of

PREFIX = "/anomalydetector"
#: Where its clients put the token.
KEY_HEADER = "ocp-apim-subscription-key"
# A long series takes seconds of a core, which the monitor's own signals need too.
AT_ONCE = 1
# Azure's own document describes them; the monitor's is for what is its own.
router = APIRouter(include_in_schema=False)


def _detects(model: type[R], detect: Callable[[R], dict[str, Any]]) -> Callable[..., Awaitable[Response]]:
    async def answer(request: Request, version: str, caller: READER) -> Response:
        if version not in ("v1.0", "v1.1"):
            return _refuse(404, "NotFound", f"the version must be v1.0 or v1.1, got {version!r:.50}")
        body = await request.body()
        try:
            async with turn_of(request.app.state.azure_turns):
                return reply(await run_in_threadpool(lambda: detect(read_request(model, body))))
        except AzureError as error:
            return _refuse(400, error.code, str(error))

    return answer


router.post("/{version}/timeseries/entire/detect")(_detects(DetectRequest, detect_entire))
router.post("/{version}/timeseries/last/detect")(_detects(DetectRequest, detect_last))
router.post("/{version}/timeseries/changepoint/detect")(_detects(ChangePointRequest, detect_change_points))


@router.api_route("/{version}/multivariate/{rest:path}", methods=["GET", "POST", "DELETE"])
async def multivariate(version: str, rest: str, caller: READER) -> Response:
    """Say where to turn with several variables."""
    return _refuse(501, "NotImplemented", "multivariate: send the variables as features of one signal, /api/v1/signals")


def _refuse(status: int, code: str, message: str) -> Response:
    return Response(to_json({"code": code, "message": message}), status, {"x-ms-error-code": code}, "application/json")
