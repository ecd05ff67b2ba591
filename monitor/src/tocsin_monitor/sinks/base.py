"""What sinks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from tocsin_monitor.errors import MonitorError
from tocsin_monitor.outgoing import AnswerError, Client, ask
from tocsin_monitor.store import IncidentRow, Message, SignalRow, StoreReader

# A receiver, or a proxy in front of it, that refuses one message may well accept others. These replies are different:
# they are about who we are and how often we ask.
_ABOUT_US = (401, 407, 408, 425, 429)


class Readable(Protocol):
    """What sinks need of the store."""

    def reading(self) -> AbstractContextManager[StoreReader]:
        """One consistent view."""


class IncidentPictures(Protocol):
    """What draws incidents."""

    async def draw(self, incident: IncidentRow, signal: SignalRow) -> bytes | None:
        """The picture as PNG; None if there is none."""


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
    pictures: IncidentPictures | None = None

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


class HttpSink(Sink):
    """A sink that posts JSON."""

    _client: Client | None = None

    @abstractmethod
    def _connect(self) -> Client:
        """A client for the receiver."""

    async def open(self) -> None:
        self._client = self._connect()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _post(self, address: str, body: Any) -> None:
        await self._send("POST", address, json=body)

    async def _send(self, method: str, address: str, **body: Any) -> None:
        if self._client is None:
            raise DeliveryError(f"sink {self.name} is not open")
        try:
            await ask(self._client, method, address, **body)
        except AnswerError as error:
            raise DeliveryError(str(error), refused=_refuses(error.status)) from None


def _refuses(status: int | None) -> bool:
    return status is not None and 400 <= status < 500 and status not in _ABOUT_US
