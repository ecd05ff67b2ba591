"""Signals, states, incidents, windows, tokens and cursors."""

import math
from dataclasses import asdict, replace

import pytest

from tests.service.store.helpers import NAN, add_signal, incident, observation, tell
from tocsin_monitor.errors import RefusedError, UnknownError
from tocsin_monitor.store import (
    IncidentRow,
    MaintenanceRow,
    PartRow,
    ReferenceRow,
    SignalRow,
    StateRow,
    Store,
    TemplateRow,
    TokenRow,
)


def test_signals(store: Store) -> None:
    with store.transaction() as writer:
        a = writer.add_signal("b/ä 'x'", ["u", "v"], {"alarm_rate": 1e-3, "gap": None}, silent_after=2.5, created=11)
        b = add_signal(writer, "a")
    assert a == SignalRow(a.id, "b/ä 'x'", ("u", "v"), {"alarm_rate": 1e-3, "gap": None}, 2.5, None, None, 11)
    with store.reading() as reader:
        assert reader.signals() == [a, b]
        assert reader.signal("a") == b
        assert reader.signal("c") is None
    with store.transaction() as writer:
        writer.change_signal(b.id, settings={"gap": 5}, features=("w",), unit=None)
        assert writer.signal("a") == replace(b, settings={"gap": 5}, features=("w",), unit=None)
        with pytest.raises(RefusedError, match="signal 'a' already exists"):
            add_signal(writer, "a")
        with pytest.raises(UnknownError, match="77"):
            writer.change_signal(77, unit="K")


def test_a_removed_signal_leaves_nothing_and_its_number_is_not_given_again(store: Store) -> None:
    with store.transaction() as writer:
        kept, gone = add_signal(writer, "kept"), add_signal(writer, "gone")
        for signal in (kept, gone):
            writer.add_observations([observation(signal.id, time) for time in range(5)])
            writer.put_state(signal.id, 4, 9, b"state")
            number = writer.put_incident(incident(signal.id, 3))
            tell(writer, "mail", number, 1)
    with store.transaction() as writer:
        writer.remove_signal(gone.id)
        with pytest.raises(UnknownError, match=str(gone.id)):
            writer.remove_signal(gone.id)
    with store.transaction() as writer:
        assert writer.signals() == [kept]
        assert writer.observations(gone.id, limit=9) == []
        assert len(writer.observations(kept.id, limit=9)) == 5
        assert writer.states([gone.id]) == {}
        assert [row.signal for row in writer.incidents(limit=9)] == [kept.id]
        assert writer.outbox_waiting() == {"mail": 1}
        assert add_signal(writer, "new").id > gone.id


def test_states(store: Store) -> None:
    with store.transaction() as writer:
        a, b, c = (add_signal(writer, name).id for name in "abc")
        writer.put_state(a, 5, 6, b"one")
        writer.put_state(a, 2**62, 8, bytes(range(256)) * 1000)
        writer.put_state(b, None, 8, b"")
    with store.reading() as reader:
        assert reader.states([a, b, c]) == {
            a: StateRow(a, 2**62, 8, bytes(range(256)) * 1000),
            b: StateRow(b, None, 8, b""),
        }
        assert reader.states_times() == {a: 2**62, b: None}
    with store.transaction() as writer:
        writer.remove_state(a)
        assert writer.states_times() == {b: None}


def test_an_incident_goes_on_and_what_people_did_stays(store: Store) -> None:
    some = {"contributions": {"x": float("inf"), "y": -0.0}, "feature_p": {"x": 5e-324}, "suspects": ("x", "y, z")}
    first = incident(1, 100, p=5e-324, **some)
    with store.transaction() as writer:
        assert add_signal(writer, "a").id == 1
        number = writer.put_incident(first)
        people = {"acknowledged": 8, "acknowledged_by": "Ada", "snoozed_until": 9, "label": "fault", "note": "n"}
        writer.change_incident(number, excluded=True, **people)
        row = IncidentRow(**asdict(first), id=number, excluded=True, withheld=False, **people)
        assert writer.incident(number) == row
        gone = {"p": NAN, "severity": NAN, "return_period": NAN, "deviation": NAN, "view": None, "explanation": None}
        later = replace(first, end=200, alarms=4, duration=9, opened=999, **gone)
        assert writer.put_incident(later) == number
        found = writer.incident(number)
        assert found is not None
        for name in ("p", "severity", "return_period", "deviation"):
            assert math.isnan(getattr(found, name))
        plain = dict.fromkeys(gone)
        assert replace(found, **plain) == replace(row, end=200, alarms=4, duration=9, **plain)


def test_when_an_incident_was_closed_is_when_it_was_first_said(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a")
        number = writer.put_incident(incident(1, 100))
        for given, expected in ((None, None), (150, 150), (170, 150), (None, None), (180, 180)):
            assert writer.put_incident(incident(1, 100, open=given is None, closed=given)) == number
            found = writer.incident(number)
            assert found is not None
            assert (found.open, found.closed) == (expected is None, expected)


def test_incidents_are_found(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a"), add_signal(writer, "b")
        numbers = [
            writer.put_incident(incident(1, 100, open=False, closed=120, end=110)),
            writer.put_incident(incident(1, 100, kind="silence", end=300)),
            writer.put_incident(incident(2, 100)),
            writer.put_incident(incident(2, 200)),
        ]
    one, two, three, four = numbers
    assert one < two < three < four
    with store.reading() as reader:
        for wanted, expected in (
            ({}, [four, three, two, one]),
            ({"limit": 2}, [four, three]),
            ({"signal_id": 1}, [two, one]),
            ({"open": True}, [four, three, two]),
            ({"open": False}, [one]),
            ({"kind": "alarm"}, [four, three, one]),
            ({"since": 110}, [four, three, two, one]),
            ({"since": 111}, [four, three, two]),
            ({"before_id": three}, [two, one]),
            ({"signal_id": 2, "before_id": four}, [three]),
        ):
            assert [row.id for row in reader.incidents(**{"limit": 9, **wanted})] == expected, wanted
        assert [row.id for row in reader.open_incidents()] == [two, three, four]
        assert reader.incident(99) is None


@pytest.mark.slow
def test_incidents_are_found_for_more_signals_than_statements_have_parameters(store: Store) -> None:
    """A token may be limited to most of a large fleet."""
    many = range(1, 70_001)
    with store.transaction() as writer:
        signal = add_signal(writer, "a")
        event = writer.add_event("alarm", 1, ("place:a",), 1)
        number = writer.put_incident(incident(signal.id, 100))
        writer.change_incident(number, event=event)
    with store.reading() as reader:
        assert [row.id for row in reader.incidents(signal_ids=many, limit=5)] == [number]
        assert [row.id for row in reader.events(signal_ids=many, limit=5)] == [event]
        assert [row.id for row in reader.members(event, signal_ids=many, limit=5)] == [number]
        assert [row.name for row in reader.signals(many)] == ["a"]
        assert reader.incidents(signal_ids=[], limit=5) == reader.events(signal_ids=[], limit=5) == []


def test_incidents_go_on_without_anything_else_of_them_changing(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a")
        numbers = [writer.put_incident(incident(1, start)) for start in (100, 200, 300)]
        before = [writer.incident(number) for number in numbers]
        writer.prolong_incidents([(numbers[0], 150, 6), (numbers[2], 390, 10)])
        writer.prolong_incidents([])
        one, two, three = (writer.incident(number) for number in numbers)
        assert (one, two) == (replace(before[0], end=150, duration=6), before[1])
        assert three == replace(before[2], end=390, duration=10)


def test_only_what_can_change_of_an_incident_is_changed(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a")
        number = writer.put_incident(incident(1, 100))
        with pytest.raises(UnknownError, match="incidents"):
            writer.change_incident(number + 1, label="fault")
        writer.change_incident(number, contributions={"f0": NAN}, closed=3, open=False)
        found = writer.incident(number)
        assert found is not None
        assert found.contributions["f0"] != found.contributions["f0"]
        assert not found.open


def test_maintenance(store: Store) -> None:
    with store.transaction() as writer:
        later = writer.add_maintenance("a*", 10, 20, "repair", "Ada")
        sooner = writer.add_maintenance("*", 5, 20, "", "Bob")
        rows = [MaintenanceRow(sooner, "*", 5, 20, "", "Bob"), MaintenanceRow(later, "a*", 10, 20, "repair", "Ada")]
        assert writer.maintenance() == rows
        writer.remove_maintenance(later)
        assert writer.maintenance() == rows[:1]
        with pytest.raises(UnknownError, match=f"no maintenance window with number {later}"):
            writer.remove_maintenance(later)


def test_tokens(store: Store) -> None:
    with store.transaction() as writer:
        writer.add_token("z", "read", "h1", 5, expires=9)
        writer.add_token("a", "admin", "h2", 6)
        with pytest.raises(RefusedError, match="a token named 'a' already exists"):
            writer.add_token("a", "read", "h3", 7)
    with store.transaction() as writer:
        a, z = writer.tokens()
        assert (a, z) == (TokenRow(a.id, "a", "admin", "h2", 6, None), TokenRow(z.id, "z", "read", "h1", 5, 9))
        writer.remove_token("z")
        assert writer.tokens() == [a]
        with pytest.raises(UnknownError, match="'z'"):
            writer.remove_token("z")


def test_cursors(store: Store) -> None:
    with store.transaction() as writer:
        assert writer.cursor("file") is None
        for position in ("1", "1", "20"):
            writer.put_cursor("file", position)
            writer.put_cursor("other", "x")
            assert writer.cursor("file") == position


def test_open_incidents_are_counted(store: Store) -> None:
    with store.transaction() as writer:
        add_signal(writer, "a")
        for start in range(5):
            writer.put_incident(incident(1, start, open=start < 3))
        assert writer.count_open_incidents() == len(writer.open_incidents()) == 3


def test_references(store: Store) -> None:
    with store.transaction() as writer:
        signal = add_signal(writer, "a")
        assert writer.references() == []
        writer.put_reference(ReferenceRow(signal.id, 1, 2, 1, 3, "ada"), [1], [(4.0,)])
    with store.transaction() as writer:
        assert writer.reference_values(signal.id) == ([1], [(4.0,)])
        writer.remove_signal(signal.id)
        assert writer.references() == []


def test_forecasts_are_stored_until_the_next_state(store: Store) -> None:
    with store.transaction() as writer:
        signal, other = (add_signal(writer, name).id for name in "ab")
        for time in (20, 10):
            writer.add_kept_forecasts([(signal, time, f"up to {time}".encode()), (other, time, b"of another signal")])
        assert writer.kept_forecasts([signal]) == {signal: [b"up to 10", b"up to 20"]}
        writer.put_state(signal, 20, 25, b"state")
        assert writer.kept_forecasts([signal, other]) == {signal: [], other: [b"of another signal"] * 2}
        writer.remove_signal(other)
        assert writer.kept_forecasts([other]) == {other: []}


def test_parts_of_signals_that_aggregate(store: Store) -> None:
    with store.transaction() as writer:
        plain = add_signal(writer, "a")
        assert (plain.every, plain.aggregate) == (None, "mean")
        new = writer.add_signal("b", ["value"], {}, created=1, every=60.0, aggregate="max")
        writer.add_parts([PartRow(new.id, 5, (1.5,)), PartRow(new.id, 6, (NAN,))])
        assert [row.time for row in writer.parts(new.id, 5)] == [6]
        assert writer.parts_at([(new.id, 5), (new.id, 7)]) == {(new.id, 5)}
        assert writer.signal("b") == new
        writer.remove_signal(new.id)
        assert writer.parts(new.id, None) == []


def test_signal_templates(store: Store) -> None:
    first, other = TemplateRow("pump/*", {"unit": "bar"}, 5, "ada"), TemplateRow("*", {"detector": {"gap": 3}}, 6, "")
    with store.transaction() as writer:
        assert writer.templates() == []
        writer.put_template(first)
        writer.put_template(other)
        writer.put_template(replace(first, template={"unit": "\u00b0C"}, changed=7))
    with store.transaction() as writer:
        assert writer.templates() == [other, replace(first, template={"unit": "\u00b0C"}, changed=7)]
        writer.remove_template("*")
        with pytest.raises(UnknownError, match=r"there is no stored template '\*'"):
            writer.remove_template("*")


@pytest.mark.parametrize("tokens", [0, 2])
def test_the_time_of_the_first_token_is_kept(store: Store, tokens: int) -> None:
    with store.transaction() as writer:
        for number in range(tokens):
            writer.add_token(f"token-{number}", "write", f"hash-{number}", created=7 + number)
    with store.transaction() as writer:
        assert writer.guarded_since() == (7 if tokens else None)
        assert [row.patterns for row in writer.tokens()] == [()] * tokens
        assert writer.access_log(limit=1) == []
