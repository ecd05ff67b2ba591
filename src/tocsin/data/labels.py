"""Numeric columns that are not measurements: anomaly labels and row counters."""

import re

import numpy as np

from tocsin.data.cells import Cells, read_numbers
from tocsin.data.numerals import Numerals

_LABELS = frozenset(
    {
        "anomaly", "anomalies", "anomalous", "changepoint", "label", "labels", "class", "target", "outlier", "outliers",
        "groundtruth", "fault", "faulty", "attack", "event", "alarm",
    }
)  # fmt: skip
_COUNTERS = frozenset(
    {"index", "idx", "unnamed:0", "no", "nr", "n", "row", "rownum", "rowid", "rownumber", "counter", "seq", "sequence",
     "sample", "record", "recordid", "obs", "#", "id", "rec"}
)  # fmt: skip
_MOST_CLASSES = 10


def why_no_feature(name: str, cells: Cells, numerals: Numerals, *, position: int) -> str | None:
    """Why a numeric column is not a feature by default; None if it may be one.

    A label has a typical name and few, whole values. A counter has a typical name or none, and increases by one from
    row to row.
    """
    called = re.sub(r"[\s_.-]|^is(?=[\s_.-]?[a-z])", "", name.strip().lower())
    numbers = read_numbers(cells, numerals)[0]
    numbers = numbers[np.isfinite(numbers)]
    if called in _LABELS and _few_whole(numbers):
        return "a label, by its name and values"
    if (called in _COUNTERS or name == str(position)) and numbers.size > 2 and bool(np.all(np.diff(numbers) == 1)):
        return "a row counter"
    return None


def is_label(name: str, cells: Cells) -> bool:
    """Whether a column holds labels, by its name and these cells."""
    why = why_no_feature(name, cells, Numerals(), position=0)
    return why is not None and why.startswith("a label")


def _few_whole(numbers: np.ndarray) -> bool:
    return bool(np.all(numbers == np.floor(numbers))) and len(np.unique(numbers)) <= _MOST_CLASSES
