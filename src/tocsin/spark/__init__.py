"""Tocsin on Apache Spark: histories with `detect`, streams with `watch`, with the numbers of one machine.

Nothing here computes a verdict: rows are brought to the detector, and verdicts back into a table.
"""

from tocsin.spark.batch import detect
from tocsin.spark.findings import Findings
from tocsin.spark.stream import watch

__all__ = ["Findings", "detect", "watch"]
