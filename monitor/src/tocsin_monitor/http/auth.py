"""Authentication: who the caller is, and what they may do."""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import Scope

from tocsin_monitor.config import ServerSettings
from tocsin_monitor.errors import MonitorError
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.tokens import Role, fits_any, hash_token, is_within, looks_like_token

if TYPE_CHECKING:
    from tocsin_monitor.store import Store, TokenRow

    # The tokens by hash, and whether there ever was one.
    _Known = tuple[dict[str, TokenRow], bool]

# Seconds until tokens created by another process are valid.
REFRESH = 5.0
# The most seconds to wait for the store, if tokens are already known.
PATIENCE = 1.0

BEARER = HTTPBearer(
    bearerFormat="tocsin_ and 43 characters",
    description="A token, as `tocsin token create` makes it. Roles: read; ingest; operate; write; admin. A browser on "
    "the same machine needs none until the first one is created.",
    auto_error=False,
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: the name of the token, and its role."""

    name: str
    role: Role
    token: str | None = None
    #: The name patterns it is limited to; empty for all signals.
    patterns: tuple[str, ...] = ()

    def may_see(self, signal: str) -> bool:
        return not self.patterns or fits_any(signal, self.patterns)

    def check_signal(self, signal: str) -> str:
        """Reject signals that the token does not allow, whether they exist or not; returns the name."""
        if not self.may_see(signal):
            raise HttpError(403, f"this token is for {', '.join(self.patterns)} only, got {signal!r:.210}")
        return signal

    def may_plan(self, pattern: str) -> bool:
        """Whether the token allows all signals that match a pattern."""
        return not self.patterns or is_within(pattern, self.patterns)


LOCAL = Caller("local", Role.ADMIN)


#: Headers that proxies add, besides those that start with X-Forwarded.
_RELAYS = frozenset(("forwarded", "via", "x-real-ip", "x-client-ip", "x-original-host", "true-client-ip"))


def is_relayed(scope: Scope) -> bool:
    """Whether a request came through a proxy, and so perhaps from another machine.

    Some proxies use HTTP/1.0 by default; no browser does.
    """
    names = {name for name, _ in Headers(scope=scope).items()}
    return (
        scope.get("http_version") == "1.0"
        or not names.isdisjoint(_RELAYS)
        or any(name.startswith("x-forwarded") for name in names)
    )


class Keys:
    """The tokens of the store, by hash.

    Without a token, only a browser on this machine is allowed, and only until the first token is created. Revoking the
    last token must not give everybody access.
    """

    def __init__(self, store: "Store", server: ServerSettings) -> None:
        self._store, self._private = store, server.private
        self._known: _Known | None = None
        self._changes = self._read_changes = 0  # the number of changes, and how many of them are read
        self._read_at = self._not_before = 0.0
        self._reading = asyncio.Lock()

    def forget(self) -> None:
        """Read the tokens again at the next request, because they have changed."""
        self._changes += 1

    async def caller(self, authorization: str | None, *, relayed: bool) -> Caller | None:
        """The caller with this Authorization header; None if it is not valid."""
        known, guarded = await self._tokens()
        if self._private and not guarded and not relayed:
            return LOCAL
        text = _token_in(authorization or "")
        if not looks_like_token(text):
            return None
        row = known.get(hash_token(text))
        if row is None or (row.expires is not None and row.expires <= time.time_ns()):
            return None
        return Caller(row.name, row.role, row.hash, row.patterns)

    async def _tokens(self) -> "_Known":
        if self._known is not None and not self._due():
            return self._known
        async with self._reading:
            if self._known is None or self._due():
                changes = self._changes
                try:
                    # Requests for the status must not wait for a store that hangs.
                    async with asyncio.timeout(None if self._known is None else PATIENCE):
                        self._known = await asyncio.to_thread(self._read)
                    self._read_changes = changes  # only now, or other requests would use the old tokens
                except (MonitorError, TimeoutError):
                    # While the store fails, the known tokens stay valid.
                    if self._known is None:
                        raise
                    # The changes must still be read, but not by every request.
                    self._not_before = time.monotonic() + PATIENCE
                self._read_at = time.monotonic()
        return self._known

    def _due(self) -> bool:
        now = time.monotonic()
        return now >= self._not_before and (self._read_changes != self._changes or now - self._read_at > REFRESH)

    def _read(self) -> "_Known":
        with self._store.reading() as reader:
            return {row.hash: row for row in reader.tokens()}, reader.guarded_since() is not None


def _token_in(authorization: str) -> str:
    """The token in an Authorization header. InfluxDB's clients call it otherwise; old ones send it as a password."""
    scheme, _, text = authorization.partition(" ")
    scheme, text = scheme.lower(), text.strip()
    if scheme in ("bearer", "token"):
        return text
    if scheme == "basic":
        try:
            return base64.b64decode(text, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


def unauthorised(authorization: str | None = None) -> HttpError:
    """The error for a missing or invalid token. It does not say which reason applies."""
    message = "a token is required (`tocsin token create`): send the header 'Authorization: Bearer tocsin_...'"
    if authorization is not None:
        message = f"this token is not valid: it is malformed, unknown, revoked or expired; {message}"
    return HttpError(401, message, headers={"WWW-Authenticate": 'Bearer realm="tocsin"'})


def needs(role: Role | None) -> Callable[..., Awaitable[Caller]]:
    """A dependency that requires this role, or one that includes it; None requires any token."""

    async def allowed(request: Request, _: Annotated[Any, Depends(BEARER)]) -> Caller:
        caller: Caller | None = request.scope["caller"]
        if caller is None:
            raise unauthorised()
        if role is not None and role not in caller.role.includes:
            accepted = " or ".join(one for one in Role if role in one.includes)
            raise HttpError(403, f"this needs a token with the role {accepted}; this one has {caller.role}")
        return caller

    return allowed


ANYBODY = Annotated[Caller, Depends(needs(None))]
READER = Annotated[Caller, Depends(needs(Role.READ))]
SENDER = Annotated[Caller, Depends(needs(Role.INGEST))]
OPERATOR = Annotated[Caller, Depends(needs(Role.OPERATE))]
WRITER = Annotated[Caller, Depends(needs(Role.WRITE))]
ADMIN = Annotated[Caller, Depends(needs(Role.ADMIN))]
