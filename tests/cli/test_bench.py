"""`tocsin bench`: run, report, ablate and select, as a user calls them."""

import csv

import numpy as np
import pytest

from tests.cases import full
from tests.cli.calling import invoke, run_process, words
from tests.evaluation.bench.making import LENGTH, make_folder, name_of, noise, write_all_normal, write_file, write_text
from tocsin.forecasting import available_forecasters
from tocsin_bench import ablation
from tocsin_bench.baselines import BASELINES
from tocsin_bench.methods import METHODS
from tocsin_bench.results import FILE_NAME, BenchmarkResults
from tocsin_bench.rivals import RIVALS

QUICK = ["--forecaster", "last-value", "--jobs", "1"]
ONE_METHOD = [*QUICK, "--method", "conformal", "--horizons", "2"]


@pytest.fixture
def folder(tmp_path):
    return make_folder(tmp_path / "files")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "deep" / "out"


def run(folder, out, *more):
    return invoke("bench", "run", folder, "--out", out, *more)


def runs_in(out):
    with BenchmarkResults.existing(out) as results:
        return results.runs()


@pytest.mark.full
@pytest.mark.parametrize("chosen", [("conformal", "tocsin-light", "ewma-288"), (*METHODS, *RIVALS)], ids=len)
def test_run_then_report(chosen, folder, out, tmp_path):
    result = run(folder, out, *QUICK, *(word for name in chosen for word in ("--method", name)))
    assert result.exit_code == 0, result.output
    assert f"tocsin bench report {out}" in words(result)
    # Two files of one feature, and one of two, which methods on forecasts merge in two ways.
    methods = [METHODS[name] for name in chosen if name in METHODS]
    merged = sum(len(method.for_features()) for method in methods)
    assert len(runs_in(out)) == 2 * len(methods) + merged + 3 * (len(chosen) - len(methods))
    assert {row.status for row in runs_in(out)} == {"ok"}

    report = invoke("bench", "report", out)
    assert report.exit_code == 0, report.output
    for method in chosen:
        assert method in report.stdout
    for heading in ("found", "fault time", "PA-F1", "VUS-PR", "last-value"):
        assert heading in report.stdout
    for name in ("summary.csv", "datasets.csv", "report.html", "tables/summary.md"):
        assert (out / "report" / name).stat().st_size > 100
    pictures = list((out / "report" / "figures").glob("*.png"))
    assert pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)

    plain = invoke("bench", "report", out, "--no-plot", "--to", tmp_path / "elsewhere")
    assert plain.exit_code == 0, plain.output
    assert (tmp_path / "elsewhere" / "report.html").is_file()
    assert not list((tmp_path / "elsewhere").rglob("*.png"))


@pytest.mark.slow
def test_what_is_there_is_not_run_again(folder, out):
    assert run(folder, out, *ONE_METHOD, "--dataset", "TINY", "--limit", 1).exit_code == 0
    first = runs_in(out)
    assert [row.file for row in first] == [name_of(1)]
    assert run(folder, out, *ONE_METHOD).exit_code == 0
    kept, *others = runs_in(out)
    assert repr(kept) == repr(first[0])  # its time too
    assert [row.key for row in others] == [
        (name_of(2), "last-value", "conformal"),
        (name_of(3, "MANY"), "last-value", "conformal-fisher"),
        (name_of(3, "MANY"), "last-value", "conformal-harmonic"),
    ]


@pytest.mark.slow
def test_a_folder_that_was_moved_goes_on(folder, out, tmp_path):
    assert run(folder, out, *ONE_METHOD).exit_code == 0
    before = runs_in(out)
    folder.rename(tmp_path / "moved")
    assert run(tmp_path / "moved", out, *ONE_METHOD).exit_code == 0
    assert list(map(repr, runs_in(out))) == list(map(repr, before))  # their times too


@pytest.mark.slow
@pytest.mark.parametrize("method", ["conformal", "gaussian"])
def test_other_files_of_the_same_name_need_another_folder(folder, out, tmp_path, method):
    assert run(folder, out, *ONE_METHOD).exit_code == 0
    before = (out / FILE_NAME).read_bytes()
    (tmp_path / "other").mkdir()
    write_file(tmp_path / "other", name_of(2), noise(seed=7))
    result = run(tmp_path / "other", out, *QUICK, "--method", method, "--horizons", 2)
    assert result.exit_code == 2
    told = "".join(words(result).split())  # a path may be broken over lines
    for word in ("--out", name_of(2), folder / f"{name_of(2)}.csv", tmp_path / "other", "take another folder"):
        assert "".join(str(word).split()) in told
    assert (out / FILE_NAME).read_bytes() == before
    assert run(tmp_path / "other", tmp_path / "second", *ONE_METHOD).exit_code == 0


@pytest.mark.slow
def test_several_processes_and_a_forecaster_with_options(folder, out):
    more = ["--forecaster", "seasonal-naive:period=12,search=400", "--method", "conformal", "--jobs", "2"]
    result = run_process("bench", "run", folder, "--out", out, "--dataset", "TINY", *more)
    assert result.returncode == 0, result.stderr
    assert [row.key for row in runs_in(out)] == [
        (name_of(number), "seasonal-naive-period=12-search=400", "conformal") for number in (1, 2)
    ]
    assert "tocsin bench report" in result.stdout
    assert "Traceback" not in result.stderr


def test_what_went_wrong_is_told_and_the_rest_done(folder, out):
    write_text(folder, "a,Label\n1,0\nx,1\n", name_of(4))
    write_all_normal(folder, name_of(5))
    result = run(folder, out, *ONE_METHOD)
    assert result.exit_code == 0
    told = " ".join(result.stderr.split())
    assert f"{name_of(4)}: skipped, conformal: line 3 must hold numbers" in told
    assert "skipped" not in result.stdout
    assert {row.file for row in runs_in(out) if row.status == "ok"} >= {name_of(1), name_of(5)}
    report = invoke("bench", "report", out, "--no-plot")
    assert report.exit_code == 0, report.output
    assert name_of(4) in (out / "report" / "report.html").read_text()


def test_nothing_went_well(tmp_path, out):
    write_text(tmp_path, "a,b\n1,0\n", name_of(1))
    for _ in range(2):
        result = run(tmp_path, out, *ONE_METHOD)
        assert result.exit_code == 1
        assert f"{name_of(1)}: skipped, conformal: its last column must be" in " ".join(result.stderr.split())
    assert invoke("bench", "report", out).exit_code == 0
    # What went well with another method is not what was asked for now.
    write_file(tmp_path, name_of(1))
    assert run(tmp_path, out, *ONE_METHOD).exit_code == 0
    (tmp_path / f"{name_of(1)}.csv").unlink()
    (tmp_path / f"{name_of(1)}.csv").symlink_to(tmp_path / "gone")
    assert run(tmp_path, out, *QUICK, "--method", "gaussian", "--horizons", 2).exit_code == 1


@pytest.mark.slow
def test_files_too_short_to_be_judged_can_be_reported(tmp_path, out):
    write_file(tmp_path, name_of(1, calibration=20), noise()[:50], [0] * 45 + [1] * 5)
    assert run(tmp_path, out, *ONE_METHOD).exit_code == 0
    result = invoke("bench", "report", out)
    assert result.exit_code == 0, result.output


@pytest.fixture
def scores(tmp_path):
    """What asks for scores from elsewhere, for two files."""
    scores = tmp_path / "scores"
    scores.mkdir()
    for number in (1, 2):
        (scores / f"{name_of(number)}.csv").write_text("score\n" + "".join(f"{i}\n" for i in range(LENGTH)))
    return ["--dataset", "TINY", "--jobs", "1", "--scores", f"mine={scores}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "methods"),
    [
        ([], set()),
        (["--method", "conformal", "--forecaster", "last-value"], {"conformal"}),
        full(["--forecaster", "last-value"], {*METHODS, *RIVALS}),
        (["--method", "z-score-100"], {"z-score-100"}),
    ],
)
def test_scores_from_elsewhere(folder, out, scores, more, methods):
    result = run(folder, out, *scores, *more)
    assert result.exit_code == 0, result.output
    found = runs_in(out)
    assert {row.method for row in found} == {"csv-mine", *methods}
    assert {row.file for row in found} == {name_of(1), name_of(2)}
    assert {row.status for row in found} == {"ok"}


@pytest.mark.slow
def test_scores_alone_go_with_any_horizons(folder, out, scores):
    assert run(folder, out, *scores).exit_code == 0
    assert run(folder, out, *ONE_METHOD, "--dataset", "TINY").exit_code == 0  # 2 horizons, not those of no forecast
    assert run(folder, out, *(text.replace("mine=", "yours=") for text in scores)).exit_code == 0
    with BenchmarkResults.existing(out) as results:
        assert results.about()["horizons"] == "2"
        assert {run.method for run in results.runs()} == {"csv-mine", "csv-yours", "conformal"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--method", "guess"], ["--method", "'guess'", *METHODS, *RIVALS, *BASELINES]),
        (["--dataset", "MOON"], ["--dataset", "MANY, TINY", "got MOON"]),
        (["--forecaster", "oracle"], ["--forecaster", "'oracle'", *available_forecasters()]),
        (["--forecaster", "last-value:depth=3"], ["--forecaster", "'last-value:depth=3'", "depth"]),
        (["--forecaster", "seasonal-naive:period"], ["for --forecaster:", "naive:period': 'period' is not NAME=VALUE"]),
        (["--forecaster", "seasonal-naive:period=-1"], ["--forecaster", "period", "got -1"]),
        (["--scores", "mine"], ["--scores", "'mine'", "NAME=FOLDER"]),
        (["--scores", "mine=nowhere"], ["--scores", "'mine=nowhere'", "NAME=FOLDER"]),
        (["--method", "poly"], ["poly", "--tsb-ad"]),
        (["--method", "poly", "--tsb-ad", "no-such-python"], ["--tsb-ad", "no-such-python"]),
        (["--horizons", "0"], ["--horizons", "'0'", "from 1 to 1024"]),
        (["--limit", "0"], ["--limit", "'0'", "from 1"]),
        (["--jobs", "many"], ["--jobs", "'many'", "from 1 to 1024"]),
    ],
)
def test_what_cannot_be_asked_for(folder, out, arguments, expected):
    refused(run(folder, out, *arguments), expected, out)


def refused(result, expected, out):
    """As a mistake of the user, who is told these words, and before anything was written."""
    assert result.exit_code == 2
    for word in expected:
        assert word in words(result)
    assert not out.exists()


def test_folders_without_files(tmp_path, out):
    (tmp_path / "empty").mkdir()
    for name, reason in (("nowhere", "must be a folder of CSV files"), ("empty", "must hold CSV files, found none")):
        result = run(tmp_path / name, out, *QUICK)
        assert result.exit_code == 2
        assert reason in words(result)
    assert not out.exists()


def test_a_file_in_the_way_of_the_results(folder, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    result = run(folder, taken, *ONE_METHOD)
    assert result.exit_code == 2
    assert "--out" in words(result)
    assert taken.read_text() == "mine"


def test_results_that_cannot_be_added_to(folder, out):
    out.mkdir(parents=True)
    (out / FILE_NAME).write_text("something else entirely")
    for result in (run(folder, out, *ONE_METHOD), invoke("bench", "report", out)):
        assert result.exit_code == 2
        assert "must be the results of a benchmark" in words(result)
    (out / FILE_NAME).unlink()
    (out / FILE_NAME).mkdir()
    assert run(folder, out, *ONE_METHOD).exit_code == 2


def test_a_part_of_the_files_is_known_whatever_was_run_first_or_last(folder, out):
    """More files of one data set do not complete another one."""
    few = ["--method", "ewma-288", "--jobs", 1]
    assert run(folder, out, *few, "--limit", 1).exit_code == 0
    assert run(folder, out, *few, "--dataset", "MANY").exit_code == 0
    assert invoke("bench", "report", out, "--no-plot").exit_code == 0
    page = out / "report" / "report.html"
    assert "Only a part was run: TINY 1 of 2 files" in page.read_text()
    assert run(folder, out, *few, "--dataset", "TINY").exit_code == 0
    assert invoke("bench", "report", out, "--no-plot").exit_code == 0
    assert "Only a part" not in page.read_text()


def test_other_horizons_need_another_folder(folder, out):
    assert run(folder, out, *ONE_METHOD, "--limit", 1).exit_code == 0
    before = runs_in(out)
    result = run(folder, out, *QUICK, "--method", "conformal", "--horizons", 3)
    assert result.exit_code == 2
    assert "holds results for 2 horizons, not 3" in words(result)
    result = run(folder, out, *QUICK, "--method", "conformal", "--horizons", 2, "--protocol", "tsb-ad")
    assert result.exit_code == 2
    assert "holds results by the protocol paper, not tsb-ad" in words(result)
    assert list(map(repr, runs_in(out))) == list(map(repr, before))


def test_reports_of_nothing(tmp_path, out):
    result = invoke("bench", "report", tmp_path)
    assert result.exit_code == 2
    assert "holds no results" in words(result)
    assert not (tmp_path / FILE_NAME).exists()
    BenchmarkResults(out).__exit__()
    result = invoke("bench", "report", out)
    assert result.exit_code == 2
    assert "holds no runs yet" in words(result)


def test_a_file_in_the_way_of_the_report(folder, out):
    run(folder, out, *ONE_METHOD, "--limit", 1)
    (out / "report").write_text("mine")
    result = invoke("bench", "report", out, "--no-plot")
    assert result.exit_code == 2
    assert "--to" in words(result)


@pytest.fixture
def second(tmp_path):
    """A folder with a file of a third data set."""
    (tmp_path / "second").mkdir()
    write_file(tmp_path / "second", name_of(4, "MORE"), noise(seed=4))
    return tmp_path / "second"


@pytest.mark.slow
def test_several_folders_are_as_one(folder, second, out, tmp_path):
    result = invoke("bench", "run", folder, second, "--out", out, *ONE_METHOD)
    assert result.exit_code == 0, result.output
    together = tmp_path / "together"
    together.mkdir()
    for path in (*folder.glob("*.csv"), *second.glob("*.csv")):
        (together / path.name).write_bytes(path.read_bytes())
    assert run(together, tmp_path / "one", *ONE_METHOD).exit_code == 0
    assert [row.key for row in runs_in(out)] == [row.key for row in runs_in(tmp_path / "one")]
    for results in (out, tmp_path / "one"):
        assert invoke("bench", "report", results, "--no-plot").exit_code == 0
    reports = [(results / "report" / "datasets.csv").read_text() for results in (out, tmp_path / "one")]
    assert reports[0] == reports[1]
    assert all(name in reports[0] for name in ("TINY", "MANY", "MORE"))


@pytest.mark.parametrize("command", [["run"], ["ablate"], ["select", "--try", "preset=light"]])
def test_two_files_of_the_same_name(folder, second, out, command):
    write_file(second, name_of(2), noise(seed=7))
    name, *more = command
    result = invoke("bench", name, folder, second, "--out", out, *more)
    refused(result, ["file names must be distinct"], out)
    told = "".join(words(result).split())  # a path may be broken over lines
    assert all(str(path / f"{name_of(2)}.csv") in told for path in (folder, second))


@pytest.mark.slow
def test_ablate_several_folders(folder, second, out):
    chosen = ["--setting", "horizons", "--limit", 1, "--no-plot", "--forecaster", "last-value", "--jobs", 1]
    result = invoke("bench", "ablate", folder, second, "--out", out, *chosen)
    assert result.exit_code == 0, result.output
    with (out / "ablation.csv").open() as file:
        assert {row["dataset"] for row in csv.DictReader(file)} == {"TINY", "MORE", "all"}


def ablate(folder, out, *more):
    return invoke("bench", "ablate", folder, "--out", out, "--jobs", "1", *more)


def means(out, metric="auc_pr"):
    with (out / "ablation.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "all" and row["metric"] == metric]
    return {(row["setting"], row["value"]): row["mean"] for row in rows}


@pytest.mark.slow
def test_ablate_one_setting(folder, out):
    chosen = ["--setting", "horizons", "--limit", 1]
    result = ablate(folder, out, *chosen, "--forecaster", "last-value")
    assert result.exit_code == 0, result.output
    assert "ablation.csv" in words(result)
    assert (out / "ablation.png").read_bytes().startswith(b"\x89PNG")
    found = means(out)
    tried = [("horizons", str(value)) for value in (1, 2, 5, 10, 15)]
    assert list(found) == [*tried, *(("reference", label) for label in ablation.REFERENCES)]
    assert len({found[one] for one in tried}) > 1
    assert "What each setting contributes" in result.stdout
    with (out / "ablation-means.csv").open() as file:
        rows = {(row["setting"], row["value"]): row["AUC-PR"] for row in csv.DictReader(file)}
    assert {one: float(mean) for one, mean in rows.items()} == pytest.approx({one: float(found[one]) for one in found})
    # Another forecaster in the same folder, whatever the order of their names, changes nothing of it.
    (out / "ablation.png").unlink()
    other = ablate(folder, out, *chosen, "--no-plot", "--forecaster", "seasonal-naive:period=7")
    assert other.exit_code == 0, other.output
    assert not (out / "ablation.png").exists()
    assert means(out) != found
    assert ablate(folder, out, *chosen, "--no-plot", "--forecaster", "last-value").exit_code == 0
    assert means(out) == found


@pytest.mark.slow
def test_ablate_where_nothing_can_be_read(tmp_path, out):
    write_text(tmp_path, "", name_of(1))
    result = ablate(tmp_path, out, "--setting", "batch", "--forecaster", "last-value")
    assert result.exit_code == 1
    assert "it is empty" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--setting", "colour"], ["--setting", "'colour'", *ablation.SETTINGS]),
        (["--forecaster", "oracle"], ["--forecaster", "'oracle'", "last-value"]),
        (["--forecaster", "seasonal-naive:period"], ["for --forecaster:", "'period' is not NAME=VALUE"]),
        (["--dataset", "MOON"], ["MANY, TINY", "got MOON"]),
    ],
)
def test_what_cannot_be_ablated(folder, out, arguments, expected):
    refused(ablate(folder, out, *arguments), expected, out)


LONG = 500
TRIED = ["--try", "preset=light", "--try", "views=error|movement,shape", "--jobs", "1"]
LABELS = ["preset=light views=error", "preset=light views=movement,shape"]


@pytest.fixture
def long_files(tmp_path):
    """Two folders with a data set each, long enough for a detector to see something."""
    for place, dataset in enumerate(("FIRST", "SECOND")):
        (tmp_path / dataset).mkdir()
        for number in (1, 2):
            values = noise(before=LONG, seed=2 * place + number, features=number if dataset == "SECOND" else 1)
            write_file(tmp_path / dataset, name_of(10 * place + number, dataset), values)
    return [tmp_path / "FIRST", tmp_path / "SECOND"]


def select(folders, out, *more):
    return invoke("bench", "select", *folders, "--out", out, *more)


def table(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_select(long_files, out):
    result = select(long_files, out, *TRIED)
    assert result.exit_code == 0, result.output
    runs = runs_in(out)
    assert sorted(row.method for row in runs) == sorted(4 * LABELS)  # several features are no reason for two rows
    assert {row.status for row in runs} == {"ok"}
    both = {
        (label, dataset): np.mean(
            [
                (row.metrics["vus_pr"] + row.metrics["budget_events_found"]) / 2
                for row in runs
                if (row.method, row.dataset) == (label, dataset)
            ]
        )
        for label in LABELS
        for dataset in ("FIRST", "SECOND")
    }
    assert len(set(both.values())) == 4
    *rows, mean = table(out / "left-out.csv")
    for row, other in zip(rows, ("SECOND", "FIRST"), strict=True):
        chosen = max(LABELS, key=lambda label, other=other: both[label, other])
        dataset = row["left out"]
        assert dataset != other
        assert row["chosen combination"] == chosen
        assert float(row["on the others"]) == pytest.approx(both[chosen, other])
        assert float(row["on this one"]) == pytest.approx(both[chosen, dataset])
        assert float(row["best in hindsight"]) == pytest.approx(max(both[label, dataset] for label in LABELS))
    assert mean["left out"] == "mean"
    last = result.stdout.splitlines()[-1]
    told = {name: float(value) for name, value in (pair.split("=") for pair in last.split())}
    assert list(told) == ["chosen_on", "left_out", "hindsight", "vus_pr", "events"]
    assert told["left_out"] == pytest.approx(float(mean["on this one"]), abs=6e-4)
    assert told["left_out"] == pytest.approx((told["vus_pr"] + told["events"]) / 2, abs=2e-3)
    found = {(row["combination"], row["data set"]): float(row["both"]) for row in table(out / "combinations.csv")}
    assert {key: value for key, value in found.items() if key[1] != "mean"} == pytest.approx(both)
    assert "best on all data sets: preset=light views=" in words(result)


@pytest.mark.full
def test_select_goes_on_and_its_results_can_be_reported(long_files, out):
    assert select(long_files, out, *TRIED, "--limit", 1).exit_code == 0
    first = {row.key: repr(row) for row in runs_in(out)}
    # The same settings in another order are the same combinations.
    assert select(long_files, out, *TRIED[2:4], *TRIED[:2], "--jobs", "1", "--by", "events").exit_code == 0
    assert len(runs_in(out)) == 8
    assert first.items() <= {row.key: repr(row) for row in runs_in(out)}.items()  # their times too
    assert not (out / "traces").exists()
    report = invoke("bench", "report", out)
    assert report.exit_code == 0, report.output
    assert LABELS[0] in (out / "report" / "report.html").read_text()


@pytest.mark.slow
def test_select_counts_what_all_combinations_have(long_files, out):
    write_all_normal(long_files[0], name_of(8, "FIRST"))
    write_text(long_files[1], "a,Label\n1,0\nx,1\n", name_of(9, "SECOND"))
    result = select(long_files, out, *TRIED)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stderr.split())
    assert f"2 series: {name_of(8, 'FIRST')}, {name_of(9, 'SECOND')}" in told
    assert {row["series"] for row in table(out / "combinations.csv")} == {"2", "4"}


def test_select_with_nothing_to_compare(tmp_path, out):
    write_all_normal(tmp_path, name_of(1, "FIRST"))
    write_file(tmp_path, name_of(2, "SECOND"))
    result = select([tmp_path], out, "--try", "preset=light", "--jobs", "1")
    assert result.exit_code == 1
    assert "Fewer than two data sets" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["--try"]),
        (["--try", "window"], ["--try", "'window' is not NAME=VALUE|VALUE"]),
        (["--try", "window="], ["--try", "'window=' is not NAME=VALUE|VALUE"]),
        (["--try", "colour=red"], ["--try", "'colour'", "window", "views"]),
        (["--try", "threads=1|2"], ["--try", "'threads' is not one of"]),
        (["--try", "window=300|100"], ["--try", "window=100: window", "250"]),
        (["--try", "window=300|300"], ["--try", "window must have distinct values, got 300, 300"]),
        (["--try", "window=300", "--try", "window=400"], ["--try", "window is given twice"]),
        (["--try", "forecaster=oracle"], ["--try", "forecaster=oracle", "last-value"]),
        (["--try", "forecaster_options=lags"], ["--try", "'lags' is not NAME=VALUE"]),
        (["--try", "window=300", "--by", "luck"], ["--by", "'luck'", "both, vus-pr, events"]),
        (["--try", "window=300", "--dataset", "TINY"], ["--dataset", "at least two, got TINY"]),
    ],
)
def test_what_cannot_be_selected(folder, out, arguments, expected):
    refused(select([folder], out, *arguments), expected, out)


def test_help_names_the_commands():
    shown = invoke("bench").output
    assert all(command in shown for command in ("run", "report", "ablate", "select"))
