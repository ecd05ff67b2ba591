"""Tokens: who may do what."""

import hashlib
import re
import secrets
from enum import IntEnum

PREFIX = "tocsin_"
#: What a token may be called; a pattern for a whole text.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$"
_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}", re.ASCII)


class Role(IntEnum):
    """What a token allows; each role may do what those before it may."""

    READ = 1
    WRITE = 2
    ADMIN = 3

    @property
    def text(self) -> str:
        """As it is stored and shown."""
        return self.name.lower()


ROLES = tuple(role.text for role in Role)


def role_of(text: str) -> Role:
    """The role of that name."""
    if text not in ROLES:
        raise ValueError(f"a role must be one of {', '.join(ROLES)}, got {text!r}")
    return Role[text.upper()]


def make_token() -> str:
    """A new token. It is shown once; only its hash is kept."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """What is stored of a token.

    A token holds 256 random bits, so one round of SHA-256 cannot be turned back, and looking a hash up tells nothing
    by its timing that would help to find another token.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def looks_like_token(text: str) -> bool:
    """Whether a text has the form of a token; others need not be looked up."""
    return _FORM.fullmatch(text) is not None
