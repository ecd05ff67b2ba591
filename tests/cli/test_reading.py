"""Files as people have them, through the command: what was understood, what is refused, and which option helps."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cases import full
from tests.cli.calling import invoke, words

QUICK = ("--preset", "light", "--views", "error", "--gap", 2)


def hourly(length=600):
    times = np.datetime64("2024-03-01T00:00") + np.arange(length) * np.timedelta64(1, "h")
    return times.astype(object), 20 + np.random.default_rng(5).normal(size=length).round(2)


@pytest.fixture
def european(tmp_path):
    """Date and time in two columns, decimal commas, -200 for nothing, labels, and delimiters without a column."""
    path = tmp_path / "air.csv"
    rows = [
        f"{time:%d/%m/%Y;%H.%M.%S};{'-200' if i % 50 == 7 else str(value).replace('.', ',')};{int(i > 500)};;"
        for i, (time, value) in enumerate(zip(*hourly(), strict=True))
    ]
    path.write_text("\n".join(["Date;Time;CO(GT);anomaly;;", *rows, ";;;;;", ""]))
    return path


def test_what_was_understood_is_told_in_a_line(european):
    result = invoke("detect", european, *QUICK)
    assert result.exit_code == 0, result.output
    assert (
        f"{european}: time: Date + Time, day first; decimal comma; 1 feature; not anomaly; every 1 h; "
        "12 values were -200 and count as missing"
    ) in result.stderr
    assert "column anomaly: a label, by its name and values; to use it, add it to --value" in words(result)
    assert "600 observations" in result.stdout


def test_value_and_ignore_choose_columns(european):
    assert "2 features" in invoke("detect", european, "--value", "CO(GT)", "--value", "anomaly", *QUICK).stderr
    result = invoke("detect", european, "--ignore", "CO(GT)", *QUICK)
    assert "1 feature; every" in result.stderr  # the label is all that is left
    assert invoke("detect", european, "--ignore", "nothing", *QUICK).exit_code == 1


def test_many_lost_rows_are_an_error_unless_told_to_go_on(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("date,x\n" + "".join(f"{time:%Y-%m-%d},{x}\n" for time, x in zip(*hourly(), strict=True)))
    result = invoke("detect", path, *QUICK)
    assert result.exit_code == 1
    assert "575 of 600 rows (96%) would be lost. Found: duplicate time (575): line 3: same time as line 2" in words(
        result
    )
    assert "--most-lost" in words(result)
    told = invoke("detect", path, "--most-lost", 1, *QUICK)
    assert told.exit_code == 3
    assert "25 observations" in told.stdout


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_rows_are_lost_for_whatever_reason(tmp_path, share):
    path = tmp_path / "odd.csv"
    bad = ("yesterday,1", "2024-01-01,1,2,3", "2023-01-01 00:00,broken")
    lines = [f"{time},{x}" for time, x in zip(*hourly(), strict=True)]
    for place in range(int(share * 600)):
        lines[place * 4 + 3] = bad[place % 3]
    path.write_text("time,x\n" + "\n".join(lines) + "\n")
    result = invoke("detect", path, *QUICK)
    assert result.exit_code == (1 if share > 0.05 else 3)
    assert ("120 of 600 rows (20%) would be lost" in words(result)) == (share > 0.05)


def test_what_goes_wrong_while_reading_is_told_in_options_and_the_others_are_done(european, tmp_path):
    path = tmp_path / "slow.csv"
    times = np.datetime64("2024-01-01T00:00") + np.arange(600) * np.timedelta64(3, "h")
    path.write_text("time,x\n" + "".join(f"{time},{i % 7}\n" for i, time in enumerate(times)))
    quick = tmp_path / "quick.csv"
    seconds = np.datetime64("2024-01-01T00:00:00") + np.arange(600)
    quick.write_text("time,x\n" + "".join(f"{time},{i % 7}\n" for i, time in enumerate(seconds)))
    result = invoke("detect", path, quick, "--interval", "1s", *QUICK)
    assert result.exit_code == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "the times are 3 h apart, but the interval is 1 s" in words(result)
    assert "omit --interval" in words(result)
    assert "600 observations" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("t;x\n2024-01-01;1,000\n2024-01-02;1,001\n", [], "set --decimal"),
        ("time,x\n01/02/2024,1\n02/02/2024,2\n", [], "set --day-first or --month-first, or --time-format"),
        (
            "time,x\n1,1\n2,2\n3,3\n",
            ["--interval", "5min"],
            "--interval must be a number, because the times are numbers",
        ),
        ("time,x\n1,1\n2,2\n3,3\n", ["--every", "5min"], "--every must be a number, because the times are numbers"),
        (
            "x\n1\n2\n3\n",
            ["--every", "5min"],
            "--every needs times, but no column holds any; set --time to the time column",
        ),
        ("time,x\nfoo,1\nbar,2\n", [], "or the form in --time-format"),
        ("time,x\n1,1\n", ["--value", "z"], "no column 'z' (given as --value)"),
        ("time,x\n1,1,5\n2,1,5\n", [], "has no rows. Found: wrong number of fields (2): line 2: 3 instead of 2"),
        ("time,x\n1,1,5\n2,1,5\n", [], "What may help: --delimiter is the field separator"),
        ("time,x\n1,5%\n2,6%\n", [], "its columns: 'time', 'x'; 'x' is text such as '5%'"),
        ("time,x\n1,1\n1,2\n1,3\n", [], "What may help: --id names the column that tells signals apart"),
    ],
)
def test_errors_name_the_option_that_helps(content, arguments, said, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(content)
    result = invoke("detect", path, *arguments, *QUICK)
    assert result.exit_code == 1
    assert said in words(result)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--every", "soon"], "expected a duration such as"),
        (["--every", "1h", "--interval", "1h"], "--every sets the interval"),
        (["--aggregate", "median"], "--aggregate must be one of 'mean', 'last', 'max', 'sum', 'count'"),
        (["--decimal", "x"], "--decimal must be one of"),
        (["--encoding", "klingon"], "--encoding must be one that Python knows"),
        (["--most-lost", "7"], "--most-lost must be a number"),
        (["--skip", "-1"], "--skip"),
    ],
)
def test_wrong_ways_of_reading_are_named(arguments, said, european):
    result = invoke("detect", european, *arguments)
    assert result.exit_code == 2, result.output
    assert said in words(result)


@pytest.mark.parametrize(
    ("aggregate", "expected"), [("mean", 2.0), ("last", 3.0), ("max", 4.0), ("sum", 6.0), ("count", 3.0)]
)
def test_observations_are_put_together(aggregate, expected, tmp_path):
    path, output = tmp_path / "fast.csv", tmp_path / "v.csv"
    seconds = np.datetime64("2024-01-01T00:00:00") + np.arange(60) * np.timedelta64(20, "s")
    cells = ["4", "-1", "3"] * 20
    path.write_text("time,x\n" + "".join(f"{time},{x}\n" for time, x in zip(seconds, cells, strict=True)))
    result = invoke("detect", path, "--every", "1min", "--aggregate", aggregate, "-o", output, *QUICK)
    assert result.exit_code == 0, result.output
    assert f"every 1 min ({aggregate})" in result.stderr
    rows = output.read_text().splitlines()
    assert len(rows) == 21
    assert float(rows[1].split(",")[rows[0].split(",").index("value")]) == expected


def test_a_rare_budget_on_one_second_data_works(tmp_path):
    path = tmp_path / "fast.csv"
    seconds = np.datetime64("2024-01-01T00:00:00") + np.arange(3600)
    path.write_text("time,x\n" + "".join(f"{time},{i * 7919 % 101}\n" for i, time in enumerate(seconds)))
    result = invoke("detect", path, "--every", "1min", "--alarm-rate", "1/day", *QUICK)
    assert result.exit_code == 0, result.output
    assert "60 observations" in result.stdout


def test_what_irregular_times_do_is_told(tmp_path):
    path = tmp_path / "irregular.csv"
    steps = np.where(np.arange(600) % 10 == 0, 80, np.where(np.arange(600) % 10 == 5, 300, 60))
    times = np.datetime64("2024-01-01T00:00:00") + np.cumsum(steps)
    path.write_text("time,x\n" + "".join(f"{time},{i * 7919 % 101}\n" for i, time in enumerate(times)))
    said = words(invoke("detect", path, *QUICK))
    assert "every 1 min; 59 of 599 steps are irregular and count as one each (--every regularises them)" in said
    assert "60 gaps, 240 observations in all, count as missing" in said
    assert "are irregular" not in words(invoke("detect", path, "--every", "10min", *QUICK))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
def test_results_that_cannot_be_written_are_told(european, tmp_path):
    target = tmp_path / "v.csv"
    result = invoke("detect", european, *QUICK, "--incidents", target)
    assert result.exit_code == 0
    target.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tocsin.data.writers.open", lambda *_, **__: open("/dev/full", "wb"), raising=False)  # noqa: SIM115
        result = invoke("detect", european, *QUICK, "--incidents", target)
    assert result.exit_code == 1
    assert "cannot write the results" in words(result)


def test_rows_made_up_for_gaps_are_no_observations(tmp_path):
    path = tmp_path / "gap.csv"
    times, values = hourly()
    lines = [f"{time},{x}\n" for time, x in zip(times, values, strict=True)]
    path.write_text("time,x\n" + "".join(lines[:300] + lines[400:]))
    result = invoke("detect", path, *QUICK)
    assert "gap (1): after line 301: 100 missing" in words(result)
    assert "500 observations" in result.stdout
    path.write_text("time,x\n" + "".join(lines[:30] + lines[130:150]))
    assert "has 50 observations" in words(invoke("detect", path, "--alarm-rate", "1/week"))


LINES = "Date;Time;Wärme;anomaly\n" + "".join(f"{day:02d}.04.2024;18.00.00;{day},5;0\n" for day in range(1, 9))


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [full("utf-8"), full("latin-1"), "utf-16", full("utf-16-le")])
def test_watch_understands_lines_in_any_encoding(encoding):
    command = [sys.executable, "-m", "tocsin", "watch"]
    result = subprocess.run(command, input=LINES.encode(encoding), capture_output=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr.decode().startswith("time: Date + Time, day first; decimal comma; 1 feature; not anomaly\n")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["value"] for record in records] == [day + 0.5 for day in range(1, 9)]
    assert records[0]["time"] == "2024-04-01T18:00:00"


def test_watch_takes_the_options_for_what_lines_do_not_tell():
    lines = "logger 5\ntime;x;y\n01/02/2024;1,234;-9\n02/02/2024;5,678;3\n"
    options = ["--skip", 1, "--month-first", "--decimal", ",", "--missing", "-9", "--encoding", "utf-32-le"]
    result = invoke("watch", *options, stdin=lines.encode("utf-32-le"))
    assert result.exit_code == 0, result.stderr
    first = json.loads(result.stdout.splitlines()[0])
    assert (first["time"], first["value"]) == ("2024-01-02T00:00:00", [1.234, None])
    refused = invoke("watch", "--skip", 1, stdin=lines)
    assert refused.exit_code == 3
    assert "line 3: numbers such as '1,234' are ambiguous" in refused.stderr
    assert "set --decimal" in refused.stderr


def test_watch_puts_observations_together():
    times = np.datetime64("2024-01-01T00:00:00") + np.arange(9) * np.timedelta64(20, "s")
    lines = "time,x\n" + "".join(f"{time},{i}\n" for i, time in enumerate(times))
    result = invoke("watch", "--every", "1min", "--aggregate", "max", stdin=lines)
    assert result.exit_code == 0, result.stderr
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(record["time"], record["value"]) for record in records] == [
        ("2024-01-01T00:00:00", 2.0), ("2024-01-01T00:01:00", 5.0), ("2024-01-01T00:02:00", 8.0),
    ]  # fmt: skip
    refused = invoke("watch", "--every", "1min", stdin="1\n")
    assert refused.exit_code == 3
    assert "--every needs times, but the lines have none; set --time to the time field" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--encoding", "klingon"], "--encoding must be one that Python knows"),
        (["--decimal", "x"], "--decimal must be one of"),
        (["--every", "1h", "--interval", "1h"], "--every sets the interval"),
        (["--every", "1h", "--aggregate", "median"], "--aggregate must be one of"),
    ],
)
def test_wrong_ways_of_reading_lines_are_named(arguments, said):
    result = invoke("watch", *arguments, stdin="1\n")
    assert result.exit_code == 2, result.output
    assert said in words(result)
