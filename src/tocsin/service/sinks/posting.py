"""Delivery over HTTP."""

from abc import abstractmethod
from typing import Any

import httpx

from tocsin.service.outgoing import AnswerError, ask
from tocsin.service.sinks.base import DeliveryError, Sink

# What a receiver answers when it does not like this one message.
_REFUSED = (400, 413, 422)


class HttpSink(Sink):
    """A sink that posts JSON."""

    _client: httpx.AsyncClient | None = None

    @abstractmethod
    def _connect(self) -> httpx.AsyncClient:
        """A client for the receiver."""

    async def open(self) -> None:
        self._client = self._connect()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _post(self, address: str, body: Any) -> None:
        if self._client is None:
            raise DeliveryError(f"sink {self.name} is not open")
        try:
            await ask(self._client, "POST", address, json=body)
        except AnswerError as error:
            raise DeliveryError(str(error), refused=error.status in _REFUSED) from None
