"""The HTTP server: the API, the event stream and the dashboard."""

from tocsin.service.http.app import create_app
from tocsin.service.http.server import HttpServer
from tocsin.service.http.standby import create_standby_app

__all__ = ["HttpServer", "create_app", "create_standby_app"]
