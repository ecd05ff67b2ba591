"""`tocsin detectable`: what is printed is what the library finds."""

import pytest

from tests.cli.calling import csv_text, invoke, noisy_values, words
from tocsin import Detector
from tocsin.evaluation import detectable

FEW = ["--cases", "2", "--lasts", "20", "--preset", "light", "--alarm-rate", "0.01"]


@pytest.mark.slow
def test_it_says_what_the_library_finds(tmp_path):
    file, values = tmp_path / "pump.csv", noisy_values(900, seed=2, fault=None)
    file.write_text(csv_text(values))
    result = invoke("detectable", file, *FEW)
    assert result.exit_code == 0, result.output
    alone = Detector(["value"], preset="light", alarm_rate=0.01, interval=300.0)
    found = detectable(alone, values, cases=2, lasts=20)
    counted = f"pump: {found.cases} case{'s' * (found.cases > 1)} of each fault"
    assert result.stdout.splitlines() == [counted, *(f"  {one}" for one in found.sentences)]
    assert "a stuck sensor is found" in result.stdout


def test_what_cannot_be_told_is_said_and_the_rest_goes_on(tmp_path):
    short = tmp_path / "short.csv"
    short.write_text(csv_text(noisy_values(100, fault=None)))
    result = invoke("detectable", tmp_path / "none.csv", short, *FEW)
    assert result.exit_code == 1
    assert "none.csv" in result.output
    assert "short: values must have at least" in words(result)
