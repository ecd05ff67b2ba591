"""`tocsin causes`: what is printed is what the library says of where most signals moved, or of a time."""

import numpy as np
import pytest

from tests.cli.calling import invoke, words
from tocsin.data import read_signals
from tocsin.detection import EventSignal, detect_signals, moving_order

QUICK = {"preset": "light", "views": "error", "alarm_rate": 0.002}
OPTIONS = ["--preset", "light", "--views", "error", "--alarm-rate", "0.002"]


@pytest.fixture
def file(tmp_path):
    """The pump fails four minutes before the valve and the outlet do; the hall has its own trouble later."""
    values = np.random.default_rng(0).normal(size=(1000, 4))
    values[900:, 1] += 9
    values[904:, 0] += 8
    values[904:, 2] -= 8
    values[960:970, 3] += 7
    times = np.datetime64("2026-01-01T00:00:00") + np.arange(1000) * np.timedelta64(60, "s")
    rows = (",".join(map(str, (time, *row))) for time, row in zip(times, values.round(4), strict=True))
    path = tmp_path / "plant.csv"
    path.write_text("\n".join(["time,outlet,pump,valve,hall", *rows]))
    return path


def test_it_says_what_the_library_says(file):
    result = invoke("causes", file, *OPTIONS, "--at", "2026-01-01T15:04:00")
    assert result.exit_code == 0, result.output
    with read_signals(file, separate=True) as signals:
        found = list(detect_signals([signals[one] for one in range(3)], QUICK, keep=True))
    near = [next(one for one in result.incident_list if one.first >= 880) for result in found]
    order = moving_order([EventSignal.of(*one) for one in zip(found, near, strict=True)])
    assert str(order).startswith("first: pump, at least 4 min before the rest (p = 0.0")
    assert words(result).startswith(f"3 of 4 signals moved; {order}")
    places = [words(result).rindex(f" {one.signal} ") for one in order.movers]
    assert places == sorted(places)


def test_the_event_is_that_of_most_signals_or_of_a_time(file):
    assert words(invoke("causes", file, *OPTIONS)).startswith("3 of 4 signals moved; first: pump")
    alone = invoke("causes", file, *OPTIONS, "--at", "2026-01-01T16:05:00", "--within", "5min")
    assert words(alone) == "1 of 4 signals moved; only hall moved"
    wide = words(invoke("causes", file, *OPTIONS, "--within", "1d"))
    assert wide.startswith("4 of 4 signals moved")
    assert words(invoke("causes", file, *OPTIONS, "--at", "2026-01-01T01:00:00")) == (
        "no incidents at 2026-01-01T01:00:00"
    )


def test_what_is_wrong_is_named(file, tmp_path):
    assert "'never'" in words(invoke("causes", file, "--within", "never"))
    wrong = invoke("causes", file, "--at", "never")
    assert wrong.exit_code == 2
    assert "--at" in words(wrong)
    number = invoke("causes", file, *OPTIONS, "--at", "900")
    assert number.exit_code == 2
    assert "900" in words(number)
    missing = invoke("causes", tmp_path / "none.csv")
    assert missing.exit_code == 1
    assert "none.csv" in missing.output
