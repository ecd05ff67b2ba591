"""What was found, as tables and pictures."""

import io

import numpy as np
import pytest
from rich.console import Console

from tocsin.data import Signal
from tocsin.detection import Incident, detect_signal
from tocsin.evaluation import detection_report
from tocsin.evaluation.detection_report import MOST_POINTS


def an_incident(number=0, p=0.001, **more):
    fields = {
        "signal": f"signal {number}", "start": np.datetime64("2026-01-01T00:00:00", "ns"),
        "end": np.datetime64("2026-01-01T01:00:00", "ns"), "peak": np.datetime64("2026-01-01T00:30:00", "ns"),
        "first": 10, "last": 22, "alarms": 5, "p": p, "merged": p, "direction": "above", "deviation": 3.25,
        "contributions": {"flow": 1.0, "pressure": 4.0}, "open": False, **more,
    }  # fmt: skip
    return Incident(**fields)


def printed(table, width=100):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(table)
    return console.export_text()


def test_the_most_severe_come_first_and_the_rest_is_counted():
    incidents = [an_incident(k, p=0.01 / (k + 1)) for k in range(30)]
    text = printed(detection_report.incident_table(incidents, top=3, many=True))
    assert "30 incidents, the 3 most severe" in text
    assert [text.index(f"signal {k} ") for k in (29, 28, 27)] == sorted(
        text.index(f"signal {k} ") for k in (29, 28, 27)
    )
    assert "signal 26 " not in text
    assert "pressure, flow" in text
    assert "+3.25" in text


def test_an_open_incident_is_said_to_be_open():
    text = printed(detection_report.incident_table([an_incident(open=True)], top=3, many=False))
    assert "1 incident" in text
    assert "still open" in text


@pytest.mark.parametrize("times", ["moments", "numbers", "floats"])
def test_columns_of_incidents(times):
    kinds = {"moments": np.datetime64("2026-01-01T00:00:00", "ns"), "numbers": 7, "floats": 7.5}
    incident = an_incident(start=kinds[times], end=kinds[times], peak=kinds[times])
    columns = detection_report.incident_columns([incident])
    assert columns["start"].dtype.kind == {"moments": "M", "numbers": "i", "floats": "f"}[times]
    assert columns["duration"].tolist() == [13]
    assert columns["features"].tolist() == ["pressure, flow"]
    assert {len(column) for column in columns.values()} == {1}
    assert {len(column) for column in detection_report.incident_columns([]).values()} == {0}


def test_thinning_loses_no_spike():
    values = np.random.default_rng(0).normal(size=100_000)
    values[77_777], values[5:5000] = 50, np.nan
    at, drawn = detection_report._thinned(np.arange(values.size), values)
    assert at.size == drawn.size <= MOST_POINTS
    assert np.nanmax(drawn) == 50
    assert np.nanmin(drawn) == np.nanmin(values)
    assert abs(at[np.nanargmax(drawn)] - 77_777) <= 100_000 / MOST_POINTS * 2
    assert np.isnan(drawn).any()


def a_signal(length, features=("value",), fault=True):
    values = np.random.default_rng(0).normal(size=(length, len(features)))
    if fault:
        values[-50, 0] += 15
    return Signal("s", tuple(features), None, values, np.arange(1, length + 1), None, ())


@pytest.mark.parametrize("length", [900, MOST_POINTS + 500])
@pytest.mark.parametrize("features", [("value",), ("a", "b", "c", "d", "e")])
def test_pictures_of_one_signal(length, features, tmp_path):
    from matplotlib.image import imread

    settings = {"forecaster": "last-value", "horizons": 3, "window": 500}
    result = detect_signal(a_signal(length, features), settings, keep=True)
    assert result.error is None
    detection_report.draw_detection([result], tmp_path / "p.png")
    pixels = imread(tmp_path / "p.png")
    red = (pixels[..., 0] > 0.7) & (pixels[..., 1] < 0.1) & (pixels[..., 2] < 0.1)
    assert red.sum() > 20
    assert np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0).shape[0] > 30


def test_a_picture_of_many_signals_and_of_one_without_any_alarm(tmp_path):
    settings = {"forecaster": "last-value", "horizons": 3, "window": 500}
    results = [detect_signal(a_signal(600, fault=k > 5), settings, keep=True) for k in range(9)]
    detection_report.draw_detection(results, tmp_path / "many.png")
    still = Signal("still", ("value",), None, np.full((400, 1), 5.0), np.arange(1, 401), None, ())
    detection_report.draw_detection([detect_signal(still, settings, keep=True)], tmp_path / "still.png")
    gone = Signal("gone", ("value",), None, np.full((400, 1), np.nan), np.arange(1, 401), None, ())
    detection_report.draw_detection([detect_signal(gone, settings, keep=True)], tmp_path / "gone.png")
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("many.png", "still.png", "gone.png"))


def test_a_signal_in_which_something_goes_wrong_says_so():
    result = detect_signal(a_signal(100), {"alarm_rate": "1/day"}, keep=False)
    assert "interval" in result.error
    empty = detect_signal(a_signal(0, fault=False), {}, keep=True)
    assert empty.observations == 0
    assert empty.incidents == []
