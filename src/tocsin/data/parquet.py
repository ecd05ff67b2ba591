"""Parquet files, batch by batch."""

import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from tocsin.data.blocks import NOTHING, SAMPLE, Block, Expected, rows_per_block
from tocsin.data.cells import Cells
from tocsin.data.problems import DataError
from tocsin.data.sources import OpenSource


class ParquetReader:
    """Reads a Parquet file through pyarrow, which is imported only here. Rows are counted from 1."""

    unit = "row"
    notes: Sequence[str] = ()

    def __init__(self, source: OpenSource, resources: ExitStack) -> None:
        self.label = source.label
        self._arrow = import_pyarrow()
        from pyarrow import parquet

        stream: Any = source.stream
        if source.compressed or not stream.seekable():
            # Parquet is read from its end.
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
        if len(set(self.names)) < len(self.names):
            raise DataError(f"{self.label} has several columns of one name: {', '.join(self.names)}")

    def sample(self) -> Mapping[str, Cells]:
        for batch in self._batches(min(SAMPLE, rows_per_block(len(self.names))), self.names):
            return {name: arrow_cells(batch.column(name)) for name in self.names}
        return dict.fromkeys(self.names, ())

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[Block]:
        row = 1
        for batch in self._batches(rows_per_block(len(columns)), columns):
            numbers = np.arange(row, row + batch.num_rows)
            yield Block(numbers, {name: arrow_cells(batch.column(name)) for name in columns})
            row += batch.num_rows

    def _batches(self, size: int, columns: Sequence[str]) -> Iterator[Any]:
        try:
            yield from self._file.iter_batches(batch_size=size, columns=list(columns))
        except (self._arrow.ArrowException, OSError) as error:
            raise DataError(f"{self.label} is damaged: {error}") from error


def import_pyarrow() -> Any:
    """pyarrow, or an error that says how to get it."""
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError("Parquet needs pyarrow: pip install 'tocsin[parquet]'") from None
    return pa


def arrow_cells(column: Any) -> Cells:
    """Numbers and moments as arrays (NaN and NaT for null), all else as a list."""
    from pyarrow import types

    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if types.is_decimal(kind):
        return np.asarray(column.cast("float64").to_numpy(zero_copy_only=False))
    if types.is_timestamp(kind) or types.is_date(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))  # an aware timestamp is kept in UTC
    cells: list[Any] = column.to_pylist()
    return cells
