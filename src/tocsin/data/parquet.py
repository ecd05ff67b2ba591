"""Parquet files and folders of them, batch by batch."""

import os
import shutil
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tocsin.data.blocks import NOTHING, SAMPLE, Expected, RowBlock, rows_per_block
from tocsin.data.cells import Cells
from tocsin.data.problems import DataError
from tocsin.data.sources import SUFFIXES, OpenSource


class _ParquetRows(ABC):
    """Reads batches from pyarrow, which is imported only here. Rows are counted from 1."""

    unit = "row"
    notes: Sequence[str] = ()
    label: str
    names: Sequence[str]
    _arrow: Any

    def sample(self) -> Mapping[str, Cells]:
        for batch in self._batches(min(SAMPLE, rows_per_block(len(self.names))), self.names):
            if batch.num_rows:
                return {name: arrow_cells(batch.column(name)) for name in self.names}
        return dict.fromkeys(self.names, ())

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[RowBlock]:
        row = 1
        for batch in self._batches(rows_per_block(len(columns)), columns):
            numbers = np.arange(row, row + batch.num_rows)
            yield RowBlock(numbers, {name: arrow_cells(batch.column(name)) for name in columns})
            row += batch.num_rows

    def _batches(self, size: int, columns: Sequence[str]) -> Iterator[Any]:
        try:
            yield from self._read(size, list(columns))
        except (self._arrow.ArrowException, OSError) as error:
            raise DataError(f"{self.label} is damaged: {error}") from error

    @abstractmethod
    def _read(self, size: int, columns: list[str]) -> Iterable[Any]:
        """Batches of at most this many rows, from the start."""

    def _check_names(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise DataError(f"{self.label} has several columns with the same name: {', '.join(self.names)}")


class ParquetReader(_ParquetRows):
    """Reads a Parquet file."""

    def __init__(self, source: OpenSource, resources: ExitStack) -> None:
        self.label = source.label
        self._arrow = import_pyarrow()
        from pyarrow import parquet

        stream: Any = source.stream
        if source.compressed or not stream.seekable():
            # Parquet files are read from the end.
            stream = resources.enter_context(tempfile.TemporaryFile(prefix="tocsin-"))  # noqa: SIM115
            try:
                shutil.copyfileobj(source.stream, stream)
            except (EOFError, OSError, zlib.error) as error:
                raise DataError(f"{self.label} cannot be read: {error}") from error
        try:
            self._file = parquet.ParquetFile(stream)
            self.names: Sequence[str] = self._file.schema_arrow.names
        except (self._arrow.ArrowException, OSError) as error:
            raise DataError(f"{self.label} is not a Parquet file, or is damaged: {error}") from error
        self._check_names()

    def _read(self, size: int, columns: list[str]) -> Iterable[Any]:
        batches: Iterable[Any] = self._file.iter_batches(batch_size=size, columns=columns)
        return batches


class ParquetFolderReader(_ParquetRows):
    """Reads the Parquet files in a folder and its subfolders as one table, in the order of their names.

    Folders such as `sensor=pump` add a column. Files whose names begin with '_' or '.' are not data.
    """

    def __init__(self, folder: str) -> None:
        self.label = folder
        self._arrow = import_pyarrow()
        from pyarrow import dataset

        files = [str(path) for path in sorted(Path(folder).rglob("*")) if _is_data(path, Path(folder))]
        if not files:
            raise DataError(
                f"{folder} is a folder without Parquet files; for other files use a pattern, '{folder}/*.csv'"
            )
        try:
            self._dataset = dataset.dataset(
                files, format="parquet", partitioning="hive", partition_base_dir=os.path.abspath(folder)
            )
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise DataError(f"{folder} is a folder that cannot be read as one table: {error}") from error
        self.names = self._dataset.schema.names
        self.notes = [f"{len(files):,} Parquet file{'s' if len(files) > 1 else ''}"]
        self._check_names()

    def _read(self, size: int, columns: list[str]) -> Iterable[Any]:
        # Few batches ahead: the folder may be far larger than memory.
        scanner = self._dataset.scanner(columns=columns, batch_size=size, batch_readahead=2, fragment_readahead=1)
        batches: Iterable[Any] = scanner.to_batches()
        return batches


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return SUFFIXES.get(path.suffix.lower()) == "parquet" and path.is_file() and not hidden


def import_pyarrow() -> Any:
    """pyarrow, or an error that says how to install it."""
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError("Parquet needs pyarrow: pip install 'tocsin[parquet]'") from None
    return pa


def arrow_cells(column: Any) -> Cells:
    """Numbers and times as arrays (NaN and NaT for null), anything else as a list."""
    from pyarrow import types

    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if types.is_decimal(kind):
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False))
    if types.is_timestamp(kind) or types.is_date(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))  # a zoned timestamp is stored in UTC
    cells: list[Any] = column.to_pylist()
    return cells
