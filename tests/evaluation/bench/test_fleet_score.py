"""What messages about a simulated fleet were worth, counted by hand."""

import math

import pytest

from tocsin_bench.fleet import WEEK, Fault, simulate
from tocsin_bench.fleet_score import Seen, Told, Truth, score

OUTAGE = Fault("outage", ("a/errors", "b/errors"), 1000, 1020)
LEAK = Fault("leak", ("c/memory",), 2000, 2540)
DISK = Fault("slow disk", ("d/disk",), 3000, 8760)
UNNOTICED = Fault("night errors", ("e/errors",), 4000, 4060)
LATER = Fault("stuck", ("e/cpu",), WEEK, WEEK + 60)
TRUTH = Truth(
    faults=(OUTAGE, LEAK, DISK, UNNOTICED, LATER),
    rhythms=("job/cpu", "idle"),
    deploys={"f": (700, 900), "a": (1000,)},
    begin=0,
    end=WEEK,
    limit_crossed=8001,
)


def seen(signal, start, event=None, *, over=math.nan, began=(math.nan, math.nan), kind="alarm", ended="returned"):
    return Seen(signal, kind, start, over, ended, *began, event)


def told(event, at):
    return Told(event, at, f"event {event}", "warning")


INCIDENTS = [
    seen("a/errors", 1001, 1, over=1090, began=(999, 1001)),
    seen("b/errors", 1000, 1, over=1030, began=(996, 1000)),
    seen("c/memory", 2100, 2, over=2700, began=(1900, 2050)),
    seen("d/disk", 5000, 3, over=9000, kind="limit"),
    seen("a/errors", 1060, 4),
    seen("job/cpu", 500, 5),
    seen("idle/latency", 600, 6),
    seen("c/memory", 1500, 7),
    seen("e/errors", 4001),
    seen("f/errors", 701, over=704),
    seen("f/errors", 900, over=909),
    seen("f/errors", 800, over=850),
]
MESSAGES = [told(1, 1002), told(1, 1010), *(told(event, at) for event, at in [(2, 2110), (3, 5001), (4, 1061)])]
MESSAGES += [told(5, 501), told(6, 601), told(7, 1501)]


def test_by_hand():
    """Three of four faults; the outage once, though its event grew; its errors do not count as those of a deploy."""
    found = score(TRUTH, MESSAGES, INCIDENTS)
    assert found.figures() == {
        "faults_told": "3/4",
        "outage_told_s": "120",
        "leak_told_h": "1.83",
        "disk_told_h": "33.35",
        "limit_ahead_h": "50.00",
        "outage_messages": "1",
        "repairs_told": "1",
        "false_messages_per_week": "1.00",
        "rhythm_messages": "2",
        "onset_covers": "0.67",
        "onset_width_min": "4.0",
        "blip_over_min": "6.0",
    }
    assert [one.event for one in (*found.repairs, *found.rhythms, *found.false)] == [4, 5, 6, 7]
    outage = found.of("outage")
    assert (outage.message, outage.incident) == (MESSAGES[0], INCIDENTS[1])
    assert [one.onset_covered for one in found.faults] == [True, True, False, None]


def test_what_is_unknown_is_nan():
    """Nobody is told of anything, and the disk is never at its limit."""
    figures = score(Truth((LEAK,), (), {}, 0, WEEK), [], []).figures()
    assert figures["faults_told"] == "0/1"
    assert figures["false_messages_per_week"] == "0.00"
    unknown = {"outage_told_s", "leak_told_h", "disk_told_h", "limit_ahead_h", "onset_covers", "onset_width_min"}
    assert {name for name, value in figures.items() if value == "nan"} == unknown | {"blip_over_min"}


@pytest.mark.parametrize(
    ("start", "reason"),
    [(997, "false"), (998, "fault"), (1025, "fault"), (1026, "repairs"), (1110, "repairs"), (1111, "false")],
)
def test_when_an_event_is_of_a_fault_or_of_its_repair(start, reason):
    found = score(TRUTH, [told(1, start + 1)], [seen("a/errors", start, 1)])
    assert found.of("outage").events == (reason == "fault")
    assert (len(found.repairs), len(found.false)) == (reason == "repairs", reason == "false")


def test_an_event_of_known_jobs_and_others_is_false():
    found = score(TRUTH, [told(1, 501)], [seen("job/cpu", 500, 1), seen("f/cpu", 500, 1)])
    assert (len(found.rhythms), len(found.false)) == (0, 1)


def test_a_fault_that_joins_an_event_is_told_when_that_is_told_again():
    incidents = [seen("a/requests", 990, 1), seen("a/errors", 1001, 1)]
    assert score(TRUTH, [told(1, 991), told(1, 1006)], incidents).of("outage").delay == 6
    assert score(TRUTH, [told(1, 991)], incidents).of("outage").message is None


def test_an_alarm_about_a_disk_says_nothing_of_its_limit():
    found = score(TRUTH, [told(1, 5001)], [seen("d/disk", 5000, 1)])
    assert (found.of("slow disk").delay, found.limit_ahead) == (2001, 0)


def test_deploys_of_the_simulated_fleet():
    """Each begins with errors; the new service has none."""
    fleet = simulate(0, services=24)
    assert len(fleet.deploys) == 24
    at = fleet.deploys["service-00"]
    errors = fleet.signals["service-00/errors"]
    assert 5 <= len(at) <= 25
    assert all(errors[one : one + 4].mean() > 1.5 * errors[one - 30 : one].mean() for one in at)
