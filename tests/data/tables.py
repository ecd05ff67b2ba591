"""One table in every kind of file and frame, and signals compared."""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

FILES = ("csv", "csv.gz", "tsv", "jsonl", "ndjson.gz", "parquet")
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def write(path, columns):
    """The file that the suffix says, written without any help from what is tested. None is missing."""
    names, rows = list(columns), list(zip(*columns.values(), strict=True))
    suffixes = path.suffixes
    if ".parquet" in suffixes:
        pq.write_table(pa.table(columns), path)
        return path
    if suffixes[0] in (".jsonl", ".ndjson"):
        text = "".join(json.dumps(dict(zip(names, map(plain, row), strict=True))) + "\n" for row in rows)
    else:
        delimiter = "\t" if suffixes[0] == ".tsv" else ","
        text = "".join(
            delimiter.join("" if cell is None else str(plain(cell)) for cell in row) + "\n" for row in [names, *rows]
        )
    path.write_bytes(gzip.compress(text.encode()) if suffixes[-1] == ".gz" else text.encode())
    return path


def plain(cell):
    return cell.isoformat() if hasattr(cell, "isoformat") else cell


def assert_same(left, right, *, lines_off_by=0, problems=True):
    assert left.name == right.name
    assert left.features == right.features
    assert (left.times is None) == (right.times is None)
    if left.times is not None:
        assert left.times.dtype == right.times.dtype
        assert np.array_equal(left.times, right.times)
    assert left.values.dtype == np.float64
    assert np.array_equal(left.values, right.values, equal_nan=True)
    assert left.lines.dtype == np.int64
    assert np.array_equal(np.where(left.lines, left.lines - lines_off_by, 0), right.lines)
    assert left.interval == right.interval
    if problems:
        assert [(p.kind, p.count) for p in left.problems] == [(p.kind, p.count) for p in right.problems]
