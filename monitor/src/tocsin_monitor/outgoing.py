"""Requests that the monitor makes: bounded in bytes and in time, and without its secrets in any text."""

import asyncio
import json
import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import SecretStr

from tocsin_monitor.errors import MonitorError
from tocsin_monitor.secrecy import hide, hide_in_url, parts_of_url

_MOST_SHOWN = 300  # characters of an answer in an error
#: The bytes read of an answer that nobody needs.
SHORT = 64 * 1024
_CODINGS = ("gzip", "x-gzip", "deflate")


class AnswerError(MonitorError):
    """No answer, or one that says no; `status` is that of HTTP, None where there was none."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, decompressed; `whole` says that there was no more of it than was wanted."""

    content: bytes
    whole: bool

    def json(self) -> Any:
        """What it says; ValueError if that is no JSON."""
        return json.loads(self.content)


class Client(httpx.AsyncClient):
    """A client for one server. Each answer must be there within `within` seconds, and no text shows its `secrets`."""

    def __init__(self, within: float, secrets: tuple[str, ...], **given: Any) -> None:
        # What is not compressed cannot turn out to be a thousand times as large.
        super().__init__(timeout=within, **given)
        self.headers["Accept-Encoding"] = "identity"
        self.within, self.secrets = within, secrets


def open_client(
    url: str, *, timeout: float, bearer_token: SecretStr | None = None, headers: Mapping[str, SecretStr] | None = None
) -> Client:
    """A client for one server. A user and password in its address go into a header, where no message shows them."""
    for name in ("httpx", "httpcore"):
        # They write whole addresses, and the address of a webhook is often its password.
        logging.getLogger(name).setLevel(logging.WARNING)
    address = httpx.URL(url)
    auth = httpx.BasicAuth(address.username, address.password) if address.userinfo else None
    sent = {name: secret.get_secret_value() for name, secret in (headers or {}).items()}
    secrets = (*sent.values(), *parts_of_url(url))
    if bearer_token is not None:
        sent["Authorization"] = f"Bearer {bearer_token.get_secret_value()}"
        secrets = (bearer_token.get_secret_value(), *secrets)
    return Client(timeout, secrets, base_url=without_user(url), headers=sent, auth=auth)


def without_user(url: str) -> str:
    """An address without the user and password in it."""
    return str(httpx.URL(url).copy_with(username=None, password=None))


async def ask(client: Client, method: str, path: str, *, most: int = SHORT, **body: Any) -> Answer:
    """The answer to a request, or AnswerError. At most `most` bytes of it are read."""
    try:
        async with asyncio.timeout(client.within), client.stream(method, path, **body) as answer:
            read = await _read(answer, most if answer.is_success else SHORT)
    except (TimeoutError, httpx.TimeoutException):
        raise AnswerError(f"no reply from {_server(client)} within {client.within:g} s") from None
    except httpx.HTTPError as error:
        said = hide_in_url(hide(f"{type(error).__name__}: {error}", client.secrets))
        raise AnswerError(f"the request to {_server(client)} failed: {said}") from None
    if not answer.is_success:
        raise AnswerError(f"HTTP {answer.status_code}: {_shown(read, client.secrets)}", answer.status_code)
    return read


def _server(client: Client) -> str:
    """The host and port, which are not secret; the rest of an address may be."""
    return client.base_url.netloc.decode()


async def _read(answer: httpx.Response, most: int) -> Answer:
    coding = answer.headers.get("Content-Encoding", "identity").lower()
    unpacking = zlib.decompressobj(wbits=47) if coding in _CODINGS else None  # 47: gzip or zlib, whichever it is
    content = bytearray()
    async for piece in answer.aiter_raw(SHORT):
        room = most + 1 - len(content)
        try:
            content += piece if unpacking is None else unpacking.decompress(piece, room)
        except zlib.error as error:
            raise AnswerError(f"the reply claims to be {coding}, but is not: {error}") from None
        if len(content) > most:
            return Answer(bytes(content[:most]), whole=False)
    return Answer(bytes(content), whole=True)


def _shown(answer: Answer, secrets: tuple[str, ...]) -> str:
    # First hidden, then cut: a secret must not stay because its end is missing.
    text = " ".join(hide(answer.content.decode(errors="replace"), secrets).split())
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
