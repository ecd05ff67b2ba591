"""Events over HTTP, with the real engine: listed, shown with their suspects, acknowledged once for all."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.service.engine.helpers import SECOND, Rig, settings_of, until
from tests.service.http.conftest import Client, Make, error_of
from tests.service.sinks.office import facts
from tocsin.detection import EventSignal, moving_order
from tocsin_monitor.config import DependsSettings
from tocsin_monitor.http.monitor_access import Figures
from tocsin_monitor.observations import Batch, Observation, Status, StoredVerdict
from tocsin_monitor.store import ObservationRow
from tocsin_monitor.tokens import Role, hash_token, make_token

URL = "/api/v1/events"
NAMES = [f"plant/line-{number % 3}/{number}" for number in range(9)]


class Watched:
    """An engine with an HTTP application, and nothing else."""

    def __init__(self, folder: Path) -> None:
        template = {"match": "*", "silent_after": 0.3}
        self.rig = Rig(folder, settings_of(templates=[template], events={"window": 60}))
        self.monitor: Any = SimpleNamespace(
            settings=self.rig.settings, store=self.rig.store, engine=self.rig.engine, hub=self.rig.hub,
            metrics=self.rig.metrics, figures=Figures(self.rig.store), read_turns=asyncio.Semaphore(2),
            sources=[], sinks=[], started=time.time_ns(),
        )  # fmt: skip

    def send(self, names: list[str], sender: str, at: int) -> None:
        observations = tuple(Observation(name, at, (1.0,)) for name in names)
        self.rig.engine.submit(Batch(observations, sender=sender)).result(100)

    def stop(self, names: list[str], sender: str, at: int) -> None:
        """Send one observation of each, and wait until all are silent."""
        self.send(names, sender, at)
        until(lambda: all(self.rig.engine.status(name).silent for name in names))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.rig.close()


@pytest.fixture
def client(watched: Watched) -> Client:
    return Client(watched.monitor)


@pytest.mark.slow
def test_events_are_listed_and_acknowledged_once_for_all(watched: Watched, client: Client) -> None:
    now = time.time_ns() - 3600 * SECOND
    watched.stop(NAMES, "gateway", now)
    watched.stop(["yard/gate"], "another", now)
    second, first = client.get(URL).json()["events"]
    if first["count"] == 1:
        first, second = second, first
    assert (first["title"], first["count"], first["open_count"]) == ("source gateway stopped: 9 signals silent", 9, 9)
    assert (first["source"], first["place"], first["strongest"]["signal"]) == (
        "gateway",
        None,
        first["first"]["signal"],
    )
    assert second["title"] == "yard/gate is silent"

    def numbers(query: str) -> list[int]:
        return [one["id"] for one in client.get(f"{URL}?{query}").json()["events"]]

    newest = max(first["id"], second["id"])
    assert numbers("limit=1") == [newest]
    assert numbers(f"before={newest}") == [min(first["id"], second["id"])]
    assert numbers("signal=yard%2Fgate&kind=silence&open=true") == [second["id"]]
    assert numbers("open=false") == numbers("kind=alarm") == []
    assert client.get(f"{URL}?signal=x").status_code == 404

    one = f"{URL}/{first['id']}"
    seen = client.post(f"{one}/acknowledge", json={"note": "on it"}).json()
    assert (seen["acknowledged_by"], seen["note"]) == ("local", "on it")
    found = client.get("/api/v1/incidents?limit=100").json()["incidents"]
    assert {(row["event"], row["acknowledged_by"]) for row in found} == {(first["id"], "local"), (second["id"], None)}
    assert client.delete(f"{one}/acknowledge").json()["acknowledged"] is None
    assert client.post(f"{one}/snooze", json={"seconds": 60}).json()["snoozed_until"] is not None
    assert client.delete(f"{one}/snooze").json()["snoozed_until"] is None
    assert client.post(f"{one}/label", json={"label": "expected", "note": "moved"}).json()["label"] == "expected"
    assert client.post(f"{one}/label", json={"label": "odd"}).status_code == 422
    assert error_of(client.get(f"{URL}/99"))["message"] == "there is no event 99"
    assert client.post(f"{URL}/99/acknowledge").status_code == 404
    watched.send(NAMES, "gateway", now + SECOND)
    watched.send(["yard/gate"], "another", now + SECOND)
    assert numbers("since=2200-01-01&open=true") == []


def test_members_come_in_their_order_with_those_that_moved_first(make: Make) -> None:
    """`b` moved before `a` and `c` in the past; now the three move again, and `d` for the first time."""
    monitor = make()
    seconds = {"hall/b": (0, 1000, 2000, 9000), "hall/a": (4, 1004, 9004), "hall/c": (1005, 9005), "hall/d": (9006,)}
    with monitor.store.transaction() as writer:
        number = writer.add_event("alarm", 9000 * SECOND, ["place:hall"], 1)
        for name, starts in seconds.items():
            signal = writer.add_signal(name, ["value"], {}, created=1)
            for start in starts:
                incident = writer.put_incident(facts(signal.id, start=start * SECOND, open=start >= 9000))
                if start >= 9000:
                    writer.change_incident(incident, event=number)
    client = Client(monitor)
    found = client.get(f"{URL}/{number}").json()
    assert found["title"] == "hall: 4 incidents on 4 signals"
    assert [row["signal"] for row in found["members"]] == ["hall/b", "hall/a", "hall/c", "hall/d"]
    assert client.get(f"{URL}/{number}?offset=1&limit=1").json()["members"] == found["members"][1:2]
    told = {
        one["signal"]: (one["seconds_after_first"], one["past_incidents"], one["together"]) for one in found["suspects"]
    }
    assert told == {
        "hall/b": (0.0, 3, [{"signal": "hall/a", "times": 2}, {"signal": "hall/c", "times": 1}]),
        "hall/a": (4.0, 2, [{"signal": "hall/b", "times": 2}, {"signal": "hall/c", "times": 1}]),
        "hall/c": (5.0, 1, [{"signal": "hall/a", "times": 1}, {"signal": "hall/b", "times": 1}]),
        "hall/d": (6.0, 0, []),
    }


def test_which_signal_moved_first_is_what_the_library_says_of_what_is_stored(make: Make) -> None:
    """`a` moves four minutes before `b`; `c` has nothing stored."""
    monitor, rng, minute = make(), np.random.default_rng(0), 60 * SECOND
    times = np.arange(1000) * minute
    with monitor.store.transaction() as writer:
        number = writer.add_event("alarm", times[900], ["place:hall"], 1)
        silent = writer.add_event("silence", times[900], ["place:hall"], 1)
        signals = []
        for name, at in (("hall/a", 900), ("hall/b", 904), ("hall/c", 2000)):
            row = writer.add_signal(name, ["flow", "value"], {}, created=1)
            values = rng.normal(size=1000)
            values[at:] += 6
            severity = 0.3 * values**2
            if at < 1000:
                stored = [verdict(one, far) for one, far in zip(values.tolist(), severity.tolist(), strict=True)]
                writer.add_observations(
                    ObservationRow(row.id, int(time), Status.SCORED, one)
                    for time, one in zip(times, stored, strict=True)
                )
                start, end = (np.datetime64(int(one) * minute, "ns") for one in (at, 999))
                signals.append(
                    EventSignal(name, times[: at + 501].astype("datetime64[ns]"), values, severity, start, end)
                )
            start = min(at, 950) * minute
            incident = writer.put_incident(facts(row.id, start=start, end=999 * minute))
            writer.change_incident(incident, event=number)
        alone = writer.put_incident(facts(row.id, start=times[970], kind="silence"))
        writer.change_incident(alone, event=silent)
    client = Client(monitor)
    told, order = client.get(f"{URL}/{number}/causes").json(), moving_order(signals)
    assert (told["first"], told["lead_seconds"], told["p"]) == ("hall/a", 240.0, order.p)
    assert told["text"] == str(order) == "first: hall/a, at least 4 min before the rest (p = 0.01)"
    assert [one["signal"] for one in told["signals"]] == ["hall/a", "hall/b", "hall/c"]
    assert [one["score"] for one in told["signals"]] == [*(one.score for one in order.movers), None]
    assert told["signals"][0]["latest"] == "1970-01-01T15:00:00.000Z"
    assert [one["needed_by"] for one in told["signals"]] == [[], [], []]
    assert client.get(f"{URL}/{silent}/causes").json()["text"] == "cannot tell: only alarms have values to compare"
    assert client.get(f"{URL}/99/causes").status_code == 404


def test_what_others_depend_on_comes_first_if_the_onsets_cannot_be_told_apart(make: Make) -> None:
    monitor = make()
    depends = DependsSettings(signal="other/*", on="*"), DependsSettings(signal="hall/*", on="hall/power")
    monitor.settings = monitor.settings.model_copy(update={"depends": depends})
    with monitor.store.transaction() as writer:
        number = writer.add_event("alarm", 9000 * SECOND, ["place:hall"], 1)
        for name in ("hall/fan", "hall/power"):
            signal = writer.add_signal(name, ["value"], {}, created=1)
            writer.change_incident(writer.put_incident(facts(signal.id, start=9000 * SECOND)), event=number)
    told = Client(monitor).get(f"{URL}/{number}/causes").json()
    assert told["text"] == "cannot tell which moved first: hall/power or hall/fan; hall/fan depends on hall/power"
    assert [(one["signal"], one["needed_by"]) for one in told["signals"]] == [
        ("hall/power", ["hall/fan"]),
        ("hall/fan", []),
    ]


def verdict(value: float, severity: float) -> StoredVerdict:
    """A verdict of two features, of which the second one moves."""
    nothing = (0.0, 0.0)
    return StoredVerdict((0.0, value), nothing, nothing, nothing, 0.5, 10**-severity, nothing, False, True)


def test_a_limited_token_sees_its_part_of_an_event_and_cannot_change_the_rest(watched: Watched) -> None:
    watched.stop(NAMES, "gateway", time.time_ns() - 3600 * SECOND)
    with watched.rig.store.transaction() as writer:
        tokens = {}
        for name, patterns in (("part", ["plant/line-0/*"]), ("none", ["yard/*"]), ("all", ["plant/*"])):
            tokens[name] = make_token()
            writer.add_token(name, Role.OPERATE.value, hash_token(tokens[name]), created=1, patterns=patterns)
    part, none, everything = (Client(watched.monitor, tokens[name]) for name in ("part", "none", "all"))
    (event,) = part.get(URL).json()["events"]
    assert event["count"] == 3
    found = part.get(f"{URL}/{event['id']}").json()
    shown = [row["signal"] for row in found["members"]] + [one["signal"] for one in found["suspects"]]
    assert all(name.startswith("plant/line-0/") for name in shown)
    assert part.post(f"{URL}/{event['id']}/acknowledge").status_code == 403
    assert none.get(URL).json() == {"events": []}
    assert none.get(f"{URL}/{event['id']}").status_code == 404
    assert none.post(f"{URL}/{event['id']}/acknowledge").status_code == 404
    assert everything.post(f"{URL}/{event['id']}/acknowledge").json()["acknowledged_by"] == "all"
