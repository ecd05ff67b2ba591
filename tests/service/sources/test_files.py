"""The file source with files that grow, move and are written anew."""

import asyncio
import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.service.helpers import Running, run, until
from tests.service.sources.inbox import Inbox
from tocsin_monitor.config.sources import FileSourceSettings as Settings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Status
from tocsin_monitor.sources import files as tails
from tocsin_monitor.sources.files import FileSource

START = 1_700_000_000


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def made(inbox: Inbox, path: Path, *, most: int = 2000, **given: Any) -> FileSource:
    settings = Settings(**{"name": "files", "path": path, "poll": 0.02, **given})
    return FileSource(settings, inbox.context(Metrics(), most=most))


def lines(*numbers: int) -> str:
    return "".join(f"{START + i},{i}\n" for i in numbers)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


HEADER = "time,value\n"


def test_complete_lines_only_and_bad_ones_skipped(tmp_path: Path, inbox: Inbox) -> None:
    async def test() -> None:
        path = tmp_path / "pump.csv"
        source = made(inbox, path)
        async with Running(source):
            await asyncio.sleep(0.05)  # it is not there yet: nothing is wrong with that
            assert source.health.last_error is None
            append(path, HEADER + lines(0, 1) + "17000")
            await until(lambda: len(inbox.kept) == 2)
            await asyncio.sleep(0.06)
            append(path, "00002,2\nnonsense\n1700000003,many\n" + lines(4))
            await until(lambda: len(inbox.kept) == 4)
        assert inbox.values("pump") == [0, 1, 2, 4]
        assert [time for _, time in sorted(inbox.kept)] == [(START + i) * 10**9 for i in (0, 1, 2, 4)]
        assert source.health.skipped == 2
        assert "pump.csv, line 6" in (source.health.last_error or "")

    run(test)


def test_goes_on_where_it_was(tmp_path: Path, inbox: Inbox) -> None:
    """With the header, the rule for times and the line number of before."""

    async def test() -> None:
        path = tmp_path / "pump.csv"
        path.write_text("name;when;flow\n" + "a;2024-01-01T00:00:00;1\n" + "b;2024-01-01T00:00:00;2\n")
        given: dict[str, Any] = {"id": "name", "time": "when", "value": ("flow",)}
        async with Running(made(inbox, path, **given)):
            await until(lambda: len(inbox.kept) == 2)
        append(path, "a;2024-01-01T00:00:01;3\nc;never;4\n")
        again = made(inbox, path, **given)
        async with Running(again):
            await until(lambda: len(inbox.kept) == 3)
        assert inbox.values("a") == [1, 3]
        assert "line 5" in (again.health.last_error or "")
        assert set(inbox.statuses) == {Status.SCORED}

    run(test)


@pytest.mark.parametrize("stopped", [False, True])
def test_renamed_and_begun_anew(tmp_path: Path, inbox: Inbox, stopped: bool) -> None:
    """What was written just before the file was renamed is read first."""

    async def test() -> None:
        path = tmp_path / "pump.csv"
        path.write_text(HEADER + lines(0, 1))
        running = Running(made(inbox, path))
        await running.__aenter__()
        await until(lambda: len(inbox.kept) == 2)
        if stopped:
            await running.__aexit__()
        append(path, lines(2, 3))
        path.rename(tmp_path / "pump.csv.1")
        path.write_text(HEADER + lines(4, 5))
        os.utime(tmp_path / "pump.csv.1", ns=(0, path.stat().st_mtime_ns - 1))
        if stopped:
            running = Running(made(inbox, path))
            await running.__aenter__()
        await until(lambda: len(inbox.kept) == 6)
        append(path, lines(6))
        await until(lambda: len(inbox.kept) == 7)
        await running.__aexit__()
        assert inbox.values("pump") == list(range(7))
        assert set(inbox.statuses) == {Status.SCORED}

    run(test)


def test_a_file_that_is_removed_is_read_to_its_end(tmp_path: Path, inbox: Inbox) -> None:
    async def test() -> None:
        path = tmp_path / "pump.csv"
        path.write_text(HEADER + lines(0))
        source = made(inbox, path)
        async with Running(source):
            await until(lambda: len(inbox.kept) == 1)
            append(path, lines(1))
            path.unlink()
            await until(lambda: len(inbox.kept) == 2)
            path.write_text(HEADER + lines(2))
            await until(lambda: len(inbox.kept) == 3)
        assert source.health.skipped == 0

    run(test)


@pytest.mark.parametrize("text", [HEADER + lines(5, 6), HEADER + lines(*range(5, 60))], ids=["shorter", "longer"])
def test_written_anew_in_place(tmp_path: Path, inbox: Inbox, text: str) -> None:
    async def test() -> None:
        path = tmp_path / "pump.csv"
        path.write_text(HEADER + lines(0, 1, 2, 3))
        async with Running(made(inbox, path)):
            await until(lambda: len(inbox.kept) == 4)
            path.write_text(text)
            await until(lambda: len(inbox.kept) == 4 + text.count("\n") - 1)
        assert set(inbox.statuses) == {Status.SCORED}

    run(test)


def test_a_folder_with_new_files(tmp_path: Path, inbox: Inbox) -> None:
    async def test() -> None:
        (tmp_path / "a.csv").write_text(HEADER + lines(0))
        (tmp_path / "old.csv.gz").write_bytes(b"\x1f\x8b")
        (tmp_path / ".hidden.csv").write_text(HEADER + lines(0))
        (tmp_path / "inner.csv").mkdir()
        source = made(inbox, tmp_path, pattern="*.csv*")
        async with Running(source):
            await until(lambda: inbox.kept)
            (tmp_path / "b.csv").write_text('{"time": 1700000000, "x": 1, "y": null}\n')
            await until(lambda: len(inbox.kept) == 2)
            (tmp_path / "a.csv").rename(tmp_path / "a.csv.1")  # nothing new in it
            (tmp_path / "a.csv").write_text(HEADER + lines(1))
            await until(lambda: len(inbox.kept) == 3)
        assert inbox.values("a") == [0, 1]
        b = inbox.kept["b", START * 10**9]
        assert b.features == ("x", "y")
        assert math.isnan(b.values[1])
        assert source.health.skipped == 0
        assert Status.DUPLICATE not in inbox.statuses

    run(test)


def test_only_what_is_new(tmp_path: Path, inbox: Inbox) -> None:
    async def test() -> None:
        path = tmp_path / "pump.csv"
        path.write_text(HEADER + lines(0, 1) + "1700000002,")
        async with Running(made(inbox, path, from_start=False)):
            await until(lambda: inbox.cursors)
            append(path, "2\n" + lines(3))
            await until(lambda: len(inbox.kept) == 2)
        assert inbox.values("pump") == [2, 3]

    run(test)


@pytest.mark.slow
def test_lines_without_times_get_one_each(tmp_path: Path, inbox: Inbox) -> None:
    async def test() -> None:
        path = tmp_path / "pump.txt"
        path.write_text("".join(f"{i}\n" for i in range(3000)))
        async with Running(made(inbox, path, most=100)):
            await until(lambda: len(inbox.kept) == 3000)
        assert inbox.values("pump") == list(range(3000))
        assert max(len(batch.observations) for batch in inbox.batches) == 100

    run(test)


def test_a_batch_that_fails_is_tried_again(tmp_path: Path, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin_monitor.errors.delay_after", lambda *_: 0.01)

    async def test() -> None:
        inbox.failures = 3
        path = tmp_path / "pump.csv"
        path.write_text(HEADER + lines(0, 1))
        source = made(inbox, path)
        async with Running(source):
            await until(lambda: len(inbox.kept) == 2)
            append(path, lines(2))
            await until(lambda: len(inbox.kept) == 3)
        assert source.health.last_error == "the store is away"

    run(test)


def test_a_line_that_never_ends(tmp_path: Path, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "CHUNK", 64)
    monkeypatch.setattr(tails, "LONGEST_LINE", 256)

    async def test() -> None:
        path = tmp_path / "pump.csv"
        path.write_text(HEADER + lines(0) + "x" * 700 + "\n" + lines(1))
        source = made(inbox, path)
        async with Running(source):
            await until(lambda: len(inbox.kept) == 2)
        assert inbox.values("pump") == [0, 1]
        assert source.health.skipped == 3

    run(test)


def test_a_folder_that_is_not_there(tmp_path: Path, inbox: Inbox) -> None:
    async def test() -> None:
        source = made(inbox, tmp_path / "nowhere" / "pump.csv")
        async with Running(source):
            await until(lambda: source.health.last_error)
        assert "nowhere" in (source.health.last_error or "")

    run(test)
