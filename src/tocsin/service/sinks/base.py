"""What sinks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tocsin.service.errors import MonitorError
from tocsin.service.store import IncidentRow, Message, SignalRow

if TYPE_CHECKING:
    from tocsin.service.sinks.pictures import Pictures


class DeliveryError(MonitorError):
    """A message was not delivered. `refused` means that the message itself is to blame: others may go through."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


@dataclass
class SinkHealth:
    """The health of a sink. Times are nanoseconds since 1970."""

    last_success: int | None = None
    last_error: str | None = None
    last_error_time: int | None = None


class Sink(ABC):
    """Reports incidents, between `open` and `close`, which run on the event loop."""

    kind: ClassVar[str]
    #: Seconds after which open incidents are repeated; None for never.
    refresh: float | None = None
    #: Draws incidents, for sinks whose settings ask for pictures.
    pictures: "Pictures | None" = None

    def __init__(self, name: str) -> None:
        self.name = name

    async def open(self) -> None:  # noqa: B027 some need not
        """Get ready to deliver."""

    async def close(self) -> None:  # noqa: B027 some need not
        """Release everything."""

    @abstractmethod
    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        """Report that an incident began or ended; DeliveryError if that failed.

        The message may have arrived all the same, and is then sent again: receivers recognise it by its identity.
        """

    async def repeat(self, incidents: Sequence[tuple[IncidentRow, SignalRow]]) -> None:  # noqa: B027 most need not
        """Report some open incidents again."""

    def keep_only(self, numbers: Set[int]) -> None:  # noqa: B027 most need not
        """Forget all incidents but these: no others are open."""
