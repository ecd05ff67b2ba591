"""Requests that the monitor makes, without its secrets in any text."""

import logging
from collections.abc import Mapping
from typing import Any

import httpx
from pydantic import SecretStr

from tocsin.service.errors import MonitorError

_MOST_SHOWN = 300  # characters of an answer in an error


class AnswerError(MonitorError):
    """No answer, or one that says no; `status` is that of HTTP, None where there was none."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def open_client(
    url: str, *, timeout: float, bearer_token: SecretStr | None = None, headers: Mapping[str, SecretStr] | None = None
) -> httpx.AsyncClient:
    """A client for one server. A user and password in its address go into a header, where no message shows them."""
    for name in ("httpx", "httpcore"):
        # They write whole addresses, and the address of a webhook is often its password.
        logging.getLogger(name).setLevel(logging.WARNING)
    address = httpx.URL(url)
    auth = httpx.BasicAuth(address.username, address.password) if address.userinfo else None
    sent = {name: secret.get_secret_value() for name, secret in (headers or {}).items()}
    if bearer_token is not None:
        sent["Authorization"] = f"Bearer {bearer_token.get_secret_value()}"
    return httpx.AsyncClient(base_url=without_user(url), timeout=timeout, headers=sent, auth=auth)


def without_user(url: str) -> str:
    """An address without the user and password in it."""
    return str(httpx.URL(url).copy_with(username=None, password=None))


async def ask(client: httpx.AsyncClient, method: str, path: str, **body: Any) -> httpx.Response:
    """The answer to a request, or AnswerError."""
    try:
        answer = await client.request(method, path, **body)
    except httpx.TimeoutException as error:
        raise AnswerError(f"no answer in time ({type(error).__name__})") from None
    except httpx.HTTPError as error:
        raise AnswerError(f"{type(error).__name__}: {error}") from None
    if not answer.is_success:
        raise AnswerError(f"HTTP {answer.status_code}: {_shown(answer)}", answer.status_code)
    return answer


def _shown(answer: httpx.Response) -> str:
    text = " ".join(answer.text[: 2 * _MOST_SHOWN].split())
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
