"""From scores to verdicts: what has to hold beside the numbers of the oracle."""

import numpy as np
import pytest

from tests.detection.material import LAST, SMALL, hard_values, same_verdicts
from tocsin.detection import Detector, Fleet

VIEWS = ("error", "level", "shape", "shape-light", "quiet", "horizons")
every_view = pytest.mark.parametrize("view", VIEWS)


def noise(steps, signals, seed=0):
    return np.random.default_rng(seed).normal(size=(steps, signals))


@pytest.mark.parametrize("settings", [{"views": "paper"}, {"views": "error"}, {"forecaster": None}], ids=str)
def test_a_detector_whose_views_keep_nothing_can_be_restored(settings):
    values = np.abs(hard_values(0, 200))
    detector = Detector(**{**LAST, **settings})
    detector.run(values[:120])
    restored = Detector.from_bytes(detector.to_bytes())
    same_verdicts(restored.run(values[120:]), detector.run(values[120:]))


@every_view
def test_no_observations_give_no_verdicts(view):
    fleet = Fleet(2, 3, **LAST, views=view)
    assert fleet.run(np.empty((0, 2, 3))).p.shape == (0, 2)
    assert fleet.run(np.empty((4, 0, 3)), rows=[]).feature_p.shape == (4, 0, 3)
    assert fleet.pipeline.seen.tolist() == [0, 0]
