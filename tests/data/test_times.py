"""Times in all their spellings."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data import DataError, parse_time
from tocsin.data.times import choose_time_parser, parse_iso_time, parse_iso_times

ZONES = st.one_of(st.none(), st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(
    lambda offset: timezone(timedelta(minutes=round(offset.total_seconds() / 60)))
))  # fmt: skip
MOMENTS = st.datetimes(datetime(1700, 1, 2), datetime(2200, 1, 1))


def stamp(text):
    return np.datetime64(text, "ns")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-01", "2024-03-01"),
        ("2024-03-01T10:20", "2024-03-01T10:20"),
        ("2024-03-01 10:20:30", "2024-03-01T10:20:30"),
        ("2024-03-01 10:20:30.5", "2024-03-01T10:20:30.5"),
        ("2024-03-01 10:20:30,25", "2024-03-01T10:20:30.25"),
        ("2024-03-01T10:20:30.123456789", "2024-03-01T10:20:30.123456789"),
        ("2024-03-01T10:20:30.123456789Z", "2024-03-01T10:20:30.123456789"),
        ("2024-03-01T10:20:30Z", "2024-03-01T10:20:30"),
        ("2024-03-01T10:20:30z", "2024-03-01T10:20:30"),
        ("2024-03-01 10:20:30 UTC", "2024-03-01T10:20:30"),
        ("2024-03-01T10:20:30+02:00", "2024-03-01T08:20:30"),
        ("2024-03-01 10:20:30 +0200", "2024-03-01T08:20:30"),
        ("2024-03-01T10:20:30-0530", "2024-03-01T15:50:30"),
        ("2024-03-01T10:20:30+02", "2024-03-01T08:20:30"),
        ("20240301T102030", "2024-03-01T10:20:30"),
        ("2024-W09-5", "2024-03-01"),
        ("2024/03/01 10:20", "2024-03-01T10:20"),
        ("2024.03.01", "2024-03-01"),
        ("2024-3-1 5:06", "2024-03-01T05:06"),
        ("  2024-03-01  ", "2024-03-01"),
        ("31/12/2024", "2024-12-31"),
        ("12/31/2024", "2024-12-31"),
        ("31.12.2024 23:59:59.5", "2024-12-31T23:59:59.5"),
        ("12/31/2024 12:30 AM", "2024-12-31T00:30"),
        ("12/31/2024 12:30:15 pm", "2024-12-31T12:30:15"),
        ("5/5/2024", "2024-05-05"),
        (1709288430, "2024-03-01T10:20:30"),
        ("1709288430", "2024-03-01T10:20:30"),
        (1709288430.25, "2024-03-01T10:20:30.25"),
        (1709288430250, "2024-03-01T10:20:30.25"),
        (1709288430250001, "2024-03-01T10:20:30.250001"),
        (1709288430250001002, "2024-03-01T10:20:30.250001002"),
        (20240301, "2024-03-01"),
        (datetime(2024, 3, 1, 10, tzinfo=timezone(timedelta(hours=2))), "2024-03-01T08:00"),
        (np.datetime64("2024-03-01T10:20:30.123456789"), "2024-03-01T10:20:30.123456789"),
        (np.datetime64("2024-03-01"), "2024-03-01"),
    ],
)  # fmt: skip
def test_one_time(text, expected):
    assert parse_time(text) == stamp(expected)
    assert parse_time(text).dtype == "datetime64[ns]"


@pytest.mark.parametrize(
    ("time", "expected"), [(0, 0.0), ("17.5", 17.5), (-3, -3.0), (20241301, 20241301.0), (1e300, 1e300)]
)
def test_numbers_stay_numbers(time, expected):
    assert parse_time(time) == expected
    assert isinstance(parse_time(time), float)


@pytest.mark.parametrize(
    "text",
    ["", "abc", None, True, "10:20", "2024-02-30", "2024-13-01", "2024-01-01T25:00", "1500-01-01", "9999-12-31",
     "31/31/2024", "13/13/2024 10:00", "12/31/2024 13:00 PM", float("nan"), float("inf"), np.datetime64("NaT"), []],
)  # fmt: skip
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match=r"a time must be an ISO 8601 time, a date, or a number, got"):
        parse_time(text)


def test_a_given_form():
    assert parse_time("03/04/24", "%d/%m/%y") == stamp("2024-04-03")
    assert parse_time("3 Apr 2024 +0100", "%d %b %Y %z") == stamp("2024-04-02T23:00")
    with pytest.raises(ValueError, match=r"a time must be a time of the form '%Y', got 'x'"):
        parse_time("x", "%Y")


@given(moment=MOMENTS, zone=ZONES, separator=st.sampled_from("T "))
def test_whatever_python_writes(moment, zone, separator):
    text = moment.replace(tzinfo=zone).isoformat(sep=separator)
    utc = moment if zone is None else moment.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    nanoseconds, zoned = parse_iso_time(text)
    assert np.datetime64(nanoseconds, "ns") == np.datetime64(utc, "ns")
    assert zoned == bool(zone is not None and zone.utcoffset(None))


@given(st.lists(st.tuples(MOMENTS, st.sampled_from(["", "Z", "+00:00", "+02:00", " UTC", "x"])), max_size=8))
def test_many_are_read_as_one_by_one(moments):
    texts = [moment.isoformat(sep=" ") + end for moment, end in moments]
    stamps, zoned = parse_iso_times(texts)
    single = [parse_iso_time(text) for text in texts]
    assert stamps.tolist() == [nanoseconds for nanoseconds, _ in single]
    assert (zoned is not None and zoned.any()) == any(zone for _, zone in single)


def read(cells, **options):
    rule = choose_time_parser(cells, **options)
    stored = rule.read(cells)[0]
    rule.conclude()
    return rule.finish(stored)


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), min_size=1, max_size=20), st.booleans())
def test_slashed_dates_are_read_when_one_shows_the_order(moments, day_first):
    moments.append(datetime(2024, 5, 31, 1, 2, 3))
    form = "%d/%m/%Y %H:%M:%S" if day_first else "%m/%d/%Y %H:%M:%S"
    expected = np.array([moment.replace(microsecond=0) for moment in moments], dtype="datetime64[ns]")
    assert np.array_equal(read([moment.strftime(form) for moment in moments]), expected)


def test_slashed_dates_that_do_not_tell():
    with pytest.raises(
        DataError, match=r"'01/02/2024' are ambiguous: the day or the month may come first.*set `day_first`"
    ):
        read(["01/01/2024", "01/02/2024"])
    with pytest.raises(DataError, match=r"'31/12/2024' and '12/31/2024' disagree"):
        read(["31/12/2024", "12/31/2024"])
    assert np.isnat(read(["31/02/2024", "01/02/2024"])).tolist() == [True, False]
    assert read(["01/02/2024"], time_format="%m/%d/%Y")[0] == stamp("2024-01-02")


def test_the_first_numbers_settle_what_numbers_mean():
    assert read(["1700000000", "1700000060.5"]).tolist() == [1700000000 * 10**9, 1700000060 * 10**9 + 5 * 10**8]
    assert read([1700000000, 5]).tolist() == [1700000000.0, 5.0]
    assert read([20240131, 20240132]).tolist() == [20240131.0, 20240132.0]
    rule = choose_time_parser(["1700000000"])
    stored = rule.read(["5", "1e12", "99999999999999999999", "x"])[0]
    assert stored[0] == 5 * 10**9
    assert rule.bad(stored).tolist() == [False, True, True, True]


def test_columns_without_times_have_no_rule():
    assert choose_time_parser([]) is None
    assert choose_time_parser(["", None]) is None
    assert choose_time_parser(["abc", "2024-01-01", "def"]) is None
