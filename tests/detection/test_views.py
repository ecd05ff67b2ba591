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
