"""`tocsin detect`: files in, incidents out, whatever the files are like."""

import csv
import gzip
import json
import re
import time

import numpy as np
import pyarrow.parquet
import pytest

from tests.cases import full
from tests.cli.calling import csv_text, invoke, noisy_values, run_process, words
from tests.data.workbook import workbook
from tocsin import Detector
from tocsin.cli import application
from tocsin.data import read_signals

#: Quick, and with nothing to say of what leads up to a spike.
QUICK = ("--preset", "light", "--views", "error", "--gap", 2)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "signal.csv"
    path.write_text(csv_text(noisy_values()))
    return path


@pytest.mark.slow
def test_table_verdicts_incidents_and_picture(file, tmp_path):
    verdicts, incidents, picture = tmp_path / "v.csv", tmp_path / "i.jsonl", tmp_path / "p.png"
    result = invoke("detect", file, "-o", verdicts, "--incidents", incidents, "--plot", picture)
    assert result.exit_code == 0, result.output
    with verdicts.open() as opened:
        rows = list(csv.DictReader(opened))
    assert len(rows) == 1200
    assert rows[900]["time"] == "2026-01-04T03:00:00"
    assert rows[900]["alarm"] == "true"
    found = [json.loads(line) for line in incidents.read_text().splitlines()]
    (fault,) = (incident for incident in found if incident["start"] <= "2026-01-04T03:00:00" <= incident["end"])
    assert fault["return_period"] > 100  # the alarm rate is one in a hundred
    assert fault["view"] in ("error", "shape")
    assert fault["severity"] == max(incident["severity"] for incident in found)
    assert fault["start"].replace("T", " ") in result.stdout
    assert fault["explanation"].split(" (")[0] in words(result)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_verdicts_are_those_of_the_detector(file, tmp_path):
    path = tmp_path / "v.parquet"
    arguments = [
        "--alarm-rate",
        "1/day",
        "--preset",
        "light",
        "--views",
        "error,movement",
        "--accept-after",
        5,
        "--gap",
        3,
    ]
    assert invoke("detect", file, "-o", path, *arguments).exit_code == 0
    table = pyarrow.parquet.read_table(path)
    chosen = {"preset": "light", "views": ["error", "movement"], "accept_after": 5, "gap": 3}
    detector = Detector(alarm_rate="1/day", interval="5min", **chosen)
    (signal,) = read_signals(file)
    verdicts = detector.run(signal.values, signal.times).verdicts
    np.testing.assert_array_equal(table["p"].to_numpy(), verdicts.p[:, 0])
    np.testing.assert_array_equal(table["merged"].to_numpy(), verdicts.merged[:, 0])
    assert set(table["signal"].to_pylist()) == {"signal"}


@pytest.mark.slow
def test_long_files_are_split_and_shared_between_processes(tmp_path, monkeypatch):
    signals = {f"s{k}": noisy_values(800, seed=k, fault=750 if k == 2 else None) for k in range(5)}
    rows = [(t, name, values[t]) for t in range(800) for name, values in signals.items()]
    path = tmp_path / "fleet.jsonl"
    path.write_text("".join(json.dumps({"t": t, "name": name, "x": x}) + "\n" for t, name, x in rows))
    outputs = []
    for jobs in (1, 2):
        monkeypatch.setattr("tocsin.cli.detect.WORTH_A_PROCESS", 0)
        output = tmp_path / f"v{jobs}.csv"
        result = invoke(
            "detect", path, "--id", "name", "--time", "t", "--value", "x", "-o", output, "--jobs", jobs, "--plot",
            tmp_path / "p.svg", "--preset", "light",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert "s2" in result.stdout
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
    alone = Detector(preset="light").run(signals["s3"]).verdicts.p[:, 0]
    with output.open() as opened:
        streamed = [float(row["p"] or "nan") for row in csv.DictReader(opened) if row["signal"] == "s3"]
    np.testing.assert_array_equal(streamed, alone)


def test_without_an_alarm_rate_the_first_line_says_what_is_tolerated(tmp_path):
    path, page = tmp_path / "noise.csv", tmp_path / "page.html"
    path.write_text(csv_text(noisy_values(1500, fault=None)))
    told = "alarm rate: about 3 false incidents in 1,500 rows (0.002 an observation)"
    assert invoke("detect", path, *QUICK, "--report", page).stdout.splitlines()[0] == told
    assert told in page.read_text()
    assert "alarm rate: about" not in invoke("detect", path, *QUICK, "--alarm-rate", "0.002").stdout
    assert "alarm rate: about" not in invoke("detect", path, *QUICK, "--budget", "5/week").stdout
    by_p = invoke("detect", path, *QUICK, "--promise", "observations").stdout.splitlines()[0]
    assert by_p == "alarm rate: about 3 false alarms in 1,500 rows (0.002 an observation)"
    rows = [(t, name, t % 7) for t in range(1000) for name in ("a", "b") if t < 100 or name == "a"]
    path.write_text("t,name,x\n" + "".join(f"{t},{name},{x}\n" for t, name, x in rows))
    both = invoke("detect", path, *QUICK, "--id", "name").stdout.splitlines()[0]
    assert both == "alarm rate: about 3 false incidents in the rows of each of 2 signals (0.003 to 0.01 an observation)"


def test_columns_share_what_is_tolerated_in_their_file(tmp_path):
    path = tmp_path / "columns.csv"
    path.write_text("a,b\n" + "".join(f"{t % 5},{t % 7}\n" for t in range(100)))
    (told, *_) = invoke("detect", path, "--separate", *QUICK).stdout.splitlines()
    assert told == "alarm rate: about 1 false incident in 100 rows of all columns together (0.01 an observation)"


def fleet_file(path):
    """Six signals, hourly, one of them with a fault."""
    signals = [noisy_values(1400, seed=k, fault=1300 if k == 2 else None) for k in range(6)]
    lines = ["time," + ",".join(f"s{k}" for k in range(6))]
    for hour, values in enumerate(zip(*signals, strict=True)):
        time = np.datetime64("2026-01-01T00:00:00") + np.timedelta64(hour, "h")
        lines.append(f"{time}," + ",".join(map(repr, map(float, values))))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "told"), [full("1/week", 8), ("1/month", 2)])
def test_a_budget_is_shared_by_all_signals(budget, told, tmp_path):
    """Nearly eight weeks after warm-up: the rarest incidents of all signals, as many as the budget allows."""
    path, found = fleet_file(tmp_path / "fleet.csv"), tmp_path / "incidents.jsonl"
    result = invoke(
        "detect", path, "--separate", "--budget", budget, "--preset", "light", "--incidents", found, "--plot",
        tmp_path / "p.svg",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    incidents = [json.loads(line) for line in found.read_text().splitlines()]
    assert abs(len(incidents) - told) <= 1
    assert "s2" in {incident["signal"] for incident in incidents}
    assert f"budget {budget}: the {len(incidents)} rarest of" in words(result)


@pytest.mark.slow
def test_a_share_of_false_incidents(tmp_path):
    result = invoke("detect", fleet_file(tmp_path / "fleet.csv"), "--separate", "--budget", 0.2, "--preset", "light")
    assert result.exit_code == 0, result.output
    assert "about 20% of them false" in words(result)
    assert "s2" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "5/fortnight"], "budget must be a number between 0 and 1"),
        (["--budget", "1.5"], "budget must be a number > 0 and < 1, got 1.5"),
        (["--budget", "1/week", "--alarm-rate", "1/day"], "budget='1/week' replaces the alarm rate"),
    ],
)
def test_what_is_no_budget_is_told(arguments, said, file):
    result = invoke("detect", file, *arguments)
    assert result.exit_code == 2
    assert said in words(result)


@pytest.mark.slow
def test_features_of_one_signal_on_request(tmp_path):
    path, verdicts = tmp_path / "wide.csv", tmp_path / "v.parquet"
    one, other = noisy_values(700, 1, 650), noisy_values(700, 2, None)
    path.write_text("pressure;flow\n" + "".join(f"{a};{b}\n" for a, b in zip(one, other, strict=True)))
    together = invoke("detect", path, "--joint", "-o", verdicts, "--alarm-rate", "0.004")
    assert together.exit_code == 0
    assert "feature" in together.stdout
    assert "pressure" in together.stdout
    alone = Detector(["pressure", "flow"], alarm_rate=0.004).run(np.column_stack([one, other]))
    np.testing.assert_array_equal(pyarrow.parquet.read_table(verdicts)["p"].to_numpy(), alone.p)


def wide_file(path):
    """Three signals: one with a fault that is over, one with a fault at the end, one with none."""
    columns = [noisy_values(900, 1, 700), noisy_values(900, 2, None), noisy_values(900, 3, None)]
    columns[1][890:] += 12
    times = np.datetime64("2026-01-01T00:00") + np.arange(900) * np.timedelta64(5, "m")
    rows = (f"{time},{a},{b},{c}" for time, a, b, c in zip(times, *columns, strict=True))
    path.write_text("\n".join(["time,over,going on,calm", *rows]) + "\n")
    return path


WIDE = ["--separate", "--preset", "light", "--views", "error,level", "--alarm-rate", "0.002"]


def test_a_table_by_signal_comes_first(tmp_path):
    page = tmp_path / "page.html"
    result = invoke("detect", wide_file(tmp_path / "wide.csv"), *WIDE, "--report", page)
    assert result.exit_code == 0, result.output
    table, _, rest = result.stdout.partition("what was seen")
    assert "2 of 3 signals with incidents" in table
    rows = {line.split("  ")[0].strip(): line for line in table.splitlines()}
    assert rows["over"].rstrip().endswith("over")
    assert "2026-01-03 10:20" in rows["over"]
    assert rows["going on"].rstrip().endswith("still open")
    assert "calm" not in rows
    assert "over" in rest
    text = page.read_text()
    assert text.index("worst since") < text.index("what was seen")


@pytest.mark.parametrize(
    ("limits", "signals"),
    [(["--to", "2026-01-03T12:00"], {"over"}), (["--from", "2026-01-04"], {"going on"}),
     (["--from", "2026-01-03T22:00", "--to", "2026-01-04 01:00"], set()), ([], {"over", "going on"})],
)  # fmt: skip
def test_what_is_reported_is_limited_by_time(limits, signals, tmp_path):
    found = tmp_path / "found.jsonl"
    result = invoke("detect", wide_file(tmp_path / "wide.csv"), *WIDE, *limits, "--incidents", found, "--exit-code")
    assert result.exit_code == (4 if signals else 0), result.output
    assert {json.loads(line)["signal"] for line in found.read_text().splitlines()} == signals


def test_limits_of_another_kind_are_refused(tmp_path):
    path = wide_file(tmp_path / "wide.csv")
    assert "a time must be" in words(invoke("detect", path, "--from", "yesterday"))
    result = invoke("detect", path, *WIDE, "--to", "17.5")
    assert result.exit_code == 2
    assert "17.5 is not a date" in words(result)


def test_scores_from_outside(tmp_path):
    path = tmp_path / "scores.csv"
    scores = np.random.default_rng(0).gamma(2.0, size=900)
    scores[800] = 50
    path.write_text("score\n" + "\n".join(map(str, scores)))
    result = invoke("detect", path, "--scores")
    assert result.exit_code == 0
    assert " 800 " in result.stdout
    assert invoke("detect", path, "--scores", "--forecaster", "last-value").exit_code == 2


@pytest.mark.slow
def test_exit_codes_for_scripts(file, tmp_path):
    assert invoke("detect", file, "--exit-code").exit_code == 4
    quiet = tmp_path / "quiet.csv"
    quiet.write_text(csv_text(np.full(900, 5.0)))
    result = invoke("detect", quiet, "--exit-code")
    assert result.exit_code == 0
    assert "no incidents" in result.stdout


@pytest.mark.slow
def test_standard_input():
    result = run_process("detect", "-", "--format", "csv", *QUICK, stdin=csv_text(noisy_values()))
    assert result.returncode == 0, result.stderr
    assert "2026-01-04 03:00:00" in result.stdout


DAMAGE = {
    "text": ("abc", "not a number", "line 52"),
    "infinity": ("inf", "infinite value", "line 52"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_bad_cells_are_named_and_the_rest_is_done(kind, tmp_path):
    cell, said, line = DAMAGE[kind]
    lines = csv_text(noisy_values()).splitlines()
    lines[51] = lines[51].split(",")[0] + f",{cell}"
    path, output = tmp_path / "bad.csv", tmp_path / "v.csv"
    path.write_text("\n".join(lines))
    result = invoke("detect", path, "-o", output, *QUICK)
    assert result.exit_code == 3
    assert said in words(result)
    assert line in words(result)
    with output.open() as opened:
        rows = list(csv.DictReader(opened))
    assert len(rows) == 1200
    assert (rows[50]["value"], rows[50]["p"], rows[50]["alarm"]) == ("", "", "false")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said", "code"),
    [
        (lambda lines: [*lines[:60], *lines[61:]], "gap", 0),
        (lambda lines: [*lines[:60], lines[60].split(",")[0] + ",", *lines[61:]], "missing value", 0),
        (lambda lines: [*lines[:60], lines[59], *lines[60:]], "duplicate time", 3),
        (lambda lines: [lines[0], *lines[600:], *lines[1:600]], "unsorted", 3),
        (lambda lines: [*lines[:60], "yesterday,1.0", *lines[60:]], "bad time", 3),
        (lambda lines: [*lines[:60], lines[60] + ",9,9", *lines[61:]], "wrong number of fields", 3),
    ],
)
def test_each_kind_of_trouble(change, said, code, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(change(csv_text(noisy_values()).splitlines())))
    result = invoke("detect", path, *QUICK)
    assert said in words(result)
    assert result.exit_code == code, result.output
    assert "observations" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "empty"),
        ("header.csv", b"time,value\n", "header.csv"),
        ("words.csv", b"a,b\nx,y\nz,w\n", "numeric"),
        ("broken.parquet", b"PAR1 this is no parquet", "broken.parquet"),
        ("broken.csv.gz", b"this is no gzip", "broken.csv.gz"),
        ("broken.jsonl", b"{]\n{]\n", "broken.jsonl"),
    ],
)
def test_files_that_cannot_be_read(name, content, said, tmp_path, file):
    path = tmp_path / name
    path.write_bytes(content)
    alone = invoke("detect", path, *QUICK)
    assert alone.exit_code == 1
    assert said in words(alone)
    assert "Traceback" not in alone.output
    both = invoke("detect", path, file, *QUICK)
    assert both.exit_code == 1
    assert "2026-01-04 03:00:00" in both.stdout


def test_a_file_that_is_not_there(tmp_path):
    result = invoke("detect", tmp_path / "nothing.csv")
    assert result.exit_code == 1
    assert "nothing.csv" in words(result)


def test_a_truncated_gzip_gives_what_could_be_read(tmp_path):
    path = tmp_path / "cut.csv.gz"
    whole = gzip.compress(csv_text(noisy_values(3000)).encode())
    path.write_bytes(whole[: len(whole) * 3 // 4])
    result = invoke("detect", path, *QUICK, "--alarm-rate", "0.01")
    assert result.exit_code == 3
    assert "cut short" in words(result)
    assert "2026-01-04 03:00:00" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--alarm-rate", "often"], ["alarm_rate", "'often'", "1/day"]),
        (["--alarm-rate", "1/fortnight"], ["alarm_rate", "'1/fortnight'", "week"]),
        (["--alarm-rate", "1e-9", "--promise", "observations"], ["alarm_rate", "at least"]),
        (["--promise", "everything"], ["promise", "'everything'", "incidents"]),
        (["--preset", "heavy"], ["preset", "'heavy'", "light"]),
        (["--views", "error,nothing"], ["views", "nothing", "'shape'", "'movement'"]),
        (["--views", "movement", "--nonconformity", "high"], ["nonconformity", "movement"]),
        (["--forecaster", "oracle"], ["'oracle'", "autoregression"]),
        (["--forecaster", "chronos"], ["chronos", "tocsin[chronos]"]),
        (["--forecaster-option", "period"], ["--forecaster-option", "'period'"]),
        (["--forecaster", "seasonal-naive", "--forecaster-option", "period=-1"], ["period", "-1"]),
        (["--nonconformity", "odd"], ["nonconformity", "'odd'", "high"]),
        (["--accept-after", "-1"], ["accept_after", "'-1'", "observations or a duration"]),
        (["--window", "9"], ["--window", "'9'"]),
        (["--refresh", "100"], ["refresh", "32", "114"]),
        (["--forecaster", "last-value", "--scaled"], ["scaled", "quantiles"]),
        (["--min-deviation", "-1"], ["min_deviation", "-1"]),
        (["-o", "v.xls"], ["--output", ".xls"]),
        (["--plot", "p.txt"], ["--plot", ".png"]),
        (["--interval", "soon"], ["interval", "soon"]),
    ],
)
def test_bad_options_are_named(arguments, said, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = invoke("detect", file, *arguments)
    assert result.exit_code == 2, result.output
    for word in said:
        assert word in words(result)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--value", "valeu"], ["valeu", "value"]), (["--time", "when"], ["when", "time"]), (["--id", "who"], ["who"])],
)
def test_wrong_columns_are_named(arguments, said, file):
    result = invoke("detect", file, *arguments)
    assert result.exit_code == 1
    for word in said:
        assert word in words(result)


def test_a_budget_without_times_asks_for_the_interval(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("value\n" + "\n".join(map(str, noisy_values())))
    result = invoke("detect", path, "--alarm-rate", "1/day")
    assert result.exit_code == 1
    assert "interval" in words(result)
    assert invoke("detect", path, "--alarm-rate", "1/day", "--interval", "5min").exit_code == 0


def test_too_short_a_signal_is_told(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text(csv_text(noisy_values(60, fault=None)))
    result = invoke("detect", path)
    assert result.exit_code == 0
    assert "has 60 observations" in words(result)


def test_an_old_result_survives_a_failure(file, tmp_path):
    output = tmp_path / "v.csv"
    output.write_text("old")
    assert invoke("detect", file, "--value", "nothing", "-o", output).exit_code == 1
    assert output.read_text() == "old"


@pytest.mark.parametrize("option", ["-o", "--incidents"])
def test_the_input_is_never_overwritten(option, file):
    before = file.read_bytes()
    result = invoke("detect", file, option, file.parent / "." / file.name)
    assert result.exit_code == 2
    assert "the input" in words(result)
    assert file.read_bytes() == before


def test_two_results_do_not_share_a_file(file, tmp_path):
    result = invoke("detect", file, "-o", tmp_path / "x.csv", "--incidents", tmp_path / "x.csv")
    assert result.exit_code == 2
    assert "--output" in words(result)


def test_files_of_the_same_name_are_told_apart(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text(csv_text(noisy_values(300, fault=None)))
    output = tmp_path / "v.csv"
    assert invoke("detect", tmp_path / "a" / "x.csv", tmp_path / "b" / "x.csv", "-o", output).exit_code == 0
    with output.open() as opened:
        assert len({row["signal"] for row in csv.DictReader(opened)}) == 2


def test_forecasters_are_listed():
    result = invoke("forecasters")
    assert result.exit_code == 0
    for name in ("autoregression", "last-value", "chronos", "tocsin[tirex]", "torch"):
        assert name in result.stdout


@pytest.mark.full
def test_demo_finds_the_faults(tmp_path):
    result = invoke("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        "incidents.csv", "machine.csv", "machine.png", "verdicts.csv",
    ]  # fmt: skip
    _, table, _ = re.split(r"The injected faults|[0-9]+ incidents", result.stdout, maxsplit=2)
    assert table.count("at once") + table.count("observations ") == 6
    found = int(re.search(r"after warm-up ([0-9]+) incidents", result.stdout)[1])
    assert found <= 10  # the faults, and most weekends
    assert re.search(
        r"(as promised|cannot tell yet): [0-9.]+ times the promised incidents since observation", result.stdout
    )
    assert "returned" in result.stdout
    again = invoke("demo", "--out", tmp_path / "again")
    assert again.stdout.replace("again", "demo") == result.stdout
    assert (tmp_path / "again" / "verdicts.csv").read_bytes() == (tmp_path / "demo" / "verdicts.csv").read_bytes()


@pytest.mark.slow
def test_patterns_and_folders_and_workbooks(tmp_path):
    """Whatever the files are, the same history gives the same incidents."""
    text = csv_text(noisy_values())
    (tmp_path / "logs" / "a").mkdir(parents=True)
    (tmp_path / "logs" / "a" / "one.csv").write_text(text)
    (tmp_path / "logs" / "two.csv").write_text(text)
    times, values = zip(*(row.split(",") for row in text.splitlines()[1:]), strict=True)
    moments = np.array(times, dtype="datetime64[us]").tolist()
    rows = [["time", "value"], *([time, float(value)] for time, value in zip(moments, values, strict=True))]
    (tmp_path / "book.xlsx").write_bytes(workbook({"Notes": [["nothing here"]], "Data": rows}))
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, part in enumerate((slice(0, 500), slice(500, None))):
        table = pyarrow.table({"time": moments[part], "value": [float(value) for value in values[part]]})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet")
    arguments = ("--incidents", tmp_path / "found.csv", *QUICK)
    expected = None
    for given in ([tmp_path / "logs" / "two.csv"], [folder], [tmp_path / "book.xlsx", "--sheet", "Data"]):
        result = invoke("detect", *given, *arguments)
        assert result.exit_code == 0, result.output
        found = [row.split(",", 1)[1] for row in (tmp_path / "found.csv").read_text().splitlines()]
        expected = expected or found
        assert found == expected
        assert len(found) > 1
    both = invoke("detect", tmp_path / "logs" / "**" / "*.csv", *QUICK)
    assert both.exit_code == 0, both.output
    assert "observations of 2 signals" in words(both)


def test_a_pattern_that_names_nothing(tmp_path):
    result = invoke("detect", tmp_path / "*.csv")
    assert result.exit_code == 2
    assert "no such file" in words(result)


def test_a_sheet_that_is_not_there(tmp_path):
    path = tmp_path / "book.xlsx"
    path.write_bytes(workbook({"Data": [["a"], [1], [2]], "More": []}))
    result = invoke("detect", path, "--sheet", "data")
    assert result.exit_code == 1
    assert "has no sheet 'data' (given as --sheet); its sheets: 'Data', 'More'" in words(result)
    refused = invoke("detect", tmp_path / "x.csv", "--sheet", "Data")
    assert refused.exit_code == 1


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path):
    names, values = ("rate [/min]", "[bar]"), noisy_values()
    lines = csv_text(values).splitlines()
    path = tmp_path / "[red].csv"
    path.write_text("\n".join([",".join(("time", *names)), *(f"{line},{line.split(',')[1]}" for line in lines[1:])]))
    result = invoke("detect", path, "--separate", *QUICK)
    assert result.exit_code == 0, result.output
    assert all(name in words(result) for name in names)


def test_progress_is_told_once_a_minute_where_nobody_watches(monkeypatch, capsys):
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with application.progress() as bar:
        task = bar.add_task("pump.csv", total=1000)
        bar.update(task, advance=10)
        now += 61
        bar.update(task, advance=240)
        bar.update(task, advance=1)
        now += 61
        bar.update(task, completed=1000)
    assert capsys.readouterr().err == "pump.csv: 250 of 1,000, 0:03:11 left\npump.csv: 1,000 of 1,000, 0:00:00 left\n"
