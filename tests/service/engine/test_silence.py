"""Signals that stop sending."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.engine.helpers import SECOND, START, Rig, noise, one, rig, settings_of, until
from tocsin_monitor.engine import engine as engine_module
from tocsin_monitor.engine import upkeep as upkeep_module

HOOK = {"webhook": [{"name": "hook", "url": "https://example.com", "min_severity": 5.0}]}


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(engine_module, "CHORES_EVERY", 0.01)
    return


def _silences(made: Rig) -> list[tuple[int, bool]]:
    return [(row.signal, row.open) for row in made.incidents(kind="silence")]


def _chores(made: Rig) -> None:
    """Let some chores pass."""
    seen = made.upkeep.notice_silence
    passed: list[int] = []
    made.upkeep.notice_silence = lambda: (seen(), passed.append(1))[0]  # type: ignore[method-assign,func-returns-value]
    until(lambda: len(passed) > 3)


@pytest.mark.slow
def test_many_silences_at_once_hold_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are stored some at a time, and what waits comes in between."""
    monkeypatch.setattr(upkeep_module, "SILENCES_AT_ONCE", 5)
    at_once: list[int] = []
    with rig(tmp_path) as made:
        plain = made.state.note
        made.state.note = lambda fresh, incidents, now: (  # type: ignore[method-assign]
            at_once.append(len(incidents)),  # type: ignore[arg-type]
            plain(fresh, incidents, now),
        )[1]
        for number in range(12):
            made.engine.signals.create(f"gateway/{number}", silent_after=1.0).result(9)
        made.take(*(one(f"gateway/{number}", START, 1.0) for number in range(12)))
        until(lambda: len(made.incidents(kind="silence", open=True)) == 12)
    assert max(at_once) == 5


@pytest.mark.slow
def test_a_silence_opens_and_ends_with_the_next_observation(tmp_path: Path) -> None:
    with rig(tmp_path, events={"enabled": False}, sinks=HOOK) as made:
        for name in ("a", "b", "c"):
            made.engine.signals.create(name, silent_after=1.0 if name != "c" else 1000.0).result(9)
        _chores(made)
        assert _silences(made) == []  # what never sent is not silent
        made.feed("a", [1.0, 2.0])
        made.feed("b", [1.0])
        made.feed("c", [1.0])
        until(lambda: len(made.incidents(open=True)) == 2)
        assert made.engine.status("a").silent
        assert not made.engine.status("c").silent
        _chores(made)
        row, other = sorted(made.incidents(), key=lambda one: one.signal)
        assert (row.kind, row.start, row.signal, other.signal) == ("silence", START + SECOND, 1, 2)
        assert made.engine.status("a").incident == row.id
        assert made.sample("tocsin_signals_silent") == made.sample("tocsin_incidents_open", kind="silence") == 2
        made.take(one("a", START, 9.0), one("a", START + 1, 9.0))  # a duplicate and a late one do not end it
        assert made.engine.status("a").silent
        made.take(one("a", START + 2 * SECOND, 1.0))
        assert not made.engine.status("a").silent
        assert sorted(_silences(made)) == [(1, False), (2, True)]
        over = next(one for one in made.incidents() if one.signal == 1)
        assert over.end == over.closed
        told = [(row.incident, row.status) for row in made.outbox("hook")]
        assert sorted(told[:2]) == sorted([(row.id, "firing"), (other.id, "firing")])
        assert told[2:] == [(row.id, "resolved")]
        changes = [data["change"] for kind, data in made.events if kind == "signal" and data["name"] == "a"]
        assert changes == ["created", "silent", "sending"]


def test_not_in_maintenance_but_after_it(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.engine.signals.create("a", silent_after=0.05).result(9)
        now = time.time_ns()
        window = made.engine.maintenance.add("a*", now - SECOND, now + 1000 * SECOND).result(9)
        made.feed("a", [1.0])
        time.sleep(0.1)
        _chores(made)
        assert made.incidents() == []
        made.engine.maintenance.remove(window.id).result(9)
        until(lambda: made.incidents())


def test_a_restart_neither_forgets_nor_doubles_it(tmp_path: Path) -> None:
    made = Rig(tmp_path, settings_of(sinks=HOOK))
    try:
        made.engine.signals.create("a", silent_after=0.05).result(9)
        made.feed("a", [1.0])
        until(lambda: made.engine.status("a").silent)
        made = made.crash()
        assert made.engine.status("a").silent
        _chores(made)
        assert _silences(made) == [(1, True)]
        made.feed("a", [1.0], START + SECOND)
        assert _silences(made)[0] == (1, False)
    finally:
        made.close()


def test_how_long_a_silence_is_comes_from_the_pace(tmp_path: Path) -> None:
    made = Rig(tmp_path)
    try:
        made.feed("a", noise(1, 8), START, 60 * SECOND)
        assert made.engine.signals.details("a").result(9).silent_after is None
        made = made.crash()
        assert made.engine.signals.details("a").result(9).silent_after is None
        made.feed("a", noise(1, 8), START + 8 * 60 * SECOND, 60 * SECOND)
        made.feed("quick", noise(1, 20), START, SECOND // 10)
        assert made.engine.signals.details("a").result(9).silent_after == 600.0
        assert made.engine.signals.details("quick").result(9).silent_after == 30.0
        made = made.crash()
        assert made.engine.signals.details("a").result(9).silent_after == 600.0
        watched = made.state.signal("a")
        assert not watched.is_overdue(watched.last_arrival + 599 * SECOND)
        assert watched.is_overdue(watched.last_arrival + 600 * SECOND)
    finally:
        made.close()
