"""Who asks, and what they may do."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from tocsin.service.errors import MonitorError
from tocsin.service.http.errors import HttpError
from tocsin.service.tokens import Role, hash_token, looks_like_token, role_of

if TYPE_CHECKING:
    from tocsin.service.store import Store, TokenRow

# Tokens made by another process count after so many seconds.
REFRESH = 5.0
# So many seconds at most they are waited for, where some are known.
PATIENCE = 1.0

BEARER = HTTPBearer(
    bearerFormat="tocsin_ and 43 characters",
    description="A token, as `tocsin token create` makes it. Roles: read < write < admin. A monitor on loopback that "
    "has no tokens asks for none.",
    auto_error=False,
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the name of the token, and its role."""

    name: str
    role: Role
    token: str | None = None


LOCAL = Caller("local", Role.ADMIN)


class Keys:
    """The tokens of the store, by their hashes."""

    def __init__(self, store: "Store", *, loopback: bool) -> None:
        self._store, self._loopback = store, loopback
        self._known: dict[str, TokenRow] | None = None
        self._stale = True
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    def forget(self) -> None:
        """Read the tokens anew at the next request: they have been changed."""
        self._stale = True

    async def caller(self, authorization: str | None) -> Caller | None:
        """Who sends this Authorization header; None if nobody known."""
        known = await self._tokens()
        if not known and self._loopback:
            return LOCAL
        scheme, _, text = (authorization or "").partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not looks_like_token(text):
            return None
        row = known.get(hash_token(text))
        if row is None or (row.expires is not None and row.expires <= time.time_ns()):
            return None
        return Caller(row.name, role_of(row.role), row.hash)

    async def _tokens(self) -> "dict[str, TokenRow]":
        if self._known is not None and not self._due():
            return self._known
        async with self._reading:
            if self._known is None or self._due():
                self._stale = False
                try:
                    # Who asks how the monitor is must not wait for a store that hangs.
                    async with asyncio.timeout(None if self._known is None else PATIENCE):
                        self._known = {row.hash: row for row in await asyncio.to_thread(self._read)}
                except (MonitorError, TimeoutError):
                    # While the store is away, the tokens known so far go on to count.
                    if self._known is None:
                        raise
                self._read_at = time.monotonic()
        return self._known

    def _due(self) -> bool:
        return self._stale or time.monotonic() - self._read_at > REFRESH

    def _read(self) -> "list[TokenRow]":
        with self._store.reading() as reader:
            return list(reader.tokens())


def unauthorised(authorization: str | None = None) -> HttpError:
    """The refusal of who sends no token, or one that does not count; which of the reasons it is nobody is told."""
    message = "a token is needed: send the header 'Authorization: Bearer tocsin_...'"
    if authorization is not None:
        message = f"this token does not count: it is malformed, unknown, revoked or expired; {message}"
    return HttpError(401, message, headers={"WWW-Authenticate": 'Bearer realm="tocsin"'})


def needs(role: Role) -> Callable[..., Caller]:
    """A dependency that lets in who has this role, or a higher one."""

    def allowed(request: Request, _: Annotated[Any, Depends(BEARER)]) -> Caller:
        caller: Caller | None = request.scope["caller"]
        if caller is None:
            raise unauthorised()
        if caller.role < role:
            raise HttpError(403, f"this needs a token with the role {role.text}; this one has {caller.role.text}")
        return caller

    return allowed


READER = Annotated[Caller, Depends(needs(Role.READ))]
WRITER = Annotated[Caller, Depends(needs(Role.WRITE))]
ADMIN = Annotated[Caller, Depends(needs(Role.ADMIN))]
