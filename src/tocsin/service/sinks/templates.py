"""Texts with fields in braces, such as "{signal}: {explanation}"."""

from collections.abc import Mapping
from difflib import get_close_matches
from string import Formatter
from typing import Any


class TextTemplate(Formatter):
    """A format string whose only fields are those of a message; a missing value is an empty text.

    A mistake is a ValueError that names the setting. Fields are plain names, with a format if you like (`{p:.2g}`):
    attributes and items of values cannot be reached.

    >>> TextTemplate("title", "{signal}: p = {p:.2g}", {"signal": "", "p": 0.5}).fill({"signal": "pump", "p": 0.00123})
    'pump: p = 0.0012'
    """

    def __init__(self, setting: str, text: str, *samples: Mapping[str, Any]) -> None:
        self._setting, self._text = setting, text
        self._check(samples[0])
        for sample in samples:
            self.fill(sample)

    def fill(self, fields: Mapping[str, Any]) -> str:
        """The text with the fields of a message."""
        try:
            return self.vformat(self._text, (), fields)
        except ValueError as error:
            raise ValueError(f"{self._setting}: {error}, got {self._text!r}") from None

    def format_field(self, value: Any, format_spec: str) -> str:
        return "" if value is None else str(super().format_field(value, format_spec))

    def _check(self, known: Mapping[str, Any]) -> None:
        try:
            parts = list(self.parse(self._text))
        except ValueError as error:
            raise ValueError(f"{self._setting}: {error}, got {self._text!r}; a brace itself is {{{{ or }}}}") from None
        for _, name, spec, _ in parts:
            if name is not None and name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"; did you mean {{{near[0]}}}?" if near else ";"
                raise ValueError(
                    f"{self._setting}: {{{name}}} is not a field of a message{hint} "
                    f"The fields are {', '.join(sorted(known))}"
                )
            if "{" in (spec or ""):
                raise ValueError(f"{self._setting}: a format must be plain, got {{{name}:{spec}}}")
