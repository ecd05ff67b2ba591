"""Scores of external methods, one CSV file for each file of a benchmark."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tocsin_bench.baselines import min_max_pseudo_p

Floats = NDArray[np.float64]

OUTSIDE = "csv-"
"""What the names of such methods begin with."""

COLUMNS = ("score", "p")
_ACCEPTED = (
    'a column "score" (larger is more anomalous) or "p" (from 0 to 1, low when anomalous), with a row per observation'
)


def read_scores(folder: Path, file_stem: str, length: int) -> Floats:
    """What FOLDER/FILE_STEM.csv says of each observation, low when anomalous.

    A column `p` is used unchanged, with NaN for empty cells. A column `score` becomes `min_max_pseudo_p` of it, which
    is not a p-value.
    """
    path = folder / f"{file_stem}.csv"
    column = column_of(folder, file_stem)
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        cells = [_number(path, reader.line_num, column, row[column]) for row in reader]
    if len(cells) != length:
        raise ValueError(f"{path} must have {length} rows, one for each observation of {file_stem}, got {len(cells)}")
    found = np.array(cells, dtype=np.float64)
    if column == "p":
        return found
    try:
        return min_max_pseudo_p(found)
    except ValueError as error:
        raise ValueError(f"{path}, column {column!r}: {error}") from error


def column_of(folder: Path, file_stem: str) -> str:
    """Which of `COLUMNS` FOLDER/FILE_STEM.csv has."""
    path = folder / f"{file_stem}.csv"
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; accepted is {_ACCEPTED}")
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(file), [])
    found = [name for name in COLUMNS if name in header]
    if len(found) != 1 or header.count(found[0]) > 1:
        raise ValueError(f"{path} must have {_ACCEPTED}, and only one such column, got the columns {header}")
    return found[0]


def _number(path: Path, line: int, column: str, cell: str | None) -> float:
    """A cell as a number, NaN if it is empty."""
    accepted = "a number from 0 to 1" if column == "p" else "a number"
    try:
        value = float(cell) if cell else np.nan
    except ValueError:
        raise ValueError(f"{path}, line {line}, column {column!r}: must be {accepted}, got {cell!r}") from None
    if column == "p" and not (0 <= value <= 1 or np.isnan(value)):
        raise ValueError(f"{path}, line {line}, column {column!r}: must be {accepted}, got {cell!r}")
    return value
