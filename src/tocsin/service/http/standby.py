"""The HTTP application of a monitor on standby: probes and metrics; everything else gets 503."""

from typing import TYPE_CHECKING, cast

from fastapi import FastAPI, Response

from tocsin import __version__
from tocsin.service.errors import NotReadyError
from tocsin.service.http import status
from tocsin.service.http.auth import Keys
from tocsin.service.http.errors import handle_errors
from tocsin.service.http.gate import Gate
from tocsin.service.http.monitor_access import Monitor, MonitorAccess

if TYPE_CHECKING:
    from tocsin.service.standby import Standby


def create_standby_app(standby: "Standby") -> FastAPI:
    """The application of a monitor on standby."""
    app = FastAPI(title="Tocsin", version=__version__, openapi_url=None)
    # It has what these routes use of a monitor.
    monitor = cast("MonitorAccess", standby)
    keys = Keys(standby.store, standby.settings.server)
    app.state.monitor, app.state.keys = monitor, keys
    app.add_middleware(Gate, monitor=monitor, keys=keys)
    handle_errors(app)
    app.include_router(status.probes)
    app.add_api_route("/{path:path}", elsewhere, methods=["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
    return app


async def elsewhere(monitor: Monitor) -> Response:
    """Refuse: only the leader replies."""
    raise NotReadyError(f"this monitor accepts no requests now: {monitor.engine.progress}")
