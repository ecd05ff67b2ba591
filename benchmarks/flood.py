"""Many signals that stop at once: how many messages a person gets."""

import time

import httpx
from tests.service.process import MonitorProcess
from tests.service.receiver import Receiver

CONFIG = """
[server]
requests_per_second = 100000
burst = 100000
[[templates]]
match = "*"
silent_after = "3s"
[[sinks.webhook]]
name = "pager"
url = "http://{place}"
"""
LINES = 20
PATIENCE = 600.0


def flood(folder, signals):
    """Let a sender of so many signals stop, with a real receiver of messages, acknowledge the event, and send again.

    Returns the messages that it began, those that it is over, and the seconds from the last observation to the first
    message.
    """
    receiver = Receiver()
    try:
        with (
            MonitorProcess(folder, CONFIG.format(place=receiver.place)) as monitor,
            httpx.Client(timeout=120) as client,
        ):
            client.base_url = f"{monitor.address}/api/v1"
            monitor.start()
            sent = send(client, signals)
            wait_for(lambda: client.get("/status").json()["silent"] == signals)
            wait_for(lambda: count(receiver, "firing"))
            delay = time.monotonic() - sent
            (event,) = client.get("/events", params={"open": True}).json()["events"]
            client.post(f"/events/{event['id']}/acknowledge", json={}).raise_for_status()
            seen = client.get("/incidents", params={"open": True, "limit": 1000}).json()["incidents"]
            if len(seen) != min(signals, 1000) or not all(one["acknowledged"] for one in seen):
                raise RuntimeError("one acknowledgement is not enough")
            wait_for(lambda: not any(client.get("/status").json()["outbox"].values()))
            began = count(receiver, "firing")
            send(client, signals)
            wait_for(lambda: count(receiver, "resolved"))
            return began, count(receiver, "resolved"), delay
    finally:
        receiver.close()


def send(client, signals):
    """One observation of each signal, all in one request; returns when that was."""
    rows = [{"signal": f"plant/line-{number % LINES}/{number}", "value": 1.0} for number in range(signals)]
    client.post("/observations", json=rows).raise_for_status()
    return time.monotonic()


def count(receiver, status):
    return sum(message["status"] == status for message in list(receiver.taken))


def wait_for(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"it did not happen in {PATIENCE:g} s")
        time.sleep(0.1)
