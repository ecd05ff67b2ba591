"""Histories for charts: fewer observations, and nothing strange is lost, against a slow and obvious choice."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from sqlalchemy import text

from tests.cases import full
from tests.service.store.helpers import NAN, add_signal, bits, observation
from tocsin_monitor.observations import Status
from tocsin_monitor.store import ObservationRow, SignalRow, Store
from tocsin_monitor.store.thinning import thinned_history

MILLION = 1_000_000
SPIKE, DIP, ALARM, GAP, WINDOW = 333_333, 333_334, 765_432, 123_456, range(500_000, 500_010)
SECOND = 10**9


def add_million(store: Store) -> SignalRow:
    """A million observations by the database itself: a quiet wave, and one each of all that is strange."""
    wave = "CAST(i % 100 AS DOUBLE PRECISION) / 100"
    columns = f"""
        i * {SECOND},
        CASE WHEN i BETWEEN {WINDOW[0]} AND {WINDOW[-1]} THEN {int(Status.MAINTENANCE)} ELSE 0 END,
        CASE i WHEN {SPIKE} THEN 50.0 WHEN {DIP} THEN -50.0 WHEN {GAP} THEN NULL ELSE {wave} END,
        {wave}, {wave} - 1, {wave} + 1,
        CASE i WHEN {ALARM} THEN 0.00001 ELSE 0.5 END, 0.5, 0.5,
        CASE i WHEN {ALARM} THEN TRUE ELSE FALSE END, TRUE, NULL
    """
    with store.transaction() as writer:
        row = add_signal(writer, "long")
        numbers = (
            f"(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {MILLION - 1}) SELECT i FROM n)"
            if writer.connection.dialect.name == "sqlite"
            else f"(SELECT i FROM generate_series(0, CAST({MILLION - 1} AS BIGINT)) AS g(i))"
        )
        insert = f"INSERT INTO observations SELECT {row.id}, {columns} FROM {numbers} AS n"
        writer.connection.execute(text(insert))
    return row


@pytest.mark.full
def test_a_single_spike_in_a_million_observations_survives(store: Store) -> None:
    row = add_million(store)
    with store.reading() as reader:
        found = thinned_history(reader, row, None, None, 800)
    assert found.thinned
    assert 200 < len(found.rows) <= 800
    at = {one.time // SECOND: one for one in found.rows}
    assert {0, SPIKE, DIP, ALARM, GAP, WINDOW[0], WINDOW[-1], MILLION - 1} <= at.keys()
    assert at[SPIKE].judged.value == (50.0,)
    assert at[ALARM].judged.alarm
    assert math.isnan(at[GAP].judged.value[0])
    assert {at[WINDOW[0]].status, at[WINDOW[-1]].status} == {Status.MAINTENANCE}
    with store.reading() as reader:
        closer = thinned_history(reader, row, (SPIKE - 100) * SECOND, (SPIKE + 100) * SECOND, 800)
    assert not closer.thinned
    assert [one.time // SECOND for one in closer.rows] == list(range(SPIKE - 100, SPIKE + 101))


def obvious(rows: Sequence[ObservationRow], points: int, features: int) -> set[int]:
    """The times to keep: each bucket is looked through once for each reason."""
    first, last = rows[0].time, rows[-1].time
    count = max(1, (points - 2) // (2 * features + 5))
    width = math.ceil((last - first + 1) / count)
    kept = {first, last}
    for bucket in range(count):
        some = [row for row in rows if (row.time - first) // width == bucket]
        for feature in range(features):
            there = [row for row in some if not math.isnan(row.judged.value[feature])]
            kept |= {
                pick(there, key=lambda row: (sign * row.judged.value[feature], row.time)).time
                for sign, pick in ((1, min), (-1, min))
                if there
            }
        for which in (
            sorted((row for row in some if not math.isnan(row.judged.p)), key=lambda row: (row.judged.p, row.time)),
            sorted(
                (row for row in some if row.judged.alarm),
                key=lambda row: (2 if math.isnan(row.judged.p) else row.judged.p, row.time),
            ),
            [row for row in some if any(map(math.isnan, row.judged.value))],
            [row for row in some if row.status is Status.MAINTENANCE],
            [row for row in some if row.status is Status.MAINTENANCE][::-1],
        ):
            kept |= {row.time for row in which[:1]}
    return kept


@pytest.mark.slow
@pytest.mark.parametrize(("features", "seed"), [(1, 1), full(1, 2), full(2, 3), (3, 4)])
def test_what_is_kept_is_what_an_obvious_choice_keeps(store: Store, features: int, seed: int) -> None:
    source = np.random.default_rng(seed)
    times = np.cumsum(source.choice([1, 2, 50, 5000], size=3000, p=[0.6, 0.3, 0.09, 0.01])).tolist()
    with store.transaction() as writer:
        row = add_signal(writer, "noisy", features)
        values = np.round(source.normal(size=(3000, features)), 1)
        values[source.random((3000, features)) < 0.02] = NAN
        stored = [
            observation(
                row.id, time, *value, p=NAN if source.random() < 0.1 else round(source.random(), 2),
                alarm=bool(source.random() < 0.05),
                status=Status.MAINTENANCE if 1000 < number < 1100 else Status.SCORED,
            )
            for number, (time, value) in enumerate(zip(times, values.tolist(), strict=True))
        ]  # fmt: skip
        writer.add_observations(stored)
    with store.reading() as reader:
        for points in (200, 800):
            found = thinned_history(reader, row, None, None, points)
            assert {one.time for one in found.rows} == obvious(stored, points, features)
            assert len(found.rows) <= points
        everything = thinned_history(reader, row, None, None, 3000)
        assert [bits(one) for one in everything.rows] == [bits(one) for one in stored]
        some = thinned_history(reader, row, times[10], times[2000], 200)
        assert {one.time for one in some.rows} == obvious(stored[10:2001], 200, features)
        assert thinned_history(reader, row, times[-1] + 1, None, 200).rows == []
