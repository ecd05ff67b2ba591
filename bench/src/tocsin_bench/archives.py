"""Labelled files as other benchmarks publish them: NAB's windows of times, and the names of the UCR archive."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from tocsin_bench.files import LabelledFile, UnusableFileError, dataset_of, read_file
from tocsin_bench.metrics.nab import Integers, probation

Limits = Sequence[Sequence[str]]

NAB_LABELS = ("labels/combined_windows.json", "combined_windows.json", "windows.json")
"""Where the labelled windows of NAB may be, in a clone of it or in a folder with files of it."""

NAB_DATASET = "NAB (Numenta's files)"
"""Not NAB alone: that of the paper is TSB-AD's selection, with calibration parts and labels of its own."""

_UCR = re.compile(r"_UCR_Anomaly_.+_(\d+)_(\d+)_(\d+)$")


def nab_files(folder: Path) -> dict[Path, Limits]:
    """The files of NAB in a folder, with their labelled windows: the times of first and last observation."""
    labels = next((folder / name for name in NAB_LABELS if (folder / name).is_file()), None)
    if labels is None:
        raise FileNotFoundError(f"{folder} must hold the labelled windows of NAB, {' or '.join(NAB_LABELS)}")
    try:
        windows: Mapping[str, Limits] = json.loads(labels.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{labels} must be JSON: {error}") from error
    data = folder / "data" if (folder / "data").is_dir() else folder
    found = {data / name: limits for name, limits in sorted(windows.items()) if (data / name).is_file()}
    if not found:
        raise FileNotFoundError(f"{folder} must hold files that {labels} names, such as {next(iter(windows), '')}")
    return found


def read_nab(path: Path, windows: Mapping[Path, Limits]) -> LabelledFile:
    """A file of NAB, with the columns timestamp and value; what is not scored is its calibration part."""
    times, values = _nab_rows(path)
    labels = np.zeros(len(values), dtype=bool)
    for first, last in _bounds(times, windows[path]):
        labels[first : last + 1] = True
    column = np.array(values)[:, np.newaxis]
    return LabelledFile(path.stem, NAB_DATASET, max(1, probation(len(values))), column, labels)


def nab_windows(path: Path, windows: Mapping[Path, Limits]) -> Integers:
    """The first and the last observation of each labelled window of a file."""
    return _bounds(_nab_rows(path)[0], windows[path])


def _nab_rows(path: Path) -> tuple[list[datetime], list[float]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(row["timestamp"], row["value"]) for row in csv.DictReader(file)]
        return [datetime.fromisoformat(time) for time, _ in rows], [float(value or "nan") for _, value in rows]
    except (OSError, KeyError, ValueError, csv.Error) as error:
        raise UnusableFileError(f"it must have the columns timestamp and value: {error}") from error


def _bounds(times: list[datetime], limits: Limits) -> Integers:
    try:
        found = [[times.index(datetime.fromisoformat(time)) for time in pair] for pair in limits]
    except ValueError as error:
        raise UnusableFileError(f"its windows must begin and end with observations: {error}") from error
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def ucr_files(folders: Sequence[Path]) -> list[Path]:
    """The files of the UCR anomaly archive in all folders, by name: its own, or those of TSB-AD."""
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder} must be a folder of files of the UCR anomaly archive")
    found = [path for folder in folders for path in (*folder.glob("*.txt"), *folder.glob("*.csv"))]
    found = [
        path for path in found if _UCR.search(path.stem) or (path.suffix, dataset_of(path.stem)) == (".csv", "UCR")
    ]
    if not found:
        raise FileNotFoundError(
            "there must be files of the UCR anomaly archive, such as 001_UCR_Anomaly_NAME_35000_52000_52620.txt, or of "
            f"TSB-AD, such as 101_UCR_id_1_tr_500_1st_900.csv, found none in {', '.join(map(str, folders))}"
        )
    return sorted(found, key=lambda path: path.name)


def read_ucr(path: Path) -> LabelledFile:
    """A file of the archive: values, and in its name where training ends and the first and last anomalous value."""
    matched = _UCR.search(path.stem)
    if matched is None:
        return read_file(path)
    calibration, first, last = map(int, matched.groups())
    try:
        values = np.array(path.read_text(encoding="utf-8").split(), dtype=np.float64)
    except (OSError, ValueError) as error:
        raise UnusableFileError(f"it must hold numbers only: {error}") from error
    if not 0 < calibration <= first <= last <= values.size:
        raise UnusableFileError(f"its name must give places among its {values.size} values, in order")
    labels = np.zeros(values.size, dtype=bool)
    labels[first - 1 : last] = True  # the archive counts from 1
    return LabelledFile(path.stem, "UCR", calibration, values[:, np.newaxis], labels)
