"""The network in the repository that also gives the odds of a fault."""

from pathlib import Path

import numpy as np
import pytest

from tocsin import Detector

NETWORK = Path(__file__).parents[2] / "training" / "networks" / "judging.npz"


@pytest.mark.skipif(not NETWORK.exists(), reason="it is in the repository, and not in the sdist")
@pytest.mark.slow
def test_its_odds_rise_with_a_fault():
    rng = np.random.default_rng(7)
    hours = np.arange(1200)
    values = 50 + 6 * np.sin(2 * np.pi * hours / 24) + rng.normal(size=hours.size)
    values[1100:1140] = values[1100]
    detector = Detector(
        forecaster_options={"weights": str(NETWORK)}, views=("error", "level", "shape", "quiet", "fault")
    )
    severity = np.array([detector.update(value).views["fault"] for value in values])
    assert np.nanmedian(severity[1110:1140]) > 2
    assert np.nanmedian(severity[900:1100]) < 1
