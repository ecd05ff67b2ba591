"""Limits that people know: told at once when they are crossed, and ahead when a signal heads for them."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    NAN,
    SECOND,
    START,
    Rig,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    settings_of,
    statuses,
    verdicts,
)
from tocsin_monitor.engine.limits import BACK_AFTER
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.event_text import title_of
from tocsin_monitor.observations import Status
from tocsin_monitor.rules import SignalRules
from tocsin_monitor.sinks.alerts import alert_of, level_of, summary_of
from tocsin_monitor.store import LeadRow

HOOK = {"webhook": [{"name": "hook", "url": "https://example.com", "min_severity": 5.0}]}
TEMPLATES = [{"match": "*", "unit": "%", "limit_high": 95, "limit_low": 5}]
MINUTE = 60 * SECOND


def _limits(made: Rig) -> list[Any]:
    return made.incidents(kind="limit")


def test_the_first_value_beyond_opens_an_incident_and_it_is_judged_like_any_other(tmp_path: Path) -> None:
    values = [96.2, 97.0, 94.0, 4.0, NAN]
    with rig(tmp_path, events={"enabled": False}, sinks=HOOK, templates=TEMPLATES) as made:
        found = made.feed("a", values)
        assert statuses(found) == [Status.SCORED] * 5
        assert same(verdicts(found), expected_all(oracle(), values))
        (row,) = _limits(made)
        assert (row.start, row.end, row.peak) == tuple(START + at * SECOND for at in (0, 3, 1))
        assert (row.duration, row.deviation, row.direction, row.open) == (4, 2.0, "above", True)
        assert row.explanation == "97 %, limit 95 %"
        assert made.engine.status("a").incident == row.id
        assert made.sample("tocsin_incidents_open", kind="limit") == 1
        assert [(message.incident, message.status) for message in made.outbox("hook")] == [(row.id, "firing")]
        made.feed("a", [50.0] * BACK_AFTER, start=START + 5 * SECOND)
        (row,) = _limits(made)
        assert (row.ended, row.end, row.explanation) == ("returned", START + 3 * SECOND, "97 %, limit 95 %")


def test_a_noisy_value_at_its_limit_is_one_incident(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(93, 2, 1000).tolist()
    assert sum(value > 95 for value in values) > 50
    with rig(tmp_path, templates=TEMPLATES) as made:
        made.feed("a", values, step=MINUTE)
        assert len(_limits(made)) == 1
        made.feed("a", [80.0] * BACK_AFTER, start=START + 1000 * MINUTE, step=MINUTE)
        assert [row.open for row in _limits(made)] == [False]


def test_two_levels_with_the_limit_close_above_are_back_after_a_day(tmp_path: Path) -> None:
    values = [99.0, *[10.0, 94.0] * 800]
    with rig(tmp_path, templates=TEMPLATES) as made:
        made.feed("a", values[:1440], step=MINUTE)
        assert [row.open for row in _limits(made)] == [True]
        made.feed("a", values[1440:], start=START + 1440 * MINUTE, step=MINUTE)
        assert [row.open for row in _limits(made)] == [False]


def leak(hours_before: float, step: float = 300, seed: int = 1) -> list[float]:
    """Gigabytes: as usual, and then from 2.4 to 4.2 in about eleven hours."""
    rng = np.random.default_rng(seed)
    times = np.arange(0, (hours_before + 11) * 3600, step) / 3600
    values = 2.4 + np.maximum(times - hours_before, 0) * 1.5 / 9 + 0.02 * rng.normal(size=len(times))
    return np.round(values, 4).tolist()


LEAK = [{"match": "*", "unit": "GB", "limit_high": 4}]
STEP = 300 * SECOND


def test_a_leak_is_told_ahead_and_again_when_it_is_there(tmp_path: Path) -> None:
    values = leak(hours_before=30)
    crossing = next(at for at, value in enumerate(values) if value > 4)
    with rig(tmp_path, events={"hold": 0, "update_every": "1s"}, sinks=HOOK, templates=LEAK) as made:
        made.feed("a", values[:crossing], step=STEP)
        (ahead,) = _limits(made)
        assert ahead.open
        assert ahead.deviation != ahead.deviation
        assert ahead.start < START + (crossing - 24) * STEP  # two hours before
        assert ahead.explanation.startswith("3.")
        assert "GB, reaches 4 GB in about " in ahead.explanation
        signal = made.state.signals["a"].row
        alert = alert_of(ahead, signal, "", "firing")
        assert (alert.labels["alertname"], alert.labels["severity"]) == ("TocsinLimit", "warning")
        assert alert.annotations["summary"] == f"a: {ahead.explanation}"
        assert [(message.incident, message.status) for message in made.outbox("hook")] == [(ahead.id, "firing")]
        made.engine.incidents.acknowledge(ahead.id, "somebody").result(9)
        made.feed("a", values[crossing:], start=START + crossing * STEP, step=STEP)
        (there,) = _limits(made)
        assert (there.id, there.start, there.open) == (ahead.id, ahead.start, True)
        assert there.explanation.endswith(" GB, limit 4 GB")
        assert there.deviation == pytest.approx(max(values) - 4)
        assert alert_of(there, signal, "", "firing").labels["severity"] == "critical"
        assert [(message.incident, message.status) for message in made.outbox("hook")] == [(ahead.id, "firing")]
        made.feed("a", [2.4] * BACK_AFTER, start=START + len(values) * STEP, step=STEP)
        (over,) = _limits(made)
        assert over.ended == "returned"
        assert summary_of(over, signal, "resolved") == "a: resolved, within its limit again"


def test_a_rise_that_stops_is_withdrawn(tmp_path: Path) -> None:
    values = [value for value in leak(hours_before=30) if value < 3.8]
    with rig(tmp_path, templates=LEAK) as made:
        made.feed("a", values, step=STEP)
        assert [row.open for row in _limits(made)] == [True]
        made.feed("a", [values[-1]] * 288, start=START + len(values) * STEP, step=STEP)
        (row,) = _limits(made)
        assert (row.ended, row.deviation != row.deviation) == ("subsided", True)
        assert summary_of(row, made.state.signals["a"].row, "resolved") == "a: resolved, no longer heads for its limit"


def test_a_fall_to_the_low_limit_is_told_with_the_feature(tmp_path: Path) -> None:
    free = [(1.0, 6.4 - value) for value in leak(hours_before=30)]
    with rig(tmp_path) as made:
        made.engine.signals.create(
            "a", features=["load", "free"], unit="GB", rules={"limit_low": {"free": 2.4}}
        ).result(9)
        made.feed("a", free, step=STEP)
        (row,) = _limits(made)
        assert row.direction == "below"
        assert row.explanation.startswith("free 2.")
        assert row.explanation.endswith(" GB, limit 2.4 GB")
        assert row.deviation == pytest.approx(min(value for _, value in free) - 2.4)
        assert list(row.contributions) == ["free"]


def _shown(made: Rig) -> list[tuple[Any, ...]]:
    fields = ("start", "end", "peak", "duration", "explanation", "deviation", "direction", "ended")
    return [tuple(repr(getattr(row, name)) for name in fields) for row in _limits(made)]


@pytest.mark.parametrize("end", ["crash", full("restart")])
def test_crashes_and_the_size_of_batches_change_nothing(tmp_path: Path, end: str) -> None:
    values = [*leak(hours_before=30), *leak(hours_before=2, seed=2)]
    values[50] = values[51] = 4.5
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with rig(tmp_path / "a", settings_of(templates=LEAK)) as whole:
        whole.feed("a", values, step=STEP)
        wanted, watch = _shown(whole), whole.state.signals["a"].watch
        assert len(wanted) >= 3
        assert watch is not None
        known = watch.saved()
    rng = np.random.default_rng(3)
    made = Rig(tmp_path / "b", settings_of(templates=LEAK, engine={"snapshot_every": 130}))
    at = 0
    while at < len(values):
        some = int(rng.integers(1, 60))
        made.feed("a", values[at : at + some], start=START + at * STEP, step=STEP)
        if rng.random() < 0.3:
            made = made.crash() if end == "crash" else made.restart()
        at += some
    assert _shown(made) == wanted
    watch = made.state.signals["a"].watch
    assert watch is not None
    assert watch.saved() == known
    made.close()


def test_maintenance_late_values_and_those_out_of_range_are_not_beyond(tmp_path: Path) -> None:
    with rig(tmp_path, templates=[{**TEMPLATES[0], "valid_range": [0, 100]}]) as made:
        made.engine.maintenance.add("a", START, START + 5 * SECOND).result(9)
        assert statuses(made.feed("a", [99.0])) == [Status.MAINTENANCE]
        made.feed("a", [50.0, 101.0], start=START + 10 * SECOND)
        assert statuses(made.take(one("a", START + 6 * SECOND, 99.0))) == [Status.LATE]
        assert _limits(made) == []
        assert len(made.incidents(kind="range")) == 1


def test_other_limits_hold_from_the_next_observation_on_and_none_ends_the_incident(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        signals = made.engine.signals
        made.feed("a", noise(1, 20))
        signals.configure("a", rules={"limit_high": 60}).result(9)
        made.feed("a", [70.0], start=START + 20 * SECOND)
        assert [row.explanation for row in _limits(made)] == ["70, limit 60"]
        signals.configure("a", rules={"limit_high": 80}).result(9)
        made.feed("a", [70.0], start=START + 21 * SECOND)
        assert [(row.open, row.ended) for row in _limits(made)] == [(False, "returned")]
        made.feed("a", [90.0], start=START + 22 * SECOND)
        signals.configure("a", rules={"limit_high": None}).result(9)
        made = made.crash()
        assert [row.open for row in _limits(made)] == [False, True]
        made.feed("a", [90.0], start=START + 23 * SECOND)
        assert [row.open for row in _limits(made)] == [False, False]
        signals = made.engine.signals
        signals.remove("a").result(9)
        with made.store.reading() as reader:
            assert reader.cursors("limits/") == {}
        made.close()


def test_limits_that_cannot_be(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.engine.signals.create("a", features=["t", "v"]).result(9)
        for wrong, problem in (
            ({"limit_high": {"x": 1}}, "limit_high must be for the features t, v, got x"),
            ({"limit_high": 3, "limit_low": 3}, "limit_low must be less than limit_high, got 3 and 3"),
            ({"limit_high": {"t": 3}, "limit_low": 5}, "limit_low of t must be less than limit_high, got 5 and 3"),
            ({"limit_high": 11, "valid_range": [0, 10]}, "limit_high must be in valid_range, 0 to 10, .* got 11"),
            ({"limit_low": -1, "valid_range": {"v": [0, None]}}, "limit_low of v must be in valid_range, at least 0"),
            ({"limit_high": "95"}, "limit_high: must be a number, or one for each feature, got '95'"),
            ({"limit_high": float("inf")}, "limit_high: must be a number"),
            ({"limit_low": True}, "limit_low: must be a number"),
        ):
            with pytest.raises(RefusedError, match=problem):
                made.engine.signals.configure("a", rules=wrong).result(9)
        made.engine.signals.configure("a", rules={"limit_high": {"t": 3}, "valid_range": [0, 10]}).result(9)
        with pytest.raises(RefusedError, match="limit_high of t must be in valid_range"):
            made.engine.signals.configure("a", rules={"valid_range": [4, 10]}).result(9)
        rules = made.engine.signals.details("a").result(9).rules
        assert rules == SignalRules(limit_high={"t": 3.0}, valid_range=(0.0, 10.0))


def test_limits_of_one_place_are_one_event_that_is_critical_once_one_is_crossed(tmp_path: Path) -> None:
    given = {"match": "*", "limit_high": 95}
    with rig(tmp_path, templates=[given], sinks=HOOK) as made:
        made.take(one("host/a", START, 99.0), one("host/b", START, 98.0))
        first, second = _limits(made)
        assert first.event == second.event
        with made.store.reading() as reader:
            event = reader.event(first.event)
            assert event is not None
            (whole,) = reader.summaries([event], reader.signal_names())
        assert title_of(whole) == "host: 2 limits crossed or ahead on 2 signals"
        lead = LeadRow(**{field.name: getattr(first, field.name) for field in fields(first)}, whole=whole)
        assert level_of(lead) == "critical"
