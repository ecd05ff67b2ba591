"""The `tocsin` command: parses, calls, prints."""

from tocsin.cli import (
    backup,
    bench,
    config,
    demo,
    detect,
    exporting,
    forecasters,
    importing,
    serve,
    simulate,
    spark,
    token,
    watch,
)
from tocsin.cli.application import app

__all__ = [
    "app",
    "backup",
    "bench",
    "config",
    "demo",
    "detect",
    "exporting",
    "forecasters",
    "importing",
    "serve",
    "simulate",
    "spark",
    "token",
    "watch",
]
