"""The `tocsin` command: parses, calls, prints."""

from tocsin.cli.application import app

__all__ = ["app"]
