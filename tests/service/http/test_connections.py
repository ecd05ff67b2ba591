import socket

from tests.service.helpers import free_port
from tocsin.service.config import ServerSettings
from tocsin.service.http.connections import ConnectionSlot, ConnectionSlots
from tocsin.service.http.server import listen


def entered(places: ConnectionSlots, address: str, dropped: list[str], name: str) -> ConnectionSlot | None:
    place = places.enter(address)
    if place is not None:
        place.drop = lambda: dropped.append(name)
    return place


def test_who_waits_longest_makes_room() -> None:
    places, dropped = ConnectionSlots(3, 3), []
    first, *_ = [entered(places, f"10.0.0.{i}", dropped, str(i)) for i in range(3)]
    assert first is not None
    first.work()
    assert entered(places, "10.0.0.9", dropped, "9") is not None
    assert dropped == ["1"]
    first.wait()  # it is the one that waits the shortest now
    assert entered(places, "10.0.0.9", dropped, "10") is not None
    assert dropped == ["1", "2"]
    assert len(places) == 3


def test_requests_that_are_being_answered_are_not_given_up() -> None:
    places, dropped = ConnectionSlots(2, 2), []
    working = [entered(places, "10.0.0.1", dropped, str(i)) for i in range(2)]
    for place in working:
        assert place is not None
        place.work()
    assert places.enter("10.0.0.2") is None
    assert dropped == []
    assert working[0] is not None
    working[0].leave()
    working[0].leave()  # once is enough
    assert places.enter("10.0.0.2") is not None
    assert places.enter("10.0.0.3") is not None  # in the place of the one before
    assert len(places) == 2


def test_one_address_keeps_out_only_itself() -> None:
    places, dropped = ConnectionSlots(10, 2), []
    other = entered(places, "10.0.0.2", dropped, "other")
    for number in range(5):
        assert entered(places, "10.0.0.1", dropped, str(number)) is not None
    assert dropped == ["0", "1", "2"]
    assert other is not None
    assert len(places) == 3


def test_replies_are_sent_without_waiting_for_acknowledgements() -> None:
    """Both parts of a reply are sent at once: the second must not wait until the client has acknowledged the first."""
    with (
        listen(ServerSettings(port=free_port())) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
