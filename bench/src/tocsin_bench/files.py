"""Labelled files in the format of TSB-AD: features and a last column `Label`; the name says what else is needed."""

import csv
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LABEL = "Label"
_CALIBRATION = re.compile(r"_tr_(\d+)(?:_|$)")


class UnusableFileError(ValueError):
    """A file that cannot be used, and why."""


@dataclass(frozen=True, eq=False)
class LabelledFile:
    """Observations `values[T, F]` (NaN where missing) and `labels[T]`; the first `calibration` are not evaluated."""

    name: str
    dataset: str
    calibration: int
    values: NDArray[np.float64]
    labels: NDArray[np.bool_]

    @property
    def problem(self) -> str:
        """Which metrics this file cannot have, if any."""
        evaluated = self.labels[self.calibration :]
        if not evaluated.any():
            return "nothing is labelled an anomaly in the evaluated part: only false positives can be counted"
        if evaluated.all():
            return "everything is labelled an anomaly in the evaluated part: false positives cannot be counted"
        return ""


def dataset_of(name: str) -> str:
    """The data set that a file belongs to: the second word of its name.

    >>> dataset_of("001_NAB_id_1_Facility_tr_1007_1st_2014")
    'NAB'
    """
    words = name.split("_")
    return words[1] if len(words) > 1 else words[0]


def find_files(folders: Sequence[Path], datasets: Collection[str] = (), limit: int | None = None) -> list[Path]:
    """The CSV files of all folders by name; of these `datasets` only, if any are given, and at most `limit` of each.

    Results are stored by name, so no two files may have the same one.
    """
    found = sorted((path for folder in folders for path in _files_in(folder)), key=lambda path: path.name)
    for one, other in pairwise(found):
        if one.name == other.name:
            raise ValueError(f"file names must be distinct, got {one} and {other}")
    known = {dataset_of(path.stem) for path in found}
    unknown = sorted(set(datasets) - known)
    if unknown:
        raise ValueError(f"data sets must be among {', '.join(sorted(known))}, got {', '.join(unknown)}")
    taken: Counter[str] = Counter()
    chosen = []
    for path in found:
        dataset = dataset_of(path.stem)
        if (datasets and dataset not in datasets) or (limit is not None and taken[dataset] >= limit):
            continue
        taken[dataset] += 1
        chosen.append(path)
    return chosen


def _files_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} must be a folder of CSV files")
    found = list(folder.glob("*.csv"))
    if not found:
        raise FileNotFoundError(f"{folder} must hold CSV files, found none")
    return found


def read_file(path: Path) -> LabelledFile:
    """Read a file, or raise `UnusableFileError` with the reason why it cannot be used."""
    matched = _CALIBRATION.search(path.stem)
    if matched is None:
        raise UnusableFileError("its name must say how many observations are for calibration, as in ..._tr_500_...")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = csv.reader(file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnusableFileError(f"it cannot be read: {error}") from error
    except ValueError as error:  # nothing to unpack
        raise UnusableFileError("it is empty") from error
    while rows and not rows[-1]:
        rows.pop()  # lines at the end with nothing in them
    if header[-1:] != [LABEL] or len(header) < 2:
        raise UnusableFileError(f"its last column must be named {LABEL}, after at least one other, got {header}")
    table = _numbers(header, rows)
    values, labels, calibration = table[:, :-1].copy(), table[:, -1], int(matched[1])
    values[np.isinf(values)] = np.nan  # missing, as everywhere
    if not np.isin(labels, (0, 1)).all():
        wrong = labels[~np.isin(labels, (0, 1))][0]
        raise UnusableFileError(f"its labels must be 0 or 1, got {wrong:g}")
    if not 0 < calibration < labels.size:
        raise UnusableFileError(
            f"its calibration part, tr_{calibration}, must hold something of its {labels.size} observations and leave "
            "something"
        )
    return LabelledFile(
        name=path.stem, dataset=dataset_of(path.stem), calibration=calibration, values=values, labels=labels == 1
    )


def feature_count(path: Path) -> int:
    """How many features an unusable file seems to have; 1 if unknown."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return max(1, len(next(csv.reader(file), [])) - 1)
    except (OSError, UnicodeDecodeError, csv.Error):
        return 1


def _numbers(header: Sequence[str], rows: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """The rows as numbers; an empty cell is a missing one."""
    if any(len(row) != len(header) for row in rows):
        line = next(number for number, row in enumerate(rows, 2) if len(row) != len(header))
        raise UnusableFileError(f"line {line} must have {len(header)} cells, as its header, got {len(rows[line - 2])}")
    table = np.empty((len(rows), len(header)))
    for place, row in enumerate(rows):
        try:
            table[place] = [float(cell) if cell.strip() else np.nan for cell in row]
        except ValueError as error:
            raise UnusableFileError(f"line {place + 2} must hold numbers: {error}") from error
    return table
