"""Observations from Sparkplug B nodes at an MQTT broker."""

import math
import re
import time
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from paho.mqtt.subscribeoptions import SubscribeOptions

from tocsin_monitor.config.section import NameTemplate
from tocsin_monitor.mqtt import Message
from tocsin_monitor.observations import Observation, check_name
from tocsin_monitor.plugins.sparkplug import SparkplugSourceSettings
from tocsin_monitor.push.protobuf import messages
from tocsin_monitor.sources.base import SourceContext
from tocsin_monitor.sources.mqtt import BrokerSource
from tocsin_monitor.sources.payloads import fitting
from tocsin_monitor.tokens import fits_any

MILLISECOND = 10**6  # ns
# The shortest time between two requests to a node for its birth.
ASK_EVERY = 10.0  # seconds
MOST_NODES = 10_000
# Entries about the metrics of all nodes. Each metric has up to three: by name, by alias and by signal.
MOST_ENTRIES = 1_000_000

_NAMESPACE = "spBv1.0"
_REBIRTH = "Node Control/Rebirth"
_CONTROL = ("bdSeq", "Node Control/*", "Device Control/*", "Node Info/*")
_BOOLEAN = 11
_NUMERIC = range(1, _BOOLEAN + 1)
_SIGNED = {1: 8, 2: 16, 3: 32, 4: 64}  # the bits of each type that has a sign
_NUMBERS = ("int_value", "long_value", "float_value", "double_value", "boolean_value")
_MESSAGES = messages(
    "org.eclipse.tahu.protobuf",
    {
        "Payload": ["uint64 timestamp = 1", "repeated Metric metrics = 2", "uint64 seq = 3"],
        "Metric": [
            "string name = 1", "uint64 alias = 2", "uint64 timestamp = 3", "uint32 datatype = 4", "bool is_null = 7",
            "uint32 int_value = 10", "uint64 long_value = 11", "float float_value = 12", "double double_value = 13",
            "bool boolean_value = 14",
        ],
    },
    syntax="proto2",
)  # fmt: skip
Payload = _MESSAGES["Payload"]


@dataclass
class _Metric:
    """A metric as described in a birth."""

    name: str
    datatype: int


@dataclass
class _Node:
    """A node that is alive: the metrics of its births, and the newest time of each of its signals."""

    birth: int | None = None
    seq: int = 0
    aliases: dict[int, _Metric] = field(default_factory=dict)
    names: dict[tuple[str, str], _Metric] = field(default_factory=dict)
    newest: dict[tuple[str, str], int] = field(default_factory=dict)  # by device and signal
    #: How many of its entries are in the total of the source.
    counted: int = 0

    @property
    def entries(self) -> int:
        return len(self.aliases) + len(self.names) + len(self.newest)


class SparkplugSource(BrokerSource):
    """Follows nodes and their devices from birth to death.

    Data may refer to metrics by aliases, which only a birth defines. If a birth or another message of a node was
    missed, the node is asked for a new birth. When a node or a device dies, its signals get a missing value, and then
    become silent.
    """

    def __init__(self, settings: SparkplugSourceSettings, context: SourceContext) -> None:
        self._settings, self._template = settings, NameTemplate(settings.signal)
        self._nodes: dict[tuple[str, str], _Node] = {}
        self._asked: dict[tuple[str, str], float] = {}
        self._entries = 0  # of all nodes
        options = SubscribeOptions(1, noLocal=True, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
        subscriptions = [(f"{_NAMESPACE}/{group}/#", options) for group in settings.groups or ("+",)]
        super().__init__(settings.name, settings, context, subscriptions)

    def _read(self, message: Message) -> list[Observation]:
        levels = message.topic.split("/")
        if len(levels) not in (4, 5):
            return []  # such as STATE, which is about applications
        _, group, kind, name, *device = levels
        if kind[1:] not in ("BIRTH", "DATA", "DEATH") or kind[:1] != ("D" if device else "N"):
            return []
        try:
            payload = Payload.FromString(message.payload)
            if any(isinstance(metric.name, bytes) for metric in payload.metrics):
                raise ValueError("the name of a metric is not in UTF-8")
            return self._follow((group, name), kind, device[0] if device else "", payload, message.arrival)
        except (DecodeError, ValueError) as error:
            self._skipped(f"{message.topic!r}: no Sparkplug B payload: {error}")
            return []

    def _follow(self, key: tuple[str, str], kind: str, device: str, payload: Any, arrival: int) -> list[Observation]:
        if kind == "NBIRTH":
            self._forget(key)
            if len(self._nodes) >= MOST_NODES:
                self._forget_all(f"more than {MOST_NODES} nodes")
            self._nodes[key] = _Node(birth=_birth_number(payload), seq=payload.seq)
        node = self._nodes.get(key)
        if kind == "NDEATH":
            # This may be the last will of an earlier connection of the node.
            if node is None or node.birth not in (None, _birth_number(payload)):
                return []
            self._forget(key)
            return self._gone(node, None)
        if node is None:
            self._ask_for_birth(key)
            node = _Node()  # metrics with names can be read without a birth
        elif kind != "NBIRTH":
            if payload.seq != (node.seq + 1) % 256:
                self._ask_for_birth(key)
            node.seq = payload.seq
        if kind == "DDEATH":
            return self._gone(node, device)
        if kind.endswith("BIRTH"):
            for metric in payload.metrics:
                known = _Metric(metric.name, metric.datatype)
                node.names[device, metric.name] = known
                if metric.HasField("alias"):
                    node.aliases[metric.alias] = known
        found = self._observations(key, node, device, payload, arrival)
        if key in self._nodes:
            self._entries += node.entries - node.counted
            node.counted = node.entries
        if self._entries > MOST_ENTRIES:
            self._forget_all(f"more than {MOST_ENTRIES} names, aliases and signals of metrics")
        return found

    def _forget(self, key: tuple[str, str]) -> None:
        known = self._nodes.pop(key, None)
        self._entries -= 0 if known is None else known.counted

    def _forget_all(self, why: str) -> None:
        """Forget all births. Nodes are asked for new ones when they send something."""
        self._nodes.clear()
        self._entries = 0
        self._skipped(f"{why}: all births are forgotten")

    def _observations(
        self, key: tuple[str, str], node: _Node, device: str, payload: Any, arrival: int
    ) -> list[Observation]:
        found = []
        for metric in payload.metrics:
            known = node.names.get((device, metric.name)) if metric.name else node.aliases.get(metric.alias)
            if known is None and not metric.name:
                self._ask_for_birth(key)
                self._skipped(f"{'/'.join(key)}: a metric with the alias {metric.alias}, whose birth is not known yet")
                continue
            name = metric.name or (known.name if known else "")
            value = _value(metric, metric.datatype or (known.datatype if known else 0))
            if value is None or not fits_any(name, self._settings.metrics) or fits_any(name, _CONTROL):
                continue
            stamp = metric.timestamp or payload.timestamp
            moment = stamp * MILLISECOND if 0 < stamp < 2**63 // MILLISECOND else arrival
            try:
                signal = self._signal(key, device, name)
            except ValueError as error:
                self._skipped(f"{'/'.join(key)}: {error}")
                continue
            node.newest[device, signal] = max(moment, node.newest.get((device, signal), 0))
            found.append(Observation(signal, moment, (value,)))
        return found

    def _signal(self, key: tuple[str, str], device: str, metric: str) -> str:
        name = self._template.fill({"group": key[0], "node": key[1], "device": device, "metric": metric})
        return check_name(fitting(re.sub("/+", "/", name).strip("/")))  # where there is no device

    def _gone(self, node: _Node, device: str | None) -> list[Observation]:
        """A missing value after the last one of each signal of a device, or of the whole node, by the node's clock."""
        gone = [one for one in node.newest if device in (None, one[0])]
        return [Observation(one[1], node.newest.pop(one) + MILLISECOND, (math.nan,)) for one in gone]

    def _ask_for_birth(self, key: tuple[str, str]) -> None:
        now = time.monotonic()
        if not self._settings.rebirth or now - self._asked.get(key, -math.inf) < ASK_EVERY:
            return
        if len(self._asked) >= MOST_NODES:
            self._asked.clear()
        command = Payload(timestamp=time.time_ns() // MILLISECOND)
        command.metrics.add(name=_REBIRTH, datatype=_BOOLEAN, boolean_value=True, timestamp=command.timestamp)
        if self._connection.send(f"{_NAMESPACE}/{key[0]}/NCMD/{key[1]}", command.SerializeToString()):
            self._asked[key] = now


def _birth_number(payload: Any) -> int | None:
    """The number of the birth, or of the birth that a death belongs to."""
    return next((int(one.long_value or one.int_value) for one in payload.metrics if one.name == "bdSeq"), None)


def _value(metric: Any, datatype: int) -> float | None:
    """The value of a metric, NaN if it is missing; None if it is not a number, such as a date. Datatype 0: unknown."""
    kind = next((one for one in _NUMBERS if metric.HasField(one)), None)
    if metric.is_null:
        return math.nan if datatype in _NUMERIC else None
    if kind is None or (datatype and datatype not in _NUMERIC):
        return None
    number = getattr(metric, kind)
    if datatype in _SIGNED and kind in ("int_value", "long_value"):
        bits = _SIGNED[datatype]
        number &= (1 << bits) - 1
        number -= (number >> (bits - 1)) << bits
    return float(number) if math.isfinite(number) else math.nan
