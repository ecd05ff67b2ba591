"""What methods make of errors, against the scorers called directly."""

import numpy as np
import pytest

from tests.evaluation.bench.making import FAULT, noise, write_file
from tocsin import Detector
from tocsin.conformal import MERGES, W1ACAS, ExponentialDecay, GaussianTail, SlidingWindow, SplitConformal
from tocsin.detection.paper.scoring import PAPER_OPTIONS
from tocsin_bench.files import read_file
from tocsin_bench.forecast_errors import ForecasterChoice, make_material, without_forecasts
from tocsin_bench.methods import DETECTOR_SETTINGS, METHODS

HORIZONS = 3
# A detector watches for longer than other methods before it says anything, and for longer still before it alarms.
BEFORE = 1500
# It looks at stretches of this length too, which end later than the fault.
STRETCH = 16
DETECTORS = ("tocsin", "tocsin-light")


def material_of(folder, features, before=0):
    values = noise(features=features, before=before)
    values[before + 120, 0] = np.nan
    return make_material(read_file(write_file(folder, values=values)), ForecasterChoice("last-value"), HORIZONS)


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    return material_of(tmp_path_factory.mktemp("single"), 1)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    return material_of(tmp_path_factory.mktemp("several"), 3)


@pytest.fixture(scope="module")
def long_single(tmp_path_factory):
    return material_of(tmp_path_factory.mktemp("long single"), 1, BEFORE)


@pytest.fixture(scope="module")
def long_several(tmp_path_factory):
    return material_of(tmp_path_factory.mktemp("long several"), 3, BEFORE)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_sees_the_fault(name, long_single, long_several):
    for material, methods in ((long_single, [METHODS[name]]), (long_several, METHODS[name].for_features())):
        for method in methods:
            judgement = method(material)
            p = judgement.p
            assert p.shape == (BEFORE + 180,)
            known = p[~np.isnan(p)]
            assert known.size >= BEFORE - 250
            assert np.all((known >= 0) & (known <= 1))
            # p holds its frequencies, and says less of what is rarer than all of them: a detector orders by severity.
            order, echo = (-p, HORIZONS) if name not in DETECTORS else (judgement.severity, STRETCH)
            seen = order[BEFORE + FAULT.start : BEFORE + FAULT.stop + echo]
            assert np.nanmax(seen) == np.nanmax(order[BEFORE:])
            assert np.nanmin(p[BEFORE + FAULT.start : BEFORE + FAULT.stop]) < 0.03


@pytest.mark.parametrize("name", sorted(METHODS.keys() - set(DETECTORS)))
def test_nothing_without_errors(name, single):
    p = METHODS[name](single).p
    assert np.isnan(p[:52]).all()
    assert np.isnan(p[120])
    assert not np.isnan(p[52:120]).any()


SCORING = {"alpha_c": 0.01, "batch": 10, "learning_rate": 0.001, "window": 5000, "prior": "extend", "dtype": "float64"}
SCORERS = {
    "w1-acas": lambda: W1ACAS(HORIZONS, **SCORING),
    "fixed-window": lambda: SlidingWindow(HORIZONS, window=2000),
    "exponential-decay": lambda: ExponentialDecay(HORIZONS, decay=0.99),
    "conformal": lambda: SplitConformal(HORIZONS, calibration=48),
}


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_on_every_horizon_then_the_median(name, single):
    expected = np.median(SCORERS[name]().run(single.errors[:, 0]), axis=1)
    assert np.array_equal(METHODS[name](single).p, expected, equal_nan=True)


def test_gaussian_judges_the_mean_over_horizons(single):
    expected = GaussianTail(calibration=48).run(single.errors[:, 0].mean(axis=1, keepdims=True))[:, 0]
    judgement = METHODS["gaussian"](single)
    assert np.array_equal(judgement.p, expected, equal_nan=True)
    assert judgement.weights is None


def test_features_are_merged_by_name(several):
    scorers = [SplitConformal(HORIZONS, calibration=48) for _ in range(3)]
    p = np.stack([np.median(s.run(several.errors[:, f]), axis=1) for f, s in enumerate(scorers)], axis=1)
    fisher, harmonic = METHODS["conformal"].for_features()
    assert (fisher.name, harmonic.name) == ("conformal-fisher", "conformal-harmonic")
    p[120, 0] = np.nan  # the missing one is left out, the others speak for it
    assert np.array_equal(fisher(several).p, MERGES["fisher"](p), equal_nan=True)
    assert np.array_equal(harmonic(several).p, MERGES["harmonic"](p), equal_nan=True)
    assert not np.isnan(fisher(several).p[120])
    assert not np.allclose(fisher(several).p[52:], harmonic(several).p[52:])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "made"), [("tocsin", {}), ("tocsin-light", {"preset": "light"})])
def test_the_detector_judges_for_itself(name, made, long_single, long_several):
    ours = METHODS[name]
    assert ours.forecasts_itself
    assert ours.settings == {**DETECTOR_SETTINGS, **made} == {"alarm_rate": 0.001, **made}
    assert ours.for_features() == [ours]
    for material in (long_single, long_several):
        values = material.file.values
        detector = Detector(values.shape[1], alarm_rate=0.001, **made)
        verdicts = detector.run(values).verdicts
        found = ours(without_forecasts(material.file))
        for column, expected in (("p", verdicts.p), ("severity", verdicts.evidence)):
            assert np.array_equal(getattr(found, column), expected[:, 0], equal_nan=True)
        assert len(detector.incidents) > 0
        last = len(values) - 1
        lasts = [last if incident.open else incident.last for incident in detector.incidents]
        assert found.incidents[:, 0].tolist() == [incident.first for incident in detector.incidents]
        assert found.incidents[:, 1].tolist() == lasts


def test_learned_weights_by_lag(single):
    scorer = W1ACAS(HORIZONS, **SCORING)
    scorer.run(single.errors[:, 0])
    weights = METHODS["w1-acas"](single).weights
    assert weights == pytest.approx(np.mean(scorer.weights, axis=0))
    assert weights.shape == (5000,)
    assert METHODS["tocsin"](single).weights.ndim == 1


def test_other_settings_show_in_the_name(single):
    method = METHODS["w1-acas"].with_settings(learning_rate=0.0003, horizons=2)
    assert method.name == "w1-acas[learning_rate=0.0003,horizons=2]"
    assert method.settings == {**PAPER_OPTIONS, "learning_rate": 0.0003, "horizons": 2}
    expected = W1ACAS(2, **{**SCORING, "learning_rate": 0.0003}).run(single.errors[:, 0, :2])
    assert np.array_equal(method(single).p, np.median(expected, axis=1), equal_nan=True)
    assert METHODS["w1-acas"].with_settings(prior="recent").name == "w1-acas[prior=recent]"


def test_methods_are_known_by_their_names():
    assert all(name == method.name for name, method in METHODS.items())
