"""The views: what each says, in numbers and in words, and that nothing depends on when it is asked."""

import numpy as np
import pytest

from tests.detection.material import LAST, same_verdicts
from tocsin.detection import Detector


@pytest.mark.parametrize("nonconformity", ["absolute", "high", "low"])
@pytest.mark.parametrize("view", ["error", "level", "horizons"])
def test_words_name_the_side_whatever_is_strange(nonconformity, view):
    """Low values are ranked turned over; what is said of them is not."""
    side = -1 if nonconformity == "low" else 1
    values = np.random.default_rng(0).normal(size=1000)
    values[940:] += side * 20
    detector = Detector(
        window=250, alarm_rate=0.01, forecaster="exponential-smoothing", forecaster_options={"rate": 0.01}, views=view,
        nonconformity=nonconformity,
    )  # fmt: skip
    verdicts = detector.run(values)
    assert verdicts.alarm[940:, 0].sum() > 10
    assert side * verdicts.score[990, 0] > 5
    incident = detector.incidents[-1]
    assert incident.view == view
    assert (" above " if side > 0 else " below ") in incident.explanation
    assert incident.direction == ("above" if side > 0 else "below")


@pytest.mark.parametrize("cut", [20, 31, 32, 33, 70, 200, 201, 240, 255, 256, 257])
def test_a_shape_that_begins_late_does_not_depend_on_when_it_was_saved(cut):
    """Nothing known when units are first looked for: there is nothing to compare with, restored or not."""
    values = np.random.default_rng(1).normal(size=300)
    values[:200] = np.nan
    detector = Detector(**LAST, views="shape")
    detector.run(values[:cut])
    restored = Detector.from_bytes(detector.to_bytes())
    same_verdicts(restored.run(values[cut:]), detector.run(values[cut:]))
    session = detector.fleet.pipeline._views[0]
    assert (session._lost >= 0).all()
