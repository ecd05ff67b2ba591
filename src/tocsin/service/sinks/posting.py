"""Delivery over HTTP."""

from abc import abstractmethod
from typing import Any

from tocsin.service.outgoing import AnswerError, Client, ask
from tocsin.service.sinks.base import DeliveryError, Sink

# A receiver, or a proxy in front of it, that refuses one message may well accept others. These replies are different:
# they are about who we are and how often we ask.
_ABOUT_US = (401, 407, 408, 425, 429)


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
