"""What methods make of errors, against the scorers called directly."""

import numpy as np
import pytest

from tests.evaluation.bench.making import FAULT, noise, write_file
from tocsin import Detector
from tocsin.conformal import MERGES, W1ACAS, ExponentialDecay, GaussianTail, SlidingWindow, SplitConformal
from tocsin.evaluation.bench.files import read_file
from tocsin.evaluation.bench.material import ForecasterChoice, make_material
from tocsin.evaluation.bench.methods import FEATURE_MERGES, METHODS, PAPER_SETTINGS

HORIZONS = 3


def material_of(folder, features):
    values = noise(features=features)
    values[120, 0] = np.nan
    return make_material(read_file(write_file(folder, values=values)), ForecasterChoice("last-value"), HORIZONS)


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    return material_of(tmp_path_factory.mktemp("single"), 1)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    return material_of(tmp_path_factory.mktemp("several"), 3)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_sees_the_fault(name, single, several):
    for material, methods in ((single, [METHODS[name]]), (several, METHODS[name].for_features())):
        for method in methods:
            p = method(material).p
            assert p.shape == (180,)
            known = p[~np.isnan(p)]
            assert known.size >= 127
            assert np.all((known >= 0) & (known <= 1))
            assert np.nanmin(p[FAULT.start : FAULT.stop + HORIZONS]) == np.nanmin(p[100:])


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"w1-acas"}))
def test_nothing_without_errors(name, single):
    p = METHODS[name](single).p
    assert np.isnan(p[:52]).all()
    assert np.isnan(p[120])
    assert not np.isnan(p[52:120]).any()


SCORERS = {
    "w1-acas-paper": lambda: W1ACAS(HORIZONS, **PAPER_SETTINGS),
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


def test_the_detector_judges_for_itself(single, several):
    ours = METHODS["w1-acas"]
    for material, methods in ((single, [ours]), (several, ours.for_features())):
        for method, merge in zip(methods, FEATURE_MERGES, strict=False):
            values = material.file.values
            detector = Detector(
                values.shape[1], forecaster="last-value", horizons=HORIZONS, merge_features=merge, **method.settings
            )
            verdicts = detector.run(values)
            found = method(material)
            assert np.array_equal(found.p, verdicts.merged[:, 0], equal_nan=True)
            assert len(detector.incidents) > 0
            lasts = [179 if incident.open else incident.last for incident in detector.incidents]
            assert found.incidents[:, 0].tolist() == [incident.first for incident in detector.incidents]
            assert found.incidents[:, 1].tolist() == lasts


def test_learned_weights_by_lag(single):
    scorer = W1ACAS(HORIZONS, **PAPER_SETTINGS)
    scorer.run(single.errors[:, 0])
    weights = METHODS["w1-acas-paper"](single).weights
    assert weights == pytest.approx(np.mean(scorer.weights, axis=0))
    assert weights.shape == (5000,)
    assert METHODS["w1-acas"](single).weights.ndim == 1


def test_other_settings_show_in_the_name(single):
    method = METHODS["w1-acas-paper"].with_settings(learning_rate=0.0003, horizons=2)
    assert method.name == "w1-acas-paper[learning_rate=0.0003,horizons=2]"
    assert method.settings == {**PAPER_SETTINGS, "learning_rate": 0.0003, "horizons": 2}
    assert "horizons" not in METHODS["w1-acas-paper"].settings
    expected = W1ACAS(2, **{**PAPER_SETTINGS, "learning_rate": 0.0003}).run(single.errors[:, 0, :2])
    assert np.array_equal(method(single).p, np.median(expected, axis=1), equal_nan=True)
    assert METHODS["w1-acas-paper"].with_settings(prior="recent").name == "w1-acas-paper[prior=recent]"


def test_methods_are_known_by_their_names():
    assert all(name == method.name for name, method in METHODS.items())
