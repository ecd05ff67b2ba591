"""Trials: what other settings would have found, beside an engine that goes on as if there were none."""

import threading
from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, SECOND, START, one, rig, until
from tocsin.detection import Detector
from tocsin_monitor.engine import trials as trials_module
from tocsin_monitor.errors import RefusedError, UnknownError


def strange(count: int = 900, seed: int = 5) -> list[float]:
    """Noise with some spikes."""
    values = np.round(np.random.default_rng(seed).normal(size=count), 3)
    values[400::50] += 12
    return values.tolist()


def incidents_of(values: list[float], since: int, **settings: object) -> int:
    """How many incidents a detector by itself begins from a position on."""
    detector = Detector(["value"], **{**QUICK, **settings})
    moments = (START + SECOND * np.arange(len(values))).astype("datetime64[ns]")
    detector.run(values, moments)
    found = [*detector.fleet.take_closed_incidents(), detector.fleet.open_incident(0)]
    return sum(one is not None and one.start >= moments[since] for one in found)


def finished(made, name: str):
    until(lambda: made.engine.trials.progress(name).stage != "running")
    return made.engine.trials.progress(name)


@pytest.mark.slow
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


@pytest.mark.slow
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
        assert made.engine.trials.progress("a") == trial  # what is refused replaces nothing
        monkeypatch.setattr(trials_module, "AT_ONCE", 1)
        # Ended before it does anything: it waits for a store that is being read.
        step = trials_module.take_piece
        ended = []

        def slowly(*given):
            until(lambda: ended)
            return step(*given)

        monkeypatch.setattr(trials_module, "take_piece", slowly)
        made.engine.trials.start("a", QUICK)
        made.engine.trials.cancel("a")
        ended.append(True)
        assert finished(made, "a").stage == "cancelled"


def finished_many(made, number: int):
    until(lambda: made.engine.trials.progress_of_many(number, "ada").stage != "running")
    return made.engine.trials.progress_of_many(number, "ada")


@pytest.mark.slow
def test_a_trial_of_many_adds_up_what_trials_of_each_find(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        for name, seed in (("a", 5), ("b", 6), ("c", 7)):
            made.feed(name, strange(seed=seed))
        made.engine.signals.configure("b", detector={**QUICK, "gap": 5}).result(60)
        before = [made.engine.status(name) for name in "abc"], made.incidents()
        alone = {}
        for name in "abc":
            # Of each signal, only what is given changes.
            own = {"gap": 5} if name == "b" else {}
            made.engine.trials.start(name, {**QUICK, **own, "alarm_rate": 0.01})
            trial = finished(made, name)
            alone[name] = trial.incidents, trial.raised
        many = finished_many(made, made.engine.trials.start_change(["a", "b", "c"], {"alarm_rate": 0.01}, "ada"))
        assert (many.stage, many.signals, many.chosen, many.complete) == ("done", 3, 3, True)
        assert many.done == 2700
        assert {one.signal: (one.incidents, one.raised) for one in many.found} == alone
        changes = [abs(one.incidents - one.raised) for one in many.found]
        assert changes == sorted(changes, reverse=True)
        assert changes[0] > 0
        assert ([made.engine.status(name) for name in "abc"], made.incidents()) == before


@pytest.mark.slow
def test_a_trial_of_many_says_how_many_it_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials_module, "MOST_SIGNALS", 3)
    with rig(tmp_path) as made:
        for number in range(5):
            made.feed(f"s/{number}", strange(300))
        names = [f"s/{number}" for number in range(5)]
        trials = made.engine.trials
        many = finished_many(made, trials.start_change(names, {"alarm_rate": 0.01}, "ada"))
        assert (many.signals, many.chosen, len(many.found), many.complete) == (5, 3, 3, True)
        again = finished_many(made, trials.start_change(names[::-1], {"alarm_rate": 0.01}, "ada"))
        assert again.found == many.found  # the same signals, so that two trials can be compared
        monkeypatch.setattr(trials_module, "MOST_ROWS", 400)
        part = finished_many(made, trials.start_change(names, {"alarm_rate": 0.01}, "ada"))
        assert (len(part.found), part.complete) == (2, False)
        with pytest.raises(RefusedError, match="alarm_rate must be"):
            trials.start_change(names, {"alarm_rate": 7}, "ada")
        with pytest.raises(RefusedError, match="there is no signal to try this on"):
            trials.start_change([], {}, "ada")
        with pytest.raises(UnknownError, match="there is no trial 1 of yours"):
            trials.progress_of_many(1, "bob")


@pytest.mark.slow
def test_signals_that_cannot_have_the_settings_are_named(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        for name in "ab":
            made.feed(name, strange(300))
        made.engine.signals.configure("a", detector={**QUICK, "interval": "10s"}).result(60)
        many = finished_many(made, made.engine.trials.start_change(["a", "b"], {"alarm_rate": "20/hour"}, "ada"))
        assert [one.signal for one in many.found] == ["a"]
        ((name, why),) = many.failed
        assert name == "b"
        assert "interval" in why


@pytest.mark.slow
def test_a_result_stays_when_another_trial_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rig(tmp_path) as made:
        made.feed("a", strange())
        made.engine.trials.start("a", QUICK)
        result = finished(made, "a")
        monkeypatch.setattr(trials_module, "AT_ONCE", 0)
        with pytest.raises(RefusedError, match="0 trials run already"):
            made.engine.trials.start("a", QUICK)
        assert made.engine.trials.progress("a") == result
        monkeypatch.setattr(trials_module, "AT_ONCE", 1)
        made.engine.trials.stop()
        with pytest.raises(RefusedError, match="the monitor stops"):
            made.engine.trials.start("a", QUICK)
        assert made.engine.trials.progress("a") == result


@pytest.mark.slow
def test_a_trial_can_be_ended_while_another_one_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig(tmp_path) as made:
        trials = made.engine.trials
        made.feed("a", strange())
        trials.start("a", QUICK)
        lock = trials._lock

        class Contended:
            """As soon as the lock is free, another thread removes the trial."""

            def __enter__(self) -> None:
                lock.acquire()

            def __exit__(self, *error: object) -> None:
                trials._of_signals.pop("a", None)
                lock.release()

        monkeypatch.setattr(trials, "_lock", Contended())
        trials.cancel("a")
        with pytest.raises(UnknownError, match="there is no trial of 'a'"):
            trials.cancel("a")


def test_trials_that_are_begun_anew_leave_few_threads_and_a_refused_one_keeps_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig(tmp_path) as made:
        trials = made.engine.trials
        made.feed("a", strange(60))
        trials.start("a", QUICK)
        assert finished(made, "a").stage == "done"
        held, step = threading.Event(), trials_module.take_piece
        begun: list[int] = []

        def slowly(*given):
            begun.append(1)
            held.wait()
            return step(*given)

        monkeypatch.setattr(trials_module, "take_piece", slowly)
        for number in range(1, trials_module.MOST_THREADS + 1):
            trials.start("a", QUICK)
            until(lambda number=number: len(begun) == number)
        with pytest.raises(RefusedError, match="trials run already"):
            trials.start("a", QUICK)
        assert trials.progress("a").stage == "running"
        held.set()
        assert finished(made, "a").stage == "done"
        until(lambda: trials._threads == 0)
        trials.start("a", QUICK)
        assert finished(made, "a").stage == "done"
