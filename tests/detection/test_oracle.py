"""The detectors against one that is slow and obvious."""

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import SMALL, MovingMean, hard_values
from tests.detection.oracle import FromContext, LastSeen, OracleDetector
from tocsin.detection import Detector, Fleet
from tocsin.forecasting import LastValue

STEPS = 850
ALL = ("error", "shape", "movement", "level", "relation")
SHORT = {"accept_after": 60, "gap": 4}
CASES = {
    "all views": {"views": ALL},
    "three features": {"views": ALL, "features": 3},
    "high": {"views": ("error",), "nonconformity": "high"},
    "low, three features": {"views": ("error",), "nonconformity": "low", "features": 3},
    "two forecasters": {"views": ALL, "forecaster": "two"},
    "two forecasters, two features": {"views": ("movement", "error"), "forecaster": "two", "features": 2},
    "scaled": {"views": ALL, "forecaster": "mean", "scaled": True},
    "forecast seldom": {"views": ("movement", "error"), "forecaster": "mean", "refresh": 4},
    "observations": {"views": ALL, "promise": "observations", "learning_rate": 0.05},
    "scores": {"forecaster": None},
    "scores, by p": {"forecaster": None, "promise": "observations", "features": 2},
    "only the shape": {"views": ("shape",)},
    "nothing is estimated": {"views": ("error", "movement"), "early": False},
    "nothing is held": {"views": ("error", "movement"), "accept_after": 0},
    "nothing is accepted": {"views": ALL, "accept_after": 10**6, "gap": 0},
    "only the level": {"views": ("level",)},
    "low level, two features": {"views": ("level", "error"), "nonconformity": "low", "features": 2},
    "a known season": {"views": ALL, "season": 25},
    "no season": {"views": ALL, "season": "none"},
    "relations": {"views": ("relation", "error"), "features": 4},
    "only relations, high": {"views": ("relation",), "features": 3, "nonconformity": "high"},
}
#: Those of `make test`: each setting of the others is in one of these, or has a test of its own.
FEW = (
    "all views", "low, three features", "two forecasters, two features", "scaled", "scores, by p", "nothing is held",
)  # fmt: skip
FORECASTERS = {
    "last": lambda: (LastValue(), LastSeen(), None),
    "mean": lambda: (MovingMean(), FromContext(MovingMean()), None),
    "two": lambda: ((MovingMean(), LastValue()), FromContext(MovingMean()), LastSeen()),
    None: lambda: (None, None, None),
}
NUMBERS = ("p", "rate", "evidence", "feature_p", "feature_evidence", "views", "score", "forecast")
EXACT = ("alarm", "warm", "opened", "estimated", "cause", "state")


def both(case):
    """A detector of the case, and its oracle."""
    settings = {**SMALL, **SHORT, **case}
    features = settings.pop("features", 1)
    fast, slow, second = FORECASTERS[settings.pop("forecaster", "last")]()
    detector = Detector(features, forecaster=fast, **settings)
    oracle = OracleDetector(
        features, detector.fleet.settings.sizes, forecaster=slow, second=second, **{"views": (), **settings}
    )
    return detector, oracle


def agree(found, expected, digits=9):
    for name in EXACT:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    for name in NUMBERS:
        np.testing.assert_allclose(found[name], expected[name], rtol=10.0**-digits, atol=1e-12, err_msg=name)


def of_signal(verdicts, signal=0):
    return {name: getattr(verdicts, name)[:, signal] for name in (*EXACT, *NUMBERS)}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name if name in FEW else full(name) for name in CASES])
def test_a_detector_agrees_with_the_oracle(name):
    """To nine digits, alarms exactly: of signals with gaps, spikes, ties, infinities and a shift that is accepted."""
    detector, oracle = both(CASES[name])
    more = 900 if name.startswith("only") else 320
    values = hard_values(len(name), detector.warm_up + more, len(detector.features))
    if name == "all views":
        values[-60:-50] += 100.0  # the rest of it does not alarm
    verdicts = detector.run(np.abs(values) if detector.fleet.forecaster is None else values).verdicts
    agree(of_signal(verdicts), oracle.run(np.abs(values) if oracle.forecaster is None else values))
    assert verdicts.warm[-30:, 0].any()
    assert 0 < verdicts.alarm.sum() < 500


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1300, full(2900)])
def test_a_leak_that_is_repaired_agrees_with_the_oracle(steps):
    """The season is found before it; in the longer signal, stretches of 512 observations vote too."""
    detector, oracle = both({"views": ALL, "accept_after": 300})
    rng = np.random.default_rng(1)
    values = rng.normal(size=(steps, 1)) + 2 * np.sin(np.arange(steps) * 2 * np.pi / 60)[:, np.newaxis]
    start = -900 if steps > 2000 else -400
    values[start:-250] += 4
    values[rng.random(values.shape) < 0.02] = np.nan
    verdicts = detector.run(values).verdicts
    agree(of_signal(verdicts), oracle.run(values))
    assert oracle.levels[0].period == 60
    # Later it may be accepted as normal.
    assert verdicts.open[start + 50 : start + 150].all()
    assert oracle.away_while_certain > 50


@pytest.mark.slow
def test_noise_that_is_small_at_night_agrees_with_the_oracle():
    """Its sizes depend on the phase: a fault at night is only found by relative scores."""
    detector, oracle = both({"views": ("error", "movement", "level"), "alarm_rate": 0.01, "season": 48})
    night = np.arange(1900) % 48 < 24
    values = (np.where(night, 0.2, 1.0) * np.random.default_rng(4).normal(size=1900))[:, np.newaxis]
    values[1780:1784] += 1.0
    values[np.random.default_rng(5).random(values.shape) < 0.03] = np.nan
    verdicts = detector.run(values).verdicts
    agree(of_signal(verdicts), oracle.run(values))
    assert all(one.speaks for one in oracle.sizes_of.values())
    assert verdicts.alarm[1780:1784].any()


@pytest.mark.slow
@pytest.mark.parametrize("features", [3, full(5)])
def test_a_broken_relation_agrees_with_the_oracle(features):
    """Features that depend on each other: one leaves the others and returns; one rests at first, one is always late."""
    detector, oracle = both({"views": ("relation", "movement"), "features": features, "accept_after": 120})
    rng = np.random.default_rng(3)
    values = rng.normal(size=(1200, 1)) + 0.2 * rng.normal(size=(1200, features))
    values[-400:-100, 1] = rng.normal(size=300)
    values[:260, 2] = 7.0
    values[:130, 0] = np.nan
    values[rng.random(values.shape) < 0.05] = np.nan
    verdicts = detector.run(values).verdicts
    agree(of_signal(verdicts), oracle.run(values))
    assert verdicts.open[-380:-340].all()
    assert oracle.relations[0].faulty
    assert oracle.relations[0].learned < 1050


@pytest.mark.full
def test_a_small_shift_that_lasts_agrees_with_the_oracle():
    detector, oracle = both({"views": ALL, "accept_after": 300})
    values = np.random.default_rng(2).normal(size=(1300, 1))
    values[-300:] += 0.7
    verdicts = detector.run(values).verdicts
    agree(of_signal(verdicts), oracle.run(values))
    assert oracle.away_while_certain > 20
    assert oracle.away_while_uncertain > 20
    assert verdicts.open[-250:].all()


@pytest.mark.full
@pytest.mark.parametrize("late", [3, 40, 150])
def test_a_signal_that_begins_late_agrees_with_the_oracle(late):
    """One feature later than the other; then both are away for longer than the forecaster and the views look back."""
    detector, oracle = both({"views": ALL, "features": 2})
    values = hard_values(late, STEPS, 2)
    values[:late, 0] = np.nan
    values[: 2 * late, 1] = np.nan
    values[560:640] = np.nan
    agree(of_signal(detector.run(values).verdicts), oracle.run(values))


@pytest.mark.full
@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_signals_far_from_nothing_agree_with_the_oracle(size):
    """A billion and a little noise: differences are what counts, and of a mean nine digits are lost."""
    detector, oracle = both({"views": ALL})
    values = 1e9 * size + size * hard_values(5, STEPS)
    agree(of_signal(detector.run(values).verdicts), oracle.run(values), digits=5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [full("constant"), "rounded", full("resting"), full("counts")])
def test_signals_with_many_ties_agree_with_the_oracle(kind):
    rng = np.random.default_rng(3)
    values = {
        "constant": np.full(STEPS, 7.0),
        "rounded": np.round(rng.normal(size=STEPS)),
        "resting": np.where(rng.random(STEPS) < 0.05, rng.normal(size=STEPS), 0.0),
        "counts": rng.poisson(0.3, size=STEPS).astype(float),
    }[kind][:, np.newaxis]
    values[700:705] += 40
    detector, oracle = both({"views": ALL})
    agree(of_signal(detector.run(values).verdicts), oracle.run(values))


def test_the_material_leaves_nothing_untried():
    """Incidents that are held and accepted again, missing p-values, bands with ends and without, every cause."""
    detector, _ = both({"views": ALL})
    verdicts = detector.run(hard_values(0, STEPS)).verdicts
    assert verdicts.opened.sum() > 1
    assert np.isnan(verdicts.p).sum() > 20
    assert np.isinf(verdicts.high).any()
    assert np.isfinite(verdicts.high).any()
    assert set(verdicts.cause[..., 0].ravel()) == {-1, 0, 1, 2, 3}
    assert detector.fleet.pipeline.ranking.scorer.learned[0] < np.isfinite(verdicts.forecast).sum() - 30


@pytest.mark.full
def test_a_fleet_agrees_with_one_oracle_for_each_signal():
    """Signals that start at different times, and do not all have something to say every time."""
    rng = np.random.default_rng(5)
    settings = {**SMALL, **SHORT, "views": ALL, "refresh": 3}
    fleet = Fleet(2, 2, forecaster=MovingMean(), **settings)
    oracles = [
        OracleDetector(2, fleet.settings.sizes, forecaster=FromContext(MovingMean()), **settings) for _ in range(2)
    ]
    values = np.stack([hard_values(seed, 800, 2) for seed in (1, 4)], axis=1)
    found, expected = [[], []], [[], []]
    for step in range(800):
        rows = np.flatnonzero(rng.random(2) < [1.0, 0.9])
        rng.shuffle(rows)
        verdicts = fleet.update(values[step, rows], rows=rows)
        for column, row in enumerate(rows):
            found[row].append({name: array[0] for name, array in of_signal(verdicts, column).items()})
            expected[row].append(oracles[row].update(values[step, row]))
    for one, other in zip(found, expected, strict=True):
        agree(*({name: np.array([row[name] for row in rows]) for name in one[0]} for rows in (one, other)))
        assert sum(row["alarm"] for row in one) > 0
