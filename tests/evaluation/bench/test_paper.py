"""The paper's printed numbers."""

import csv
import math
from collections import Counter
from importlib import resources

import pytest

from tocsin_bench.paper import paper_value

METRICS = 6


@pytest.fixture(scope="module")
def rows():
    with resources.files("tocsin_bench").joinpath("paper.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_printed_row_is_there_once(rows):
    assert len({tuple(row.values())[:5] for row in rows}) == len(rows)
    # 18 methods in the summary and on each of 7 data sets, but for SAND on WSD; 7 on each of 4 multivariate ones.
    expected = {"summary": 18, "univariate": 7 * 18 - 1, "multivariate": 4 * 7}
    counts = Counter(row["table"] for row in rows)
    assert counts == {name: METRICS * number for name, number in expected.items()} | {"forecast": 2 * 3 * 7}


def test_numbers_are_possible(rows):
    for row in rows:
        if row["table"] != "forecast":
            assert 0 <= float(row["mean"]) <= 1
        # A standard deviation is missing where the data set is one file.
        assert (row["sd"] == "") == (row["dataset"] in ("GECCO", "Genesis"))


@pytest.mark.parametrize(
    ("key", "mean", "sd"),
    [
        (("all", "tirex", "w1-acas", "point_adjusted_f1"), 0.925, 0.048),
        (("all", "", "moment", "vus_pr"), 0.461, 0.162),
        (("YAHOO", "chronos", "gaussian", "affiliation_f1"), 0.846, 0.098),
        (("NEK", "", "cnn", "point_adjusted_false_positive_rate"), 0.0, 0.0),
        (("Stock", "", "kshape", "auc_pr"), 0.060, 0.036),
        (("MSL", "ttm", "conformal", "point_adjusted_calibration_error"), 0.165, 0.368),
        (("IOPS", "tirex", "gaussian", "vus_pr"), 0.304, 0.207),
        (("TAO", "chronos", "w1-acas-harmonic", "point_adjusted_calibration_error"), 0.251, 0.110),
        (("WSD", "ttm", "", "mae"), 139.11, 183.01),
        (("NAB", "chronos", "", "rmse"), 341.38, 1487.54),
    ],
)
def test_values(key, mean, sd):
    found = paper_value(*key)
    assert (found.mean, found.sd) == (mean, sd)
    assert (found.forecaster, found.method) == key[1:3]


def test_single_files_have_no_deviation():
    found = paper_value("Genesis", "tirex", "w1-acas-fisher", "affiliation_f1")
    assert found.mean == 0.912
    assert math.isnan(found.sd)


def test_names_of_data_sets_in_any_case():
    assert paper_value("nek", "chronos", "w1-acas", "auc_pr").mean == 0.408
    assert paper_value("gecco", "chronos", "w1-acas-fisher", "auc_pr").mean == 0.231
    assert paper_value("gecco", "chronos", "w1-acas-harmonic", "auc_pr").mean == 0.110


def test_other_forecasters_are_compared_with_tirex():
    assert paper_value("NEK", "embedded-512", "conformal", "auc_pr") == paper_value(
        "NEK", "tirex", "conformal", "auc_pr"
    )
    assert paper_value("NEK", "embedded-512", "conformal", "auc_pr").forecaster == "tirex"
    assert paper_value("NEK", "ttm-512", "conformal", "auc_pr").forecaster == "ttm"


@pytest.mark.parametrize(
    "key",
    [
        ("WSD", "", "sand", "auc_pr"),
        ("NEK", "chronos", "fixed-window", "auc_pr"),
        ("NEK", "", "tocsin", "auc_pr"),
        ("NEK", "", "tocsin-light", "auc_pr"),
        ("NEK", "chronos", "w1-acas", "auc_roc"),
        ("NEK", "chronos", "csv-w1-acas", "auc_pr"),
        ("unheard of", "chronos", "w1-acas", "auc_pr"),
        ("TAO", "chronos", "", "mae"),
    ],
)
def test_what_is_not_printed(key):
    assert paper_value(*key) is None


def test_tables_are_not_mixed_up():
    assert paper_value("MSL", "", "cnn", "auc_pr", several_features=False).mean == 0.105
    assert paper_value("MSL", "", "cnn", "auc_pr", several_features=True) is None
    assert paper_value("TAO", "", "cnn", "auc_pr", several_features=True).mean == 0.895
    assert paper_value("TAO", "", "cnn", "auc_pr", several_features=False) is None
