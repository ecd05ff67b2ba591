"""The detectors against one that is slow and obvious."""

import itertools

import numpy as np
import pytest

from tests.detection.material import ARRAYS, SMALL, MovingMean, hard_values
from tests.detection.oracle import FromContext, LastSeen, OracleDetector
from tocsin import MERGES
from tocsin.detection import NONCONFORMITIES, Detector, Fleet
from tocsin.forecasting import LastValue

STEPS = 370
HOLD = {"learn": "hold", "hold_below": 0.15, "hold_after": 0, "hold_most": 4}
LEARN = {"absorb": {}, "hold": HOLD, "hold context": {**HOLD, "hold_context": True}}
FACTORS = {
    "nonconformity": list(NONCONFORMITIES),
    "forecaster": ["last", "mean", "mean, scaled"],
    "light": [False, True],
    "merge": list(MERGES),
    "merge_features": list(MERGES),
    "recalibrate": [True, False],
    "learn": list(LEARN),
    "refresh": [1, 4],
    "features": [1, 3],
    "horizons": [1, 2, 3],
}


# Merges do not care what the values are that they merge, so they need not meet every other factor.
MET_BY_MERGES = {"recalibrate", "learn", "features", "horizons"}


def to_meet(one, other):
    """Whether all values of these two factors are to meet."""
    merges = {one, other} & {"merge", "merge_features"}
    return not merges or len({one, other} & MET_BY_MERGES) == 1


def pairs(row):
    """All pairs of settings in a row that are to meet."""
    return {(one, other) for one, other in itertools.combinations(row.items(), 2) if to_meet(one[0], other[0])}


def all_pairs():
    return {
        ((one, first), (other, second))
        for one, other in itertools.combinations(FACTORS, 2)
        if to_meet(one, other)
        for first, second in itertools.product(FACTORS[one], FACTORS[other])
    }


def pairwise(seed=0):
    """Settings in which every two values of different factors meet at least once, by greed."""
    rng = np.random.default_rng(seed)
    wanted, rows = all_pairs(), []
    while wanted:
        drawn = [{name: values[rng.integers(len(values))] for name, values in FACTORS.items()} for _ in range(300)]
        best = max(drawn, key=lambda row: len(pairs(row) & wanted))
        if pairs(best) & wanted:
            rows.append(best)
            wanted -= pairs(best)
    return rows


DESIGN = pairwise()


def settings_of(row):
    """Arguments of a `Fleet` from a row of the design, those of the oracle, and the number of features."""
    row = dict(row)
    features = row.pop("features")
    scaled = row["forecaster"] == "mean, scaled"
    fast, slow = (LastValue(), LastSeen()) if row.pop("forecaster") == "last" else both_means()
    row.update(LEARN[row.pop("learn")])
    settings = {**SMALL, **row, "scaled": scaled}
    return {**settings, "forecaster": fast}, {**settings, "forecaster": slow}, features


def both_means():
    return MovingMean(), FromContext(MovingMean())


def same(name, found, expected):
    """To the last bit; only the edges of a band are found in another way, to nine digits."""
    tolerance = 1e-9 if name in ("low", "high") else 0.0
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)


def agree(verdicts, signal, expected, names=ARRAYS):
    for name in names:
        same(name, getattr(verdicts, name)[:, signal], expected[name])


def test_every_two_settings_meet():
    assert set().union(*map(pairs, DESIGN)) == all_pairs()
    assert len(DESIGN) < 50


@pytest.mark.parametrize("number", range(len(DESIGN)))
def test_a_detector_agrees_with_the_oracle(number):
    """To the last bit: the arithmetic is the same, only the order in which it is organised differs."""
    fast, slow, features = settings_of(DESIGN[number])
    values = hard_values(number, STEPS, features)
    expected = OracleDetector(features, **slow).run(values)
    detector = Detector(features, **fast)
    verdicts = detector.run(values)
    agree(verdicts, 0, expected)
    assert verdicts.warm[-1, 0]
    assert not np.isnan(verdicts.p[-60:]).all()


def test_the_material_leaves_nothing_untried():
    """Alarms, observations held back and accepted again, missing p-values, bands with ends and without."""
    values = hard_values(0, STEPS)
    detectors = [Detector(**SMALL, forecaster=MovingMean(), **LEARN[learn]) for learn in LEARN]
    verdicts = [detector.run(values) for detector in detectors]
    absorbed, held, hidden = (int(detector.fleet.pipeline.scorer.learned[0]) for detector in detectors)
    assert held < absorbed - 10
    assert hidden < absorbed - 10
    assert not np.array_equal(verdicts[1].forecast, verdicts[2].forecast, equal_nan=True)
    for one in verdicts:
        assert one.alarm.sum() > 1
        assert one.warm.any()
        assert not one.warm.all()
        assert np.isnan(one.p).sum() > 20
        assert np.isinf(one.high).any()
        assert np.isfinite(one.high).any()


@pytest.mark.parametrize("recalibrate", [True, False])
@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.parametrize("learn", ["absorb", "hold"])
def test_scores_from_outside_agree_with_the_oracle(recalibrate, features, learn):
    settings = {**SMALL, "recalibrate": recalibrate, "forecaster": None, **LEARN[learn]}
    scores = np.abs(hard_values(3, STEPS, features))
    verdicts = Detector(features, **settings).run(scores)
    agree(verdicts, 0, OracleDetector(features, **settings).run(scores))


@pytest.mark.parametrize(("learn", "refresh"), [("absorb", 1), ("hold context", 4)])
def test_a_fleet_agrees_with_one_oracle_for_each_signal(learn, refresh):
    """Signals that start at different times, and do not all have something to say every time."""
    rng = np.random.default_rng(5)
    settings = {**SMALL, "horizons": 2, "refresh": refresh, **LEARN[learn]}
    fleet = Fleet(3, 2, forecaster=MovingMean(), **settings)
    oracles = [OracleDetector(2, forecaster=FromContext(MovingMean()), **settings) for _ in range(3)]
    values = np.stack([hard_values(seed, STEPS, 2) for seed in range(3)], axis=1)
    for step in range(STEPS):
        rows = np.flatnonzero(rng.random(3) < [1.0, 0.9, 0.8])
        rng.shuffle(rows)
        verdicts = fleet.update(values[step, rows], rows=rows)
        for column, row in enumerate(rows):
            expected = oracles[row].update(values[step, row])
            for name in ARRAYS:
                same(name, getattr(verdicts, name)[0, column], expected[name])


def test_other_learning_rates_agree_with_the_oracle():
    settings = {**SMALL, "learning_rate": 0.05}
    values = hard_values(8, STEPS)
    verdicts = Detector(forecaster=LastValue(), **settings).run(values)
    agree(verdicts, 0, OracleDetector(1, forecaster=LastSeen(), **settings).run(values))
