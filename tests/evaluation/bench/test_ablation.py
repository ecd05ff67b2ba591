"""One setting after the other is changed, the others stay."""

import csv
import math

import numpy as np
import pytest

from tests.cases import full
from tests.evaluation.bench.making import name_of, noise, write_file
from tocsin.detection.paper.scoring import PAPER_OPTIONS
from tocsin_bench.ablation import SETTINGS, ablation_plan, ablation_rows, draw_ablation
from tocsin_bench.forecast_errors import ForecasterChoice
from tocsin_bench.report.formats import csv_text
from tocsin_bench.report.measures import MAIN
from tocsin_bench.results import BenchmarkResults, MethodRun
from tocsin_bench.runner import run_benchmark

METRICS = [measure.key for measure in MAIN]


def run_of(file, dataset, method, value, **more):
    return MethodRun(file, dataset, "last-value", method, metrics=dict.fromkeys(METRICS, value), **more)


def test_each_change_is_of_one_setting():
    plan = ablation_plan([ForecasterChoice("last-value")], ["batch", "alpha_c"])
    names = [method.name for method in plan.methods]
    assert names[:2] == ["w1-acas", "fixed-window[window=5000]"]
    assert len(set(names)) == len(names) == 11  # the paper's own values are in the first
    assert plan.horizons == 15
    for method in plan.methods[3:]:
        changed = {name for name, value in method.settings.items() if PAPER_OPTIONS[name] != value}
        assert len(changed) <= 1
    assert {method.settings["batch"] for method in (plan.methods[0], *plan.methods[3:])} == {2, 5, 10, 20, 50}
    assert all(type(method.settings["batch"]) is int for method in plan.methods[3:])


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_value_of_the_paper_is_among_those_tried(setting):
    assert {**PAPER_OPTIONS, "stride": PAPER_OPTIONS["batch"]}[setting] in SETTINGS[setting]


def test_means_by_data_set_and_over_all():
    runs = [
        run_of("a1", "A", "w1-acas[batch=2]", 0.2),
        run_of("a2", "A", "w1-acas[batch=2]", 0.4),
        run_of("a3", "A", "w1-acas[batch=2]", 0.9, status="failed"),
        run_of("b1", "B", "w1-acas[batch=2]", 0.7),
        run_of("b1", "B", "w1-acas[batch=5]", 0.1),
        run_of("b1", "B", "w1-acas", 0.99),
        run_of("m1", "B", "w1-acas[batch=2]-fisher", 0.99, features=2),
    ]
    header, *rows = ablation_rows(runs, ["batch"])
    assert header == ["setting", "value", "dataset", "metric", "mean", "sd", "n"]
    found = {(row[1], row[2]): [float(number) for number in row[4:]] for row in rows if row[3] == "vus_pr"}
    assert {row[0] for row in rows} == {"batch", "reference"}
    assert found["2", "A"] == pytest.approx([0.3, math.sqrt(0.02), 2], rel=1e-5)
    assert found["2", "B"] == pytest.approx([0.7, math.nan, 1], nan_ok=True)
    assert found["2", "all"][0] == pytest.approx((0.3 + 0.7) / 2)
    assert found["5", "all"][0] == pytest.approx(0.1)
    assert found["50", "all"] == pytest.approx([math.nan, math.nan, 0], nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("features", [full(1), 2])
def test_from_files_to_a_picture(tmp_path, features):
    path = write_file(tmp_path, name_of(), noise(features=features))
    plan = ablation_plan([ForecasterChoice("last-value")], ["horizons"])
    with BenchmarkResults(tmp_path / "out") as results:
        run_benchmark([path], plan, results)
        runs = results.runs()
    assert all(run.status == "ok" for run in runs)
    rows = list(csv.DictReader(csv_text(ablation_rows(runs, ["horizons"])).splitlines()))
    alarms = {row["value"]: row["mean"] for row in rows if (row["dataset"], row["metric"]) == ("TINY", "auc_pr")}
    alarms = {value: mean for value, mean in alarms.items() if value.isdigit()}
    # Files of several features have no place in it, and do no harm.
    assert list(alarms) == (["1", "2", "5", "10", "15"] if features == 1 else [])
    assert len(set(alarms.values())) == (5 if features == 1 else 0)
    draw_ablation(runs, ["horizons"], tmp_path / "ablation.png")

    from matplotlib.image import imread

    pixels = imread(tmp_path / "ablation.png")
    assert np.unique(pixels[..., :3].reshape(-1, 3), axis=0).shape[0] > 50
