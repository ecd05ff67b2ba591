"""The building blocks of settings."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, WithJsonSchema

from tocsin.data import parse_duration
from tocsin_monitor.secrecy import shown_path


class Section(BaseModel):
    """A part of the settings. It rejects unknown settings, and its errors never print possible secrets."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _seconds(duration: Any) -> float:
    """Seconds, from a number of them or from text such as '5min'."""
    if isinstance(duration, bool):
        raise ValueError(f"must be seconds or text such as '5min', got {duration!r}")
    try:
        return float(duration)  # in an environment variable, a number is text
    except OverflowError:
        return math.inf  # more than any duration may be
    except (TypeError, ValueError):
        return float(parse_duration(duration) / np.timedelta64(1, "s"))


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", text):
        raise ValueError("must be 1 to 64 letters, digits and _ . -, starting with a letter or digit")
    return text


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    return text.rstrip("/")


def _topic(text: str) -> str:
    if not text or any(sign in text for sign in "+#\0"):
        raise ValueError("must be a topic to publish to, not empty and without + or #")
    return text


def _of_file(given: Any) -> Any:
    """Read the file if a secret is given as {file = "/path"}, without the final newline."""
    if not isinstance(given, dict):
        return given
    if set(given) != {"file"} or not isinstance(given["file"], str):
        raise ValueError('must be text or {file = "/path"}')
    try:
        text = Path(given["file"]).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error  # without the file's name
        raise ValueError(f"{shown_path(given['file'])} cannot be read: {why}") from error
    except ValueError:
        raise ValueError("file must be a path, got one that no file can have") from None
    if not text:
        raise ValueError(f"{given['file']} is empty")
    return text


#: Marks a setting as a duration, so that it is shown as one.
DURATION = BeforeValidator(_seconds)
#: Marks a secret that may be given as {file = "/path"}. Its value is never shown.
OF_FILE = BeforeValidator(_of_file)

_IN_JSON = {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1e10}, {"type": "string"}]}

Seconds = Annotated[float, DURATION, Field(gt=0, le=1e10), WithJsonSchema(_IN_JSON)]
Name = Annotated[str, AfterValidator(_name)]
Url = Annotated[str, AfterValidator(_url)]
Secret = Annotated[SecretStr, OF_FILE]
#: An address that grants access to anyone who knows it, such as a chat webhook.
SecretUrl = Annotated[Url, OF_FILE]
Topic = Annotated[str, AfterValidator(_topic)]
#: An empty text means None, because TOML has no null.
TopicOrNone = Annotated[str | None, AfterValidator(lambda text: _topic(text) if text else None)]


class NameTemplate:
    """A text with fields such as {instance}, and nothing else in braces.

    Examples
    --------
    >>> NameTemplate("load/{instance}").fill({"instance": "a:9100"})
    'load/a:9100'
    """

    def __init__(self, text: str) -> None:
        try:
            pieces = list(Formatter().parse(text))
        except ValueError as error:
            raise ValueError(f"a template must be text with fields such as {{name}}, got {text!r}: {error}") from None
        for _, field, form, conversion in pieces:
            if field is not None and (form or conversion or not (field.isidentifier() or field.isdecimal())):
                raise ValueError(f"a field of a template must be a name or a number in braces, got {text!r}")
        self._pieces = [(literal, field) for literal, field, _, _ in pieces]
        self.text = text

    @property
    def fields(self) -> list[str]:
        return [field for _, field in self._pieces if field is not None]

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with these values; KeyError if one is missing."""
        return "".join(literal + ("" if field is None else values[field]) for literal, field in self._pieces)


#: The name of a signal, with labels of a series in braces.
LabelPattern = Annotated[str, AfterValidator(lambda text: NameTemplate(text).text)]


def check_placeholders(text: str, accepted: str, *names: str, numbers: bool = False) -> str:
    """Reject a pattern with an unknown placeholder."""
    for name in NameTemplate(text).fields:
        if name not in names and not (numbers and name.isdecimal()):
            raise ValueError(f"{{{name}}} is not a known placeholder; {accepted}")
    return text


class MqttBroker(Section):
    """The connection to a broker."""

    host: str = Field(default="127.0.0.1", min_length=1, description="The broker's host.")
    port: int = Field(default=1883, ge=1, le=65535, description="Its port.")
    username: str | None = Field(default=None, description="The user name.", examples=["tocsin"])
    password: Secret | None = Field(default=None, description="The password.", examples=["change-me"])
    tls: bool = Field(default=False, description="Whether to use TLS.")
    ca_file: Path | None = Field(
        default=None, description="Trusted certificates, if not the system's.", examples=["/etc/tocsin/ca.crt"]
    )
    client_id: str | None = Field(
        default=None,
        description="The client id; the broker queues messages under it while the monitor is offline.",
        examples=["tocsin-plant"],
    )
