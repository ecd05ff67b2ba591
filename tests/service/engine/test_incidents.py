"""Incidents: what is stored, what sinks are to be told, and what people do about them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    NAN,
    QUICK,
    SECOND,
    START,
    Rig,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    verdicts,
)
from tocsin_monitor.errors import RefusedError, UnknownError

VALUES = noise(21, 400)
HOOKS = {
    "webhook": [
        {"name": "all", "url": "https://example.com"},
        {"name": "pumps", "url": "https://example.com", "match": "pump/*"},
        {"name": "severe", "url": "https://example.com", "min_severity": 1.4},
    ]
}


def _nanoseconds(moment: Any) -> int:
    return int(moment.astype("datetime64[ns]").astype(np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("size", [full(1), 37, full(400)])
def test_they_are_those_of_a_detector(tmp_path: Path, size: int) -> None:
    count = 150 if size == 1 else 400
    with rig(tmp_path) as made:
        outcomes = []
        for at in range(0, count, size):
            outcomes += made.feed("a", VALUES[at : min(at + size, count)], START + at * SECOND)
        detector = oracle()
        expected_all(detector, VALUES[:count])
        rows = made.incidents()
        assert len(rows) == len(detector.incidents) > 1
        for row, incident in zip(rows, detector.incidents, strict=True):
            times = (row.start, row.end, row.peak)
            assert times == tuple(map(_nanoseconds, (incident.start, incident.end, incident.peak)))
            assert (row.alarms, row.duration, row.p, row.severity, row.return_period) == (
                incident.alarms, incident.duration, incident.p, incident.severity, incident.return_period,
            )  # fmt: skip
            assert (row.direction, row.deviation) == (incident.direction, incident.deviation)
            assert (row.view, row.explanation) == (incident.view, incident.explanation)
            assert "the forecast" in row.explanation
            assert row.contributions == incident.contributions
            assert (row.feature_p, row.suspects) == (incident.feature_p, tuple(incident.suspects))
            assert row.open == incident.open
            for outcome in outcomes:
                if outcome.judged.alarm and row.start <= outcome.time <= row.end:
                    assert outcome.incident == row.id
        assert all((outcome.incident is not None) == outcome.judged.alarm for outcome in outcomes)
        told = [data for kind, data in made.events if kind == "incident"]
        assert {shape["id"] for shape in told} == {row.id for row in rows}


def test_explanations_have_the_unit_of_their_signal(tmp_path: Path) -> None:
    """Signals with the same settings share a block, whatever their units; a unit is in no state, and may change."""
    with rig(tmp_path, templates=[{"match": "memory", "unit": "GB"}]) as made:
        for name in ("memory", "load"):
            made.feed(name, VALUES[:200])
        made.engine.signals.configure("memory", unit="MB").result(9)
        for name in ("memory", "load"):
            made.feed(name, VALUES[200:], START + 200 * SECOND)
        said: dict[int, list[str]] = {1: [], 2: []}
        for row in made.incidents():
            assert row.explanation is not None
            said[row.signal].append(row.explanation)
    units = [next((unit for unit in ("GB", "MB") if f" {unit} " in text), "") for text in said[1]]
    assert units == ["GB"] * units.count("GB") + ["MB"] * units.count("MB")
    assert len(set(units)) == 2
    assert said[2]
    assert not any("B" in text for text in said[2])


@pytest.mark.slow
def test_each_sink_is_told_what_it_wants_once(tmp_path: Path) -> None:
    with rig(tmp_path, events={"enabled": False}, sinks=HOOKS, detector={**QUICK, "gap": 5}) as made:
        for name in ("pump/1", "fan"):
            for at in range(0, 400, 7):
                made.feed(name, VALUES[at : at + 7], START + at * SECOND)
        made.engine.signals.reset("fan").result(9)
        rows = {row.id: row for row in made.incidents()}
        assert any(row.alarms > 1 for row in rows.values())
        for sink, wanted in (
            ("all", list(rows.values())),
            ("pumps", [row for row in rows.values() if row.signal == 1]),
            ("severe", [row for row in rows.values() if row.severity >= 1.4]),
        ):
            told = made.outbox(sink)
            assert sorted(row.incident for row in told if row.status == "firing") == sorted(row.id for row in wanted)
            over = [row.id for row in wanted if not row.open]
            assert sorted(row.incident for row in told if row.status == "resolved") == sorted(over)
            assert 0 < len(wanted) <= len(rows)


@pytest.mark.slow
def test_a_sink_hears_of_an_incident_when_it_becomes_severe_enough(tmp_path: Path) -> None:
    severe = {"name": "severe", "url": "https://example.com", "min_severity": 5}
    sinks = {"webhook": [HOOKS["webhook"][0], severe]}
    with rig(tmp_path, sinks=sinks, detector={**QUICK, "gap": 50}) as made:
        first: dict[str, int] = {}
        quiet = np.random.default_rng(23).normal(size=150).tolist()
        for at, value in enumerate([*quiet, 4.5, 0.0, 60.0, 0.0]):
            made.take(one("a", START + at * SECOND, value))
            with made.store.reading() as reader:
                for sink in ("all", "severe"):
                    if sink not in first and reader.outbox_due(sink, 2**62, 1):
                        first[sink] = at
        (row,) = made.incidents()
        assert first["all"] < first["severe"]
        assert row.start == START + first["all"] * SECOND
        assert row.peak == START + first["severe"] * SECOND


def _excluded(made: Rig, number: int, exclude: bool) -> dict[str, Any]:
    return made.engine.incidents.label(number, "fault", exclude, "pump broke").result(9)


@pytest.mark.slow
def test_exclude_takes_observations_out_of_calibration_and_back(tmp_path: Path) -> None:
    made = Rig(tmp_path)
    try:
        made.feed("a", VALUES)
        first, *_, last = (row for row in made.incidents() if not row.open)
        for row in (first, last):
            shape = _excluded(made, row.id, True)
            assert (shape["label"], shape["excluded"], shape["note"]) == ("fault", True, "pump broke")
        out = [
            NAN if any(row.start <= START + at * SECOND <= row.end for row in (first, last)) else value
            for at, value in enumerate(VALUES)
        ]
        rest = noise(23, 90)
        detector = oracle()
        expected_all(detector, out)
        wanted = expected_all(detector, rest[:60], START + 400 * SECOND)
        found = verdicts(made.feed("a", rest[:30], START + 400 * SECOND))
        made = made.crash()
        found += verdicts(made.feed("a", rest[30:60], START + 430 * SECOND))
        assert same(found, wanted)
        assert same([row.judged for row in made.stored("a")][:400], expected_all(oracle(), VALUES))
        _excluded(made, first.id, False)
        _excluded(made, last.id, False)
        detector = oracle()
        expected_all(detector, VALUES + rest[:60])
        found = verdicts(made.feed("a", rest[60:], START + 460 * SECOND))
        assert same(found, expected_all(detector, rest[60:], START + 460 * SECOND))
    finally:
        made.close()


def test_excluding_an_incident_that_goes_on_ends_it(tmp_path: Path) -> None:
    with rig(tmp_path, sinks=HOOKS, detector={**QUICK, "gap": 60}) as made:
        made.feed("a", [*VALUES[:200], 70.0])
        (going_on,) = made.incidents(open=True)
        shape = _excluded(made, going_on.id, True)
        assert (shape["open"], shape["excluded"]) == (False, True)
        assert made.engine.status("a").incident is None
        assert {row.status for row in made.outbox("all") if row.incident == going_on.id} == {"firing", "resolved"}
        outcomes = made.feed("a", [*VALUES[201:240], -90.0], START + 201 * SECOND)
        assert outcomes[-1].judged.alarm
        assert outcomes[-1].incident > going_on.id
        (new,) = made.incidents(open=True)
        assert new.id == outcomes[-1].incident
        assert new.start == next(outcome.time for outcome in outcomes if outcome.judged.alarm)


def test_acknowledge_snooze_and_label(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", VALUES)
        number = made.incidents()[0].id
        made.events.clear()
        shape = made.engine.incidents.acknowledge(number, "me", "looking").result(9)
        assert (shape["acknowledged_by"], shape["note"], shape["signal"]) == ("me", "looking", "a")
        assert shape["acknowledged"] is not None
        assert made.engine.incidents.acknowledge(number, None).result(9)["acknowledged"] is None
        assert made.engine.incidents.snooze(number, START).result(9)["snoozed_until"] == "2023-11-14T22:13:20.000Z"
        assert made.engine.incidents.snooze(number, None).result(9)["snoozed_until"] is None
        assert made.engine.incidents.label(number, "expected").result(9)["label"] == "expected"
        shape = made.engine.incidents.label(number, None).result(9)
        assert (shape["label"], shape["note"], shape["excluded"]) == (None, "looking", False)
        assert [kind for kind, _ in made.events] == ["incident"] * 6
        for bad in ("x" * 2001, "\0", "\ud800"):
            with pytest.raises(RefusedError, match="note"):
                made.engine.incidents.acknowledge(number, "me", bad).result(9)
        with pytest.raises(RefusedError, match="label"):
            made.engine.incidents.label(number, "nonsense").result(9)
        for ask in (made.engine.incidents.acknowledge, made.engine.incidents.snooze, made.engine.incidents.label):
            with pytest.raises(UnknownError):
                ask(10**6, None).result(9)
        assert made.engine.ready


def test_maintenance_windows_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        end = START + 1
        for pattern, last, reason in (("a", START, ""), ("", end, ""), ("x" * 201, end, ""), ("a", end, "\0")):
            with pytest.raises(RefusedError):
                made.engine.maintenance.add(pattern, START, last, reason).result(9)
        with pytest.raises(UnknownError):
            made.engine.maintenance.remove(7).result(9)
        assert made.state.windows == []
