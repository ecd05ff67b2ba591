"""Methods by the rules of other benchmarks: from traces to tables, as a user calls them."""

import numpy as np
import pytest

from tests.cli.calling import invoke, words
from tests.evaluation.bench.making import FAULT, name_of, noise, write_file
from tests.evaluation.bench.test_archives import write_nab
from tocsin_bench.files import LabelledFile
from tocsin_bench.metrics.nab import PROFILES, ScoredFile, nab_score
from tocsin_bench.report.public import NAB_PUBLISHED, near_anomaly, trace_scores
from tocsin_bench.results import BenchmarkResults, trace_path

QUICK = ["--method", "ewma-288", "--jobs", "1"]


@pytest.mark.slow
def test_nab_from_files_to_scores(tmp_path):
    folder = write_nab(tmp_path / "nab", {"a.csv": [(148, 160)], "b.csv": []})
    done = invoke("bench", "nab", folder, "--out", tmp_path / "out", *QUICK, "--method", "tocsin-light")
    assert done.exit_code == 0, done.output
    windows = {"a": np.array([[148, 160]]), "b": np.empty((0, 2), dtype=np.int64)}
    files = [
        ScoredFile(trace_scores(trace_path(tmp_path / "out", name, "", "ewma-288")), windows[name]) for name in "ab"
    ]
    wanted = [nab_score(files, profile).score for profile in PROFILES.values()]
    row = next(line.split() for line in done.stdout.splitlines() if "ewma-288" in line)
    assert row == ["ewma-288", "score", *(f"{score:.1f}" for score in wanted), "2"]
    assert wanted[0] > 0
    light = [line.split() for line in done.stdout.splitlines() if "tocsin-light" in line]
    assert [row[:-4] for row in light] == [
        ["tocsin-light", "severity"],
        ["tocsin-light,", "its", "incidents", "nothing"],
    ]
    # The published numbers are of other files, and it says so.
    assert "Only 2 of NAB's 58 files: the published numbers are of all of them" in words(done)
    assert all(name in done.stdout for name in NAB_PUBLISHED)
    assert (tmp_path / "out" / "nab.csv").is_file()

    with BenchmarkResults.existing(tmp_path / "out") as results:
        before = results.runs()
    again = invoke("bench", "nab", folder, "--out", tmp_path / "out", *QUICK, "--method", "tocsin-light")
    assert again.stdout == done.stdout
    with BenchmarkResults.existing(tmp_path / "out") as results:
        assert repr(results.runs()) == repr(before)  # nothing was run again


def test_ucr_from_files_to_accuracy(tmp_path):
    folder = tmp_path / "ucr"
    folder.mkdir()
    write_file(folder, name_of(1, "UCR"))
    elsewhere = np.zeros(600, dtype=int)
    elsewhere[590:] = 1
    far = noise(600)
    far[400:] = far[300]  # the only fault is far from what is labelled
    write_file(folder, name_of(2, "UCR"), far, elsewhere)
    done = invoke("bench", "ucr", folder, "--out", tmp_path / "out", *QUICK)
    assert done.exit_code == 0, done.output
    row = next(line.split() for line in done.stdout.splitlines() if "ewma-288" in line)
    assert row == ["ewma-288", "score", "0.500", "1", "2"]
    assert "Only 2 files; the archive has 250." in words(done)
    one = invoke("bench", "ucr", folder, "--out", tmp_path / "out", "--limit", "1", *QUICK)
    assert ["ewma-288", "score", "1.000", "1", "1"] in [line.split() for line in one.stdout.splitlines()]


@pytest.mark.parametrize(("place", "near"), [(49, False), (50, True), (152, True), (255, True), (256, False)])
def test_near_is_within_100_of_the_anomaly(place, near):
    labels = np.zeros(400, dtype=bool)
    labels[FAULT] = True
    file = LabelledFile("one", "UCR", 20, np.zeros((400, 1)), labels)
    scores = np.zeros(400)
    scores[place] = 2.0
    scores[5] = 9.0  # in the training part
    assert near_anomaly(scores, file) == near


def test_severity_orders_where_there_is_one(tmp_path):
    p = np.array([0.5, np.nan, 0.1])
    np.savez(tmp_path / "p.npz", p=p)
    np.savez(tmp_path / "both.npz", p=p, severity=np.array([1.0, np.nan, 7.0]))
    assert trace_scores(tmp_path / "p.npz").tolist() == [0.5, -np.inf, 0.9]
    assert trace_scores(tmp_path / "both.npz").tolist() == [1.0, -np.inf, 7.0]


@pytest.mark.parametrize("command", ["nab", "ucr"])
def test_what_is_missing_is_a_usage_error(command, tmp_path):
    done = invoke("bench", command, tmp_path, "--out", tmp_path / "out", *QUICK)
    assert done.exit_code == 2
    assert "must" in words(done)
    wrong = invoke("bench", command, tmp_path, "--out", tmp_path / "out", "--method", "wizard")
    assert wrong.exit_code == 2
