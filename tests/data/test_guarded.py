"""Files that end the process of the library that reads them, and not this one."""

import gzip
import io
import os
import signal
from pathlib import Path

import pytest

from tests.data.workbook import far_away, workbook
from tocsin.data import DataError, guarded, read_signals

SMALL = workbook({"one": [["time", "value"], ["2026-01-01", 1.0], ["2026-01-02", 2.0]]})


def test_a_workbook_that_lies_about_its_size(tmp_path: Path) -> None:
    file = tmp_path / "lies.xlsx"
    file.write_bytes(far_away())
    assert file.stat().st_size < 4000
    with pytest.raises(DataError, match=r"lies.xlsx cannot be read: it is damaged, or .* more than .* MB"):
        read_signals(file)


def test_open_and_compressed_files_are_read_in_the_same_way(tmp_path: Path) -> None:
    packed = tmp_path / "small.xlsx.gz"
    packed.write_bytes(gzip.compress(SMALL))
    for source in (packed, io.BytesIO(SMALL)):
        with read_signals(source, format="excel") as found:
            assert found[0].values.tolist() == [[1.0], [2.0]]


def test_what_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "long.xlsx"
    file.write_bytes(SMALL)
    monkeypatch.setattr(guarded.GuardedReader, "_send", lambda self, thing: os.kill(self._process.pid, signal.SIGXCPU))
    with pytest.raises(DataError, match=r"long.xlsx cannot be read: that takes more than 60 s"):
        read_signals(file)
