"""Trials: what other settings would have found, beside an engine that goes on as if there were none."""

import threading
from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, SECOND, START, one, rig, until
from tocsin.detection import Detector
from tocsin.service.engine import trials as trials_module
from tocsin.service.errors import RefusedError, UnknownError


def strange(count: int = 900) -> list[float]:
    """Noise with some spikes."""
    values = np.round(np.random.default_rng(5).normal(size=count), 3)
    values[400::50] += 12
    return values.tolist()


def incidents_of(values: list[float], since: int, **settings: object) -> int:
    """How many incidents a detector by itself begins from a position on."""
    detector = Detector(["value"], **{**QUICK, **settings})
    moments = [np.datetime64(START + number * SECOND, "ns") for number in range(len(values))]
    for value, moment in zip(values, moments, strict=True):
        detector.update(value, moment)
    found = [*detector.fleet.take_closed_incidents(), detector.fleet.open_incident(0)]
    return sum(one is not None and one.start >= moments[since] for one in found)


def finished(made, name: str):
    until(lambda: made.engine.trials.progress(name).stage != "running")
    return made.engine.trials.progress(name)


def test_a_trial_finds_what_a_detector_by_itself_finds(tmp_path: Path) -> None:
    values = strange()
    since = START + 600 * SECOND
    with rig(tmp_path) as made:
        made.feed("a", values)
        before = made.engine.status("a"), made.incidents(), made.stored("a")
        for rate in (0.1, 0.01):
            settings = {**QUICK, "alarm_rate": rate}
            made.engine.trials.start("a", settings, since)
            trial = finished(made, "a")
            assert (trial.stage, trial.complete, trial.warm, trial.done) == ("done", True, True, 900)
            assert trial.incidents == incidents_of(values, 600, alarm_rate=rate)
            assert trial.raised == sum(row.start >= since for row in before[1])
            if rate == QUICK["alarm_rate"]:
                assert trial.incidents == trial.raised  # the same settings find the same
        assert trial.incidents < trial.raised
        assert (made.engine.status("a"), made.incidents(), made.stored("a")) == before
        (outcome,) = made.take(one("a", START + 900 * SECOND, 0.5))  # it goes on as before
        assert outcome.judged is not None


def test_wrong_settings_and_unknown_signals_are_refused(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", [1.0, 2.0])
        with pytest.raises(RefusedError, match="alarm_rate must be"):
            made.engine.trials.start("a", {"alarm_rate": 7})
        with pytest.raises(UnknownError, match="there is no signal 'b'"):
            made.engine.trials.start("b", {})
        with pytest.raises(UnknownError, match="there is no trial of 'a'"):
            made.engine.trials.progress("a")


def test_trials_are_bounded_and_can_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials_module, "MOST_ROWS", 512)
    with rig(tmp_path) as made:
        made.feed("a", strange())
        made.engine.trials.start("a", QUICK)
        trial = finished(made, "a")
        assert (trial.stage, trial.complete, trial.done) == ("done", False, 512)
        assert trial.until == START + 511 * SECOND
        monkeypatch.setattr(trials_module, "MOST_ROWS", 10**9)
        monkeypatch.setattr(trials_module, "AT_ONCE", 0)
        with pytest.raises(RefusedError, match="0 trials run already"):
            made.engine.trials.start("a", QUICK)
        monkeypatch.setattr(trials_module, "AT_ONCE", 1)
        # Ended before it does anything: it waits for a store that is being read.
        step = made.engine.trials._step
        ended = []

        def slowly(*given):
            until(lambda: ended)
            return step(*given)

        monkeypatch.setattr(made.engine.trials, "_step", slowly)
        made.engine.trials.start("a", QUICK)
        made.engine.trials.cancel("a")
        ended.append(True)
        assert finished(made, "a").stage == "cancelled"


def test_trials_that_are_begun_anew_leave_few_threads_and_a_refused_one_keeps_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig(tmp_path) as made:
        trials = made.engine.trials
        made.feed("a", strange(60))
        trials.start("a", QUICK)
        assert finished(made, "a").stage == "done"
        held, step = threading.Event(), trials._step

        def slowly(*given):
            held.wait()
            return step(*given)

        monkeypatch.setattr(trials, "_step", slowly)
        for _ in range(trials_module.MOST_THREADS):
            trials.start("a", QUICK)
        with pytest.raises(RefusedError, match="trials run already"):
            trials.start("a", QUICK)
        assert trials.progress("a").stage == "running"
        held.set()
        assert finished(made, "a").stage == "done"
        until(lambda: trials._threads == 0)
        trials.start("a", QUICK)
        assert finished(made, "a").stage == "done"
