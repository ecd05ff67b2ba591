"""ntfy: push messages to phones."""

from tocsin.service.config import Settings
from tocsin.service.config.sinks import NtfySettings
from tocsin.service.outgoing import Client, open_client
from tocsin.service.sinks.base import DeliveryError
from tocsin.service.sinks.notices import Notice, Notices, shortened
from tocsin.service.sinks.posting import HttpSink
from tocsin.service.store import IncidentRow, Message, SignalRow

# ntfy makes a file of a longer message; it counts bytes, of which a character may have four.
_TEXT, _TITLE = 1000, 200


class NtfySink(HttpSink):
    """Publishes to a topic: urgent if the incident is critical, quiet when it has ended; with its picture."""

    kind = "ntfy"

    def __init__(self, settings: NtfySettings, monitor: Settings) -> None:
        super().__init__(settings.name)
        self._settings = settings
        self._notices = Notices(settings, monitor)

    def _connect(self) -> Client:
        return open_client(self._settings.url, timeout=self._settings.timeout, bearer_token=self._settings.token)

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        notice = self._notices.write(incident, signal, status)
        picture = None if self.pictures is None else await self.pictures.draw(incident, signal)
        if picture is not None:
            try:
                await self._send("PUT", f"/{self._settings.topic}", params=self._options(notice), content=picture)
                return
            except DeliveryError as error:
                if not error.refused:
                    raise
                # The server takes no attachments, or no more of them: the message itself is what matters.
        await self._post("", self._message(notice))

    def _message(self, notice: Notice) -> dict[str, object]:
        told = {
            "topic": self._settings.topic,
            "title": shortened(notice.title, _TITLE),
            "message": shortened(notice.text, _TEXT),
            "priority": self._priority(notice),
            "tags": self._tags(notice),
        }
        return told | ({"click": notice.link} if notice.link else {})

    def _options(self, notice: Notice) -> dict[str, str]:
        """The same in the address, since the body is the picture."""
        told = self._message(notice)
        tags = ",".join(self._tags(notice))
        options = {name: str(value) for name, value in told.items() if name != "topic"}
        return options | {"tags": tags, "filename": f"incident-{notice.fields['id']}.png"}

    def _priority(self, notice: Notice) -> int:
        settings = self._settings
        if notice.over:
            return settings.priority_ended
        return settings.priority_critical if notice.critical else settings.priority

    def _tags(self, notice: Notice) -> list[str]:
        sign = "white_check_mark" if notice.over else "rotating_light" if notice.critical else "warning"
        return [sign, *self._settings.tags]
