"""What can be found in a signal that is monitored: the library's answer, beside an engine that goes on as before."""

from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, SECOND, START, one, rig, until
from tocsin.detection import Detector
from tocsin.evaluation import detectable, median_and_worst
from tocsin_monitor.engine import detectability
from tocsin_monitor.engine import trials as trials_module
from tocsin_monitor.errors import RefusedError, UnknownError

KEY = "pump/*", ()


def finished(made, name: str):
    until(lambda: made.engine.trials.progress_of_faults(name).stage != "running")
    return made.engine.trials.progress_of_faults(name)


def few_cases(monkeypatch: pytest.MonkeyPatch, **few: int) -> None:
    monkeypatch.setattr(detectability, "detectable", lambda *given, **more: detectable(*given, **{**more, **few}))


def finished_template(made):
    until(lambda: made.engine.trials.progress_of_template_faults(KEY).stage != "running")
    return made.engine.trials.progress_of_template_faults(KEY)


@pytest.mark.slow
def test_the_monitor_says_what_the_library_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"cases": 3, "lasts": 20}
    few_cases(monkeypatch, **few)
    values = np.round(np.random.default_rng(5).normal(size=900), 3).tolist()
    with rig(tmp_path) as made:
        made.feed("a", values)
        before = made.engine.status("a"), made.incidents(), made.stored("a")
        assert made.engine.trials.progress_of_faults("a").stage == "none"
        made.engine.trials.start_faults("a")
        found = finished(made, "a")
        assert (found.stage, found.message) == ("done", "")
        assert (found.since, found.until) == (START, START + 899 * SECOND)
        moments = START + np.arange(900) * SECOND
        alone = detectable(Detector(["value"], **QUICK), values, moments.view("datetime64[ns]"), **few)
        assert found.findings == alone.findings
        assert found.sentences == tuple(alone.sentences)
        assert (made.engine.status("a"), made.incidents(), made.stored("a")) == before
        (outcome,) = made.take(one("a", START + 900 * SECOND, 0.5))
        assert outcome.judged is not None


def test_too_little_is_said_and_unknown_signals_are_refused(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", [1.0, 2.0])
        made.engine.trials.start_faults("a")
        found = finished(made, "a")
        assert found.stage == "failed"
        assert "values must have at least" in found.message
        trials = made.engine.trials
        for ask in (trials.start_faults, trials.progress_of_faults, trials.cancel_faults):
            with pytest.raises(UnknownError, match="there is no signal 'b'"):
                ask("b")


@pytest.mark.slow
def test_of_a_template_a_few_signals_are_tried_as_if_each_were_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_cases(monkeypatch, cases=2, lasts=20)
    monkeypatch.setattr(detectability, "MOST_SIGNALS", 3)
    rng = np.random.default_rng(6)
    names = [f"pump/{number}" for number in range(5)]
    with rig(tmp_path) as made:
        trials = made.engine.trials
        for number, name in enumerate(names):
            made.feed(name, np.round(rng.normal(scale=1 + number, size=700), 3).tolist())
        assert trials.progress_of_template_faults(KEY).stage == "none"
        assert trials.start_template_faults(KEY, names).stage == "running"
        found = finished_template(made)
        assert (found.stage, found.signals, found.chosen, found.message) == ("done", 5, 3, "")
        chosen = [name for name, _ in found.tried]
        assert (chosen, len(chosen)) == (sorted(set(chosen)), 3)
        whole = {}
        for name, one in found.tried:
            trials.start_faults(name)
            assert finished(made, name) == one
            row = made.state.signals[name].row
            whole[name] = detectability.DetectableRun.alone(made.store, row, made.settings)
        assert found.sentences == tuple(median_and_worst(whole))
        assert "of its own noise" in found.sentences[0]
        trials.start_template_faults(KEY, names[::-1])
        assert [name for name, _ in finished_template(made).tried] == chosen  # the same ones every time


@pytest.mark.slow
def test_one_signal_that_cannot_be_tried_is_named_and_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_cases(monkeypatch, cases=1, lasts=20)
    with rig(tmp_path) as made:
        made.feed("pump/new", [1.0, 2.0])
        made.feed("pump/old", np.random.default_rng(7).normal(size=600).tolist())
        made.engine.trials.start_template_faults(KEY, ["pump/new", "pump/old", "pump/nowhere"])
        found = finished_template(made)
        (_, new), (_, old) = found.tried
        assert (found.stage, new.stage, old.stage) == ("done", "failed", "done")
        assert "values must have at least" in new.message
        assert found.sentences == old.sentences
        with pytest.raises(RefusedError, match="there is no signal to try this on"):
            made.engine.trials.start_template_faults(KEY, ["pump/nowhere"])
        assert finished_template(made) == found  # what is refused replaces nothing


@pytest.mark.slow
def test_a_template_is_ended_counts_as_one_trial_and_keeps_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials_module, "AT_ONCE", 1)
    first: list[float] = []

    def ended_at_the_second(*given, **more):
        tell = more.pop("progress")

        def told(done: int, total: int) -> None:
            if len(first) == 2:
                with pytest.raises(RefusedError, match="1 trials run already"):
                    made.engine.trials.start_faults("pump/0")
                made.engine.trials.cancel_template_faults(KEY)
            tell(done, total)

        first.append(more["seconds"])
        return detectable(*given, **more, progress=told, cases=2, lasts=20)

    monkeypatch.setattr(detectability, "detectable", ended_at_the_second)
    with rig(tmp_path) as made:
        names = [f"pump/{number}" for number in range(3)]
        for number, name in enumerate(names):
            made.feed(name, np.random.default_rng(number).normal(size=600).tolist())
        made.engine.trials.cancel_template_faults(KEY)  # nothing happens if there is none
        made.engine.trials.start_template_faults(KEY, names)
        found = finished_template(made)
        assert found.stage == "cancelled"
        assert [one.stage for _, one in found.tried] == ["done", "cancelled"]
        assert found.sentences == found.tried[0][1].sentences
        assert first == [trials_module.MOST_SECONDS] * 2
