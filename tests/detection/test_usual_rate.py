"""The alarm rate of those who give none: of a history by its length, of a stream always the same."""

import numpy as np
import pandas as pd
import pytest

from tests.bands import margin
from tests.cases import full
from tocsin.data import Signal
from tocsin.detection import Detector, DetectorSettings, Fleet, detect_signal
from tocsin.detection.settings.history_settings import HistorySettings
from tocsin.detection.settings.usual_rate import usual_rate

QUICK = {"forecaster": "last-value", "views": "error", "window": 250}
VALUES = np.random.default_rng(0).normal(size=6000)


@pytest.mark.parametrize("promise", ["incidents", "observations"])
@pytest.mark.parametrize("rows", [600, 3000, 10_000, 150_000])
def test_a_history_tolerates_about_three_and_can_tell_them(rows, promise):
    rate = usual_rate(rows, preset="full", promise=promise)
    assert rate * rows == pytest.approx(3, rel=0.02)
    assert Fleet(1, alarm_rate=rate, promise=promise).own_past_after < rows


@pytest.mark.parametrize("promise", ["incidents", "observations"])
@pytest.mark.parametrize("rows", [0, 1, 299, 10**7, 10**12])
def test_every_length_has_a_rate_that_is_accepted(rows, promise):
    rate = usual_rate(rows, preset="full", promise=promise)
    assert DetectorSettings(alarm_rate=rate, promise=promise).rate == rate <= 0.01


def test_a_stream_has_one_in_a_thousand():
    detector = Detector(**QUICK)
    assert detector.alarm_rate == Fleet(2).alarm_rate == DetectorSettings().alarm_rate == 0.001
    detector.run(VALUES[:300])
    for value in VALUES[300:310]:
        detector.update(value)
    assert detector.alarm_rate == Detector.from_state(detector.state()).alarm_rate == 0.001
    assert "waits for its first frame; alarm rate by its length" in repr(Detector(accept_after="1h"))
    assert Detector(preset="paper").alarm_rate == 0.01


def test_the_first_frame_has_the_rate_of_its_length_and_the_next_does_not_change_it():
    frame = pd.DataFrame({"time": np.arange(6000), "a": VALUES, "b": VALUES[::-1]})
    detector = Detector(**QUICK)
    assert detector.run(frame[:5000], values="a").alarm_rate == 0.0006
    assert detector.run(frame[5000:], values="a").alarm_rate == 0.0006
    assert Detector(**QUICK, alarm_rate=0.002).run(frame, values="a").alarm_rate == 0.002
    fleet = Fleet(**QUICK)
    fleet.run(frame[:200])
    assert fleet.alarm_rate == 0.01


def test_every_signal_of_a_file_has_the_rate_of_its_own_rows():
    """Those inserted for gaps do not count."""
    lines = np.where(np.arange(6000) % 2, np.arange(6000), 0)
    signal = Signal("a", ("value",), None, VALUES[:, np.newaxis], lines, None, ())
    result = detect_signal(signal, QUICK, keep=False)
    assert (result.observations, result.alarm_rate) == (3000, 0.001)
    assert detect_signal(signal, {**QUICK, "alarm_rate": 0.02}, keep=False).alarm_rate == 0.02


@pytest.mark.slow
@pytest.mark.parametrize("rows", [300, 3000, full(30_000)])
def test_noise_has_about_three_incidents_at_most(rows):
    """In the mean of 40 histories, with a band of 99%."""
    settings = HistorySettings(preset="light").of_a_signal(observations=rows)
    values = np.random.default_rng(rows).normal(size=(rows, 40))
    counted = Fleet.of(40, settings).run_arrays(values).opened.sum(axis=0)
    assert counted.mean() + margin(counted, 0.01) <= 3.5
