"""Combinations of settings become detectors."""

import pickle

import numpy as np
import pytest

from tests.evaluation.bench.making import name_of, noise, write_file
from tocsin import Detector
from tocsin.constants import Constants, changed, constants
from tocsin.detection import DetectorSettings
from tocsin_bench.files import read_file
from tocsin_bench.forecast_errors import without_forecasts
from tocsin_bench.grid import TUNABLE, combinations, grid_plan


def test_every_value_with_every_other():
    grid = combinations({"window": [300, 400], "views": ["error,movement", "shape"], "preset": ["light"]})
    assert [one.label for one in grid] == [
        "preset=light views=error,movement window=300",
        "preset=light views=error,movement window=400",
        "preset=light views=shape window=300",
        "preset=light views=shape window=400",
    ]
    assert grid[1].values == {"preset": "light", "views": "error,movement", "window": 400}


def test_labels_of_all_kinds_of_values():
    tried = {
        "early": [False],
        "forecaster": ["seasonal-naive"],
        "forecaster_options": [{"period": 24, "search": 400}],
        "learning_rate": [0.003],
        "window": [None],
    }
    (only,) = combinations(tried)
    assert only.label == (
        "early=false forecaster=seasonal-naive forecaster_options=period=24,search=400 learning_rate=0.003 window=none"
    )


def test_what_users_configure_can_be_tried():
    assert {"preset", "window", "views", "learning_rate", "certainty"} <= TUNABLE.keys()
    assert TUNABLE.keys() <= {*DetectorSettings.__dataclass_fields__, *Constants._fields}
    assert not {"features", "threads"} & TUNABLE.keys()


@pytest.mark.parametrize(
    ("tried", "reason"),
    [
        ({"window": [300, 10]}, "window=10: window must"),
        ({"window": ["wide"]}, "window=wide: window must"),
        ({"preset": ["light"], "views": ["fault"]}, "preset=light views=fault: "),
        ({"early": [True, True]}, "early must have distinct values, got true, true"),
    ],
)
def test_what_no_detector_accepts(tried, reason):
    with pytest.raises(ValueError, match=reason):
        combinations(tried)


@pytest.mark.parametrize("features", [1, 2])
def test_a_method_is_the_detector_with_these_settings(tmp_path, features):
    file = read_file(write_file(tmp_path, name_of(), noise(before=400, features=features)))
    (only,) = combinations({"preset": ["light"], "window": [300]})
    (method,) = grid_plan([only]).methods
    assert method.for_features() == [method]
    found = method(without_forecasts(file))
    # The alarm rate is the benchmark's, unless it is tried.
    same = Detector(features, preset="light", window=300, alarm_rate=0.001)
    expected = same.run(file.values)
    assert np.array_equal(found.p, expected.p, equal_nan=True)
    assert np.array_equal(found.severity, expected.evidence, equal_nan=True)
    assert len(found.incidents) == len(same.incidents)


def test_other_processes_get_the_plan():
    plan = grid_plan(combinations({"preset": ["light"], "window": [300, 400]}))
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_the_alarm_rate_can_be_tried():
    (only,) = combinations({"alarm_rate": [0.02], "preset": ["light"]})
    assert only.settings["alarm_rate"] == 0.02


def test_constants_can_be_tried(tmp_path):
    file = read_file(write_file(tmp_path, name_of(), noise(before=900)))
    usual, same, other = (
        grid_plan(combinations({"preset": ["light"], **tried})).methods[0](without_forecasts(file)).severity
        for tried in ({}, {"witnesses": [constants().witnesses]}, {"witnesses": [1.0]})
    )
    assert np.array_equal(usual, same, equal_nan=True)
    assert np.nanmax(other - usual) > 1
    with changed(witnesses=1.0):
        expected = Detector(preset="light", alarm_rate=0.001).run(file.values).evidence
    assert np.array_equal(other, expected, equal_nan=True)
    assert constants().witnesses != 1


@pytest.mark.parametrize("value", [0, -1.0, "two", True])
def test_a_constant_must_be_a_positive_number(value):
    with pytest.raises(ValueError, match=r"certainty must be a positive number like 3\.0, got"):
        combinations({"certainty": [value]})
