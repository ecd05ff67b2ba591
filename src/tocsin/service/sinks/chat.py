"""What the sinks for chats have in common: a notice becomes one JSON document, posted to one address."""

from abc import abstractmethod
from typing import Any

from tocsin.service.config import Settings
from tocsin.service.config.texts import ChatSettings
from tocsin.service.outgoing import Client, open_client, without_user
from tocsin.service.sinks.notices import Notice, Notices
from tocsin.service.sinks.posting import HttpSink
from tocsin.service.store import IncidentRow, Message, SignalRow


class ChatSink(HttpSink):
    """Posts each notice to an incoming webhook."""

    def __init__(self, settings: ChatSettings, monitor: Settings) -> None:
        super().__init__(settings.name)
        self._url, self._timeout = settings.url, settings.timeout
        self._notices = Notices(settings, monitor)

    @abstractmethod
    def _body(self, notice: Notice) -> dict[str, Any]:
        """The document that the chat's webhook takes."""

    def _connect(self) -> Client:
        return open_client(self._url, timeout=self._timeout)

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        await self._post(without_user(self._url), self._body(self._notices.write(incident, signal, status)))
