"""Times without a zone, as the clocks of a place show them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tocsin.data import LineParser, parse_time, read_signals, signals_from_frame
from tocsin.data.zones import Zone

BERLIN = "Europe/Berlin"
ZONES = [BERLIN, "UTC", "America/New_York", "Asia/Kolkata", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"]


def around(change, minutes, hours=8):
    """Moments from some hours before a change of clocks to some after it."""
    start = np.datetime64(change, "ns") - np.timedelta64(hours, "h")
    return start + np.arange(2 * hours * 60 // minutes) * np.timedelta64(minutes, "m")


AUTUMN, SPRING = "2026-10-25T01:00", "2026-03-29T01:00"


@pytest.mark.parametrize("zone", ZONES)
def test_what_clocks_show_is_what_python_says(zone):
    moments = np.arange("2010-12-01", "2012-02-01", np.timedelta64(30, "m"), dtype="datetime64[ns]")
    shown = Zone(zone).shown(moments)
    for moment, clock in zip(moments.astype("M8[us]").tolist(), shown.astype("M8[us]").tolist(), strict=True):
        assert moment.replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(zone)).replace(tzinfo=None) == clock
    np.testing.assert_array_equal(Zone(zone).moments(shown), moments)
    np.testing.assert_array_equal(Zone(zone).moments(shown[::-1]), moments[::-1])


@pytest.mark.parametrize("change", [AUTUMN, SPRING])
@pytest.mark.parametrize("minutes", [1, 5, 60])
def test_one_by_one_it_is_the_same(change, minutes):
    zone, moments = Zone(BERLIN), around(change, minutes)
    last = None
    for shown, moment in zip(zone.shown(moments), moments, strict=True):
        last = zone.moment(shown, last)
        assert last == moment


def test_a_repeated_row_does_not_begin_the_second_hour():
    zone, moments = Zone(BERLIN), around(AUTUMN, 5)
    twice = np.insert(np.arange(moments.size), 100, 99)
    np.testing.assert_array_equal(zone.moments(zone.shown(moments)[twice]), moments[twice])


def test_what_no_clock_shows_counts_from_the_change():
    skipped = np.array(["2026-03-29T02:30"], dtype="datetime64[ns]")
    expected = np.datetime64(
        datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo(BERLIN)).astimezone(ZoneInfo("UTC")).replace(tzinfo=None)
    )
    assert Zone(BERLIN).moments(skipped)[0] == expected == Zone(BERLIN).moment(skipped[0])
    assert Zone(BERLIN).moments(skipped[:0]).size == 0
    assert Zone(BERLIN).ahead(skipped[:0]).size == 0


def written(tmp_path, times, form="{:%Y-%m-%dT%H:%M:%S}", name="plant.csv"):
    file = tmp_path / name
    rows = [f"{form.format(time)},{number}" for number, time in enumerate(times.astype("M8[us]").tolist())]
    file.write_text("\n".join(["time,value", *rows]) + "\n")
    return file


@pytest.mark.parametrize("change", [AUTUMN, SPRING])
@pytest.mark.parametrize("form", ["{:%Y-%m-%dT%H:%M:%S}", "{:%d.%m.%Y %H:%M}", "{:%d/%m/%Y %H:%M}"])
def test_a_file_of_local_times_has_no_gap_and_no_duplicate(tmp_path, change, form):
    moments = around(change, 10)
    file = written(tmp_path, Zone(BERLIN).shown(moments), form)
    with read_signals(file, zone=BERLIN) as signals:
        (signal,) = signals
        np.testing.assert_array_equal(signal.times, moments)
        assert signal.problems == ()
        assert f"{BERLIN}; 1 feature" in str(signals.summary)
    with read_signals(file) as signals:
        (signal,) = signals
        assert {problem.kind for problem in signal.problems} & {"duplicate time", "gap"}


@pytest.mark.parametrize("form", ["{:%Y-%m-%dT%H:%M:%SZ}", "{:%Y-%m-%d %H:%M:%S+00:00}", "{:%Y-%m-%d %H:%M UTC}"])
def test_times_with_a_zone_are_what_they_say(tmp_path, form):
    moments = around(AUTUMN, 10)
    with read_signals(written(tmp_path, moments, form), zone=BERLIN) as signals:
        np.testing.assert_array_equal(next(iter(signals)).times, moments)
    unix = tmp_path / "unix.csv"
    unix.write_text("time,value\n" + "".join(f"{one},1\n" for one in moments.astype("M8[s]").astype(int)))
    with read_signals(unix, zone=BERLIN) as signals:
        np.testing.assert_array_equal(next(iter(signals)).times, moments)


def test_each_signal_of_a_long_file_has_its_own_second_hour(tmp_path):
    zone, file = Zone(BERLIN), tmp_path / "long.csv"
    moments = around(AUTUMN, 20)
    rows = [f"{one},{name},1" for one in zone.shown(moments) for name in ("a", "b")]
    file.write_text("\n".join(["time,id,value", *rows]))
    with read_signals(file, zone=BERLIN, id="id") as signals:
        for signal in signals:
            np.testing.assert_array_equal(signal.times, moments)


@pytest.mark.parametrize("zoned", [False, True])
def test_frames_and_parquet_know_whether_times_have_a_zone(tmp_path, zoned):
    pandas = pytest.importorskip("pandas")
    moments = around(AUTUMN, 10)
    times = pandas.Series(Zone(BERLIN).shown(moments))
    if zoned:
        times = pandas.Series(moments).dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata")
    frame = pandas.DataFrame({"time": times, "value": np.arange(len(times), dtype=float)})
    with signals_from_frame(frame, zone=BERLIN) as signals:
        np.testing.assert_array_equal(next(iter(signals)).times, moments)
    frame.to_parquet(tmp_path / "plant.parquet")
    with read_signals(tmp_path / "plant.parquet", zone=BERLIN) as signals:
        np.testing.assert_array_equal(next(iter(signals)).times, moments)


def test_lines_are_read_like_files():
    zone, moments = Zone(BERLIN), around(AUTUMN, 30)
    parser = LineParser("csv", zone=BERLIN)
    parser.parse("time,id,value")
    for number, (shown, moment) in enumerate(zip(zone.shown(moments), moments, strict=True)):
        for name in ("a", "b"):
            line = f"{str(shown)[:16]},{name},{number}"
            one = parser.parse(line)
            assert one.time == moment
            assert one.zone == ("+02:00" if moment < np.datetime64(AUTUMN) else "+01:00")
    assert parser.parse("2026-12-01T12:00Z,a,1").time == np.datetime64("2026-12-01T12:00")
    assert LineParser("csv", zone="America/New_York").parse("2026-12-01T12:00,1").zone == "-05:00"
    assert parser.parse("2026-12-01T12:00Z,a,1").zone == "Z"


def test_a_single_time_is_local_unless_it_says_more():
    zone = Zone(BERLIN)
    twelve = np.datetime64("2026-07-01T12:00")
    assert parse_time("2026-07-01T14:00", zone=zone) == twelve
    assert parse_time(datetime(2026, 7, 1, 14), zone=zone) == twelve
    assert parse_time("2026-07-01T12:00Z", zone=zone) == twelve
    assert parse_time(datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("UTC")), zone=zone) == twelve
    assert parse_time(twelve, zone=zone) == twelve
    assert parse_time("17.5", zone=zone) == 17.5
    seconds = int((twelve - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    assert parse_time(seconds, zone=zone) == parse_time(str(seconds), zone=zone) == twelve


def test_a_wrong_zone_is_named(tmp_path):
    file = written(tmp_path, around(AUTUMN, 10))
    with pytest.raises(ValueError, match="zone must be a time zone such as 'Europe/Berlin' or 'UTC', got 'Berlin'"):
        read_signals(file, zone="Berlin")
