"""Files of the same name are told apart by what is in them."""

import hashlib
import re
import shutil
import sqlite3

import numpy as np
import pytest

from tests.evaluation.bench.making import make_folder, name_of, noise, write_file, write_text
from tocsin_bench.forecast_errors import ForecasterChoice
from tocsin_bench.methods import METHODS
from tocsin_bench.results import FILE_NAME, BenchmarkResults, JudgedFile, MethodRun
from tocsin_bench.runner import RunPlan, run_benchmark
from tocsin_bench.sources import refuse_other_files, source_of

PLAN = RunPlan((ForecasterChoice("last-value"),), (METHODS["conformal"],), horizons=2)


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "files")


@pytest.fixture
def results(tmp_path):
    with BenchmarkResults(tmp_path / "out") as results:
        yield results


def paths_in(folder):
    return sorted(folder.glob("*.csv"))


@pytest.fixture
def judged(folder, results):
    run_benchmark(paths_in(folder), PLAN, results)
    return results


@pytest.fixture
def without_sources(judged):
    """The results as they were kept before there were notes on where they come from."""
    judged.__exit__()
    with sqlite3.connect(judged.folder / FILE_NAME) as connection:
        connection.execute("DROP TABLE sources")
    connection.close()
    with BenchmarkResults.existing(judged.folder) as results:
        yield results


def test_a_source(tmp_path):
    path = write_text(tmp_path, "abc", "a_1")
    assert source_of(path) == JudgedFile("a_1", str(path.resolve()), 3, hashlib.sha256(b"abc").hexdigest())


def test_what_was_judged_is_noted(folder, judged):
    expected = {path.stem: source_of(path) for path in paths_in(folder)}
    with BenchmarkResults.existing(judged.folder) as again:
        assert again.sources() == expected


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_only_what_went_well_is_noted(results, status):
    source = JudgedFile("a_1", "/a_1.csv", 3, "00")
    results.add([MethodRun("a_1", "A", "", "poly", status=status)], (), source)
    assert results.sources() == {}
    results.add([MethodRun("a_1", "A", "", "sand", status=status), MethodRun("a_1", "A", "", "poly")], (), source)
    assert results.sources() == {"a_1": source}


def test_the_same_content_elsewhere_is_the_same(folder, judged, tmp_path):
    folder.rename(tmp_path / "moved")
    refuse_other_files(paths_in(tmp_path / "moved"), judged)


def test_another_content_is_refused_by_name(folder, judged, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    was = source_of(folder / f"{name_of(2)}.csv")
    text = (other / f"{name_of(2)}.csv").read_text()
    path = write_text(other, text.replace("1.", "2.", 1), name_of(2))
    assert path.stat().st_size == was.size
    with pytest.raises(ValueError, match="take another folder") as refused:
        refuse_other_files(paths_in(other), judged)
    told = str(refused.value)
    for words in (
        str(judged.folder),
        "other files with the same names:",
        name_of(2),
        was.path,
        str(path),
        was.sha256[:8],
    ):
        assert words in told
    write_file(other, name_of(1), noise(seed=9))
    with pytest.raises(ValueError, match=re.escape("same names (and 1 more):")):
        refuse_other_files(paths_in(other), judged)


def test_new_files_and_files_that_cannot_be_read_are_let_through(folder, judged):
    write_file(folder, name_of(7))
    path = folder / f"{name_of(1)}.csv"
    path.unlink()
    path.symlink_to(folder / "gone")
    refuse_other_files([*paths_in(folder), path], judged)


def test_older_results_are_compared_with_what_was_judged(folder, without_sources):
    values = noise(seed=2)
    values[7] = np.nan
    refuse_other_files(paths_in(folder), without_sources)
    write_text(folder, "", name_of(1))  # skipped, and not refused
    refuse_other_files(paths_in(folder), without_sources)
    write_file(folder, name_of(2), values)
    with pytest.raises(ValueError, match=f"{name_of(2)}.csv is not the one that was judged") as refused:
        refuse_other_files(paths_in(folder), without_sources)
    assert str(without_sources.signal_of(name_of(2))) in str(refused.value)


def test_missing_values_are_no_difference(folder, tmp_path):
    values = noise(seed=2)
    values[7] = np.nan
    path = write_file(folder, name_of(2), values)
    with BenchmarkResults(tmp_path / "out") as results:
        run_benchmark([path], PLAN, results)
        results._connection.execute("DELETE FROM sources")
        refuse_other_files([path], results)


@pytest.mark.parametrize("damage", ["gone", "broken"])
def test_older_results_that_nothing_can_be_compared_with(folder, without_sources, damage):
    signal = without_sources.signal_of(name_of(1))
    signal.unlink()
    if damage == "broken":
        signal.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(ValueError, match=r"nothing tells whether .* is the one that was judged"):
        refuse_other_files(paths_in(folder), without_sources)


def test_older_results_are_noted_when_something_is_added(folder, without_sources):
    assert without_sources.sources() == {}
    run_benchmark(paths_in(folder), RunPlan(PLAN.forecasters, (METHODS["gaussian"],), horizons=2), without_sources)
    assert without_sources.sources().keys() == {path.stem for path in paths_in(folder)}
    assert len(without_sources.runs()) == 2 * 4


def test_the_signal_is_that_of_the_runs(folder, results):
    """What lies there from a run that was interrupted before anything was noted does not stay."""
    (path,) = (path for path in paths_in(folder) if path.stem == name_of(1))
    signal = results.signal_of(path.stem)
    signal.parent.mkdir(parents=True)
    np.savez(signal, values=np.zeros((3, 1)), labels=np.zeros(3), first_evaluated=1)
    run_benchmark([path], PLAN, results)
    with np.load(signal) as kept:
        assert np.array_equal(kept["values"], noise(seed=1))
