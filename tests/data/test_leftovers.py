"""Temporary files leave room on the disk, and nothing of them stays behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.data import DataError, clear_leftovers, leftovers, read_signals


def test_temporary_files_leave_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "long.csv"
    file.write_text("time,value\n" + "".join(f"{number},1\n" for number in range(100)))
    monkeypatch.setattr(leftovers, "MUST_STAY_FREE", 2**60)
    with pytest.raises(DataError, match=r"no room for a temporary file in .* MB are free, and .* must stay free"):
        read_signals(file, limit=10)


def test_only_what_dead_processes_left_is_cleared(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in (f"s.{gone.pid}.unfinished", f"s.{os.getppid()}.unfinished", f"t.{gone.pid}.unfinished", "s.x"):
        (tmp_path / name).write_text("")
    (tmp_path / f"s.{os.getpid()}.unfinished").mkdir()
    clear_leftovers(tmp_path, "s.", ".unfinished")
    left = {one.name for one in tmp_path.iterdir()}
    assert left == {f"s.{os.getppid()}.unfinished", f"t.{gone.pid}.unfinished", "s.x"}
