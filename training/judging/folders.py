"""Folders of series: what is in them, and which of their files are no such files."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.forecaster import Floats
from training.judging.every_origin import SHORTEST

T = TypeVar("T")


def read_folder(
    folder: Path, suffix: str, read: Callable[[Path], T], most: int | None = None
) -> tuple[dict[Path, T], dict[Path, str]]:
    """What `read` makes of each file with that suffix, and what is wrong with those that it cannot read."""
    files = sorted(file for file in folder.iterdir() if file.suffix == suffix)[:most]
    if not files:
        raise ValueError(f"{folder} holds no files *{suffix}")
    found, unreadable = {}, {}
    for file in files:
        try:
            found[file] = read(file)
        except (OSError, ValueError) as error:
            unreadable[file] = str(error)
    if not found:
        raise ValueError(
            f"none of the files {folder}/*{suffix} can be read, such as {files[0].name}: {unreadable[files[0]]}"
        )
    return found, unreadable


def read_tsb_file(file: Path) -> Floats:
    """The column `Data` of a TSB-AD-U file, long enough for a forecast to be judged."""
    with file.open(encoding="utf-8") as lines:
        headings = next(lines, "").strip().split(",")
        if "Data" not in headings:
            raise ValueError(f"must have a column 'Data', got {headings}")
        values = np.loadtxt(lines, delimiter=",", usecols=headings.index("Data"), dtype=np.float64, ndmin=1)
    if not np.isfinite(values).all():
        raise ValueError("must hold numbers only, got some that are missing or infinite")
    if values.size < SHORTEST:
        raise ValueError(f"must hold at least {SHORTEST} observations, got {values.size}")
    return values


def load_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by their names."""
    try:
        with file.open("rb") as source, np.load(source, allow_pickle=False) as arrays:
            return dict(arrays)
    except (EOFError, TypeError, ValueError, BadZipFile, zlib.error) as error:
        # TypeError for a bare .npy file, ValueError for what is no file of numpy at all.
        raise ValueError("must be an .npz file of plain arrays, and whole") from error


def read_series(file: Path) -> dict[str, Floats]:
    """The series of an .npz file by their names."""
    series = load_arrays(file)
    for name, values in series.items():
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            raise ValueError(f"{name!r} must be one series of numbers, got {values.dtype} of shape {values.shape}")
    return {name: values.astype(np.float64) for name, values in series.items()}
