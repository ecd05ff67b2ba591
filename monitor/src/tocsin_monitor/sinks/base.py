"""What sinks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

from tocsin_monitor.config import Settings
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.outgoing import AnswerError, Client, ask, open_client
from tocsin_monitor.store import IncidentRow, Message, SignalRow

if TYPE_CHECKING:
    from tocsin_monitor.sinks.pictures import Pictures

# A receiver, or a proxy in front of it, that refuses one message may well accept others. These replies are different:
# they are about who we are and how often we ask.
_ABOUT_US = (401, 407, 408, 425, 429)


class DeliveryError(MonitorError):
    """A message was not delivered. `refused` means that the message itself is to blame: others may go through."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Sink(ABC):
    """Reports incidents, between `open` and `close`, which run on the event loop."""

    #: Seconds after which open incidents are repeated; None for never.
    refresh: float | None = None
    #: Whether the receiver keeps an incident open until it is told of its end. A test message is then ended at once.
    keeps_open = True
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


class HttpSink(Sink):
    """A sink that posts JSON to the `url` of its settings, with their `timeout`, `bearer_token` and `headers`."""

    _client: Client | None = None

    def __init__(self, settings: Any, monitor: Settings) -> None:
        super().__init__(settings.name)
        self._settings, self._monitor = settings, monitor

    def _connect(self) -> Client:
        given = {name: getattr(self._settings, name, None) for name in ("bearer_token", "headers")}
        return open_client(self._settings.url, timeout=self._settings.timeout, **given)

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
            status = error.status or 0
            raise DeliveryError(str(error), refused=400 <= status < 500 and status not in _ABOUT_US) from None
