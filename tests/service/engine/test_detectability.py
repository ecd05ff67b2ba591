"""What can be found in a signal that is monitored: the library's answer, beside an engine that goes on as before."""

from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, SECOND, START, one, rig, until
from tocsin.detection import Detector
from tocsin.evaluation import detectable
from tocsin_monitor.engine import detectability
from tocsin_monitor.errors import UnknownError


def finished(made, name: str):
    until(lambda: made.engine.trials.progress_of_faults(name).stage != "running")
    return made.engine.trials.progress_of_faults(name)


@pytest.mark.slow
def test_the_monitor_says_what_the_library_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"cases": 3, "lasts": 20}
    monkeypatch.setattr(detectability, "detectable", lambda *given, **more: detectable(*given, **{**more, **few}))
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
        for ask in (made.engine.trials.start_faults, made.engine.trials.progress_of_faults):
            with pytest.raises(UnknownError, match="there is no signal 'b'"):
                ask("b")
