"""What a signal is compared with where somebody said what was good."""

import itertools

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import same_verdicts
from tocsin.detection import Detector, Fleet

SETTINGS = {"alarm_rate": 0.002, "forecaster": "exponential-smoothing", "views": "error,shape,movement"}
# Whole periods of the season below: a jump of its phase would be unlike the reference.
GOOD = 704


def season(steps, seed=0, features=1):
    noise = np.random.default_rng(seed).normal(size=(steps, features))
    return 4 * np.sin(np.arange(steps) / 7)[:, np.newaxis] + 0.3 * noise


def watching(features=1, seed=0):
    detector = Detector(features, **SETTINGS)
    detector.learn_reference(season(GOOD, seed, features))
    return detector


@pytest.mark.slow
@pytest.mark.parametrize("features", [1, full(3)])
def test_a_signal_unlike_its_reference_is_in_an_incident_until_it_is_like_it_again(features):
    detector = Detector(features, **SETTINGS)
    detector.learn_reference(season(3 * GOOD, 0, features))
    values = season(2600, 1, features)
    values[600:1800, 0] += 7
    verdicts = detector.run(values).verdicts
    # Longer than anything would be held open, or accepted, without a reference.
    assert verdicts.open[620:1800].mean() > 0.98
    assert verdicts.open[:600].mean() < 0.05
    assert verdicts.open[1850:].mean() < 0.05
    longest = max(detector.incidents, key=lambda incident: incident.duration)
    assert (longest.view, longest.ended) == ("shape", "returned")
    assert "resemble no earlier stretch" in longest.explanation


@pytest.mark.slow
def test_how_far_is_too_far_is_as_an_oracle_has_it():
    """1.2 times as far as any stretch of the reference is from all others that share no value with it."""
    reference, length = season(300, 3, 2), 16
    fleet = Fleet(1, 2, **SETTINGS)
    fleet.learn_reference(reference)
    units = fleet.pipeline._views[1]._archives[0].units[0]
    middle = np.median(reference[:200], axis=0)
    np.testing.assert_allclose(units, np.median(np.abs(reference[:200] - middle), axis=0), rtol=0.5)
    scaled = reference / units
    stretches = [scaled[start : start + length] for start in range(300 - length + 1)]
    nearest = [
        min(
            np.sqrt(np.mean((one - other) ** 2))
            for at, other in enumerate(stretches)
            if abs(at - start) >= length
        )
        for start, one in enumerate(stretches)
    ]  # fmt: skip
    ranking = fleet.pipeline.ranking
    compared = np.flatnonzero(np.isfinite(ranking._memory.reach[0]))
    assert compared.size == 1
    assert ranking._memory.reach[0, compared[0]] == pytest.approx(1.2 * max(nearest), rel=1e-3)


def limits_of_means(fleet):
    """The middle and the reach of the mean over 16 of each feature; nothing else of a level is compared."""
    memory, columns = fleet.pipeline.ranking._memory, fleet.pipeline._places[0][1]
    middles, reach = (array[0, columns].reshape(-1, 4) for array in (memory.middles, memory.reach))
    assert np.isinf(reach[:, [0, 2, 3]]).all()
    return middles[:, 1], reach[:, 1]


def test_the_range_of_a_level_is_as_an_oracle_has_it():
    """Of means over 16, without the first ones, of the distances from the median of blocks of eight."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1130, 2)) * [1.0, 5.0] + [0.0, 40.0]
    values = np.clip(values, [-3.0, 25.0], [3.0, 55.0])
    values[rng.random(1130) < 0.03, 1] = np.nan
    fleet = Fleet(1, 2, alarm_rate=0.002, forecaster="last-value", views="level", season="none")
    fleet.learn_reference(values)
    middles, reach = limits_of_means(fleet)
    for f in range(2):
        away = values[:, f] - np.median(np.nanmean(values[:1000, f].reshape(-1, 8), axis=1))
        means = [np.nanmean(away[end - 16 : end]) for end in range(65, 1131) if not np.isnan(away[end - 1])]
        assert middles[f] == pytest.approx((max(means) + min(means)) / 2, abs=1e-5)
        assert reach[f] == pytest.approx(2.5 * (max(means) - min(means)), rel=1e-5)


@pytest.mark.parametrize("extra", [0, 13])
def test_the_range_of_a_level_under_a_season_is_that_of_what_the_season_leaves(extra):
    """Wherever in the season the reference ends."""
    wave = 6 * np.sin(2 * np.pi * np.arange(1000 + extra + 300) / 50)
    values = wave + np.random.default_rng(1).normal(size=wave.size)
    fleet = Fleet(1, alarm_rate=0.002, forecaster="last-value", views="level", season=50)
    fleet.learn_reference(values[: 1000 + extra])
    _, reach = limits_of_means(fleet)
    assert 2.5 * 0.8 < reach[0] < 2.5 * 2.5  # the means of the wave itself go from -5 to 5
    later = values[1000 + extra :].copy()
    later[150:] += 9.0
    found = fleet.run_arrays(later[:, np.newaxis])
    assert not found.open[:150].any()
    assert found.open[170:].all()


def test_one_feature_that_leaves_its_range_is_found_among_many():
    """Stretches of twelve features are hardly further from each other for it."""
    rng = np.random.default_rng(2)
    detector = Detector(12, alarm_rate=0.001, preset="light")
    detector.learn_reference(rng.normal(size=(800, 12)))
    values = rng.normal(size=(500, 12))
    values[300:, 7] += 4.0
    verdicts = detector.run(values).verdicts
    assert not verdicts.open[:300].any()
    assert verdicts.open[320:].all()
    (incident,) = detector.incidents
    assert incident.view == "level"
    assert incident.explanation.startswith(detector.features[7])


@pytest.mark.parametrize(("nonconformity", "finds"), [("high", False), ("low", True), ("absolute", True)])
def test_a_level_is_compared_on_the_sides_that_count(nonconformity, finds):
    rng = np.random.default_rng(4)
    detector = Detector(alarm_rate=0.001, forecaster="last-value", views="level", nonconformity=nonconformity)
    detector.learn_reference(rng.normal(size=800))
    values = rng.normal(size=400)
    values[200:] -= 8.0
    verdicts = detector.run(values).verdicts
    assert not verdicts.open[:200].any()
    assert verdicts.open[220:].all() == finds
    assert verdicts.open[220:].any() == finds


def test_a_feature_that_never_moved_in_the_reference_may_not_move():
    rng = np.random.default_rng(5)
    reference = np.stack([rng.normal(size=600), np.ones(600)], axis=1)
    detector = Detector(2, alarm_rate=0.001, preset="light")
    detector.learn_reference(reference)
    later = np.stack([rng.normal(size=300), np.ones(300)], axis=1)
    later[200:, 1] = 0.0
    verdicts = detector.run(later).verdicts
    assert not verdicts.open[:200].any()
    assert verdicts.open[216:].all()


def test_a_reference_stays_through_restarts_and_until_another_is_learned():
    detector = watching()
    values = season(900, 5)
    values[400:] += 7
    whole = detector.run(values).verdicts
    again = watching()
    parts = [again.run(values[:450]).verdicts]
    again = Detector.from_state(again.state())
    parts.append(again.run(values[450:]).verdicts)
    same_verdicts(type(whole).joined(parts), whole)
    again.learn_reference(season(GOOD, 0) + 7)
    assert not again.run(values[500:]).verdicts.open[100:].any()


def test_signals_without_a_reference_are_as_before():
    values = season(1500, 2)
    fleet = Fleet(2, **SETTINGS)
    fleet.learn_reference(season(GOOD)[:, 0], row=0)
    both = fleet.run_arrays(np.concatenate([values, values], axis=1))
    alone = Fleet(1, **SETTINGS).run_arrays(values)
    np.testing.assert_array_equal(both.p[:, 1], alone.p[:, 0])
    assert not np.array_equal(both.p[:, 0], alone.p[:, 0], equal_nan=True)


def test_a_share_of_observations_stays_one():
    detector = Detector(**SETTINGS, promise="observations")
    detector.learn_reference(season(2 * GOOD))
    verdicts = detector.run(season(800, 1) + 7).verdicts
    np.testing.assert_array_equal(verdicts.alarm, verdicts.warm & (verdicts.p < 0.002))


@pytest.mark.parametrize(("values", "shape"), [(np.zeros((40, 1)), r"\(40, 1\)"), (np.zeros((900, 2)), r"\(900, 2\)")])
def test_a_reference_that_does_not_fit_is_refused(values, shape):
    detector = watching()
    with pytest.raises(
        ValueError, match=rf"values must have shape \(T, 1\), (T at least \d+|times and features), got shape {shape}"
    ):
        detector.learn_reference(values)
    assert all(itertools.islice(np.isfinite(detector.run(season(200, 1)).verdicts.evidence[-50:, 0]), 50))


def test_all_of_a_reference_is_learned_even_what_looks_like_an_incident():
    reference = season(2 * GOOD)
    reference[GOOD:] += 20
    detector = Detector(**SETTINGS)
    detector.learn_reference(reference)
    later = season(500, 5) + 20
    assert detector.run(later).open[50:].mean() < 0.1
    assert detector.fleet.pipeline.ranking.scorer.learned[0] > 2 * GOOD - 100


def test_a_reference_provides_the_features_and_the_interval():
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2026-01-01", periods=1500, freq="5min")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(1500, 2)), index=times, columns=["flow", "level"])
    detector = Detector(alarm_rate="1/day", preset="light")
    detector.learn_reference(frame)
    assert (detector.features, detector.fleet.interval) == (["flow", "level"], 300.0)
    assert detector.run(frame.iloc[:100]).judged.features == ("flow", "level")
    plain = Detector(alarm_rate=0.01, preset="light")
    plain.learn_reference(frame.to_numpy())
    assert len(plain.features) == 2
