"""A mail server for tests."""

import email.policy
import ssl
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from tests.service.helpers import free_port

PASSWORD = "correct horse battery"


class Post:
    """A mail server that keeps what it takes. It refuses recipients and whole mails that it is told to."""

    def __init__(self, certificate: tuple[Path, Path] | None = None, *, at_once: bool = False) -> None:
        self.mails: list[tuple[Envelope, EmailMessage]] = []
        self.unknown: dict[str, str] = {}
        self.hated = ""
        more: dict[str, Any] = {}
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
            if at_once:
                more = {"ssl_context": context, "auth_require_tls": False}
            else:
                more = {"tls_context": context, "require_starttls": True, "auth_required": True}
            more["authenticator"] = self._knows
        self.port = free_port()
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, **more)
        self._controller.start()

    def _knows(self, server: Any, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        right = isinstance(data, LoginPassword) and data == LoginPassword(b"tocsin", PASSWORD.encode())
        return AuthResult(success=right, handled=False)

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.unknown:
            return self.unknown[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        mail = email.message_from_bytes(envelope.content or b"", policy=email.policy.default)
        if self.hated and self.hated in str(mail["Subject"]):
            return "554 we do not want that"
        assert isinstance(mail, EmailMessage)
        self.mails.append((envelope, mail))
        return "250 OK"

    def close(self) -> None:
        self._controller.stop()
