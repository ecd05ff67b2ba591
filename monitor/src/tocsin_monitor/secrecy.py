"""Removes secrets from texts that are shown or logged."""

import re
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

MASK = "**********"
# Shorter texts may be ordinary words, such as "api".
_SHORTEST = 6
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_TOKEN = re.compile(r"\btocsin_[A-Za-z0-9_-]{43}")
_QUERY = re.compile(r"(https?://[^\s?'\"]*\?)[^\s'\"]+")


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text with the secrets masked."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    return text


def hide_in_url(text: str) -> str:
    """The text with users, passwords and queries of the addresses in it masked.

    >>> hide_in_url("http://me:word@example.com/path?key=1 cannot be reached")
    'http://**********@example.com/path?********** cannot be reached'
    """
    return _QUERY.sub(rf"\1{MASK}", _USER.sub(f"{MASK}@", text))


def hide_tokens(text: str) -> str:
    """The text without the monitor's own tokens."""
    return _TOKEN.sub(MASK, text)


def shown_path(path: Path | str) -> str:
    """A path as it may be shown: masked if it neither looks like one nor is there, since it may be a misplaced secret.

    >>> shown_path("/etc/tocsin/gone"), shown_path("hunter2")
    ('/etc/tocsin/gone', '**********')
    """
    file = Path(path)
    try:
        known = file.exists() or (len(file.parts) > 1 and file.parent.is_dir())
    except (OSError, ValueError):  # it cannot even be a path
        known = False
    return str(path) if known or (file.is_absolute() and len(file.parts) > 2) else MASK


def parts_of_url(url: str) -> tuple[str, ...]:
    """The parts of an address that may be secret: all except scheme and host. Parts of the path may be passwords."""
    parts = urlsplit(url)
    found = [parts.username, parts.password, parts.query, parts.path, *parts.path.split("/")]
    if parts.username is not None:  # as it is sent
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        found.append(b64encode(user.encode()).decode())
    return tuple(part for one in found if one for part in {one, unquote(one)})
