"""What is kept comes back."""

import math
import sqlite3

import pytest

from tocsin_bench.results import (
    FILE_NAME,
    BenchmarkResults,
    ForecastErrors,
    MethodRun,
    signal_path,
    trace_path,
)

GOOD = MethodRun(
    "a_1", "A", "last-value", "conformal", {"window": 3, "prior": "extend"}, 2, 500, "ok", "nothing is labelled", 0.5,
    {"auc_pr": 0.25, "affiliation_f1": math.nan, "operation_median_delay": math.inf}, [0.0, 0.1, math.nan],
)  # fmt: skip
FAILED = MethodRun("a_1", "A", "", "poly", status="failed", problem="ValueError: no")
SKIPPED = MethodRun("b_2", "B", "", "poly", status="skipped", problem="it takes signals of one feature only")


@pytest.fixture
def results(tmp_path):
    with BenchmarkResults(tmp_path / "new" / "folder") as results:
        yield results


def test_runs_come_back_as_they_were(results):
    results.add([SKIPPED, GOOD, FAILED])
    with BenchmarkResults.existing(results.folder) as again:
        # NaN is no equal of itself; its words are.
        assert list(map(repr, again.runs())) == list(map(repr, [FAILED, GOOD, SKIPPED]))


def test_errors_of_forecasts_come_back_also_where_there_were_none(results):
    given = [
        ForecastErrors("a_1", "A", "last-value", 1, 40, math.nan, math.nan, 0.1),
        ForecastErrors("b_2", "B", "last-value", 1, 500, 1.5, 2.5, 0.1),
    ]
    results.add([], given)
    assert list(map(repr, results.forecasts())) == list(map(repr, given))


def test_only_what_went_well_is_finished(results):
    results.add([GOOD, FAILED, SKIPPED])
    assert results.finished() == {("a_1", "last-value", "conformal")}


def test_a_later_run_takes_the_place_of_an_earlier_one(results):
    results.add([FAILED, SKIPPED])
    better = MethodRun("a_1", "A", "", "poly", metrics={"auc_pr": 1.0})
    results.add([better])
    assert results.runs() == [better, SKIPPED]


def test_all_or_nothing(results):
    with pytest.raises(TypeError):
        results.add([SKIPPED, MethodRun("c_3", "C", "", "poly", settings={"model": object()})])
    assert results.runs() == []


def test_facts(results):
    results.describe({"horizons": "15", "machine": "old"})
    results.describe({"machine": "new"})
    assert results.about() == {"format": "1", "horizons": "15", "machine": "new"}


def test_damaged_results_are_refused(tmp_path):
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 100)
    with pytest.raises(ValueError, match=rf"{FILE_NAME} must be the results of a benchmark, got: file is not a data"):
        BenchmarkResults(tmp_path)


def test_results_of_another_format_are_refused_and_left_alone(tmp_path):
    with BenchmarkResults(tmp_path) as results:
        results.describe({"format": "2"})
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(ValueError, match=rf"{FILE_NAME} must have format 1, got '2'"):
        BenchmarkResults(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_tables_of_somebody_else_are_refused(tmp_path):
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("CREATE VIEW about AS SELECT 1 AS x")
    connection.close()
    with pytest.raises(ValueError, match="must be the results of a benchmark"):
        BenchmarkResults(tmp_path)


def test_a_folder_in_the_way(tmp_path):
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(ValueError, match=rf"{FILE_NAME} cannot be opened"):
        BenchmarkResults(tmp_path)


def test_only_results_that_are_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"nowhere holds no results: there is no {FILE_NAME} in it"):
        BenchmarkResults.existing(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_where_traces_are(results):
    assert results.trace_of("a_1", "embedded-52", "conformal") == trace_path(
        results.folder, "a_1", "embedded-52", "conformal"
    )
    assert results.signal_of("a_1") == signal_path(results.folder, "a_1")
    assert results.trace_of("a_1", "", "signal") != results.trace_of("a_1", "x", "signal")
