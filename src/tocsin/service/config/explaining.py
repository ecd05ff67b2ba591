"""Errors in settings, in words for the person who wrote them."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from tocsin.service.config.fields import ConfigField, path_text, setting_at, settings_of
from tocsin.service.config.layers import Layer, origin_of
from tocsin.service.config.settings import Settings
from tocsin.service.secrecy import hide_in_url

# The library's messages speak of Python types.
_LIKE_OURS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "model_type": "must be a table",
    "path_type": "must be text",
    "string_pattern_mismatch": "must be 1 to 64 letters, digits and _ . -, starting with a letter or digit",
    "string_type": "must be text",
    "tuple_type": "must be a list",
}


def explain(error: ValidationError, layers: Sequence[Layer]) -> list[str]:
    """One line per mistake: the setting, what is accepted, what was given and where. Secrets are omitted."""
    lines = []
    for one in error.errors(include_url=False, include_context=False):
        path = one["loc"]
        origin = origin_of(layers, path) if path else None
        text = _message(one["type"], one["msg"], path, one["input"])
        lines.append((f"{path_text(path)}: " if path else "") + text + (f" ({origin})" if origin else ""))
    return lines


def _message(kind: str, message: str, path: tuple[str | int, ...], given: Any) -> str:
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return _unknown(path)
    setting = setting_at(Settings, path)
    text = _LIKE_OURS.get(kind) or _in_our_words(message)
    if kind == "tuple_type" and setting is not None and setting.part is not None:
        text = f"must be a list of tables: in TOML, [[{path_text(path)}]]"
    if _may_be_shown(setting, given) and ", got " not in text:
        text += f", got {given!r}"
    return hide_in_url(text)


def _in_our_words(message: str) -> str:
    """Our own messages unchanged; the library's in the wording of the other errors."""
    text = message.removeprefix("Value error, ").replace(" after validation", "")
    return re.sub(r"^(Input|String|Tuple) should", "must", text)


def _may_be_shown(setting: ConfigField | None, given: Any) -> bool:
    if setting is None or setting.secret or setting.part is not None:
        return False  # it may be or contain a secret
    return isinstance(given, (str, int, float, bool))


def _unknown(path: tuple[str | int, ...]) -> str:
    """A suggestion. The value is not repeated: it may belong to a misspelt secret."""
    around = setting_at(Settings, path[:-1])
    known = [setting.name for setting in settings_of(around.part if around and around.part else Settings)]
    near = get_close_matches(str(path[-1]), known, n=1)
    return "there is no such setting" + (
        f": did you mean {near[0]}?" if near else f"; known settings: {', '.join(known)}"
    )
