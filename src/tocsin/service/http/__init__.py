"""The monitor over HTTP: the API, the events, the page."""

from tocsin.service.http.app import create_app
from tocsin.service.http.serving import HttpServer as HttpServer

__all__ = ["HttpServer", "create_app"]
