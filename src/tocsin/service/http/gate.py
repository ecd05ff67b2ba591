"""The checks that every request passes first."""

from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.service.audit import AuditEntry, auditing
from tocsin.service.errors import MonitorError
from tocsin.service.http import azure
from tocsin.service.http.auth import Caller, Keys, is_relayed, unauthorised
from tocsin.service.http.content_type import media_type
from tocsin.service.http.dialects import PUSHED, in_dialect
from tocsin.service.http.errors import HttpError, reply_to
from tocsin.service.http.limits import Bodies, Buckets, LimitedBody, too_large, too_many
from tocsin.service.http.monitor_access import MonitorAccess
from tocsin.service.http.origins import RAW_HEADERS, SAFE_METHODS, OriginCheck

# Probes are cheap and must always work, so they are not limited.
_PROBES = ("/healthz", "/readyz")
_OPEN = ("/", "/favicon.ico")
_OPEN_BELOW = "/static/"
# The cost of a failed authentication, in requests. Guessing a token is hopeless, but should not be cheap either.
_FAILURE_COST = 20.0
# Only observations, states and lists of signals have large bodies, and history files, which are written to a file as
# they arrive.
_LARGE = ("/observations", "/-/state", "/detect", "/bulk/incidents", "/bulk/signals", "/bulk/maintenance", "/trials")
_UPLOAD = "/imports"
_SMALL = 64 * 1024
_API = "/api/v1"
_SENDING = (f"{_API}/observations", f"{azure.PREFIX}/")
_LONGEST_TARGET = 300
_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))


class Gate:
    """Checks Host and Origin, authenticates the caller, limits requests and bodies, and adds headers to replies."""

    def __init__(self, app: ASGIApp, monitor: MonitorAccess, keys: Keys) -> None:
        server = monitor.settings.server
        self._app, self._keys, self._metrics = app, keys, monitor.metrics
        self._origins = OriginCheck(server)
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
                await in_dialect(scope, reply_to(error))(scope, receive, sending)
            else:
                entry = _audit_entry(scope)
                recorded = entry if media_type(Headers(scope=scope)) == "application/json" else None
                bodies = None if _is_upload(scope["path"]) else self._bodies
                body = LimitedBody(receive, self._limit_of(scope["path"]), bodies, recorded)
                scope["limited_body"] = body
                try:
                    with auditing(entry):
                        await self._app(scope, body, sending)
                finally:
                    body.close()
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.http_requests.labels(method, str(status)).inc()

    async def _admit(self, scope: Scope) -> Caller | None:
        """The caller; None if the path needs no token. Raises the error if the request is rejected."""
        headers, address = Headers(scope=scope), (scope.get("client") or ("unknown",))[0]
        self._check_origin(headers, scope)
        if _is_garbled(scope):
            raise HttpError(404, "there is nothing at this address: it is not valid UTF-8")
        if scope["path"] in _PROBES:
            return None
        if _is_open(scope["path"]):
            self._take(address)
            return None
        authorization = _authorization(headers, scope["path"])
        caller = await self._keys.caller(authorization, relayed=is_relayed(scope))
        if caller is None:
            self._reject("unauthorised")
            # Wrong tokens have their own bucket, because all clients behind a proxy share an address.
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
        return self._limit if path.endswith(_LARGE) or path in PUSHED else min(self._limit, _SMALL)

    def _check_origin(self, headers: Headers, scope: Scope) -> None:
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else None
        if not self._origins.host_allowed(host):
            self._reject("host")
            raise HttpError(403, f"{host!r:.100} is not a name of this server: add it to server.allowed_hosts", "Host")
        origin = headers.get("origin")
        changes = scope["method"] not in SAFE_METHODS
        if changes and origin is not None and not self._origins.origin_allowed(origin, host, scope["scheme"]):
            self._reject("origin")
            raise HttpError(403, "a page of another origin may not change anything here", "Origin")

    def _take(self, client: str, cost: float = 1.0) -> None:
        wait = self._buckets.take(client, cost)
        if wait > 0:
            self._reject("rate")
            raise too_many(wait)

    def _reject(self, reason: str) -> None:
        self._metrics.rejected.labels(reason).inc()


def _audit_entry(scope: Scope) -> AuditEntry | None:
    """The entry of the audit trail for a request that changes something. Sending observations is not recorded."""
    sends = scope["path"] in PUSHED or scope["path"].startswith(_SENDING)
    if scope["method"] in SAFE_METHODS or scope["caller"] is None or sends:
        return None
    return AuditEntry(scope["caller"].name, scope["method"], scope["path"].removeprefix(_API)[:_LONGEST_TARGET])


def _authorization(headers: Headers, path: str) -> str | None:
    """The header with the token; clients of Azure have another one for it."""
    key = headers.get(azure.KEY_HEADER) if path.startswith(f"{azure.PREFIX}/") else None
    return headers.get("authorization") if key is None else f"Bearer {key}"


def _is_upload(path: str) -> bool:
    return path == f"{_API}{_UPLOAD}"


def _is_garbled(scope: Scope) -> bool:
    """Whether an address is not valid UTF-8. The server replaces what it cannot decode."""
    if "\ufffd" not in scope["path"]:
        return False
    try:
        unquote_to_bytes(scope.get("raw_path") or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def _is_open(path: str) -> bool:
    """Whether a path needs no token."""
    return path in _OPEN or path.startswith(_OPEN_BELOW)
