"""The `tocsin` command: parses, calls, prints."""

from tocsin.cli import demo, detect, forecasters, simulate, watch
from tocsin.cli.application import app

__all__ = ["app", "demo", "detect", "forecasters", "simulate", "watch"]
