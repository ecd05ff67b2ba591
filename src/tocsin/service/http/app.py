"""The HTTP application."""

import asyncio

from fastapi import FastAPI

from tocsin import __version__
from tocsin.service.http import (
    annotations,
    audit,
    azure,
    bulk,
    clock,
    events,
    imports,
    incidents,
    influx,
    maintenance,
    many_trials,
    observations,
    otlp,
    overview,
    reference,
    remote_write,
    signal_metrics,
    signals,
    status,
    stream,
    templates,
    tokens,
    trials,
)
from tocsin.service.http.auth import Keys
from tocsin.service.http.errors import handle_errors
from tocsin.service.http.gate import Gate
from tocsin.service.http.monitor_access import MonitorAccess
from tocsin.service.http.static_files import page_router
from tocsin.service.push import Receivers

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
    app.state.azure_turns = asyncio.Semaphore(azure.AT_ONCE)
    app.state.receivers = Receivers(monitor.settings.push, monitor.metrics)
    app.add_middleware(Gate, monitor=monitor, keys=keys)
    handle_errors(app)
    app.include_router(page_router())  # first: a page requests dozens of files
    # The route of a signal matches any rest of a path, so routes with the same start come first.
    for theme in (
        observations, imports, reference, clock, trials, signals, incidents, annotations, events, maintenance, tokens,
        stream, audit, status, templates, overview, bulk, many_trials,
    ):  # fmt: skip
        app.include_router(theme.router, prefix=PREFIX)
    app.include_router(azure.router, prefix=azure.PREFIX)
    for pushed in (remote_write, otlp, influx):  # at the addresses that their clients know
        app.include_router(pushed.router)
    app.include_router(status.probes)
    app.include_router(signal_metrics.router)
    return app
