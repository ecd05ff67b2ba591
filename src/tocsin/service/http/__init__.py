"""The HTTP server: the API, the live stream and the dashboard."""

from tocsin.service.http.app import create_app, create_standby_app
from tocsin.service.http.server import HttpServer

__all__ = ["HttpServer", "create_app", "create_standby_app"]
