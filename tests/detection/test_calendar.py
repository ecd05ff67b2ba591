"""Local times and holidays: what a value is compared with."""

import io
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.cases import full
from tests.detection.helpers import ARRAYS
from tocsin.data.zones import Zone
from tocsin.detection import Detector, DetectorSettings, Fleet
from tocsin.detection.calendar import Calendar
from tocsin.detection.evidence.unusual_days import LONG_AGO, UnusualDays
from tocsin.detection.views.level import LevelView
from tocsin.detection.views.view import MOST_AT_ONCE, Seen

BERLIN = "Europe/Berlin"
WEEK = {"interval": "1h", "season": "1w", "views": "level", "forecaster": "last-value", "alarm_rate": "1/month"}
USUAL = {"interval": "1h", "preset": "light", "alarm_rate": "1/month"}
SPRING, AUTUMN = "2026-03-29T01:00", "2026-10-25T01:00"
pytest.importorskip("holidays")


def hours(start, weeks):
    return np.datetime64(start, "ns") + np.arange(weeks * 168) * np.timedelta64(1, "h")


def clocks(times, zone=BERLIN):
    return [
        moment.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(zone)) for moment in times.astype("M8[us]").tolist()
    ]


def plant(times, closed=(), seed=0):
    """A plant that works on weekdays from 7 to 18 o'clock, and rests on Sundays and on days when it is closed."""
    rng = np.random.default_rng(seed)
    level = []
    for clock in clocks(times):
        resting = clock.weekday() == 6 or clock.date() in closed
        level.append(3.0 if resting else 20.0 if clock.weekday() < 5 and 7 <= clock.hour < 18 else 8.0)
    return np.array(level) + rng.normal(size=len(times))


@pytest.mark.parametrize("zone", [None, BERLIN, "America/New_York", "Africa/Casablanca", "Australia/Lord_Howe"])
@pytest.mark.parametrize("minutes", [5, 30, 60])
def test_places_are_those_of_every_single_time(zone, minutes):
    times = np.datetime64("2025-12-20", "ns") + np.arange(200 * 24 * 60 // minutes) * np.timedelta64(minutes, "m")
    listed = [date(2026, 1, 1), date(2026, 3, 29), date(2026, 4, 7)]
    found = Calendar(zone, [day.isoformat() for day in listed], 60.0 * minutes).places(times)
    step = timedelta(minutes=minutes)
    for clock, (ahead, back) in zip(clocks(times, zone or "UTC"), found.tolist(), strict=True):
        assert ahead == round(clock.utcoffset() / step)
        expected = 0
        if clock.date() in listed:
            sunday = clock.date() - timedelta(days=1)
            while sunday.weekday() != 6:
                sunday -= timedelta(days=1)
            expected = round((clock.date() - sunday) / step)
        assert back == expected


def at_same_local_time(times, shown, number, period, on_holiday):
    """The observations of five earlier cycles around the same local time, by looking at every one: a slow oracle."""
    now = shown[number]
    weekly = on_holiday[number] and period.days == 7
    back = timedelta(days=(now.weekday() + 1) % 7 or 7) if weekly else timedelta(0)
    found = []
    for cycle in range(15):
        wanted = now - back - cycle * period
        if now - wanted > timedelta(hours=101):
            there = [i for i in range(number) if shown[i] == wanted]
            if not there:  # Clocks skipped it: it is as long after the change as it says.
                moment = wanted.replace(tzinfo=ZoneInfo(BERLIN)).astimezone(ZoneInfo("UTC")).replace(tzinfo=None)
                there = [i for i in range(number) if times[i] == moment]
            found.append([i + near for i in there[-1:] for near in (-1, 0, 1) if not on_holiday[max(i + near, 0)]])
    return [i for cycle in [near for near in found if near][:5] for i in cycle if i >= 0]


@pytest.mark.parametrize(
    ("start", "days", "season"),
    [
        ("2026-02-22T23:00", [date(2026, 4, 3), date(2026, 4, 6)], "1d"),
        full("2026-02-22T23:00", [date(2026, 4, 3), date(2026, 4, 6)], "1w"),
        full("2026-09-20T22:00", [date(2026, 10, 31)], "1d"),
        ("2026-09-20T22:00", [date(2026, 10, 31)], "1w"),
    ],
)
def test_values_are_compared_with_those_of_the_same_local_time(start, days, season):
    """Ten weeks around a change of clocks: each score is the distance to the median of what the oracle names."""
    times = hours(start, 10)
    settings = DetectorSettings(
        **{**WEEK, "season": season}, zone=BERLIN, holidays=[day.isoformat() for day in days]
    )  # fmt: skip
    values = np.random.default_rng(4).normal(size=times.size).round(2)
    (view,) = settings.chosen_views
    assert isinstance(view, LevelView)
    session = view.open(1, 1, 0)
    scores = np.full((times.size, 1, 1, 4), np.nan)
    places = settings.local_calendar.places(times[:, np.newaxis])
    for first in range(0, times.size, MOST_AT_ONCE):
        part = slice(first, first + MOST_AT_ONCE)
        session.run(Seen(values[part, np.newaxis, np.newaxis], (), places[part]), np.arange(1), scores[part])
    period = timedelta(days=1 if season == "1d" else 7)
    shown, moments = [clock.replace(tzinfo=None) for clock in clocks(times)], times.astype("M8[us]").tolist()
    on_holiday = [clock.date() in days for clock in shown]
    for number in range(36 * 24, times.size):
        same = at_same_local_time(moments, shown, number, period, on_holiday)
        usual = np.median([np.float32(values[i]) for i in same])
        assert scores[number, 0, 0, 0] == pytest.approx(values[number] - usual, abs=1e-6), shown[number]
    assert sum(on_holiday[36 * 24 :]) == 24 * len(days)


@pytest.mark.parametrize(("start", "changed"), [("2026-02-01T23:00", SPRING), ("2026-08-30T22:00", AUTUMN)])
def test_clocks_that_change_are_no_incident(start, changed):
    """Four plants at once: without a zone all of them have an incident in the week after it, as rare as can be."""
    times = hours(start, 10)
    values = np.stack([plant(times, seed=seed) for seed in range(4)], axis=1)
    for zone, found in ((None, 4), (BERLIN, 0)):
        fleet = Fleet(4, **USUAL, zone=zone)
        fleet.run_arrays(values, times=np.stack([times] * 4, axis=1))
        week = np.datetime64(changed), np.datetime64(changed) + np.timedelta64(7, "D")
        rare = [one for one in fleet.incidents() if one.start >= week[0] and one.return_period > 20_000]
        assert len({one.signal for one in rare}) == found
        assert bool([one for one in rare if one.start < week[1]]) == bool(found)


def test_a_holiday_that_runs_like_a_sunday_is_no_incident():
    """The third of October 2023 was a Tuesday. Nothing follows from it a week later either."""
    times = hours("2023-08-06T22:00", 10)
    values = np.stack([plant(times, closed={date(2023, 10, 3)}, seed=seed) for seed in range(4)], axis=1)
    begins = np.datetime64("2023-10-02T22:00")

    def on(days, given):
        fleet = Fleet(4, **USUAL, zone=BERLIN, holidays=given)
        fleet.run_arrays(values, times=np.stack([times] * 4, axis=1))
        since = [(one.start - begins) / np.timedelta64(1, "D") for one in fleet.incidents() if one.end >= begins]
        return [one for one in since if any(day <= one < day + 1 for day in days)]

    assert len(on([0], None)) == 4
    assert on([0, 7], "DE") == []
    assert on([0, 7], [date(2023, 10, 3)]) == []


def test_a_reference_goes_by_the_clock_too():
    """Winter is the reference, and more changes than are kept lie between it and the last weeks."""
    times = hours("2026-02-01T23:00", 16)
    days = [date(2026, 4, 6) + timedelta(days=2 * number) for number in range(20)]
    away = {}
    for zone in (BERLIN, None):
        detector = Detector(**WEEK, zone=zone, holidays=days if zone else None)
        values = plant(times, closed=days if zone else ())
        detector.learn_reference(values[: 7 * 168])
        verdicts = detector.run(values[7 * 168 :], times=times[7 * 168 :]).verdicts
        away[zone] = np.abs(values[7 * 168 :] - verdicts.usual[:, 0, 0, 0])[-2 * 168 :]
    assert away[BERLIN].max() < 6
    assert (away[None] > 6).mean() > 0.05


def test_a_holiday_like_any_tuesday_is_an_incident():
    times = hours("2023-08-06T22:00", 10)
    result = Detector(**USUAL, zone=BERLIN, holidays="DE").run(plant(times), times=times)
    (found,) = [one for one in result.incident_list if one.end >= np.datetime64("2023-10-02T22:00")]
    assert found.start < np.datetime64("2023-10-03T08:00")
    assert found.view == "level"


@pytest.mark.parametrize(
    ("start", "seconds", "count", "season"),
    [("2026-03-01T23:00", 3600, 8 * 168, "1w"), full("2026-03-27T22:00", 10, 14_000, "12h")],
)
def test_streamed_and_restored_it_is_bit_for_bit_the_same(start, seconds, count, season):
    """Over a change of clocks and a holiday: at hours, and where only means of eight reach back far enough."""
    times = np.datetime64(start, "ns") + np.arange(count) * np.timedelta64(seconds, "s")
    rng = np.random.default_rng(1)
    values = np.where([clock.hour % 12 >= 7 for clock in clocks(times)], 4.0, 0.0) + rng.normal(size=count)
    settings = {
        "interval": seconds, "season": season, "views": "error,shape,movement,level", "forecaster": "autoregression",
        "zone": BERLIN, "holidays": "DE-BY, 2026-03-29", "alarm_rate": 0.01,
    }  # fmt: skip
    whole = Detector(**settings)
    expected = whole.run(values, times=times).verdicts
    at = int(rng.integers(count - 1000, count - 600))
    streamed = Detector(**settings)
    streamed.run(values[:at], times=times[:at])
    file = io.BytesIO()
    streamed.save(file)
    file.seek(0)
    restored = Detector.load(file)
    fleet = Fleet(2, **settings)
    both = fleet.run_arrays(np.stack([values, values[::-1]], axis=1), times=np.stack([times, times], axis=1))
    for number in range(at, count):
        one = streamed.update(values[number], times[number])
        assert one.p == expected.p[number, 0]
    rest = restored.run(values[at:], times=times[at:]).verdicts
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(rest, name), getattr(expected, name)[at:])
        np.testing.assert_array_equal(getattr(both, name)[:, :1], getattr(expected, name))
    states = [one.state() for one in (whole, streamed, restored)]
    for name, array in states[0].items():
        for other in states[1:]:
            np.testing.assert_array_equal(other[name], array)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"zone": "Berlin"}, "zone must be a time zone such as 'Europe/Berlin' or 'UTC', got 'Berlin'"),
        ({"zone": 5}, "zone must be a time zone such as 'Europe/Berlin' or 'UTC', got 5"),
        (
            {"holidays": "Germany"},
            r"holidays must be codes .*\('DE', 'DE-BY'\) and dates \('2026-12-24'\), got 'Germany'",
        ),
        ({"holidays": "XX"}, "holidays must be codes .* got 'XX'"),
        ({"holidays": "DE-QQ"}, "holidays must be codes .* got 'DE-QQ'"),
        ({"holidays": ["2026-02-30"]}, r"holidays must be codes .* got \['2026-02-30'\]"),
        ({"holidays": 5}, "holidays must be codes .* got 5"),
    ],
)
def test_what_is_no_zone_and_no_holiday_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DetectorSettings(interval="1h", **given)


def test_holidays_are_countries_and_dates():
    for given in ("DE-BY, 2026-12-24", ["DE-BY", date(2026, 12, 24)], ("DE-BY", datetime(2026, 12, 24, 6))):
        assert DetectorSettings(interval="1h", holidays=given).holidays == ("DE-BY", "2026-12-24")


def test_a_calendar_needs_an_interval_and_times():
    with pytest.raises(
        ValueError, match="zone='Europe/Berlin' needs the sampling interval too, such as interval='5min'"
    ):
        DetectorSettings(zone=BERLIN)
    with pytest.raises(ValueError, match=r"holidays=\('DE',\) needs the sampling interval"):
        Detector(holidays="DE").update(1.0)
    detector = Detector(zone=BERLIN, interval="1h", forecaster="last-value")
    with pytest.raises(ValueError, match="times must be given, as dates, with a zone or holidays, got none"):
        detector.update(1.0)
    with pytest.raises(ValueError, match="times must be given, as dates, with a zone or holidays, got numbers"):
        detector.run([1.0, 2.0], times=[1.0, 2.0])
    assert detector.observations == 0
    detector.learn_reference(np.random.default_rng(0).normal(size=500))  # whose times do not count
    assert detector.update(1.0, "2026-10-25T02:00").time == np.datetime64("2026-10-25T00:00")
    # The same time again is an hour later.
    assert detector.update(1.0, datetime(2026, 10, 25, 2)).time == np.datetime64("2026-10-25T01:00")
    assert detector.update(1.0, np.datetime64("2026-10-25T02:00")).time == np.datetime64("2026-10-25T02:00")
    assert detector.update(1.0, "2026-10-25T04:00+01:00").time == np.datetime64("2026-10-25T03:00")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "holidays", None)
    from tocsin.detection import calendar

    calendar._days_of.cache_clear()
    with pytest.raises(
        ImportError, match=r"holidays='DE' needs the library `holidays`: pip install 'tocsin\[holidays\]'"
    ):
        DetectorSettings(interval="1h", holidays="DE")
    assert DetectorSettings(interval="1h", holidays="2026-12-24").holidays == ("2026-12-24",)


def test_texts_in_arrays_are_local_times():
    zone = Zone(BERLIN)
    times = hours("2026-10-24T20:00", 1)[:12]
    texts = [str(one)[:16] for one in zone.shown(times)]
    detector = Detector(zone=BERLIN, interval="1h", forecaster="last-value")
    np.testing.assert_array_equal(detector.run(np.zeros(12), times=texts).times, times)


def test_unusual_days_are_counted_alike_in_pieces():
    rng = np.random.default_rng(2)
    calendar = np.stack([rng.integers(0, 2, (400, 3)).cumsum(axis=0) // 40, rng.random((400, 3)) < 0.02], axis=-1)
    whole, parts = UnusualDays(3), UnusualDays(3)
    rows = np.arange(3)
    expected = whole.pass_by(calendar, rows)
    found = []
    for first, last in ((0, 0), (0, 1), (1, 37), (37, 400)):
        found.append(parts.pass_by(calendar[first:last], rows))
        other = UnusualDays(3)
        other.restore(parts.state(rows), rows)
        parts = other
    for number in range(2):
        np.testing.assert_array_equal(np.concatenate([one[number] for one in found]), expected[number])
    for n in range(3):
        holiday = change = LONG_AGO
        for t in range(400):
            holiday = 0 if calendar[t, n, 1] else min(holiday + 1, LONG_AGO)
            changed = t > 0 and calendar[t, n, 0] != calendar[t - 1, n, 0]
            change = 0 if changed else min(change + 1, LONG_AGO)
            assert (holiday, change) == (expected[0][t, n], expected[1][t, n])


@pytest.mark.parametrize("kind", ["pandas", "index", "polars"])
def test_frames_of_local_times_come_back_in_local_times(kind):
    """With rows missing on both sides of the hour that comes twice."""
    times = hours("2026-10-20T22:00", 4)
    kept = np.ones(times.size, dtype=bool)
    kept[[96, 100, 105]] = False
    shown = Zone(BERLIN).shown(times)
    data = {"when": shown[kept], "load": np.random.default_rng(3).normal(size=kept.sum())}
    frame = pl.DataFrame(data) if kind == "polars" else pd.DataFrame(data)
    frame = frame.set_index("when") if kind == "index" else frame
    detector = Detector(zone=BERLIN, forecaster="last-value")
    result = detector.run(frame)
    np.testing.assert_array_equal(result.times, times)
    found = result.frame.index if kind == "index" else result.frame["when"]
    np.testing.assert_array_equal(np.asarray(found, dtype="M8[ns]"), shown)
    zoned = pd.DataFrame({"when": pd.to_datetime(times[-1:] + np.timedelta64(1, "h"), utc=True), "load": [0.0]})
    assert detector.run(zoned).times[0] == times[-1] + np.timedelta64(1, "h")


@pytest.mark.parametrize("changed", [SPRING, AUTUMN])
def test_means_that_reach_back_far_go_by_the_clock_too(changed):
    """A wave of half a day by the clock, every ten seconds: within a mean of eight of what is usual, or an hour off."""
    times = np.datetime64(changed, "ns") - np.timedelta64(43, "h") + np.arange(20_000) * np.timedelta64(10, "s")
    local = Zone(BERLIN).shown(times)
    wave = np.sin(2 * np.pi * ((local - local[0].astype("M8[D]")) / np.timedelta64(12, "h")))
    furthest = {}
    for zone in (BERLIN, "UTC"):
        settings = DetectorSettings(interval=10, season="12h", views="level", forecaster="last-value", zone=zone)
        session = settings.chosen_views[0].open(1, 1, 0)
        scores = np.full((times.size, 1, 1, 4), np.nan)
        places = settings.local_calendar.places(times[:, np.newaxis])
        for first in range(0, times.size, MOST_AT_ONCE):
            part = slice(first, first + MOST_AT_ONCE)
            session.run(Seen(wave[part, np.newaxis, np.newaxis], (), places[part]), np.arange(1), scores[part])
        known = scores[10_000:, 0, 0, 0]  # the season counts after two cycles
        furthest[zone] = np.abs(known).max()
    assert furthest[BERLIN] < 0.03
    assert furthest["UTC"] > 0.4
