"""The HTTP server: the API, the live stream and the dashboard."""

from tocsin_monitor.http.app import create_app, create_standby_app
from tocsin_monitor.http.server import HttpServer

__all__ = ["HttpServer", "create_app", "create_standby_app"]
