"""The `tocsin` command: it parses arguments, calls the library and prints."""

from tocsin.cli.application import app

__all__ = ["app"]
