"""What recurs by the clocks of a place, compared with a walk over all minutes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tocsin_monitor.schedules import SECOND, Schedule

VIENNA = "Europe/Vienna"


def moment(text: str, zone: str = "UTC") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * SECOND


def walked(begin: datetime, days: int, fits: Callable[[datetime], bool]) -> list[int]:
    """The minutes whose local time fits; of an hour that clocks repeat, the first."""
    found: dict[datetime, int] = {}
    for minute in range(days * 1440):
        at = begin + timedelta(minutes=minute)
        local = at.astimezone(ZoneInfo(VIENNA)).replace(tzinfo=None, fold=0)
        if fits(local):
            found.setdefault(local, round(at.timestamp()) * SECOND)
    return list(found.values())


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("0 22 * * sat", lambda at: (at.minute, at.hour, at.isoweekday()) == (0, 22, 6)),
        ("30 4 1,15 * *", lambda at: (at.minute, at.hour) == (30, 4) and at.day in (1, 15)),
        ("0 6 13 * fri", lambda at: (at.minute, at.hour) == (0, 6) and (at.day == 13 or at.isoweekday() == 5)),
        (
            "15 */8 * 10-12 1-5",
            lambda at: at.minute == 15 and at.hour % 8 == 0 and at.month > 9 and at.isoweekday() < 6,
        ),
        (
            "0 3 * * sun#1,sun#3",
            lambda at: (at.hour, at.minute) == (3, 0) and at.isoweekday() == 7 and (at.day - 1) // 7 in (0, 2),
        ),
        ("0 0 * * 7", lambda at: (at.minute, at.hour, at.isoweekday()) == (0, 0, 7)),
    ],
)
def test_starts_are_those_of_a_walk_over_all_minutes(text: str, fits: Callable[[datetime], bool]) -> None:
    begin = datetime(2026, 9, 20, tzinfo=UTC)  # clocks change on 25 October
    schedule = Schedule(text, VIENNA, 3600.0)
    wanted = walked(begin, 60, fits)
    since = round(begin.timestamp()) * SECOND
    found = [start for start, _ in islice(schedule.occurrences(since + schedule.length), len(wanted))]
    assert found == wanted
    source = np.random.default_rng(1)
    for at in (since + schedule.length + source.integers(0, 58 * 86400, 300) * SECOND).tolist():
        assert schedule.covers(at) == any(start <= at < start + schedule.length for start in wanted)


def test_it_lasts_as_long_when_clocks_change_and_over_midnight() -> None:
    schedule = Schedule("0 23 * * *", VIENNA, 4 * 3600.0)
    ((start, end),) = islice(schedule.occurrences(moment("2026-10-24T22:00", VIENNA)), 1)
    assert (start, end) == (moment("2026-10-24T23:00", VIENNA), moment("2026-10-25T01:00"))
    assert [schedule.covers(at) for at in (start - 1, start, end - 1, end)] == [False, True, True, False]
    long = Schedule("0 0 * * mon", "UTC", 6 * 86400.0)
    assert [long.covers(moment(f"2026-11-{day}T12:00")) for day in (16, 20, 21, 22)] == [True, True, True, False]


def test_clocks_that_skip_or_repeat_an_hour() -> None:
    skipped = Schedule("30 2 * * *", VIENNA, 60.0)
    ((start, _),) = islice(skipped.occurrences(moment("2026-03-28T12:00")), 1)
    assert start == moment("2026-03-29T03:00", VIENNA)
    # After the first 2:30, in the hour that is repeated: the next is tomorrow's.
    ((start, _),) = islice(skipped.occurrences(moment("2026-10-25T01:15")), 1)
    assert start == moment("2026-10-26T02:30", VIENNA)
    each = Schedule("30 * * * *", VIENNA, 60.0)
    starts = [start for start, _ in islice(each.occurrences(moment("2026-10-24T23:00")), 4)]
    assert np.diff(starts).tolist() == [3600 * SECOND] * 3


@pytest.mark.parametrize(
    ("text", "zone", "duration", "problem"),
    [
        ("0 22 * *", "UTC", 60.0, "minute, hour, day, month"),
        ("60 * * * *", "UTC", 60.0, "Bad minute"),
        ("0 5-2 * * *", "UTC", 60.0, "Bad hour"),
        ("*/0 * * * *", "UTC", 60.0, "Bad minute"),
        ("0 0 * foo *", "UTC", 60.0, "Bad month"),
        ("0 0 * * *", "Mars/Base", 60.0, "time_zone must be a time zone"),
        ("0 0 * * *", "../etc", 60.0, "time_zone must be a time zone"),
        ("0 0 0 22 * *", "UTC", 60.0, "Wrong number of fields"),
        ("0 0 30 2 *", "UTC", 60.0, "Bad day"),
        (f"{'9' * 5000} * * * *", "UTC", 60.0, "schedule must be"),
        ("0 0 * * *", "UTC", 8 * 86400.0, "duration must be"),
        ("0 0 * * *", "UTC", 90.0, "whole minutes"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, zone: str, duration: float, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Schedule(text, zone, duration)
