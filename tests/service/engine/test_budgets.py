"""Signals that share a budget: which incidents sinks are told of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.helpers import SECOND, START, Rig, one, rig, settings_of
from tocsin_monitor.config import Settings
from tocsin_monitor.event_text import title_of
from tocsin_monitor.store import IncidentFacts

SINK = {"webhook": [{"name": "desk", "url": "https://example.com"}]}
DETECTOR = {"forecaster": "last-value", "views": ["error"], "alarm_rate": 0.02, "window": 250, "interval": "1s"}
LENGTH = 1500


def _noise(signals: int, length: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(length, signals))


def _send(made: Rig, values: Any, first: int = 0) -> None:
    for at in range(0, len(values), 50):
        piece = values[at : at + 50]
        made.take(
            *(
                one(f"pump/{signal}", START + (first + at + step) * SECOND, value)
                for step, row in enumerate(piece)
                for signal, value in enumerate(row)
            )
        )


def _withheld(made: Rig) -> dict[int, bool]:
    """Which incidents were withheld; exactly the others belong to events, of which sinks are told."""
    found = {row.id: row.withheld for row in made.incidents(kind="alarm")}
    assert {row.id: row.event is None for row in made.incidents(kind="alarm")} == found
    return found


@pytest.mark.slow
def test_the_rarest_are_told_and_a_start_changes_nothing(tmp_path: Path) -> None:
    """At 12 in an hour, 5 in the 25 minutes. Each signal by itself has 30."""
    settings = settings_of(detector=DETECTOR, sinks=SINK, budgets=[{"match": "pump/*", "incidents": "12/hour"}])
    values = _noise(4, LENGTH)
    values[-40:-30, 2] += 60
    made = Rig(tmp_path, settings)
    _send(made, values)
    found = _withheld(made)
    told = len(found) - sum(found.values())
    assert len(found) > 60
    assert 2 <= told <= 10
    fault = max(made.incidents(kind="alarm"), key=lambda row: row.severity)
    assert not fault.withheld
    made = made.restart()
    assert _withheld(made) == found
    _send(made, _noise(4, 300, seed=2), LENGTH)
    more = _withheld(made)
    assert len(more) - len(found) > 0
    assert sum(not more[number] for number in more.keys() - found.keys()) <= 4
    made.close()


def test_other_signals_are_always_told(tmp_path: Path) -> None:
    with rig(
        tmp_path, detector=DETECTOR, sinks=SINK, budgets=[{"match": "other/*", "incidents": "1/week"}]
    ) as made:  # fmt: skip
        _send(made, _noise(1, 600))
        found = _withheld(made)
        assert found
        assert not any(found.values())


@pytest.mark.slow
def test_an_incident_is_told_once_it_is_rare_enough(tmp_path: Path) -> None:
    values = _noise(1, LENGTH)
    values[-30:, 0] += np.cumsum(np.full(30, 3.0)) * (-1) ** np.arange(30)
    with rig(tmp_path, detector=DETECTOR, sinks=SINK, budgets=[{"incidents": "1/hour"}]) as made:
        _send(made, values[:-30])
        for step, row in enumerate(values[-30:]):
            _send(made, row[np.newaxis], LENGTH - 30 + step)
            newest = made.incidents(kind="alarm")[-1]
            if newest.open and newest.withheld:
                break
        else:
            pytest.fail("it was told at once")
        _send(made, values[-30 + step + 1 :], LENGTH - 30 + step + 1)
        (same,) = [row for row in made.incidents(kind="alarm") if row.id == newest.id]
        assert not same.withheld
        _withheld(made)


def test_services_that_fail_at_once_are_one_event_that_names_them(tmp_path: Path) -> None:
    """Each service is a place of its own, and its fault alone would be a message; the worst comes first."""
    values = _noise(6, 600)
    values[-4:] += 10.0 * np.array([3, 3000, 5, 4, 6, 7])
    with rig(tmp_path, detector=DETECTOR, sinks=SINK, budgets=[{"incidents": "1/week"}]) as made:
        for at in range(0, len(values), 50):
            piece = values[at : at + 50]
            made.take(
                *(
                    one(f"service-{signal}/errors", START + (at + step) * SECOND, value)
                    for step, row in enumerate(piece)
                    for signal, value in enumerate(row)
                )
            )
        failed = [row for row in made.incidents(kind="alarm") if row.start >= START + 596 * SECOND]
        assert len(failed) == 6
        assert not any(row.withheld for row in failed)
        (event,) = {row.event for row in failed}
        assert event is not None
        with made.store.reading() as reader:
            known = reader.event(event)
            assert known is not None
            (whole,) = reader.summaries([known], reader.signal_names())
        assert whole.places[0] == "service-1"
        assert sorted(whole.places) == [f"service-{number}" for number in range(6)]
        assert title_of(whole) == f"{', '.join(whole.places)}: 6 incidents on 6 signals"
        # They were paid for once.
        assert made.state.budgets._shared[0].selection(0)._surplus == pytest.approx(1.0, abs=0.1)


def _facts(signal: int, start: int, **more: Any) -> IncidentFacts:
    usual: dict[str, Any] = {
        "kind": "alarm", "end": start + 60 * SECOND, "peak": start, "alarms": 9, "duration": 60, "p": 1e-5,
        "severity": 20.0, "return_period": 1e5, "rarity": 34.5, "view": "error", "explanation": "up",
        "direction": "above", "side": "above", "deviation": 1.0, "contributions": {"value": 1.0}, "open": True,
        "opened": start, "closed": None, "ended": None,
    }  # fmt: skip
    return IncidentFacts(signal=signal, start=start, **{**usual, **more})


def _imported(signal: int, start: int, **more: Any) -> IncidentFacts:
    over = start + 60 * SECOND
    return _facts(signal, start, open=False, closed=over, ended="imported", **more)


def test_what_recurs_in_imported_history_is_known_on_the_first_day(tmp_path: Path) -> None:
    """A job that ran every night for four weeks is withheld when it runs again; the same at another time is told."""
    day = 86400 * SECOND
    with rig(tmp_path, detector=DETECTOR, sinks=SINK, budgets=[{"incidents": "1/week"}]) as made:
        made.feed("backup/cpu", [1.0] * 3)
        signal = made.state.signals["backup/cpu"]

        def now(facts: IncidentFacts) -> bool:
            with made.store.transaction() as writer:
                number = made.state.put_alarm(writer, signal, facts, facts.end)
                row = writer.incident(number)
            assert row is not None
            return not row.withheld

        with made.store.transaction() as writer:
            for night in range(28):
                writer.put_incident(_imported(signal.row.id, START + night * day))
        with made.store.reading() as reader:
            made.state.budgets.recover(reader, made.state.signals.values())
        # At its first alarm it is not yet like the others at their peaks.
        assert not now(_facts(signal.row.id, START + 28 * day, severity=6.0))
        assert now(_facts(signal.row.id, START + 28 * day + day // 2, severity=90.0))
        assert now(_facts(signal.row.id, START + 29 * day + day // 2, side="below"))


def test_what_was_told_is_remembered_over_a_start(tmp_path: Path) -> None:
    """That certain incidents ask for more of the next does not follow from the incidents alone."""
    values = _noise(1, 400)
    values[-1] += 60
    settings = settings_of(detector=DETECTOR, sinks=SINK, budgets=[{"match": "pump/*", "incidents": "1/week"}])
    made = Rig(tmp_path, settings)
    _send(made, values)
    before = made.state.budgets._shared[0].selection(0).loop
    assert before[1] > 0.9
    made = made.restart()
    np.testing.assert_array_equal(made.state.budgets._shared[0].selection(0).loop, before)
    made.close()


@pytest.mark.parametrize(
    ("interval", "rate"), [(None, 1 / 1000), ("1s", 1 / 10_000), ("2min", 120 / 604_800), ("1h", 1 / 1000)]
)
def test_under_a_budget_nobody_chooses_an_alarm_rate(interval: str | None, rate: float) -> None:
    detector = {} if interval is None else {"interval": interval}
    templates = [{"match": "strict/*", "detector": {"alarm_rate": 0.25}}]
    settings = Settings.model_validate(
        {"detector": detector, "templates": templates, "budgets": [{"match": "*/errors", "incidents": "1/week"}]}
    )
    assert settings.detector_for("shop/errors") == {**detector, "alarm_rate": pytest.approx(rate)}
    assert settings.detector_for("strict/errors")["alarm_rate"] == 0.25
    assert settings.detector_for("shop/load") == detector


def test_expected_false_incidents_know_of_shared_budgets(tmp_path: Path) -> None:
    """By hand: 3 signals at 1/day share 7/week, and 2 at 1/week share more than they open."""
    templates = [
        {"match": "pump/*", "detector": {"alarm_rate": "1/day", "interval": "1min"}},
        {"match": "fan/*", "detector": {"alarm_rate": "1/week", "interval": "1h"}},
    ]
    budgets = [{"match": "pump/*", "incidents": "7/week"}, {"match": "fan/*", "incidents": "10/week"}]
    with rig(tmp_path, detector={"promise": "incidents"}, templates=templates, budgets=budgets) as made:
        for name in ("pump/1", "pump/2", "pump/3", "fan/1", "fan/2", "no pace yet"):
            made.engine.signals.create(name).result(9)
        week = 7 * 86400
        opened, reported = made.engine.expected_false(lambda name: True)
        assert (opened * week, reported * week) == pytest.approx((21 + 2, 7 + 2))
        opened, reported = made.engine.expected_false(lambda name: name == "pump/1")
        assert (opened * week, reported * week) == pytest.approx((7, 7))


@pytest.mark.parametrize("budget", ["5/fortnight", "often", "0/day"])
def test_what_is_no_budget_is_refused(budget: str) -> None:
    with pytest.raises(ValueError, match="incidents must be a budget such as '1/day'"):
        settings_of(budgets=[{"incidents": budget}])
