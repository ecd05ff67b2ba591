"""What is too old goes, a piece at a time, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.store.helpers import add_signal, incident, observation, tell
from tests.service.store.test_observations import shared, taken_back
from tocsin_monitor.store import Store, StoreWriter

__all__ = ["shared"]


def pieces(writer: StoreWriter, *limits: object, piece: int) -> tuple[int, int]:
    """Prune until there is no more; each piece is as large as asked for at most."""
    observations = incidents = 0
    while True:
        pruned = writer.prune(*limits, piece=piece)
        assert pruned.observations + pruned.incidents <= piece
        observations, incidents = observations + pruned.observations, incidents + pruned.incidents
        if not pruned.more:
            return observations, incidents


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), unique=True, max_size=25),
    st.integers(0, 10),
    st.dictionaries(st.integers(0, 2), st.none() | st.integers(-1, 9)),
    st.integers(1, 7),
)
def test_observations_that_no_detector_needs_go(
    shared: Store, rows: list[tuple[int, int]], before: int, keep_after: dict[int, int | None], piece: int
) -> None:
    with taken_back(shared) as writer:
        # The fourth signal was removed with more observations than go at once.
        numbers = [add_signal(writer, str(place)).id for place in range(3)] + [10**9]
        writer.add_observations([observation(numbers[place], time) for place, time in rows])
        kept = {
            (place, time)
            for place, time in rows
            if place < 3 and not (time < before and keep_after.get(place) is not None and time <= keep_after[place])
        }
        limits = {numbers[place]: time for place, time in keep_after.items()}
        assert pieces(writer, before, 0, limits, piece=piece) == (len(rows) - len(kept), 0)
        left = {
            (place, row.time) for place, number in enumerate(numbers) for row in writer.observations(number, limit=99)
        }
        assert left == kept


@pytest.mark.slow
def test_a_removed_signal_with_very_many_observations_goes_piece_by_piece(store: Store) -> None:
    with store.transaction() as writer:
        number = add_signal(writer, "a").id
        writer.add_observations([observation(number, time) for time in range(20_007)])
        writer.remove_signal(number)
        assert len(writer.observations(number, limit=30_000)) == 7
        assert writer.prune(0, 0, {}).observations == 7
        assert writer.observations(number, limit=9) == []


def test_incidents_that_are_over_for_long_go_with_their_messages(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a")
        over = [writer.put_incident(incident(1, start, open=False, closed=start + 50)) for start in range(10)]
        going_on = writer.put_incident(incident(1, 10))
        for number in (*over, going_on):
            tell(writer, "mail", number, 1)
        assert pieces(writer, 0, 55, {}, piece=2) == (0, 5)
        assert [row.id for row in writer.incidents(limit=99)] == [going_on, *over[:4:-1]]
        assert writer.outbox_waiting() == {"mail": 6}
        assert pieces(writer, 0, 10**9, {}, piece=1000) == (0, 5)
        assert [row.id for row in writer.incidents(limit=99)] == [going_on]
