"""Mail, over SMTP."""

import asyncio
import logging
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate, parseaddr

from tocsin.service.config import Settings
from tocsin.service.config.sinks import MailSettings
from tocsin.service.secrecy import hide
from tocsin.service.sinks.alerts import fingerprint
from tocsin.service.sinks.base import DeliveryError, Sink
from tocsin.service.sinks.letters import write_letter
from tocsin.service.sinks.notices import Notices
from tocsin.service.store import IncidentRow, Message, SignalRow

_log = logging.getLogger(__name__)
#: The usual ports, by `security`.
PORTS = {"starttls": 587, "tls": 465, "none": 25}


class MailSink(Sink):
    """Sends a mail for each message. The mails about an incident are one thread: they refer to the same parent.

    A mail that is sent again has the same Message-ID, by which most servers recognise it. One that says something new
    has another, even under the same title: servers drop what they take for a copy.
    """

    kind = "mail"

    def __init__(self, settings: MailSettings, monitor: Settings) -> None:
        super().__init__(settings.name)
        self._settings = settings
        self._notices = Notices(settings, monitor)

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        notice = self._notices.write(incident, signal, status)
        picture = None if self.pictures is None else await self.pictures.draw(incident, signal)
        letter = write_letter(notice, picture)
        thread = f"tocsin.{incident.id}.{incident.start}"
        own = fingerprint({"status": status, "title": notice.title, "text": notice.text})
        letter["Message-ID"] = f"<{thread}.{own}@{self._domain}>"
        letter["In-Reply-To"] = letter["References"] = f"<{thread}@{self._domain}>"
        await self.send(letter)

    async def send(self, letter: EmailMessage) -> None:
        """Send a letter to all recipients; DeliveryError if no recipient gets it."""
        letter["From"], letter["To"] = self._settings.sender, ", ".join(self._settings.recipients)
        letter["Date"] = formatdate()
        letter["Auto-Submitted"] = "auto-generated"  # so that nobody's absence is answered
        await asyncio.to_thread(self._send, letter)

    @property
    def _domain(self) -> str:
        return parseaddr(self._settings.sender)[1].rpartition("@")[2]

    def _send(self, letter: EmailMessage) -> None:
        with signed_in(self._settings) as server:
            refused = server.send_message(letter)
        for recipient, (code, reply) in refused.items():
            said = _hidden(self._settings, _text(reply))
            _log.warning("sink %s: %s is refused: %d %s", self.name, recipient, code, said)


@contextmanager
def signed_in(settings: MailSettings) -> Iterator[smtplib.SMTP]:
    """The server, with the TLS and the user of the settings; DeliveryError if anything fails in the `with` block."""
    try:
        with _connected(settings) as server:
            if settings.username is not None and settings.password is not None:
                server.login(settings.username, settings.password.get_secret_value())
            yield server
    except (OSError, smtplib.SMTPException) as error:
        raise DeliveryError(_hidden(settings, _in_words(error)), refused=_refuses(error)) from None


def _connected(settings: MailSettings) -> smtplib.SMTP:
    port = settings.port or PORTS[settings.security]
    trusted = ssl.create_default_context(cafile=settings.ca_file)
    if settings.security == "tls":
        return smtplib.SMTP_SSL(settings.host, port, timeout=settings.timeout, context=trusted)
    server = smtplib.SMTP(settings.host, port, timeout=settings.timeout)
    if settings.security == "starttls":
        try:
            server.starttls(context=trusted)
        except BaseException:
            server.close()
            raise
    return server


def _hidden(settings: MailSettings, text: str) -> str:
    return text if settings.password is None else hide(text, [settings.password.get_secret_value()])


def _refuses(error: Exception) -> bool:
    """Whether the error is about this mail: others may go through."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    # Without a valid login, no mail goes through.
    about_us = (smtplib.SMTPAuthenticationError, smtplib.SMTPConnectError, smtplib.SMTPHeloError)
    return (
        isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= 500 and not isinstance(error, about_us)
    )


def _in_words(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        replies = (f"{one}: {code} {_text(reply)}" for one, (code, reply) in error.recipients.items())
        return f"all recipients are refused: {'; '.join(replies)}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{type(error).__name__}: {error.smtp_code} {_text(error.smtp_error)}"
    return f"{type(error).__name__}: {error}"


def _text(reply: bytes | str) -> str:
    return reply.decode(errors="replace") if isinstance(reply, bytes) else reply
