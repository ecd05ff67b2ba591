"""The sizes that scores are expected to have at a phase of the season."""

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import SMALL
from tests.detection.test_oracle import both
from tocsin.detection import Detector, Fleet
from tocsin.detection.evidence import sizes as kernels
from tocsin.detection.views.level import _season_of_noise

PERIOD = 48
NIGHT = 0.2


def nights(steps, signals=1, seed=0, period=PERIOD):
    """Noise that is a fifth as large at night, and whether it is night."""
    night = np.arange(steps) % period < period // 2
    noise = np.random.default_rng(seed).normal(size=(steps, signals))
    return np.where(night[:, np.newaxis], NIGHT, 1.0) * noise, night


def learned(scores, period):
    """What is known of the sizes of these scores of one stream, and the size expected of each."""
    known = kernels.nothing_known(1, 1, 1, 2000, 16)
    season, expected = known.seasons[0, 0], []
    for score in scores:
        kernels.enter_phase(score, period, season, known.steps[0, 0])
        if season[1] == 0:
            known.speaks[0] = kernels.depend_on_phase(0, season, known)
        expected.append(kernels.expected_size(0, season, 0.0, known))
        kernels.learn_size(0, score, expected[-1], season, known)
    return known, np.array(expected)


def test_sizes_are_expected_up_to_the_edge_of_the_night():
    scores, night = nights(4000)
    known, expected = learned(scores[:, 0], PERIOD)
    assert known.speaks[0]
    mean = np.sqrt(2 / np.pi)
    np.testing.assert_allclose(expected[-PERIOD:], np.where(night, NIGHT * mean, mean)[-PERIOD:], rtol=0.3)


@pytest.mark.parametrize("period", [2, 24, 48, 288])
def test_noise_that_is_always_alike_does_not_depend_on_the_phase(period):
    scores = np.random.default_rng(period).normal(size=(6000, 8))
    assert not any(learned(column, period)[0].speaks[0] for column in scores.T)


def test_a_fault_hardly_raises_its_own_yardstick():
    """A value counts up to three times what is expected."""
    scores, _ = nights(4000)
    at = 3900 // PERIOD * PERIOD + 10
    scores[at : at + 3] = 1e6
    _, expected = learned(scores[:, 0], PERIOD)
    _, without = learned(nights(4000)[0][:, 0], PERIOD)
    after = slice(at + PERIOD - 3, at + PERIOD + 6)
    assert (expected[after] < 1.2 * without[after]).all()


def test_the_season_of_the_noise_is_found_where_values_have_none():
    values = nights(3000, signals=8)[0]
    assert [_season_of_noise(column, (), 0, 0) for column in values.T].count(PERIOD) >= 7
    assert _season_of_noise(values[:, 0], (), 0, 7 * PERIOD) == 7 * PERIOD  # a week has days
    assert _season_of_noise(values[:, 0], (), 0, 25) == PERIOD
    noise = np.random.default_rng(0).normal(size=(8, 3000))
    assert [_season_of_noise(one, (), 0, 0) for one in noise] == [0] * 8
    assert _season_of_noise(noise[0], (), 0, 25) == 25
    assert _season_of_noise(np.zeros(3000), (), 0, 25) == 25


def test_another_season_is_learned_anew():
    known = kernels.nothing_known(1, 1, 1, 2000, 16)
    season, steps = known.seasons[0, 0], known.steps[0, 0]
    assert kernels.enter_phase(1.0, 288, season, steps)
    assert not kernels.enter_phase(1.0, 290, season, steps)  # only told more precisely
    assert kernels.enter_phase(1.5, 24, season, steps)
    assert season.tolist() == [24, 1, 24]
    assert kernels.enter_phase(1.25, 0, season, steps)
    assert steps[0] == 0.25


def test_half_a_step_of_the_values_is_the_least_size():
    """At night the counts are all zero: a single one is no miracle."""
    detector = Detector(**{**SMALL, "forecaster": "last-value", "views": "level"})
    values, night = nights(2000)
    detector.run(np.where(night, 0.0, np.round(10 * values[:, 0])))
    ranking = detector.fleet.pipeline.ranking
    assert ranking._sizes.speaks.all()
    assert ranking._sizes.steps[0, 0, 0] == 1.0
    assert 0.5 in ranking._work[0].expected or ranking._work[0].expected[0] > 1


@pytest.mark.parametrize("nonconformity", ["absolute", full("high"), full("low")])
def test_small_faults_are_found_at_night_alone(nonconformity):
    """Each is as large as the noise by day."""
    steps = 3600
    values, night = nights(steps, signals=12, seed=1)
    at = steps - PERIOD
    assert night[at : at + 12].all()
    values[at : at + 12] += -1.0 if nonconformity == "low" else 1.0
    found = {}
    for season in ("auto", "none"):
        fleet = Fleet(12, preset="light", alarm_rate=0.001, season=season, nonconformity=nonconformity)
        found[season] = fleet.run_arrays(values[: at + 12]).alarm[at:].any(axis=0).mean()
    assert found["auto"] > 0.7
    assert found["none"] < 0.3


def test_the_band_is_narrow_at_night():
    values, night = nights(4000, seed=3)
    verdicts = Detector(preset="light", alarm_rate=0.001).run(values[:, 0]).verdicts
    wide = (verdicts.high - verdicts.low)[-960:, 0, 0]
    usual = verdicts.usual[-960:, 0, 0, 1]
    for width in (wide, usual):
        assert np.median(width[night[-960:]]) < 0.6 * np.median(width[~night[-960:]])


@pytest.mark.parametrize("settings", [{}, full({"nonconformity": "low"}), full({"scaled": True, "forecaster": "mean"})])
def test_the_sizes_agree_with_the_oracle(settings):
    """With missing values and spikes, until relative scores have been ranked for long."""
    views = ("error", "level") if "nonconformity" in settings else ("error", "movement", "level")
    detector, oracle = both({"views": views, "alarm_rate": 0.001, "season": PERIOD, **settings})
    rng = np.random.default_rng(4)
    values = nights(1900, seed=4)[0]
    values[rng.random(values.shape) < 0.03] = np.nan
    values[rng.random(values.shape) < 0.003] += 2.0
    verdicts = detector.run(values).verdicts
    expected = oracle.run(values)
    ranking = detector.fleet.pipeline.ranking
    sizes, columns = ranking._sizes, ranking._columns
    for c, one in oracle.sizes_of.items():
        k = columns.place[c]
        assert bool(sizes.speaks[k]) == one.speaks
        for phase, mean in one.means.items():
            assert sizes.means[k, phase] == pytest.approx(mean)
            assert sizes.counts[k, phase] == one.counts[phase]
        kept = np.sort(sizes.relative[k, : min(sizes.learned[k], sizes.relative.shape[1])])
        np.testing.assert_allclose(kept, np.sort(one.relative), rtol=1e-5)
    assert any(len(one.relative) == one.window for one in oracle.sizes_of.values())
    level = oracle.relative_levels[0]
    kept = np.sort(sizes.levels[0, : min(sizes.entered[0, 1], sizes.levels.shape[1])])
    assert kept.size > 50
    np.testing.assert_allclose(kept, np.sort(level.learned), rtol=1e-4, atol=1e-6)
    assert verdicts.evidence.shape[0] == expected["evidence"].size
