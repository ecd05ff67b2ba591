"""The `tocsin` command: parses, calls, prints."""

from tocsin.cli import bench, demo, detect, forecasters, simulate, watch
from tocsin.cli.application import app

__all__ = ["app", "bench", "demo", "detect", "forecasters", "simulate", "watch"]
