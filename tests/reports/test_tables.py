"""What was found, as tables and in a few lines."""

import io

import numpy as np
import pytest
from rich.console import Console

from tocsin.data import Signal
from tocsin.detection import Audit, Incident, Result
from tocsin.detection.incidents.incident import incident_columns, onset_text
from tocsin.reports.tables import Chart, audit_summary, incident_rows, incident_table, worst_severity


def an_incident(number=0, severity=3.0, **more):
    fields = {
        "signal": f"signal {number}", "start": np.datetime64("2026-01-01T00:00:00", "ns"),
        "end": np.datetime64("2026-01-01T01:00:00", "ns"), "peak": np.datetime64("2026-01-01T00:30:00", "ns"),
        "first": 10, "last": 22, "alarms": 5, "p": 0.001, "severity": severity, "return_period": 3456.0, "seen": 10_000,
        "view": "error", "explanation": "pressure: 3.25 above the forecast", "direction": "above",
        "deviation": 3.25, "contributions": {"flow": 1.0, "pressure": 4.0}, "ended": "returned", **more,
    }  # fmt: skip
    return Incident(**fields)


def a_result(observations, **more):
    nothing = Signal("a", ("value",), None, np.empty((0, 1)), np.empty(0, dtype=np.int64), None, ())
    return Result(nothing, observations, **more)


def printed(table, width=160):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(table)
    return console.export_text()


def test_the_most_severe_come_first_and_the_rest_is_counted():
    incidents = [an_incident(k, severity=1 + k) for k in range(30)]
    text = printed(incident_table(incidents, top=3, many=True))
    assert "30 incidents, the 3 most severe" in text
    assert [text.index(f"signal {k} ") for k in (29, 28, 27)] == sorted(
        text.index(f"signal {k} ") for k in (29, 28, 27)
    )
    assert "signal 26 " not in text
    assert "pressure   3.25 above" in " ".join(text.split("\n"))


def test_lengths_are_told_in_time_where_the_interval_is_known():
    every = {"signal 0": 300.0}
    text = printed(incident_table([an_incident()], top=3, many=False, intervals=every))
    assert "65 min" in text  # 13 observations, one every 5 minutes
    assert "about once in 12 days" in text
    rarer = printed(incident_table([an_incident(seen=576)], top=3, many=False, intervals=every))
    assert "not seen in these 2 days" in rarer
    numbered = [an_incident(start=10, end=22, peak=15)]
    for incidents, intervals in ((numbered, every), ([an_incident()], {"signal 0": None}), ([an_incident()], None)):
        text = printed(incident_table(incidents, top=3, many=False, intervals=intervals))
        assert "13 observations" in text
        assert "about once in 3,456 observations" in text


def test_incidents_that_recur_are_counted():
    earlier = an_incident(severity=2.0)
    again = an_incident(first=800, last=812, severity=3.0)
    text = printed(incident_table([earlier, again], top=3, many=False))
    assert "the 2nd like this" in text
    assert "the 1st like this" not in text
    worse = an_incident(first=900, last=912, severity=6.1)
    assert "the 3rd like this" not in printed(incident_table([earlier, again, worse], top=3, many=False))


def test_when_an_incident_began_is_told_where_it_was_noticed_late():
    times = np.datetime64("2026-03-01T00:00") + np.array([0, 10, 20]) * np.timedelta64(1, "m")
    late = an_incident(start=times[2], began_earliest=times[0], began_latest=times[1])
    at_once = an_incident(start=times[2], began_earliest=times[0], began_latest=times[2])
    assert onset_text(late) == "between 2026-03-01 00:00:00 and 2026-03-01 00:10:00"
    assert onset_text(at_once) == ""
    assert "began" in printed(incident_table([late], top=1, many=False))


@pytest.mark.parametrize(
    ("ended", "words"),
    [("returned", "returned"), ("accepted", "accepted"), ("silent", "no more values"), ("labelled", "labelled"),
     (None, "still open")],
)  # fmt: skip
def test_how_an_incident_ended_is_told(ended, words):
    text = printed(incident_table([an_incident(ended=ended)], top=3, many=False))
    assert "1 incident" in text
    assert words in text
    columns = incident_columns([an_incident(ended=ended)])
    assert (columns["ended"].tolist(), columns["open"].tolist()) == ([ended or ""], [ended is None])


def test_units_stand_beside_what_was_seen_and_not_in_names():
    incident = an_incident(
        contributions={"flow [l/s]": 1.0, "pressure [bar]": 4.0}, explanation="flow: 3.2 l/s above the forecast"
    )
    text = printed(incident_table([incident], top=3, many=False))
    assert "flow      3.2 l/s above the forecast" in text
    assert "[bar]" not in text


def test_the_summary_tells_the_finding_with_its_ratio_and_since_when():
    audit = Audit(0.01, 4000, 120, 1.0, 0.99, 0.021, 0.042, first=551)
    one = a_result(4551, audit=audit)
    assert audit_summary([one]) == (
        "4,551 observations; after warm-up 120 incidents, 40 tolerated (true faults count too)\n"
        "too many: 3.0 times the promised incidents since observation 551 (99% sure: 2.1 to 4.2 times)"
    )
    several = audit_summary([one, one])
    assert several.startswith("9,102 observations of 2 signals; after warm-up 240 incidents, 80 tolerated")
    assert "too many: 3.0 times the promised incidents since warm-up" in several
    nothing = a_result(40, audit=Audit(0.01, 0, 0, 1.0, 0.99, 0.0, 1.0))
    assert audit_summary([nothing]) == "40 observations, all of them warm-up"


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
    one = a_result(4551, audit=audit, judged_since=since, own_past_since=own)
    assert audit_summary([one]).splitlines()[-1] == told
    assert "judged" not in audit_summary([one, one])


def test_the_signal_with_the_most_severe_incident_is_the_worst():
    calm, bad = ([an_incident(severity=severity)] for severity in (1.0, 4.0))
    assert sorted([calm, [], bad], key=worst_severity) == [[], calm, bad]


def test_the_first_charts_are_of_what_the_worst_incident_is_about_and_then_of_the_first_of_others():
    columns = {f"value {name}": np.zeros(9) for name in "abcdef"}
    worst = an_incident(severity=9.0, contributions=dict(zip("abcdef", (1, 2, 3, 4, 5, 6), strict=True)))
    other = an_incident(1, severity=5.0, contributions=dict(zip("abcdef", (6, 5, 4, 3, 2, 1), strict=True)))
    one = an_incident(2, severity=4.0, contributions={"b": 3.0})  # out of range, with nothing about the others
    assert Chart("s", columns, []).features == list("abcdef")
    assert Chart("s", columns, [other, worst]).features == list("fedabc")
    assert Chart("s", columns, [one, worst]).features == list("fedbca")


def test_features_that_cannot_be_told_apart_are_named():
    clear, unclear = an_incident(), an_incident(1, contributions={"flow": 3.0, "pressure": 4.0, "heat [°C]": 3.5})
    many = an_incident(2, contributions=dict.fromkeys(("pressure", "a", "b", "c", "d", "e"), 4.0))
    _, rows = incident_rows([clear, unclear, many], top=3, many=True)
    assert [row[-2:] for _, row in rows] == [
        ["pressure", "3.25 above the forecast"],
        ["pressure", "3.25 above the forecast; cannot be told from heat, flow"],
        ["pressure", "3.25 above the forecast; cannot be told from a, b, c and 2 more"],
    ]


def test_signals_with_several_features_name_them_beside_signals_with_one():
    plain = an_incident(1, contributions={"oil": 3.0}, explanation="7.5, usually 2 to 3")
    headings, rows = incident_rows([an_incident(), plain], top=2, many=True)
    assert "feature" not in headings
    assert [row[-1] for _, row in rows] == ["pressure: 3.25 above the forecast", "7.5, usually 2 to 3"]


@pytest.mark.parametrize("times", ["moments", "numbers", "floats"])
def test_columns_of_incidents(times):
    kinds = {"moments": np.datetime64("2026-01-01T00:00:00", "ns"), "numbers": 7, "floats": 7.5}
    moments = {"start": kinds[times], "end": kinds[times], "peak": kinds[times]}
    incident = an_incident(**moments, feature_p={"pressure": 0.002})
    columns = incident_columns([incident])
    assert columns["start"].dtype.kind == {"moments": "M", "numbers": "i", "floats": "f"}[times]
    assert columns["duration"].tolist() == [13]
    assert columns["features"].tolist() == ["pressure, flow"]
    assert (columns["feature_p"].tolist(), columns["suspects"].tolist()) == (["0.002, nan"], ["pressure"])
    assert (columns["return_period"].tolist(), columns["view"].tolist()) == ([3456.0], ["error"])
    assert columns["explanation"].tolist() == ["pressure: 3.25 above the forecast"]
    assert {len(column) for column in columns.values()} == {1}
    assert {len(column) for column in incident_columns([]).values()} == {0}
