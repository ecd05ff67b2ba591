"""The HTTP applications of a monitor that leads, and of one on standby."""

import asyncio
from collections import Counter

from fastapi import FastAPI, Response

from tocsin import __version__
from tocsin_monitor.errors import NotReadyError
from tocsin_monitor.http import (
    access,
    azure,
    bulk,
    detectors,
    events,
    imports,
    incidents,
    maintenance,
    observations,
    signal_templates,
    signals,
    sinks,
    status,
    stream,
    trials,
)
from tocsin_monitor.http.auth import Keys
from tocsin_monitor.http.gate import Gate, handle_errors
from tocsin_monitor.http.monitor_access import Monitor, MonitorAccess
from tocsin_monitor.http.push import push_formats
from tocsin_monitor.http.static_files import page_router
from tocsin_monitor.push import Receivers

PREFIX = "/api/v1"
_ABOUT = """Alarms on signals whose threshold is the false-alarm rate.

Times are ISO 8601 in UTC. Errors are `{"error": {"message": ..., "field": ...}}`. Send a token, where required, in the
header `Authorization: Bearer`. Roles: `read` views; `ingest` sends; `operate` views and handles incidents
and maintenance; `write` does all that, changes signals and imports history; `admin` does everything."""


def create_app(monitor: MonitorAccess) -> FastAPI:
    """The application for this monitor."""
    app = FastAPI(
        title="Tocsin",
        version=__version__,
        description=_ABOUT,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # it would load scripts from elsewhere, which the security policy forbids
        redoc_url=None,
        redirect_slashes=False,
    )
    keys = Keys(monitor.store, monitor.settings.server)
    app.state.monitor, app.state.keys = monitor, keys
    #: How many live streams each client has open.
    app.state.streams = Counter[str]()
    app.state.azure_turns = asyncio.Semaphore(azure.AT_ONCE)
    app.state.receivers = Receivers(monitor.settings.push, monitor.metrics)
    app.add_middleware(Gate, monitor=monitor, keys=keys)
    handle_errors(app)
    app.include_router(page_router())  # first: a page requests dozens of files
    # The route of a signal matches any rest of a path, so routes with the same start come first.
    for router in (
        observations.router, imports.router, detectors.router, detectors.clock_router, trials.router,
        trials.faults_router, signals.router, incidents.router, incidents.annotations_router, events.router,
        maintenance.router, access.router, sinks.router,
        access.log_router, stream.router, status.router, trials.template_faults_router, signal_templates.router,
        bulk.router, trials.many_router,
    ):  # fmt: skip
        app.include_router(router, prefix=PREFIX)
    app.include_router(azure.router, prefix=azure.PREFIX)
    for pushed in push_formats():
        app.include_router(pushed.router)
    app.include_router(status.probes)
    app.include_router(status.signal_probes)
    return app


def create_standby_app(monitor: MonitorAccess) -> FastAPI:
    """The application of a monitor on standby: probes and metrics. Everything else gets 503."""
    app = FastAPI(title="Tocsin", version=__version__, openapi_url=None)
    keys = Keys(monitor.store, monitor.settings.server)
    app.state.monitor, app.state.keys = monitor, keys
    app.add_middleware(Gate, monitor=monitor, keys=keys)
    handle_errors(app)
    app.include_router(status.probes)
    app.add_api_route("/{path:path}", elsewhere, methods=["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
    return app


async def elsewhere(monitor: Monitor) -> Response:
    """Refuse: only the leader replies."""
    raise NotReadyError(f"this monitor accepts no requests now: {monitor.engine.progress}")
