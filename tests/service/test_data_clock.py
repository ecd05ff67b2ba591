"""A monitor that lives by the time of its data, as `benchmarks/fleet.py` has it."""

import time
from pathlib import Path

import httpx
import pytest
from benchmarks.data_clock import DataClock
from benchmarks.fleet import MINUTE, LivingByData
from benchmarks.flood import count, wait_for

from tests.service.receiver import Receiver
from tocsin_monitor.observations import moment_of

CONFIG = '[[sinks.webhook]]\nname = "pager"\nurl = "http://{place}"\n'
START = moment_of("2020-03-01T00:00:00Z")


@pytest.mark.slow
def test_silence_and_messages_come_by_the_time_of_the_data(tmp_path: Path) -> None:
    """Ten times the usual minute is silence, and the message is held for ten seconds; no real time passes."""
    clock = DataClock(tmp_path / "clock")
    clock.set(START + 30 * MINUTE)
    receiver = Receiver(clock=clock.now)
    rows = [{"signal": "pump", "time": START + number * MINUTE, "value": number % 7} for number in range(31)]
    too_early = {"signal": "pump", "time": START + 36 * MINUTE, "value": 1}
    with LivingByData(tmp_path, CONFIG.format(place=receiver.place), clock) as monitor, httpx.Client() as client:
        client.base_url = f"{monitor.address}/api/v1"
        monitor.start()
        outcomes = client.post("/observations", json=[*rows, too_early], timeout=60).json()["outcomes"]
        assert [one["status"] for one in outcomes] == 31 * ["scored"] + ["future"]
        clock.set(START + 39 * MINUTE)
        time.sleep(0.5)
        status = client.get("/status").json()
        assert (status["silent"], status["clock_jumped"]) == (0, None)
        clock.set(START + 41 * MINUTE)
        wait_for(lambda: client.get("/status").json()["silent"] == 1)
        time.sleep(0.5)
        assert not receiver.taken
        clock.set(START + 42 * MINUTE)
        wait_for(lambda: count(receiver, "firing") == 1)
    receiver.close()
    assert receiver.moments == [START + 42 * MINUTE]
