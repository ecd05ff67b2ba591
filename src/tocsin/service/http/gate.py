"""What every request passes before anything else looks at it."""

from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.service.audit import Deed, doing
from tocsin.service.errors import MonitorError
from tocsin.service.http.auth import Caller, Keys, is_relayed, unauthorised
from tocsin.service.http.content import media_type
from tocsin.service.http.errors import HttpError, reply_to
from tocsin.service.http.limits import Bodies, Buckets, LimitedBody, too_large, too_many
from tocsin.service.http.monitor_access import MonitorAccess
from tocsin.service.http.security import RAW_HEADERS, SAFE_METHODS, Doorkeeper

# Whoever watches the monitor must always learn how it is: these cost next to nothing, and are not limited.
_PROBES = ("/healthz", "/readyz")
_OPEN = ("/", "/favicon.ico")
_OPEN_BELOW = "/static/"
# What a failed authentication costs of a client's requests: guessing is hopeless, but it should not be cheap either.
_FAILURE_COST = 20.0
# Only observations, states and lists of signals are large, and files of history, which go to a file as they come.
_LARGE = ("/observations", "/-/state", "/bulk/incidents", "/bulk/signals", "/bulk/maintenance")
_UPLOAD = "/imports"
_SMALL = 64 * 1024
_API = "/api/v1"
_SENDING = f"{_API}/observations"
_LONGEST_TARGET = 300
_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))


class Gate:
    """Checks Host and Origin, finds out who asks, limits requests and bodies, and adds headers to every reply."""

    def __init__(self, app: ASGIApp, monitor: MonitorAccess, keys: Keys) -> None:
        server = monitor.settings.server
        self._app, self._keys, self._metrics = app, keys, monitor.metrics
        self._door = Doorkeeper(server)
        self._buckets = Buckets(server.requests_per_second, server.burst)
        self._limit, self._bodies = server.max_body_bytes, Bodies(server.max_bodies_bytes)
        self._upload_limit = server.max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in RAW_HEADERS if one[0] not in there)]
            await send(message)

        try:
            try:
                scope["caller"] = await self._admit(scope)
            except (HttpError, MonitorError) as error:
                await reply_to(error)(scope, receive, sending)
            else:
                deed = _deed_of(scope)
                told = deed if media_type(Headers(scope=scope)) == "application/json" else None
                bodies = None if _is_upload(scope["path"]) else self._bodies
                body = LimitedBody(receive, self._limit_of(scope["path"]), bodies, told)
                try:
                    with doing(deed):
                        await self._app(scope, body, sending)
                finally:
                    body.close()
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.http_requests.labels(method, str(status)).inc()

    async def _admit(self, scope: Scope) -> Caller | None:
        """Who asks, None if nobody known at an address that is open to all; raises what is to be refused."""
        headers, address = Headers(scope=scope), (scope.get("client") or ("unknown",))[0]
        self._check_door(headers, scope)
        if _is_garbled(scope):
            raise HttpError(404, "there is nothing at this address: it is not in UTF-8")
        if scope["path"] in _PROBES:
            return None
        if _is_open(scope["path"]):
            self._take(address)
            return None
        authorization = headers.get("authorization")
        caller = await self._keys.caller(authorization, relayed=is_relayed(scope))
        if caller is None:
            self._reject("unauthorised")
            # Wrong tokens have a bucket of their own: behind a proxy others have the same address.
            self._take(address) if authorization is None else self._take(f"wrong:{address}", _FAILURE_COST)
            raise unauthorised(authorization)
        self._take(address if caller.token is None else caller.token)
        length = headers.get("content-length", "")
        limit = self._limit_of(scope["path"])
        if length.isdigit() and int(length[:20]) > limit:
            self._reject("too_large")
            raise too_large(limit)
        return caller

    def _limit_of(self, path: str) -> int:
        if _is_upload(path):
            return self._upload_limit
        return self._limit if path.endswith(_LARGE) else min(self._limit, _SMALL)

    def _check_door(self, headers: Headers, scope: Scope) -> None:
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else None
        if not self._door.host_allowed(host):
            self._reject("host")
            raise HttpError(403, f"{host!r:.100} is not a name of this server: add it to server.allowed_hosts", "Host")
        origin = headers.get("origin")
        changes = scope["method"] not in SAFE_METHODS
        if changes and origin is not None and not self._door.origin_allowed(origin, host, scope["scheme"]):
            self._reject("origin")
            raise HttpError(403, "a page of another origin may not change anything here", "Origin")

    def _take(self, client: str, cost: float = 1.0) -> None:
        wait = self._buckets.take(client, cost)
        if wait > 0:
            self._reject("rate")
            raise too_many(wait)

    def _reject(self, reason: str) -> None:
        self._metrics.rejected.labels(reason).inc()


def _deed_of(scope: Scope) -> Deed | None:
    """What a request that changes something is called in the audit trail: as it was made. To send is no such change."""
    if scope["method"] in SAFE_METHODS or scope["caller"] is None or scope["path"] == _SENDING:
        return None
    return Deed(scope["caller"].name, scope["method"], scope["path"].removeprefix(_API)[:_LONGEST_TARGET])


def _is_upload(path: str) -> bool:
    return path == f"{_API}{_UPLOAD}"


def _is_garbled(scope: Scope) -> bool:
    """Whether an address is not in UTF-8: the server has put a replacement for what it could not read."""
    if "\ufffd" not in scope["path"]:
        return False
    try:
        unquote_to_bytes(scope.get("raw_path") or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _is_open(path: str) -> bool:
    """Whether an address may be asked for without a token."""
    return path in _OPEN or path.startswith(_OPEN_BELOW)
