"""Another alarm rate: what was learned of a signal goes on."""

import numpy as np
import pytest

from tests.cases import full
from tocsin import Detector
from tocsin.detection.state.rerating import rerated

QUICK = {"forecaster": "last-value", "views": ["error"]}


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["incidents", full("observations")])
@pytest.mark.parametrize(("before", "after"), [(0.002, 0.01), (0.01, 0.002), full(0.01, 0.01)])
def test_what_was_learned_goes_on_under_another_rate(promise, before, after):
    values = np.random.default_rng(0).normal(size=6000)
    values[4500:4510] += 12
    detector = Detector(alarm_rate=before, promise=promise, **QUICK)
    detector.run(values[:4000])
    changed = Detector.from_state(rerated(detector.state(), after))
    assert (changed.alarm_rate, changed.observations) == (after, 4000)
    np.testing.assert_array_equal(changed.weights, detector.weights)
    before_it, after_it = (one.fleet.run_arrays(values[4000:, np.newaxis]) for one in (detector, changed))
    np.testing.assert_array_equal(after_it.forecast, before_it.forecast)
    assert after_it.warm.all()
    assert after_it.alarm[500:510].any()
    # About as often as is promised now, whatever was before.
    fresh = Detector(alarm_rate=after, promise=promise, **QUICK)
    fresh.run(values[:4000])
    expected = fresh.fleet.run_arrays(values[4000:, np.newaxis])
    assert abs(int(after_it.alarm.sum()) - int(expected.alarm.sum())) <= 15
    if before == after:
        np.testing.assert_array_equal(after_it.p, before_it.p)
        np.testing.assert_array_equal(after_it.rate, before_it.rate)


@pytest.mark.slow
def test_blocks_that_get_longer_are_put_together_and_the_newest_stay():
    values = np.random.default_rng(1).normal(size=9000)
    detector = Detector(alarm_rate=0.02, **QUICK)
    detector.run(values)
    state = detector.state()
    blocks = state["pipeline/ranking/blocks"][0]
    sizes = detector.fleet.settings.sizes
    longer = rerated(state, 0.002)["pipeline/ranking/blocks"][0]
    together = round(Detector(alarm_rate=0.002, **QUICK).fleet.settings.sizes.block / sizes.block)
    count = int(state["pipeline/ranking/counters"][0, 4])
    past = np.roll(blocks, -(count % len(blocks)))
    expected = past[len(past) % together :].reshape(-1, together).max(axis=1)
    np.testing.assert_array_equal(longer[: len(expected)], expected)
    stand_in = Detector(alarm_rate=0.002, **QUICK).fleet.state()["pipeline/ranking/blocks"][0]
    np.testing.assert_array_equal(longer[len(expected) :], stand_in[len(expected) :])
