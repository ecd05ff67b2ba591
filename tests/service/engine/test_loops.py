"""Loops are compiled by another process, while the monitor says what it does."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.service.engine.helpers import QUICK, rig
from tocsin.compilation import NotCompiledError
from tocsin_monitor.engine import loops


def compiled_after(calls: int, monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[Any]:
    """Let loops be missing for so many calls, and a process that runs these lines compile them; returns the calls."""
    called: list[Any] = []

    def judge(detector: Any) -> None:
        called.append(detector)
        if len(called) <= calls:
            raise NotCompiledError("twice")

    monkeypatch.setattr(loops, "judge", judge)
    monkeypatch.setattr(loops, "_COMMAND", (sys.executable, "-c", "\n".join(lines)))
    return called


def test_another_process_compiles_what_is_missing_and_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    echo = "import json; print(json.load(open(0))['window']); print('second')"
    called, told = compiled_after(1, monkeypatch, echo.replace("open(0)", "__import__('sys').stdin")), list[str]()
    loops.load_loops(QUICK, told.append)
    assert called == [QUICK, QUICK]
    doing = "compiling the detector's loops, about a minute at the first start"
    assert told == [doing, f"{doing}: 1 so far", f"{doing}: 2 so far"]


def test_what_is_on_disk_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    called, told = compiled_after(0, monkeypatch, "raise SystemExit(1)"), list[str]()
    loops.load_loops(QUICK, told.append)
    assert (called, told) == ([QUICK], [])


@pytest.mark.parametrize("command", [(sys.executable, "-c", "raise SystemExit(3)"), ("/nothing/of/the/kind",), ("",)])
def test_a_process_that_fails_leaves_it_to_the_monitor(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    called = compiled_after(1, monkeypatch)
    monkeypatch.setattr(loops, "_COMMAND", command)
    loops.load_loops(QUICK, lambda _: None)
    assert called == [QUICK, QUICK]
    assert "loops are compiled here" in caplog.text


def test_the_monitor_can_be_stopped_while_another_process_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    lines = ("import os, time", f"open({str(pid)!r}, 'w').write(str(os.getpid()))", "while True:")
    compiled_after(1, monkeypatch, *lines, "    print('loop', flush=True)", "    time.sleep(0.01)")
    monkeypatch.setattr("tests.service.engine.helpers.until", lambda *_: None)  # it never becomes ready
    began = time.monotonic()
    with rig(tmp_path) as made:
        while "so far" not in made.engine.progress:
            assert time.monotonic() < began + 60
            time.sleep(0.01)
        assert not made.engine.ready
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_monitor_whose_detectors_cannot_be_made_keeps_trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = [ValueError("no such forecaster")] * 2

    def judge(_: Any) -> None:
        if missing:
            raise missing.pop()

    monkeypatch.setattr(loops, "judge", judge)
    with rig(tmp_path) as made:  # it waits until it is ready
        assert missing == []
        assert made.feed("a", [1.0])[0].judged is not None


@pytest.mark.slow
def test_the_process_itself_judges_with_the_settings_that_it_gets() -> None:
    command = [sys.executable, "-m", "tocsin_monitor.engine.loops"]
    done = subprocess.run(command, input='{"window": -1}\n', capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "window" in done.stderr
    done = subprocess.run(
        command, input='{"forecaster": "last-value", "views": ["error"]}\n', capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
