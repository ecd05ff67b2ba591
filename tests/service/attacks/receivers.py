"""Receivers of alarms, and proxies before them, that do not behave."""

import time
from collections import Counter

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack
from tests.service.receiver import Receiver

MANY = 300
SILENT = '[[templates]]\nmatch = "pump/*"\nsilent_after = "1s"\n'


def told_of(receiver: Receiver) -> Counter[str]:
    """How often the receiver took an alert of each signal."""
    return Counter(alert["labels"]["signal"] for body in list(receiver.taken) for alert in body)


def point_at(ground: Ground, receiver: Receiver, more: str = "") -> None:
    """Have the monitor tell a receiver of incidents."""
    sink = f'[[sinks.alertmanager]]\nname = "manager"\nurl = "http://{receiver.place}"\nrefresh = "1s"\n{more}'
    ground.monitor.config.write_text(ground.monitor.config.read_text() + sink)
    ground.restart()


@attack(config=SILENT)
def a_proxy_refuses_large_requests_in_a_mass_outage(ground: Ground) -> None:
    receiver = Receiver(largest=10_000, hated=("pump/7 ",))
    point_at(ground, receiver)
    names = [f"pump/{number} x" for number in range(MANY)]
    ground.send(*({"signal": name, "value": 1.0} for name in names))
    good = [name for name in names if not name.startswith("pump/7 ")]
    ground.until(lambda: min(told_of(receiver)[name] for name in good) >= 2)
    began = time.monotonic()
    ground.send({"signal": "pump/new", "value": 1.0})
    ground.until(lambda: told_of(receiver)["pump/new"])
    assert time.monotonic() - began < 15
    receiver.close()
