"""Mail, over SMTP: plain text, and HTML with the picture in it."""

import asyncio
import logging
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from html import escape

from tocsin_monitor.config import Settings
from tocsin_monitor.config.sinks import MailSettings
from tocsin_monitor.secrecy import hide
from tocsin_monitor.sinks.alerts import fingerprint
from tocsin_monitor.sinks.base import DeliveryError, Sink
from tocsin_monitor.sinks.notices import Notice, Notices
from tocsin_monitor.store import IncidentRow, Message, SignalRow

_log = logging.getLogger(__name__)
#: The usual ports, by `security`.
PORTS = {"starttls": 587, "tls": 465, "none": 25}


class MailSink(Sink):
    """Sends a mail for each message. The mails about an incident are one thread: they refer to the same parent.

    A mail that is sent again has the same Message-ID, by which most servers recognise it. One that says something new
    has another, even under the same title: servers drop what they take for a copy.
    """

    keeps_open = False

    def __init__(self, settings: MailSettings, monitor: Settings) -> None:
        super().__init__(settings.name)
        self._settings = settings
        self._notices = Notices(settings, monitor)

    async def deliver(self, incident: IncidentRow, signal: SignalRow, status: Message) -> None:
        notice = self._notices.write(incident, signal, status)
        picture = None if self.pictures is None else await self.pictures.draw(incident, signal)
        mail = mail_body(notice, picture)
        thread = f"tocsin.{incident.id}.{incident.start}"
        own = fingerprint({"status": status, "title": notice.title, "text": notice.text})
        mail["Message-ID"] = f"<{thread}.{own}@{self._domain}>"
        mail["In-Reply-To"] = mail["References"] = f"<{thread}@{self._domain}>"
        await self.send(mail)

    async def send(self, mail: EmailMessage) -> None:
        """Send a mail to all recipients; DeliveryError if no recipient gets it."""
        mail["From"], mail["To"] = self._settings.sender, ", ".join(self._settings.recipients)
        mail["Date"] = formatdate()
        mail["Auto-Submitted"] = "auto-generated"  # so that nobody's absence is answered
        await asyncio.to_thread(self._send, mail)

    @property
    def _domain(self) -> str:
        return parseaddr(self._settings.sender)[1].rpartition("@")[2]

    def _send(self, mail: EmailMessage) -> None:
        with signed_in(self._settings) as server:
            refused = server.send_message(mail)
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


_PAGE = """<!doctype html>
<html lang="en"><body style="margin:0;padding:16px;font:14px/1.5 system-ui,sans-serif;color:#1a222d;background:#ffffff">
<div style="max-width:720px;border-left:5px solid {colour};padding:2px 0 2px 14px">
<h1 style="margin:0 0 6px;font-size:18px">{title}</h1>
<p style="margin:0 0 10px;white-space:pre-line">{text}</p>
{picture}<table style="border-collapse:collapse">{facts}</table>
{link}</div>
</body></html>
"""
_FACT = (
    '<tr><th style="padding:2px 14px 2px 0;text-align:left;font-weight:500;color:#525d6b">{}</th>'
    '<td style="padding:2px 0">{}</td></tr>'
)
_PICTURE = (
    '<p style="margin:0 0 10px"><img src="cid:{}" alt="Values, forecast and expected range around the incident"'
    ' style="max-width:100%"></p>\n'
)


def mail_body(notice: Notice, picture: bytes | None) -> EmailMessage:
    """The mail, without sender and recipients."""
    mail = EmailMessage()
    mail["Subject"] = notice.title
    if notice.critical:
        mail["Importance"] = "high"
    lines = [notice.text, "", *(f"{name}: {value}" for name, value in notice.facts.items())]
    mail.set_content("\n".join([*lines, "", notice.link] if notice.link else lines) + "\n")
    name = f"incident-{notice.fields['id']}.png"
    mail.add_alternative(_html(notice, None if picture is None else name), subtype="html")
    if picture is not None:
        page = mail.get_payload()[1]  # type: ignore[index]
        page.add_related(  # type: ignore[union-attr]
            picture, maintype="image", subtype="png", cid=f"<{name}>", filename=name, disposition="inline"
        )
    return mail


def _html(notice: Notice, picture: str | None) -> str:
    link = f'<p><a href="{escape(notice.link)}">Open the incident</a></p>\n' if notice.link else ""
    return _PAGE.format(
        colour=notice.colour,
        title=escape(notice.title),
        text=escape(notice.text),
        picture="" if picture is None else _PICTURE.format(escape(picture)),
        facts="".join(_FACT.format(escape(name), escape(value)) for name, value in notice.facts.items()),
        link=link,
    )
