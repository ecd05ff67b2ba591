"""`--zone` and `--holidays` on the command line."""

import csv
import json

import numpy as np
import pytest

from tests.cli.calling import invoke, noisy_values, words
from tocsin.data.zones import Zone

QUICK = ["--forecaster", "last-value", "--views", "error,level", "--alarm-rate", "0.01"]
BERLIN = ["--zone", "Europe/Berlin"]


@pytest.fixture
def file(tmp_path):
    """Five-minute values in the local times of Berlin, with a fault in the second of two hours from 2 to 3 o'clock."""
    moments = np.datetime64("2026-10-22T00:00", "s") + np.arange(1200) * np.timedelta64(5, "m")
    values = noisy_values(1200, fault=None)
    fault = int(np.flatnonzero(moments == np.datetime64("2026-10-25T01:20"))[0])
    values[fault : fault + 3] += 15
    rows = [f"{time},{value}" for time, value in zip(Zone("Europe/Berlin").shown(moments), values, strict=True)]
    path = tmp_path / "plant.csv"
    path.write_text("\n".join(["time,value", *rows]) + "\n")
    return path


def test_the_repeated_hour_is_two_hours(file, tmp_path):
    output, incidents = tmp_path / "verdicts.csv", tmp_path / "incidents.csv"
    result = invoke("detect", file, *BERLIN, *QUICK, "--output", output, "--incidents", incidents)
    assert result.exit_code == 0, result.output
    assert "time: time, Europe/Berlin; 1 feature; every 5 min" in words(result)
    with open(output) as text, open(file) as given:
        assert [row["time"] for row in csv.DictReader(text)] == [row["time"] for row in csv.DictReader(given)]
    with open(incidents) as text:
        assert "2026-10-25T02:20:00" in [row["start"] for row in csv.DictReader(text)]
    without = invoke("detect", file, *QUICK)
    assert without.exit_code == 3
    assert "duplicate time (12)" in words(without)


def test_a_reference_is_named_by_local_times(file):
    result = invoke("detect", file, *BERLIN, *QUICK, "--reference", "2026-10-22T02:00/2026-10-24T02:00")
    assert result.exit_code == 0, result.output
    result = invoke("detect", file, *BERLIN, *QUICK, "--reference", "2026-10-21T00:00/2026-10-22T02:00")
    assert "must contain a row" in words(result)


def test_lines_have_local_times(file):
    lines = file.read_text()
    result = invoke("watch", *BERLIN, *QUICK, "--interval", "5min", stdin=lines)
    assert result.exit_code == 0, result.output
    records = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert len(records) == 1200
    assert [one["time"] for one in records if one["time"][:16] == "2026-10-25T02:20"] == [
        "2026-10-25T02:20:00+02:00", "2026-10-25T02:20:00+01:00",
    ]  # fmt: skip
    (start,) = {one["incident"]["start"] for one in records if one["alarm"] and "10-25T02:2" in one["time"]}
    assert start == "2026-10-25T02:20:00+01:00"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["detect", "FILE", "--zone", "Berlin"],
            "zone must be a time zone such as 'Europe/Berlin' or 'UTC', got 'Berlin'.",
        ),
        (
            ["detect", "FILE", "--holidays", "Christmas"],
            "holidays must be codes of countries or their regions ('DE', 'DE-BY')",
        ),
        (["watch", *BERLIN], "zone='Europe/Berlin' needs the sampling interval too, such as interval='5min'"),
    ],
)
def test_what_is_wrong_is_named(file, arguments, said):
    result = invoke(*[file if one == "FILE" else one for one in arguments], stdin="1\n")
    assert result.exit_code == 2
    assert said in words(result)


def test_lines_without_times_are_refused():
    result = invoke("watch", *BERLIN, *QUICK, "--interval", "5min", stdin="1\n2\n")
    assert "line 1: times must be given, as dates, with a zone or holidays, got none" in words(result)


def test_numbers_are_no_dates(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("time,value\n" + "".join(f"{number},1\n" for number in range(50)))
    result = invoke("detect", path, "--holidays", "2026-12-24", *QUICK)
    assert result.exit_code == 1
    assert "times must be given, as dates, with a zone or holidays, got numbers" in words(result)


def test_a_season_may_be_a_duration(file):
    assert invoke("detect", file, *BERLIN, *QUICK, "--season", "1d", "--holidays", "2026-10-24").exit_code == 0
