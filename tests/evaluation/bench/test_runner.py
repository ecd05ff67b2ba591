"""Whole benchmarks on tiny files: everything that goes wrong is a row, and the others go on."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation.bench.making import (
    FAULT,
    LENGTH,
    make_folder,
    name_of,
    noise,
    write_all_normal,
    write_file,
    write_text,
)
from tocsin_bench import runner
from tocsin_bench.baselines import min_max_pseudo_p
from tocsin_bench.files import read_file
from tocsin_bench.forecast_errors import ForecasterChoice, make_material, without_forecasts
from tocsin_bench.methods import METHODS, Method
from tocsin_bench.metrics import (
    MIN_MAX_THRESHOLDS,
    THRESHOLDS,
    evaluate,
    false_positive_rate,
    find_window,
    time_under_incidents,
)
from tocsin_bench.results import BenchmarkResults, MethodRun
from tocsin_bench.rivals import RIVALS
from tocsin_bench.runner import RunPlan, judge_file, run_benchmark

LAST_VALUE = ForecasterChoice("last-value")
CONFORMAL, GAUSSIAN = METHODS["conformal"], METHODS["gaussian"]
PLAN = RunPlan((LAST_VALUE,), (CONFORMAL, GAUSSIAN), horizons=2)
FATAL = name_of(8, "FATAL")


def _fatal(material, settings, merge_features):
    """A method that takes its process with it, on one of the files."""
    if material.file.name == FATAL:
        os._exit(1)
    return CONFORMAL(material)


def _raising(material, settings, merge_features):
    raise ZeroDivisionError("nothing to divide by")


def interrupt(name):
    raise KeyboardInterrupt


RAISING = Method("raising", "never works", _raising, {})


@pytest.fixture
def folder(tmp_path):
    """Two good files, one all normal, one with two features and one that nobody can read."""
    folder = make_folder(tmp_path / "files")
    write_all_normal(folder, name_of(4))
    write_text(folder, "a,Label\n1,0\nx,1\n", name_of(5))
    return folder


@pytest.fixture
def results(tmp_path):
    with BenchmarkResults(tmp_path / "out") as results:
        yield results


def run_all(folder, plan, results, **more):
    run_benchmark(sorted(folder.glob("*.csv")), plan, results, **more)
    return {run.key: run for run in results.runs()}


def comparable(run):
    """A run without what differs from one time to the next; NaN by its words."""
    return repr(replace(run, seconds=0.0))


def test_a_row_for_everything(folder, results):
    told = []
    runs = run_all(folder, PLAN, results, progress=told.append)
    single = {
        (name_of(number), "last-value", method) for number in (1, 2, 4, 5) for method in ("conformal", "gaussian")
    }
    merged = {f"{method}-{merge}" for method in ("conformal", "gaussian") for merge in ("fisher", "harmonic")}
    assert runs.keys() == single | {(name_of(3, "MANY"), "last-value", method) for method in merged}
    assert sorted(told) == sorted(path.stem for path in folder.glob("*.csv"))
    assert {run.file for run in runs.values() if run.status != "ok"} == {name_of(5)}
    unreadable = runs[name_of(5), "last-value", "gaussian"]
    assert (unreadable.status, unreadable.dataset) == ("skipped", "TINY")
    assert unreadable.problem.startswith("line 3 must hold numbers")
    normal = runs[name_of(4), "last-value", "conformal"]
    assert normal.problem.startswith("nothing is labelled an anomaly")
    assert np.isnan(normal.metrics["auc_pr"])
    assert 0 <= normal.metrics["false_positive_rate"] <= 1
    many = runs[name_of(3, "MANY"), "last-value", "gaussian-fisher"]
    assert (many.dataset, many.features, many.observations) == ("MANY", 2, LENGTH)
    assert {errors.file for errors in results.forecasts()} == {path.stem for path in folder.glob("*.csv")} - {
        name_of(5)
    }


def test_only_what_comes_after_calibration_is_evaluated(folder, results):
    run = run_all(folder, PLAN, results)[name_of(1), "last-value", "conformal"]
    file = read_file(folder / f"{name_of(1)}.csv")
    p = CONFORMAL(make_material(file, LAST_VALUE, 2)).p
    expected = evaluate(file.labels[100:], p[100:], window=find_window(file.values[:, 0]), calibration=p[:100]).row()
    assert run.metrics == pytest.approx(expected, nan_ok=True)
    assert run.false_positive_rates == false_positive_rate(file.labels[100:], p[100:], THRESHOLDS).tolist()
    assert run.seconds > 0


def test_whole_files_by_the_protocol_of_tsb_ad(folder, results):
    run = run_all(folder, replace(PLAN, protocol="tsb-ad"), results)[name_of(1), "last-value", "conformal"]
    file = read_file(folder / f"{name_of(1)}.csv")
    p = CONFORMAL(make_material(file, LAST_VALUE, 2)).p
    expected = evaluate(file.labels, p, window=find_window(file.values[:, 0]))
    assert (run.metrics["whole_vus_pr"], run.metrics["whole_auc_pr"]) == (expected.vus_pr, expected.auc_pr)
    assert run.metrics["vus_pr"] == evaluate(file.labels[100:], p[100:], window=find_window(file.values[:, 0])).vus_pr
    assert run.metrics["vus_pr"] != run.metrics["whole_vus_pr"]


@pytest.mark.slow
def test_incidents_of_a_method_s_own_are_counted_after_calibration(folder, results):
    ours = METHODS["tocsin"]
    path = write_file(folder, name_of(6), noise(before=1500))
    run_benchmark([path], replace(PLAN, methods=(ours,)), results)
    (run,) = results.runs()
    file = read_file(path)
    judgement = ours(without_forecasts(file))
    expected = time_under_incidents(file.labels[100:], judgement.incidents - 100)
    assert (run.metrics["budget_fault_time"], run.metrics["budget_normal_time"]) == expected
    assert expected[0] > 0


@pytest.mark.slow
def test_a_method_that_forecasts_for_itself_is_run_once(folder, results, monkeypatch):
    forecast = []
    monkeypatch.setattr(
        runner, "make_material", lambda file, *more: forecast.append(file.name) or make_material(file, *more)
    )
    drifting = ForecasterChoice("exponential-smoothing")
    light = replace(PLAN, forecasters=(LAST_VALUE, drifting), methods=(METHODS["tocsin-light"],))
    runs = run_all(folder, light, results)
    names = (*map(name_of, (1, 2, 4, 5)), name_of(3, "MANY"))  # several features make one row
    assert runs.keys() == {(name, "", "tocsin-light") for name in names}
    assert forecast == []
    assert runs[name_of(1), "", "tocsin-light"].status == "ok"
    both = run_all(folder, replace(light, methods=(*light.methods, CONFORMAL)), results)
    assert {key[1:] for key in both.keys() - runs.keys() if key[0] == name_of(1)} == {
        ("last-value", "conformal"), ("exponential-smoothing", "conformal"),
    }  # fmt: skip
    assert all(repr(both[key]) == repr(run) for key, run in runs.items() if run.status == "ok")


def test_rivals(folder, results):
    runs = run_all(folder, RunPlan(rivals=("z-score-100", "regression-16")), results)
    file = read_file(folder / f"{name_of(1)}.csv")
    p = min_max_pseudo_p(RIVALS["z-score-100"](file))
    expected = evaluate(file.labels[100:], p[100:], window=find_window(file.values[:, 0]),
                        thresholds=MIN_MAX_THRESHOLDS, calibration=p[:100])  # fmt: skip
    assert runs[name_of(1), "", "z-score-100"].metrics == pytest.approx(expected.row(), nan_ok=True)
    # Several features make one row, not one for each way to merge p-values: these are none.
    assert runs[name_of(3, "MANY"), "", "regression-16"].status == "ok"
    assert runs[name_of(5), "", "regression-16"].status == "skipped"
    assert len(runs) == 2 * 5
    assert results.forecasts() == []


def test_traces_for_pictures(folder, results):
    run_all(folder, replace(PLAN, methods=(METHODS["w1-acas"], GAUSSIAN)), results)
    file = read_file(folder / f"{name_of(1)}.csv")
    with np.load(results.signal_of(file.name)) as signal:
        assert np.array_equal(signal["values"], file.values)
        assert np.array_equal(signal["labels"], file.labels)
        assert signal["first_evaluated"] == 100
    expected = METHODS["w1-acas"](make_material(file, LAST_VALUE, 2))
    with np.load(results.trace_of(file.name, "last-value", "w1-acas")) as trace:
        assert np.array_equal(trace["p"], expected.p, equal_nan=True)
        assert np.array_equal(trace["weights"], expected.weights)
    with np.load(results.trace_of(file.name, "last-value", "gaussian")) as trace:
        assert list(trace) == ["p"]


def test_no_trace_is_left_in_halves(folder, results, monkeypatch):
    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_all(folder, PLAN, results)
    assert not list(results.folder.rglob("*.npz"))
    run_all(folder, PLAN, results)
    written = [path for path in (results.folder / "traces").rglob("*") if path.is_file()]
    assert len(written) == 4 + 10
    assert {path.suffix for path in written} == {".npz"}


def test_an_interrupted_run_goes_on(folder, results, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        run_all(folder, PLAN, results, progress=interrupt)
    kept = results.runs()
    assert len({run.file for run in kept}) == 1
    forecast = []
    monkeypatch.setattr(
        runner, "make_material", lambda file, *more: forecast.append(file.name) or make_material(file, *more)
    )
    runs = run_all(folder, PLAN, results)
    assert sorted(forecast) == sorted({name_of(1), name_of(2), name_of(4), name_of(3, "MANY")} - {kept[0].file})
    assert len(runs) == 12
    # Not even their times are others.
    assert all(repr(runs[run.key]) == repr(run) for run in kept)
    forecast.clear()
    run_all(folder, PLAN, results)
    assert forecast == []


def test_who_interrupts_does_not_wait_for_the_others(folder, results, monkeypatch):
    begun = []

    def slow(path, *more):
        begun.append(path)
        time.sleep(0.05)
        return judge_file(path, *more)

    # Threads in place of processes: what is left undone is the same.
    monkeypatch.setattr(runner, "ProcessPoolExecutor", lambda jobs, mp_context: ThreadPoolExecutor(1))
    monkeypatch.setattr(runner, "judge_file", slow)
    with pytest.raises(KeyboardInterrupt):
        run_all(folder, PLAN, results, jobs=2, progress=interrupt)
    assert len(begun) < 4
    assert len({run.file for run in results.runs()}) == 1


@pytest.mark.slow
def test_a_method_more_is_all_that_is_run(folder, results):
    before = run_all(folder, PLAN, results)
    after = run_all(folder, replace(PLAN, methods=(*PLAN.methods, METHODS["fixed-window"])), results)
    added = {key[2] for key in after.keys() - before.keys()}
    assert added == {"fixed-window", "fixed-window-fisher", "fixed-window-harmonic"}
    assert all(repr(after[key]) == repr(run) for key, run in before.items())


def test_a_file_that_was_mended_is_run(folder, results):
    run_all(folder, PLAN, results)
    write_file(folder, name_of(5))
    assert run_all(folder, PLAN, results)[name_of(5), "last-value", "conformal"].status == "ok"


@pytest.mark.slow
def test_a_file_that_broke_later_keeps_what_it_had(folder, results):
    before = run_all(folder, PLAN, results)
    (folder / f"{name_of(1)}.csv").unlink()
    (folder / f"{name_of(1)}.csv").symlink_to(folder / "gone")
    after = run_all(folder, replace(PLAN, methods=(CONFORMAL, METHODS["fixed-window"])), results)
    kept = (name_of(1), "last-value", "conformal")
    assert repr(after[kept]) == repr(before[kept])
    assert after[name_of(1), "last-value", "fixed-window"].problem.startswith("it cannot be read")


def test_a_link_that_leads_nowhere_is_a_row(folder, results):
    (folder / f"{name_of(6)}.csv").symlink_to(folder / "gone")
    run = run_all(folder, PLAN, results)[name_of(6), "last-value", "conformal"]
    assert (run.status, run.problem[:17]) == ("skipped", "it cannot be read")


def test_files_of_several_features_that_cannot_be_read_are_told_from_others(folder, results):
    write_text(folder, "a,b,Label\n1,2,0\n", name_of(6, "MANY"))
    run = run_all(folder, PLAN, results)[name_of(6, "MANY"), "last-value", "gaussian-harmonic"]
    assert (run.status, run.features) == ("skipped", 2)


def test_a_method_that_raises_is_a_row(folder, results):
    runs = run_all(folder, replace(PLAN, methods=(RAISING, CONFORMAL)), results)
    failed = runs[name_of(1), "last-value", "raising"]
    assert (failed.status, failed.problem) == ("failed", "ZeroDivisionError: nothing to divide by")
    assert runs[name_of(1), "last-value", "conformal"].status == "ok"
    # It has another chance the next time.
    again = run_all(folder, replace(PLAN, methods=(replace(CONFORMAL, name="raising"),)), results)
    assert again[name_of(1), "last-value", "raising"].status == "ok"


def test_a_forecaster_that_raises_is_a_row_for_every_method(folder, results):
    refused = ForecasterChoice("seasonal-naive", {"period": -1})
    runs = run_all(folder, replace(PLAN, forecasters=(refused, LAST_VALUE)), results)
    for method in ("conformal", "gaussian"):
        failed = runs[name_of(1), "seasonal-naive-period=-1", method]
        assert (failed.status, "period" in failed.problem) == ("failed", True)
        assert runs[name_of(1), "last-value", method].status == "ok"


@pytest.mark.full
def test_two_processes_give_the_same_and_one_that_dies_takes_nothing_along(folder, results, tmp_path):
    write_file(folder, FATAL)
    plan = replace(PLAN, methods=(CONFORMAL, Method("fatal", "dies on one file", _fatal, {})))
    told = []
    done = MethodRun(FATAL, "FATAL", "last-value", "conformal", problem="from an earlier time")
    results.add([done])
    found = run_all(folder, plan, results, jobs=2, progress=told.append)
    assert sorted(told) == sorted(path.stem for path in folder.glob("*.csv"))
    killed = found.pop((FATAL, "last-value", "fatal"))
    assert killed.status == "failed"
    assert killed.problem.startswith("its process was killed")
    assert found.pop(done.key) == done
    (folder / f"{FATAL}.csv").unlink()
    with BenchmarkResults(tmp_path / "one by one") as other:
        expected = run_all(folder, plan, other)
        assert found.keys() == expected.keys()
        assert all(comparable(found[key]) == comparable(run) for key, run in expected.items())


def faint_scores():
    """Scores that only the thresholds for scores can tell apart: the fault pales beside the calibration part."""
    scores = np.zeros(LENGTH)
    scores[FAULT] = 0.008
    scores[20] = 1
    return scores


def test_scores_from_elsewhere(folder, results, tmp_path):
    scores, p = tmp_path / "scores", tmp_path / "p"
    scores.mkdir()
    p.mkdir()
    marked = faint_scores()
    (scores / f"{name_of(1)}.csv").write_text("score\n" + "".join(f"{mark}\n" for mark in marked))
    (p / f"{name_of(1)}.csv").write_text("p\n" + "".join(f"{1 - mark}\n" for mark in marked))
    (p / f"{name_of(2)}.csv").write_text("p\n1\n")
    runs = run_all(folder, RunPlan(outside=(("scored", scores), ("law", p))), results)
    assert runs[name_of(1), "", "csv-scored"].metrics["pointwise_f1"] == 1
    # The same numbers as p-values are far above every threshold that there is for those.
    assert runs[name_of(1), "", "csv-law"].metrics["pointwise_f1"] == pytest.approx(2 * 6 / (80 + 6))
    assert runs[name_of(1), "", "csv-law"].metrics["auc_pr"] == 1
    assert "there is no file" in runs[name_of(2), "", "csv-scored"].problem
    assert "must have 180 rows" in runs[name_of(2), "", "csv-law"].problem
    assert runs[name_of(2), "", "csv-law"].status == "failed"
    assert results.forecasts() == []


class FakeWorker:
    """Stands for TSB-AD: scores for `poly`, an error for everything else."""

    def __init__(self):
        self.asked = []

    def scores(self, name, values, calibration, timeout):
        self.asked.append((name, values.shape, calibration, timeout))
        if name != "poly":
            raise RuntimeError("no luck")
        return 5 + 7 * faint_scores()


def test_baselines(folder, results, monkeypatch):
    worker = FakeWorker()
    monkeypatch.setattr(runner, "_baseline_worker", lambda python: worker)
    plan = RunPlan(baselines=("poly", "cnn"), baseline_python="python", baseline_timeout=7.0)
    runs = run_all(folder, plan, results)
    assert ("poly", (LENGTH, 1), 100, 7.0) in worker.asked
    found = runs[name_of(1), "", "poly"]
    assert (found.metrics["auc_pr"], found.metrics["pointwise_f1"]) == (1, 1)
    failed = runs[name_of(1), "", "cnn"]
    assert (failed.status, failed.problem) == ("failed", "RuntimeError: no luck")
    # One that takes a single feature is not even asked.
    assert runs[name_of(3, "MANY"), "", "poly"].problem == "it takes signals of one feature only"
    assert ("poly", (LENGTH, 2), 100, 7.0) not in worker.asked
    assert ("cnn", (LENGTH, 2), 100, 7.0) in worker.asked
