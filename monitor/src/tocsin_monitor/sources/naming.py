"""Names of signals, built from topics and labels."""

import hashlib
import json
import string
from collections.abc import Mapping

from tocsin_monitor.observations import LONGEST_NAME

_DIGEST = 12  # characters


class NameTemplate:
    """A text with fields such as {instance}, and nothing else in braces.

    Examples
    --------
    >>> NameTemplate("load/{instance}").fill({"instance": "a:9100"})
    'load/a:9100'
    """

    def __init__(self, text: str) -> None:
        try:
            pieces = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(f"a template must be text with fields such as {{name}}, got {text!r}: {error}") from None
        for _, field, form, conversion in pieces:
            if field is not None and (form or conversion or not (field.isidentifier() or field.isdecimal())):
                raise ValueError(f"a field of a template must be a name or a number in braces, got {text!r}")
        self._pieces = [(literal, field) for literal, field, _, _ in pieces]
        self.text = text

    @property
    def fields(self) -> list[str]:
        """The names of the fields."""
        return [field for _, field in self._pieces if field is not None]

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with these values; KeyError if one is missing."""
        return "".join(literal + ("" if field is None else values[field]) for literal, field in self._pieces)


def topic_signal(template: NameTemplate, topic: str, value: str = "") -> str:
    """The name of the signal for a value in a message on a topic; ValueError if the topic has too few levels."""
    levels = topic.split("/")
    try:
        name = template.fill({"topic": topic, "value": value, **{str(i): level for i, level in enumerate(levels)}})
    except KeyError as error:
        raise ValueError(
            f"topic {topic!r} has {len(levels)} levels, but {template.text!r} asks for {error.args[0]}"
        ) from None
    return fitting(name)


def series_signal(template: NameTemplate | None, labels: Mapping[str, str], query: str) -> str:
    """The name of the signal for a series: without a template, the series as Prometheus writes it.

    The result of a function has no name, so the query is used instead. A missing label is empty, as in Prometheus.

    Examples
    --------
    >>> series_signal(None, {"__name__": "up", "job": "node", "instance": "a"}, "up")
    'up{instance="a", job="node"}'
    """
    if template is not None:
        return fitting(template.fill({**dict.fromkeys(template.fields, ""), **labels}))
    name = labels.get("__name__") or " ".join(query.split())
    rest = ", ".join(
        f"{label}={json.dumps(labels[label], ensure_ascii=False)}" for label in sorted(labels) if label != "__name__"
    )
    return fitting(f"{name}{{{rest}}}" if rest else name)


def fitting(name: str) -> str:
    """A valid name for a signal: printable, and not too long; names that are cut off get a digest, so they differ."""
    name = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in name).strip()
    if not name:
        raise ValueError("the name of the signal would be empty")
    if len(name) > LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
        name = name[: LONGEST_NAME - _DIGEST - 1].rstrip() + "~" + digest
    return name
