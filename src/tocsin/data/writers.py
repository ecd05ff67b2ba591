"""Writing of tables, chunk by chunk. Files appear only once they are complete."""

import contextlib
import csv
import gzip
import io
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin.data.formats import import_pyarrow
from tocsin.data.problems import DataError
from tocsin.data.sources import SUFFIXES, format_of
from tocsin.data.times import format_times


class Writer(ABC):
    """Accepts chunks of columns of equal length; the first chunk fixes their names."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] | None = None

    def write(self, columns: Mapping[str, ArrayLike]) -> None:
        """Append rows. Times are written as UTC, NaN and NaT as missing."""
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        lengths = {name: array.shape for name, array in arrays.items()}
        if any(len(shape) != 1 for shape in lengths.values()) or len(set(lengths.values())) > 1:
            raise ValueError(f"columns must be one-dimensional and of equal length, got {lengths}")
        if self._names is not None and tuple(arrays) != self._names:
            raise ValueError(f"columns must match those of the first chunk, {self._names}, got {tuple(arrays)}")
        self._append(arrays)
        self._names = tuple(arrays)

    def close(self) -> None:  # noqa: B027 most formats have nothing left to write
        """Write the rest."""

    @abstractmethod
    def _append(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write the rows; `self._names` is None for the first chunk."""


class _CsvWriter(Writer):
    def __init__(self, stream: IO[str], delimiter: str) -> None:
        super().__init__()
        self._writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")

    def _append(self, columns: Mapping[str, NDArray[Any]]) -> None:
        if self._names is None:
            self._writer.writerow(columns)
        self._writer.writerows(zip(*map(_csv_cells, columns.values()), strict=True))


class _JsonLinesWriter(Writer):
    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self._stream = stream

    def _append(self, columns: Mapping[str, NDArray[Any]]) -> None:
        dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
        for row in zip(*map(_json_cells, columns.values()), strict=True):
            self._stream.write(dump(dict(zip(columns, row, strict=True))) + "\n")


class _ParquetWriter(Writer):
    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._arrow = import_pyarrow()
        self._stream = stream
        self._writer: Any = None

    def _append(self, columns: Mapping[str, NDArray[Any]]) -> None:
        from pyarrow import parquet

        # NaN becomes null. Plain lists distinguish texts of any length from missing values.
        arrays = {
            name: self._arrow.array(array.tolist() if array.dtype.kind in "OU" else array, from_pandas=True)
            for name, array in columns.items()
        }
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._stream, self._arrow.table(arrays).schema)
        try:
            self._writer.write_table(self._arrow.table(arrays).cast(self._writer.schema))
        except self._arrow.ArrowException as error:
            raise ValueError(f"columns must have the types of the first chunk: {error}") from error

    def close(self) -> None:
        if self._writer is None:
            self._append({})
        self._writer.close()


@contextlib.contextmanager
def open_writer(path: str | PathLike[str], format: str | None = None) -> Iterator[Writer]:  # noqa: A002
    """A writer for CSV, TSV, JSON lines (each also with .gz) or Parquet, chosen by the suffix if `format` is None.

    Rows go to a temporary file, which replaces the target when the `with` block succeeds. On an error it is removed,
    and the previous file stays.
    """
    target = check_writable(path, format)
    partial = target.with_name(f".{target.name}.{uuid4().hex[:12]}.partial")
    try:
        with contextlib.ExitStack() as resources:
            writer = _open(partial, target, format, resources)
            resources.callback(writer.close)
            yield writer
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: str | PathLike[str], format: str | None = None) -> Path:  # noqa: A002
    """Check before the work starts that a result can be written there; returns the real path."""
    target = Path(os.path.realpath(path))
    kind = format_of(target.name, format)
    if kind is None:
        known = ", ".join(suffix for suffix, written in SUFFIXES.items() if written != "excel")
        raise DataError(f"{path} has no suffix of a known format: {known} (text also with .gz)")
    if kind == "excel":
        raise DataError(f"{path} cannot be written: workbooks can only be read; use .csv, which Excel opens")
    if kind == "parquet":
        if target.suffix.lower() == ".gz":
            raise DataError(f"{path}: Parquet is already compressed; omit .gz")
        import_pyarrow()
    if not target.parent.is_dir():
        raise DataError(f"{path} cannot be written: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise DataError(f"{path} cannot be written: it exists and is not a file")
    if not os.access(target.parent, os.W_OK | os.X_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise DataError(f"{path} cannot be written: no permission")
    return target


def _open(partial: Path, target: Path, format_: str | None, resources: contextlib.ExitStack) -> Writer:
    kind = format_of(target.name, format_)
    stream: Any = resources.enter_context(open(partial, "xb"))  # noqa: SIM115
    if kind == "parquet":
        return _ParquetWriter(stream)
    if target.suffix.lower() == ".gz":
        # No name and no time of writing: the same content gives the same bytes.
        stream = resources.enter_context(gzip.GzipFile("", "wb", fileobj=stream, mtime=0))
    text = resources.enter_context(io.TextIOWrapper(stream, encoding="utf-8", newline=""))
    return _JsonLinesWriter(text) if kind == "jsonl" else _CsvWriter(text, "\t" if kind == "tsv" else ",")


def _csv_cells(column: NDArray[Any]) -> list[Any]:
    if column.dtype.kind == "f":
        return ["" if value != value else value for value in column.tolist()]
    if column.dtype.kind == "b":
        return ["true" if value else "false" for value in column.tolist()]
    if column.dtype.kind == "M":
        return format_times(column)
    return list(column.tolist())


def _json_cells(column: NDArray[Any]) -> list[Any]:
    if column.dtype.kind == "f":
        finite = np.isfinite(column).tolist()  # JSON has no infinity
        return [value if good else None for value, good in zip(column.tolist(), finite, strict=True)]
    if column.dtype.kind == "M":
        return format_times(column)
    return list(column.tolist())
