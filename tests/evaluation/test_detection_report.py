"""What was found, as tables and pictures."""

import io

import numpy as np
import pytest
from rich.console import Console

from tocsin.data import Signal
from tocsin.detection import Audit, Incident, SignalResult, detect_signal
from tocsin.evaluation import detection_picture, detection_report
from tocsin.evaluation.detection_picture import MOST_POINTS

QUICK = {"forecaster": "last-value", "window": 500}


def an_incident(number=0, severity=3.0, **more):
    fields = {
        "signal": f"signal {number}", "start": np.datetime64("2026-01-01T00:00:00", "ns"),
        "end": np.datetime64("2026-01-01T01:00:00", "ns"), "peak": np.datetime64("2026-01-01T00:30:00", "ns"),
        "first": 10, "last": 22, "alarms": 5, "p": 0.001, "severity": severity, "return_period": 3456.0,
        "view": "level", "explanation": "pressure: level 3.25 above what was forecast", "direction": "above",
        "deviation": 3.25, "contributions": {"flow": 1.0, "pressure": 4.0}, "ended": "returned", **more,
    }  # fmt: skip
    return Incident(**fields)


def printed(table, width=160):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(table)
    return console.export_text()


def test_the_most_severe_come_first_and_the_rest_is_counted():
    incidents = [an_incident(k, severity=1 + k) for k in range(30)]
    text = printed(detection_report.incident_table(incidents, top=3, many=True))
    assert "30 incidents, the 3 most severe" in text
    assert [text.index(f"signal {k} ") for k in (29, 28, 27)] == sorted(
        text.index(f"signal {k} ") for k in (29, 28, 27)
    )
    assert "signal 26 " not in text
    assert "pressure   level 3.25 above" in " ".join(text.split("\n"))


def test_lengths_are_told_in_time_where_the_interval_is_known():
    every = {"signal 0": 300.0}
    text = printed(detection_report.incident_table([an_incident()], top=3, many=False, intervals=every))
    assert "65 min" in text  # 13 observations, one every 5 minutes
    assert "about once in 12 days" in text
    numbered = [an_incident(start=10, end=22, peak=15)]
    for incidents, intervals in ((numbered, every), ([an_incident()], {"signal 0": None}), ([an_incident()], None)):
        text = printed(detection_report.incident_table(incidents, top=3, many=False, intervals=intervals))
        assert "13 observations" in text
        assert "about once in 3,456 observations" in text


@pytest.mark.parametrize(
    ("ended", "words"),
    [("returned", "returned"), ("accepted", "accepted"), ("silent", "no more values"), ("labelled", "labelled"),
     (None, "still open")],
)  # fmt: skip
def test_how_an_incident_ended_is_told(ended, words):
    text = printed(detection_report.incident_table([an_incident(ended=ended)], top=3, many=False))
    assert "1 incident" in text
    assert words in text
    columns = detection_report.incident_columns([an_incident(ended=ended)])
    assert (columns["ended"].tolist(), columns["open"].tolist()) == ([ended or ""], [ended is None])


def test_units_stand_beside_what_was_seen_and_not_in_names():
    incident = an_incident(
        contributions={"flow [l/s]": 1.0, "pressure [bar]": 4.0}, explanation="flow: 3.2 l/s above the forecast"
    )
    text = printed(detection_report.incident_table([incident], top=3, many=False))
    assert "flow      3.2 l/s above the forecast" in text
    assert "[bar]" not in text


def test_the_summary_tells_the_finding_with_its_ratio_and_since_when():
    audit = Audit(0.01, 4000, 120, 1.0, 0.99, 0.021, 0.042, first=551)
    one = SignalResult("a", 4551, [], 0.01, audit)
    assert detection_report.summary([one]) == (
        "4,551 observations; after warm-up 120 incidents, 40 tolerated (true faults count too)\n"
        "too many: 3.0 times the promised incidents since observation 551 (99% sure: 2.1 to 4.2 times)"
    )
    several = detection_report.summary([one, one])
    assert several.startswith("9,102 observations of 2 signals; after warm-up 240 incidents, 80 tolerated")
    assert "too many: 3.0 times the promised incidents since warm-up" in several
    nothing = SignalResult("a", 40, [], 0.01, Audit(0.01, 0, 0, 1.0, 0.99, 0.0, 1.0))
    assert detection_report.summary([nothing]) == "40 observations, all of them warm-up"


@pytest.mark.parametrize(
    ("since", "own", "told"),
    [
        (551, 551, "judged since 551, by its own past"),
        (551, 1200, "judged since 551; by its own past since 1200, before that estimated"),
        (551, None, "judged since 551, by an estimate: the signal is too short for its own past to tell"),
    ],
)
def test_the_summary_tells_since_when_and_by_what_a_signal_is_judged(since, own, told):
    audit = Audit(0.01, 4000, 40, 1.0, 0.99, 0.008, 0.012, first=since)
    one = SignalResult("a", 4551, [], 0.01, audit, judged_since=since, own_past_since=own)
    assert detection_report.summary([one]).splitlines()[-1] == told
    assert "judged" not in detection_report.summary([one, one])


def test_the_signal_with_the_most_severe_incident_is_the_worst():
    calm, bad = (SignalResult("a", 1, [an_incident(severity=severity)]) for severity in (1.0, 4.0))
    none = SignalResult("a", 1, [])
    assert sorted([calm, none, bad], key=detection_report.worst_severity) == [none, calm, bad]


@pytest.mark.parametrize("times", ["moments", "numbers", "floats"])
def test_columns_of_incidents(times):
    kinds = {"moments": np.datetime64("2026-01-01T00:00:00", "ns"), "numbers": 7, "floats": 7.5}
    incident = an_incident(start=kinds[times], end=kinds[times], peak=kinds[times])
    columns = detection_report.incident_columns([incident])
    assert columns["start"].dtype.kind == {"moments": "M", "numbers": "i", "floats": "f"}[times]
    assert columns["duration"].tolist() == [13]
    assert columns["features"].tolist() == ["pressure, flow"]
    assert (columns["return_period"].tolist(), columns["view"].tolist()) == ([3456.0], ["level"])
    assert columns["explanation"].tolist() == ["pressure: level 3.25 above what was forecast"]
    assert {len(column) for column in columns.values()} == {1}
    assert {len(column) for column in detection_report.incident_columns([]).values()} == {0}


def test_thinning_loses_no_spike():
    values = np.random.default_rng(0).normal(size=100_000)
    values[77_777], values[5:5000] = 50, np.nan
    at, drawn = detection_picture._thinned(np.arange(values.size), values)
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


@pytest.mark.slow
@pytest.mark.parametrize("length", [900, MOST_POINTS + 500])
@pytest.mark.parametrize("features", [("value",), ("a", "b", "c", "d", "e")])
def test_pictures_of_one_signal(length, features, tmp_path):
    from matplotlib.image import imread

    result = detect_signal(a_signal(length, features), QUICK, keep=True)
    assert result.error is None
    assert result.incidents
    detection_report.draw_detection([result], tmp_path / "p.png", faults=[(10, 10, features[0], "a fault")])
    pixels = imread(tmp_path / "p.png")
    red = (pixels[..., 0] > 0.7) & (pixels[..., 1] < 0.1) & (pixels[..., 2] < 0.1)
    assert red.sum() > 20
    assert np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0).shape[0] > 30


def test_a_picture_of_what_every_view_sees_over_time(tmp_path):
    values = np.sin(np.arange(2400) / 9)[:, np.newaxis] + 0.1 * np.random.default_rng(0).normal(size=(2400, 1))
    values[1500:1560] = values[1500]
    values[1900:2000] += 2
    values[2200:2280] *= -1
    times = np.datetime64("2026-01-01", "ns") + np.arange(2400) * np.timedelta64(300, "s")
    signal = Signal("s", ("value",), times, values, np.arange(1, 2401), np.timedelta64(300, "s"), ())
    result = detect_signal(signal, {**QUICK, "forecaster": "autoregression"}, keep=True)
    assert len(result.incidents) >= 2
    assert {incident.view for incident in result.incidents} & {"shape", "quiet", "level"}
    detection_report.draw_detection([result], tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 20_000


def nearest_by_hand(values, length):
    spread = np.nanstd(values[-(length + detection_picture.LAGS) :], axis=0)
    end = len(values) - length
    best = (np.inf, 0)
    for lag in range(length, min(detection_picture.LAGS, end) + 1):
        difference = (values[end:] - values[end - lag : len(values) - lag]) / np.where(spread > 0, spread, 1)
        if np.isfinite(difference).any():
            best = min(best, (np.nanmean(difference**2), lag))
    return best[1]


@pytest.mark.parametrize("length", [16, 64])
@pytest.mark.parametrize("features", [1, 3])
def test_the_nearest_earlier_stretch(length, features):
    values = np.random.default_rng(0).normal(size=(500, features)) * [1.0, 50.0, 0.0][:features]
    values[100 : 100 + length] = values[-length:] * 1.001
    values[[120, 490, 300], 0] = np.nan
    assert detection_picture.nearest_lag(values, length) == nearest_by_hand(values, length) == 400 - length
    assert detection_picture.nearest_lag(values[-2 * length + 1 :], length) == 0
    assert detection_picture.nearest_lag(np.full((500, 1), np.nan), length) == 0


def test_a_picture_of_many_signals_and_of_one_without_any_alarm(tmp_path):
    settings = QUICK
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
