"""How incidents go on and end: what is stored of that, and what somebody says of one that goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    QUICK,
    SECOND,
    START,
    FailingStore,
    Rig,
    expected_all,
    rig,
    same,
    settings_of,
    until,
    verdicts,
)
from tocsin.detection import Detector
from tocsin_monitor.engine import incident_changes, replay
from tocsin_monitor.engine.signals import MonitoredSignal, state_of
from tocsin_monitor.errors import RefusedError, StoreError
from tocsin_monitor.store import IncidentRow

BEFORE = 1200
#: A detector that is quick to run and holds incidents open.
HOLDING: dict[str, Any] = {"alarm_rate": 0.01, "forecaster": "exponential-smoothing", "window": 250}
HOOK = {"webhook": [{"name": "hook", "url": "https://example.com"}]}


def stepped(lasts: int, after: int, size: float = 22.0, seed: int = 5) -> list[float]:
    """Noise that is elsewhere for a while."""
    values = np.random.default_rng(seed).normal(size=BEFORE + lasts + after)
    values[BEFORE : BEFORE + lasts] += size
    return values.tolist()


def fault_of(made: Rig) -> IncidentRow:
    """The incident of the step."""
    return next(row for row in made.incidents(kind="alarm") if row.start == START + BEFORE * SECOND)


def told(made: Rig, number: int) -> list[str]:
    return [row.status for row in made.outbox("hook") if row.incident == number]


@pytest.mark.slow
@pytest.mark.parametrize("size", [full(1), 7, full(40)])
def test_an_incident_goes_on_without_alarms_as_a_detector_says(tmp_path: Path, size: int) -> None:
    values = stepped(120, 200)
    with rig(tmp_path, detector=HOLDING, sinks=HOOK) as made:
        made.feed("a", values[:BEFORE])
        detector = Detector(["value"], **HOLDING)
        expected_all(detector, values[:BEFORE])
        made.events.clear()
        alarms = 0
        for at in range(BEFORE, len(values), size):
            outcomes = made.feed("a", values[at : at + size], START + at * SECOND)
            alarms += any(outcome.judged.alarm for outcome in outcomes)
            expected_all(detector, values[at : at + size], START + at * SECOND)
            rows = made.incidents(kind="alarm")  # on a busy machine there may be a silence
            assert [(row.start, row.end, row.duration, row.ended, row.open) for row in rows] == [
                (int(one.start.astype(np.int64)), int(one.end.astype(np.int64)), one.duration, one.ended, one.open)
                for one in detector.incidents
            ]
            if at < BEFORE + 120:
                assert made.engine.status("a").incident == fault_of(made).id
        fault = fault_of(made)
        assert (fault.open, fault.ended) == (False, "returned")
        assert fault.end >= START + (BEFORE + 119) * SECOND
        assert told(made, fault.id) == ["firing", "resolved"]
        # Nobody is told at each observation that it still goes on.
        assert sum(kind == "incident" for kind, _ in made.events) <= alarms + len(rows)


@pytest.mark.slow
def test_why_an_incident_is_over_when_its_detector_goes(tmp_path: Path) -> None:
    values = stepped(60, 0)
    with rig(tmp_path, detector=HOLDING, sinks=HOOK) as made:
        names = ["reset", "restored", "configured", "excluded", "silence"]
        for name in names:
            made.feed(name, values)
        state = made.engine.signals.state("restored").result(9)
        made.engine.signals.reset("reset").result(9)
        made.engine.signals.restore("restored", state).result(9)
        made.engine.signals.configure("configured", detector={**HOLDING, "gap": 9}).result(20)
        rows = {row.signal: row for row in made.incidents(open=True)}
        made.engine.incidents.label(rows[4].id, "fault", True).result(20)
        made.state.signals["silence"].last_arrival = 0
        until(lambda: made.incidents(kind="silence"))
        made.feed("silence", [0.0], START + len(values) * SECOND)
        ended = {row.signal: row.ended for row in made.incidents(open=False) if row.start == rows[5].start}
        assert ended == {1: "reset", 2: "reset", 3: "relearned", 4: "relearned"}
        (silence,) = made.incidents(kind="silence")
        assert (silence.open, silence.ended) == (False, "returned")


@pytest.mark.slow
def test_what_is_learned_anew_after_an_update_says_so(tmp_path: Path) -> None:
    made = Rig(tmp_path, settings_of(detector=HOLDING))
    try:
        made.feed("a", stepped(60, 0))
        made = made.crash_leaving(1, START, b"of another release")
        assert fault_of(made).ended == "relearned"
    finally:
        made.close()


def accepted(values: list[float], at: int) -> tuple[Detector, list[Any]]:
    """A detector by itself that is told after so many observations that there is no fault, and what it says."""
    detector = Detector(["value"], **HOLDING)
    found = expected_all(detector, values[:at])
    assert detector.accept()
    return detector, found + expected_all(detector, values[at:], START + at * SECOND)


@pytest.mark.slow
@pytest.mark.parametrize("crash", ["never", full("before"), "after", full("later")])
def test_a_false_alarm_ends_and_is_learned_whatever_happens(tmp_path: Path, crash: str) -> None:
    values, at = stepped(400, 0), BEFORE + 30
    detector, wanted = accepted(values, at)
    made = Rig(tmp_path, settings_of(detector=HOLDING, sinks=HOOK, engine={"snapshot_every": 90}))
    try:
        for first in range(0, at, 50):
            made.feed("a", values[first : min(first + 50, at)], START + first * SECOND)
        fault = fault_of(made)
        if crash == "before":
            made = made.crash()
        made.events.clear()
        shape = made.engine.incidents.label(fault.id, "false alarm", False, "the line was moved").result(9)
        assert (shape["open"], shape["ended"], shape["label"]) == (False, "labelled", "false alarm")
        assert (shape["note"], shape["duration"]) == ("the line was moved", 30)
        assert [data for kind, data in made.events if kind == "incident"] == [shape]
        assert made.engine.status("a").incident is None
        if crash == "after":
            made = made.crash()
        again = made.engine.incidents.label(fault.id, "false alarm").result(9)  # whoever had no answer says it again
        assert (again["ended"], again["closed"]) == ("labelled", shape["closed"])
        for first in range(at, len(values), 50):
            made.feed("a", values[first : first + 50], START + first * SECOND)
            if crash == "later" and first in (at, at + 150):
                made = made.crash()
        assert same([row.judged for row in made.stored("a")], wanted)
        assert told(made, fault.id) == ["firing", "resolved"]
        rows = [(row.start, row.ended) for row in made.incidents()]
        assert rows == [(int(one.start.astype(np.int64)), one.ended) for one in detector.incidents]
    finally:
        made.close()


@pytest.mark.slow
@pytest.mark.parametrize("how", [full("before"), "after"])
def test_a_store_that_fails_forgets_the_label_or_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    values, at = stepped(300, 0), BEFORE + 30
    store = FailingStore.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
    made = Rig(tmp_path, settings_of(detector=HOLDING), store)
    plan: list[str] = []
    store.plan = lambda: plan.pop() if plan else ""

    def then_fail(signal: MonitoredSignal) -> bytes:
        plan.append(how)
        return state_of(signal)

    try:
        made.feed("a", values[:at])
        number = fault_of(made).id
        with monkeypatch.context() as patch:
            patch.setattr(incident_changes, "state_of", then_fail)
            with pytest.raises(StoreError):
                made.engine.incidents.label(number, "false alarm").result(9)
        until(lambda: not made.engine.ready)
        until(lambda: made.engine.ready)
        assert fault_of(made).open == (how == "before")
        made.engine.incidents.label(number, "false alarm").result(9)
        made.feed("a", values[at:], START + at * SECOND)
        assert same([row.judged for row in made.stored("a")], accepted(values, at)[1])
    finally:
        made.close()


@pytest.mark.slow
def test_a_detector_that_learns_anew_takes_the_same_for_normal(tmp_path: Path) -> None:
    values, at = stepped(300, 0), BEFORE + 30
    with rig(tmp_path, detector=HOLDING) as made:
        made.feed("a", values[:at])
        number = fault_of(made).id
        made.engine.incidents.label(number, "false alarm").result(9)
        made.feed("a", values[at : at + 100], START + at * SECOND)
        other = next(row.id for row in made.incidents() if row.id != number)
        for exclude in (True, False):
            made.engine.incidents.label(other, "fault", exclude).result(20)
        made.engine.incidents.label(other, None).result(20)  # a fault's share of the budget is given back
        rest = verdicts(made.feed("a", values[at + 100 :], START + (at + 100) * SECOND))
        assert same(rest, accepted(values, at)[1][at + 100 :])


@pytest.mark.slow
def test_what_else_people_say_ends_nothing(tmp_path: Path) -> None:
    with rig(tmp_path, detector=HOLDING) as made:
        made.feed("a", stepped(30, 0))
        made.feed("b", stepped(30, 0))
        number = fault_of(made).id
        for label in ("fault", "expected", None):
            shape = made.engine.incidents.label(number, label).result(9)
            assert (shape["open"], shape["ended"], shape["label"]) == (True, None, label)
        made.state.signals["b"].last_arrival = 0
        until(lambda: made.incidents(kind="silence"))
        (silence,) = made.incidents(kind="silence")
        assert made.engine.incidents.label(silence.id, "false alarm").result(9)["open"]
        with pytest.raises(RefusedError):
            made.engine.incidents.label(number, "false alarm", None, "\0").result(9)
        assert fault_of(made).open


def test_a_false_alarm_that_is_over_already_stays_as_it_ended(tmp_path: Path) -> None:
    with rig(tmp_path, detector=HOLDING) as made:
        made.feed("a", stepped(30, 240, seed=9))
        fault = fault_of(made)
        shape = made.engine.incidents.label(fault.id, "false alarm").result(9)
        assert (shape["ended"], shape["label"]) == ("returned", "false alarm")


def test_an_incident_that_is_long_enough_at_last_is_told_of_without_an_alarm(tmp_path: Path) -> None:
    values = stepped(120, 0)
    with rig(tmp_path, detector={**HOLDING, "min_duration": 60}, sinks=HOOK) as made:
        for at in range(0, len(values), 20):
            made.feed("a", values[at : at + 20], START + at * SECOND)
        fault = fault_of(made)
        assert fault.open
        assert fault.duration >= 60
        assert told(made, fault.id) == ["firing"]


def test_quick_detectors_say_why_too(tmp_path: Path) -> None:
    """Without a past to compare with, an incident is over after its gap."""
    with rig(tmp_path) as made:
        made.feed("a", [*np.random.default_rng(1).normal(size=200).tolist(), 60.0, *[0.0] * 80])
        rows = made.incidents()
        assert QUICK["gap"] == 3
        assert {"returned"} <= {row.ended for row in rows if not row.open} <= {"returned", "subsided"}


def given_back(values: list[float], at: int, withdrawn: int | None = None) -> tuple[Detector, list[Any]]:
    """A detector by itself that is told after so many observations that there is a fault, and what it says."""
    detector = Detector(["value"], **HOLDING)
    found = expected_all(detector, values[:at])
    alarms = detector.incidents[-1].alarms
    detector.fleet.label_fault(0, alarms)
    if withdrawn is not None:
        found += expected_all(detector, values[at:withdrawn], START + at * SECOND)
        detector.fleet.label_fault(0, alarms, taken_back=True)
        at = withdrawn
    return detector, found + expected_all(detector, values[at:], START + at * SECOND)


def is_same_detector(made: Rig, detector: Detector) -> bool:
    """Whether the detector of the signal "a" is in the same state, bit by bit, apart from its incidents."""
    state, wanted = made.state.signals["a"].block.fleet.signal_state(made.state.signals["a"].place), detector.state()
    assert state.keys() == wanted.keys()
    return all(state[name].tobytes() == wanted[name].tobytes() for name in wanted if name != "header")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["crash", full("restart"), full("relearn"), full("renew"), "withdraw"])
def test_a_fault_gives_its_share_back_whatever_happens(tmp_path: Path, how: str) -> None:
    values, at = stepped(30, 300), BEFORE + 100
    detector, wanted = given_back(values, at, at + 50 if how == "withdraw" else None)
    made = Rig(tmp_path, settings_of(detector=HOLDING, engine={"snapshot_every": 90}))
    try:
        made.feed("a", values[:at])
        fault = fault_of(made)
        shape = made.engine.incidents.label(fault.id, "fault").result(9)
        assert (shape["label"], shape["given_back"]) == ("fault", "2023-11-14T22:34:59.000Z")
        if how in ("crash", "restart"):
            made = made.crash() if how == "crash" else made.restart()
        # Whoever had no answer says it again.
        assert made.engine.incidents.label(fault.id, "fault").result(9)["given_back"] == shape["given_back"]
        made.feed("a", values[at : at + 50], START + at * SECOND)
        if how == "withdraw":
            assert made.engine.incidents.label(fault.id, None).result(9)["given_back"] is None
        if how == "relearn":
            for exclude in (True, False):
                made.engine.incidents.label(fault.id, "fault", exclude).result(20)
        if how == "renew":
            made = made.crash_leaving(1, START, b"of another release")
        made.feed("a", values[at + 50 :], START + (at + 50) * SECOND)
        assert same([row.judged for row in made.stored("a")], wanted)
        assert is_same_detector(made, detector)
        assert made.engine.signals.details("a").result(9).audit == detector.audit
    finally:
        made.close()


@pytest.mark.slow
def test_a_detector_gives_back_only_what_it_took(tmp_path: Path) -> None:
    values = stepped(30, 60)
    with rig(tmp_path, detector=HOLDING) as made:
        made.feed("a", values)
        made.engine.signals.reset("a").result(9)
        made.feed("a", values[:20], START + len(values) * SECOND)
        made.engine.incidents.label(fault_of(made).id, "fault").result(9)
        detector = Detector(["value"], **HOLDING)
        expected_all(detector, values[:20], START + len(values) * SECOND)
        assert is_same_detector(made, detector)


@pytest.mark.slow
def test_the_faults_of_an_event_give_their_shares_back(tmp_path: Path) -> None:
    values = stepped(30, 60)
    with rig(tmp_path, detector=HOLDING) as made:
        made.feed("a", values)
        event = fault_of(made).event
        assert event is not None
        for label in ("fault", None, "fault"):
            made.engine.events.label(event, label).result(9)
            assert (fault_of(made).given_back is not None) == (label == "fault")
        assert is_same_detector(made, given_back(values, len(values))[0])


@pytest.mark.slow
def test_a_label_at_the_end_of_a_piece_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values, at = stepped(300, 0), BEFORE + 16
    monkeypatch.setattr(replay, "PIECE", at // 4)
    made = Rig(tmp_path, settings_of(detector=HOLDING))
    try:
        made.feed("a", values[:at])
        made.engine.incidents.label(fault_of(made).id, "false alarm").result(9)
        made.feed("a", values[at:], START + at * SECOND)
        made = made.crash_leaving(1, START, b"of another release")
        assert is_same_detector(made, accepted(values, at)[0])
    finally:
        made.close()
