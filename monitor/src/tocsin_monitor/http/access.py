"""Access: the tokens, which administrators create and revoke, and the log of who changed what."""

import time
from typing import Annotated

from fastapi import Path, Query, Request, Response

from tocsin_monitor.as_json import json_of
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.http.auth import ADMIN, ANYBODY
from tocsin_monitor.http.incidents import LARGEST_ID
from tocsin_monitor.http.monitor_access import Monitor, done, from_store, reply
from tocsin_monitor.http.replies import SECRET, AccessLogReply, Me, NewToken, Tokens
from tocsin_monitor.http.requests import TokenIn
from tocsin_monitor.http.routes import ApiRouter
from tocsin_monitor.store import AccessLogRow, StoreWriter, TokenRow
from tocsin_monitor.tokens import NAME_PATTERN, Role, check_patterns, hash_token, make_token

MOST_ENTRIES = 1000
router = ApiRouter(tags=["tokens"])
log_router = ApiRouter(tags=["system"])


@router.get("/me", summary="The caller", response_model=Me)
async def me(caller: ANYBODY) -> Response:
    """The name and role of the caller's token, the roles it includes, and its limits."""
    may = sorted(caller.role.includes)
    return reply({"name": caller.name, "role": caller.role, "may": may, "match": caller.patterns})


@router.get("/tokens", summary="All tokens", response_model=Tokens)
async def list_tokens(monitor: Monitor, caller: ADMIN) -> Response:
    """Their names, roles and times; the tokens themselves are not stored."""
    rows = await from_store(monitor, lambda reader: reader.tokens())
    return reply({"tokens": [json_of(TokenRow, row, SECRET) for row in rows]})


@router.post("/tokens", summary="Create a token", status_code=201, response_model=NewToken)
async def add(given: TokenIn, request: Request, monitor: Monitor, caller: ADMIN) -> Response:
    """Only this reply shows it. The first token must have the role admin, since from then on a token is required."""
    now, token = time.time_ns(), make_token()
    if given.expires is not None and given.expires <= now:
        raise RefusedError("expires must be in the future")
    try:
        check_patterns(given.role, given.match)
    except ValueError as error:
        raise RefusedError(str(error)) from error
    row = TokenRow(0, given.name, given.role, hash_token(token), now, given.expires, tuple(given.match))

    def write(writer: StoreWriter) -> None:
        if not writer.tokens() and (row.role is not Role.ADMIN or row.expires is not None):
            raise RefusedError("the first token must have the role admin and not expire, or no other could be created")
        writer.add_token(row.name, row.role, row.hash, row.created, row.expires, row.patterns)

    await done(monitor.engine.write(write))
    request.app.state.keys.forget()
    return reply({**json_of(TokenRow, row, SECRET), "token": token}, 201)


@router.delete("/tokens/{name}", summary="Revoke a token", status_code=204)
async def remove(
    name: Annotated[str, Path(pattern=NAME_PATTERN, description="The token's name.")],
    request: Request,
    monitor: Monitor,
    caller: ADMIN,
) -> Response:
    """It stops being valid. The last admin token can only be revoked last."""

    def write(writer: StoreWriter) -> None:
        others = [row for row in writer.tokens() if row.name != name]
        if others and all(row.role is not Role.ADMIN for row in others):
            raise RefusedError("the last token with the role admin must be revoked last, or no other could be created")
        writer.remove_token(name)

    await done(monitor.engine.write(write))
    request.app.state.keys.forget()
    return Response(status_code=204)


@log_router.get("/access-log", summary="The access log", response_model=AccessLogReply)
async def access_log(
    monitor: Monitor,
    caller: ADMIN,
    who: Annotated[str | None, Query(max_length=200, description="Only actions of this caller.")] = None,
    before: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="Only those with a lower number.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES, description="The most entries.")] = 100,
) -> Response:
    """Every change that a user made, the newest first. To page, pass the number of the last one as `before`."""
    rows = await from_store(monitor, lambda reader: reader.access_log(before_id=before, who=who, limit=limit))
    return reply({"access_log": [json_of(AccessLogRow, row) for row in rows]})
