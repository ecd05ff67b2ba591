"""Tocsin on Apache Spark: histories with `detect`, streams with `watch`, with the same numbers as on one machine.

Nothing here computes a verdict: it passes rows to the detector, and verdicts back into a table.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.spark.batch import detect
    from tocsin.spark.rows import Findings
    from tocsin.spark.stream import watch

__all__ = ["Findings", "detect", "watch"]

_MODULES = {"Findings": "rows", "detect": "batch", "watch": "stream"}


def __getattr__(name: str) -> Any:
    """Import a name on first use: the list of commands needs none of them."""
    if name not in _MODULES:
        raise AttributeError(f"module 'tocsin.spark' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tocsin.spark.{_MODULES[name]}"), name)
