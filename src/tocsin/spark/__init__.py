"""Tocsin on Apache Spark: histories with `detect`, streams with `watch`, with the same numbers as on one machine.

Nothing here computes a verdict: it passes rows to the detector, and verdicts back into a table.
"""

from tocsin.spark.batch import detect
from tocsin.spark.findings import Findings
from tocsin.spark.stream import watch

__all__ = ["Findings", "detect", "watch"]
