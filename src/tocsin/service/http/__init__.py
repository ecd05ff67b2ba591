"""The monitor over HTTP: the API, the events, the page."""

from tocsin.service.http.app import create_app

__all__ = ["create_app"]
