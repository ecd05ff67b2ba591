"""What operators see."""

from datetime import timedelta

import numpy as np
import pytest

from tocsin_bench.metrics import detection_delays, in_operation


@pytest.fixture
def labels():
    labels = np.zeros(2016)
    labels[100:150] = labels[1000:1010] = labels[2010:] = 1
    return labels


def alarms_at(*positions):
    alarms = np.zeros(2016)
    alarms[[*positions]] = 1
    return alarms


def test_delays(labels):
    delays = detection_delays(labels, alarms_at(99, 107, 108, 150, 999, 1010, 2015))
    np.testing.assert_array_equal(delays, [7.0, np.nan, 5.0])
    assert detection_delays(np.zeros(2016), alarms_at(3)).size == 0
    assert np.isnan(detection_delays(labels, alarms_at())).all()


def test_counts(labels):
    seen = in_operation(labels, alarms_at(99, 107, 108, 500, 505, 600, 2015), interval="5min")
    assert (seen.events, seen.detected_events, seen.median_delay) == (3, 2, 6.0)
    assert (seen.alarms, seen.false_alarms, seen.false_alarms_per_1000) == (7, 4, pytest.approx(4000 / 2016))
    # 99 to 108 is one incident and touches an event, 500 and 505 are one, 600 is one, 2015 is one.
    assert (seen.incidents, seen.false_incidents) == (4, 2)
    # 2016 observations every five minutes are a week.
    assert (seen.incidents_per_week, seen.false_incidents_per_week) == (4.0, 2.0)


@pytest.mark.parametrize(("between", "incidents"), [(0, 1), (3, 1), (4, 2)])
def test_gap_is_how_many_observations_may_lie_between(labels, between, incidents):
    assert in_operation(labels, alarms_at(500, 501 + between), gap=3).incidents == incidents


def test_an_incident_over_an_event_is_false_if_no_alarm_fell_into_it(labels):
    seen = in_operation(labels, alarms_at(999, 1010), gap=20)
    assert (seen.incidents, seen.false_incidents, seen.detected_events) == (1, 1, 0)


def test_without_alarms_without_events_and_without_an_interval(labels):
    quiet = in_operation(labels, alarms_at())
    assert (quiet.detected_events, quiet.alarms, quiet.incidents, quiet.false_incidents) == (0, 0, 0, 0)
    assert np.isnan([quiet.median_delay, quiet.incidents_per_week]).all()
    normal = in_operation(np.zeros(2016), alarms_at(5), interval=timedelta(minutes=5))
    assert (normal.events, normal.false_alarms, normal.false_incidents_per_week) == (0, 1, 1.0)


def test_a_wrong_interval_or_gap_is_named(labels):
    with pytest.raises(ValueError, match=r"interval must be a length of time.*'often'"):
        in_operation(labels, alarms_at(), interval="often")
    with pytest.raises(ValueError, match="gap must be an integer >= 0, got -1"):
        in_operation(labels, alarms_at(), gap=-1)
