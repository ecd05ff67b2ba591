"""Tocsin as an outlier detector of scikit-learn."""

import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import tocsin.sklearn
from tocsin import Detector
from tocsin.sklearn import ConformalOutlierDetector

QUICK = {"forecaster": "last-value", "views": "error", "window": 250}
# What scikit-learn asks of rows that have no order, and cannot be asked of a series.
NOT_OF_SERIES = {
    "check_methods_sample_order_invariance": "rows are judged by those before them: their order is what is judged",
    "check_methods_subset_invariance": "rows are judged by those before them: a part of them is another series",
    "check_outliers_fit_predict": "a history of 300 rows is shorter than the warm-up, in which nothing is an outlier",
}


# scikit-learn lets it learn 300 rows and wants outliers among the next 300: rare ones are known only later.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Skipping check")
@parametrize_with_checks(
    [ConformalOutlierDetector(alarm_rate=0.05, **QUICK)], expected_failed_checks=lambda _: NOT_OF_SERIES
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


def series(count=1500, features=1):
    values = np.random.default_rng(0).normal(size=(count, features))
    values[count - 50] = 12.0
    return values


def test_p_is_that_of_a_detector():
    values = series(features=2)
    model = ConformalOutlierDetector(alarm_rate=0.01, **QUICK).fit(values[:1400])
    detector = Detector(2, alarm_rate=0.01, promise="observations", **QUICK)
    detector.run(values[:1400])
    expected = np.log10(detector.run(values[1400:]).p)
    np.testing.assert_array_equal(model.score_samples(values[1400:]), expected)
    np.testing.assert_array_equal(model.decision_function(values[1400:]), expected - np.log10(0.01))
    np.testing.assert_array_equal(model.predict(values[1400:]), np.where(expected < np.log10(0.01), -1, 1))
    assert model.predict(values[1400:])[50] == -1
    np.testing.assert_array_equal(model.score_samples(values[1400:]), expected)  # it has not gone on


def test_a_history_is_judged_as_it_goes():
    values = series()
    labels = ConformalOutlierDetector(**QUICK).fit_predict(values)
    detector = Detector(promise="observations", alarm_rate=3 / len(values), **QUICK)
    p = detector.run(values).p
    np.testing.assert_array_equal(labels == -1, p < detector.alarm_rate)
    assert labels[1450] == -1


def test_fit_begins_anew():
    values = series()
    model = ConformalOutlierDetector(**QUICK).fit(values[:200])
    assert model.fit(values[:700]).detector_.observations == 700


def test_missing_values_are_normal():
    values = series()
    model = ConformalOutlierDetector(**QUICK).fit(values[:1400])
    assert model.predict([[np.nan]]).tolist() == [1]


def test_frames_pipelines_and_clones():
    frame = pd.DataFrame(series(features=2), columns=["flow", "pressure"])
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"), ConformalOutlierDetector(alarm_rate=0.02, **QUICK)
    )
    labels = model.fit(frame[:1400]).predict(frame[1400:])
    assert labels[50] == -1
    inner = model[-1]
    assert inner.feature_names_in_.tolist() == ["flow", "pressure"]
    assert clone(inner).get_params() == inner.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame[1400:]), labels)


def test_wrong_settings_are_named():
    with pytest.raises(
        TypeError, match=r"ConformalOutlierDetector\(\) got an unexpected argument 'alarmrate'.*'alarm_rate'"
    ):
        ConformalOutlierDetector(alarmrate=0.1)
    with pytest.raises(ValueError, match=r"alarm_rate must be a number >= 1e-18 and < 0.5, got 2"):
        ConformalOutlierDetector(alarm_rate=2).fit(series())


def test_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"tocsin\.sklearn needs scikit-learn: pip install 'tocsin\[sklearn\]'"):
        importlib.reload(tocsin.sklearn)
