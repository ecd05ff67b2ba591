"""Removed signals: who was told of an incident hears that it is over, and then nothing of the signal is left."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from tests.cases import full
from tests.service.engine.helpers import SECOND, Rig, settings_of, until
from tests.service.helpers import Running, run
from tests.service.helpers import until as until_async
from tests.service.receiver import Receiver
from tests.service.sinks import channel as servers
from tests.service.sinks.channel import Channel
from tests.service.sinks.test_channels import KEY
from tocsin_monitor import errors
from tocsin_monitor.engine import lifecycle
from tocsin_monitor.errors import UnknownError
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Batch, Observation
from tocsin_monitor.sinks import make_sinks
from tocsin_monitor.sinks import outbox as outbox_module
from tocsin_monitor.sinks.outbox import Outbox
from tocsin_monitor.store import Store, schema


class Desk:
    """Whoever is told: a webhook and PagerDuty, and a monitor in a store that tells them."""

    def __init__(self, folder: Path, url: str, **given: Any) -> None:
        self.hook, self.pager = Receiver(), Channel(servers.pagerduty, 202)
        sinks = {
            "webhook": [{"name": "hook", "url": f"http://{self.hook.place}"}],
            "pagerduty": [{"name": "pager", "url": self.pager.url, "routing_key": KEY}],
        }
        silent = [{"match": "*", "silent_after": 0.2}]
        self.settings = settings_of(**{"sinks": sinks, "templates": silent, "events": {"hold": 0}, **given})
        self._folder, self._url = folder, url
        self.made = Rig(folder, self.settings, Store.open(url))

    def close(self) -> None:
        self.made.close()
        self.hook.close()
        self.pager.close()

    def restart(self) -> None:
        self.made.close()
        self.made = Rig(self._folder, self.settings, Store.open(self._url))

    def outboxes(self) -> list[Outbox]:
        made = make_sinks(self.settings, self.made.store, self.made.engine.write, Metrics())
        for outbox in made:
            outbox._poll = 0.02
        return made

    def send(self, *names: str, sender: str = "gateway") -> None:
        rows = tuple(Observation(name, time.time_ns(), (1.0,)) for name in names)
        self.made.engine.submit(Batch(rows, sender=sender)).result(100)

    def remove(self, name: str) -> None:
        self.made.engine.signals.remove(name).result(100)

    def alarm(self, name: str) -> None:
        """An alarm incident of a signal that sends on."""
        self.made.engine.signals.create(name, silent_after=1e6).result(100)
        begin = time.time_ns() - 301 * SECOND
        self.made.feed(name, [0.0] * 300, begin)
        self.made.feed(name, [90.0], begin + 300 * SECOND)

    def has_told(self) -> bool:
        """Whether both were told something, and the monitor knows that they were."""
        with self.made.store.reading() as reader:
            return bool(self.hooked() and self.paged()) and not reader.outbox_waiting()

    def hooked(self) -> list[tuple[str, str, str | None]]:
        """What the webhook was told: status, signal and why it ended."""
        alerts = [alert for body in list(self.hook.taken) for alert in body["alerts"]]
        return [(one["status"], one["labels"]["signal"], one["annotations"].get("ended")) for one in alerts]

    def paged(self) -> list[tuple[str, str]]:
        """What PagerDuty was told, and of which of its incidents."""
        return [(asked.json["event_action"], asked.json["dedup_key"]) for asked in list(self.pager.taken)]

    def rows(self) -> dict[str, int]:
        """The tables about signals that have rows, and how many."""
        tables = (schema.signals, schema.incidents, schema.events, schema.outbox, schema.observations, schema.states)
        with self.made.store.reading() as reader:
            ask = reader.connection.execute
            counts = {table.name: ask(select(func.count()).select_from(table)).scalar_one() for table in tables}
        return {name: count for name, count in counts.items() if count}


@contextmanager
def desk(folder: Path, url: str | None = None, **given: Any) -> Iterator[Desk]:
    with closing(Desk(folder, url or f"sqlite:///{folder / 'tocsin.db'}", **given)) as made:
        yield made


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (errors, outbox_module):
        monkeypatch.setattr(place, "delay_after", lambda *_: 0.05)


def assert_unknown(made: Rig, name: str) -> None:
    """Nobody sees a signal of this name."""
    with pytest.raises(UnknownError):
        made.engine.status(name)
    assert name not in [status.name for status in made.engine.overview()]
    with made.store.reading() as reader:
        assert reader.signal(name) is None
        assert name not in [row.name for row in reader.signals()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["silence", "alarm"])
def test_the_end_of_a_removed_signals_incident_is_told(tmp_path: Path, store_url: str, kind: str) -> None:
    with desk(tmp_path, store_url) as here:

        async def test() -> None:
            async with Running(*here.outboxes()):
                if kind == "silence":
                    here.send("pump")
                else:
                    here.alarm("pump")
                await until_async(here.has_told)
                here.made.events.clear()
                here.remove("pump")
                assert_unknown(here.made, "pump")
                changes = [(what, data.get("change") or data.get("ended")) for what, data in here.made.events]
                assert [one for one in changes if one[0] == "signal"][-1] == ("signal", "removed")
                assert ("incident", "removed") in changes
                await until_async(lambda: len(here.hooked()) == 2 and len(here.paged()) == 2)
                await until_async(lambda: not here.rows() and not here.made.state.leaving)

        run(test)
        assert here.hooked() == [("firing", "pump", None), ("resolved", "pump", "removed")]
        (trigger, began), (resolve, ended) = here.paged()
        assert (trigger, resolve, ended) == ("trigger", "resolve", began)
        (alert,) = here.hook.taken[-1]["alerts"]
        assert alert["annotations"]["summary"] == "pump: incident ended because the signal was removed"


@pytest.mark.slow
def test_an_event_goes_on_and_ends_after_its_first_member_was_removed(tmp_path: Path, store_url: str) -> None:
    with desk(tmp_path, store_url) as here:

        async def test() -> None:
            async with Running(*here.outboxes()):
                here.send("hall/a", "hall/b", "hall/c")
                await until_async(here.has_told)
                (_, lead, _) = here.hooked()[0]
                others = sorted({"hall/a", "hall/b", "hall/c"} - {lead})
                here.remove(lead)
                assert_unknown(here.made, lead)
                (event,) = _events(here.made)
                assert event.open
                for name in others:
                    here.made.engine.signals.configure(name, silent_after=1e6).result(100)
                # What is noted of the others tells nobody a second time that it began.
                here.send(others[0])
                assert here.made.state.leaving
                here.send(others[1])
                await until_async(lambda: len(here.hooked()) == 2 and len(here.paged()) == 2)
                await until_async(lambda: not here.made.state.leaving)
                assert sorted(row.name for row in _signals(here.made)) == others
                assert here.rows()["signals"] == 2

        run(test)
        assert [status for status, _, _ in here.hooked()] == ["firing", "resolved"]
        (trigger, began), (resolve, ended) = here.paged()
        assert (trigger, resolve, ended) == ("trigger", "resolve", began)


@pytest.mark.slow
def test_an_event_whose_members_are_all_removed_ends_with_the_last(tmp_path: Path) -> None:
    with desk(tmp_path) as here:

        async def test() -> None:
            async with Running(*here.outboxes()):
                here.send("hall/a", "hall/b", "hall/c")
                await until_async(here.has_told)
                for name in ("hall/a", "hall/b", "hall/c"):
                    assert len(here.hooked()) == 1
                    here.remove(name)
                await until_async(lambda: len(here.paged()) == 2 and not here.rows())

        run(test)
        assert [(status, ended) for status, _, ended in here.hooked()] == [("firing", None), ("resolved", "removed")]
        assert [action for action, _ in here.paged()] == ["trigger", "resolve"]


@pytest.mark.slow
def test_a_sink_that_was_down_hears_of_the_end_later(tmp_path: Path) -> None:
    with desk(tmp_path) as here:

        async def test() -> None:
            async with Running(*here.outboxes()):
                here.send("pump")
                await until_async(here.has_told)
                here.hook.answers, here.pager.answers = [503] * 5, [503] * 5
                here.remove("pump")
                await until_async(lambda: len(here.hooked()) == 2 and len(here.paged()) == 2)
                await until_async(lambda: not here.rows())
            assert (here.hook.answers, here.pager.answers) == ([], [])

        run(test)
        assert here.hooked()[-1] == ("resolved", "pump", "removed")


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [full(False), True])
def test_a_new_signal_of_the_same_name_takes_nothing_from_the_old_one(
    tmp_path: Path, store_url: str, restarts: bool
) -> None:
    """Not even the message that the old one's incident is over."""
    with desk(tmp_path, store_url) as here:

        async def begun() -> None:
            async with Running(*here.outboxes()):
                here.alarm("pump")
                await until_async(here.has_told)

        async def over() -> None:
            async with Running(*here.outboxes()):
                await until_async(lambda: len(here.hooked()) == 2 and len(here.paged()) == 2)
                await until_async(lambda: not here.made.incidents())

        run(begun)
        before = here.made.engine.status("pump").id
        here.remove("pump")  # while nobody is told
        if restarts:
            here.restart()
            assert_unknown(here.made, "pump")
            assert here.made.state.leaving == {before}
        here.made.engine.signals.create("pump", ["flow", "heat"], silent_after=1e6).result(100)
        now = here.made.engine.status("pump").id
        assert now != before
        if restarts:
            here.restart()
        here.made.take(Observation("pump", time.time_ns(), (1.0, 2.0)))
        assert (here.made.engine.status("pump").id, len(here.made.stored("pump"))) == (now, 1)
        with here.made.store.reading() as reader:
            (number,) = {row.id for row in here.made.incidents()}
            assert (reader.signal_names(), reader.leaving()) == ({before: "pump", now: "pump"}, {before})
        with pytest.raises(UnknownError, match="was removed"):
            here.made.engine.incidents.acknowledge(number, "ada").result(100)
        run(over)
        assert [row.id for row in _signals(here.made)] == [now]
        assert len(here.made.stored("pump")) == 1
        assert here.hooked()[-1] == ("resolved", "pump", "removed")
        assert len({key for _, key in here.paged()}) == 1


def test_a_new_signal_that_just_sends_on_is_created_at_once(tmp_path: Path) -> None:
    with desk(tmp_path) as here:
        here.alarm("pump")
        here.made.outbox("hook")  # delivered
        here.remove("pump")
        here.made.feed("pump", [1.0], time.time_ns())
        assert here.made.engine.status("pump").observations == 1
        here.remove("pump")
        assert_unknown(here.made, "pump")


@pytest.mark.slow
def test_what_no_sink_takes_is_removed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk(tmp_path) as here:
        here.send("pump")
        until(lambda: here.made.incidents(open=True))
        here.made.outbox("hook")  # delivered
        here.remove("pump")
        with here.made.held():
            assert here.rows()["signals"] == 1
        monkeypatch.setattr(lifecycle, "LONGEST_LEAVING", 0.2)
        until(lambda: not here.rows())
        until(lambda: not here.made.state.leaving)


@pytest.mark.slow
def test_nobody_is_told_of_an_incident_of_a_removed_signal_who_was_not_told_before(tmp_path: Path) -> None:
    with desk(tmp_path) as here:
        here.send("hall/a", "hall/b")
        until(lambda: len(here.made.incidents(open=True)) == 2)
        for name in ("hall/a", "hall/b"):
            here.remove(name)

        async def test() -> None:
            async with Running(*here.outboxes()):
                await until_async(lambda: not here.rows())

        run(test)
        assert (here.hooked(), here.paged()) == ([], [])
        assert here.made.state.events._groups == {}


@pytest.mark.slow
def test_many_signals_leave_in_several_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "REMOVED_AT_ONCE", 2)
    with desk(tmp_path, events={"enabled": False}) as here:
        names = [f"pump {number}" for number in range(7)]

        async def test() -> None:
            async with Running(*here.outboxes()):
                here.send(*names)
                await until_async(lambda: len(here.hooked()) == 7 and here.has_told())
                for name in names:
                    here.remove(name)
                await until_async(lambda: len(here.hooked()) == len(here.paged()) == 14)
                await until_async(lambda: not here.rows())

        run(test)
        assert sorted(name for status, name, _ in here.hooked() if status == "resolved") == names


@pytest.mark.slow
def test_an_event_that_is_gone_is_not_joined(tmp_path: Path) -> None:
    """Even if it was over when its signal was removed, and would still wait for others."""
    with desk(tmp_path, sinks={}, events={"hold": 600}) as here:
        here.send("hall/a")
        until(lambda: here.made.incidents(open=True))
        here.made.engine.signals.configure("hall/a", silent_after=1e6).result(100)
        here.send("hall/a")
        here.remove("hall/a")
        assert not here.rows()
        here.send("hall/b")
        until(lambda: here.made.incidents(open=True))
        assert len(_events(here.made)) == 1
        assert ("status", {"ready": False}) not in here.made.events  # the engine did not fail


def _events(made: Rig) -> Sequence[Any]:
    with made.store.reading() as reader:
        return reader.events(limit=1000)


def _signals(made: Rig) -> Sequence[Any]:
    with made.store.reading() as reader:
        return reader.signals()
