"""The report of a benchmark."""

import csv
import io
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import PermutationMethod, wilcoxon

from tocsin_bench.metrics import THRESHOLDS
from tocsin_bench.report import summary_tables, write_report
from tocsin_bench.report.measures import ranked_by
from tocsin_bench.report.pairs import signed_rank_p
from tocsin_bench.report.sheet import MISSING
from tocsin_bench.results import BenchmarkResults, ForecastErrors, MethodRun

NAN = math.nan
ODD = "<b>odd_1 & 50%</b>"


def run(file, dataset, method, value, *, forecaster="embedded-52", **others):
    metrics = {"point_adjusted_f1": value, "point_adjusted_calibration_error": value / 10, "vus_pr": value / 2}
    metrics |= {"budget_events_found": value, "budget_events_found_at_1": value / 4, "budget_normal_time": 0.125}
    metrics |= {"false_positive_rate": 0.02, "operation_events": 3.0, "operation_incidents_per_week": NAN}
    rates = [float(rate) for rate in np.minimum(THRESHOLDS * (1 + value), 1)]
    about = {"observations": 1000, "seconds": 0.5, "metrics": metrics, "false_positive_rates": rates}
    return MethodRun(file, dataset, forecaster, method, **(about | others))


def failed(file, dataset, method, problem, *, forecaster="", status="failed", **others):
    return MethodRun(file, dataset, forecaster, method, status=status, problem=problem, **others)


RUNS = [
    run("nek-1", "NEK", "w1-acas", 0.6),
    run("nek-2", "NEK", "w1-acas", 0.9),
    run("nek-3", "NEK", "w1-acas", NAN),
    run("yahoo-1", "YAHOO", "w1-acas", 0.25, observations=3000),
    run("odd-1", ODD, "w1-acas", 0.8),
    run("odd-2", ODD, "w1-acas", 0.6),
    run("nek-1", "NEK", "conformal", 0.5),
    run("nek-2", "NEK", "conformal", 0.7),
    run("yahoo-1", "YAHOO", "conformal", 0.3),
    run("odd-1", ODD, "conformal", 0.1),
    # Excellent, but only where it worked.
    run("nek-1", "NEK", "poly", 0.99, forecaster=""),
    failed("nek-2", "NEK", "poly", "ValueError: window_size\nwas 0% & <i>"),
    failed("yahoo-1", "YAHOO", "poly", "", status="skipped"),
    failed("yahoo-1", "YAHOO", "sand", "out of memory"),
    run("tao-1", "TAO", "w1-acas-fisher", 0.9, features=3),
    run("nek-m", "NEK", "w1-acas-harmonic", 0.4, features=2),
]
FORECASTS = [
    ForecastErrors("nek-1", "NEK", "embedded-52", 1, 1000, 0.2, 0.5, 0.1),
    ForecastErrors("nek-2", "NEK", "embedded-52", 1, 1000, 0.4, 0.7, 0.2),
    ForecastErrors("tao-1", "TAO", "embedded-52", 3, 1000, 5.0, 6.0, 0.1),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with BenchmarkResults(tmp_path_factory.mktemp("results")) as results:
        results.add(RUNS, FORECASTS)
        results.describe({"machine": "an <i>old</i> one & slow"})
        for file, method, features in (("nek-1", "w1-acas", 1), ("tao-1", "w1-acas-fisher", 3)):
            signal, trace = results.signal_of(file), results.trace_of(file, "embedded-52", method)
            trace.parent.mkdir(parents=True)
            labels = np.zeros(300)
            labels[200:220] = 1
            random = np.random.default_rng(0)
            np.savez(signal, values=random.normal(size=(300, features)), labels=labels, first_evaluated=50)
            np.savez(
                trace,
                p=np.where(np.arange(300) < 50, np.nan, random.random(300)),
                weights=np.ones(99),
                errors=np.arange(99.0),
            )
        yield results


@pytest.fixture(scope="module")
def report(results, tmp_path_factory):
    """The folder of a report, without figures."""
    out = tmp_path_factory.mktemp("report")
    written = write_report(results, out, figures=False)
    assert set(written) == {path for path in out.rglob("*") if path.is_file()}
    return out


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def only(rows, **about):
    (found,) = [row for row in rows if all(row[name] == value for name, value in about.items())]
    return found


def test_data_sets_for_machines(report):
    rows = table(report / "datasets.csv")
    assert list(rows[0]) == ["dataset", "forecaster", "method", "metric", "mean", "sd", "n"]
    nek = only(rows, dataset="NEK", method="w1-acas", metric="point_adjusted_f1")
    # NaN is left out.
    assert (float(nek["mean"]), nek["n"]) == (pytest.approx(0.75), "2")
    assert float(nek["sd"]) == pytest.approx(math.sqrt(2 * 0.15**2 / 1))
    yahoo = only(rows, dataset="YAHOO", method="w1-acas", metric="point_adjusted_f1")
    assert (float(yahoo["mean"]), yahoo["sd"], yahoo["n"]) == (0.25, "", "1")
    # Never known, and said so.
    week = only(rows, dataset="NEK", method="w1-acas", metric="operation_incidents_per_week")
    assert (week["mean"], week["sd"], week["n"]) == ("", "", "0")
    # The files of several features are a data set of their own.
    assert only(rows, dataset="NEK (multivariate)", metric="vus_pr")["mean"] == "0.2"
    assert only(rows, dataset="TAO", metric="vus_pr")["method"] == "w1-acas-fisher"


def test_summary_for_machines(report):
    rows = table(report / "summary.csv")
    assert list(rows[0]) == ["dataset", "forecaster", "method", "metric", "mean", "sd", "n"]
    assert {row["dataset"] for row in rows} == {"all"}
    assert {row["method"] for row in rows} == {"w1-acas", "conformal", "poly"}
    ours = only(rows, method="w1-acas", metric="point_adjusted_f1")
    # Data sets weigh the same: .75, .25 and .7. Only two of them have a standard deviation.
    assert float(ours["mean"]) == pytest.approx((0.75 + 0.25 + 0.7) / 3)
    assert float(ours["sd"]) == pytest.approx((0.15 * math.sqrt(2) + 0.1 * math.sqrt(2)) / 2)
    assert ours["n"] == "5"


def test_summary_table(report):
    text = (report / "tables" / "summary.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("|")]
    lines = {row[2]: row for row in rows}
    # The best in bold, but what is known for one data set of three is not called that. The paper has not all of them.
    assert lines["w1-acas"][3:5] == ["p", "**0.567 ± 0.177**"]
    assert lines["w1-acas"][10:13] == ["3", "6/6", ""]
    assert lines["poly"][3:5] == ["score", "0.990 (0.848)"]
    assert lines["poly"][10:13] == ["1", "1/3", "poly"]
    # CalErr: less is better.
    assert lines["conformal"][7].startswith("**0.033")
    # What never worked is still there.
    assert lines["sand"][4] == MISSING
    assert lines["sand"][10:12] == ["0", "0/1"]
    assert "Data sets: " in text


def test_two_methods_file_by_file(report):
    rows = table(report / "tables" / "paired.csv")
    found = only(rows, beside="conformal · embedded-52", metric="PA-F1")
    # Four files have both: .6 and .5, .9 and .7, .25 and .3, .8 and .1.
    assert (found["files"], found["better on"], found["worse on"]) == ("4", "3", "1")
    assert float(found["median difference"]) == pytest.approx(0.15)
    assert float(found["p"]) == wilcoxon([0.1, 0.2, -0.05, 0.7]).pvalue == 0.25
    assert only(rows, beside="poly", metric="VUS-PR")["p"] == "1"


@pytest.mark.parametrize("length", [6, 25, 60])
def test_the_signed_rank_test_against_that_of_a_library(length):
    values = np.random.default_rng(length).normal(size=length) + 0.3
    method = PermutationMethod(n_resamples=np.inf) if length < 12 else "exact"
    assert signed_rank_p(values) == pytest.approx(wilcoxon(values, method=method).pvalue, rel=1e-9)
    tied = np.round(np.random.default_rng(length).normal(size=min(length, 10)), 0)
    if np.any(tied):
        wanted = wilcoxon(tied[tied != 0], method=PermutationMethod(n_resamples=np.inf)).pvalue
        assert signed_rank_p(tied) == pytest.approx(wanted)
    assert signed_rank_p(np.zeros(length)) == 1


def test_whole_files_have_a_table_of_their_own(report, tmp_path):
    assert not (report / "tables" / "tsb-ad.csv").exists()
    with BenchmarkResults(tmp_path / "results") as results:
        results.add([run("nek-1", "NEK", "w1-acas", 0.6, metrics={"vus_pr": 0.4, "whole_vus_pr": 0.3})])
        write_report(results, tmp_path / "report", figures=False)
    (row,) = table(tmp_path / "report" / "tables" / "tsb-ad.csv")
    assert (row["VUS-PR after `tr`"], row["VUS-PR, whole file"]) == ("0.4", "0.3")
    assert "Published" not in (tmp_path / "report" / "tables" / "tsb-ad.md").read_text()


def test_the_leaderboard_stands_beside_the_same_files(tmp_path):
    # What TSB-AD prints for these files: Sub-PCA has 0.8842, 0.9926 and 0.1803, SR 0.9735, 0.4743 and 0.1348.
    names = ["277_NEK_id_1_WebService_tr_500_1st_17", "279_NEK_id_3_WebService_tr_500_1st_974"]
    last, unknown = "001_NAB_id_1_Facility_tr_1007_1st_2014", "999_NAB_id_99_Facility_tr_10_1st_20"
    runs = [run(name, "NEK", "w1-acas", 0.6, metrics={"whole_vus_pr": 0.3}) for name in names]
    runs += [run(name, "NAB", "w1-acas", 0.6, metrics={"whole_vus_pr": 0.3}) for name in (last, unknown)]
    several = run("001_Genesis_id_1_Sensor_tr_4055_1st_15538", "Genesis", "w1-acas", 0.6, features=18,
                  metrics={"whole_vus_pr": 0.1})  # fmt: skip
    with BenchmarkResults(tmp_path / "results") as results:
        results.add([*runs, several])
        write_report(results, tmp_path / "report", figures=False)
    rows = table(tmp_path / "report" / "tables" / "tsb-ad.csv")
    sub_pca = only(rows, method="Sub-PCA (published)")
    assert float(sub_pca["VUS-PR, whole file"]) == pytest.approx(((0.884 + 0.993) / 2 + 0.180) / 2)
    assert (sub_pca["files ok"], sub_pca["AUC-PR, whole file"]) == ("3/4", "")
    shown = [float(row["VUS-PR, whole file"]) for row in rows if row["method"].endswith("(published)")]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) == 6
    assert "chosen in hindsight" in (tmp_path / "report" / "tables" / "tsb-ad.md").read_text()
    (best, *_) = table(tmp_path / "report" / "tables" / "tsb-ad-multivariate.csv")[1:]
    assert (best["method"], best["VUS-PR, whole file"]) == ("KMeansAD (published)", "0.891")


def test_a_part_of_the_files_is_told(tmp_path):
    with BenchmarkResults(tmp_path / "results") as results:
        results.add([run("nek-1", "NEK", "w1-acas", 0.6), run("msl-1", "MSL", "w1-acas", 0.7)])
        results.describe({"files of NEK": "8", "files of MSL": "1", "files of NAB": "23"})
        write_report(results, tmp_path / "report", figures=False)
        text = (tmp_path / "report" / "tables" / "summary.md").read_text()
        assert "Only a part was run: NEK 1 of 8 files; the paper's numbers are of all of them." in text
        results.describe({"files of NEK": "1"})
        write_report(results, tmp_path / "report", figures=False)
        assert "Only a part" not in (tmp_path / "report" / "tables" / "summary.md").read_text()


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("tocsin", "severity"), ("tocsin-light", "severity"), ("w1-acas", "p"), ("w1-acas[prior=recent]-fisher", "p"),
        ("gaussian", "p"), ("z-score-100", "score"), ("cnn", "score"), ("csv-mine", "score"),
        ("views=error,shape window=1000", "severity"),
    ],
)  # fmt: skip
def test_what_a_method_is_ranked_by(method, expected):
    assert ranked_by(method) == expected


def test_the_paper_is_averaged_over_the_same_data_sets(tmp_path):
    with BenchmarkResults(tmp_path / "results") as results:
        results.add([run("nek-1", "NEK", "w1-acas", 0.6), run("nab-1", "NAB", "w1-acas", 0.8)])
        write_report(results, tmp_path / "report", figures=False)
    # TiRex, its most accurate forecaster: 0.995 on NEK, 0.985 on NAB.
    text = (tmp_path / "report" / "tables" / "summary.md").read_text()
    assert re.search(r"0\.700\W+\(0\.990\)", text)


def test_tables_of_data_sets(report):
    assert sorted(path.name for path in (report / "tables").glob("dataset-*.md")) == [
        "dataset-NEK.md",
        "dataset-YAHOO.md",
        "dataset-_b_odd_1_50_b_.md",
    ]
    nek = table(report / "tables" / "dataset-NEK.csv")
    ours = only(nek, method="w1-acas")
    assert [float(ours[name]) for name in ("PA-F1", "PA-F1 paper", "VUS-PR paper")] == [0.75, 0.995, 0.453]
    assert float(ours["PA-F1 sd"]) == pytest.approx(0.15 * math.sqrt(2))
    assert ours["files ok"] == "3/3"
    assert only(nek, method="poly")["files ok"] == "1/2"
    odd = table(report / "tables" / "dataset-_b_odd_1_50_b_.csv")
    assert "PA-F1 paper" not in odd[0]
    assert "paper's row" not in odd[0]


def test_multivariate_table(report):
    rows = table(report / "tables" / "multivariate.csv")
    assert [(row["data set"], row["method"], row["PA-F1"]) for row in rows] == [
        ("NEK (multivariate)", "w1-acas-harmonic", "0.4"),
        ("TAO", "w1-acas-fisher", "0.9"),
    ]
    assert [row["PA-F1 paper"] for row in rows] == ["", "1"]


def test_operators_see_what_is_known(report):
    rows = table(report / "tables" / "operators.csv")
    assert only(rows, method="w1-acas")["FPR at .01"] == "0.02"
    assert only(rows, method="w1-acas")["events"] == "3"
    assert "incidents per week" not in rows[0]


def test_what_is_found_at_the_same_number_of_false_incidents(report):
    rows = table(report / "tables" / "incidents.csv")
    ours = only(rows, method="w1-acas")
    assert float(ours["events found"]) == pytest.approx((0.75 + 0.25 + 0.7) / 3)
    assert float(ours["at 1"]) == pytest.approx((0.75 + 0.25 + 0.7) / 12)
    assert ours["normal time"] == "0.125"
    assert "fault time" not in ours  # never known
    assert "**0.567 ± 0.177**" in (report / "tables" / "incidents.md").read_text()
    assert only(table(report / "tables" / "incidents-multivariate.csv"), method="w1-acas-fisher")["at 1"] == "0.225"
    nek = only(table(report / "tables" / "dataset-NEK.csv"), method="w1-acas")
    assert (float(nek["events found"]), nek["normal time"]) == (0.75, "0.125")


def test_forecast_errors(report):
    nek, tao = table(report / "tables" / "forecasts.csv")
    assert [float(nek[name]) for name in ("MAE", "RMSE", "MAE paper", "RMSE paper")] == [0.3, 0.6, 0.37, 0.75]
    assert float(nek["MAE sd"]) == pytest.approx(0.1 * math.sqrt(2))
    assert (tao["MAE"], tao["MAE paper"], tao["files"]) == ("5", "", "1")


def test_run_time(report):
    rows = table(report / "tables" / "runtime.csv")
    # 6 files of .5 s, five of them with 1000 observations and one with 3000.
    ours = only(rows, method="w1-acas")
    assert float(ours["µs per observation"]) == pytest.approx(3e6 / 8000)
    assert (float(ours["slowest file"]), ours["files"]) == (500, "6")
    # What failed took no time that says anything.
    assert only(rows, method="poly")["files"] == "1"
    assert "sand" not in {row["method"] for row in rows}
    forecasts = only(rows, method="(the forecasts)", features="one")
    assert float(forecasts["µs per observation"]) == pytest.approx(0.3e6 / 2000)
    assert "The paper's takes 25,000 µs" in (report / "tables" / "runtime.md").read_text()


def test_no_failure_vanishes(report):
    rows = table(report / "tables" / "failures.csv")
    assert [(row["file"], row["method"], row["status"], row["reason"]) for row in rows] == [
        ("nek-2", "poly", "failed", "ValueError: window_size\nwas 0% & <i>"),
        ("yahoo-1", "sand", "failed", "out of memory"),
        ("yahoo-1", "poly", "skipped", "no reason was given"),
    ]
    coverage = only(table(report / "tables" / "coverage.csv"), **{"data set": "NEK", "method": "w1-acas"})
    assert [coverage[name] for name in ("ok", "failed", "skipped", "PA-F1", "AUC-PR")] == ["3", "0", "0", "2", "0"]
    page = (report / "report.html").read_text()
    assert "16 runs on 8 files of 4 data sets: 13 ok, 2 failed, 1 skipped" in page
    assert "out of memory" in page


def test_latex_is_escaped(report):
    text = (report / "tables" / "failures.tex").read_text()
    assert r"ValueError: window\_size was 0\% \& \textless{}i\textgreater{} \\" in text
    for path in (report / "tables").glob("*.tex"):
        body = path.read_text().split(r"\begin{tabular}")[1].split(r"\toprule")[1]
        assert not re.search(r"(?<!\\)[%_#<>]|±", body), path
        # As many columns in every row.
        assert len({line.replace(r"\&", "").count("&") for line in body.splitlines() if line.endswith(r"\\")}) == 1
    assert r"\textbf{0.567 $\pm$ 0.177}" in (report / "tables" / "summary.tex").read_text()


class Page(HTMLParser):
    """Checks that elements close in the order in which they were opened, and keeps what is asked for."""

    EMPTY = ("meta", "img", "br")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.links, self.text = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read_page(folder):
    text = (folder / "report.html").read_text()
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    # In the letters that a picture is written in, any word may turn up.
    text = re.sub("base64,[A-Za-z0-9+/=]+", "", text)
    assert "http" not in text
    assert "@import" not in text
    assert "url(" not in text
    return page


def test_page(report):
    page = read_page(report)
    assert page.tags.count("table") == len(list((report / "tables").glob("*.md")))
    assert "i" not in page.tags
    assert ODD in page.text
    assert "an <i>old</i> one & slow" in page.text
    assert all(link.startswith("#") for link in page.links)


@pytest.mark.full
def test_figures(results, tmp_path):
    written = write_report(results, tmp_path)
    drawn = {path.name for path in written if path.suffix == ".png"}
    assert drawn == {
        "examples.png",
        "false-positives-embedded-52.png",
        "false-positives-without-forecaster.png",
        *(
            f"{kind}-{name}.png"
            for kind in ("heatmaps", "trade-offs", "operating-points")
            for name in ("univariate", "multivariate")
        ),
    }
    images = [link for link in read_page(tmp_path).links if not link.startswith("#")]
    assert len(images) == len(drawn)
    assert all(link.startswith("data:image/png;base64,iVBOR") for link in images)


def test_nothing_to_report(tmp_path):
    with BenchmarkResults(tmp_path / "results") as results:
        written = write_report(results, tmp_path / "report")
        assert summary_tables(results) == []
    assert sorted(path.name for path in written) == ["datasets.csv", "report.html", "summary.csv"]
    assert read_page(tmp_path / "report").tags.count("table") == 0


def test_only_failures(tmp_path):
    with BenchmarkResults(tmp_path / "results") as results:
        results.add([failed("a", "NEK", "w1-acas", "broken", forecaster="embedded-52")])
        write_report(results, tmp_path / "report")
    assert not list((tmp_path / "report" / "figures").glob("*"))
    assert only(table(tmp_path / "report" / "tables" / "summary.csv"), method="w1-acas")["files ok"] == "0/1"


def test_terminal(results):
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    tables = summary_tables(results)
    assert len(tables) == 8
    for shown in tables:
        console.print(shown)
    text = console.file.getvalue()
    assert re.search(r"w1-acas +p +0\.567 .* 6/6", text)
    assert "out of memory" in text
    assert max(len(line) for line in text.splitlines()) <= 80
