"""Observations: bit for bit, whatever is asked of them, and fast."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.store.helpers import NAN, add_signal, bits, observation, random_observations
from tocsin_monitor.observations import Status, StoredVerdict, VerdictColumns
from tocsin_monitor.store import ObservationRow, Store, StoreError, StoreWriter

LEAST, MOST = -(2**63), 2**63 - 1
numbers = st.floats(width=64) | st.sampled_from([-0.0, 0.0, 5e-324, -5e-324, 1.0, 2.0**53, 1e308, NAN])


@st.composite
def verdicts(draw: st.DrawFn) -> StoredVerdict:
    features = draw(st.integers(1, 4))
    several = st.tuples(*[numbers] * features)
    return StoredVerdict(
        value=draw(several),
        forecast=draw(several),
        low=draw(several),
        high=draw(several),
        p=draw(numbers),
        merged=draw(numbers),
        feature_p=draw(several),
        alarm=draw(st.booleans()),
        warm=draw(st.booleans()),
    )


rows = st.builds(
    ObservationRow, st.integers(LEAST, MOST), st.integers(LEAST, MOST), st.sampled_from(list(Status)[:4]), verdicts()
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples, each of which takes back what it wrote."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('shared') / 'tocsin.db'}"
    else:
        url = request.getfixturevalue("postgres").new_database()
    store = Store.open(url)
    yield store
    store.close()


class _TakenBackError(Exception):
    """Leaves a transaction so that nothing of it stays."""


@contextmanager
def taken_back(store: Store) -> Iterator[StoreWriter]:
    with suppress(_TakenBackError), store.transaction() as writer:
        yield writer
        raise _TakenBackError


@pytest.mark.slow
@given(st.lists(rows, max_size=5, unique_by=lambda row: (row.signal, row.time)))
def test_all_comes_back_bit_for_bit(shared: Store, given_rows: list[ObservationRow]) -> None:
    with taken_back(shared) as writer:
        writer.add_observations(given_rows)
        found = writer.observations_at([(row.signal, row.time) for row in given_rows])
        assert [bits(found[row.signal, row.time]) for row in given_rows] == list(map(bits, given_rows))
        for row in given_rows:
            (same,) = writer.observations(row.signal, after=None, until=row.time, newest=True, limit=1)
            assert bits(same) == bits(row)


@pytest.mark.slow
@given(st.lists(rows, min_size=1, max_size=5, unique_by=lambda row: row.time), st.integers(1, 4))
def test_verdicts_as_columns_are_stored_bit_for_bit(
    shared: Store, given_rows: list[ObservationRow], features: int
) -> None:
    given_rows = [replace(row, signal=7) for row in given_rows if len(row.judged.value) == features]
    nothing = (NAN,) * features
    none = dict.fromkeys(("forecast", "low", "high", "feature_p"), nothing)
    with taken_back(shared) as writer:
        writer.add_observations(
            [replace(row, judged=replace(row.judged, **none, p=NAN, merged=NAN, alarm=False)) for row in given_rows]
        )
        there = writer.observation_columns(7, after=None, until=None, statuses=list(Status), limit=9)
        in_order = sorted(given_rows, key=lambda row: row.time)
        verdicts = {
            field.name: np.array([getattr(row.judged, field.name) for row in in_order])
            for field in fields(VerdictColumns)
        }
        for name in none:
            verdicts[name] = verdicts[name].reshape(-1, features)
        writer.judge_observations(7, there, VerdictColumns(**verdicts))
        found = writer.observations(7, limit=9)
        assert list(map(bits, found)) == list(map(bits, in_order))


def test_what_was_removed_meanwhile_stays_removed(store: Store) -> None:
    with store.transaction() as writer:
        writer.add_observations([observation(1, moment, 0.5) for moment in range(1200)])
        there = writer.observation_columns(1, after=99, until=1150, statuses=[Status.SCORED], limit=10**6)
        assert there.times.tolist() == list(range(100, 1151))
        assert writer.observation_columns(1, after=None, until=None, statuses=[Status.LATE], limit=9).times.size == 0
        writer.connection.exec_driver_sql("DELETE FROM observations WHERE time < 600")
        number, flag = np.full(1051, 0.125), np.ones(1051, dtype=bool)
        several = number[:, np.newaxis]
        writer.judge_observations(
            1, there, VerdictColumns(several, several, several, number, number, several, flag, flag)
        )
        found = writer.observations(1, limit=10**6)
        assert [row.time for row in found] == list(range(600, 1200))
        assert [row.judged.alarm for row in found] == [True] * 551 + [False] * 49


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 12), st.sampled_from(list(Status)[:3])), max_size=30,
             unique_by=lambda one: one[:2]),
    st.none() | st.integers(-1, 13),
    st.none() | st.integers(-1, 13),
    st.none() | st.sets(st.sampled_from(list(Status)[:3])),
    st.integers(1, 8),
    st.booleans(),
)  # fmt: skip
def test_ranges_are_those_of_a_plain_search(
    shared: Store,
    given_rows: list[tuple[int, int, Status]],
    after: int | None,
    until: int | None,
    statuses: set[Status] | None,
    limit: int,
    newest: bool,
) -> None:
    wanted = sorted(
        moment
        for signal, moment, status in given_rows
        if signal == 2
        and (after is None or moment > after)
        and (until is None or moment <= until)
        and (statuses is None or status in statuses)
    )
    with taken_back(shared) as writer:
        writer.add_observations([observation(signal, moment, status=status) for signal, moment, status in given_rows])
        found = writer.observations(2, after=after, until=until, statuses=statuses, limit=limit, newest=newest)
        assert [row.time for row in found] == (wanted[-limit:] if newest else wanted[:limit])


def test_whole_numbers_come_back_as_doubles(store: Store) -> None:
    with store.transaction() as writer:
        writer.add_observations([observation(1, 1, 3), observation(1, 2, 10**20), observation(2, 1, 3, 4)])
        found = writer.observations(1, limit=9) + writer.observations(2, limit=9)
    assert [row.judged.value for row in found] == [(3.0,), (1e20,), (3.0, 4.0)]
    assert {type(value) for row in found for value in row.judged.value} == {float}


def test_many_are_looked_up_at_once(store: Store) -> None:
    with store.transaction() as writer:
        writer.add_observations(random_observations(1300, 5))
        writer.add_observations(random_observations(1300, 6, seed=4))
        pairs = [(signal, moment) for signal in range(1, 1400) for moment in (4, 5)]
        found = writer.observations_at(pairs)
        assert sorted(found) == [(signal, 5) for signal in range(1, 1301)]
        assert writer.observations_at([(700, 5), (700, 4)]) == {(700, 5): found[700, 5]}
        assert writer.observations_at([]) == {}


def test_the_same_time_twice_is_refused_and_nothing_of_the_transaction_stays(store: Store) -> None:
    with store.transaction() as writer:
        writer.add_observations([observation(1, 1, 0.5)])

    def add_again() -> None:
        with store.transaction() as writer:
            add_signal(writer, "a")
            writer.add_observations([observation(1, 2, 0.5), observation(1, 1, 0.75)])

    with pytest.raises(StoreError, match=r"(?i)unique"):
        add_again()
    with store.reading() as reader:
        assert [row.time for row in reader.observations(1, limit=9)] == [1]
        assert reader.signals() == []


def test_a_large_store_is_looked_up_by_its_key(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'tocsin.db'}")
    with store.reading() as reader:
        plan = reader.connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN WITH wanted(signal, time) AS (VALUES (1, 2), (3, 4)) SELECT o.value FROM wanted"
            " JOIN observations o ON o.signal = wanted.signal AND o.time = wanted.time"
        )
        steps = [row[-1] for row in plan]
    store.close()
    assert "SEARCH o USING PRIMARY KEY (signal=? AND time=?)" in steps
