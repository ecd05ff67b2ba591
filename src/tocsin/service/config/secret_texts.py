"""What is secret in the settings."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from tocsin.service.config.fields import settings_of
from tocsin.service.config.section import Section
from tocsin.service.secrecy import parts_of_url

# A user, or a part of a path, that is shorter is a word that may stand in any message.
_LONG = 12


def secrets_in(settings: Section) -> tuple[str, ...]:
    """All secrets, and those parts of secret addresses that must not be shown either."""
    return tuple(dict.fromkeys(part for text in _texts(settings) for part in _parts(text)))


def _texts(part: Section) -> Iterator[str]:
    for setting in settings_of(type(part)):
        value = getattr(part, setting.name)
        if setting.secret:
            yield from _told(value)
        else:
            for one in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(one, Section):
                    yield from _texts(one)


def _told(value: Any) -> Iterator[str]:
    """The texts of a secret, which may be a table of them."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _told(one)
    elif isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif value is not None:
        yield str(value)


def _parts(secret: str) -> Iterator[str]:
    """The secret; of an address only what could be a password: who reads a log has to know where it leads."""
    if "://" not in secret:
        yield secret
        return
    address = urlsplit(secret)
    plain = {address.username, address.path, *address.path.split("/")}
    for part in parts_of_url(secret):
        if part not in plain or len(part) >= _LONG:
            yield part
