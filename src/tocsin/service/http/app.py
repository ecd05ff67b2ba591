"""The HTTP application."""

from fastapi import FastAPI

from tocsin import __version__
from tocsin.service.http import (
    audit,
    bulk,
    clock,
    events,
    imports,
    incidents,
    maintenance,
    observations,
    overview,
    reference,
    signals,
    system,
    tokens,
    trials,
)
from tocsin.service.http.auth import Keys
from tocsin.service.http.errors import handle_errors
from tocsin.service.http.gate import Gate
from tocsin.service.http.monitor_access import MonitorAccess
from tocsin.service.http.page import page_router

PREFIX = "/api/v1"
_ABOUT = """Alarms on signals whose threshold is the false-alarm rate.

Times are ISO 8601 in UTC. Errors are `{"error": {"message": ..., "field": ...}}`. Send a token, where required, in the
header `Authorization: Bearer`. Roles: `read` views; `ingest` sends; `operate` views and handles incidents
and maintenance; `write` does all that, changes signals and imports history; `admin` does everything."""


def create_app(monitor: MonitorAccess) -> FastAPI:
    """The application that serves this monitor."""
    app = FastAPI(
        title="Tocsin",
        version=__version__,
        description=_ABOUT,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # it would load its scripts from elsewhere, which the page's policy forbids
        redoc_url=None,
        redirect_slashes=False,
    )
    keys = Keys(monitor.store, monitor.settings.server)
    app.state.monitor, app.state.keys = monitor, keys
    app.add_middleware(Gate, monitor=monitor, keys=keys)
    handle_errors(app)
    app.include_router(page_router())  # first: a page asks for dozens of files
    # The address of a signal takes all that others do not: those that begin like it come first.
    for theme in (
        observations, imports, reference, clock, trials, signals, incidents, maintenance, tokens, events, audit,
        system, overview, bulk,
    ):  # fmt: skip
        app.include_router(theme.router, prefix=PREFIX)
    app.include_router(system.probes)
    return app
