"""What sinks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from tocsin.service.errors import MonitorError
from tocsin.service.store import IncidentRow, Message, SignalRow


class DeliveryError(MonitorError):
    """A message was not delivered. `refused` says that it is to blame itself, and others may go through."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


@dataclass
class SinkHealth:
    """How a sink is. Times are nanoseconds since 1970; `waiting` messages are not delivered yet."""

    last_success: int | None = None
    last_error: str | None = None
    last_error_time: int | None = None
    waiting: int = 0


class Sink(ABC):
    """Tells of incidents, between `open` and `close`, which run on the event loop."""

    kind: ClassVar[str]
    #: Seconds after which incidents that go on are told again; None for never.
    refresh: float | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    async def open(self) -> None:  # noqa: B027 some need not
        """Get ready to deliver."""

    async def close(self) -> None:  # noqa: B027 some need not
        """Let go of everything."""

    @abstractmethod
    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        """Tell that an incident began or is over; DeliveryError if that did not go through.

        It may have arrived all the same, and comes again then: receivers know it by its identity.
        """

    async def repeat(self, incidents: Sequence[tuple[IncidentRow, SignalRow]]) -> None:  # noqa: B027 most need not
        """Tell once more of some incidents that go on."""

    def keep_only(self, numbers: Set[int]) -> None:  # noqa: B027 most need not
        """No other incidents go on of which it was told."""
