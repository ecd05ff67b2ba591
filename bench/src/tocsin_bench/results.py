"""The results of a benchmark so far, in a SQLite file, so that an interrupted run can continue."""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FILE_NAME = "results.sqlite"
FORMAT = 1
STATUSES = ("ok", "failed", "skipped")

WHOLE = "whole_"
"""What the names of metrics of whole files begin with."""

FILES_OF = "files of "
"""What the names of facts begin with that say how many files a data set has."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    file TEXT, dataset TEXT, forecaster TEXT, method TEXT, settings TEXT, features INTEGER, observations INTEGER,
    status TEXT, problem TEXT, seconds REAL, metrics TEXT, false_positive_rates TEXT,
    PRIMARY KEY (file, forecaster, method)
);
CREATE TABLE IF NOT EXISTS forecasts (
    file TEXT, dataset TEXT, forecaster TEXT, features INTEGER, observations INTEGER, mae REAL, rmse REAL, seconds REAL,
    PRIMARY KEY (file, forecaster)
);
CREATE TABLE IF NOT EXISTS sources (file TEXT PRIMARY KEY, path TEXT, size INTEGER, sha256 TEXT);
"""


@dataclass(frozen=True)
class MethodRun:
    """The result of one method on one file.

    `forecaster` is "" for methods that need none. `metrics` are those of `Evaluation.row`, NaN where a metric is
    undefined; `false_positive_rates` belong to `metrics.THRESHOLDS`. `seconds` is the method's own time, without
    forecasts and metrics. `problem` says why a run failed, or was not tried.
    """

    file: str
    dataset: str
    forecaster: str
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    features: int = 1
    observations: int = 0
    status: str = "ok"
    problem: str = ""
    seconds: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    false_positive_rates: list[float] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies a run."""
        return self.file, self.forecaster, self.method


@dataclass(frozen=True)
class ForecastErrors:
    """How well a forecaster did on one file: the means over features, origins and steps; and how long it took."""

    file: str
    dataset: str
    forecaster: str
    features: int
    observations: int
    mae: float
    rmse: float
    seconds: float


@dataclass(frozen=True)
class JudgedFile:
    """The file that results belong to: its path when it was judged, and what identifies its content."""

    file: str
    path: str
    size: int
    sha256: str

    @property
    def content(self) -> tuple[int, str]:
        """What identifies the content, wherever the file is."""
        return self.size, self.sha256


class BenchmarkResults:
    """The results in a folder, which is created if necessary."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        try:
            self._connection = sqlite3.connect(folder / FILE_NAME, timeout=60)
        except sqlite3.Error as error:
            raise ValueError(f"{folder / FILE_NAME} cannot be opened: {error}") from error
        try:
            self._connection.executescript(_SCHEMA)
            self._check_format()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"{folder / FILE_NAME} must be the results of a benchmark, got: {error}") from error

    @classmethod
    def existing(cls, folder: Path) -> Self:
        """The results that a folder holds already."""
        if not (folder / FILE_NAME).is_file():
            raise FileNotFoundError(f"{folder} holds no results: there is no {FILE_NAME} in it")
        return cls(folder)

    def _check_format(self) -> None:
        found = self._connection.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
        if found is None:
            self.describe({"format": str(FORMAT)})
        elif found[0] != str(FORMAT):
            self._connection.close()
            raise ValueError(f"{self.folder / FILE_NAME} must have format {FORMAT}, got {found[0]!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._connection.close()

    def describe(self, about: Mapping[str, str]) -> None:
        """Note facts about the whole run, such as versions and the machine."""
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())

    def about(self) -> dict[str, str]:
        """The facts noted."""
        return dict(self._connection.execute("SELECT name, value FROM about"))

    def add(
        self, runs: Sequence[MethodRun], forecasts: Sequence[ForecastErrors] = (), source: JudgedFile | None = None
    ) -> None:
        """Add results, all of them or none; existing ones with the same key are replaced.

        `source` is stored once a run on it succeeded: a file without results may still be corrected.
        """
        with self._connection:
            for run in runs:
                row = asdict(run)
                for name in ("settings", "metrics", "false_positive_rates"):
                    row[name] = json.dumps(row[name])
                self._insert("runs", row)
            for errors in forecasts:
                self._insert("forecasts", asdict(errors))
            if source is not None and any(run.status == "ok" for run in runs):
                self._insert("sources", asdict(source))

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        names, places = ", ".join(row), ", ".join("?" * len(row))
        self._connection.execute(
            f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})",  # noqa: S608  names are our own
            tuple(row.values()),
        )

    def finished(self) -> set[tuple[str, str, str]]:
        """The keys of successful runs; failed and skipped ones are tried again."""
        return {
            tuple(row)
            for row in self._connection.execute("SELECT file, forecaster, method FROM runs WHERE status = 'ok'")
        }

    def runs(self) -> list[MethodRun]:
        """All runs, in the order of their keys."""
        names = ", ".join(MethodRun.__dataclass_fields__)
        rows = self._connection.execute(f"SELECT {names} FROM runs ORDER BY file, forecaster, method")  # noqa: S608
        found = []
        for row in rows:
            values = dict(zip(MethodRun.__dataclass_fields__, row, strict=True))
            for name in ("settings", "metrics", "false_positive_rates"):
                values[name] = json.loads(values[name])
            found.append(MethodRun(**values))
        return found

    def forecasts(self) -> list[ForecastErrors]:
        """The errors of all forecasts, in the order of files."""
        names = ", ".join(ForecastErrors.__dataclass_fields__)
        rows = self._connection.execute(f"SELECT {names} FROM forecasts ORDER BY file, forecaster")  # noqa: S608
        # SQLite keeps a NaN as NULL.
        numbers: list[list[Any]] = [[math.nan if value is None else value for value in row] for row in rows]
        return [ForecastErrors(*row) for row in numbers]

    def sources(self) -> dict[str, JudgedFile]:
        """The files with successful runs, by name; older results do not have them."""
        names = ", ".join(JudgedFile.__dataclass_fields__)
        rows = self._connection.execute(f"SELECT {names} FROM sources")  # noqa: S608
        return {row[0]: JudgedFile(*row) for row in rows}

    def trace_of(self, file: str, forecaster: str, method: str) -> Path:
        """`trace_path` of this folder."""
        return trace_path(self.folder, file, forecaster, method)

    def signal_of(self, file: str) -> Path:
        """`signal_path` of this folder."""
        return signal_path(self.folder, file)


def trace_path(folder: Path, file: str, forecaster: str, method: str) -> Path:
    """Where the p-values of a run are: `p`, one for each observation.

    Where the method has them, with its `severity` likewise, the first and last observation of its `incidents`, learned
    `weights` and past `errors` by lag.
    """
    return folder / "traces" / file / forecaster / f"{method}.npz"


def signal_path(folder: Path, file: str) -> Path:
    """Where the observations (`values[T, F]`), `labels[T]` and `first_evaluated` of a file are."""
    return folder / "traces" / file / "signal.npz"
