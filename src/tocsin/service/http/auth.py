"""Who asks, and what they may do."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import Scope

from tocsin.service.config import ServerSettings
from tocsin.service.errors import MonitorError
from tocsin.service.http.errors import HttpError
from tocsin.service.tokens import Role, fits_any, hash_token, is_within, looks_like_token, role_of

if TYPE_CHECKING:
    from tocsin.service.store import Store, TokenRow

    # The tokens by their hashes, and whether there ever was one.
    _Known = tuple[dict[str, TokenRow], bool]

# Tokens made by another process count after so many seconds.
REFRESH = 5.0
# So many seconds at most they are waited for, where some are known.
PATIENCE = 1.0

BEARER = HTTPBearer(
    bearerFormat="tocsin_ and 43 characters",
    description="A token, as `tocsin token create` makes it. Roles: read; ingest; operate; write; admin. A browser on "
    "the same machine needs none until the first one is created.",
    auto_error=False,
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the name of the token, and its role."""

    name: str
    role: Role
    token: str | None = None
    #: The patterns of names that it is limited to; none for all.
    patterns: tuple[str, ...] = ()

    def may_see(self, signal: str) -> bool:
        """Whether a signal of this name concerns it."""
        return not self.patterns or fits_any(signal, self.patterns)

    def check_signal(self, signal: str) -> str:
        """The name of a signal that concerns it; all others are refused, be they there or not."""
        if not self.may_see(signal):
            raise HttpError(403, f"this token is for {', '.join(self.patterns)} only, got {signal!r:.210}")
        return signal

    def may_plan(self, pattern: str) -> bool:
        """Whether all signals that fit a pattern concern it."""
        return not self.patterns or is_within(pattern, self.patterns)


LOCAL = Caller("local", Role.ADMIN)


#: What proxies add to a request that they hand on, apart from all that begins with X-Forwarded.
_RELAYS = frozenset(("forwarded", "via", "x-real-ip", "x-client-ip", "x-original-host", "true-client-ip"))


def is_relayed(scope: Scope) -> bool:
    """Whether a request shows that it came through a proxy, and hence perhaps from somebody on another machine.

    HTTP/1.0 is what proxies speak that are not told otherwise: no browser does.
    """
    names = {name for name, _ in Headers(scope=scope).items()}
    return (
        scope.get("http_version") == "1.0"
        or not names.isdisjoint(_RELAYS)
        or any(name.startswith("x-forwarded") for name in names)
    )


class Keys:
    """The tokens of the store, by their hashes.

    Without a token only a browser on this machine comes in, and only until the first one is made: once there was one,
    to revoke the last must not open the door to all.
    """

    def __init__(self, store: "Store", server: ServerSettings) -> None:
        self._store, self._private = store, server.private
        self._known: _Known | None = None
        self._changes = self._read_changes = 0  # how often they were changed, and how many of these changes are read
        self._read_at = self._not_before = 0.0
        self._reading = asyncio.Lock()

    def forget(self) -> None:
        """Read the tokens anew at the next request: they have been changed."""
        self._changes += 1

    async def caller(self, authorization: str | None, *, relayed: bool) -> Caller | None:
        """Who sends this Authorization header, through a proxy or not; None if nobody known."""
        known, guarded = await self._tokens()
        if self._private and not guarded and not relayed:
            return LOCAL
        scheme, _, text = (authorization or "").partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not looks_like_token(text):
            return None
        row = known.get(hash_token(text))
        if row is None or (row.expires is not None and row.expires <= time.time_ns()):
            return None
        return Caller(row.name, role_of(row.role), row.hash, row.patterns)

    async def _tokens(self) -> "_Known":
        if self._known is not None and not self._due():
            return self._known
        async with self._reading:
            if self._known is None or self._due():
                changes = self._changes
                try:
                    # Who asks how the monitor is must not wait for a store that hangs.
                    async with asyncio.timeout(None if self._known is None else PATIENCE):
                        self._known = await asyncio.to_thread(self._read)
                    self._read_changes = changes  # not before they are read: others would take the old ones for new
                except (MonitorError, TimeoutError):
                    # While the store is away, the tokens known so far go on to count.
                    if self._known is None:
                        raise
                    # What was changed is still to be read, though not by each of many requests.
                    self._not_before = time.monotonic() + PATIENCE
                self._read_at = time.monotonic()
        return self._known

    def _due(self) -> bool:
        now = time.monotonic()
        return now >= self._not_before and (self._read_changes != self._changes or now - self._read_at > REFRESH)

    def _read(self) -> "_Known":
        with self._store.reading() as reader:
            return {row.hash: row for row in reader.tokens()}, reader.guarded_since() is not None


def unauthorised(authorization: str | None = None) -> HttpError:
    """The error for a missing or invalid token. It does not say which reason applies."""
    message = "a token is required (`tocsin token create`): send the header 'Authorization: Bearer tocsin_...'"
    if authorization is not None:
        message = f"this token is not valid: it is malformed, unknown, revoked or expired; {message}"
    return HttpError(401, message, headers={"WWW-Authenticate": 'Bearer realm="tocsin"'})


def needs(role: Role | None) -> Callable[..., Caller]:
    """A dependency that lets in who has this role, or one that includes it; None lets in whoever has a token."""

    def allowed(request: Request, _: Annotated[Any, Depends(BEARER)]) -> Caller:
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
